"""Columns of numbers as they lie, float32 or float64 and broadcast, brought to a loop of `kernels.elementwise`.

That loop, compiled for each formula, takes float64 cells side by side. Here blocks of such are made of what there is,
and the loop is called at its address: one compiled text serves all formulas of as many numbers, and a thread does its
share of a call in one go, without a look at the interpreter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import types

from klnumba.kernels.compiler import helper, loop, once, part
from klnumba.kernels.instructions import called_at, frozen
from klnumba.kernels.tiles import FLAGS, FLOAT, INT, VALUES

BLOCK = 1 << 12  # cells of a column at a time: those of all columns stay in the cache of a processor

PLAIN = (np.dtype(np.float32), np.dtype(np.float64))

BYTES = types.Array(types.uint8, 1, "C", readonly=True)
TABLE = types.Array(INT, 2, "C", readonly=True)
NARROW = types.Array(types.float32, 1, "C")


class Columns(NamedTuple):
    """The bytes of each column, and a table of where in them a cell is.

    The table has a row for the sizes of the axes and one a column: whether it is of float32, and the steps from cell to
    cell along these axes.
    """

    cells: tuple[np.ndarray, ...]
    table: np.ndarray


def columns_of(columns: Sequence[np.ndarray], shape: tuple[int, ...]) -> Columns:
    """Numbers that broadcast to a shape; copied only where they are of another dtype or lie in another order."""
    flat = [_side_by_side(column) for column in columns]
    narrow = [column.dtype == np.float32 for column in flat]
    if all(column.size == 1 or column.shape == shape for column in flat):
        axes = [[math.prod(shape), *[int(column.size > 1) for column in flat]]]
    else:
        steps = [_steps(column, shape) for column in flat]
        sizes = [[size, *own] for size, *own in zip(shape, *steps, strict=True) if size != 1]
        axes = _merged(sizes)
    table = np.array([[0, *narrow], *axes], np.int64).T.copy()
    return Columns(tuple([locked(column.reshape(-1).view(np.uint8)) for column in flat]), locked(table))


def _side_by_side(column: np.ndarray) -> np.ndarray:
    """The numbers float32 or float64, contiguous; one alone, where all are the same in memory."""
    if column.size > 1 and not any(column.strides):
        column = column[(0,) * column.ndim]
    return np.ascontiguousarray(column, None if column.dtype in PLAIN else np.float64)


def _steps(flat: np.ndarray, shape: tuple[int, ...]) -> list[int]:
    """How many cells a contiguous array goes on along each axis of the shape to which it broadcasts."""
    if flat.size == 1:
        return [0] * len(shape)
    own = [0 if n == 1 else step // flat.itemsize for n, step in zip(flat.shape, flat.strides, strict=True)]
    return [0] * (len(shape) - flat.ndim) + own


def _merged(axes: list[list[int]]) -> list[list[int]]:
    """Axes as one where all columns walk along them as along one."""
    found: list[list[int]] = []
    for size, *own in axes:
        if found and found[-1][1:] == [size * step for step in own]:
            found[-1] = [found[-1][0] * size, *own]
        else:
            found.append([size, *own])
    return found


def locked(array: np.ndarray) -> np.ndarray:
    """An array that is not to be written to: so the loops take it."""
    array.flags.writeable = False
    return array


@helper
def spread(source: Any, steps: Any, sizes: Any, start: Any, out: Any) -> None:
    """The cells from `start` on of an array as it broadcasts: from axis to axis `steps` apart, `sizes` of them."""
    last = sizes.size - 1
    inner, step = sizes[last], steps[last]
    k = 0
    while k < out.size:
        row = (start + k) // inner
        first = (start + k) - row * inner
        place = first * step
        for axis in range(last - 1, -1, -1):
            outer = row // sizes[axis]
            place += (row - outer * sizes[axis]) * steps[axis]
            row = outer
        count = min(inner - first, out.size - k)
        cells = out[k : k + count]
        if step == 1:
            run = source[place : place + count]
            for i in range(count):
                cells[i] = run[i]
        else:
            for i in range(count):
                cells[i] = source[place + i * step]
        k += count


@helper
def fill(cells: Any, told: Any, sizes: Any, start: Any, out: Any) -> None:
    """The cells of a column, of either dtype."""
    if told[0] != 0:
        spread(cells.view(np.float32), told[1:], sizes, start, out)
    else:
        spread(cells.view(np.float64), told[1:], sizes, start, out)


@helper
def is_side_by_side(told: Any) -> Any:
    """Whether cells are read where they lie: float64, one after the other."""
    return told[0] == 0 and told.size == 2 and told[1] == 1


def filled(count: int) -> Any:
    """What puts the cells of so many columns that are not read where they lie into their rows of room.

    The columns are taken in a loop: written out one by one, they would take many times as long to compile.
    """

    @part
    def fill_all(columns: Any, table: Any, start: Any, first: Any, size: Any, room: Any) -> None:
        sizes = table[0, 1:]
        for i in range(count):
            told = table[i + 1]
            one = sizes.size == 1 and told[1] == 0  # a number in the place of all stays there from block to block
            if not (is_side_by_side(told) or (one and first > 0)):
                fill(columns[i], told, sizes, start + first, room[i, :size])

    return fill_all


@part
def cells_at(cells: Any, told: Any, start: Any, row: Any) -> Any:
    """A view of a column from `start` on, or of the row of room that has its cells."""
    return cells.view(np.float64)[start : start + row.size] if is_side_by_side(told) else frozen(row)


def all_taken(count: int) -> Any:
    """From `start` on `size` cells of each column, as a tuple: views of the columns, or of the rows of room."""
    if count == 0:

        @part
        def none(columns: Any, table: Any, start: Any, size: Any, room: Any) -> Any:
            return ()

        return none
    before, last = all_taken(count - 1), count - 1

    @part
    def taken(columns: Any, table: Any, start: Any, size: Any, room: Any) -> Any:
        own = cells_at(columns[last], table[count], start, room[last, :size])
        return (*before(columns, table, start, size, room), own)

    return taken


@part
def narrowed(cells: Any, out: Any) -> None:
    """Numbers as float32."""
    for k in range(out.size):
        out[k] = np.float32(cells[k])


def values_loop(count: int) -> Callable[..., Any]:
    """The results of a formula from the cell `start` on, float64 or float32: one of `wide` and `narrow` is empty.

    It says whether the formula has raised an error, and then ends.
    """
    fill_all, columns_at = filled(count), all_taken(count)

    def values(
        address: Any, columns: Any, table: Any, start: Any, room: Any, wide: Any, narrow: Any
    ) -> Any:  # fmt: skip
        whole = max(wide.size, narrow.size)
        for first in range(0, whole, BLOCK):
            size = min(BLOCK, whole - first)
            fill_all(columns, table, start, first, size, room)
            cells = columns_at(columns, table, start + first, size, room)
            out = wide[first : first + size] if wide.size else room[count, :size]
            if called_at(address, (cells, out)) != 0:
                return True
            if narrow.size:
                narrowed(out, narrow[first : first + size])
        return False

    return values


@once
def values_over(count: int) -> Any:
    """The compiled loop of formulas of so many numbers."""
    columns = types.UniTuple(BYTES, count)
    signature = types.boolean(INT, columns, TABLE, INT, types.Array(types.float64, 2, "C"), VALUES, NARROW)
    return loop(f"values-over-{count}", values_loop(count), signature)


def rows_for(count: int) -> Any:
    """Where so many columns of results go: to their places where these are float64, else to rows of room from 0 on."""
    if count == 0:

        @part
        def none(wide: Any, first: Any, size: Any, room: Any) -> Any:
            return ()

        return none
    before, last = rows_for(count - 1), count - 1

    @part
    def rows(wide: Any, first: Any, size: Any, room: Any) -> Any:
        own = wide[last][first : first + size] if wide[last].size else room[last, :size]
        return (*before(wide, first, size, room), own)

    return rows


def slopes_loop(count: int) -> Callable[..., Any]:
    """The same of the derivatives by `count` numbers, times the numbers of one more column, the last.

    What is not wanted is empty in both `wide` and `narrow`.
    """
    fill_all, columns_at, rows_at, further = filled(count + 1), all_taken(count), rows_for(count), count + 1

    def slopes(
        address: Any, columns: Any, table: Any, start: Any, least: Any, most: Any, room: Any, wide: Any, narrow: Any,
        left: Any,
    ) -> Any:  # fmt: skip
        for first in range(0, left.size, BLOCK):
            size = min(BLOCK, left.size - first)
            fill_all(columns, table, start, first, size, room)
            cells = columns_at(columns, table, start + first, size, room)
            factors = cells_at(columns[count], table[further], start + first, room[count, :size])
            out = rows_at(wide, first, size, room[further:])
            if called_at(address, (cells, factors, least, most, out, left[first : first + size])) != 0:
                return True
            for i in range(count):
                if narrow[i].size:
                    narrowed(out[i], narrow[i][first : first + size])
        return False

    return slopes


@once
def slopes_over(count: int) -> Any:
    """The compiled loop of the derivatives by so many numbers."""
    columns, room = types.UniTuple(BYTES, count + 1), types.Array(types.float64, 2, "C")
    outs = types.UniTuple(VALUES, count), types.UniTuple(NARROW, count)
    signature = types.boolean(INT, columns, TABLE, INT, FLOAT, FLOAT, room, *outs, FLAGS)
    return loop(f"slopes-over-{count}", slopes_loop(count), signature)


def rows_of_room(count: int) -> int:
    """How many rows of `BLOCK` cells of room a loop over so many numbers takes, of derivatives too."""
    return 2 * count + 1
