"""A sample of rows that depends on their places alone, so that it is the same however the rows are cut into pieces."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from klnumba.tables import whole
from klnumba.tables.cells import Array
from klnumba.tables.columns import BLOCK, as_float, finer
from klnumba.tables.hashing import mixed

SAMPLE = 1 << 17  # rows from which quantiles are taken, at most
FINEST = 2.0**43  # microseconds, up to which a float64 tells nanoseconds apart
MERGED = 1e-3  # of the rows may share their float64 with another value, where numbers are cut into bins


def level_of(rows: int) -> int:
    """Of so many rows, one in 2**level is taken."""
    return max(0, math.ceil(math.log2(rows / SAMPLE))) if rows > SAMPLE else 0


def places(start: int, stop: int, level: int) -> Array:
    """The rows of a sample from start to stop: those whose place, well mixed, ends in `level` zero bits."""
    if not level:
        return np.arange(start, stop)
    mask = np.uint64((1 << level) - 1)
    found = []
    for first in range(start, stop, BLOCK):
        here = np.arange(first, min(first + BLOCK, stop), dtype=np.uint64)
        found.append(here[(mixed(here) & mask) == 0].astype(np.int64))
    return np.concatenate(found) if found else np.empty(0, np.int64)


_places = functools.lru_cache(maxsize=64)(places)  # the columns of one table have the same rows


class Part(NamedTuple):
    """The part of a sample that comes from the rows from start to stop: the numbers at their `places`."""

    start: int
    stop: int
    level: int
    values: Array


@dataclass
class Sample:
    """The sample of a column, piece by piece."""

    level: int = 0
    parts: list[Part] = field(default_factory=list)

    @property
    def latest(self) -> Array:
        """The part of the last piece."""
        return self.parts[-1].values

    def take(self, raw: Array, start: int, stop: int, exact: bool) -> None:
        """Add the part of a piece, as it is or as float64, and thin what was taken before."""
        level = level_of(stop)
        self._thin(level)
        at = _places(start, stop, level)
        taken = raw[:] if at.size == raw.size else raw.take(at - start)
        self.parts.append(Part(start, stop, level, taken if exact else as_float(taken)))

    def join(self, other: Sample, rows: int) -> None:
        """Add the sample of what comes after, taken elsewhere; of both together, there are so many rows."""
        self.parts += other.parts
        self._thin(level_of(rows), force=True)

    def of(self, rows: int) -> list[Array]:
        """The sample of so many rows, part by part."""
        self._thin(level_of(rows))
        return [one.values for one in self.parts]

    def _thin(self, level: int, *, force: bool = False) -> None:
        """Keep those rows that are in the sample of this level."""
        if level > self.level or force:
            mask = np.uint64((1 << level) - 1)
            for k, one in enumerate(self.parts):
                at = _places(one.start, one.stop, one.level)
                kept = (mixed(at.astype(np.uint64)) & mask) == 0
                self.parts[k] = Part(one.start, one.stop, max(level, one.level), one.values[kept])
            self.level = level


def exact(raw: Array, low: float, high: float) -> bool:
    """Whether a sample of a column with these extremes has to be kept as it is, for float64 may round it."""
    if raw.dtype.kind in "mM":
        return max(high, -low) >= (FINEST if finer(raw.dtype) else whole.LIMIT)
    return raw.dtype.kind in "iuO" and max(high, -low) >= whole.LIMIT


def blurred(parts: Sequence[Array]) -> bool:
    """Whether float64 takes different values of a sample for the same, so that bins would not see what changes."""
    units = {part.dtype for part in parts if part.dtype.kind in "mM"}
    if units:  # each by itself: those of one unit may have no place in another
        return any(_merged(np.concatenate([part for part in parts if part.dtype == unit])) for unit in units)
    if all(part.dtype.kind == "f" for part in parts):
        return False
    alike = len({part.dtype for part in parts}) == 1
    return _merged(np.concatenate(parts if alike else [part.astype(object) for part in parts]))


def _merged(together: Array) -> bool:
    """Whether too many rows share their float64 with another value."""
    values, counts = np.unique(together[np.isfinite(as_float(together))], return_counts=True)
    floats = as_float(values)
    twins = floats[1:] == floats[:-1]
    merged = np.zeros(values.size, bool)
    merged[1:] |= twins
    merged[:-1] |= twins
    return bool(counts[merged].sum() > MERGED * counts.sum())
