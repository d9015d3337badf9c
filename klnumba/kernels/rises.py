"""Derivatives of KL and cross-entropy by q of most rows, in as few operations as they take.

By a cell of q it is (1 - p/q)/Q of the normalised rows; by a logit it is q - p, the difference of two shares, right to
a few roundings of the larger one. So rows are flagged, for the loops of `kernels.slopes` and `kernels.log_slopes`,
whose differences are small beside what they are differences of. Cells whose sums are nearly equal need not be large:
of them the difference is formed first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas import slopes
from klnumba.formulas.finish import middling
from klnumba.formulas.logit_cells import power
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.fast import sums
from klnumba.kernels.instructions import frozen
from klnumba.kernels.lane_sums import LANES, add_four, low, row_loop, together
from klnumba.kernels.logs import top_of, tops_of
from klnumba.kernels.tiles import BUFFER, SMALL, SPARE, STEP, TILE, add, fill, pad, side_by_side, total

ALIKE = 2.0**-16  # sums are nearly equal that differ by this part,
SEEN = 4.0  # which may be so many times the largest derivative
# How small the largest difference may be beside the largest share: float32 results hold more, computed in float64.
LEAST = {np.dtype(np.float64): 2.0**-3, np.dtype(np.float32): 2.0**-22}

LOW, LIFT = 2.0**-960, 2.0**100  # a cell below the one, times the other, is a normal number

KEPT = 1 << 17  # cells of a row whose powers are kept, at most: even from memory they come sooner than from a formula

_power, _middling, times = scalar(power), scalar(middling), scalar(slopes.times)


@part
def shows(value: Any, least: Any) -> Any:
    """Whether a derivative is so large that the errors do not show; an infinite one says nothing of the others."""
    return least <= abs(value) < math.inf


@part
def differences(xs: Any, ys: Any, gaps: Any) -> None:
    """The differences of cells, NaN where one is negative."""
    for k in range(xs.size):
        gap = xs[k] - ys[k]
        gaps[k] = math.nan if xs[k] < 0.0 or ys[k] < 0.0 else gap


@part
def rise(x: Any, y: Any, ratio: Any, c: Any) -> Any:
    """1 - p/q times what `terms` says; 0 where both are zero."""
    lift = LIFT if y < LOW else 1.0  # of numbers near the smallest a product loses digits
    value = c - (x * lift * ratio - y * lift) / (y * lift)  # y*c might be too small for a float
    return (0.0 if x == 0.0 else -math.inf) if y == 0.0 else value


@part
def terms(p: Any, q: Any, gap: Any, least: Any) -> Any:
    """(ratio, c) of `rise`, the sum that its values are to be divided by, and how large one must be.

    Of sums that are nearly equal the difference says more than the ratio.
    """
    c = gap / q
    if abs(gap) <= ALIKE * q:
        return 1.0, c, p, abs(c) / SEEN
    return q / p, 0.0, q, least


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


@part
def four_of_rises(
    x0: Any, x1: Any, x2: Any, x3: Any, y0: Any, y1: Any, y2: Any, y3: Any, c: Any, out: Any, k: Any
) -> Any:  # fmt: skip
    """What is added up of four cells: p, q and p - q; 0 where one is negative."""
    out[k], out[LANES + k] = add_four(x0, x1, x2, x3), add_four(y0, y1, y2, y3)
    out[2 * LANES + k] = add_four(x0 - y0, x1 - y1, x2 - y2, x3 - y3)
    least = min(min(min(x0, x1), min(x2, x3)), min(min(y0, y1), min(y2, y3)))
    return np.int64(0) if least < 0.0 else np.int64(1)


@helper
def rises_of(xs: Any, ys: Any, ratio: Any, c: Any, factor: Any, least: Any, out: Any) -> Any:
    """The derivatives of the cells of a row; whether one is at least so large before it is multiplied."""
    seen = 0
    for k in range(xs.size):
        value = rise(np.float64(xs[k]), np.float64(ys[k]), ratio, c)
        out[k] = times(factor, value)
        seen |= 1 if shows(value, least) else 0
    return seen != 0


def long_rows(kind: Any) -> Callable[..., None]:
    """Rows of cells."""
    row, least = row_loop(four_of_rises, 3, kind, np.float64, np.int64(1)), LEAST[kind]
    lows = low(3)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, rows: Any, d: Any, factors: Any, out: Any, flag: Any,
        work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        for r in range(rows):
            guard = row(p, a + r * ps, q, b + r * qs, d, 1.0, work, view, space, 0)
            together(3 * LANES, lows, space)
            p_sum, q_sum, gap = space[0] + space[lows], space[1] + space[lows + 1], space[2] + space[lows + 2]
            flag[r] = guard == 0 or not _middling(p_sum, q_sum)
            if flag[r]:
                continue
            ratio, c, part, enough = terms(p_sum, q_sum, gap, least)
            xs, ys, start = p[a + r * ps : a + r * ps + d], q[b + r * qs : b + r * qs + d], r * d
            flag[r] = not rises_of(xs, ys, ratio, c, factors[r] / part, enough, out[start : start + d])

    return loop


def short_rows(kind: Any) -> Callable[..., None]:
    """Rows of a few cells, many at a time."""
    least = LEAST[kind]

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, rows: Any, d: Any, factors: Any, out: Any, flag: Any,
        work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        most = TILE // d
        for begin in range(0, rows, most):
            count = min(most, rows - begin)
            cells, at = count * d, begin * d
            side_by_side(p, a + begin * ps, ps, count, d, work, 0)
            side_by_side(q, b + begin * qs, qs, count, d, work, BUFFER)
            xs, ys = view[0:cells], view[BUFFER : BUFFER + cells]
            us, cs = work[2 * BUFFER : 2 * BUFFER + cells], work[3 * BUFFER : 3 * BUFFER + cells]
            fs, place = work[4 * BUFFER : 4 * BUFFER + cells], out[at : at + cells]
            ratios, enough = space[3 * TILE : 4 * TILE], space[4 * TILE : 5 * TILE]
            differences(xs, ys, us)
            for k in range(3):
                sums(view, k * BUFFER, count, d, space[k * TILE : (k + 1) * TILE])
            for r in range(count):
                p_sum, q_sum, gap = space[r], space[TILE + r], space[2 * TILE + r]
                flag[begin + r] = gap != gap or not _middling(p_sum, q_sum)
                ratio, c, part, enough[r] = terms(p_sum, q_sum, gap, least)
                fill(ratios, r * d, d, ratio)
                fill(work, 3 * BUFFER + r * d, d, c)
                fill(work, 4 * BUFFER + r * d, d, factors[begin + r] / part)
            for k in range(cells):
                us[k] = rise(xs[k], ys[k], ratios[k], cs[k])
                place[k] = times(fs[k], us[k])
            for r in range(count):
                flag[begin + r] |= not is_seen(us[r * d : (r + 1) * d], enough[r])

    return loop


@helper
def is_seen(cells: Any, least: Any) -> Any:
    """Whether one cell is at least so large."""
    k = 0
    while k < cells.size and not shows(cells[k], least):
        k += 1
    return k < cells.size


@part
def is_finite(x: Any, y: Any) -> Any:
    return abs(x) < math.inf and abs(y) < math.inf


@helper
def powers_of(cells: Any, top: Any, inverse: Any, out: Any) -> None:
    """The exponentials of a multiple of `SMALL` cells, less the largest in the row."""
    for k in range(cells.size):
        out[k] = _power((np.float64(cells[k]) - top) * inverse)


@part
def powers_from(
    source: Any, start: Any, count: Any, top: Any, inverse: Any, out: Any, at: Any, work: Any, view: Any
) -> Any:  # fmt: skip
    """Those of `count` cells from `start` on; the padded number of cells."""
    whole = count // STEP * STEP
    powers_of(source[start : start + whole], top, inverse, out[at : at + whole])
    if whole == count:
        return whole
    more = pad(source, start + whole, count - whole, work, np.int64(0), -np.inf)
    powers_of(view[0:more], top, inverse, out[at + whole : at + whole + more])
    return whole + more


@helper
def shares_apart(us: Any, vs: Any, one: Any, other: Any, factor: Any, least: Any, out: Any) -> Any:
    """The differences of shares, times a factor; whether one is at least so large before that."""
    seen = 0
    for k in range(out.size):
        value = vs[k] * other - us[k] * one
        out[k] = times(factor, value)
        seen |= 1 if shows(value, least) else 0
    return seen != 0


def long_log_rows(kind: Any) -> Callable[..., None]:
    """Rows of logarithms, normalised. The powers of up to `KEPT` cells are there when the sums are known."""
    least = LEAST[kind]

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, rows: Any, d: Any, factors: Any, inverse: Any, out: Any,
        flag: Any, powers: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        state, spare = space[0:4], space[16 : 16 + SPARE]
        kept, half = frozen(powers), powers.size // 2
        size = d if d <= KEPT else TILE
        for r in range(rows):
            mp, mq = top_of(p, a + r * ps, d, spare), top_of(q, b + r * qs, d, spare)
            flag[r] = True
            if not is_finite(mp, mq):
                continue
            for k in range(4):
                state[k] = 0.0
            one, other, seen = 1.0, 1.0, False
            for turn in range(2):
                for first in range(0, d, size):
                    cells, at = min(size, d - first), r * d + first
                    if turn == 0 or d > KEPT:
                        powers_from(q, b + r * qs + first, cells, mq, inverse, powers, half, work, view)
                        whole = powers_from(p, a + r * ps + first, cells, mp, inverse, powers, 0, work, view)
                    if turn == 0:
                        for begin in range(0, whole, TILE):
                            count = min(TILE, whole - begin)
                            add(state, np.int64(0), total(kept, begin, count))
                            add(state, np.int64(2), total(kept, half + begin, count))
                    else:
                        bar = least * max(one, other)
                        us, vs = kept[0:cells], kept[half : half + cells]
                        seen |= shares_apart(us, vs, one, other, factors[r] * inverse, bar, out[at : at + cells])
                one, other = 1.0 / (state[0] + state[1]), 1.0 / (state[2] + state[3])
            flag[r] = not seen

    return loop


@part
def beside_tops(
    p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, count: Any, d: Any, work: Any, view: Any, space: Any
) -> Any:  # fmt: skip
    """Put short rows of logarithms side by side and the largest cell of its row beside each; the padded count.

    They are in the first two buffers of `work` and of `space`. Behind the cells, and there in the next two of `space`,
    are numbers that do no harm.
    """
    tops = space[8 * TILE : 9 * TILE]
    whole = (count * d + STEP - 1) // STEP * STEP
    side_by_side(p, a, ps, count, d, work, 0)
    side_by_side(q, b, qs, count, d, work, BUFFER)
    for k in range(4):
        fill(space, k * BUFFER + count * d, whole - count * d, 1.0)
    for k in range(2):
        fill(work, k * BUFFER + count * d, whole - count * d, 0.0)
        tops_of(view, k * BUFFER, count, d, tops)
        for r in range(count):
            fill(space, k * BUFFER + r * d, d, tops[r])
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
            ds, place = work[4 * BUFFER : 4 * BUFFER + whole], out[begin * d : (begin + count) * d]
            for k in range(whole):
                us[k] = _power((xs[k] - tops_p[k]) * inverse)
                vs[k] = _power((ys[k] - tops_q[k]) * inverse)
            for k in range(2):
                found = space[4 * BUFFER + k * TILE : 4 * BUFFER + (k + 1) * TILE]
                sums(view, (2 + k) * BUFFER, count, d, found)
                for r in range(count):
                    fill(space, (2 + k) * BUFFER + r * d, d, 1.0 / found[r])
            for r in range(count):
                flag[begin + r] = not is_finite(tops_p[r * d], tops_q[r * d])
                fill(space, r * d, d, factors[begin + r] * inverse)
            for k in range(whole):
                ds[k] = vs[k] * parts_q[k] - us[k] * parts_p[k]
            for k in range(place.size):
                place[k] = times(tops_p[k], ds[k])
            for r in range(count):
                at = r * d
                flag[begin + r] |= not is_seen(ds[at : at + d], least * max(parts_p[at], parts_q[at]))

    return loop
