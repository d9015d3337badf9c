"""KL of normalised rows in one read: the loop behind nearly every row.

A row whose sums say that digits would be lost (`kl_finish`), or that holds a
cell that `kl_cell` does not serve, is flagged and left to `kernels.exact`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.divergences import kl_unfit
from klnumba.kernels.compiler import helper, scalar
from klnumba.kernels.tiles import BUFFER, STEP, TILE, TREE, add, copy, fill, pad, total, vector_sum

SHORT = 256  # rows shorter than this are computed many at a time


def constants(dtype: Any) -> tuple[Any, Any, float, float]:
    """(an integer above every guard, the least guard that holds, `floor` and `large` of `kl_finish`)."""
    if dtype == np.float64:
        return np.int64(np.iinfo(np.int64).max), np.int64(1 << 52), 2.0**-46, 2.0**900
    return np.int32(np.iinfo(np.int32).max), np.int32(1 << 23), 2.0**-18, 2.0**120


def flat_loop(cell: Callable[..., Any], top: Any) -> Any:
    cell = scalar(cell)

    @helper
    def flat(p: Any, a: Any, q: Any, b: Any, count: Any, out: Any) -> Any:
        """The cells of a tile, and the least guard."""
        x = p[a : a + count]
        y = q[b : b + count]
        guard = top
        for k in range(count):
            out[k], check = cell(x[k], y[k])
            guard = min(guard, check)
        return guard

    return flat


def long_rows(cell: Callable[..., Any], finish: Callable[..., Any], dtype: Any) -> Callable[..., None]:
    """Rows of at least `SHORT` cells. `p` starts at `a` and steps by `ps` a row; so does `q`."""
    top, normal, floor, large = constants(dtype)
    piece = _piece(cell, top)
    finish = scalar(finish)

    def rows(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any, out: Any, flag: Any, work: Any, view: Any
    ) -> None:
        state = np.empty(7, np.float64)
        tree = np.empty(TREE, np.float64)
        for r in range(n):
            guard = piece(p, a + r * ps, q, b + r * qs, d, work, view, tree, state)
            value = finish(state[0] + state[1], state[2] + state[3], state[4] + state[5], floor, large)
            out[r] = value
            flag[r] = guard < normal or not value >= 0.0

    return rows


def pieces(cell: Callable[..., Any], dtype: Any) -> Callable[..., None]:
    """Pieces of one long row: a state of sums for each, and whether its guard held."""
    top, normal, _, _ = constants(dtype)
    piece = _piece(cell, top)

    def loop(p: Any, a: Any, q: Any, b: Any, starts: Any, stops: Any, states: Any, work: Any, view: Any) -> None:
        tree = np.empty(TREE, np.float64)
        for i in range(starts.size):
            state = states[i]
            d = stops[i] - starts[i]
            state[6] = piece(p, a + starts[i], q, b + starts[i], d, work, view, tree, state) >= normal

    return loop


def _piece(cell: Callable[..., Any], top: Any) -> Any:
    flat = flat_loop(cell, top)

    @helper
    def piece(p: Any, a: Any, q: Any, b: Any, d: Any, work: Any, view: Any, tree: Any, state: Any) -> Any:
        """The sums of the cells, of p and of q, each in double-double; returns the least guard."""
        for k in range(6):
            state[k] = 0.0
        guard = top
        for start in range(0, d, TILE):
            count = min(TILE, d - start)
            x, o, y, u = p, a + start, q, b + start
            if count < TILE:
                pad(q, u, count, work, np.int64(BUFFER), 0.0)
                count = pad(p, o, count, work, np.int64(0), 0.0)
                x, o, y, u = view, np.int64(0), view, np.int64(BUFFER)
            guard = min(guard, flat(x, o, y, u, count, work[2 * BUFFER : 3 * BUFFER]))
            add(state, np.int64(0), total(view, np.int64(2 * BUFFER), count, tree))
            add(state, np.int64(2), total(x, o, count, tree))
            add(state, np.int64(4), total(y, u, count, tree))
        return guard

    return piece


@helper
def sums(a: Any, start: Any, rows: Any, d: Any, out: Any) -> None:
    """The sums of `rows` adjacent rows of `d` < SHORT cells in float64, each in an order that depends on d alone."""
    cells = a[start : start + rows * d]
    if d == 2:
        for r in range(rows):
            out[r] = np.float64(cells[2 * r]) + np.float64(cells[2 * r + 1])
    elif d == 3:
        for r in range(rows):
            out[r] = np.float64(cells[3 * r]) + np.float64(cells[3 * r + 1]) + np.float64(cells[3 * r + 2])
    else:
        for r in range(rows):
            out[r] = vector_sum(cells[r * d : r * d + d])


def short_rows(cell: Callable[..., Any], finish: Callable[..., Any], dtype: Any) -> Callable[..., None]:
    """Rows of fewer than `SHORT` cells: one flat pass over many rows, then the sums of each.

    The guard is taken over the whole group; where it fails, each row of the
    group is looked at alone, so that no row's answer depends on its neighbours.
    """
    top, normal, floor, large = constants(dtype)
    flat = flat_loop(cell, top)
    finish, unfit = scalar(finish), scalar(kl_unfit)
    least = float(np.finfo(dtype).tiny)

    def rows(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any, out: Any, flag: Any, work: Any, view: Any
    ) -> None:
        most = TILE // d
        gs = np.empty(most, np.float64)
        xs = np.empty(most, np.float64)
        ys = np.empty(most, np.float64)
        for first in range(0, n, most):
            count = min(most, n - first)
            x, o, y, u = p, a + first * ps, q, b + first * qs
            cells = count * d
            whole = (cells + STEP - 1) // STEP * STEP
            adjacent = (ps == d or count == 1) and (qs == d or count == 1)
            if not adjacent or o + whole > p.size or u + whole > q.size:
                for r in range(count):
                    copy(p, o + r * ps, d, work, r * d)
                    copy(q, u + r * qs, d, work, BUFFER + r * d)
                for k in range(cells, whole):
                    work[k] = 0.0
                    work[BUFFER + k] = 0.0
                x, o, y, u = view, np.int64(0), view, np.int64(BUFFER)
            guard = flat(x, o, y, u, whole, work[2 * BUFFER : 3 * BUFFER])
            sums(view, np.int64(2 * BUFFER), count, d, gs)
            sums(x, o, count, d, xs)
            sums(y, u, count, d, ys)
            values = out[first : first + count]
            marks = flag[first : first + count]
            for r in range(count):
                values[r] = finish(gs[r], xs[r], ys[r], floor, large)
            for r in range(count):
                marks[r] = not values[r] >= 0.0
            if guard < normal:
                for k in range(cells):
                    if unfit(x[o + k], y[u + k], least):
                        flag[first + k // d] = 1

    return rows


def scaled_rows(cell: Callable[..., Any], finish: Callable[..., Any]) -> Callable[..., None]:
    """The rows in `index`, whose sums differ, brought to a common mass first; in float64 throughout."""
    top, normal, _, _ = constants(np.float64)
    cell, finish, unfit = scalar(cell), scalar(finish), scalar(kl_unfit)
    least = float(np.finfo(np.float64).tiny)

    @helper
    def flat(view: Any, count: Any, out: Any) -> Any:
        """The cells of a tile in the buffers: p, q and, in the fourth, c."""
        x = view[0:count]
        y = view[BUFFER : BUFFER + count]
        c = view[3 * BUFFER : 3 * BUFFER + count]
        guard = top
        for k in range(count):
            out[k], check = cell(x[k], y[k], c[k])
            guard = min(guard, check)
        return guard

    @helper
    def several(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any, out: Any, flag: Any, work: Any, view: Any
    ) -> None:
        most = TILE // d
        gs = np.empty(most, np.float64)
        xs = np.empty(most, np.float64)
        ys = np.empty(most, np.float64)
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

    def rows(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any, out: Any, flag: Any, work: Any, view: Any
    ) -> None:
        if d <= TILE:
            several(p, a, ps, q, b, qs, index, d, out, flag, work, view)
            return
        state = np.empty(6, np.float64)
        tree = np.empty(TREE, np.float64)
        for r in index:
            for k in range(6):
                state[k] = 0.0
            for start in range(0, d, TILE):
                count = min(TILE, d - start)
                pad(q, b + r * qs + start, count, work, np.int64(BUFFER), 0.0)
                count = pad(p, a + r * ps + start, count, work, np.int64(0), 0.0)
                add(state, np.int64(2), total(view, np.int64(0), count, tree))
                add(state, np.int64(4), total(view, np.int64(BUFFER), count, tree))
            mass, other = state[2] + state[3], state[4] + state[5]
            fill(work, np.int64(3 * BUFFER), np.int64(TILE), mass / other)
            guard = top
            for start in range(0, d, TILE):
                count = min(TILE, d - start)
                pad(q, b + r * qs + start, count, work, np.int64(BUFFER), 0.0)
                count = pad(p, a + r * ps + start, count, work, np.int64(0), 0.0)
                guard = min(guard, flat(view, count, work[2 * BUFFER : 3 * BUFFER]))
                add(state, np.int64(0), total(view, np.int64(2 * BUFFER), count, tree))
            value = finish(state[0] + state[1], mass, other, mass / other)
            out[r] = value
            flag[r] = guard < normal or not value >= 0.0

    return rows
