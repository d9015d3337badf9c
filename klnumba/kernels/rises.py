"""Derivatives of KL and cross-entropy by q of most rows, in as few operations as they take.

By a cell of q it is (1 - p/q)/Q of the normalised rows, from the difference of
the cells and of the sums; by a logit it is q - p, the difference of two shares,
right to a few roundings of the larger one. So rows are flagged, for the loops of
`kernels.slopes` and `kernels.log_slopes`, whose sums differ by much, also beside
the derivatives, or whose differences are small beside the shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.finish import middling
from klnumba.formulas.logit_cells import power
from klnumba.kernels.compiler import frozen, part, scalar
from klnumba.kernels.fast import sums
from klnumba.kernels.logs import top_of
from klnumba.kernels.slopes import write
from klnumba.kernels.tiles import BUFFER, SMALL, STEP, TILE, TREE, add, fill, pad, padded, side_by_side, total

ALIKE = 2.0**-16  # the part of the sums by which they may differ,
SEEN = 4.0  # and how many times that of the largest derivative it may be
# How small the largest difference may be beside the largest share: float32 results hold more, computed in float64.
LEAST = {np.dtype(np.float64): 2.0**-3, np.dtype(np.float32): 2.0**-22}

KEPT = 4096  # cells of a row whose powers are kept
PLACE = KEPT + STEP
ROOM = 2 * PLACE

_power, _middling = scalar(power), scalar(middling)


@part
def differences(xs: Any, ys: Any, gaps: Any, below: Any) -> None:
    """The differences of cells, and where one is negative."""
    for k in range(xs.size):
        gaps[k] = xs[k] - ys[k]
        below[k] = 1.0 if xs[k] < 0.0 or ys[k] < 0.0 else 0.0


@part
def rise(x: Any, y: Any, c: Any) -> Any:
    """1 - p/q times P/Q, given c = (P - Q)/Q; 0 where both are zero."""
    value = c - (x - y) / y  # y*c might be too small for a float
    return (0.0 if x == 0.0 else -math.inf) if y == 0.0 else value


@part
def is_plain(p: Any, q: Any, gap: Any, below: Any) -> Any:
    """Whether the sums of two rows, of their differences and of the marks of negative cells call for no more care."""
    return _middling(p, q) and below == 0.0 and abs(gap) <= ALIKE * q


@part
def largest(cells: Any, lanes: Any, before: Any) -> Any:
    """The largest size of cells, of which there is a multiple of `SMALL`, or `before` if that is larger."""
    fill(lanes, 0, SMALL, before)
    for first in range(0, cells.size, SMALL):
        x = cells[first : first + SMALL]
        for k in range(SMALL):
            lanes[k] = abs(x[k]) if abs(x[k]) > lanes[k] else lanes[k]
    for k in range(1, SMALL):
        lanes[0] = max(lanes[0], lanes[k])
    return lanes[0]


@part
def largest_of_few(cells: Any) -> Any:
    """The same of a short row."""
    found = 0.0
    for k in range(cells.size):
        found = abs(cells[k]) if abs(cells[k]) > found else found
    return found


def long_rows() -> Callable[..., None]:
    """Rows of cells."""

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, rows: Any, d: Any, factors: Any, out: Any, flag: Any,
        work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        state, tree, lanes = space[0:8], space[16 : 16 + TREE], space[16 + TREE : 16 + TREE + SMALL]
        for r in range(rows):
            for k in range(8):
                state[k] = 0.0
            for first in range(0, d, TILE):
                size = min(TILE, d - first)
                pad(q, b + r * qs + first, size, work, np.int64(BUFFER), 0.0)
                count = pad(p, a + r * ps + first, size, work, np.int64(0), 0.0)
                differences(
                    view[0:count], view[BUFFER : BUFFER + count], work[2 * BUFFER : 2 * BUFFER + count],
                    work[3 * BUFFER : 3 * BUFFER + count],
                )  # fmt: skip
                for k in range(4):
                    add(state, 2 * k, total(view, k * BUFFER, count, tree))
            p_sum, q_sum, gap = state[0] + state[1], state[2] + state[3], state[4] + state[5]
            flag[r] = not is_plain(p_sum, q_sum, gap, state[6])
            if flag[r]:
                continue
            c, top = gap / q_sum, 0.0
            for first in range(0, d, TILE):
                size = min(TILE, d - first)
                pad(q, b + r * qs + first, size, work, np.int64(BUFFER), 0.0)
                count = pad(p, a + r * ps + first, size, work, np.int64(0), 0.0)
                xs, ys = view[0:count], view[BUFFER : BUFFER + count]
                us = work[2 * BUFFER : 2 * BUFFER + count]
                for k in range(count):
                    us[k] = rise(xs[k], ys[k], c)
                top = largest(view[2 * BUFFER : 2 * BUFFER + count], lanes, top)
                write(view, np.int64(2 * BUFFER), size, factors[r] / p_sum, out, r * d + first)
            flag[r] = abs(c) > SEEN * top

    return loop


def short_rows() -> Callable[..., None]:
    """Rows of a few cells, many at a time."""

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, rows: Any, d: Any, factors: Any, out: Any, flag: Any,
        work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        most = TILE // d
        for begin in range(0, rows, most):
            count = min(most, rows - begin)
            whole = (count * d + STEP - 1) // STEP * STEP
            side_by_side(p, a + begin * ps, ps, count, d, work, 0)
            side_by_side(q, b + begin * qs, qs, count, d, work, BUFFER)
            for k in range(2):
                fill(work, k * BUFFER + count * d, whole - count * d, 1.0)
            xs, ys = view[0:whole], view[BUFFER : BUFFER + whole]
            us, below = work[2 * BUFFER : 2 * BUFFER + whole], work[3 * BUFFER : 3 * BUFFER + whole]
            differences(xs, ys, us, below)
            for k in range(4):
                sums(view, k * BUFFER, count, d, space[k * TILE : (k + 1) * TILE])
            cs = work[4 * BUFFER : 4 * BUFFER + whole]
            for r in range(count):
                gap, q_sum = space[2 * TILE + r], space[TILE + r]
                flag[begin + r] = not is_plain(space[r], q_sum, gap, space[3 * TILE + r])
                fill(work, 4 * BUFFER + r * d, d, gap / q_sum)
            for k in range(whole):
                us[k] = rise(xs[k], ys[k], cs[k])
            for r in range(count):
                at, factor = 2 * BUFFER + r * d, factors[begin + r] / space[r]
                flag[begin + r] |= abs(work[4 * BUFFER + r * d]) > SEEN * largest_of_few(view[at : at + d])
                write(view, at, d, factor, out, (begin + r) * d)

    return loop


@part
def is_finite(x: Any, y: Any) -> Any:
    return abs(x) < math.inf and abs(y) < math.inf


def long_log_rows(kind: Any) -> Callable[..., None]:
    """Rows of logarithms, normalised. The powers of up to `KEPT` cells are in the cache when the sums are known."""
    least = LEAST[kind]

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, rows: Any, d: Any, factors: Any, inverse: Any, out: Any,
        flag: Any, powers: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        state, tree, lanes = space[0:4], space[16 : 16 + TREE], space[16 + TREE : 16 + TREE + SMALL]
        kept = frozen(powers)
        for r in range(rows):
            mp, mq = top_of(p, a + r * ps, d, tree), top_of(q, b + r * qs, d, tree)
            flag[r] = True
            if not is_finite(mp, mq):
                continue
            for k in range(4):
                state[k] = 0.0
            one, other, top = 1.0, 1.0, 0.0
            for turn in range(2):
                for first in range(0, d, TILE):
                    size, at = min(TILE, d - first), first if d <= KEPT else 0
                    count = padded(size)
                    us, vs = powers[at : at + count], powers[PLACE + at : PLACE + at + count]
                    if turn == 0 or d > KEPT:
                        pad(q, b + r * qs + first, size, work, np.int64(BUFFER), -np.inf)
                        pad(p, a + r * ps + first, size, work, np.int64(0), -np.inf)
                        xs, ys = view[0:count], view[BUFFER : BUFFER + count]
                        for k in range(count):
                            us[k] = _power((xs[k] - mp) * inverse)
                            vs[k] = _power((ys[k] - mq) * inverse)
                    if turn == 0:
                        add(state, np.int64(0), total(kept, at, count, tree))
                        add(state, np.int64(2), total(kept, PLACE + at, count, tree))
                    else:
                        ds = work[4 * BUFFER : 4 * BUFFER + count]
                        for k in range(count):
                            ds[k] = vs[k] * other - us[k] * one
                        top = largest(view[4 * BUFFER : 4 * BUFFER + count], lanes, top)
                        write(view, np.int64(4 * BUFFER), size, factors[r] * inverse, out, r * d + first)
                one, other = 1.0 / (state[0] + state[1]), 1.0 / (state[2] + state[3])
            flag[r] = not top >= least * max(one, other)

    return loop


@part
def beside_tops(
    p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, count: Any, d: Any, work: Any, view: Any, space: Any
) -> Any:  # fmt: skip
    """Put short rows of logarithms side by side and the largest cell of its row beside each; the padded count.

    They are in the first two buffers of `work` and of `space`. In the next two of `space`, and behind the cells, are
    numbers that do no harm.
    """
    tree = space[8 * TILE : 8 * TILE + TREE]
    whole = (count * d + STEP - 1) // STEP * STEP
    side_by_side(p, a, ps, count, d, work, 0)
    side_by_side(q, b, qs, count, d, work, BUFFER)
    for k in range(2):
        fill(work, k * BUFFER + count * d, whole - count * d, 0.0)
    fill(space, 0, 4 * BUFFER, 1.0)
    for r in range(count):
        fill(space, r * d, d, top_of(view, r * d, d, tree))
        fill(space, BUFFER + r * d, d, top_of(view, BUFFER + r * d, d, tree))
    return whole


def short_log_rows(kind: Any) -> Callable[..., None]:
    """The same of a few cells, many rows at a time."""
    least = LEAST[kind]

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, rows: Any, d: Any, factors: Any, inverse: Any, out: Any,
        flag: Any, powers: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        most = TILE // d
        for begin in range(0, rows, most):
            count = min(most, rows - begin)
            whole = beside_tops(p, a + begin * ps, ps, q, b + begin * qs, qs, count, d, work, view, space)
            tops_p, tops_q = space[0:whole], space[BUFFER : BUFFER + whole]
            parts_p, parts_q = space[2 * BUFFER : 2 * BUFFER + whole], space[3 * BUFFER : 3 * BUFFER + whole]
            xs, ys = view[0:whole], view[BUFFER : BUFFER + whole]
            us, vs = work[2 * BUFFER : 2 * BUFFER + whole], work[3 * BUFFER : 3 * BUFFER + whole]
            ds = work[4 * BUFFER : 4 * BUFFER + whole]
            for k in range(whole):
                us[k] = _power((xs[k] - tops_p[k]) * inverse)
                vs[k] = _power((ys[k] - tops_q[k]) * inverse)
            for k in range(2):
                found = space[4 * BUFFER + k * TILE : 4 * BUFFER + (k + 1) * TILE]
                sums(view, (2 + k) * BUFFER, count, d, found)
                for r in range(count):
                    fill(space, (2 + k) * BUFFER + r * d, d, 1.0 / found[r])
            for k in range(whole):
                ds[k] = vs[k] * parts_q[k] - us[k] * parts_p[k]
            for r in range(count):
                i, at = begin + r, r * d
                top = largest_of_few(view[4 * BUFFER + at : 4 * BUFFER + at + d])
                sound = is_finite(tops_p[at], tops_q[at])
                flag[i] = not (sound and top >= least * max(parts_p[at], parts_q[at]))
                write(view, 4 * BUFFER + at, d, factors[i] * inverse, out, i * d)

    return loop
