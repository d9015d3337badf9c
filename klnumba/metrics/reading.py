"""What the state of a group says: its sums as numbers, its counts as quantiles and shares."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from itertools import accumulate as running
from typing import Any

import numpy as np

from klnumba import fixed_point
from klnumba.fixed_point import ratio
from klnumba.formulas.exact_integers import BIAS
from klnumba.kernels import accumulate
from klnumba.metrics.state import State
from klnumba.metrics.summary import QUANTILES, Summary


class Read:
    """One group of a state. Its sums are integers, times 2**BIAS; what becomes of them is rounded once, at the end."""

    def __init__(self, state: State, group: int = 0) -> None:
        self.state, self.group = state, group
        self.finite, self.zero, self.plus, self.minus, self.nan = state.counts[group].tolist()
        self.rows = self.finite + self.plus + self.minus + self.nan

    @cached_property
    def first(self) -> int:
        """The sum of w*x of finite rows."""
        return fixed_point.as_integer(self.state.sums[self.group, 0])

    @cached_property
    def second(self) -> int:
        """The sum of w*x**2."""
        return fixed_point.as_integer(self.state.sums[self.group, 1])

    @cached_property
    def weight(self) -> int:
        """The sum of w."""
        return self._mass(0)

    @cached_property
    def squares(self) -> int:
        """The sum of w**2."""
        return self._mass(1)

    def _mass(self, power: int) -> int:
        masses = self.state.masses
        return self.finite << BIAS if masses is None else fixed_point.as_integer(masses[self.group, power])

    def total(self) -> float:
        """The sum of weight times value over all rows."""
        return self._or_not_finite(ratio(self.first, 1 << BIAS))

    def mean(self) -> float:
        """Over all rows."""
        return self._or_not_finite(self.finite_mean())

    def finite_mean(self) -> float:
        return ratio(self.first, self.weight)

    def _or_not_finite(self, value: float) -> float:
        if self.nan or (self.plus and self.minus):
            return math.nan
        if self.plus or self.minus:
            return math.inf if self.plus else -math.inf
        return value

    def finite_std(self) -> float:
        return _root(self._about_mean(), self._room())

    def finite_standard_error(self) -> float:
        return _root(self._about_mean() * (self.squares << BIAS), self._room() * self.weight * self.weight)

    def moments(self) -> tuple[float, float, float]:
        """Sum of weights, mean, and variance divided by that sum, of the finite rows."""
        variance = ratio(self._about_mean(), self.weight * self.weight)
        return ratio(self.weight, 1 << BIAS), self.finite_mean(), variance

    def _about_mean(self) -> int:
        """The sum of w*(x - mean)**2 times the sum of w."""
        return self.second * self.weight - self.first * self.first

    def _room(self) -> int:
        """The square of the sum of w less the sum of w**2: with weights of one, n*(n - 1)."""
        return self.weight * self.weight - (self.squares << BIAS)

    def quantiles(self, shares: tuple[float, ...]) -> dict[float, float]:
        """The values at these shares of the weight."""
        held = self._held()
        if not held:
            return dict.fromkeys(shares, math.nan)
        sums = list(running(w for w, _ in held))
        least, most = self._extremes()
        found = {}
        for share in shares:
            wanted = Fraction(str(share)) * sums[-1]
            at = next(k for k, s in enumerate(sums) if s >= wanted)
            found[share] = min(max(held[at][1], least), most) if 0.0 < share < 1.0 else (most if share else least)
        return found

    def _held(self) -> list[tuple[int, float]]:
        """(weight in units of 2**-62, value) of every place with a row in it, ascending."""
        columns, values = self.state.layout.ascending(self._used())
        return [(self._tally(k), float(x)) for k, x in zip(columns, values, strict=True)]

    def _used(self) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = (self.state.whole[self.group] != 0) | (self.state.part[self.group] != 0)
        return found

    def distribution(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """(values, weights) of every place with a row in it, ascending."""
        held = self._held()
        weights = [ratio(w, accumulate.PART) for w, _ in held]
        return np.array([x for _, x in held]), np.array(weights)

    def above(self) -> dict[float, float]:
        """Shares of the weight above each threshold."""
        total = sum(weight for weight, _ in self._held())
        return {
            float(t): ratio(self._tally(accumulate.SPECIALS + k), total) for k, t in enumerate(self.state.thresholds)
        }

    def _tally(self, column: int) -> int:
        """The weight in a column, in units of 2**-62."""
        return (int(self.state.whole[self.group, column]) << accumulate.PART_BITS) + int(
            self.state.part[self.group, column]
        )

    def _extremes(self) -> tuple[float, float]:
        """The least and the largest value; -0.0 becomes 0.0, since which of them comes last is chance."""
        least, most = self.state.extremes[self.group] + 0.0
        return float(least), float(most)

    def summary(self, quantile_error: float | None) -> Summary:
        all_finite = self.finite == self.rows
        least, most = self._extremes()
        seen = self.rows > self.nan
        error, std = self.finite_standard_error(), self.finite_std()
        return Summary(
            rows=self.rows,
            weight=ratio(self.weight, 1 << BIAS),
            mean=self.mean(),
            standard_error=error if all_finite else math.nan,
            std=std if all_finite else math.nan,
            min=least if seen else math.nan,
            max=most if seen else math.nan,
            zero=self.zero,
            inf=self.plus + self.minus,
            nan=self.nan,
            finite_mean=self.finite_mean(),
            finite_standard_error=error,
            finite_std=std,
            quantile_error=quantile_error,
            quantiles={} if quantile_error is None else self.quantiles(QUANTILES),
            above=self.above(),
        )


def _root(above: int, below: int) -> float:
    """The square root of above/below, from more digits than it shows; NaN where `below` is 0."""
    if not above or below <= 0:
        return 0.0 if below > 0 else math.nan
    shift = max(0, 160 - (above.bit_length() - below.bit_length())) // 2 + 1
    return ratio(math.isqrt((above << (2 * shift)) // below), 1 << shift)


def values_of(state: State, method: str, groups: list[int]) -> np.ndarray[Any, Any]:
    """A number for each of the groups: `method` of `Read`."""
    return np.array([getattr(Read(state, g), method)() for g in groups], np.float64)
