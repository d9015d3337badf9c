"""KL of normalised rows of probabilities in one read (see `kernels.fast`)."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from klnumba.formulas.device import FINISHES, KL_CELLS, positive_cell_f32
from klnumba.kernels.cuda.cells import COMPUTED
from klnumba.kernels.cuda.sweep import NO_SIGN, Pairs, sweep
from klnumba.kernels.cuda.target import device, larger_bfloat16s, piece
from klnumba.kernels.cuda.team import Team, leading, value_of

# Of `kl_finish`. A zero counts as the least normal number, which must not show: in float32 sums are not far from 1.
FLOORS = {"float64": 2.0**-46, "float32": 2.0**-18}
LARGE = {"float64": 2.0**900, "float32": 2.0**40}
LEAST_BFLOAT16S = 0x00800080  # the least normal bfloat16, twice
_positive_cell = device(positive_cell_f32)


@piece
def _two_bfloat16(x: Any, y: Any) -> Any:
    """Two words of two cells each, none of them below the least normal number, and the bits of `kl_cell` for each.

    A sum sets the first bit of a cell where that holds: of p, that it is no zero; of q, that it is a normal number.
    """
    some, normal = x + np.uint32(0x7FFF7FFF), y + np.uint32(0x7F807F80)
    least = np.uint32(LEAST_BFLOAT16S)
    return larger_bfloat16s(x, least), larger_bfloat16s(y, least), np.int32(x | y | (some & ~normal))


@piece
def _sign_of_either(guard: Any) -> Any:
    return np.int32(guard | np.int32(guard << np.int32(16)))


@piece
def _positive(x: Any, y: Any, c: Any) -> Any:
    """The cell of two positive numbers. What was raised does not show in the sums either."""
    return _positive_cell(x, y), x, y, np.int32(0)


@functools.cache
def parts(store: str, team: Team, grouped: bool) -> tuple[Any, Any]:
    """(the sums of a row or a piece of it, KL from those of a row: -1 where one read loses digits)."""
    kind = np.dtype(COMPUTED[store])
    floor, large = FLOORS[kind.name], LARGE[kind.name]
    formula, finish, nothing = device(KL_CELLS[kind.name]), device(FINISHES[kind.name]), kind.type(0)
    whole = value_of if kind == np.float64 else leading

    @piece
    def cell(x: Any, y: Any, c: Any) -> Any:
        g, bits = formula(x, y)
        return g, x, y, bits

    pairwise = Pairs(_two_bfloat16, _positive, _sign_of_either) if store == "bfloat16" else None
    walk = sweep(cell, store, team, grouped, 0.0, NO_SIGN, pairwise)

    @piece
    def sums(p: Any, o: Any, q: Any, u: Any, d: Any, lane: Any, room: Any) -> Any:
        return walk(p, o, q, u, d, nothing, lane, room)

    @piece
    def finished(a: Any, ae: Any, b: Any, be: Any, e: Any, ee: Any) -> Any:
        return finish(whole(a, ae), whole(b, be), whole(e, ee), floor, large)

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
