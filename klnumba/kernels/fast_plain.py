"""KL of short rows that are taken as they are, many at a time, in one read and float64.

Their values are sums of the cells of `kl_cell` and of the differences p - q. These are written in two parts, of which
the sums of the first are exact in any order, so that what sums rows of cells serves for them too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.finish import GRID, MAGNITUDE, kl_finish_difference, split_difference
from klnumba.formulas.row_cells import kl_unfit
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.fast import constants, group, sums
from klnumba.kernels.infinite import is_infinite
from klnumba.kernels.instructions import frozen
from klnumba.kernels.lane_sums import AHEAD
from klnumba.kernels.shares import flagged, take
from klnumba.kernels.tiles import SPACE, STEP, TILE, ask

CELLS, HIGH, LOW = 3 * TILE, 4 * TILE, 5 * TILE  # where the numbers of a group of rows lie in `space`, after their sums
assert LOW + TILE <= SPACE

SUM, WIDEST = 1020.0, 255.0  # of the sizes of the differences in a row, for which `GRID` is good

# The second parts are below 1.25 * 2**-44 each. The sum of d of them is off by less than d*d * 1.25 * 2**-97, in
# whatever order they are added: by less than a third of u = 2**-53 of a value that is at least d*d times this.
LEAST = 2.0**-42
TINY = float(np.finfo(np.float64).tiny)
STEPS = 900  # of a factor of two that a row may take `GRID` up or down; beyond, p + q might overflow in `kl_cell`

_split = scalar(split_difference)
_finish = scalar(kl_finish_difference)
_unfit = scalar(kl_unfit)


def split_loop(cell: Callable[..., Any], top: Any) -> Any:
    """The cells of a group of rows, and their differences, into `space`.

    It returns the least guard; a difference whose bits are too large for `room` takes it below those that hold.
    """
    cell, split = scalar(cell), _split

    @part
    def flat(p: Any, a: Any, q: Any, b: Any, count: Any, room: Any, space: Any) -> Any:
        guard = top
        line, ahead = 64 // p.itemsize, AHEAD // 2 // p.itemsize  # as in `fast.flat_loop`
        for start in range(0, count, STEP):
            stop = min(start + STEP, count)
            x, y = p[a + start : a + stop], q[b + start : b + stop]
            cells, high, low = space[CELLS + start :], space[HIGH + start :], space[LOW + start :]
            ask(x, y, ahead, STEP, line)
            for k in range(x.size):
                cells[k], check = cell(np.float64(x[k]), np.float64(y[k]), 1.0)
                high[k], low[k], size = split(np.float64(x[k]), np.float64(y[k]), GRID)
                guard = min(guard, min(check, room - size))
        return guard

    return flat


@helper
def _look(p: Any, a: Any, q: Any, b: Any, d: Any) -> Any:
    """Whether `kl_cell` serves all cells of a row, and the bits of the largest difference."""
    x, y = p[a : a + d], q[b : b + d]
    serves, size = True, np.int64(0)
    for k in range(d):
        gap = np.float64(x[k]) - np.float64(y[k])
        size = max(size, np.float64(gap).view(np.int64) & MAGNITUDE)
        serves &= not _unfit(x[k], y[k], TINY)
    return serves, size


@helper
def _alone(
    p: Any, a: Any, q: Any, b: Any, d: Any, g: Any, value: Any, floor: Any, widest: Any, large: Any, space: Any
) -> Any:
    """The value of one row, which is `value` where `GRID` is good for it; NaN where it is not served."""
    serves, size = _look(p, a, q, b, d)
    steps = ((size - widest) >> np.int64(52)) + np.int64(1)  # size < widest * 2**steps
    if not serves or steps > STEPS:
        return np.inf if is_infinite(p, a, q, b, d) else np.nan
    if steps <= 0 and value == value:
        return value
    scale = np.int64((max(steps, np.int64(-STEPS)) + np.int64(1023)) << np.int64(52)).view(np.float64)
    x, y = p[a : a + d], q[b : b + d]
    high, low = space[HIGH : HIGH + d], space[LOW : LOW + d]
    for k in range(d):
        high[k], low[k], _ = _split(np.float64(x[k]), np.float64(y[k]), scale * GRID)
    highs, lows = space[TILE : 2 * TILE], space[2 * TILE : 3 * TILE]  # those of the group have been used
    sums(frozen(space), np.int64(HIGH), np.int64(1), d, highs)
    sums(frozen(space), np.int64(LOW), np.int64(1), d, lows)
    return _finish(g, highs[0], lows[0], scale * floor, large)


def short_rows(cell: Callable[..., Any]) -> Callable[..., Any]:
    """Rows of fewer than `fast.SHORT` cells.

    A row whose differences are too large for `GRID`, or for which this is too coarse, gets one that is larger or
    smaller by a power of two. Such a row is looked at alone, and so is each of a group whose guard fails: no row's
    answer depends on its neighbours.
    """
    top, normal, _, large = constants(np.float64)
    flat, finish = split_loop(cell, top), _finish

    def rows(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any,
        out: Any, flag: Any, turn: Any, work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        most, floor = TILE // d, d * d * LEAST
        widest = np.float64(min(WIDEST, SUM / d)).view(np.int64)
        gs, highs, lows = space[0:TILE], space[TILE : 2 * TILE], space[2 * TILE : 3 * TILE]
        while True:
            start, stop = take(turn, n, d)
            if start == stop:
                break
            for first in range(start, stop, most):
                count = min(most, stop - first)
                x, o, y, u, whole = group(p, a + first * ps, ps, q, b + first * qs, qs, count, d, work, view)
                guard = flat(x, o, y, u, whole, widest + normal, space)
                sums(frozen(space), np.int64(CELLS), count, d, gs)
                sums(frozen(space), np.int64(HIGH), count, d, highs)
                sums(frozen(space), np.int64(LOW), count, d, lows)
                values, marks = out[first : first + count], flag[first : first + count]
                for r in range(count):
                    values[r] = finish(gs[r], highs[r], lows[r], floor, large)
                least = large
                for r in range(count):
                    marks[r] = 0 if values[r] == values[r] else turn[3]
                    least = min(least, large if values[r] == values[r] else gs[r])
                if guard < normal or least < 2.0 * floor:  # else a row that is not served is one that cancels
                    for r in range(count):
                        if guard < normal or (marks[r] != 0 and gs[r] < 2.0 * floor):
                            at, to = o + r * d, u + r * d
                            values[r] = _alone(x, at, y, to, d, gs[r], values[r], floor, widest, large, space)
                            marks[r] = 0 if values[r] == values[r] else turn[3]
        return flagged(turn, flag)

    return rows
