"""A compiled formula over broadcast parameters, a block at a time, on all threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from klnumba.formulas.quick import Slopes, quick_form
from klnumba.kernels import row_sums, threads
from klnumba.kernels.elementwise import over_columns, over_rows, slopes_over_columns, spread_of, twofold_over_columns

BLOCK = 1 << 15  # cells that a thread takes at a time: a few columns of them stay in its cache
BLOCK_OF_SUMS = 1 << 6  # the same where every cell is a sum over many terms
BLOCK_OF_SLOPES = 1 << 13  # the same where each parameter has a column of results
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
    slopes: Callable[..., Slopes], columns: Sequence[np.ndarray], shape: tuple[int, ...], factors: Any, least: float,
    dtype: Any = np.float64, wanted: Sequence[bool] | None = None,
) -> tuple[list[np.ndarray], np.ndarray]:  # fmt: skip
    """Quick slopes times a factor a cell, and the cells that these do not serve.

    An array for each column, of no cells where its slopes are not wanted.
    """
    size, count = math.prod(shape), len(columns)
    found = [np.empty(size if want else 0, dtype) for want in wanted or [True] * count]
    left = np.empty(size, np.int8)
    loop = slopes_over_columns(slopes, count)
    pieces = [_pieces(column, shape, size) for column in (*columns, np.asarray(factors))]

    def part(start: int) -> None:
        stop = min(start + BLOCK_OF_SLOPES, size)
        *cut, scale = (piece(start, stop) for piece in pieces)
        room = np.empty((count, stop - start))
        out = [
            row[start:stop] if row.size and row.dtype == np.float64 else spare
            for row, spare in zip(found, room, strict=True)
        ]
        loop(tuple(cut), scale, least, tuple(out), left[start:stop])
        with np.errstate(over="ignore", under="ignore"):  # beyond the range of float32
            for row, made in zip(found, out, strict=True):
                if row.size and row.dtype != np.float64:
                    row[start:stop] = made

    threads.run(part, range(0, size, BLOCK_OF_SLOPES), threads.choose(None, size))
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
    if column.size == 1 or (column.size and not any(column.strides)):
        constant = _locked(np.full(min(size, BLOCK), column[(0,) * column.ndim], np.float64))
        return lambda start, stop: constant[: stop - start]
    if column.shape == shape and column.flags.c_contiguous:
        flat = column.reshape(-1)
        if flat.dtype == np.float64:
            flat = _locked(flat.view())
            return lambda start, stop: flat[start:stop]
        return lambda start, stop: _locked(flat[start:stop].astype(np.float64))
    return _spread(column, shape)


def _spread(column: np.ndarray, shape: tuple[int, ...]) -> Callable[[int, int], np.ndarray]:
    """The same of a column of several numbers, each of which stands in several cells."""
    kind = "float32" if column.dtype == np.float32 else "float64"
    flat = np.ascontiguousarray(column, kind)
    own = [0 if n == 1 else step // flat.itemsize for n, step in zip(flat.shape, flat.strides, strict=True)]
    sizes, steps = _merged(shape, [0] * (len(shape) - flat.ndim) + own)
    source, loop = _locked(flat.reshape(-1).view()), spread_of(kind)

    def piece(start: int, stop: int) -> np.ndarray:
        out = np.empty(stop - start)
        loop(source, steps, sizes, start, out)
        return _locked(out)

    return piece


def _merged(shape: tuple[int, ...], steps: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """The sizes of the axes and the steps along them, those that are walked like one axis made one."""
    found: list[list[int]] = []
    for size, step in zip(shape, steps, strict=True):
        if size == 1:
            continue
        if found and found[-1][1] == size * step:
            found[-1] = [found[-1][0] * size, step]
        else:
            found.append([size, step])
    sizes, kept = np.array(found or [[1, 0]]).T
    return np.ascontiguousarray(sizes), np.ascontiguousarray(kept)


def _locked(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
