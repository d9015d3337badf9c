"""Derivatives of a divergence by the cells of most rows, from their shares in a few reads.

The formulas are those of `kernels.slopes`, of the cells divided by the sums of their rows. What normalising subtracts
is the mean of the derivatives. So rows are flagged, for the loops that take more care, whose derivatives are small
beside `Slope.unit` and the mean, of which both have errors, or whose value is infinite or none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas import elementary
from klnumba.formulas.divergences import log_ratio
from klnumba.formulas.finish import middling
from klnumba.formulas.logit_cells import power
from klnumba.formulas.slopes import Slope, times
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.fast import sums
from klnumba.kernels.instructions import frozen
from klnumba.kernels.lane_sums import LANES, low, row_loop, together
from klnumba.kernels.logs import top_of
from klnumba.kernels.rises import KEPT, LEAST, beside_tops, four_of_rises, is_finite, is_seen, powers_from, shows
from klnumba.kernels.tiles import BUFFER, SPACE, SPARE, STEP, TILE, add, fill, side_by_side, total

TINY = float(np.finfo(np.float64).tiny)  # shares below it, but zeros, have lost digits
# Where the products of the cells of a tile lie in `space`, and of several rows the sums of shares and the means.
PS, QS, SUMS, MEANS = TILE, TILE + BUFFER, TILE + 2 * BUFFER, 3 * TILE + 2 * BUFFER
assert MEANS + 2 * TILE <= SPACE

_log, _log_ratio, _middling, _power, _times = map(scalar, (elementary.log, log_ratio, middling, power, times))


def room_of_shares(d: int) -> int:
    """How many numbers `kept` has for rows of `d` cells: shares and derivatives, of p and q."""
    return 4 * (max(TILE, min(d, KEPT)) + STEP)


def terms_of(slope: Slope, logs: bool) -> Any:
    formula = scalar(slope.normalised)

    @part
    def terms(a: Any, b: Any, weight: Any) -> Any:
        """Of two shares: the derivatives by p and by q, by logarithms or cells, and what they add to the means."""
        gap = a - b
        delta = _log_ratio(a, b, gap)
        rise_p, rise_q, share_q = (gap, -gap, a) if logs else (gap / a, -gap / b, a / b)
        u, above_p, v, above_q = formula(
            a, b, delta, delta, -_log(a), -_log(b), rise_p, rise_q, share_q, 1.0, gap, 1.0, -gap, weight
        )  # fmt: skip
        if logs:
            by_p, by_q = _times(a, u) + above_p, _times(b, v) + above_q
            return by_p, by_q, by_p, by_q
        by_p, by_q = u + above_p, v + above_q
        return by_p, by_q, _times(a, by_p), _times(b, by_q)

    return terms


def flat_of(slope: Slope, logs: bool) -> Any:
    terms, two = terms_of(slope, logs), all(slope.centred)

    @helper
    def flat(xs: Any, ys: Any, weight: Any, us: Any, vs: Any, ps: Any, qs: Any) -> None:
        """The terms of shares; those of q where they have a mean."""
        for k in range(xs.size):
            by_p, by_q, mean_p, mean_q = terms(xs[k], ys[k], weight)
            us[k], ps[k] = by_p, mean_p
            if two:
                vs[k], qs[k] = by_q, mean_q

    return flat


def deviation_of(logs: bool) -> Any:
    @part
    def deviation(u: Any, share: Any, other: Any, mean: Any) -> Any:
        """A derivative less its part of the mean; 0 by a cell where both shares are."""
        if logs:
            return u - share * mean
        value = u - mean
        return 0.0 if share == 0.0 and other == 0.0 else value

    return deviation


def deviations_of(logs: bool) -> Any:
    deviation = deviation_of(logs)

    @helper
    def deviations(us: Any, shares: Any, others: Any, mean: Any, factor: Any, least: Any, out: Any) -> Any:
        """Those of a row, times a factor; whether one is at least so large before that."""
        seen = 0
        for k in range(out.size):
            value = deviation(us[k], shares[k], others[k], mean)
            out[k] = _times(factor, value)
            seen |= 1 if shows(value, least) else 0
        return seen != 0

    return deviations


@part
def bar(mean: Any, share: Any, unit: Any, least: Any) -> Any:
    """How large one derivative must be; `share` is the largest share, or 1 for derivatives by cells."""
    return least * share * (unit + abs(mean))


@helper
def shares_of(cells: Any, one: Any, out: Any) -> Any:
    """Cells times one over their sum; how many of these are too small to be right."""
    lost = 0
    for k in range(cells.size):
        share = np.float64(cells[k]) * one
        out[k] = share
        lost += 1 if cells[k] > 0.0 and share < TINY else 0
    return lost


def long_shares(kind: Any, logs: bool) -> Any:
    """A piece that writes the shares of a row of up to `KEPT` cells, and zeros behind them.

    It returns their padded number, 0 for a row that is left to others, and one over the sums of p and of q.
    """
    row, lows = row_loop(four_of_rises, 3, kind, np.float64, np.int64(1)), low(3)

    @part
    def of_cells(
        p: Any, a: Any, q: Any, b: Any, d: Any, inverse: Any, shares: Any, half: Any, work: Any, view: Any, space: Any
    ) -> Any:  # fmt: skip
        guard = row(p, a, q, b, d, 1.0, work, view, space, 0)
        together(3 * LANES, lows, space)
        p_sum, q_sum = space[0] + space[lows], space[1] + space[lows + 1]
        if guard == 0 or not _middling(p_sum, q_sum):
            return 0, 0.0, 0.0
        whole = (d + STEP - 1) // STEP * STEP
        one, other = 1.0 / p_sum, 1.0 / q_sum
        lost = shares_of(p[a : a + d], one, shares[0:d]) + shares_of(q[b : b + d], other, shares[half : half + d])
        if lost > 0:
            return 0, 0.0, 0.0
        fill(shares, d, whole - d, 0.0)
        fill(shares, half + d, whole - d, 0.0)
        return whole, one, other

    @part
    def of_logs(
        p: Any, a: Any, q: Any, b: Any, d: Any, inverse: Any, shares: Any, half: Any, work: Any, view: Any, space: Any
    ) -> Any:  # fmt: skip
        state, spare, kept = space[0:4], space[16 : 16 + SPARE], frozen(shares)
        mp, mq = top_of(p, a, d, spare), top_of(q, b, d, spare)
        if not is_finite(mp, mq):
            return 0, 0.0, 0.0
        powers_from(q, b, d, mq, inverse, shares, half, work, view)
        whole = powers_from(p, a, d, mp, inverse, shares, 0, work, view)
        for k in range(4):
            state[k] = 0.0
        for first in range(0, whole, TILE):
            count = min(TILE, whole - first)
            add(state, np.int64(0), total(kept, first, count))
            add(state, np.int64(2), total(kept, half + first, count))
        one, other = 1.0 / (state[0] + state[1]), 1.0 / (state[2] + state[3])
        xs, ys = kept[0:whole], kept[half : half + whole]
        lost = shares_of(xs, one, shares[0:whole]) + shares_of(ys, other, shares[half : half + whole])
        return 0 if lost > 0 else whole, one, other

    return of_logs if logs else of_cells


def long_rows(slope: Slope, kind: Any, logs: bool) -> Callable[..., None]:
    """Rows of up to `KEPT` cells."""
    written, flat, deviations = long_shares(kind, logs), flat_of(slope, logs), deviations_of(logs)
    least, unit, two = LEAST[kind], slope.unit, all(slope.centred)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, rows: Any, d: Any, factors: Any, weight: Any, inverse: Any,
        by_p: Any, by_q: Any, out_p: Any, out_q: Any, flag: Any, kept: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        quarter, state = kept.size // 4, space[0:4]
        half = 2 * quarter
        shares, made = frozen(kept), frozen(space)
        for r in range(rows):
            whole, one, other = written(
                p, a + r * ps, q, b + r * qs, d, inverse, kept, quarter, work, view, space
            )  # fmt: skip
            flag[r] = True
            if whole == 0:
                continue
            for k in range(4):
                state[k] = 0.0
            for first in range(0, whole, TILE):
                count = min(TILE, whole - first)
                flat(
                    shares[first : first + count], shares[quarter + first : quarter + first + count], weight,
                    kept[half + first :], kept[half + quarter + first :], space[PS:], space[QS:],
                )  # fmt: skip
                add(state, np.int64(0), total(made, np.int64(PS), count))
                if two:
                    add(state, np.int64(2), total(made, np.int64(QS), count))
            mean_p, mean_q = state[0] + state[1], state[2] + state[3]
            if not is_finite(mean_p, mean_q):
                continue
            xs, ys = shares[0:d], shares[quarter : quarter + d]
            us, vs = shares[half : half + d], shares[half + quarter : half + quarter + d]
            left, start = False, r * d
            if by_p:
                factor = factors[r] * (inverse if logs else one)
                enough = bar(mean_p, one if logs else 1.0, unit, least)
                left |= not deviations(us, xs, ys, mean_p, factor, enough, out_p[start : start + d])
            if two and by_q:
                factor = factors[r] * (inverse if logs else other)
                enough = bar(mean_q, other if logs else 1.0, unit, least)
                left |= not deviations(vs, ys, xs, mean_q, factor, enough, out_q[start : start + d])
            flag[r] = left

    return loop


def short_shares(logs: bool) -> Any:
    """A piece that writes the cells or powers of short rows side by side; their padded number. Of some it flags."""

    @part
    def of_cells(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, count: Any, d: Any, inverse: Any, xs: Any, ys: Any,
        flag: Any, work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        cells = count * d
        whole = (cells + STEP - 1) // STEP * STEP
        side_by_side(p, a, ps, count, d, work, 0)
        side_by_side(q, b, qs, count, d, work, BUFFER)
        for k in range(cells):  # a sum with NaN is not usable
            xs[k] = math.nan if view[k] < 0.0 else view[k]
            ys[k] = math.nan if view[BUFFER + k] < 0.0 else view[BUFFER + k]
        for k in range(cells, whole):
            xs[k], ys[k] = 1.0, 1.0
        for r in range(count):
            flag[r] = False
        return whole

    @part
    def of_logs(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, count: Any, d: Any, inverse: Any, xs: Any, ys: Any,
        flag: Any, work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        whole = beside_tops(p, a, ps, q, b, qs, count, d, work, view, space)
        for k in range(whole):
            xs[k] = _power((view[k] - space[k]) * inverse)
            ys[k] = _power((view[BUFFER + k] - space[BUFFER + k]) * inverse)
        for r in range(count):
            flag[r] = not is_finite(space[r * d], space[BUFFER + r * d])
        return whole

    return of_logs if logs else of_cells


def short_rows(slope: Slope, kind: Any, logs: bool) -> Callable[..., None]:
    """Rows of a few cells, many at a time."""
    written, flat, deviation = short_shares(logs), flat_of(slope, logs), deviation_of(logs)
    least, unit, two = LEAST[kind], slope.unit, all(slope.centred)

    @part
    def keep(
        us: Any, shares: Any, others: Any, means: Any, count: Any, d: Any, factors: Any, inverse: Any, parts: Any,
        out: Any, flag: Any, work: Any,
    ) -> None:  # fmt: skip
        """What is left of the derivatives without their means, and the rows that are left to others."""
        cells = count * d
        for r in range(count):
            fill(work, r * d, d, means[r])
            fill(work, BUFFER + r * d, d, factors[r] * (inverse if logs else parts[r * d]))
        for k in range(cells):
            us[k] = deviation(us[k], shares[k], others[k], work[k])
        for k in range(cells):
            out[k] = _times(work[BUFFER + k], us[k])
        for r in range(count):
            enough = bar(means[r], parts[r * d] if logs else 1.0, unit, least)
            flag[r] |= not is_seen(us[r * d : (r + 1) * d], enough)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, rows: Any, d: Any, factors: Any, weight: Any, inverse: Any,
        by_p: Any, by_q: Any, out_p: Any, out_q: Any, flag: Any, kept: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        quarter, shares, made = kept.size // 4, frozen(kept), frozen(space)
        most, half = TILE // d, 2 * quarter
        for begin in range(0, rows, most):
            count = min(most, rows - begin)
            marks, scale = flag[begin : begin + count], factors[begin : begin + count]
            start, stop = begin * d, (begin + count) * d
            xs, ys = kept[0:quarter], kept[quarter:half]
            whole = written(
                p, a + begin * ps, ps, q, b + begin * qs, qs, count, d, inverse, xs, ys, marks, work, view, space
            )  # fmt: skip
            sums(shares, np.int64(0), count, d, space[SUMS : SUMS + TILE])
            sums(shares, quarter, count, d, space[SUMS + TILE : SUMS + 2 * TILE])
            one, other = work[2 * BUFFER : 2 * BUFFER + whole], work[3 * BUFFER : 3 * BUFFER + whole]
            fill(work, 2 * BUFFER + count * d, whole - count * d, 1.0)
            fill(work, 3 * BUFFER + count * d, whole - count * d, 1.0)
            for r in range(count):
                p_sum, q_sum = space[SUMS + r], space[SUMS + TILE + r]
                marks[r] |= not _middling(p_sum, q_sum)
                fill(work, 2 * BUFFER + r * d, d, 1.0 / p_sum)
                fill(work, 3 * BUFFER + r * d, d, 1.0 / q_sum)
            for k in range(whole):
                x, y = xs[k] * one[k], ys[k] * other[k]
                # NaN where one of both shares is too small to be right: so is then the mean
                lost = (xs[k] > 0.0 and x < TINY) or (ys[k] > 0.0 and y < TINY)
                xs[k], ys[k] = (math.nan, math.nan) if lost else (x, y)
            us, vs = kept[half : half + whole], kept[half + quarter : half + quarter + whole]
            flat(shares[0:whole], shares[quarter : quarter + whole], weight, us, vs, space[PS:], space[QS:])
            means_p, means_q = space[MEANS : MEANS + TILE], space[MEANS + TILE : MEANS + 2 * TILE]
            sums(made, np.int64(PS), count, d, means_p)
            for r in range(count):
                marks[r] |= not abs(means_p[r]) < math.inf
            if two:
                sums(made, np.int64(QS), count, d, means_q)
                for r in range(count):
                    marks[r] |= not abs(means_q[r]) < math.inf
            if by_p:
                keep(us, xs, ys, means_p, count, d, scale, inverse, one, out_p[start:stop], marks, work)
            if two and by_q:
                keep(vs, ys, xs, means_q, count, d, scale, inverse, other, out_q[start:stop], marks, work)

    return loop
