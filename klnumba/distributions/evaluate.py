"""A compiled formula over broadcast parameters, a block at a time, on all threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from klnumba.formulas.quick import Slopes, quick_form
from klnumba.kernels import row_sums, threads
from klnumba.kernels.columns import BLOCK, columns_of, locked, rows_of_room, slopes_over, values_over
from klnumba.kernels.compiler import address_of
from klnumba.kernels.elementwise import over_columns, over_rows, slopes_over_columns, twofold_over_columns

SHARE = 1 << 15  # cells that a thread takes at a time, at most
BLOCK_OF_SUMS = 1 << 6  # the same where every cell is a sum over many terms
BLOCK_OF_ROWS = 1 << 16  # the same of rows, most of which are read where they lie
# The largest numbers that are no infinity when they are rounded to a dtype.
MOST = {np.dtype(np.float64): math.nextafter(math.inf, 0.0), np.dtype(np.float32): 2.0**128 - 2.0**103 - 2.0**75}


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
    loop, run = over_columns(formula, len(columns)), values_over(len(columns))
    address = address_of(loop)
    size = math.prod(shape)
    out = np.empty(size, dtype)
    wide, narrow = _by_dtype(out)
    cells, table = columns_of(columns, shape)
    rows = rows_of_room(len(columns))

    def part(start: int, end: int) -> None:
        if run(address, cells, table, start, threads.room(rows, BLOCK), wide[start:end], narrow[start:end]):
            _fail(loop, columns, shape)

    _in_shares(part, size)
    return out.reshape(shape)[()]


def _in_shares(part: Callable[[int, int], None], size: int, unit: int = BLOCK) -> None:
    """Call `part` from cell to cell on all threads, a few times on each, each time for some whole units."""
    used = threads.choose(None, size)
    share = max(min(SHARE, size // (4 * used)) // unit, 1) * unit

    def one(start: int) -> None:
        part(start, min(start + share, size))

    threads.run(one, threads.apart(range(0, size, share), used), used)


def _by_dtype(out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The array as one of float64 and as one of float32, of which the other is empty."""
    none = np.empty(0, np.float32 if out.dtype == np.float64 else np.float64)
    return (out, none) if out.dtype == np.float64 else (none, out)


def _fail(loop: Any, columns: Sequence[np.ndarray], shape: tuple[int, ...]) -> None:
    """Raise the error that a formula raises: a loop that is called at its address keeps it to itself."""
    wide = np.broadcast_arrays(*columns, np.empty(shape))[:-1]
    loop(tuple([locked(_numbers(column)) for column in wide]), np.empty(wide[0].size))
    raise RuntimeError("a formula raised an error, but not when it was called again with the same numbers")


def column_of_one(number: np.ndarray) -> np.ndarray:
    """A number as a column of `evaluate_one`."""
    return locked(number.astype(np.float64, copy=False).reshape(1))


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
    flat = [locked(_numbers(column)) for column in wide]
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
    address, run = address_of(slopes_over_columns(slopes, count)), slopes_over(count)
    wide, narrow = zip(*map(_by_dtype, found), strict=True)
    cells, table = columns_of([*columns, np.asarray(factors)], shape)
    most, rows = MOST[np.dtype(dtype)], rows_of_room(count)

    def part(start: int, end: int) -> None:
        room = threads.room(rows, BLOCK)
        into = tuple([x[start:end] for x in wide]), tuple([x[start:end] for x in narrow])
        if run(address, cells, table, start, least, most, room, *into, left[start:end]):
            raise RuntimeError(f"{slopes.__name__} raised an error")

    _in_shares(part, size)
    return found, np.flatnonzero(left)


def sums_of_others(rows: np.ndarray) -> np.ndarray:
    """Of every float64 number the sum of the other ones along the last axis."""
    flat, width = locked(_numbers(rows)), max(rows.shape[-1], 1)
    out, loop = np.empty(flat.size), row_sums.sums_of_others()

    def part(start: int, end: int) -> None:
        loop(flat[start:end], width, out[start:end])

    _in_shares(part, flat.size, width)
    return out.reshape(rows.shape)


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
        loop(tuple(locked(_numbers(row)) for row in taken), steps, widths, out[start:stop], np.empty(room))

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
