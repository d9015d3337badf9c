"""Row values into the states of `klnumba.metrics`: exact sums, counts and a sketch of the distribution, in one pass.

A loop takes rows until one has no interval in the sketch, and says how many it took. Tiles of one group whose values
are all positive and of moderate size are summed over vectors (`swept`); others go row by row. Both are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas import exact_integers as integers
from klnumba.formulas import primitives
from klnumba.kernels.compiler import helper, scalar

# Columns of `counts`: rows by what their value is.
FINITE, ZERO, PLUS_INF, MINUS_INF, NOT_A_NUMBER = range(5)
KINDS = 5

# The first columns of `whole` and `part`: values that have no interval of their own. Thresholds and intervals follow.
BELOW, AT_ZERO, ABOVE = range(3)
SPECIALS = 3

# `layout`: of the intervals of negative values and of positive ones the first column, the first number and the count;
# the shift, which is -1 where there are no intervals.
NEGATIVE, POSITIVE, SHIFT = 0, 3, 6

PART_BITS = 62  # a weight is kept as a whole number and as a count of 2**-62
PART = 1 << PART_BITS

magnitude = scalar(integers.magnitude)
product = scalar(integers.product)
_bucket = scalar(integers.bucket)
_fma = scalar(primitives.fma)


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
    low, high = product(m, n)
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
def column_of(x: Any, layout: Any) -> Any:
    """The column of a value, -1 where it has none; without intervals, every finite value counts as zero."""
    if math.isinf(x):
        return np.int64(ABOVE if x > 0.0 else BELOW)
    if x == 0.0 or x != x or layout[SHIFT] < 0:
        return np.int64(AT_ZERO)
    side = POSITIVE if x > 0.0 else NEGATIVE
    place = _bucket(x, layout[SHIFT]) - layout[side + 1]
    return layout[side] + place if 0 <= place < layout[side + 2] else np.int64(-1)


@helper
def _distribute(
    x: Any, g: Any, place: Any, units: Any, rest: Any, thresholds: Any, extremes: Any, whole: Any, part: Any
) -> None:
    extremes[g, 0] = min(extremes[g, 0], x)
    extremes[g, 1] = max(extremes[g, 1], x)
    for t in range(thresholds.size):
        if x > thresholds[t]:
            _tally(whole, part, g, SPECIALS + t, units, rest)
    _tally(whole, part, g, place, units, rest)


@helper
def plain_row(
    x: Any, g: Any, thresholds: Any, counts: Any, extremes: Any, sums: Any, whole: Any, part: Any, layout: Any
) -> Any:
    """Take in a row of weight one; False where it has no interval yet."""
    place = column_of(x, layout)
    if place < 0:
        return False
    if _kind(counts, g, x):
        _distribute(x, g, place, np.int64(1), np.int64(0), thresholds, extremes, whole, part)
        if x != 0.0 and not math.isinf(x):
            m, e = magnitude(x)
            _put(sums, g, 0, m, e, np.int64(1) if x > 0.0 else np.int64(-1))
            _put_product(sums, g, 1, m, m, 2 * e, np.int64(1))
    return True


# --- many rows at a time ----------------------------------------------------------------------------------------------

SWEPT = 512  # rows of a tile: a sum of so many integers below 2**52 fits
ROOM = 3 * SWEPT  # numbers of scratch
_LEAST_SWEPT = 2.0**-480  # squares from here on have all their bits in two float64 numbers
_MOST_SWEPT = 2.0**480
_LEAST_ANCHORED = 2.0**-1023  # below, an anchor is the least there is, whose last bit is that of subnormal numbers
_ULP_BITS = 52


@helper
def _reach(cells: Any) -> Any:
    """The least and largest of the bits of the cells; positive values have their order, others are negative there."""
    least, most = np.int64(0x7FFFFFFFFFFFFFFF), np.int64(-0x7FFFFFFFFFFFFFFF)
    for k in range(cells.size):
        bits = np.float64(cells[k]).view(np.int64)
        least, most = min(least, bits), max(most, bits)
    return least, most


@helper
def _largest(cells: Any) -> Any:
    """The largest size of the cells."""
    most = np.int64(0)
    for k in range(cells.size):
        most = max(most, np.float64(cells[k]).view(np.int64) & np.int64(0x7FFFFFFFFFFFFFFF))
    return np.int64(most).view(np.float64)


@helper
def _anchored(top: Any) -> Any:
    """(anchor, exponent of its last bit): added to the anchor, cells up to `top` leave their bits from there on."""
    exponent = magnitude(top)[1] + 54 if top >= _LEAST_ANCHORED else np.int64(-1022)
    bits = (exponent + 1023) << _ULP_BITS | np.int64(1 << (_ULP_BITS - 1))
    return np.int64(bits).view(np.float64), exponent - _ULP_BITS


@helper
def _put_count(sums: Any, g: Any, s: Any, count: Any, e: Any) -> None:
    negative = count >> np.int64(63)  # no branch: where one hangs on a sum, LLVM adds its terms one by one
    _put(sums, g, s, (count ^ negative) - negative, e, negative | np.int64(1))


@helper
def _sweep(cells: Any, sums: Any, g: Any, s: Any, top: Any) -> None:
    """Add cells, none larger than `top`, to a fixed-point number; they are used up.

    Added to a large power of two, a cell leaves its leading bits in the last bits of the sum: as integers these add up
    without rounding, in any order. What a cell had below them is left for the next turn.
    """
    while top > 0.0:
        anchor, e = _anchored(top)
        origin = np.float64(anchor).view(np.int64)
        count = left = np.int64(0)
        for k in range(cells.size):
            moved = cells[k] + anchor
            count += np.float64(moved).view(np.int64) - origin
            rest = cells[k] - (moved - anchor)
            left |= np.float64(rest).view(np.int64) << 1
            cells[k] = rest
        _put_count(sums, g, s, count, e)
        top = _largest(cells) if left else 0.0


@helper
def _first_turn(cells: Any, sums: Any, g: Any, rests: Any, top: Any) -> Any:
    """The first turn of cells that are to stay; a bound of what is left for the next."""
    anchor, e = _anchored(top)
    origin = np.float64(anchor).view(np.int64)
    count = np.int64(0)
    for k in range(cells.size):
        moved = cells[k] + anchor
        count += np.float64(moved).view(np.int64) - origin
        rests[k] = cells[k] - (moved - anchor)
    _put_count(sums, g, 0, count, e)
    return _below(anchor)


@helper
def _first_turn_of_squares(cells: Any, sums: Any, g: Any, high: Any, low: Any, top: Any) -> Any:
    """The same of the squares, as sums of two numbers of which the second wait in `low`."""
    anchor, e = _anchored(top)
    origin = np.float64(anchor).view(np.int64)
    count = np.int64(0)
    for k in range(cells.size):
        x = cells[k]
        square = x * x
        moved = square + anchor
        count += np.float64(moved).view(np.int64) - origin
        high[k], low[k] = square - (moved - anchor), _fma(x, x, -square)
    _put_count(sums, g, 1, count, e)
    return _below(anchor)


@helper
def _below(anchor: Any) -> Any:
    """The last bit of an anchor: no cell has more left after its turn."""
    return np.int64(np.float64(anchor).view(np.int64) + 1).view(np.float64) - anchor


@helper
def _add_up(cells: Any, sums: Any, g: Any, room: Any, top: Any) -> None:
    """Values of moderate size, none larger than `top`, into the sums of x and x**2."""
    n, square = cells.size, top * top
    first, high, low = room[0:n], room[SWEPT : SWEPT + n], room[2 * SWEPT : 2 * SWEPT + n]
    _sweep(first, sums, g, 0, _first_turn(cells, sums, g, first, top))
    _sweep(high, sums, g, 1, _first_turn_of_squares(cells, sums, g, high, low, square))
    _sweep(low, sums, g, 1, square * 2.0**-_ULP_BITS)


@helper
def swept(
    cells: Any, g: Any, thresholds: Any, counts: Any, extremes: Any, sums: Any, whole: Any, layout: Any, room: Any
) -> Any:
    """Take in rows of weight one of one group; False, with nothing done, where these are not for vectors."""
    least, most = _reach(cells)
    low, high = np.int64(least).view(np.float64), np.int64(most).view(np.float64)
    if least <= 0 or not (low >= _LEAST_SWEPT and high <= _MOST_SWEPT):
        return False
    if column_of(low, layout) < 0 or column_of(high, layout) < 0:
        return False
    counts[g, FINITE] += cells.size
    extremes[g, 0], extremes[g, 1] = min(extremes[g, 0], low), max(extremes[g, 1], high)
    for t in range(thresholds.size):
        above = np.int64(0)
        for k in range(cells.size):
            above += cells[k] > thresholds[t]
        whole[g, SPECIALS + t] += above
    if layout[SHIFT] < 0:
        whole[g, AT_ZERO] += cells.size
    else:
        row, start, shift = whole[g], layout[POSITIVE] - layout[POSITIVE + 1], layout[SHIFT]
        for k in range(cells.size):
            row[start + _bucket(cells[k], shift)] += 1
    _add_up(cells, sums, g, room, high)
    return True


def exact_sum() -> Callable[..., Any]:
    """Add values to a fixed-point number; False, with the sum spoiled, where one is infinite or NaN."""

    def total(values: Any, sums: Any, room: Any) -> Any:
        for start in range(0, values.size, SWEPT):
            cells = values[start : start + SWEPT]
            most = _largest(cells)
            if not most < math.inf:
                return False
            if most <= _MOST_SWEPT:
                copy = room[0 : cells.size]
                for k in range(cells.size):
                    copy[k] = cells[k]
                _sweep(copy, sums, 0, 0, most)
            else:
                for k in range(cells.size):
                    m, e = magnitude(cells[k])
                    _put(sums, 0, 0, m, e, np.int64(1) if cells[k] >= 0.0 else np.int64(-1))
        return True

    return total


# --- weights ----------------------------------------------------------------------------------------------------------


def weighted() -> Callable[..., Any]:
    """Rows with positive weights. `sums` holds those of w*x and w*x**2, `masses` those of w and w**2 of finite rows."""

    def accumulate(
        values: Any, weights: Any, labels: Any, thresholds: Any, counts: Any, extremes: Any, sums: Any, masses: Any,
        whole: Any, part: Any, layout: Any, room: Any,
    ) -> Any:  # fmt: skip
        for i in range(values.size):
            x, w = values[i], weights[i]
            g = labels[i] if labels.size else np.int64(0)
            place = column_of(x, layout)
            if place < 0:
                return i
            if not _kind(counts, g, x):
                continue
            units = np.int64(w)
            _distribute(x, g, place, units, np.int64((w - units) * PART), thresholds, extremes, whole, part)
            if math.isinf(x):
                continue
            n, f = magnitude(w)
            _put(masses, g, 0, n, f, np.int64(1))
            _put_product(masses, g, 1, n, n, 2 * f, np.int64(1))
            if x != 0.0:
                m, e = magnitude(x)
                sign = np.int64(1) if x > 0.0 else np.int64(-1)
                _put_product(sums, g, 0, m, n, e + f, sign)
                low, high = product(m, m)
                _put_product(sums, g, 1, low, n, f + 2 * e, np.int64(1))
                _put_product(sums, g, 1, high, n, f + 2 * e + 2 * integers.HALF_BITS, np.int64(1))
        return values.size

    return accumulate


def extent() -> Callable[..., None]:
    """The largest and least negative value and the least and largest positive one, of those that are finite."""

    def reach(values: Any, out: Any) -> None:
        least, most = _reach(values)
        low, high = np.int64(least).view(np.float64), np.int64(most).view(np.float64)
        if least > 0 and high < math.inf:
            out[2], out[3] = low, high
            return
        for i in range(values.size):
            x = values[i]
            if math.isinf(x):
                continue
            if x > 0.0:
                out[2], out[3] = min(out[2], x), max(out[3], x)
            elif x < 0.0:
                out[0], out[1] = max(out[0], x), min(out[1], x)

    return reach
