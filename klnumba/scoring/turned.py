"""Rows that lie along the first axis: each step is a strip of a few of them, brought together from the whole file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from klnumba.scoring.source import Array, Source

WINDOW = 8 << 20  # bytes that are looked at at a time


class Turned(Source):
    """A source with its first axes last. To read a strip takes a pass over the source, which is read again each time.

    The shape has two axes: all that came after the first ones, and those.
    """

    def __init__(self, source: Source, axes: int) -> None:
        self.source, self.inner = source, math.prod(source.row_shape[: axes - 1])
        cells = int(source.rows or 0) * self.inner
        super().__init__(source.name, source.dtype, (math.prod(source.row_shape[axes - 1 :]), cells))

    @property
    def resident(self) -> int:
        return self.source.resident + int(self.source.copies * max(WINDOW, self.source.row_bytes))

    @property
    def holding(self) -> int:
        return self.source.holding

    def read(self, start: int, stop: int) -> Array:
        stop = min(stop, int(self.rows or 0))
        found: Array = np.empty((max(stop - start, 0), *self.row_shape), self.dtype)
        step = max(1, WINDOW // max(self.source.row_bytes, 1))
        for first in range(0, int(self.source.rows or 0), step):
            part = self.source.read(first, first + step)
            cells = part.reshape(len(part) * self.inner, int(self.rows or 0))
            if isinstance(part, np.ma.MaskedArray) and not isinstance(found, np.ma.MaskedArray):
                found = np.ma.array(found, mask=np.zeros(found.shape, bool))
            found[:, first * self.inner : first * self.inner + len(cells)] = cells[:, start:stop].T
        return found

    def identity(self) -> Any:
        return self.source.identity()

    def files(self) -> list[Path]:
        return self.source.files()

    def close(self) -> None:
        self.source.close()


def turned(source: Source, axes: int) -> Source | None:
    """The source with its first axes last, as two axes; None where it is read once only, or has an unknown end."""
    if source.rows is None or not source.again:
        return None
    return source.turn(axes) or Turned(source, axes)
