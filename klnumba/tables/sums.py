"""Sums of weights and of their squares as Python's integers, times 2**BIAS: exact, so that no order of rows shows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from klnumba.fixed_point import ratio
from klnumba.formulas.exact_integers import BIAS, LIMB_BITS
from klnumba.kernels import cpu
from klnumba.kernels.tiles import TILE
from klnumba.kernels.weight_sums import BINADES, LIMBS, OF_SUM, ROWS
from klnumba.tables.cells import Array
from klnumba.tables.codes import frozen
from klnumba.tables.columns import BLOCK

ONE = 1 << BIAS
MANTISSA = 53


class Windows(NamedTuple):
    """The windows of `kernels.weight_sums` for some weights: the exponent they begin with, and how many they are."""

    low: int
    number: int

    @property
    def width(self) -> int:
        """The limbs of a cell."""
        return LIMBS * self.number


def windows_of(least: float, most: float) -> Windows:
    """Of weights from `least` to `most`."""
    low, high = (math.frexp(one)[1] - MANTISSA for one in (least, most))
    return Windows(low, (high - low) // BINADES + 1)


class Weigher:
    """The sums of the weights of rows, and of their squares, in each of some cells."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._sums, self._squares = np.zeros(size, object), np.zeros(size, object)
        self._limbs = np.empty(0, np.int64)
        self._reach, self._rows = (math.inf, 0.0), 0

    def numbers(self, values: Array, weights: Array, edges: Array) -> None:
        """Take in a block of numbers with their weights, by the cells between some edges."""
        values, weights = _with_weight(values, weights)
        if values.size:
            low = self._made_for(weights).low
            cpu.weigh_numbers()(values, weights, edges, self.size, np.empty(TILE, np.int64), low, self._limbs)

    def places(self, places: Array, weights: Array) -> None:
        """Take in rows whose cells are known."""
        places, weights = _with_weight(np.asarray(places, np.int64), np.asarray(weights, np.float64))
        for start in range(0, places.size, BLOCK):
            part, block = (frozen(one[start : start + BLOCK]) for one in (places, weights))
            windows = self._made_for(block)
            cpu.weigh_places()(part, block, windows.width, windows.low, self._limbs)

    def totals(self) -> tuple[Array, Array]:
        """The sums of all rows so far, and those of squares."""
        if self._rows:
            low, count = windows_of(*self._reach)
            limbs = self._limbs.reshape(self.size, count, LIMBS)
            for k in range(count):
                at = np.flatnonzero(limbs[:, k].any(axis=1))
                self._sums[at] += _integers(limbs[at, k, :OF_SUM], low + BINADES * k)
                self._squares[at] += _integers(limbs[at, k, OF_SUM:], 2 * (low + BINADES * k))
            self._rows = 0
        return self._sums, self._squares

    def _made_for(self, weights: Array) -> Windows:
        """The windows of a block of weights, for which there is room then."""
        least, most = float(weights.min()), float(weights.max())
        if least < self._reach[0] or most > self._reach[1] or self._rows + weights.size > ROWS or not self._rows:
            self.totals()
            self._reach = min(least, self._reach[0]), max(most, self._reach[1])
            self._limbs = np.zeros(self.size * windows_of(*self._reach).width, np.int64)
        self._rows += weights.size
        return windows_of(*self._reach)


def _with_weight(cells: Array, weights: Array) -> tuple[Array, Array]:
    """The rows whose weight is not 0, which has no place in a window."""
    if weights.all():
        return cells, weights
    held = weights > 0.0
    return frozen(cells[held]), frozen(weights[held])


def of_places(places: Array, weights: Array, size: int) -> tuple[Array, Array]:
    """The sums of weights, and those of their squares, by the cell of each row."""
    weigher = Weigher(size)
    weigher.places(places, weights)
    return weigher.totals()


def _integers(limbs: Array, low: int) -> Array:
    """Rows of limbs, in units of 2**low, as integers."""
    found = limbs.astype(object) << np.arange(0, LIMB_BITS * limbs.shape[1], LIMB_BITS)
    total: Array = found.sum(axis=1) << (low + BIAS)
    return total


def listed(integers: Iterable[int]) -> Array:
    """Integers of any size as an array."""
    held = [*integers]
    found = np.empty(len(held), object)
    found[:] = held
    return found


def of_float(value: float) -> int:
    """A finite number, exactly."""
    above, below = float(value).as_integer_ratio()
    return above * (ONE // below)


def rounded(sums: Array) -> Array:
    """The nearest float64 of each."""
    return np.array([ratio(one, ONE) for one in sums.tolist()], np.float64)


def rests(total: int) -> list[float]:
    """What rounding took from a sum, as numbers that add up to it exactly, each the nearest to what is left."""
    found: list[float] = []
    left = total - of_float(ratio(total, ONE))
    while left:
        found.append(ratio(left, ONE))
        left -= of_float(found[-1])
    return found
