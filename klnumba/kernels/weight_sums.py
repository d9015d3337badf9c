"""Weights of rows into cells: exact sums of them and of their squares, which depend on no order.

Weights of `BINADES` powers of two share a window. In each a cell has `LIMBS` limbs of 32 bits, kept in int64 so that
many rows fit before a carry: two for the sum, in units of 2**low, then four for the sum of the squares, in units of its
square. The next window has the next powers of two. So a row changes six numbers that lie side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas import exact_integers as integers
from klnumba.formulas import twofold
from klnumba.formulas.elementary import two_sum
from klnumba.kernels.binning import place
from klnumba.kernels.compiler import helper, scalar
from klnumba.kernels.instructions import prefetch
from klnumba.kernels.tiles import TILE

BINADES = 8
LIMBS = 6
LINE = 8  # numbers of 8 bytes in one of the cache
OF_SUM = 2  # of these
ROWS = 1 << 24  # that limbs take in before a carry: a row adds less than 2**34 to each

_SHIFT = 3  # 2**3 binades
_BITS = 32
_MASK = 0xFFFFFFFF
_LITTLE = 2.0**-40
_EXACT = 1 << 53  # up to here float64 has all integers
_LOW, _HIGH = np.uint64(_MASK), np.uint64(_BITS)

_two_sum = scalar(two_sum)
_times = scalar(twofold.times)
_plus = scalar(twofold.plus)
_over = scalar(twofold.over)


@helper
def _add(limbs: Any, first: Any, low: Any, weight: Any) -> None:
    """Add a weight, which is a normal number, to the cell whose limbs begin at `first`."""
    bits = np.float64(weight).view(np.int64)
    above = (bits >> integers.MANTISSA_BITS) - (low + integers.EXPONENT_SHIFT)
    m = bits & integers.MANTISSA_MASK | integers.HIDDEN_BIT
    at = np.uint64(first + LIMBS * (above >> _SHIFT))
    shifted = np.uint64(m << (above & (BINADES - 1)))
    a, b = shifted >> _HIGH, shifted & _LOW
    aa, ab, bb = a * a, a * b, b * b
    limbs[at] += np.int64(b)
    limbs[at + np.uint64(1)] += np.int64(a)
    limbs[at + np.uint64(2)] += np.int64(bb & _LOW)
    limbs[at + np.uint64(3)] += np.int64(bb >> _HIGH) + 2 * np.int64(ab & _LOW)
    limbs[at + np.uint64(4)] += 2 * np.int64(ab >> _HIGH) + np.int64(aa & _LOW)
    limbs[at + np.uint64(5)] += np.int64(aa >> _HIGH)


@helper
def _ask_for(cells: Any, weights: Any, row: Any) -> None:
    """Have rows that follow brought into the cache: what is done with a row takes too long for the hardware to see."""
    if row & (LINE - 1) == 0:
        prefetch(cells, row + 2 * TILE)
        prefetch(weights, row + TILE)


def weighing() -> Callable[..., None]:
    """Add the weights of numbers to their cells; `limbs` has those of the cells one after the other."""

    def weigh(x: Any, weights: Any, edges: Any, size: Any, index: Any, low: Any, limbs: Any) -> None:
        width = limbs.size // size
        for start in range(0, x.size, TILE):
            part = x[start : start + TILE]
            place(part, edges, size, index)
            for k in range(part.size):
                _ask_for(x, weights, start + k)
                _add(limbs, width * index[k], low, weights[start + k])

    return weigh


def weighing_places() -> Callable[..., None]:
    """The same where the cell of each row is known."""

    def weigh(places: Any, weights: Any, width: Any, low: Any, limbs: Any) -> None:
        for k in range(places.size):
            _ask_for(places, weights, k)
            _add(limbs, width * places[k], low, weights[k])

    return weigh


# --- groups -----------------------------------------------------------------------------------------------------------


def sorting() -> Callable[..., None]:
    """Weights in the order of their cells; `starts` says where each cell begins, and in the end, where it ends."""

    def sort(places: Any, weights: Any, starts: Any, out: Any) -> None:
        for k in range(places.size):
            cell = np.uint64(places[k])
            out[np.uint64(starts[cell])] = weights[k]
            starts[cell] += 1

    return sort


@helper
def _carry(limbs: Any) -> None:
    """Leave 32 bits in every limb but the last of a sum."""
    for at in range(0, limbs.size, LIMBS):
        for k in range(LIMBS - 1):
            if k != OF_SUM - 1:
                limbs[at + k + 1] += limbs[at + k] >> _BITS
                limbs[at + k] &= _MASK


@helper
def _double(limbs: Any, first: Any, count: Any, low: Any, step: Any) -> Any:
    """The number that carried limbs of all windows are, as two: the nearest to it, and what that lacks."""
    high, rest = 0.0, 0.0
    for at in range(first, limbs.size, LIMBS):
        if limbs[at - first + OF_SUM - 1] == 0:  # no row has a weight of this window
            continue
        unit = np.int64((low + at // LIMBS * step + 1023) << 52).view(np.float64)
        for k in range(count):
            limb = limbs[at + k]
            if limb >= _EXACT:
                high, error = _two_sum(high, np.float64(limb >> _BITS) * (unit * 2.0**_BITS))
                rest += error
                limb &= _MASK
            high, error = _two_sum(high, np.float64(limb) * unit)
            rest += error
            unit *= 2.0**_BITS
    return _two_sum(high, rest)


@helper
def _read(limbs: Any, low: Any, out: Any) -> None:
    out[0], out[1] = _double(limbs, 0, OF_SUM, low, BINADES)
    out[2], out[3] = _double(limbs, OF_SUM, LIMBS - OF_SUM, 2 * low, 2 * BINADES)


@helper
def _sum(weights: Any, start: Any, stop: Any, low: Any, limbs: Any) -> None:
    limbs[:] = 0
    for first in range(start, stop, ROWS):
        for k in range(first, min(first + ROWS, stop)):
            _add(limbs, 0, low, weights[k])
        _carry(limbs)


@helper
def _left(total: Any, part: Any, out: Any) -> Any:
    """What a total has without a part, unless that is so little of it that digits are lost."""
    for k in range(0, total.size, 2):
        out[k], out[k + 1] = _plus(total[k], total[k + 1], -part[k], -part[k + 1])
        if out[k] < total[k] * _LITTLE:
            return False
    return True


def grouping() -> Callable[..., None]:
    """Of each value and group the sum of the weights and that of their squares, and the same of all other groups.

    `weights` are sorted by value and then by group, `stops` says where each of these cells ends. A sum is two numbers,
    the nearest and what that lacks. Both tables begin with zeros; `other` may be empty. `limbs` are room for a cell,
    for a value, and for what the value has without the cell; `total` is room for the sums of a value.
    """

    def group(
        weights: Any, start: Any, stops: Any, groups: Any, low: Any, limbs: Any, total: Any, own: Any, other: Any
    ) -> None:
        one, every, rest = limbs[0], limbs[1], limbs[2]
        for first in range(0, stops.size, groups):
            end = stops[first + groups - 1]
            if end > start and other.size:
                _sum(weights, start, end, low, every)
                _read(every, low, total)
                for g in range(first, first + groups):
                    for k in range(total.size):
                        other[g, k] = total[k]
            for g in range(first, first + groups):
                if stops[g] > start:
                    _sum(weights, start, stops[g], low, one)
                    _read(one, low, own[g])
                    if other.size and not _left(total, own[g], other[g]):
                        for k in range(rest.size):
                            rest[k] = every[k] - one[k]
                        _carry(rest)
                        _read(rest, low, other[g])
                start = stops[g]

    return group


def scaling() -> Callable[..., None]:
    """What `grouping` found, scaled to the effective numbers of rows: a column of counts and of squares a value.

    The effective number of rows is T**2/Q, of the sums T and Q of the weights of a group and of their squares, which
    `totals` has. Every count is rounded once: of rows of one weight it is their number.
    """

    def scale(sums: Any, totals: Any, first: Any, sizes: Any, counts: Any, squares: Any) -> None:
        groups = totals.shape[0]
        for g in range(groups):
            if totals[g, 2] > 0.0:
                factor, rest = _over(totals[g, 0], totals[g, 1], totals[g, 2], totals[g, 3])
                sizes[g], _ = _times(totals[g, 0], totals[g, 1], factor, rest)
                for at in range(g, sums.shape[0], groups):
                    value = first + at // groups
                    counts[g, value], _ = _times(sums[at, 0], sums[at, 1], factor, rest)
                    squares[g, value] = sums[at, 2] * factor * factor

    return scale
