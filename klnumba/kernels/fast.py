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

from klnumba.formulas.finish import differences, masses, to_mass_of_p
from klnumba.formulas.row_cells import kl_unfit, kl_unfit_scaled, no_cell
from klnumba.kernels.compiler import as_written, helper, part, scalar
from klnumba.kernels.infinite import is_infinite
from klnumba.kernels.instructions import frozen
from klnumba.kernels.lane_sums import AHEAD, LANES, add_four, difference_gatherer, low, row_loop, rows_loop, together
from klnumba.kernels.shares import flagged, take
from klnumba.kernels.tiles import BUFFER, SCRATCH, SPACE, STEP, TILE, ask, fill, listed, side_by_side, vector_sum

SUMS = 3  # of cells, p and q, or of cells, p - q and what this sum lost
LOW = low(SUMS)
SHORT = 256  # rows shorter than this are computed many at a time
GROUP = 1024  # cells of these that are computed together: they, what becomes of them and the next fit the nearest cache
assert 4 * GROUP + STEP <= SPACE
assert 2 * (GROUP + STEP) <= SCRATCH
VECTORS = 32  # rows shorter than this are summed many at a time


def constants(dtype: Any) -> tuple[Any, Any, float, float]:
    """(an integer above every guard, the least guard that holds, `floor` and `large` of `kl_finish`)."""
    if dtype == np.float64:
        return np.int64(np.iinfo(np.int64).max), np.int64(1 << 52), 2.0**-46, 2.0**900
    return np.int32(np.iinfo(np.int32).max), np.int32(1 << 23), 2.0**-18, 2.0**120


def plain_floor(dtype: Any) -> float:
    """The KL of a row taken as it is from which on the underflow of its cells, up to 2**24 of them, does not show."""
    return 2.0**-900 if dtype == np.float64 else 2.0**-96


# --- long rows --------------------------------------------------------------------------------------------------------


def four_of(cell: Callable[..., Any], pair: Callable[..., Any]) -> Any:
    """What is added up of four cells: these, and what `pair` makes of p and q, `masses` or `differences`."""
    cell, pair = scalar(cell), as_written(pair)  # a part takes less time to compile
    h = LANES

    @part
    def four(
        x0: Any, x1: Any, x2: Any, x3: Any, y0: Any, y1: Any, y2: Any, y3: Any, c: Any, out: Any, k: Any
    ) -> Any:  # fmt: skip
        g0, c0 = cell(x0, y0, c)
        g1, c1 = cell(x1, y1, c)
        g2, c2 = cell(x2, y2, c)
        g3, c3 = cell(x3, y3, c)
        out[k] = add_four(g0, g1, g2, g3)
        out[h + k], out[2 * h + k] = pair(x0, x1, x2, x3, y0, y1, y2, y3)
        return min(min(c0, c1), min(c2, c3))

    return four


def _row_loop(cell: Callable[..., Any], dtype: Any, kind: Any, top: Any, pair: Callable[..., Any] = masses) -> Any:
    gather = difference_gatherer() if kind == np.float64 and pair is differences else None
    return row_loop(four_of(cell, pair), SUMS, dtype, kind, top, gather)


def long_rows(
    cell: Callable[..., Any], finish: Callable[..., Any], dtype: Any, pair: Callable[..., Any] = masses
) -> Callable[..., Any]:
    """Rows of at least `SHORT` cells. `p` starts at `a` and steps by `ps` a row; so does `q`."""
    top, normal, floor, large = constants(dtype)
    row = _row_loop(cell, dtype, dtype.type, top, pair)
    finish, lowest = scalar(finish), 0.0
    if pair is differences:
        floor, lowest = plain_floor(dtype), -math.inf

    @part
    def finished(sums: Any, i: Any) -> Any:
        return finish(sums[3 * i], sums[3 * i + 1], sums[3 * i + 2], floor, large)

    return rows_loop(row, SUMS, finished, is_infinite, normal, lowest)


def pieces(cell: Callable[..., Any], dtype: Any, kind: Any, pair: Callable[..., Any] = masses) -> Callable[..., None]:
    """Pieces of one long row, computed as `kind`."""
    top, normal, _, _ = constants(np.dtype(kind))
    return pieces_loop(_row_loop(cell, dtype, kind, top, pair), SUMS, normal)


