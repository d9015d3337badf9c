"""The intervals in which an accumulator counts values: each power of two in equal parts, for either sign.

An interval from low to high stands for 2*low*high/(low + high), whose relative distance from every value inside is at
most (high - low)/(high + low). Counts are integers, so that they do not depend on the order of rows or of merging.
C. Masson, J. E. Rim and H. K. Lee, "DDSketch: a fast and fully-mergeable quantile sketch with relative-error
guarantees", VLDB 12, 2019, gives the idea with intervals of equal ratio; equal parts need no logarithm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.kernels import accumulate, cpu

Array = np.ndarray[Any, Any]

_MARGIN = 64  # intervals added beyond those needed, so that windows grow seldom
_LARGEST_SHIFT = 52
MOST = 1 << 26  # no window has more intervals, nor begins later


def shift_for(error: float | None) -> int:
    """How many last bits an interval leaves open, for a relative error; -1 for no intervals at all."""
    if error is None:
        return -1
    parts = max(0, math.ceil(math.log2((1.0 - error) / (2.0 * error))))
    while (1 << parts) * 2.0 + 1.0 < 1.0 / error:
        parts += 1
    return _LARGEST_SHIFT - parts


def number_of(value: float, shift: int) -> int:
    """The number of the interval of a value of either sign."""
    return int(np.float64(abs(value)).view(np.int64)) >> shift


def middles(numbers: Array, shift: int) -> Array:
    """What stands for intervals of positive values."""
    low, high = (((numbers.astype(np.int64) + k) << shift).view(np.float64) for k in (0, 1))
    high = np.minimum(high, np.finfo(np.float64).max)  # the last interval ends there
    with np.errstate(invalid="ignore"):
        found: Array = np.where(low > 0.0, low * (2.0 / (1.0 + low / high)), 0.0)
    return found


@dataclass(frozen=True)
class Window:
    """Consecutive intervals, `first` and `count` of them."""

    first: int = 0
    count: int = 0

    def over(self, low: int, high: int) -> Window:
        """This window, widened to hold the intervals from low to high."""
        if self.count and self.first <= low and high < self.first + self.count:
            return self
        first = min(low - _MARGIN, self.first) if self.count else low - _MARGIN
        last = max(high + _MARGIN, self.first + self.count) if self.count else high + _MARGIN
        first = max(first, 0)
        return Window(first, last - first)

    def joined(self, other: Window) -> Window:
        """A window that holds both."""
        return self if not other.count else self.over(other.first, other.first + other.count - 1)


@dataclass(frozen=True)
class Layout:
    """Which column of the counts is what: specials, thresholds, intervals of negative values, those of positive."""

    thresholds: int
    shift: int
    negative: Window = Window()
    positive: Window = Window()

    @property
    def columns(self) -> int:
        return self._start + self.negative.count + self.positive.count

    @property
    def _start(self) -> int:
        return accumulate.SPECIALS + self.thresholds

    def part_of(self, sign: int) -> slice:
        """The columns of the intervals of one sign."""
        if sign < 0:
            return slice(self._start, self._start + self.negative.count)
        return slice(self._start + self.negative.count, self.columns)

    def for_loop(self) -> Array:
        """As `kernels.accumulate` reads it."""
        sides = [(self.part_of(s).start, w.first, w.count) for s, w in ((-1, self.negative), (1, self.positive))]
        made = np.array([*sides[0], *sides[1], self.shift])
        made.flags.writeable = False
        return made

    def holding(self, values: Array) -> Layout:
        """This layout, widened to hold finite values."""
        if self.shift < 0:
            return self
        reach = np.array([-math.inf, math.inf, math.inf, -math.inf])
        cpu.extent()(values, reach)
        windows = []
        for window, (least, largest) in zip((self.negative, self.positive), reach.reshape(2, 2), strict=True):
            if math.isfinite(least):
                window = window.over(*(number_of(x, self.shift) for x in (least, largest)))
            windows.append(window)
        return Layout(self.thresholds, self.shift, *windows)

    def joined(self, other: Layout) -> Layout:
        """A layout that holds both."""
        windows = self.negative.joined(other.negative), self.positive.joined(other.positive)
        return Layout(self.thresholds, self.shift, *windows)

    def moved(self, counts: Array, source: Layout) -> Array:
        """Counts that lie as in `source`, as they lie here; intervals that are not here must be empty there."""
        made = np.zeros((len(counts), self.columns), np.int64)
        made[:, : self._start] = counts[:, : self._start]
        for sign, mine, its in ((-1, self.negative, source.negative), (1, self.positive, source.positive)):
            first, stop = max(mine.first, its.first), min(mine.first + mine.count, its.first + its.count)
            if first < stop:
                to, at = (x.part_of(sign).start - w.first for x, w in ((self, mine), (source, its)))
                made[:, to + first : to + stop] = counts[:, at + first : at + stop]
        return made

    def trimmed(self, *counts: Array) -> Layout:
        """The smallest layout that holds the intervals with a count."""
        windows = []
        for sign, window in ((-1, self.negative), (1, self.positive)):
            used = np.zeros(window.count, bool)
            for one in counts:
                used |= one[:, self.part_of(sign)].any(axis=0)
            places = np.flatnonzero(used)
            kept = (window.first + int(places[0]), int(places[-1] - places[0]) + 1) if places.size else (0, 0)
            windows.append(Window(*kept))
        return Layout(self.thresholds, self.shift, *windows)

    def ascending(self, used: Array) -> tuple[Array, Array]:
        """(columns, values) of the places of values, those that are used, from the least to the largest."""
        negative, positive = (np.flatnonzero(used[self.part_of(sign)]) for sign in (-1, 1))
        negative = negative[::-1]
        places = [accumulate.BELOW], negative + self.part_of(-1).start, [accumulate.AT_ZERO]
        columns = np.concatenate([*places, positive + self.part_of(1).start, [accumulate.ABOVE]]).astype(np.int64)
        lows, highs = (
            middles(w.first + k, self.shift) for w, k in ((self.negative, negative), (self.positive, positive))
        )
        values = np.concatenate([[-math.inf], -lows, [0.0], highs, [math.inf]])
        kept = used[columns]
        return columns[kept], values[kept]
