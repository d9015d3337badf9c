"""Row values into the states of `klnumba.metrics`: exact sums, counts and a sketch of the distribution, in one pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas import exact_integers as integers
from klnumba.kernels.compiler import helper, scalar

# Columns of `counts`: rows by what their value is.
FINITE, ZERO, PLUS_INF, MINUS_INF, NOT_A_NUMBER = range(5)
KINDS = 5

# The first columns of `whole` and `part`: values that have no interval of their own. Thresholds and intervals follow.
BELOW, AT_ZERO, ABOVE = range(3)
SPECIALS = 3

# `layout`: the column and the number of the first interval of negative values, the same of positive ones, the shift.
NEGATIVE_COLUMN, NEGATIVE_FIRST, POSITIVE_COLUMN, POSITIVE_FIRST, SHIFT = range(5)

PART_BITS = 62  # a weight is kept as a whole number and as a count of 2**-62
PART = 1 << PART_BITS

_magnitude = scalar(integers.magnitude)
_product = scalar(integers.product)
_bucket = scalar(integers.bucket)


@helper
def _put(sums: Any, g: Any, s: Any, m: Any, e: Any, sign: Any) -> None:
    """Add sign*m*2**e to a fixed-point number, m below 2**63."""
    place = e + integers.BIAS
    k, shift = place >> 5, place & 31
    low = (m & integers.LIMB_MASK) << shift
    high = (m >> integers.LIMB_BITS) << shift
    sums[g, s, k] += sign * (low & integers.LIMB_MASK)
    sums[g, s, k + 1] += sign * ((low >> integers.LIMB_BITS) + (high & integers.LIMB_MASK))
    sums[g, s, k + 2] += sign * (high >> integers.LIMB_BITS)


@helper
def _put_product(sums: Any, g: Any, s: Any, m: Any, n: Any, e: Any, sign: Any) -> None:
    low, high = _product(m, n)
    _put(sums, g, s, low, e, sign)
    _put(sums, g, s, high, e + 2 * integers.HALF_BITS, sign)


@helper
def _tally(whole: Any, part: Any, g: Any, k: Any, units: Any, rest: Any) -> None:
    whole[g, k] += units
    if rest:
        sum_of_parts = part[g, k] + rest
        carry = sum_of_parts >> PART_BITS
        whole[g, k] += carry
        part[g, k] = sum_of_parts - (carry << PART_BITS)


@helper
def _kind(counts: Any, g: Any, x: Any) -> Any:
    """Count a row by what its value is; whether it has one to count on."""
    if x != x:
        counts[g, NOT_A_NUMBER] += 1
        return False
    if math.isinf(x):
        counts[g, PLUS_INF if x > 0.0 else MINUS_INF] += 1
    else:
        counts[g, FINITE] += 1
        if x == 0.0:
            counts[g, ZERO] += 1
    return True


@helper
def _place(x: Any, layout: Any) -> Any:
    """The column of a value; without intervals, every finite value counts as zero."""
    if math.isinf(x):
        return np.int64(ABOVE if x > 0.0 else BELOW)
    if x == 0.0 or layout[SHIFT] < 0:
        return np.int64(AT_ZERO)
    number = _bucket(x, layout[SHIFT])
    if x > 0.0:
        return layout[POSITIVE_COLUMN] + number - layout[POSITIVE_FIRST]
    return layout[NEGATIVE_COLUMN] + number - layout[NEGATIVE_FIRST]


@helper
def _distribute(
    x: Any, g: Any, units: Any, rest: Any, thresholds: Any, extremes: Any, whole: Any, part: Any, layout: Any
) -> None:
    extremes[g, 0] = min(extremes[g, 0], x)
    extremes[g, 1] = max(extremes[g, 1], x)
    for t in range(thresholds.size):
        if x > thresholds[t]:
            _tally(whole, part, g, SPECIALS + t, units, rest)
    _tally(whole, part, g, _place(x, layout), units, rest)


def plain() -> Callable[..., None]:
    """Rows of weight one. `sums` holds the sums of x and of x**2."""

    def accumulate(
        values: Any, labels: Any, thresholds: Any, counts: Any, extremes: Any, sums: Any, whole: Any, part: Any,
        layout: Any,
    ) -> None:  # fmt: skip
        for i in range(values.size):
            x = values[i]
            g = labels[i] if labels.size else np.int64(0)
            if not _kind(counts, g, x):
                continue
            _distribute(x, g, np.int64(1), np.int64(0), thresholds, extremes, whole, part, layout)
            if x != 0.0 and not math.isinf(x):
                m, e = _magnitude(x)
                _put(sums, g, 0, m, e, np.int64(1) if x > 0.0 else np.int64(-1))
                _put_product(sums, g, 1, m, m, 2 * e, np.int64(1))

    return accumulate


def weighted() -> Callable[..., None]:
    """Rows with weights; those of weight zero are left out. `masses` holds the sums of w and w**2 of finite rows.

    The sum of w*x is exact. In the sum of w*x**2 each row's w*x is rounded once, so that it does not depend on order.
    """

    def accumulate(
        values: Any, weights: Any, labels: Any, thresholds: Any, counts: Any, extremes: Any, sums: Any, masses: Any,
        whole: Any, part: Any, layout: Any,
    ) -> None:  # fmt: skip
        for i in range(values.size):
            x, w = values[i], weights[i]
            g = labels[i] if labels.size else np.int64(0)
            if w == 0.0 or not _kind(counts, g, x):
                continue
            units = np.int64(w)
            rest = np.int64((w - units) * PART)
            _distribute(x, g, units, rest, thresholds, extremes, whole, part, layout)
            if math.isinf(x):
                continue
            n, f = _magnitude(w)
            _put(masses, g, 0, n, f, np.int64(1))
            _put_product(masses, g, 1, n, n, 2 * f, np.int64(1))
            if x != 0.0:
                m, e = _magnitude(x)
                sign = np.int64(1) if x > 0.0 else np.int64(-1)
                _put_product(sums, g, 0, m, n, e + f, sign)
                rounded, extra = _magnitude(np.float64(m) * np.float64(n))
                _put_product(sums, g, 1, rounded, m, extra + f + 2 * e, np.int64(1))

    return accumulate


def extent() -> Callable[..., None]:
    """The largest and least negative value and the least and largest positive one, finite, of those that count."""

    def reach(values: Any, out: Any) -> None:
        for i in range(values.size):
            x = values[i]
            if math.isinf(x):
                continue
            if x > 0.0:
                out[2], out[3] = min(out[2], x), max(out[3], x)
            elif x < 0.0:
                out[0], out[1] = max(out[0], x), min(out[1], x)

    return reach
