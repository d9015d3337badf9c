"""Some rows of an array of numbers, copied a block at a time."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from klnumba.tables import turns
from klnumba.tables.cells import Array
from klnumba.tables.columns import BLOCK

LARGE = 1 << 20  # rows from which on columns are copied one at a time


class HeldRows:
    """The rows of an array that are kept, of another `dtype` if that is given.

    A slice, and `take` at increasing places, copy a block at a time; `numpy.asarray` copies all of them.
    """

    def __init__(self, values: Array, kept: Array, dtype: Any = None) -> None:
        self.values, self.kept = values, kept
        self.dtype = values.dtype if dtype is None else np.dtype(dtype)

    @cached_property
    def before(self) -> Array:
        """How many rows are kept before each block of the array, and before its end."""
        counts = [np.count_nonzero(self.kept[k : k + BLOCK]) for k in range(0, self.kept.size, BLOCK)]
        return np.append(0, np.cumsum(counts, dtype=np.int64))

    @property
    def size(self) -> int:
        """How many rows are kept."""
        return int(self.before[-1])

    def _of_blocks(self, first: int, last: int, rows: slice | Array) -> Array:
        """Some of the rows that are kept of some blocks."""
        around = slice(first * BLOCK, last * BLOCK)
        at = np.flatnonzero(self.kept[around])[rows]  # to take by these is quicker than by truth values
        return self.values[around].take(at).astype(self.dtype, copy=False)

    def __getitem__(self, rows: slice) -> Array:
        start, stop, _ = rows.indices(self.size)
        first, last = int(np.searchsorted(self.before, start, "right")) - 1, int(np.searchsorted(self.before, stop))
        return self._of_blocks(first, last, slice(start - self.before[first], stop - self.before[first]))

    def take(self, at: Array) -> Array:
        """The rows at some places, which increase."""
        cuts = [*pairwise(np.searchsorted(at, self.before))]
        parts = [self._of_blocks(k, k + 1, at[low:high] - self.before[k]) for k, (low, high) in enumerate(cuts)]
        return np.concatenate([np.empty(0, self.dtype), *parts])

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        in_turn(self.values.size)
        found: Array = self.values[self.kept]
        return found.astype(self.dtype if dtype is None else dtype, copy=False)


def in_turn(rows: int) -> None:
    """Wait before so many rows are copied, where several threads may do so."""
    if rows >= LARGE:
        turns.wait()
