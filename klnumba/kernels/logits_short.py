"""KL of short rows of logits, many at a time, in float64: the exponentials and their sums, then the cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.elementary import exp, log
from klnumba.formulas.logit_cells import LARGEST, LOGIT_CELLS, SMALLEST
from klnumba.kernels.compiler import part, scalar
from klnumba.kernels.fast import group, sums
from klnumba.kernels.instructions import frozen
from klnumba.kernels.lane_sums import AHEAD
from klnumba.kernels.shares import flagged, take
from klnumba.kernels.tiles import BUFFER, SPACE, STEP, TILE, ask, fill

LEAST = 2.0**-44  # KL below which the error of the ratio of the sums, t (about 2**-50), shows as t*t/2
# Where the numbers of `TILE` cells of several rows lie in `space`, after three sums: p and q, two numbers of the row of
# each cell, and the cells.
FIRST, SECOND, SHIFTS, RATIOS, CELLS = range(3 * TILE, 3 * TILE + 5 * BUFFER, BUFFER)
assert CELLS + BUFFER <= SPACE

_exp = scalar(exp)
_log = scalar(log)
_powers, _kl = map(scalar, LOGIT_CELLS["float64"])


def rows() -> Callable[..., Any]:
    """Rows of fewer than `fast.SHORT` cells, many at a time, in float64."""
    powers, kl = _powers, _kl

    @part
    def first(p: Any, a: Any, q: Any, b: Any, count: Any, inverse: Any, ps: Any, qs: Any) -> None:
        line, ahead = 64 // p.itemsize, AHEAD // 2 // p.itemsize  # as in `fast.flat_loop`
        for start in range(0, count, STEP):
            stop = min(start + STEP, count)
            x, y = p[a + start : a + stop], q[b + start : b + stop]
            u, v = ps[start:stop], qs[start:stop]
            ask(x, y, ahead, STEP, line)
            for k in range(x.size):
                u[k], v[k] = powers(np.float64(x[k]), np.float64(y[k]), inverse)

    @part
    def second(p: Any, a: Any, q: Any, b: Any, count: Any, inverse: Any, space: Any) -> None:
        x, y = p[a : a + count], q[b : b + count]
        ps, qs = space[FIRST : FIRST + count], space[SECOND : SECOND + count]
        shift, ratio, out = space[SHIFTS : SHIFTS + count], space[RATIOS : RATIOS + count], space[CELLS : CELLS + count]
        for k in range(count):
            out[k] = kl(np.float64(x[k]), np.float64(y[k]), ps[k], qs[k], inverse, shift[k], 0.0, ratio[k])

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any, out: Any, flag: Any, turn: Any,
        inverse: Any, work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        most = TILE // d
        gs, xs, ys = space[0:TILE], space[TILE : 2 * TILE], space[2 * TILE : 3 * TILE]
        shifts, ratios = space[SHIFTS : SHIFTS + BUFFER], space[RATIOS : RATIOS + BUFFER]
        powers_of = space[CELLS : CELLS + TILE]  # the place is free until there are cells
        while True:
            begin, stop = take(turn, n, d)
            if begin == stop:
                break
            for start in range(begin, stop, most):
                count = min(most, stop - start)
                x, o, y, u, whole = group(p, a + start * ps, ps, q, b + start * qs, qs, count, d, work, view)
                first(x, o, y, u, whole, inverse, space[FIRST : FIRST + whole], space[SECOND : SECOND + whole])
                sums(frozen(space), np.int64(FIRST), count, d, xs)
                sums(frozen(space), np.int64(SECOND), count, d, ys)
                for r in range(count):
                    gs[r] = _log(xs[r] / ys[r])
                for r in range(count):
                    powers_of[r] = _exp(gs[r])
                for r in range(count):
                    fill(shifts, r * d, d, gs[r])
                for r in range(count):
                    fill(ratios, r * d, d, powers_of[r])
                fill(shifts, count * d, whole - count * d, 0.0)
                fill(ratios, count * d, whole - count * d, 1.0)
                second(x, o, y, u, whole, inverse, space)
                sums(frozen(space), np.int64(CELLS), count, d, gs)
                for r in range(count):
                    value = gs[r] / xs[r]
                    usable = SMALLEST < xs[r] < LARGEST and SMALLEST < ys[r] < LARGEST
                    sound = LEAST <= value < math.inf or (value == 0.0 and xs[r] == ys[r])
                    out[start + r] = value
                    flag[start + r] = 0 if usable and sound else turn[3]
        return flagged(turn, flag)

    return loop