def pieces_loop(row: Any, sums: int, normal: Any) -> Callable[..., None]:
    """Pieces of one long row, one side scaled by `c`: a state of sums for each, and whether its guard held."""
    lows = low(sums)

    def loop(
        p: Any, a: Any, q: Any, b: Any, starts: Any, stops: Any, c: Any, states: Any, work: Any, view: Any, space: Any
    ) -> None:
        for i in range(starts.size):
            d = stops[i] - starts[i]
            states[i, 2 * sums] = row(p, a + starts[i], q, b + starts[i], d, c, work, view, space, 0) >= normal
            together(sums * LANES, lows, space)
            for k in range(sums):
                states[i, 2 * k], states[i, 2 * k + 1] = space[k], space[lows + k]

    return loop


def scaled_long_rows(
    four: Any, sums: int, finished: Callable[..., Any], scale: Callable[..., Any], dtype: Any
) -> Callable[..., None]:
    """The rows in `index`, whose sums differ, in float64 throughout; ``scale(P, Q)`` is what one of them is scaled by.

    ``finished(sums, P, Q, c)`` gives the value of a row.
    """
    top, normal, _, _ = constants(np.float64)
    both = _row_loop(no_cell, dtype, np.float64, top)
    row = row_loop(four, sums, dtype, np.float64, top)
    lows, scale = low(sums), scalar(scale)

    def rows(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any,
        out: Any, flag: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        for r in index:
            both(p, a + r * ps, q, b + r * qs, d, 1.0, work, view, space, 0)
            together(SUMS * LANES, LOW, space)
            mass, other = space[1] + space[LOW + 1], space[2] + space[LOW + 2]
            c = scale(mass, other)
            guard = row(p, a + r * ps, q, b + r * qs, d, c, work, view, space, 0)
            together(sums * LANES, lows, space)
            for k in range(sums):
                space[k] += space[lows + k]
            value = finished(space, mass, other, c)
            out[r] = value
            flag[r] = guard < normal or not value >= 0.0

    return rows


def scaled_long(cell: Callable[..., Any], finish: Callable[..., Any], dtype: Any) -> Callable[..., None]:
    """KL of long rows that are brought to a common mass."""
    finish = scalar(finish)
    finished = part(lambda sums, p, q, c: finish(sums[0], p, q, c))
    return scaled_long_rows(four_of(cell, masses), SUMS, finished, to_mass_of_p, dtype)


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
            fours = add_four(
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
    """KL of rows of fewer than `SHORT` cells, in float64."""
    top, normal, floor, large = constants(np.float64)
    flat = flat_loop(cell, top)
    finish = scalar(finish)

    @part
    def added(x: Any, o: Any, y: Any, u: Any, count: Any, d: Any, whole: Any, space: Any) -> Any:
        guard = flat(x, o, y, u, whole, space[3 * GROUP : 4 * GROUP + STEP])
        sums(frozen(space), np.int64(3 * GROUP), count, d, space[0:GROUP])
        sums(x, o, count, d, space[GROUP : 2 * GROUP])
        sums(y, u, count, d, space[2 * GROUP : 3 * GROUP])
        return guard

    @part
    def finished(sums: Any, r: Any) -> Any:
        return finish(sums[r], sums[GROUP + r], sums[2 * GROUP + r], floor, large)

    return groups_loop(GROUP, added, finished, kl_unfit, is_infinite, normal)


def any_of(unfit: Callable[..., bool]) -> Any:
    """A piece that says whether any cell of a row is `unfit`."""
    unfit = scalar(unfit)
    least = float(np.finfo(np.float64).tiny)

    @part
    def any_unfit(x: Any, y: Any) -> Any:
        found = np.int64(0)  # a count, which is added up many at a time
        for k in range(x.size):
            found += unfit(x[k], y[k], least)
        return found > 0

    return any_unfit


def groups_loop(
    cells: int, added: Callable[..., Any], finished: Callable[..., Any], unfit: Callable[..., bool], infinite: Any,
    normal: Any,
) -> Callable[..., Any]:  # fmt: skip
    """Short rows, so many cells at a time: their sums, and what they come to.

    ``added`` writes the sums of a group and returns its guard, and ``finished(sums, r)`` gives the value of row r.
    Where the guard fails, each row of the group is looked at alone, so that no row's answer depends on its neighbours.
    """
    any_unfit = any_of(unfit)

    def rows(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any,
        out: Any, flag: Any, turn: Any, work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        most = cells // d
        while True:
            start, stop = take(turn, n, d)
            if start == stop:
                break
            for first in range(start, stop, most):
                count = min(most, stop - first)
                x, o, y, u, whole = group(p, a + first * ps, ps, q, b + first * qs, qs, count, d, work, view)
                guard = added(x, o, y, u, count, d, whole, space)
                values = out[first : first + count]
                marks = flag[first : first + count]
                for r in range(count):
                    values[r] = finished(space, r)
                for r in range(count):
                    marks[r] = 0 if values[r] >= 0.0 else turn[3]
                if guard < normal:
                    for r in range(count):
                        at, to = o + r * d, u + r * d
                        if infinite(x, at, y, to, d):
                            values[r], marks[r] = np.inf, 0
                        elif any_unfit(x[at : at + d], y[to : to + d]):
                            marks[r] = turn[3]
        return flagged(turn, flag)

    return rows


def scaled_short_rows(
    flat: Any, total: Any, added: Any, finished: Callable[..., Any], scale: Callable[..., Any],
    unfit: Callable[..., bool],
) -> Callable[..., None]:  # fmt: skip
    """The rows in `index`, of fewer than `SHORT` cells, in float64; ``scale(P, Q)`` is what one of them is scaled by.

    ``total`` adds up rows of p. ``flat`` computes the cells of the rows in the buffers: p, q and, in the fourth, c;
    ``added`` writes their sums, and ``finished(sums, r, P, Q, c)`` gives the value of row r.
    """
    _, normal, _, _ = constants(np.float64)
    scale, unfit = scalar(scale), scalar(unfit)
    least = float(np.finfo(np.float64).tiny)

    def rows(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any,
        out: Any, flag: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        most = TILE // d
        xs, ys = space[2 * TILE : 3 * TILE], space[3 * TILE : 4 * TILE]
        for first in range(0, index.size, most):
            count = min(most, index.size - first)
            listed(p, a, ps, index[first : first + count], d, work, np.int64(0))
            listed(q, b, qs, index[first : first + count], d, work, np.int64(BUFFER))
            total(view, np.int64(0), count, d, xs)
            sums(view, np.int64(BUFFER), count, d, ys)
            for r in range(count):
                fill(work, 3 * BUFFER + r * d, d, scale(xs[r], ys[r]))
            cells = count * d
            rest = -cells % STEP
            fill(work, cells, rest, 0.0)
            fill(work, BUFFER + cells, rest, 0.0)
            fill(work, 3 * BUFFER + cells, rest, 1.0)
            guard = flat(view, cells + rest, work)
            added(view, count, d, space)
            for r in range(count):
                value = finished(space, r, xs[r], ys[r], work[3 * BUFFER + r * d])
                out[index[first + r]] = value
                flag[index[first + r]] = not value >= 0.0
            if guard < normal:
                for k in range(cells):
                    if unfit(view[k], view[BUFFER + k], view[3 * BUFFER + k], least):
                        flag[index[first + k // d]] = 1

    return rows


def scaled_short(cell: Callable[..., Any], finish: Callable[..., Any]) -> Callable[..., None]:
    """KL of short rows that are brought to a common mass."""
    top, _, _, _ = constants(np.float64)
    cell, finish = scalar(cell), scalar(finish)

    @part
    def flat(view: Any, count: Any, work: Any) -> Any:
        x, y, c = view[0:count], view[BUFFER : BUFFER + count], view[3 * BUFFER : 3 * BUFFER + count]
        out = work[2 * BUFFER : 2 * BUFFER + count]
        guard = top
        for k in range(count):
            out[k], check = cell(x[k], y[k], c[k])
            guard = min(guard, check)
        return guard

    added = part(lambda view, count, d, space: sums(view, np.int64(2 * BUFFER), count, d, space[0:TILE]))
    finished = part(lambda sums, r, p, q, c: finish(sums[r], p, q, c))
    return scaled_short_rows(flat, sums, added, finished, to_mass_of_p, kl_unfit_scaled)
