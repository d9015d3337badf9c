"""What every loop over rows shares: the sizes, the buffers, the sums.

On one machine the order of every addition depends on the length of the row
alone: not on the threads, the neighbours or the alignment. Rows longer than
`CHUNK` are cut there first, so that several threads can share one row. The
exact loops cut a row into tiles of `TILE` cells; the cells of a tile go into a
buffer in the first-level cache and are added in fours and then over a vector;
the totals of the tiles are added with their rounding errors kept
(double-double). `kernels.fast` has its own blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from klnumba.formulas.elementary import two_sum
from klnumba.kernels.compiler import helper, part, reordering, scalar
from klnumba.kernels.instructions import frozen, prefetch

TILE = 512
CHUNK = 1 << 18
TREE = TILE // 4  # the longest buffer of `total`
SMALL = 16  # a tile of fewer than `STEP` cells runs a multiple of this
WHOLE = 128  # of so many cells the sixteens come to whole vectors
STEP = 64  # every loop over cells runs a multiple of this: one machine code for a cell, and no tail loop

# The scratch of one thread: five buffers of a tile, and float64 numbers for sums and states. A read-only view of the
# buffers goes along with them, so that a buffer and the caller's read-only array have one type.
BUFFER = TILE + STEP
SCRATCH = 5 * BUFFER
SPACE = 9 * TILE

FLOAT = types.float64
INT = types.int64
FLAGS = types.Array(types.int8, 1, "C")
VALUES = types.Array(types.float64, 1, "C")
STATES = types.Array(types.float64, 2, "C")
INDEX = types.Array(types.int64, 1, "C", readonly=True)

_two_sum = scalar(two_sum)


@part
def ask(x: Any, y: Any, first: Any, count: Any, line: Any) -> None:
    """Ask for `count` cells of both from `first` on, `line` to a cache line.

    By itself a processor does so within a page of memory at most. A core has few places for lines on their way: loops
    over cells ask for as much as they take in, `STEP` cells or fewer, since asked for a whole tile at once the core
    waits, if less than where it is told nothing.

    A part, though several loops have it: LLVM left a call of it in the midst of a loop over cells.
    """
    for k in range(first, first + count, line):
        prefetch(x, k)
        prefetch(y, k)


def cells_of(dtype: Any) -> Any:
    """The type of the caller's cells."""
    return types.Array(types.float64 if dtype == np.float64 else types.float32, 1, "C", readonly=True)


def buffer_of(dtype: Any) -> Any:
    return types.Array(types.float64 if dtype == np.float64 else types.float32, 1, "C")


def room_of(dtype: Any) -> tuple[Any, Any, Any]:
    """The types of `threads.scratch`."""
    return buffer_of(dtype), cells_of(dtype), VALUES


@helper
def copy(source: Any, start: Any, count: Any, target: Any, at: Any) -> None:
    part = source[start : start + count]
    place = target[at : at + count]
    for k in range(count):
        place[k] = part[k]


@helper
def fill(target: Any, at: Any, count: Any, value: Any) -> None:
    place = target[at : at + count]
    for k in range(count):
        place[k] = value


@part
def padded(count: Any) -> Any:
    """A number of cells brought to a multiple of `STEP` (`SMALL` for a few)."""
    step = STEP if count > STEP else SMALL
    return (count + step - 1) // step * step


@helper
def pad(source: Any, start: Any, count: Any, target: Any, at: Any, value: Any) -> Any:
    """Copy `count` cells and fill with `value` up to their padded number, which is returned."""
    copy(source, start, count, target, at)
    whole = padded(count)
    fill(target, at + count, whole - count, value)
    return whole


@helper
def side_by_side(a: Any, start: Any, step: Any, rows: Any, d: Any, target: Any, at: Any) -> None:
    """Copy rows of `d` cells that start every `step` cells."""
    if step == d:
        copy(a, start, rows * d, target, at)
    else:
        for r in range(rows):
            copy(a, start + r * step, d, target, at + r * d)


