"""A compiled formula over broadcast parameters, a block at a time, on all threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from klnumba.formulas.quick import quick_form
from klnumba.kernels import row_sums, threads
from klnumba.kernels.elementwise import over_columns, over_rows, slopes_over_columns, twofold_over_columns

BLOCK = 1 << 15  # cells that a thread takes at a time: a few columns of them stay in its cache
BLOCK_OF_SUMS = 1 << 6  # the same where every cell is a sum over many terms
BLOCK_OF_ROWS = 1 << 16  # the same of rows, most of which are read where they lie


def evaluate(
    formula: Callable[..., float],
    columns: Sequence[Any],
    shape: tuple[int, ...],
    dtype: Any = np.float64,
    unit: float = 1.0,
) -> Any:
    """formula(*columns) over `unit`, broadcast to `shape`; a scalar where that is ()."""
    if not all(isinstance(column, np.ndarray | np.generic) for column in columns):
        from klnumba.gpu.parameters import evaluate as on_device

        return on_device(formula, columns, shape, dtype, unit)
    found = _evaluate(formula, columns, shape, dtype)
    return found if unit == 1.0 else found / found.dtype.type(unit)


def _evaluate(formula: Callable[..., float], columns: Sequence[np.ndarray], shape: tuple[int, ...], dtype: Any) -> Any:
    if shape == () and dtype == np.float64:
        return evaluate_one(formula, tuple([column_of_one(column) for column in columns]))
    loop = over_columns(formula, len(columns))
    size = math.prod(shape)
    out = np.empty(size)
    pieces = [_pieces(column, shape, size) for column in columns]

    def part(start: int) -> None:
        stop = min(start + BLOCK, size)
        loop(tuple(piece(start, stop) for piece in pieces), out[start:stop])

    count = threads.choose(None, size)
    threads.run(part, threads.apart(range(0, size, BLOCK), count), count)
    with np.errstate(over="ignore", under="ignore"):  # beyond the range of float32
        return out.reshape(shape).astype(dtype, copy=False)[()]


def column_of_one(number: np.ndarray) -> np.ndarray:
    """A number as a column of `evaluate_one`."""
    return _locked(number.astype(np.float64, copy=False).reshape(1))


def evaluate_one(formula: Callable[..., float], columns: tuple[np.ndarray, ...]) -> Any:
    """The formula of one number a column: no blocks, no threads, a call costs what Numba's own costs."""
    one = np.empty(1)
    over_columns(formula, len(columns))(columns, one)
    return one[0]


def evaluate_twofold(
    formula: Callable[..., tuple[float, float]], columns: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The two numbers that a formula, a long sum, gives for each cell of broadcast columns."""
    wide = np.broadcast_arrays(*columns)
    flat = [_locked(_numbers(column)) for column in wide]
    found = np.empty((2, wide[0].size))
    loop = twofold_over_columns(formula, len(flat))

    def part(start: int) -> None:
        piece = slice(start, start + BLOCK_OF_SUMS)
        loop(tuple(column[piece] for column in flat), found[0, piece], found[1, piece])

    size = wide[0].size
    threads.run(part, range(0, size, BLOCK_OF_SUMS), threads.choose(None, size * BLOCK_OF_SUMS))
    high, low = found.reshape(2, *wide[0].shape)
    return high, low


def evaluate_slopes(
    formula: Callable[..., float], columns: Sequence[np.ndarray], shape: tuple[int, ...], factors: Any, least: float
) -> tuple[np.ndarray, np.ndarray]:
    """The quick slopes of a formula times a factor a cell, one row a column, and the cells that these do not serve."""
    size = math.prod(shape)
    found, left = np.empty((len(columns), size)), np.empty(size, np.int8)
    loop = slopes_over_columns(formula, len(columns))
    pieces = [_pieces(column, shape, size) for column in (*columns, np.asarray(factors, np.float64))]

    def part(start: int) -> None:
        stop = min(start + BLOCK, size)
        *cut, scale = (piece(start, stop) for piece in pieces)
        loop(tuple(cut), scale, least, tuple(row[start:stop] for row in found), left[start:stop])

    threads.run(part, range(0, size, BLOCK), threads.choose(None, size))
    return found, np.flatnonzero(left)


def evaluate_rows(
    formula: Callable[..., float],
    columns: Sequence[np.ndarray],
    event_dims: Sequence[int],
    shape: tuple[int, ...],
    dtype: Any = np.float64,
    room: int = 0,
) -> Any:
    """formula(room, *rows) for every distribution of a batch of shape `shape`.

    A row holds what one distribution has in a column: its last `event_dims` axes, as a vector. `room` numbers are the
    formula's to write to.
    """
    size = math.prod(shape)
    out = np.empty(size)
    rows = [_rows(column, dims, shape) for column, dims in zip(columns, event_dims, strict=True)]
    widths = np.array([row.shape[1] for row in rows])
    cells = max(int(widths.sum()), 1)
    block = max(1, BLOCK_OF_ROWS // cells)
    loop = over_rows(formula, len(rows))
    quick = quick_form(formula)
    room = row_sums.room_for(int(widths[0])) if quick else room

    def part(start: int) -> None:
        stop = min(start + block, size)
        taken = [row if len(row) == 1 and not quick else _of_all(row, size)[start:stop] for row in rows]
        steps = np.array([0 if len(row) < stop - start else row.shape[1] for row in taken])
        loop(tuple(_locked(_numbers(row)) for row in taken), steps, widths, out[start:stop], np.empty(room))

    threads.run(part, range(0, size, block), threads.choose(None, size * cells))
    with np.errstate(over="ignore", under="ignore"):  # beyond the range of float32
        return out.reshape(shape).astype(dtype, copy=False)[()]


def _rows(column: np.ndarray, event_dims: int, shape: tuple[int, ...]) -> np.ndarray:
    """One row a distribution; a single row where all have the same."""
    cut = column.ndim - event_dims
    width = math.prod(column.shape[cut:])
    if math.prod(column.shape[:cut]) == 1:
        return column.reshape(1, width)
    return np.broadcast_to(column, shape + column.shape[cut:]).reshape(math.prod(shape), width)


def _of_all(rows: np.ndarray, size: int) -> np.ndarray:
    """A row for each of so many distributions."""
    return np.broadcast_to(rows, (size, rows.shape[1]))


def _numbers(rows: np.ndarray) -> np.ndarray:
    """The rows one after the other, float64; a view where they lie so."""
    return np.ascontiguousarray(rows, np.float64).reshape(-1).view()


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
