"""The values of all rows, one after the other: in one growing buffer, or in a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_LEAST = 1024
_HEADER_BYTES = 128  # room for the longest shape; NumPy aligns headers to 64


class Buffer:
    """Values in memory, in a buffer that doubles; -0.0 becomes 0.0."""

    path = None

    def __init__(self) -> None:
        self._room, self.size = np.empty(0), 0

    def append(self, values: Array) -> None:
        needed = self.size + values.size
        if needed > self._room.size:
            room = np.empty(max(_LEAST, 2 * self._room.size, needed))
            room[: self.size] = self._room[: self.size]
            self._room = room
        np.add(values, 0.0, out=self._room[self.size : needed])
        self.size = needed

    def values(self) -> Array:
        """A copy of all values."""
        return self._room[: self.size].copy()

    def hold(self, values: Array) -> None:
        """These values, in place of those that are here."""
        self.__init__()  # type: ignore[misc]
        self.append(values)


class Spill:
    """Values in an .npy file, which is whole after every append: the header, written last, counts what is there.

    -0.0 becomes 0.0.

    Parameters
    ----------
    path : path-like
        A new file, ending in .npy; one that exists is refused.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        if self.path.suffix != ".npy":
            raise ValueError(f"spill: a file that ends in .npy, not {self.path.name!r}")
        try:
            self.path.open("xb").close()
        except FileExistsError:
            raise ValueError(f"spill: {self.path} exists") from None
        self.size, self._process = 0, os.getpid()
        self.append(np.empty(0))

    def append(self, values: Array) -> None:
        """Values behind those that count, and then a header that counts them too."""
        self._check_process()
        with self.path.open("r+b") as file:
            file.seek(_HEADER_BYTES + 8 * self.size)
            file.write(_bytes(values))
            file.flush()
            file.seek(0)
            file.write(_header(self.size + values.size))
        self.size += values.size

    def values(self) -> Array:
        """All values, mapped from the file and read-only."""
        if not self.size:
            return np.empty(0)
        found: Array = np.load(self.path, mmap_mode="r")
        return found

    def _check_process(self) -> None:
        """A forked process has the metric too, and would write where its parent writes."""
        if os.getpid() != self._process:
            raise RuntimeError(
                f"spill: {self.path} is the file of another process; a clone() of the metric can be changed here"
            )

    def hold(self, values: Array) -> None:
        """These values, in place of those that are here; what was given out keeps the old file."""
        self._check_process()
        fresh = self.path.with_name(f".{self.path.name}.fresh")
        try:
            fresh.write_bytes(_header(values.size) + _bytes(values))
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
        fresh.replace(self.path)
        self.size = values.size


def _bytes(values: Array) -> bytes:
    return (values + 0.0).astype("<f8", copy=False).tobytes()


def _header(size: int) -> bytes:
    """The head of an .npy file, always of one length."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({size},), }}"
    length = _HEADER_BYTES - 10
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + text.ljust(length - 1).encode() + b"\n"
