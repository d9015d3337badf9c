"""JS, Jeffreys and cross-entropy of rows in one read, as KL in `kernels.fast`: of each cell two numbers are added up.

For JS these are the cells of p and of q against their mean; for Jeffreys those of KL there and back; for cross-entropy,
beside its own cell, what q adds to what its sum lacks of 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from klnumba.formulas.elementary import two_sum
from klnumba.formulas.finish import masses, whole_of
from klnumba.formulas.row_cells import less_one
from klnumba.kernels.compiler import as_written, helper, part, scalar
from klnumba.kernels.fast import constants, groups_loop, pieces_loop, scaled_long_rows, scaled_short_rows, sums
from klnumba.kernels.instructions import frozen
from klnumba.kernels.lane_sums import AHEAD, LANES, add_four, row_loop, rows_loop
from klnumba.kernels.lanes import LANES as LANES_ON_STACK
from klnumba.kernels.lanes import on_stack
from klnumba.kernels.tiles import BUFFER, SPACE, STEP, TILE, ask

SUMS = 4  # of the two numbers, p and q
# Where the numbers of a group of short rows lie, after their sums; those of p have theirs in the place of the first.
FIRST, SECOND, THIRD = range(SUMS * TILE, SUMS * TILE + 3 * BUFFER, BUFFER)
assert THIRD + BUFFER <= SPACE
SIDE = LANES_ON_STACK // 2  # rows that are added up side by side

_two_vectors = on_stack(1, types.float64)
_two_sum = scalar(two_sum)


def four_of(cells: Callable[..., Any]) -> Any:
    """What is added up of four pairs of cells: these, p and q."""
    cells, pair = scalar(cells), as_written(masses)
    h = LANES

    @part
    def four(
        x0: Any, x1: Any, x2: Any, x3: Any, y0: Any, y1: Any, y2: Any, y3: Any, c: Any, out: Any, k: Any
    ) -> Any:  # fmt: skip
        a0, b0, c0 = cells(x0, y0, c)
        a1, b1, c1 = cells(x1, y1, c)
        a2, b2, c2 = cells(x2, y2, c)
        a3, b3, c3 = cells(x3, y3, c)
        out[k], out[h + k] = add_four(a0, a1, a2, a3), add_four(b0, b1, b2, b3)
        out[2 * h + k], out[3 * h + k] = pair(x0, x1, x2, x3, y0, y1, y2, y3)
        return min(min(c0, c1), min(c2, c3))

    return four


def long_rows(cells: Callable[..., Any], finish: Callable[..., Any], infinite: Any, dtype: Any) -> Callable[..., Any]:
    """Rows of at least `fast.SHORT` cells."""
    top, normal, floor, large = constants(dtype)
    row = row_loop(four_of(cells), SUMS, dtype, dtype.type, top)
    finish = scalar(finish)

    @part
    def finished(sums: Any, i: Any) -> Any:
        return finish(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3], floor, large)

    return rows_loop(row, SUMS, finished, infinite, normal, 0.0)


def pieces(cells: Callable[..., Any], dtype: Any, kind: Any) -> Callable[..., None]:
    """Pieces of one long row, computed as `kind`."""
    top, normal, _, _ = constants(np.dtype(kind))
    return pieces_loop(row_loop(four_of(cells), SUMS, dtype, kind, top), SUMS, normal)


def flat_loop(cells: Callable[..., Any], top: Any) -> Any:
    """The cells of many short rows into `space`; returns the least guard."""
    cells = scalar(cells)

    @part
    def flat(p: Any, a: Any, q: Any, b: Any, count: Any, space: Any) -> Any:
        guard = top
        line, ahead = 64 // p.itemsize, AHEAD // 2 // p.itemsize  # as in `fast.flat_loop`
        for start in range(0, count, STEP):
            stop = min(start + STEP, count)
            x, y = p[a + start : a + stop], q[b + start : b + stop]
            first, second = space[FIRST + start :], space[SECOND + start :]
            ask(x, y, ahead, STEP, line)
            for k in range(x.size):
                first[k], second[k], check = cells(np.float64(x[k]), np.float64(y[k]), 1.0)
                guard = min(guard, check)
        return guard

    return flat


def some_serve(alike: float | None) -> Any:
    """Whether any of the rows with these sums may be served, if their masses may differ by `alike` alone."""
    if alike is None:
        return part(lambda p, q, count: True)
    most = 2.0 * alike

    @part
    def serve(p: Any, q: Any, count: Any) -> Any:
        found = False
        for r in range(count):
            found |= abs(p[r] - q[r]) <= most * (p[r] + q[r])
        return found

    return serve


def short_rows(
    cells: Callable[..., Any], finish: Callable[..., Any], unfit: Callable[..., bool], infinite: Any,
    alike: float | None, *, sharp: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """Rows of fewer than `fast.SHORT` cells, in float64. Where it is to be `sharp`, p is added up without its ones.

    With `alike`, of a group whose masses are all too far apart for `finish`, the cells would be for nothing.
    """
    top, normal, floor, large = constants(np.float64)
    flat, serve = flat_loop(cells, top), some_serve(alike)
    finish, less, whole_of_p = scalar(finish), scalar(less_one), scalar(whole_of)

    @part
    def added(x: Any, o: Any, y: Any, u: Any, count: Any, d: Any, whole: Any, space: Any) -> Any:
        p, q = space[2 * TILE : 3 * TILE], space[3 * TILE : 4 * TILE]
        sums(x, o, count, d, p)
        sums(y, u, count, d, q)
        guard = top
        if serve(p, q, count):
            guard = flat(x, o, y, u, whole, space)
            sums(frozen(space), np.int64(FIRST), count, d, space[0:TILE])
            sums(frozen(space), np.int64(SECOND), count, d, space[TILE : 2 * TILE])
            if sharp:
                cells, rest = x[o : o + whole], space[THIRD : THIRD + whole]
                for k in range(whole):
                    rest[k] = less(np.float64(cells[k]))
                sums(frozen(space), np.int64(THIRD), count, d, space[FIRST : FIRST + TILE])
                for r in range(count):
                    p[r] = whole_of_p(p[r], space[FIRST + r])
        return guard

    @part
    def finished(sums: Any, r: Any) -> Any:
        return finish(sums[r], sums[TILE + r], sums[2 * TILE + r], sums[3 * TILE + r], floor, large)

    return groups_loop(TILE, added, finished, unfit, infinite, normal)


def scaled_long(
    cells: Callable[..., Any], finish: Callable[..., Any], scale: Callable[..., Any], dtype: Any
) -> Callable[..., None]:
    """Long rows one of which is scaled first."""
    finish = scalar(finish)
    finished = part(lambda sums, p, q, c: finish(sums[0], sums[1], p, q, c))
    return scaled_long_rows(four_of(cells), SUMS, finished, scale, dtype)


@helper
def _side_by_side(cells: Any, d: Any, out: Any) -> None:
    """The sums of `SIDE` rows, right to about a rounding."""
    both = _two_vectors()
    hi, lo = both[0:SIDE], both[SIDE : 2 * SIDE]
    hi[:] = lo[:] = 0.0
    for k in range(d):
        for j in range(SIDE):
            s, e = _two_sum(hi[j], cells[j * d + k])
            hi[j] = s
            lo[j] += e
    for j in range(SIDE):
        out[j] = hi[j] + lo[j]


@helper
def _alone(cells: Any) -> Any:
    """The same of one row, in the same order."""
    hi = lo = 0.0
    for x in cells:
        hi, e = _two_sum(hi, x)
        lo += e
    return hi + lo


@helper
def sharp_sums(a: Any, start: Any, rows: Any, d: Any, out: Any) -> None:
    """As `fast.sums`, but right to about a rounding: of rows that are read again, alike cells may all round alike."""
    whole = rows // SIDE * SIDE
    for r in range(0, whole, SIDE):
        _side_by_side(a[start + r * d : start + (r + SIDE) * d], d, out[r : r + SIDE])
    for r in range(whole, rows):
        out[r] = _alone(a[start + r * d : start + (r + 1) * d])


def scaled_short(
    cells: Callable[..., Any], finish: Callable[..., Any], scale: Callable[..., Any], unfit: Callable[..., bool],
    *, sharp: bool = False,
) -> Callable[..., None]:  # fmt: skip
    """Short rows one of which is scaled first."""
    top, _, _, _ = constants(np.float64)
    total = sharp_sums if sharp else sums
    cells, finish = scalar(cells), scalar(finish)
    one, two = 2 * BUFFER, 4 * BUFFER  # where the cells lie

    @part
    def flat(view: Any, count: Any, work: Any) -> Any:
        x, y, c = view[0:count], view[BUFFER : BUFFER + count], view[3 * BUFFER : 3 * BUFFER + count]
        first, second = work[one : one + count], work[two : two + count]
        guard = top
        for k in range(count):
            first[k], second[k], check = cells(x[k], y[k], c[k])
            guard = min(guard, check)
        return guard

    @part
    def added(view: Any, count: Any, d: Any, space: Any) -> None:
        total(view, np.int64(one), count, d, space[0:TILE])
        sums(view, np.int64(two), count, d, space[TILE : 2 * TILE])

    finished = part(lambda sums, r, p, q, c: finish(sums[r], sums[TILE + r], p, q, c))
    return scaled_short_rows(flat, total, added, finished, scale, unfit)
