"""Rows of weight one into the states of many groups, or of one.

The states of many groups do not fit into the cache beside the rows of a batch. Rows come group by group, what a group
needs is asked for while the rows of the one before are taken in, and sums are kept in registers meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas import exact_integers as integers
from klnumba.kernels.accumulate import FINITE, SPECIALS, SWEPT, column_of, magnitude, plain_row, product, swept
from klnumba.kernels.compiler import helper, prefetch

AHEAD = 32  # rows of the next group that are looked at
MANY = 12  # rows from which on vectors are faster


@helper
def _moved(m: Any, shift: Any) -> Any:
    """What m*2**shift, m below 2**63 and shift below 32, adds to three limbs."""
    low = (m & integers.LIMB_MASK) << shift
    high = (m >> integers.LIMB_BITS) << shift
    first, last = low & integers.LIMB_MASK, high >> integers.LIMB_BITS
    return first, (low >> integers.LIMB_BITS) + (high & integers.LIMB_MASK), last


@helper
def _ask_for(values: Any, labels: Any, first: Any, sums: Any, whole: Any, layout: Any) -> None:
    """Have what the rows of the group that begins at `first` will change brought into the cache."""
    for i in range(first, min(first + AHEAD, labels.size)):
        g, x = labels[i], values[i]
        if g != labels[first] or not 0.0 < abs(x) < math.inf:
            break
        prefetch(whole, g * whole.shape[1] + max(column_of(x, layout), np.int64(0)))
        if i == first:
            _, e = magnitude(x)
            for s in range(2):
                k = (g * 2 + s) * integers.LIMBS + (((1 + s) * e + integers.BIAS) >> 5)
                prefetch(sums, k)
                prefetch(sums, k + 2 + 2 * s)


@helper
def _group_rows(
    values: Any, first: Any, stop: Any, g: Any, thresholds: Any, counts: Any, extremes: Any, sums: Any, whole: Any,
    part: Any, layout: Any,
) -> Any:  # fmt: skip
    """Take in rows of weight one of one group; where the first without an interval is.

    The limbs that rows after one another add to are mostly the same, and go to memory when others come.
    """
    k = square = np.int64(0)
    a = b = c = np.int64(0)
    s = t = u = v = w = np.int64(0)
    i, rows = first, np.int64(0)
    least, most = math.inf, -math.inf
    while i < stop:
        x = values[i]
        if not 0.0 < abs(x) < math.inf:
            plain_row(x, g, thresholds, counts, extremes, sums, whole, part, layout)
            i += 1
            continue
        place = column_of(x, layout)
        if place < 0:
            break
        i += 1
        rows += 1
        least, most = min(least, x), max(most, x)
        for n in range(thresholds.size):
            whole[g, SPECIALS + n] += x > thresholds[n]
        whole[g, place] += 1
        m, e = magnitude(x)
        at = (e + integers.BIAS) >> 5
        if at != k:
            sums[g, 0, k] += a
            sums[g, 0, k + 1] += b
            sums[g, 0, k + 2] += c
            k = at
            a = b = c = np.int64(0)
        sign = np.int64(1) if x > 0.0 else np.int64(-1)
        d0, d1, d2 = _moved(m, (e + integers.BIAS) & 31)
        a += sign * d0
        b += sign * d1
        c += sign * d2
        low, high = product(m, m)
        at = (2 * e + integers.BIAS) >> 5
        if at != square:
            sums[g, 1, square] += s
            sums[g, 1, square + 1] += t
            sums[g, 1, square + 2] += u
            sums[g, 1, square + 3] += v
            sums[g, 1, square + 4] += w
            square = at
            s = t = u = v = w = np.int64(0)
        d0, d1, d2 = _moved(low, (2 * e + integers.BIAS) & 31)
        s += d0
        t += d1
        u += d2
        above = 2 * e + integers.BIAS + 2 * integers.HALF_BITS
        d0, d1, d2 = _moved(high, above & 31)
        if above >> 5 == at + 1:
            t += d0
            u += d1
            v += d2
        else:
            u += d0
            v += d1
            w += d2
    counts[g, FINITE] += rows
    extremes[g, 0], extremes[g, 1] = min(extremes[g, 0], least), max(extremes[g, 1], most)
    sums[g, 0, k] += a
    sums[g, 0, k + 1] += b
    sums[g, 0, k + 2] += c
    sums[g, 1, square] += s
    sums[g, 1, square + 1] += t
    sums[g, 1, square + 2] += u
    sums[g, 1, square + 3] += v
    sums[g, 1, square + 4] += w
    return i


@helper
def _rows_of_group(
    values: Any, first: Any, stop: Any, g: Any, thresholds: Any, counts: Any, extremes: Any, sums: Any, whole: Any,
    part: Any, layout: Any, room: Any,
) -> Any:  # fmt: skip
    """The same, over vectors where the rows are many and of moderate size."""
    for start in range(first, stop, SWEPT):
        end = min(start + SWEPT, stop)
        if end - start >= MANY and swept(
            values[start:end], g, thresholds, counts, extremes, sums, whole, layout, room
        ):  # fmt: skip
            continue
        taken = _group_rows(values, start, end, g, thresholds, counts, extremes, sums, whole, part, layout)
        if taken < end:
            return taken
    return stop


def plain() -> Callable[..., Any]:
    """Rows of weight one. `sums` holds the sums of x and of x**2."""

    def accumulate(
        values: Any, labels: Any, thresholds: Any, counts: Any, extremes: Any, sums: Any, whole: Any, part: Any,
        layout: Any, room: Any,
    ) -> Any:  # fmt: skip
        first = np.int64(0)
        while first < values.size:
            g, stop = np.int64(0), np.int64(values.size)
            if labels.size:
                g, stop = labels[first], first + 1
                while stop < labels.size and labels[stop] == g:
                    stop += 1
                _ask_for(values, labels, stop, sums, whole, layout)
            taken = _rows_of_group(
                values, first, stop, g, thresholds, counts, extremes, sums, whole, part, layout, room
            )  # fmt: skip
            if taken < stop:
                return taken
            first = stop
        return values.size

    return accumulate
