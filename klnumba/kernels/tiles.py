"""What every loop over rows shares: the sizes, the buffers, the sums.

The order of every addition depends on the length of the row alone: not on the
threads, the neighbours, the alignment or the width of registers. Rows longer
than `CHUNK` are cut there first, so that several threads can share one row. A tile
of `TILE` cells goes into a buffer in the first-level cache. `add_all`, for the
careful loops over whole rows (`kernels.exact`, `kernels.logs`), adds it up in
`LANES` lanes that keep their rounding errors; `total` and `vector_sum`, for the
others, in pairs, these in pairs, and so on. The totals of the tiles are
double-doubles. `kernels.fast` has its own blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from klnumba.formulas.elementary import two_sum
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.instructions import prefetch
from klnumba.kernels.lanes import LANES, add_with_rest, on_stack, tree_sum

TILE = 512
CHUNK = 1 << 18
SMALL = 16  # a tile of fewer than `STEP` cells runs a multiple of this
STEP = 64  # every loop over cells runs a multiple of this: one machine code for a cell, and no tail loop
SPARE = 2 * STEP  # room for what is kept lane by lane: `STEP` maxima, or as many sums and what they lost

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

assert SMALL == LANES  # `add_all` takes as many at a time as `padded` fills up to

_two_sum = scalar(two_sum)
_two_vectors = on_stack(2, FLOAT)
_sum_of_2, _sum_of_4, _sum_of_8, _sum_of_16, _sum_of_32, _sum_of_64, _sum_of_128 = (
    tree_sum(2**k, FLOAT) for k in range(1, 8)
)


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


@helper
def vector_sum(cells: Any) -> Any:
    """The sum in float64 of a few cells, in an order that follows from their number alone.

    A block of a power of two is added in pairs, these in pairs and so on: what is alike is added up with few roundings,
    which would all go the same way. Of the blocks the last ones, which are the smallest, come first.
    """
    at, rest = cells.size, 0.0
    if at & 1:
        at -= 1
        rest = np.float64(cells[at])
    if at & 2:
        at -= 2
        rest += _sum_of_2(cells, at)
    if at & 4:
        at -= 4
        rest += _sum_of_4(cells, at)
    if at & 8:
        at -= 8
        rest += _sum_of_8(cells, at)
    if at & 16:
        at -= 16
        rest += _sum_of_16(cells, at)
    if at & 32:
        at -= 32
        rest += _sum_of_32(cells, at)
    if at & 64:
        at -= 64
        rest += _sum_of_64(cells, at)
    whole = 0.0
    for start in range(0, at, 128):
        whole += _sum_of_128(cells, start)
    return whole + rest


@helper
def total(cells: Any, start: Any, count: Any) -> Any:
    """The sum of `count` cells from `start` on, as `vector_sum`."""
    return vector_sum(cells[start : start + count])


@helper
def add(state: Any, i: Any, x: Any) -> None:
    """state[i] + state[i + 1], a double-double, plus x."""
    s, e = _two_sum(state[i], x)
    state[i] = s
    state[i + 1] += e


@helper
def add_lanes(state: Any, i: Any, high: Any, low: Any) -> None:
    """state[i] + state[i + 1] plus all numbers of `high`, a power of two, and of `low`, what these have lost."""
    half = high.size // 2
    while half > 0:
        for k in range(half):
            s, e = _two_sum(high[k], high[half + k])
            high[k] = s
            low[k] += low[half + k] + e
        half //= 2
    add(state, i, high[0])
    if abs(high[0]) < np.inf:
        add(state, i, low[0])


@helper
def add_all(state: Any, i: Any, cells: Any, start: Any, count: Any) -> None:
    """state[i] + state[i + 1] plus `count` cells from `start` on, a multiple of `SMALL`, and what sums of them lose."""
    sums = _two_vectors()
    sums[:] = 0.0
    for first in range(start, start + count, LANES):
        add_with_rest(sums, cells, first)
    add_lanes(state, i, sums[:LANES], sums[LANES:])


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
