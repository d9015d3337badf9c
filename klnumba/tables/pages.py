"""Zeros in pages of their own, which go back to the system as soon as nobody holds them."""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np

from klnumba.tables.cells import Array

LARGE = 1 << 20  # bytes; of fewer, the allocator keeps what is freed for the next


def zeros(shape: int | tuple[int, ...], dtype: Any) -> Array:
    """An array of zeros.

    Of up to 32 MiB, glibc's allocator keeps most of what was freed, so that a table that grows would leave all of its
    former sizes behind. Pages that are never written to take no memory.
    """
    size = math.prod(np.atleast_1d(shape).tolist()) * np.dtype(dtype).itemsize
    if size < LARGE or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(shape, dtype)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)  # as NumPy does: a table is read all over
    return np.frombuffer(pages, dtype).reshape(shape)
