"""A sample of rows that depends on their places alone, so that it is the same however the rows are cut into pieces."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from klnumba.tables.cells import Array
from klnumba.tables.columns import BLOCK, as_float
from klnumba.tables.hashing import mixed

SAMPLE = 1 << 17  # rows from which quantiles are taken, at most


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
