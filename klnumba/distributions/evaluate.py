"""A compiled formula over broadcast parameters, a block at a time, on all threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from klnumba.kernels import threads
from klnumba.kernels.elementwise import over_columns

BLOCK = 1 << 13  # cells that a thread takes at a time: a few columns of them stay in its cache


def evaluate(
    formula: Callable[..., float], columns: Sequence[np.ndarray], shape: tuple[int, ...], dtype: Any = np.float64
) -> Any:
    """formula(*columns), broadcast to `shape`; a scalar where that is ()."""
    loop = over_columns(formula, len(columns))
    if shape == () and dtype == np.float64:  # no blocks, no threads: a call costs what Numba's own costs
        one = np.empty(1)
        loop(tuple([_locked(column.astype(np.float64, copy=False).reshape(1)) for column in columns]), one)
        return one[0]
    size = math.prod(shape)
    out = np.empty(size)
    pieces = [_pieces(column, shape, size) for column in columns]

    def part(start: int) -> None:
        stop = min(start + BLOCK, size)
        loop(tuple(piece(start, stop) for piece in pieces), out[start:stop])

    threads.run(part, range(0, size, BLOCK), threads.choose(None, size))
    with np.errstate(over="ignore", under="ignore"):  # beyond the range of float32
        return out.reshape(shape).astype(dtype, copy=False)[()]


def _pieces(column: np.ndarray, shape: tuple[int, ...], size: int) -> Callable[[int, int], np.ndarray]:
    """What cuts a piece, contiguous, float64 and read-only, out of the column as it broadcasts."""
    if column.size == 1:
        constant = _locked(np.full(min(size, BLOCK), column.reshape(-1)[0], np.float64))
        return lambda start, stop: constant[: stop - start]
    if column.shape == shape and column.flags.c_contiguous:
        flat = column.reshape(-1)
        if flat.dtype == np.float64:
            flat = _locked(flat.view())
            return lambda start, stop: flat[start:stop]
        return lambda start, stop: _locked(flat[start:stop].astype(np.float64))
    wide = np.broadcast_to(column, shape)
    return lambda start, stop: _locked(wide.flat[start:stop].astype(np.float64))


def _locked(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
