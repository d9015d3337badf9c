"""KL of normalised rows of probabilities in one read (see `kernels.fast`)."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from klnumba.formulas.divergences import kl_cell, kl_cell_f32
from klnumba.formulas.finish import kl_finish
from klnumba.kernels import fast
from klnumba.kernels.cuda.approximate import with_quotients
from klnumba.kernels.cuda.cells import COMPUTED
from klnumba.kernels.cuda.sweep import sweep
from klnumba.kernels.cuda.target import device, piece
from klnumba.kernels.cuda.team import Team, value_of

_finish = device(kl_finish)


@functools.cache
def parts(store: str, team: Team, grouped: bool) -> tuple[Any, Any]:
    """(the sums of a row or a piece of it, KL from those of a row: -1 where one read loses digits)."""
    kind = np.dtype(COMPUTED[store])
    top, normal, floor, large = fast.constants(kind)
    formula = device(kl_cell if kind == np.float64 else with_quotients(kl_cell_f32))
    one = kind.type(1)

    @piece
    def cell(x: Any, y: Any, c: Any) -> Any:
        g, guard = formula(x, y, c)
        return g, x, y, guard

    walk = sweep(cell, store, team, grouped, 0.0, top, normal)

    @piece
    def sums(p: Any, o: Any, q: Any, u: Any, d: Any, lane: Any, room: Any) -> Any:
        return walk(p, o, q, u, d, one, lane, room)

    @piece
    def finished(a: Any, ae: Any, b: Any, be: Any, e: Any, ee: Any) -> Any:
        return _finish(value_of(a, ae), value_of(b, be), value_of(e, ee), floor, large)

    return sums, finished


@functools.cache
def value(store: str, team: Team, grouped: bool) -> Any:
    """KL of a row, the same in every thread of its team; -1 where one read loses digits."""
    sums, finished = parts(store, team, grouped)

    @piece
    def row(p: Any, o: Any, q: Any, u: Any, d: Any, lane: Any, room: Any) -> Any:
        a, ae, b, be, e, ee = sums(p, o, q, u, d, lane, room)
        return finished(a, ae, b, be, e, ee)

    return row
