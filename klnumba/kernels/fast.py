"""KL of rows in one read: the loop behind nearly every row.

Of rows that are to be normalised, one whose sums say that digits would be lost
(`kl_finish`) is brought to a common mass and read again. One that this does
not serve either, or that holds a cell that `kl_cell` does not serve, is flagged
and left to `kernels.exact`.

To rows that are taken as they are belong, beside the cells, the differences
p - q, which are added up to twice the digits (short ones: `kernels.fast_plain`).
Of those, one whose cells and differences cancel is left to `kernels.exact` too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.divergences import kl_unfit, no_cell
from klnumba.formulas.elementary import sum_of_four, two_sum
from klnumba.formulas.finish import differences, masses
from klnumba.kernels.compiler import as_written, frozen, helper, part, scalar
from klnumba.kernels.shares import flagged, take
from klnumba.kernels.tiles import BUFFER, SCRATCH, STEP, TILE, ask, copy, fill, side_by_side, vector_sum

SHORT = 256  # rows shorter than this are computed many at a time
GROUP = 1024  # cells of these that are computed together: they, what becomes of them and the next fit the nearest cache
VECTORS = 32  # rows shorter than this are summed many at a time
MOST = 8  # blocks of `STEP` cells of a long row whose sums a buffer holds; four times as many in float32
LANES = STEP // 4  # sums of a long row that run side by side, in an order that is the same on every processor,
SUMS = 3 * LANES  # of the cells, of p and of q; or of the cells, of p - q and of what this sum lost
FOUR, EIGHT = 4 * SUMS, 8 * SUMS
ROWS = 8  # long rows whose sums are brought together at a time: those of one would wait for each other
LOW = ROWS * SUMS  # where the second parts of the sums begin
AHEAD = 8192  # bytes ahead of the cells at work that are asked for: hardware loses the stream where a row ends


_four = scalar(sum_of_four)
_two_sum = scalar(two_sum)


def constants(dtype: Any) -> tuple[Any, Any, float, float]:
    """(an integer above every guard, the least guard that holds, `floor` and `large` of `kl_finish`)."""
    if dtype == np.float64:
        return np.int64(np.iinfo(np.int64).max), np.int64(1 << 52), 2.0**-46, 2.0**900
    return np.int32(np.iinfo(np.int32).max), np.int32(1 << 23), 2.0**-18, 2.0**120


def plain_floor(dtype: Any) -> float:
    """The KL of a row taken as it is from which on the underflow of its cells, up to 2**24 of them, does not show."""
    return 2.0**-900 if dtype == np.float64 else 2.0**-96


# --- tiles of one row -------------------------------------------------------------------------------------------------


def fours_loop(cell: Callable[..., Any], item: int, kind: Any, top: Any, pair: Callable[..., Any]) -> Any:
    """A loop over blocks of `STEP` cells that adds them in fours into a buffer, and returns the least guard.

    A block has `LANES` sums of cells and of what `pair` makes of p and q, either the sums of both (`masses`) or
    `differences`. The caller's cells have `item` bytes and are computed as `kind`.
    """
    cell, pair = scalar(cell), as_written(pair)  # a part takes less time to compile
    line, ahead = 64 // item, AHEAD // item
    h = LANES

    @part
    def fours(p: Any, a: Any, q: Any, b: Any, count: Any, c: Any, work: Any, filled: Any) -> Any:
        guard = top
        for start in range(0, count, STEP):
            x = p[a + start : a + start + STEP]
            y = q[b + start : b + start + STEP]
            ask(x, y, ahead, STEP, line)
            at = (filled + start // STEP) * SUMS
            out = work[at : at + SUMS]
            for k in range(h):
                x0, x1, x2, x3 = kind(x[k]), kind(x[h + k]), kind(x[2 * h + k]), kind(x[3 * h + k])
                y0, y1, y2, y3 = kind(y[k]), kind(y[h + k]), kind(y[2 * h + k]), kind(y[3 * h + k])
                g0, c0 = cell(x0, y0, c)
                g1, c1 = cell(x1, y1, c)
                g2, c2 = cell(x2, y2, c)
                g3, c3 = cell(x3, y3, c)
                out[k] = _four(g0, g1, g2, g3)
                out[h + k], out[2 * h + k] = pair(x0, x1, x2, x3, y0, y1, y2, y3)
                guard = min(guard, min(min(c0, c1), min(c2, c3)))
        return guard

    return fours


@part
def _gather(work: Any, count: Any, hi: Any, lo: Any) -> None:
    """Add the sums of eight blocks, and these to the lanes, whose rounding errors go to a second set of lanes."""
    for start in range(0, count, EIGHT):
        few = count - start <= FOUR
        rest = (FOUR if few else EIGHT) - (count - start)
        if rest > 0:
            fill(work, count, rest, 0.0)
        x = work[start : start + EIGHT]
        for k in range(SUMS):
            total = _four(
                np.float64(x[k]), np.float64(x[SUMS + k]), np.float64(x[2 * SUMS + k]), np.float64(x[3 * SUMS + k])
            )
            if not few:
                total += _four(
                    np.float64(x[4 * SUMS + k]),
                    np.float64(x[5 * SUMS + k]),
                    np.float64(x[6 * SUMS + k]),
                    np.float64(x[7 * SUMS + k]),
                )
            s, e = _two_sum(hi[k], total)
            hi[k] = s
            lo[k] += e


@part
def _gather_differences(work: Any, count: Any, hi: Any, lo: Any) -> None:
    """The same for `differences`, whose sums over eight blocks are brought into the first, and roundings with them.

    What is lost is below n*u*u times the sum of the sizes of n differences. In float32 nothing is lost without it,
    since `_gather` adds in float64.
    """
    for start in range(0, count, EIGHT):
        total = work[start : start + SUMS]
        for block in range(start + SUMS, min(start + EIGHT, count), SUMS):
            x = work[block : block + SUMS]
            for k in range(LANES, 2 * LANES):
                s, e = _two_sum(total[k], x[k])
                total[k] = s
                total[LANES + k] += e
                x[k] = 0.0
    _gather(work, count, hi, lo)


@helper
def _pairs(x: Any, x_low: Any, count: Any, out: Any, low: Any) -> None:
    """Sums of two adjacent numbers of twice the digits."""
    a, b = x[0 : 2 * count], x_low[0 : 2 * count]
    for k in range(count):
        s, e = _two_sum(a[2 * k], a[2 * k + 1])
        out[k], low[k] = s, (b[2 * k] + b[2 * k + 1]) + e


@part
def _collapse(rows: Any, space: Any) -> None:
    """The three sums of up to `ROWS` rows from their lanes: at `space[0:]`, and what they lack at `space[LOW:]`."""
    n = rows * SUMS
    hi, lo, here, there = space[0:LOW], space[LOW : 2 * LOW], space[2 * LOW : 3 * LOW], space[3 * LOW : 4 * LOW]
    _pairs(hi, lo, n // 2, here, there)
    _pairs(here, there, n // 4, hi, lo)
    _pairs(hi, lo, n // 8, here, there)
    _pairs(here, there, n // 16, hi, lo)


def row_loop(cell: Callable[..., Any], dtype: Any, kind: Any, top: Any, pair: Callable[..., Any] = masses) -> Any:
    """The sums of a row of cells of `dtype`, tile by tile, into lanes for `_collapse`; returns the least guard."""
    fours = fours_loop(cell, dtype.itemsize, kind, top, pair)
    zero = dtype.type(0)
    wide = kind == np.float64
    gather = _gather_differences if wide and pair is differences else _gather
    most = MOST if wide else 4 * MOST

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
        hi, lo = space[number * SUMS : (number + 1) * SUMS], space[LOW + number * SUMS : LOW + (number + 1) * SUMS]
        buffer = space[4 * LOW : 4 * LOW + MOST * SUMS] if wide else work[2 * STEP : SCRATCH]
        fill(hi, 0, SUMS, 0.0)
        fill(lo, 0, SUMS, 0.0)
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
                gather(buffer, filled * SUMS, hi, lo)
                filled = 0
        return guard

    return row


# --- long rows --------------------------------------------------------------------------------------------------------


def long_rows(
    cell: Callable[..., Any], finish: Callable[..., Any], dtype: Any, pair: Callable[..., Any] = masses
) -> Callable[..., Any]:
    """Rows of at least `SHORT` cells. `p` starts at `a` and steps by `ps` a row; so does `q`."""
    top, normal, floor, large = constants(dtype)
    row = row_loop(cell, dtype, dtype.type, top, pair)
    finish, lowest = scalar(finish), 0.0
    if pair is differences:
        floor, lowest = plain_floor(dtype), -math.inf

    def rows(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any,
        out: Any, flag: Any, turn: Any, work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        sums = space[0 : 3 * ROWS]
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
                    marks[i] = turn[3] if guard < normal else 0
                _collapse(count, space)
                for k in range(3 * count):
                    sums[k] += space[LOW + k]
                for i in range(count):
                    values[i] = finish(sums[3 * i], sums[3 * i + 1], sums[3 * i + 2], floor, large)
                for i in range(count):
                    marks[i] = marks[i] if values[i] >= lowest else turn[3]
        return flagged(turn, flag)

    return rows


def pieces(cell: Callable[..., Any], dtype: Any, pair: Callable[..., Any]) -> Callable[..., None]:
    """Pieces of one long row: a state of sums for each, and whether its guard held."""
    top, normal, _, _ = constants(dtype)
    row = row_loop(cell, dtype, dtype.type, top, pair)

    def loop(
        p: Any, a: Any, q: Any, b: Any, starts: Any, stops: Any, states: Any, work: Any, view: Any, space: Any
    ) -> None:
        for i in range(starts.size):
            d = stops[i] - starts[i]
            states[i, 6] = row(p, a + starts[i], q, b + starts[i], d, 1.0, work, view, space, 0) >= normal
            _collapse(1, space)
            for k in range(3):
                states[i, 2 * k], states[i, 2 * k + 1] = space[k], space[LOW + k]

    return loop


def scaled_long_rows(cell: Callable[..., Any], finish: Callable[..., Any], dtype: Any) -> Callable[..., None]:
    """The rows in `index`, whose sums differ, brought to a common mass first; in float64 throughout."""
    top, normal, _, _ = constants(np.float64)
    both = row_loop(no_cell, dtype, np.float64, top)
    row = row_loop(cell, dtype, np.float64, top)
    finish = scalar(finish)

    def rows(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any,
        out: Any, flag: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        for r in index:
            both(p, a + r * ps, q, b + r * qs, d, 1.0, work, view, space, 0)
            _collapse(1, space)
            mass, other = space[1] + space[LOW + 1], space[2] + space[LOW + 2]
            guard = row(p, a + r * ps, q, b + r * qs, d, mass / other, work, view, space, 0)
            _collapse(1, space)
            value = finish(space[0] + space[LOW], mass, other, mass / other)
            out[r] = value
            flag[r] = guard < normal or not value >= 0.0

    return rows


# --- short rows: one flat pass over many, then the sums of each -----------------------------------------------------


def flat_loop(cell: Callable[..., Any], top: Any) -> Any:
    """The cells of many short rows into a buffer; returns the least guard."""
    cell = scalar(cell)

    @part
    def flat(p: Any, a: Any, q: Any, b: Any, count: Any, out: Any) -> Any:
        guard = top
        line, ahead = 64 // p.itemsize, AHEAD // 2 // p.itemsize  # for short rows half as far was the fastest
        for start in range(0, count, STEP):
            x = p[a + start : a + min(start + STEP, count)]
            y = q[b + start : b + min(start + STEP, count)]
            place = out[start : min(start + STEP, count)]
            ask(x, y, ahead, STEP, line)
            for k in range(x.size):
                place[k], check = cell(np.float64(x[k]), np.float64(y[k]), 1.0)
                guard = min(guard, check)
        return guard

    return flat


@helper
def _fold(source: Any, count: Any, n: Any, out: Any) -> None:
    """The sums of `count` groups of `n` adjacent cells; groups of 2, 3, 5 and 7 many at a time."""
    x = source[0 : count * n]
    if n == 2:
        for i in range(count):
            out[i] = np.float64(x[2 * i]) + np.float64(x[2 * i + 1])
    elif n == 3:
        for i in range(count):
            out[i] = np.float64(x[3 * i]) + np.float64(x[3 * i + 1]) + np.float64(x[3 * i + 2])
    elif n == 5:
        for i in range(count):
            pairs = (np.float64(x[5 * i]) + np.float64(x[5 * i + 1])) + (
                np.float64(x[5 * i + 2]) + np.float64(x[5 * i + 3])
            )
            out[i] = pairs + np.float64(x[5 * i + 4])
    elif n == 7:
        for i in range(count):
            fours = _four(
                np.float64(x[7 * i]), np.float64(x[7 * i + 1]), np.float64(x[7 * i + 2]), np.float64(x[7 * i + 3])
            )
            pair = np.float64(x[7 * i + 4]) + np.float64(x[7 * i + 5])
            out[i] = fours + (pair + np.float64(x[7 * i + 6]))
    else:
        for i in range(count):
            out[i] = vector_sum(x[i * n : i * n + n])


@helper
def _factor(d: Any) -> Any:
    """By what to fold first: a small factor of d, or all of it."""
    if d < VECTORS:
        for n in (2, 3, 5, 7):
            if d % n == 0:
                return n
    return d


@helper
def sums(a: Any, start: Any, rows: Any, d: Any, out: Any) -> None:
    """The sums of `rows` adjacent rows of `d` < SHORT cells in float64, each in an order that depends on d alone.

    The factors of d are folded one after another, from `out` into its second half and back.
    """
    folds = 1
    rest = d // _factor(d)
    while rest > 1:
        rest //= _factor(rest)
        folds += 1
    here, there = out[0:], out[out.size // 2 :]
    if folds % 2 == 0:
        here, there = there, here
    n = _factor(d)
    rest = d // n
    _fold(a[start : start + rows * d], rows * rest, n, here)
    while rest > 1:
        n = _factor(rest)
        rest //= n
        _fold(frozen(here), rows * rest, n, there)
        here, there = there, here


@part
def group(p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, count: Any, d: Any, work: Any, view: Any) -> Any:
    """Rows one after another, with others or zeros behind them up to a multiple of `STEP` cells.

    They are where they lie, or in `work`: (the cells of p, where they begin, the same of q, how many cells there are).
    """
    x, o, y, u = p, a, q, b
    cells = count * d
    whole = (cells + STEP - 1) // STEP * STEP
    adjacent = (ps == d or count == 1) and (qs == d or count == 1)
    if not adjacent or a + whole > p.size or b + whole > q.size:
        ask(p[a:], q[b:], cells, cells, 64 // p.itemsize)  # the next group, as a loop over cells sees the copies alone
        side_by_side(p, a, ps, count, d, work, 0)
        side_by_side(q, b, qs, count, d, work, GROUP + STEP)
        fill(work, cells, whole - cells, 0.0)
        fill(work, GROUP + STEP + cells, whole - cells, 0.0)
        x, o, y, u = view, np.int64(0), view, np.int64(GROUP + STEP)
    return x, o, y, u, whole


def short_rows(cell: Callable[..., Any], finish: Callable[..., Any]) -> Callable[..., Any]:
    """Rows of fewer than `SHORT` cells, in float64.

    The guard is taken over the whole group; where it fails, each row of the
    group is looked at alone, so that no row's answer depends on its neighbours.
    """
    top, normal, floor, large = constants(np.float64)
    flat = flat_loop(cell, top)
    finish, unfit = scalar(finish), scalar(kl_unfit)
    least = float(np.finfo(np.float64).tiny)

    def rows(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any,
        out: Any, flag: Any, turn: Any, work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        most = GROUP // d
        gs, xs, ys = space[0:GROUP], space[GROUP : 2 * GROUP], space[2 * GROUP : 3 * GROUP]
        while True:
            start, stop = take(turn, n, d)
            if start == stop:
                break
            for first in range(start, stop, most):
                count = min(most, stop - first)
                x, o, y, u, whole = group(p, a + first * ps, ps, q, b + first * qs, qs, count, d, work, view)
                guard = flat(x, o, y, u, whole, space[3 * GROUP : 4 * GROUP + STEP])
                sums(frozen(space), np.int64(3 * GROUP), count, d, gs)
                sums(x, o, count, d, xs)
                sums(y, u, count, d, ys)
                values = out[first : first + count]
                marks = flag[first : first + count]
                for r in range(count):
                    values[r] = finish(gs[r], xs[r], ys[r], floor, large)
                for r in range(count):
                    marks[r] = 0 if values[r] >= 0.0 else turn[3]
                if guard < normal:
                    for k in range(count * d):
                        if unfit(x[o + k], y[u + k], least):
                            flag[first + k // d] = turn[3]
        return flagged(turn, flag)

    return rows


def scaled_short_rows(cell: Callable[..., Any], finish: Callable[..., Any], dtype: Any) -> Callable[..., None]:
    """The rows in `index`, of fewer than `SHORT` cells, brought to a common mass first; in float64 throughout."""
    top, normal, _, _ = constants(np.float64)
    cell, finish, unfit = scalar(cell), scalar(finish), scalar(kl_unfit)
    least = float(np.finfo(np.float64).tiny)

    @part
    def flat(view: Any, count: Any, out: Any) -> Any:
        """The cells of the rows in the buffers: p, q and, in the fourth, c."""
        x = view[0:count]
        y = view[BUFFER : BUFFER + count]
        c = view[3 * BUFFER : 3 * BUFFER + count]
        guard = top
        for k in range(count):
            out[k], check = cell(x[k], y[k], c[k])
            guard = min(guard, check)
        return guard

    def rows(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any,
        out: Any, flag: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        most = TILE // d
        gs, xs, ys = space[0:TILE], space[TILE : 2 * TILE], space[2 * TILE : 3 * TILE]
        for first in range(0, index.size, most):
            count = min(most, index.size - first)
            for r in range(count):
                copy(p, a + index[first + r] * ps, d, work, r * d)
                copy(q, b + index[first + r] * qs, d, work, BUFFER + r * d)
            sums(view, np.int64(0), count, d, xs)
            sums(view, np.int64(BUFFER), count, d, ys)
            for r in range(count):
                fill(work, 3 * BUFFER + r * d, d, xs[r] / ys[r])
            cells = count * d
            rest = -cells % STEP
            fill(work, cells, rest, 0.0)
            fill(work, BUFFER + cells, rest, 0.0)
            fill(work, 3 * BUFFER + cells, rest, 1.0)
            guard = flat(view, cells + rest, work[2 * BUFFER : 3 * BUFFER])
            sums(view, np.int64(2 * BUFFER), count, d, gs)
            for r in range(count):
                value = finish(gs[r], xs[r], ys[r], xs[r] / ys[r])
                out[index[first + r]] = value
                flag[index[first + r]] = not value >= 0.0
            if guard < normal:
                for k in range(cells):
                    if unfit(view[k], view[BUFFER + k] * view[3 * BUFFER + k], least):
                        flag[index[first + k // d]] = 1

    return rows
