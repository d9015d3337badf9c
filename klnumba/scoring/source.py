"""What every source of rows offers, whatever it is made of."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from klnumba.scoring.errors import InputError, needs

Array = npt.NDArray[Any]
BATCH = 8 << 20  # bytes of rows that a stream reads at a time at most
LEAST_BATCH = 64 << 10  # and at least, but for rows that are longer
BATCHES = 32  # batches for which a limit on memory had room


class Source(ABC):
    """Rows along the first axis, read a part at a time.

    Attributes
    ----------
    name : str
        What error texts call it.
    shape : tuple
        The shape of the whole; the first length is None where it is known at the end only.
    dtype : numpy.dtype
        Of every part.
    columns : tuple of str or None
        Names of the cells of a row, where the file has them.
    grain : int
        Rows that lie together, so that parts had better end at multiples of it.
    copies : float
        Bytes that the process holds while it reads, for each byte of the part.
    again : bool
        Whether rows can be read more than once.
    begin : int
        The number of the first row, of a part of something larger.
    """

    columns: tuple[str, ...] | None = None
    grain = 1
    copies = 1.0
    again = True
    begin = 0

    def __init__(self, name: str, dtype: np.dtype[Any], shape: tuple[int | None, ...]) -> None:
        self.name, self.dtype, self.shape = name, dtype, shape

    @property
    def rows(self) -> int | None:
        """How many rows there are; None where only the end will tell."""
        return self.shape[0] if self.shape else 1

    @property
    def row_shape(self) -> tuple[int, ...]:
        return tuple(int(n or 0) for n in self.shape[1:])

    @property
    def row_bytes(self) -> int:
        return math.prod(self.row_shape) * self.dtype.itemsize

    @property
    def resident(self) -> int:
        """Bytes that reading holds, however small the part."""
        return 0

    @property
    def holding(self) -> int:
        """Those of them that are held now, from one part to the next."""
        return 0

    @abstractmethod
    def read(self, start: int, stop: int) -> Array:
        """Rows start:stop, or fewer where the source ends; no one may write to them."""

    def within(self, limit: int) -> None:  # noqa: B027 - most sources hold nothing beside the part
        """No more than `limit` bytes of memory are left for the work: read less at a time."""

    def expect(self, start: int, stop: int) -> None:  # noqa: B027 - a hint, which a source need not take
        """Rows start:stop will be read next."""

    def forget(self) -> None:  # noqa: B027 - most sources keep nothing
        """Drop what is kept of the rows that were read last."""

    def count(self) -> int:
        """How many rows there are, if need be by reading them."""
        assert self.rows is not None
        return self.rows

    @abstractmethod
    def identity(self) -> Any:
        """What tells this content from another, fit for JSON: work on one is not continued on the other."""

    def files(self) -> list[Path]:
        """The files that are read."""
        return []

    def flatten(self, axes: int) -> Source | None:
        """The same with the first `axes` axes as one, or None where its parts do not lie so."""
        return None

    def turn(self, axes: int) -> Source | None:
        """The same with the first `axes` axes last, as two axes, or None where its numbers do not lie so already."""
        return None

    def close(self) -> None:  # noqa: B027 - most sources hold nothing open
        """Let go of open files; another `read` opens them again."""


class Stream(Source):
    """A source that is read from the front: batches as they come, cut to the parts that are asked for."""

    copies = 3.0
    reuses = False  # whether the next batch may lie where the last one did

    def __init__(self, name: str, dtype: np.dtype[Any], shape: tuple[int | None, ...]) -> None:
        super().__init__(name, dtype, shape)
        self._batch, self._held = BATCH, 0
        self._coming: Iterator[Array] | None = None
        self._rest: Array | None = None
        self._at = 0

    @abstractmethod
    def _batches(self, start: int) -> Iterator[Array]:
        """The rows from row `start` on, in batches of any length."""

    def read(self, start: int, stop: int) -> Array:
        if self._coming is None or start != self._at:
            self._coming, self._rest, self._at = self._batches(start), None, start
        parts: list[Array] = []
        while self._at < stop:
            batch = self._rest if self._rest is not None else next(self._coming, None)
            if batch is None:
                break
            self._held = batch.nbytes if self._rest is None else self._held
            part = batch[: stop - self._at]
            self._rest = batch[len(part) :] if len(part) < len(batch) else None
            self._at += len(part)
            parts.append(part.copy() if self.reuses and self._at < stop else part)
        if not parts:
            return np.empty((0, *self.row_shape), self.dtype)
        return parts[0] if len(parts) == 1 else _joined(parts)

    def count(self) -> int:
        rows = sum(len(batch) for batch in self._batches(0)) if self.rows is None else self.rows
        self.close()
        return rows

    def within(self, limit: int) -> None:
        self._batch = min(BATCH, max(LEAST_BATCH, limit // BATCHES))

    @property
    def holding(self) -> int:
        return 0 if self._rest is None else self._held

    def batch_rows(self) -> int:
        return max(1, self._batch // max(self.row_bytes, 1))

    def batch_bytes(self) -> int:
        """Bytes that the process holds while a batch of `batch_rows` is read."""
        return int(self.copies * min(self.batch_rows(), self.most_rows()) * self.row_bytes)

    def most_rows(self) -> float:
        """No fewer rows than there are."""
        return math.inf if self.rows is None else self.rows

    def close(self) -> None:
        self._coming, self._rest = None, None


def _joined(parts: list[Array]) -> Array:
    """Rows of several batches; NumPy's own function would lose what is masked."""
    if not any(isinstance(part, np.ma.MaskedArray) for part in parts):
        return np.concatenate(parts)
    found: Array = np.ma.concatenate(parts)  # type: ignore[no-untyped-call]
    return found


def unmasked(rows: Array, name: str) -> Array:
    """The rows, if none of their cells is masked in a way that would be lost."""
    if isinstance(rows, np.ma.MaskedArray):
        raise InputError(f"{name}: a masked array, whose mask cannot be heeded here")
    return rows


def file_identity(path: Path) -> dict[str, Any]:
    """Size and time of change of a file."""
    found = path.stat()
    return {"file": os.fspath(path), "bytes": found.st_size, "changed": found.st_mtime_ns}


def numbers(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """The dtype, if it is of real numbers; two bytes without a type are bfloat16, which is how NumPy saves it."""
    if dtype.kind == "V" and dtype.itemsize == 2 and dtype.names is None:
        return bfloat16()
    if dtype.kind not in "fiub" and dtype.name != "bfloat16":
        what = "Python objects" if dtype.kind == "O" else f"dtype {dtype}"
        raise InputError(f"{name}: holds {what}, not real numbers")
    return dtype


def bfloat16() -> np.dtype[Any]:
    """The dtype, which NumPy has from another package."""
    with needs("bfloat16"):
        import ml_dtypes
    found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return found