@helper
def listed(a: Any, start: Any, step: Any, rows: Any, d: Any, target: Any, at: Any) -> None:
    """Copy the rows of `d` cells that are listed, in rising order, of those that start every `step` cells."""
    count = rows.size
    if rows[count - 1] - rows[0] == count - 1:
        side_by_side(a, start + rows[0] * step, step, count, d, target, at)
    else:
        for r in range(count):
            copy(a, start + rows[r] * step, d, target, at + r * d)


@reordering
def vector_sum(cells: Any) -> Any:
    """The sum in float64 of a few cells, spread over a vector: the order follows their number and the processor."""
    s = first = second = 0.0
    whole = cells.size // 32 * 32
    rest = cells[whole:]
    half = rest.size // 2
    for k in range(whole):
        s += np.float64(cells[k])
    for k in range(half):
        first += np.float64(rest[k])
        second += np.float64(rest[half + k])
    if rest.size > 2 * half:
        second += np.float64(rest[2 * half])
    return s + (first + second)


@helper
def _four(cells: Any, k: Any, h: Any) -> Any:
    """Of cells[k], and three more every `h` cells."""
    return np.float64((cells[k] + cells[k + h]) + (cells[k + 2 * h] + cells[k + 3 * h]))


@reordering
def sum_of_sixteens(cells: Any) -> Any:
    """The sum in float64 of a multiple of `WHOLE` cells.

    They are added in fours and in fours of these, so that the sums of alike cells are exact and few roundings follow
    on each other where one cell is nearly all.
    """
    s = 0.0
    h = cells.size // 16
    a, b, c, e = cells[0 : 4 * h], cells[4 * h : 8 * h], cells[8 * h : 12 * h], cells[12 * h : 16 * h]
    for k in range(h):
        s += (_four(a, k, h) + _four(b, k, h)) + (_four(c, k, h) + _four(e, k, h))
    return s


@helper
def total(cells: Any, start: Any, count: Any, tree: Any) -> Any:
    """The sum of `count` cells, padded by `pad`: in fours, then over a vector.

    Float32 cells are added in fours, and those sums in float64.
    """
    if count < STEP:
        return vector_sum(cells[start : start + count])
    h = count // 4
    a = cells[start : start + h]
    b = cells[start + h : start + 2 * h]
    c = cells[start + 2 * h : start + 3 * h]
    e = cells[start + 3 * h : start + 4 * h]
    for k in range(h):
        tree[k] = (a[k] + b[k]) + (c[k] + e[k])
    return vector_sum(frozen(tree)[0:h])


@helper
def add(state: Any, i: Any, x: Any) -> None:
    """state[i] + state[i + 1], a double-double, plus x."""
    s, e = _two_sum(state[i], x)
    state[i] = s
    state[i + 1] += e


@helper
def raise_to(state: Any, i: Any, cells: Any, start: Any, count: Any) -> None:
    """state[i] becomes the largest of itself and `count` cells; a NaN wins."""
    part = cells[start : start + count]
    top = state[i]
    for k in range(count):
        top = part[k] if part[k] > top or part[k] != part[k] else top
    state[i] = top


def combine(states: np.ndarray, largest: int | None = None) -> np.ndarray:
    """Add up the states of the pieces of a row in their order: three double-doubles and a count.

    Of column `largest`, if any, the result is the largest.
    """
    out = states[0].copy()
    for state in states[1:]:
        for i in range(0, out.size - 1, 2):
            hi, lo = two_sum(float(out[i]), float(state[i]))
            out[i], out[i + 1] = two_sum(hi, lo + (float(out[i + 1]) + float(state[i + 1])))
            if not np.isfinite(hi):
                out[i], out[i + 1] = hi, 0.0
        out[-1] += state[-1]
    if largest is not None:
        out[largest : largest + 2] = states[:, largest].max(), 0.0
    return out
