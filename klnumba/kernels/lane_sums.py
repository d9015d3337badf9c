"""Sums of long rows: of their cells in fours, of these in lanes, and of the lanes, whose roundings are kept.

What is added up is said by a piece that takes four cells of p and q: it writes the sums that it makes of them and
returns their guard. A row may have three or four sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.elementary import sum_of_four, two_sum
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.shares import flagged, take
from klnumba.kernels.tiles import SCRATCH, SPACE, STEP, ask, copy, fill

MOST = 8  # blocks of `STEP` cells of a long row whose sums a buffer holds; four times as many in float32
LANES = STEP // 4  # parts of a sum that run side by side, in an order that is the same on every processor
ROWS = 8  # rows whose lanes are brought together at a time: those of one would wait for each other
INFINITE = -1  # a mark for a moment
AHEAD = 8192  # bytes ahead of the cells at work that are asked for: hardware loses the stream where a row ends

add_four = scalar(sum_of_four)
_two_sum = scalar(two_sum)


def low(sums: int) -> int:
    """Where in `space` the second parts of the sums of rows begin."""
    return ROWS * sums * LANES


def loop_over_fours(four: Callable[..., Any], sums: int, item: int, kind: Any, top: Any) -> Any:
    """A loop over blocks of `STEP` cells that writes their sums into a buffer, and returns the least guard.

    A block has `LANES` of each of the `sums` that `four` writes. The caller's cells have `item` bytes and are computed
    as `kind`.
    """
    line, ahead = 64 // item, AHEAD // item
    h, size = LANES, sums * LANES

    @part
    def fours(p: Any, a: Any, q: Any, b: Any, count: Any, c: Any, work: Any, filled: Any) -> Any:
        guard = top
        for start in range(0, count, STEP):
            x = p[a + start : a + start + STEP]
            y = q[b + start : b + start + STEP]
            ask(x, y, ahead, STEP, line)
            at = (filled + start // STEP) * size
            out = work[at : at + size]
            for k in range(h):
                x0, x1, x2, x3 = kind(x[k]), kind(x[h + k]), kind(x[2 * h + k]), kind(x[3 * h + k])
                y0, y1, y2, y3 = kind(y[k]), kind(y[h + k]), kind(y[2 * h + k]), kind(y[3 * h + k])
                guard = min(guard, four(x0, x1, x2, x3, y0, y1, y2, y3, c, out, k))
        return guard

    return fours


def gatherer(sums: int) -> Any:
    """A piece that adds the sums of eight blocks, and these to the lanes, whose rounding errors go to further lanes."""
    size = sums * LANES
    half, whole = 4 * size, 8 * size

    @part
    def gather(work: Any, count: Any, hi: Any, lo: Any) -> None:
        for start in range(0, count, whole):
            few = count - start <= half
            rest = (half if few else whole) - (count - start)
            if rest > 0:
                fill(work, count, rest, 0.0)
            x = work[start : start + whole]
            for k in range(size):
                total = add_four(
                    np.float64(x[k]), np.float64(x[size + k]), np.float64(x[2 * size + k]), np.float64(x[3 * size + k])
                )
                if not few:
                    total += add_four(
                        np.float64(x[4 * size + k]),
                        np.float64(x[5 * size + k]),
                        np.float64(x[6 * size + k]),
                        np.float64(x[7 * size + k]),
                    )
                s, e = _two_sum(hi[k], total)
                hi[k] = s
                lo[k] += e

    return gather


def difference_gatherer() -> Any:
    """The same of `differences`, whose sums over eight blocks are brought into the first, and roundings with them.

    What is lost is below n*u*u times the sum of the sizes of n differences. In float32 nothing is lost without it,
    since the other adds in float64.
    """
    size = 3 * LANES
    gather = gatherer(3)

    @part
    def gather_differences(work: Any, count: Any, hi: Any, lo: Any) -> None:
        for start in range(0, count, 8 * size):
            total = work[start : start + size]
            for block in range(start + size, min(start + 8 * size, count), size):
                x = work[block : block + size]
                for k in range(LANES, 2 * LANES):
                    s, e = _two_sum(total[k], x[k])
                    total[k] = s
                    total[LANES + k] += e
                    x[k] = 0.0
        gather(work, count, hi, lo)

    return gather_differences


@helper
def _pairs(x: Any, x_low: Any, count: Any, out: Any, out_low: Any) -> None:
    """Sums of two adjacent numbers of twice the digits."""
    a, b = x[0 : 2 * count], x_low[0 : 2 * count]
    for k in range(count):
        s, e = _two_sum(a[2 * k], a[2 * k + 1])
        out[k], out_low[k] = s, (b[2 * k] + b[2 * k + 1]) + e


@part
def together(lanes: Any, most: Any, space: Any) -> None:
    """The sums of so many lanes, sixteen to a sum: at `space[0:]`, and what they lack at `space[most:]`."""
    hi, lo = space[0:most], space[most : 2 * most]
    here, there = space[2 * most : 3 * most], space[3 * most : 4 * most]
    _pairs(hi, lo, lanes // 2, here, there)
    _pairs(here, there, lanes // 4, hi, lo)
    _pairs(hi, lo, lanes // 8, here, there)
    _pairs(here, there, lanes // 16, hi, lo)


def row_loop(four: Callable[..., Any], sums: int, dtype: Any, kind: Any, top: Any, gather: Any = None) -> Any:
    """The sums of a row of cells of `dtype`, block by block, into lanes for `together`; returns the least guard."""
    fours = loop_over_fours(four, sums, dtype.itemsize, kind, top)
    gather = gather or gatherer(sums)
    zero, size, lows = dtype.type(0), sums * LANES, low(sums)
    wide = kind == np.float64
    most = MOST if wide else 4 * MOST
    if 4 * lows + MOST * size > SPACE or 2 * STEP + 4 * MOST * size > SCRATCH:
        raise ValueError(f"no room for {sums} sums")

    @helper
    def end(source: Any, start: Any, count: Any, d: Any, work: Any, at: Any) -> None:
        """The last `count` < `STEP` cells of a row of `d` cells, behind zeros.

        They are written in whole vectors: a vector that is read back from narrower pieces has to wait until these
        have left the pipeline, and with them every cell that is still on its way from memory.
        """
        place = work[at : at + STEP]
        skip = STEP - count
        if d < STEP:
            place[:] = zero
            copy(source, start, count, work, at)
        else:
            cells = source[start - skip : start + count]
            for k in range(STEP):
                x = cells[k]
                place[k] = x if k >= skip else zero

    @part
    def row(p: Any, a: Any, q: Any, b: Any, d: Any, c: Any, work: Any, view: Any, space: Any, number: Any) -> Any:
        at = number * size
        hi, lo = space[at : at + size], space[lows + at : lows + at + size]
        buffer = space[4 * lows : 4 * lows + MOST * size] if wide else work[2 * STEP : SCRATCH]
        fill(hi, 0, size, 0.0)
        fill(lo, 0, size, 0.0)
        guard = top
        done = filled = 0
        while done < d:
            count = min((most - filled) * STEP, (d - done) // STEP * STEP)
            x, o, y, u = p, a + done, q, b + done
            if count == 0:
                end(p, o, d - done, d, work, 0)
                end(q, u, d - done, d, work, STEP)
                x, o, y, u, count = view, np.int64(0), view, np.int64(STEP), STEP
            guard = min(guard, fours(x, o, y, u, count, c, buffer, filled))
            filled += count // STEP
            done += count
            if filled == most or done >= d:
                gather(buffer, filled * size, hi, lo)
                filled = 0
        return guard

    return row


def rows_loop(
    row: Callable[..., Any], sums: int, finish: Callable[..., Any], infinite: Any, normal: Any, lowest: float
) -> Callable[..., Any]:
    """Rows of at least `fast.SHORT` cells. `p` starts at `a` and steps by `ps` a row; so does `q`.

    ``finish(sums, i)`` gives the value of row i, and a row whose value is below `lowest` is flagged. One whose guard
    fails is `infinite`, or flagged.
    """
    lows = low(sums)

    def rows(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any,
        out: Any, flag: Any, turn: Any, work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        found = space[0 : sums * ROWS]
        while True:
            start, stop = take(turn, n, d)
            if start == stop:
                break
            for first in range(start, stop, ROWS):
                count = min(ROWS, stop - first)
                marks, values = flag[first : first + count], out[first : first + count]
                for i in range(count):
                    r = first + i
                    guard = row(p, a + r * ps, q, b + r * qs, d, 1.0, work, view, space, i)
                    marks[i] = 0
                    if guard < normal:
                        marks[i] = INFINITE if infinite(p, a + r * ps, q, b + r * qs, d) else turn[3]
                together(count * sums * LANES, lows, space)
                for k in range(sums * count):
                    found[k] += space[lows + k]
                for i in range(count):
                    values[i] = finish(found, i)
                for i in range(count):
                    known = marks[i] == INFINITE
                    values[i] = np.inf if known else values[i]
                    marks[i] = 0 if known else (marks[i] if values[i] >= lowest else turn[3])
        return flagged(turn, flag)

    return rows
