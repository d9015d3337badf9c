"""KL of short rows of logits, many at a time, in float64: the exponentials and their sums, then the cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from klnumba.formulas.elementary import exp, log
from klnumba.formulas.logit_cells import LARGEST, LOGIT_CELLS, SMALLEST
from klnumba.kernels.compiler import part, scalar
from klnumba.kernels.fast import sums
from klnumba.kernels.shares import flagged, take
from klnumba.kernels.tiles import SCRATCH, STEP, TILE, fill, side_by_side

LEAST = 2.0**-44  # KL below which the error of the ratio of the sums, t (about 2**-50), shows as t*t/2
GROUP = 256  # cells of several rows
PLACE = GROUP + STEP  # a buffer: x, y, p, q, two numbers of the row of each cell, and the cells
assert 7 * PLACE <= SCRATCH

_exp = scalar(exp)
_log = scalar(log)
_powers, _kl = map(scalar, LOGIT_CELLS["float64"])


def rows() -> Callable[..., Any]:
    """Rows of fewer than `fast.SHORT` cells, many at a time, in float64."""
    powers, kl = _powers, _kl

    @part
    def first(view: Any, count: Any, inverse: Any, ps: Any, qs: Any) -> None:
        x, y = view[0:count], view[PLACE : PLACE + count]
        for k in range(count):
            ps[k], qs[k] = powers(x[k], y[k], inverse)

    @part
    def second(view: Any, count: Any, inverse: Any, out: Any) -> None:
        x, y = view[0:count], view[PLACE : PLACE + count]
        ps, qs = view[2 * PLACE : 2 * PLACE + count], view[3 * PLACE : 3 * PLACE + count]
        shift, ratio = view[4 * PLACE : 4 * PLACE + count], view[5 * PLACE : 5 * PLACE + count]
        for k in range(count):
            out[k] = kl(x[k], y[k], ps[k], qs[k], inverse, shift[k], 0.0, ratio[k])

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any, out: Any, flag: Any, turn: Any,
        inverse: Any, work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        most = GROUP // d
        gs, xs, ys = space[0:TILE], space[TILE : 2 * TILE], space[2 * TILE : 3 * TILE]
        while True:
            begin, stop = take(turn, n, d)
            if begin == stop:
                break
            for start in range(begin, stop, most):
                count = min(most, stop - start)
                cells = count * d
                whole = (cells + STEP - 1) // STEP * STEP
                side_by_side(p, a + start * ps, ps, count, d, work, 0)
                side_by_side(q, b + start * qs, qs, count, d, work, PLACE)
                for i in range(6):
                    fill(work, i * PLACE + cells, whole - cells, 0.0)
                first(view, whole, inverse, work[2 * PLACE : 2 * PLACE + whole], work[3 * PLACE : 3 * PLACE + whole])
                sums(view, 2 * PLACE, count, d, xs)
                sums(view, 3 * PLACE, count, d, ys)
                for r in range(count):
                    gs[r] = _log(xs[r] / ys[r])
                shifts, ratios = work[4 * PLACE : 4 * PLACE + cells], work[5 * PLACE : 5 * PLACE + cells]
                for r in range(count):
                    shift, ratio = gs[r], _exp(gs[r])
                    for k in range(r * d, r * d + d):
                        shifts[k] = shift
                        ratios[k] = ratio
                second(view, whole, inverse, work[6 * PLACE : 6 * PLACE + whole])
                sums(view, 6 * PLACE, count, d, gs)
                for r in range(count):
                    value = gs[r] / xs[r]
                    usable = SMALLEST < xs[r] < LARGEST and SMALLEST < ys[r] < LARGEST
                    sound = LEAST <= value < math.inf or (value == 0.0 and xs[r] == ys[r])
                    out[start + r] = value
                    flag[start + r] = 0 if usable and sound else turn[3]
        return flagged(turn, flag)

    return loop
