"""What a parameter may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


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

    def broken(self, values: np.ndarray) -> list[np.ndarray]:
        """Where the rule is broken, and that which it stands on."""
        with np.errstate(invalid="ignore"):
            here = ~np.asarray(self.holds(values), bool)
        return [here, *(self.after.broken(values) if self.after is not None else [])]

    def check(self, owner: str, name: str, values: np.ndarray) -> None:
        """Raise ValueError at the first number, vector or matrix that breaks the rule."""
        if self.after is not None:
            self.after.check(owner, name, values)
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
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{array[()]}"
    text = np.array2string(array, separator=", ", threshold=20, floatmode="unique")
    return " ".join(text.split()).replace(" ,", ",").replace(" ]", "]")


REAL = Constraint("a finite number", np.isfinite)
LOGIT = Constraint("a number", lambda x: ~np.isnan(x))
POSITIVE = Constraint("a finite number > 0", lambda x: np.isfinite(x) & (x > 0))
NON_NEGATIVE = Constraint("a finite number >= 0", lambda x: np.isfinite(x) & (x >= 0))
PROBABILITY = Constraint("a number from 0 to 1", lambda x: (x >= 0) & (x <= 1))
OPEN_PROBABILITY = Constraint("a number > 0 and < 1", lambda x: (x > 0) & (x < 1))
POSITIVE_PROBABILITY = Constraint("a number > 0 and <= 1", lambda x: (x > 0) & (x <= 1))
POSITIVE_PROBABILITY_LOGIT = Constraint("a number > -inf", lambda x: x > -np.inf)
COUNT = Constraint("an integer >= 0 below 2**53", lambda x: (x >= 0) & (x < 2.0**53) & (x == np.floor(x)))
