"""Sources that are objects of the caller's: arrays, what can be sliced, iterators of batches."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from klnumba.labelled import cells_of
from klnumba.scoring.archives import chosen
from klnumba.scoring.errors import InputError, needs
from klnumba.scoring.source import BATCH, Array, Source, Stream, numbers

TOGETHER = 10  # chunks that Zarr reads at a time


class Held(Source):
    """An array in memory."""

    copies = 0.0  # it is there already

    def __init__(self, array: Any, name: str) -> None:
        found = cells_of(array, name)
        self.array = found if found.ndim else found.reshape(1)
        super().__init__(name, self.array.dtype, self.array.shape)
        names = tuple(getattr(array, "columns", ()))
        self.columns = names if names and all(isinstance(one, str) for one in names) else None

    def read(self, start: int, stop: int) -> Array:
        return self.array[start:stop]

    def identity(self) -> Any:
        step, sum_of_all = max(1, BATCH // max(self.row_bytes, 1)), 0
        for first in range(0, len(self.array), step):
            part = self.array[first : first + step]
            sum_of_all = zlib.crc32(np.ascontiguousarray(part).tobytes(), sum_of_all)
            if isinstance(part, np.ma.MaskedArray):
                sum_of_all = zlib.crc32(np.ma.getmaskarray(part).tobytes(), sum_of_all)
        return {"shape": self.shape, "dtype": str(self.dtype), "sum": sum_of_all}

    def flatten(self, axes: int) -> Source | None:
        if not self.array.flags.c_contiguous:
            return None
        return Held(self.array.reshape(-1, *self.array.shape[axes:]), self.name) if self.array.size else None

    def turn(self, axes: int) -> Source | None:
        lengths = [math.prod(part) for part in (self.array.shape[:axes], self.array.shape[axes:])]
        return Held(self.array.reshape(lengths).T, self.name) if self.array.flags.c_contiguous else None


class Sliced(Source):
    """Something with a shape and a dtype that gives rows for a slice: arrays of Zarr and Dask, data sets of HDF5."""

    copies = 3.0  # chunks as they are stored, decoded, and the rows put together

    def __init__(self, item: Any, name: str, path: Path | None = None) -> None:
        if any(n != n for n in item.shape):  # of Dask, where only the work will tell
            raise InputError(
                f"{name}: shape {tuple(item.shape)}, of unknown length; let Dask compute_chunk_sizes() first"
            )
        super().__init__(name, numbers(np.dtype(item.dtype), name), tuple(item.shape))
        self.item, self.path = item, path
        chunks = getattr(item, "shards", None) or getattr(item, "chunks", None)
        chunks = [one[0] if isinstance(one, tuple) else one for one in chunks or ()]  # Dask's have a length each
        self.grain = int(chunks[0]) if chunks else 1
        self._chunk = math.prod(chunks) * self.dtype.itemsize if chunks else 0

    @property
    def resident(self) -> int:
        """Of the chunks that are decoded side by side, the stored and the decoded bytes."""
        return 2 * min(TOGETHER * self._chunk, self.grain * self.row_bytes)

    def read(self, start: int, stop: int) -> Array:
        try:
            found = np.asarray(self.item[start:stop])
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(f"{self.name}: rows {start:,} to {stop:,} of shape {self.row_shape}: {error}") from error
        if found.dtype.kind == "O":  # such as a sparse matrix, which NumPy does not know
            what = type(self.item).__name__
            raise InputError(
                f"{self.name}: a slice of {what} is no array of numbers; give {self.name} as a dense array"
            )
        return found

    def identity(self) -> Any:
        about: dict[str, Any] = {"shape": self.shape, "dtype": str(self.dtype)}
        if self.path is not None:
            found = [path.stat() for path in sorted(self.path.rglob("*")) if path.is_file()]
            about |= {"file": self.name, "files": len(found), "bytes": sum(one.st_size for one in found)}
            about |= {"changed": max((one.st_mtime_ns for one in found), default=0)}
        return about

    def files(self) -> list[Path]:
        return [] if self.path is None else [self.path]


def open_zarr(path: Path, member: str | None = None) -> Sliced:
    """Open an array of a Zarr store, or the only array of a group."""
    with needs("zarr"):
        import zarr
    try:
        found = zarr.open(str(path), mode="r")
        names = sorted(name for name, _ in found.arrays()) if isinstance(found, zarr.Group) else []
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:  # Zarr trusts the JSON that it finds
        raise InputError(f"{path}: not a Zarr store: {error}") from error
    if isinstance(found, zarr.Group):
        name = chosen(path, member, names)
        return Sliced(found[name], f"{path}:{name}", path)
    if member is not None:
        raise InputError(f"{path}: is one array, and holds none called {member!r}")
    return Sliced(found, str(path), path)


class Batches(Stream):
    """An iterator of batches, which can be read once; how many rows there are shows at its end."""

    copies = 2.0
    again = False
    reuses = True

    def __init__(self, batches: Iterable[Any], name: str) -> None:
        self._ahead = iter(batches)
        self._first: Array | None = self._checked(next(self._ahead, None), name)
        super().__init__(name, self._first.dtype, (None, *self._first.shape[1:]))

    def _checked(self, batch: Any, name: str) -> Array:
        if batch is None:
            raise InputError(f"{name}: an iterator without batches")
        array = cells_of(batch, name)
        if array.ndim == 0:
            raise InputError(f"{name}: a batch without rows: shape ()")
        return array

    def _batches(self, start: int) -> Iterator[Array]:
        if self._first is None:
            raise InputError(f"{self.name}: an iterator is read once, and row {start} has gone by")
        first, self._first = self._first, None
        at = 0
        for batch in self._and(first):
            if batch.shape[1:] != self.row_shape or batch.dtype != self.dtype:
                raise InputError(
                    f"{self.name}: the batch at row {at} has shape {batch.shape} {batch.dtype}, "
                    f"the first had rows of shape {self.row_shape} {self.dtype}"
                )
            if at + len(batch) > start:
                yield batch[max(0, start - at) :]
            at += len(batch)

    def _and(self, first: Array) -> Iterator[Array]:
        yield first
        for batch in self._ahead:
            yield self._checked(batch, self.name)

    def identity(self) -> Any:
        return {"rows": self.row_shape, "dtype": str(self.dtype)}
