"""Arrays that lie in a file as they lie in memory, read through windows, so that little of them is ever resident."""

from __future__ import annotations

import math
import mmap
import os
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from klnumba.scoring.errors import InputError
from klnumba.scoring.source import Array, Source, file_identity, numbers


class Mapped(Source):
    """An array at `offset` of a file. A part is a map of its own, which goes when the part goes."""

    def __init__(
        self, path: Path, name: str, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int, *, fortran: bool = False
    ) -> None:
        super().__init__(name, numbers(dtype, name), shape)
        self.path, self.offset, self.fortran = path, offset, fortran and len(shape) > 1
        self.copies = 2.0 if self.fortran else 1.0
        self._open: int | None = None
        self._check_size(path.stat().st_size)

    @property
    def nbytes(self) -> int:
        return math.prod(int(n or 0) for n in self.shape) * self.dtype.itemsize

    def _check_size(self, size: int) -> None:
        missing = self.offset + self.nbytes - size
        if missing > 0:
            whole = max(0, size - self.offset) // max(self.row_bytes, 1)
            where = "" if self.fortran else f", after row {whole - 1}" if whole else ", before the first row ends"
            raise InputError(
                f"{self.name}: truncated: {missing:,} of {self.nbytes:,} bytes of shape {self.shape} "
                f"{self.dtype} are missing{where}"
            )

    def _descriptor(self) -> int:
        if self._open is None:
            self._open = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        return self._open

    def read(self, start: int, stop: int) -> Array:
        count = (stop if self.rows is None else min(stop, self.rows)) - start
        if count <= 0 or not self.row_bytes:
            return np.empty((max(count, 0), *self.row_shape), self.dtype)
        self._check_size(os.fstat(self._descriptor()).st_size)  # a map beyond the end would kill the process
        return self._strips(start, count) if self.fortran else self._window(start, count)

    def _window(self, start: int, count: int) -> Array:
        first = self.offset + start * self.row_bytes
        page = first - first % mmap.ALLOCATIONGRANULARITY
        length = first - page + count * self.row_bytes
        window = mmap.mmap(self._descriptor(), length, access=mmap.ACCESS_READ, offset=page)
        cells = math.prod(self.row_shape) * count
        return np.frombuffer(window, self.dtype, cells, first - page).reshape(count, *self.row_shape)

    def _strips(self, start: int, count: int) -> Array:
        """Rows of a file in Fortran order: of each cell, the numbers of these rows lie together."""
        item = self.dtype.itemsize
        strips = np.empty((math.prod(self.row_shape), count), self.dtype)
        raw = strips.view(np.uint8)
        with open(self._descriptor(), "rb", buffering=0, closefd=False) as file:
            for k in range(len(strips)):
                file.seek(self.offset + (k * int(self.rows or 0) + start) * item)
                if file.readinto(raw[k]) != count * item:
                    raise InputError(f"{self.name}: ends while it is read")
        return strips.reshape(*self.row_shape[::-1], count).T

    def expect(self, start: int, stop: int) -> None:
        if not self.fortran and hasattr(os, "posix_fadvise"):
            place = self.offset + start * self.row_bytes
            os.posix_fadvise(self._descriptor(), place, (stop - start) * self.row_bytes, os.POSIX_FADV_WILLNEED)

    def identity(self) -> Any:
        return file_identity(self.path) | {"offset": self.offset, "shape": self.shape, "dtype": str(self.dtype)}

    def files(self) -> list[Path]:
        return [self.path]

    def flatten(self, axes: int) -> Source | None:
        if self.fortran:
            return None
        lengths = [int(n or 0) for n in self.shape]
        shape = (math.prod(lengths[:axes]), *lengths[axes:])
        return Mapped(self.path, self.name, self.dtype, shape, self.offset)

    def turn(self, axes: int) -> Source | None:
        if not self.fortran or len(self.shape) > 2:
            return None
        return Mapped(self.path, self.name, self.dtype, tuple(int(n or 0) for n in self.shape[::-1]), self.offset)

    def close(self) -> None:
        if self._open is not None:
            os.close(self._open)
            self._open = None

    def __del__(self) -> None:
        if getattr(self, "_open", None) is not None:
            self.close()


def open_npy(path: Path, member: str | None = None) -> Mapped:
    """Open a .npy file."""
    with path.open("rb") as file:
        dtype, shape, fortran = npy_header(file, str(path))
        return Mapped(path, str(path), dtype, shape, file.tell(), fortran=fortran)


def npy_header(file: IO[bytes], name: str) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Read the header of an array in the .npy format: dtype, shape, and whether it is in Fortran order."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        version = np.lib.format.read_magic(file)
        if version not in readers:
            raise InputError(f"{name}: version {version} of the .npy format, which numbers do not need")
        shape, fortran, dtype = readers[version](file)
    except InputError:
        raise
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{name}: {error}") from error
    if any(isinstance(n, bool) or n < 0 for n in shape):
        raise InputError(f"{name}: shape {shape}, whose lengths are not whole numbers from 0 on")
    return numbers(dtype, name), shape, fortran


def remapped(array: np.memmap[Any, Any], name: str) -> Mapped | None:
    """A memory map of the caller's, to be read through windows of our own; None where it is no plain part of a file."""
    base = getattr(array, "_mmap", None)
    if base is None or array.filename is None or array.mode == "c" or not array.flags.c_contiguous:
        return None
    if not _mapped_from(Path(array.filename), array.ctypes.data):
        return None
    start = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY  # where the map begins in the file
    inside = array.ctypes.data - np.frombuffer(base, np.uint8).ctypes.data
    if array.mode != "r":
        array.flush()
    return Mapped(Path(array.filename), name, array.dtype, array.shape, start + inside)


def _mapped_from(path: Path, address: int) -> bool:
    """Whether what is mapped at an address is still the file of that name, which may be gone, or another one by now."""
    try:
        maps = Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines()
    except OSError:  # not Linux
        return path.exists()
    for line in maps:
        reach, *_, name = line.split(maxsplit=5)
        first, last = (int(end, 16) for end in reach.split("-"))
        if first <= address < last:
            return name == str(path.resolve())
    return False
