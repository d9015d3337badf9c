"""What a parameter may be."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.distributions.mapped import Mapped


@dataclass(frozen=True)
class Interval:
    """A test of numbers: whether each lies between two bounds, each of which may be a part of it. NaN never does."""

    low: float = -math.inf
    high: float = math.inf
    with_low: bool = False
    with_high: bool = False

    def __call__(self, values: Any) -> Any:
        above = values >= self.low if self.with_low else values > self.low
        return above & (values <= self.high if self.with_high else values < self.high)

    def holds_all(self, values: np.ndarray) -> bool:
        """Whether there are some and all do: told by the least and the largest, without an array of answers."""
        return bool(values.size and self(np.minimum.reduce(values, None)) and self(np.maximum.reduce(values, None)))


@dataclass(frozen=True)
class Constraint:
    """A rule for a parameter, in words and as a test of an array.

    The test says of every number whether it keeps the rule; of every vector or matrix, where the rule is one for these.
    A rule may stand on another, which is checked first.
    """

    text: str
    holds: Callable[[np.ndarray], Any]
    after: Constraint | None = None
    kept: Callable[[np.ndarray], np.ndarray] | None = None  # what numbers are kept as that keep it nearly
    enough: Interval | None = None  # where all numbers lie, the rule is kept

    def broken(self, values: np.ndarray) -> list[np.ndarray]:
        """Where the rule is broken, and that which it stands on."""
        with np.errstate(invalid="ignore"):
            here = ~np.asarray(self.holds(values), bool)
        return [here, *(self.after.broken(values) if self.after is not None else [])]

    def check(self, owner: str, name: str, values: np.ndarray) -> None:
        """Raise ValueError at the first number, vector or matrix that breaks the rule."""
        if self.after is not None:
            self.after.check(owner, name, values)
        quick = self.holds if isinstance(self.holds, Interval) else self.enough
        if quick is not None and quick.holds_all(values):
            return
        bad = ~np.asarray(self.holds(values), bool)
        if bad.any():
            at, place = first_place(name, bad)
            raise ValueError(f"{owner}: {name} must be {self.text}, but {place} is {shown(values[at])}")


def first_place(name: str, bad: np.ndarray) -> tuple[tuple[int, ...], str]:
    """Where a parameter's array is bad first: the index, and its text."""
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
    return at, f"{name}[{', '.join(map(str, at))}]" if at else name


def shown(value: Any) -> str:
    """A number or an array in one line, a long array shortened."""
    if isinstance(value, Mapped):
        return repr(value)
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{array[()]}"
    text = np.array2string(array, separator=", ", threshold=20, floatmode="unique")
    return " ".join(text.split()).replace(" ,", ",").replace(" ]", "]")


REAL = Constraint("a finite number", Interval())
LOGIT = Constraint("a number", Interval(with_low=True, with_high=True))
LOGIT_BELOW_INF = Constraint("a number < inf", Interval(with_low=True))
POSITIVE = Constraint("a finite number > 0", Interval(0.0))
NON_NEGATIVE = Constraint("a finite number >= 0", Interval(0.0, with_low=True))
PROBABILITY = Constraint("a number from 0 to 1", Interval(0.0, 1.0, with_low=True, with_high=True))
OPEN_PROBABILITY = Constraint("a number > 0 and < 1", Interval(0.0, 1.0))
POSITIVE_PROBABILITY = Constraint("a number > 0 and <= 1", Interval(0.0, 1.0, with_high=True))
POSITIVE_PROBABILITY_LOGIT = Constraint("a number > -inf", Interval(with_high=True))
COUNT = Constraint("an integer >= 0 below 2**53", lambda x: (x >= 0) & (x < 2.0**53) & (x == np.floor(x)))
