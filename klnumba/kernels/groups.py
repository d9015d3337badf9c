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
from klnumba.kernels.compiler import helper
from klnumba.kernels.instructions import prefetch

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
def _of_square(m: Any, e: Any) -> Any:
    """(the first limb, what (m*2**e)**2 adds to five limbs)."""
    low, high = product(m, m)
    place = 2 * e + integers.BIAS
    at = place >> 5
    a, b, c = _moved(low, place & 31)
    above = place + 2 * integers.HALF_BITS
    x, y, z = _moved(high, above & 31)
    if above >> 5 == at + 1:
        return at, (a, b + x, c + y, z, np.int64(0))
    return at, (a, b, c + x, y, z)


@helper
def _give(sums: Any, g: Any, s: Any, at: Any, limbs: Any) -> None:
    """Add limbs to a sum, from `at` on."""
    row = sums[g, s]
    for k in range(len(limbs)):
        row[at + k] += limbs[k]


@helper
def _group_rows(
    values: Any, first: Any, stop: Any, g: Any, thresholds: Any, counts: Any, extremes: Any, sums: Any, whole: Any,
    part: Any, layout: Any,
) -> Any:  # fmt: skip
    """Take in rows of weight one of one group; where the first without an interval is.

    The limbs that rows after one another add to are mostly the same, and go to memory when others come.
    """
    zero = np.int64(0)
    one, two = (zero, zero, zero), (zero, zero, zero, zero, zero)
    k = square = rows = zero
    i, least, most = first, math.inf, -math.inf
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
        at, sign = (e + integers.BIAS) >> 5, np.int64(1) if x > 0.0 else np.int64(-1)
        if at != k:
            _give(sums, g, 0, k, one)
            k, one = at, (zero, zero, zero)
        a, b, c = _moved(m, (e + integers.BIAS) & 31)
        one = (one[0] + sign * a, one[1] + sign * b, one[2] + sign * c)
        at, more = _of_square(m, e)
        if at != square:
            _give(sums, g, 1, square, two)
            square, two = at, (zero, zero, zero, zero, zero)
        two = (two[0] + more[0], two[1] + more[1], two[2] + more[2], two[3] + more[3], two[4] + more[4])
    counts[g, FINITE] += rows
    extremes[g, 0], extremes[g, 1] = min(extremes[g, 0], least), max(extremes[g, 1], most)
    _give(sums, g, 0, k, one)
    _give(sums, g, 1, square, two)
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
