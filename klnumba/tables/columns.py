"""What a column is to the rest of the package: numbers or labels, each read when it is needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.tables import whole
from klnumba.tables.cells import FARTHEST, Array, Label
from klnumba.tables.codes import Coded, Counted
from klnumba.tables.words import Vocabulary

BLOCK = 1 << 17  # numbers that are converted and counted at a time
KINDS = {"number": "numbers", "boolean": "truth values", "datetime": "times", "timedelta": "durations",
         "category": "categories"}  # fmt: skip
MICROSECONDS = {"ms": 10**3, "s": 10**6, "m": 6 * 10**7, "h": 36 * 10**8, "D": 864 * 10**8, "W": 6048 * 10**8}


class ColumnError(ValueError):
    """A column that cannot be compared; the text says why, and becomes its status."""


@dataclass(frozen=True)
class Numbers:
    """A column of numbers, or of times in microseconds; NaN, NaT and None are missing."""

    name: str
    kind: str  # "number", "boolean", "datetime" or "timedelta"
    rows: int
    read: Callable[[], Array]  # of a real dtype, datetime64, timedelta64 or, by `whole.kept`, of numbers as objects
    aware: bool = False
    view: bool = False  # reading takes no memory

    def values(self) -> Array:
        """All values as float64."""
        return as_float(self.read())


@dataclass(frozen=True)
class Labels:
    """A column of categories.

    `read` and `count` take the words that have a place of their own: others may then be told by their buckets alone.
    With None, `count` tells all apart, however many they are.
    `gather` counts texts into a table of words, and returns the counts of what is no text.
    """

    name: str
    rows: int
    read: Callable[[Sequence[str]], Coded]
    count: Callable[[Sequence[str] | None], Counted]
    gather: Callable[[Vocabulary], dict[Label, int]]
    kind: str = "category"
    aware: bool = False


@dataclass(frozen=True)
class Unusable:
    """A column of a type that has no cells."""

    name: str
    rows: int
    reason: str
    kind: str = "unknown"


Column = Numbers | Labels | Unusable


def as_float(values: Array) -> Array:
    """Values as contiguous float64; times in microseconds since 1970, with the parts of one that a float64 holds."""
    if values.dtype.kind in "mM":
        missing = np.isnat(values)
        _check_range(values[~missing])
        whole_ones = values.astype(f"{values.dtype.kind}8[us]")
        found = whole_ones.view(np.int64).astype(np.float64)
        if finer(values.dtype):
            found += (values - whole_ones) / np.timedelta64(1, "us")
        found[missing] = np.nan
        return np.clip(found, -FARTHEST, FARTHEST, out=found)
    return np.ascontiguousarray(values, np.float64)


def finer(dtype: np.dtype[Any]) -> bool:
    """Whether times of a type may have parts of a microsecond."""
    return np.datetime_data(dtype)[0] in ("ns", "ps", "fs", "as")


def _check_range(values: Array) -> None:
    """NumPy would wrap round where microseconds do not fit."""
    unit, count = np.datetime_data(values.dtype)
    limit = np.iinfo(np.int64).max // (count * MICROSECONDS.get(unit, 1))
    whole_units = values.view(np.int64)
    if values.size and (whole_units.max() > limit or whole_units.min() < -limit):
        raise ColumnError("holds times that do not fit into microseconds")


def absent(value: Any) -> bool:
    """Whether a single value is missing: None, NaN, NaT, or NA of pandas, which is neither equal to itself nor not."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def label_of(value: Any) -> Label:
    """A category as text or finite number, which JSON can hold.

    Truth values and what is not finite carry their type: True equals 1, and "inf" is a text.
    """
    if type(value) is str:  # nearly all are
        return value
    if isinstance(value, np.generic):
        return label_of(value.item())
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        return f"{value} ({type(value).__name__})"
    if type(value).__name__ == "Interval":
        return _interval(value)
    return value if isinstance(value, (str, int, float)) else str(value)


def _interval(value: Any) -> str:
    """An interval of pandas: one of whole numbers reads the same where a missing one has made all ends floats."""
    ends = (whole.plain(end) if isinstance(end, float) else end for end in (value.left, value.right))
    low, high = map(str, ends)
    return f"{'[' if value.closed_left else '('}{low}, {high}{']' if value.closed_right else ')'}"
