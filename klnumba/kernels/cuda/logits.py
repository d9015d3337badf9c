"""KL of rows of logits and log-probabilities in one read (see `kernels.logits` for the cells).

A cell needs the log-ratio of the two rows' sums. It is guessed from the first cells of the row, and KL comes from the
three sums whatever the guess: KL = G/P - phi(D/P), as in `kernels.logs`. Where the guess was so far off that this
loses digits, the sums have told the right one, and the row is read once more.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from klnumba.formulas.elementary import exp, log
from klnumba.formulas.logit_cells import LARGEST, LOGIT_CELLS, SMALLEST, logit_cells, psi_f32
from klnumba.kernels import logs
from klnumba.kernels.cuda import approximate
from klnumba.kernels.cuda.cells import COMPUTED, GROUP
from klnumba.kernels.cuda.sweep import sweep
from klnumba.kernels.cuda.target import device, piece
from klnumba.kernels.cuda.team import Team, value_of

# KL below which the error of the ratio of the sums, t (about 2**-22 and 2**-50), shows as t*t/2.
LEAST = {"float64": 2.0**-44, "float32": 2.0**-18}
HEAD = 2  # groups of every thread from which the log-ratio is guessed
_SHORT_CELLS = logit_cells(approximate.power, psi_f32, np.float32)  # of cells that have 8 bits, or 11
_sound, _log, _exp = device(logs._sound), device(log), device(exp)


@piece
def usable(mass: Any, other: Any) -> Any:
    """Whether no exponential is near overflow, and those that are zero would add nothing."""
    return (mass > SMALLEST) & (mass < LARGEST) & (other > SMALLEST) & (other < LARGEST)


@functools.cache
def parts(store: str, team: Team, grouped: bool) -> tuple[Any, Any, Any]:
    """(how many first cells serve for a guess, the sums at a guess, what they tell)."""
    kind = np.dtype(COMPUTED[store])
    real, wide, least = kind.type, kind == np.float64, LEAST[kind.name]
    powers, kl = map(device, LOGIT_CELLS[kind.name] if store in ("float64", "float32") else _SHORT_CELLS)
    zero = real(0)
    head = HEAD * team.width * (GROUP[store] if grouped else 1)

    @piece
    def cell(x: Any, y: Any, c: Any) -> Any:
        inverse, shift, ratio = c
        p, q = powers(x, y, inverse)
        return kl(x, y, p, q, inverse, shift, zero, ratio), p, q, 0

    walk = sweep(cell, store, team, grouped, -math.inf, 0, 0)

    @piece
    def sums(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, shift: Any, lane: Any, room: Any) -> Any:
        guess = real(shift)
        c = (real(inverse), guess, real(_exp(np.float64(guess))))
        return walk(p, o, q, u, d, c, lane, room)

    @piece
    def ratio_of(mass: Any, other: Any) -> Any:
        return _log(mass / other) if usable(mass, other) else 0.0

    @piece
    def concluded(a: Any, ae: Any, b: Any, be: Any, e: Any, ee: Any, shift: Any) -> Any:
        """(KL, whether it needs no better guess, a better guess)."""
        g, mass, other = value_of(a, ae), value_of(b, be), value_of(e, ee)
        found = _sound(g, mass, other * _exp(np.float64(real(shift))) - mass)
        fits = usable(mass, other)
        # In float32 the square of a small delta is zero.
        stands = ((found >= least) & (found < math.inf)) | (wide and g == 0.0 and mass == other)
        return found if fits and stands else -1.0, found >= 0.0 or not fits, ratio_of(mass, other)

    return head, sums, concluded


@functools.cache
def value(store: str, team: Team, grouped: bool) -> Any:
    """KL of a row, the same in every thread of its team; -1 where it is to be computed otherwise."""
    head, sums, concluded = parts(store, team, grouped)
    any_of = team.any

    @piece
    def row(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, lane: Any, room: Any) -> Any:
        shift, result = 0.0, -1.0
        done = False
        for attempt in range(3):  # the first looks at the first cells alone, for a guess
            if not any_of(not done):
                break
            cells = min(d, head) if attempt == 0 else d
            a, ae, b, be, e, ee = sums(p, o, q, u, cells, inverse, shift, lane, room)
            found, enough, better = concluded(a, ae, b, be, e, ee, shift)
            if not done:
                result = found
                done = attempt > 0 and enough
                shift = better
        return result

    return row
