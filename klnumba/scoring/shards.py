"""One source made of many, one after the other: the files of a folder, of a pattern, of a list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from klnumba.scoring.errors import InputError
from klnumba.scoring.source import Array, Source


class Shards(Source):
    """The rows of several sources, in their order."""

    def __init__(self, parts: Sequence[Source], name: str) -> None:
        first = parts[0]
        for part in parts[1:]:
            if (part.row_shape, part.dtype, part.columns) != (first.row_shape, first.dtype, first.columns):
                renamed = part.row_shape == first.row_shape and part.columns != first.columns
                raise InputError(
                    f"{part.name}: rows of shape {part.row_shape} {part.dtype}, but {first.name} has "
                    f"{first.row_shape} {first.dtype}{' under other names' if renamed else ''}"
                )
        self.parts = parts
        self.lengths = [part.rows for part in parts]
        known = [length for length in self.lengths if length is not None]
        rows = sum(known) if len(known) == len(parts) else None
        super().__init__(name, first.dtype, (rows, *first.shape[1:]))
        self.columns, self.grain = first.columns, max(part.grain for part in parts)
        self.copies = 1.0 + max(part.copies for part in parts)
        self._open: Source | None = None
        self._at = 0  # the row behind the last one that was read

    @property
    def resident(self) -> int:
        return max(part.resident for part in self.parts)

    @property
    def holding(self) -> int:
        return 0 if self._open is None else self._open.holding

    def within(self, limit: int) -> None:
        for part in self.parts:
            part.within(limit)

    def _place(self, row: int) -> tuple[int, int] | None:
        """Which part holds a row, and the part's first row; None past the end."""
        first = 0
        for k, length in enumerate(self.lengths):
            if length is None and row != self._at:  # a jump: only a part that is read on may end where it will
                length = self.lengths[k] = self.parts[k].count()
            if length is None or row < first + length:
                return k, first
            first += length
        return None

    def read(self, start: int, stop: int) -> Array:
        found: list[Array] = []
        while start < stop and (place := self._place(start)) is not None:
            k, first = place
            length = self.lengths[k]
            end = stop if length is None else min(stop, first + length)
            rows = self._current(k).read(start - first, end - first)
            start = self._at = start + len(rows)
            if start < end:
                if length is not None:
                    raise InputError(f"{self.parts[k].name}: ends before row {length} of shape {self.row_shape}")
                self.lengths[k] = start - first
            if len(rows):
                found.append(rows)
        if not found:
            return np.empty((0, *self.row_shape), self.dtype)
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _current(self, k: int) -> Source:
        """Part k; the one that was read before is closed."""
        part = self.parts[k]
        if self._open is not part:
            self.close()
            self._open = part
        return part

    def expect(self, start: int, stop: int) -> None:
        place = self._place(start)
        if place is not None and self.parts[place[0]] is self._open:
            length = self.lengths[place[0]]
            end = stop - place[1] if length is None else min(stop - place[1], length)
            self._open.expect(start - place[1], end)

    def identity(self) -> Any:
        return [part.identity() for part in self.parts]

    def files(self) -> list[Path]:
        return [path for part in self.parts for path in part.files()]

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


def natural(path: Path) -> tuple[list[Any], str]:
    """A key that sorts part-2 before part-10, and part-02 before part-2; other digits than 0 to 9 are text."""
    return [int(text) if k % 2 else text for k, text in enumerate(re.split("([0-9]+)", str(path)))], str(path)
