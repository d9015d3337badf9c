"""Cells as they lie in memory: one at a time, or 16 bytes at once.

Float16 and bfloat16 cells come as 16-bit integers, and are read as the float32 numbers that their bits stand for.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.kernels.cuda.target import address, half, load, load_at, piece, two_at, wide_load

# What an array of each dtype is to a kernel, and what its cells are computed in.
STORED = {"float64": "float64", "float32": "float32", "float16": "uint16", "bfloat16": "uint16"}
COMPUTED = {"float64": "float64", "float32": "float32", "float16": "float32", "bfloat16": "float32"}
GROUP = {"float64": 4, "float32": 4, "float16": 8, "bfloat16": 8}  # cells that a thread takes at a time
LINE = 16  # bytes of a wide load


@dataclass(frozen=True)
class Reader:
    """How the cells of one dtype are read."""

    one: Any  # (array, index): a cell, as a number that is computed with
    at: Any  # (array, index, offset): the same; the address of the index is computed once in a loop over offsets
    two: Any  # (apart): what reads, of (array, index, offset), that cell and the one so far behind it
    fetch: Any  # (array, index, offset): the words of a group, from an address that 16 bytes divide
    numbers: Any  # (words): the cells of a group
    narrow: Any  # (array, index): the cells of a group from any address
    aligned: Any  # (array, index): whether such an address begins there


@piece
def _same(x: Any) -> Any:
    return x


@piece
def _from_bfloat16(bits: Any) -> Any:
    return np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32)


@piece
def _low_bfloat16(word: Any) -> Any:
    return np.uint32(word << np.uint32(16)).view(np.float32)


@piece
def _high_bfloat16(word: Any) -> Any:
    return np.uint32(word & np.uint32(0xFFFF0000)).view(np.float32)


@piece
def _low_half(word: Any) -> Any:
    return half(np.uint16(word & np.uint32(0xFFFF)))


@piece
def _high_half(word: Any) -> Any:
    return half(np.uint16(word >> np.uint32(16)))


@functools.cache
def reader(dtype: str) -> Reader:
    number = {"float16": half, "bfloat16": _from_bfloat16}.get(dtype, _same)
    group, item = GROUP[dtype], np.dtype(STORED[dtype]).itemsize
    once = LINE // item
    some = wide_load(once)
    low, high = (_low_half, _high_half) if dtype == "float16" else (_low_bfloat16, _high_bfloat16)

    @piece
    def one(array: Any, index: Any) -> Any:
        return number(load(array, index))

    @piece
    def at(array: Any, index: Any, offset: Any) -> Any:
        return number(load_at(array, index, offset))

    def two(apart: int) -> Any:
        both = two_at(apart)

        @piece
        def read(array: Any, index: Any, offset: Any) -> Any:
            x, y = both(array, index, offset)
            return number(x), number(y)

        return read

    if group == once == 8:
        fetch = some

        @piece
        def numbers(w: Any) -> Any:
            return (
                low(w[0]), high(w[0]), low(w[1]), high(w[1]), low(w[2]), high(w[2]), low(w[3]), high(w[3]),
            )  # fmt: skip

        @piece
        def narrow(array: Any, index: Any) -> Any:
            return (
                one(array, index), one(array, index + 1), one(array, index + 2), one(array, index + 3),
                one(array, index + 4), one(array, index + 5), one(array, index + 6), one(array, index + 7),
            )  # fmt: skip

    else:

        @piece
        def fetch(array: Any, index: Any, offset: Any) -> Any:
            if once == 4:
                return some(array, index, offset)
            a, b = some(array, index, offset), some(array, index, np.int32(offset + 2))
            return a[0], a[1], b[0], b[1]

        numbers = _same

        @piece
        def narrow(array: Any, index: Any) -> Any:
            return one(array, index), one(array, index + 1), one(array, index + 2), one(array, index + 3)

    @piece
    def aligned(array: Any, index: Any) -> Any:
        return (address(array) + index * item) & (LINE - 1) == 0

    return Reader(one, at, two, fetch, numbers, narrow, aligned)
