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
MERGED = 1e-3  # of the rows may share their float64 with another whole number, where numbers are cut into bins


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


def exact(raw: Array, low: float, high: float) -> bool:
    """Whether a column with these extremes has to be counted as it is."""
    return raw.dtype.kind in "iuO" and max(high, -low) >= LIMIT


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


def blurred(parts: Sequence[Array]) -> bool:
    """Whether float64 takes different numbers of a sample for the same, so that bins would not see what changes."""
    if all(part.dtype.kind == "f" for part in parts):
        return False
    alike = len({part.dtype for part in parts}) == 1
    together = np.concatenate(parts if alike else [part.astype(object) for part in parts])
    values, counts = np.unique(together[np.isfinite(together.astype(np.float64))], return_counts=True)
    floats = values.astype(np.float64)
    twins = floats[1:] == floats[:-1]
    merged = np.zeros(values.size, bool)
    merged[1:] |= twins
    merged[:-1] |= twins
    return bool(counts[merged].sum() > MERGED * counts.sum())
