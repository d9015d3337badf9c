"""KL of long rows of logits, in the arithmetic of the input: the exponentials and their sums, then the cells.

The exponentials of a row wait in memory of the thread's own. A row whose KL is
so small that more digits are wanted, whose logits are far from zero, or that
holds a zero of q where p has none, is flagged and left to `kernels.logs`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.elementary import exp, log
from klnumba.kernels.compiler import helper, prefetch, scalar
from klnumba.kernels.fast import AHEAD, sums
from klnumba.kernels.tiles import BUFFER, STEP, TILE, add, copy, fill, total

# KL below which the error of the ratio of the sums, t (about 2**-22 and 2**-50), shows as t*t/2.
LEAST = {"float64": 2.0**-44, "float32": 2.0**-18}
# The sums that a row may have: no exponential is near overflow, and those that are zero would add nothing.
SMALLEST, LARGEST = 2.0**-40, 2.0**80

GROUP = 256  # cells of several short rows
PLACE = GROUP + STEP  # a buffer: x, y, p, q, two numbers of the row of each cell, and the cells

_exp = scalar(exp)
_log = scalar(log)


def rows(cells: tuple[Callable[..., Any], Callable[..., Any]], dtype: Any) -> Callable[..., None]:
    real, least = dtype.type, LEAST[dtype.name]
    powers, kl = scalar(cells[0]), scalar(cells[1])
    line, ahead = 64 // dtype.itemsize, AHEAD // dtype.itemsize
    none = real(-math.inf)

    @helper
    def first(x: Any, y: Any, inverse: Any, ps: Any, qs: Any) -> None:
        for k in range(x.size):
            ps[k], qs[k] = powers(x[k], y[k], inverse)

    @helper
    def second(x: Any, y: Any, ps: Any, qs: Any, inverse: Any, shift: Any, rest: Any, ratio: Any, out: Any) -> None:
        for k in range(x.size):
            out[k] = kl(x[k], y[k], ps[k], qs[k], inverse, shift, rest, ratio)

    @helper
    def end(a: Any, start: Any, count: Any, work: Any, at: Any) -> None:
        """The end of a row, filled up to a multiple of `STEP` with zeros, logarithms of -inf."""
        cells = a[start : start + count]
        place = work[at : at + (count + STEP - 1) // STEP * STEP]
        for k in range(place.size):
            place[k] = none
        for k in range(count):
            place[k] = cells[k]

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any, inverse: Any,
        powers_p: Any, powers_q: Any, out: Any, flag: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        state, tree = space[0:8], space[8 : 8 + TILE // 4]
        scale = real(inverse)
        for r in range(n):
            o, u = a + r * ps, b + r * qs
            state[0:6] = 0.0
            for start in range(0, d, TILE):
                count = min(TILE, d - start)
                for k in range(0, count, line):
                    prefetch(p, o + start + k + ahead)
                    prefetch(q, u + start + k + ahead)
                x, i, y, j = p, o + start, q, u + start
                if count % STEP:
                    end(p, i, count, work, 0)
                    end(q, j, count, work, BUFFER)
                    count = (count + STEP - 1) // STEP * STEP
                    x, i, y, j = view, np.int64(0), view, np.int64(BUFFER)
                ep, eq = powers_p[start : start + count], powers_q[start : start + count]
                first(x[i : i + count], y[j : j + count], scale, ep, eq)
                add(state, np.int64(2), total(powers_p, start, count, tree))
                add(state, np.int64(4), total(powers_q, start, count, tree))
            mass, other = state[2] + state[3], state[4] + state[5]
            flag[r] = 1
            if not (SMALLEST < mass < LARGEST and SMALLEST < other < LARGEST):
                continue
            shift = _log(mass / other)
            whole = real(shift)
            rest = real(shift - np.float64(whole))
            ratio = real(_exp(shift))  # not mass/other: the two agree to the last digit, where shift rounds
            for start in range(0, d, TILE):
                count = min(TILE, d - start)
                x, i, y, j = p, o + start, q, u + start
                if count % STEP:
                    end(p, i, count, work, 0)
                    end(q, j, count, work, BUFFER)
                    count = (count + STEP - 1) // STEP * STEP
                    x, i, y, j = view, np.int64(0), view, np.int64(BUFFER)
                ep, eq = powers_p[start : start + count], powers_q[start : start + count]
                place = work[2 * BUFFER : 2 * BUFFER + count]
                second(x[i : i + count], y[j : j + count], ep, eq, scale, whole, rest, ratio, place)
                add(state, np.int64(0), total(work, np.int64(2 * BUFFER), count, tree))
            value = (state[0] + state[1]) / mass
            out[r] = value
            flag[r] = not (least <= value < math.inf or (value == 0.0 and mass == other))

    return loop


@helper
def gather(a: Any, start: Any, step: Any, rows: Any, d: Any, work: Any, at: Any) -> None:
    """Some rows side by side."""
    if step == d:
        copy(a, start, rows * d, work, at)
    else:
        for r in range(rows):
            copy(a, start + r * step, d, work, at + r * d)


def short_rows(cells: tuple[Callable[..., Any], Callable[..., Any]]) -> Callable[..., None]:
    """Rows of fewer than `fast.SHORT` cells, many at a time and in float64: one cell may be nearly all of them."""
    least = LEAST["float64"]
    powers, kl = scalar(cells[0]), scalar(cells[1])

    @helper
    def first(view: Any, count: Any, inverse: Any, ps: Any, qs: Any) -> None:
        x, y = view[0:count], view[PLACE : PLACE + count]
        for k in range(count):
            ps[k], qs[k] = powers(x[k], y[k], inverse)

    @helper
    def second(view: Any, count: Any, inverse: Any, out: Any) -> None:
        x, y = view[0:count], view[PLACE : PLACE + count]
        ps, qs = view[2 * PLACE : 2 * PLACE + count], view[3 * PLACE : 3 * PLACE + count]
        shift, ratio = view[4 * PLACE : 4 * PLACE + count], view[5 * PLACE : 5 * PLACE + count]
        for k in range(count):
            out[k] = kl(x[k], y[k], ps[k], qs[k], inverse, shift[k], 0.0, ratio[k])

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any, inverse: Any,
        out: Any, flag: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        most = GROUP // d
        gs, xs, ys = space[0:TILE], space[TILE : 2 * TILE], space[2 * TILE : 3 * TILE]
        for start in range(0, n, most):
            count = min(most, n - start)
            cells = count * d
            whole = (cells + STEP - 1) // STEP * STEP
            gather(p, a + start * ps, ps, count, d, work, 0)
            gather(q, b + start * qs, qs, count, d, work, PLACE)
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
                sound = least <= value < math.inf or (value == 0.0 and xs[r] == ys[r])
                out[start + r] = value
                flag[start + r] = not (usable and sound)

    return loop
