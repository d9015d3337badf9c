"""Some rows of an array of numbers, copied a block at a time."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from klnumba.tables import turns
from klnumba.tables.cells import Array
from klnumba.tables.columns import BLOCK, Column, Numbers

LARGE = 1 << 20  # rows from which on columns are copied one at a time


class HeldRows:
    """The rows of an array that are kept: a slice copies these alone, and `numpy.asarray` all of them."""

    def __init__(self, values: Array, kept: Array) -> None:
        self.values, self.kept = values, kept
        self.dtype = values.dtype

    @cached_property
    def before(self) -> Array:
        """How many rows are kept before each block of the array, and before its end."""
        counts = [np.count_nonzero(self.kept[k : k + BLOCK]) for k in range(0, self.kept.size, BLOCK)]
        return np.append(0, np.cumsum(counts, dtype=np.int64))

    def __getitem__(self, rows: slice) -> Array:
        start, stop, _ = rows.indices(int(self.before[-1]))
        first = int(np.searchsorted(self.before, start, "right")) - 1
        around = slice(first * BLOCK, int(np.searchsorted(self.before, stop)) * BLOCK)
        start, stop = (row - int(self.before[first]) for row in (start, stop))
        found: Array = self.values[around][self.kept[around]][start:stop]
        return found

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        in_turn(self.values.size)
        found: Array = self.values[self.kept]
        return found if dtype is None else found.astype(dtype, copy=False)


def in_turn(rows: int) -> None:
    """Wait before so many rows are copied, where several threads may do so."""
    if rows >= LARGE:
        turns.wait()


def together(column: Column) -> Column:
    """A column whose rows are read all at once."""
    if not isinstance(column, Numbers):
        return column
    return replace(column, read=lambda: np.asarray(column.read()))
