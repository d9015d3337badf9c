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
from klnumba.formulas.logit_cells import LOGIT_CELLS
from klnumba.kernels import logits, logs
from klnumba.kernels.cuda.cells import COMPUTED, GROUP
from klnumba.kernels.cuda.sweep import sweep
from klnumba.kernels.cuda.target import device, piece
from klnumba.kernels.cuda.team import Team, value_of

SMALLEST, LARGEST = logits.SMALLEST, logits.LARGEST
HEAD = 2  # groups of every thread from which the log-ratio is guessed
_sound, _log, _exp = device(logs._sound), device(log), device(exp)


@piece
def usable(mass: Any, other: Any) -> Any:
    """Whether no exponential is near overflow, and those that are zero would add nothing."""
    return (mass > SMALLEST) & (mass < LARGEST) & (other > SMALLEST) & (other < LARGEST)


@functools.cache
def value(store: str, team: Team, grouped: bool) -> Any:
    """KL of a row, the same in every thread of its team; -1 where it is to be computed otherwise."""
    kind = np.dtype(COMPUTED[store])
    real, wide, least = kind.type, kind == np.float64, logits.LEAST[kind.name]
    powers, kl = map(device, LOGIT_CELLS[kind.name])
    zero = real(0)
    any_of = team.any
    head = HEAD * team.width * (GROUP[store] if grouped else 1)

    @piece
    def cell(x: Any, y: Any, c: Any) -> Any:
        inverse, shift, ratio = c
        p, q = powers(x, y, inverse)
        return kl(x, y, p, q, inverse, shift, zero, ratio), p, q, 0

    sums = sweep(cell, store, team, grouped, -math.inf, 0, 0)

    @piece
    def row(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, lane: Any, room: Any) -> Any:
        shift, result = 0.0, -1.0
        done = False
        for attempt in range(3):
            if not any_of(not done):
                break
            cells = min(d, head) if attempt == 0 else d
            guess = real(shift)
            ratio = _exp(np.float64(guess))
            c = (real(inverse), guess, real(ratio))
            a, ae, b, be, e, ee = sums(p, o, q, u, cells, c, lane, room)
            g, mass, other = value_of(a, ae), value_of(b, be), value_of(e, ee)
            fits = usable(mass, other)
            if attempt > 0 and not done:
                found = _sound(g, mass, other * ratio - mass)
                done = found >= 0.0 or not fits
                # In float32 the square of a small delta is zero.
                stands = (found >= least) & (found < math.inf) | (wide and g == 0.0 and mass == other)
                result = found if fits and stands else -1.0
            if not done:
                shift = _log(mass / other) if fits else 0.0
        return result

    return row
