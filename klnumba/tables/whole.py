"""Whole numbers beyond 2**53: float64 has the same value for several of them, so that they are counted as they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from klnumba.tables.cells import Array, Label

LIMIT = 2.0**53


def plain(value: Any) -> Label:
    """A whole number as an integer, an infinity as a text, for JSON has neither."""
    if isinstance(value, (int, np.integer)) or (isinstance(value, Decimal) and value == value.to_integral_value()):
        return int(value)
    number = float(value)
    if math.isinf(number):
        return str(number)
    return int(number) if number.is_integer() and abs(number) < LIMIT else number


def beyond(values: Iterable[Label]) -> bool:
    """Whether some are not held exactly by float64, or might not be."""
    return any(isinstance(value, (int, float)) and abs(value) >= LIMIT for value in values)


def kept(floats: Array, read: Callable[[], Sequence[Any] | Array]) -> Array:
    """Numbers as float64, or, where these may be rounded, as Python's numbers; None and NaN are missing."""
    large = np.isfinite(floats) & (np.abs(floats) >= LIMIT)
    if not large.any():
        return floats
    found = np.empty(floats.size, object)
    found[:] = read()
    found[np.isnan(floats)] = None
    return found


def distinct(raw: Array) -> dict[Label, int]:
    """How often each of some finite numbers occurs."""
    if raw.dtype.kind == "O":
        return dict(Counter(map(plain, raw)))
    found, counts = np.unique(raw, return_counts=True)
    return dict(zip(map(plain, found), counts.tolist(), strict=True))


def infinities(values: Array) -> dict[Label, int]:
    """How often each infinity occurs."""
    found = {plain(one): int((values == one).sum()) for one in (-math.inf, math.inf)}
    return {label: count for label, count in found.items() if count}
