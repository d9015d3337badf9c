"""Sums to the last digit, rounded once as those of the CPU: exact integers, which no order changes.

A thread takes some cells at a time. Added to a large power of two, a cell leaves its leading bits in the last bits of
the sum (see `kernels.accumulate`); these add up as integers, which then go into the fixed-point number of the block,
and those of the blocks into one. The block that ends last makes a float64 of it.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from klnumba.kernels.cpu import POINTWISE
from klnumba.kernels.cuda.flat import THREADS, number_of
from klnumba.kernels.cuda.limbs import LIMBS, add, carry, magnitude, put, rounded
from klnumba.kernels.cuda.target import SIMULATED, cuda, device, kernel, load, piece, shared

TILE = 3 if SIMULATED else 16  # cells of a thread at a time
CELLS = THREADS * TILE
PLUS, MINUS, NOT_A_NUMBER = range(LIMBS, LIMBS + 3)  # of the state: how many cells were infinite or NaN
TICKETS = LIMBS + 3  # and how many blocks are done
STATE = LIMBS + 4
MOST = 2.0**480  # cells above are added one by one
LEAST = 2.0**-1023  # below, an anchor is the least there is, whose last bit is that of the subnormal numbers


@piece
def kind_of(x: Any) -> Any:
    """Where a cell that is not finite is counted."""
    return NOT_A_NUMBER if x != x else PLUS if x > 0.0 else MINUS


@piece
def swept(cells: Any, top: Any, limbs: Any) -> None:
    """Add cells, which are used up, to a number; the largest is not above `top`."""
    while top > 0.0:
        exponent = magnitude(top)[1] + 54 if top >= LEAST else -1022
        anchor = np.int64((np.int64(exponent) + 1023) << 52 | np.int64(1 << 51)).view(np.float64)
        origin = np.float64(anchor).view(np.int64)
        count, top = np.int64(0), 0.0
        for k in range(TILE):
            moved = cells[k] + anchor
            count += np.float64(moved).view(np.int64) - origin
            cells[k] -= moved - anchor
            top = max(top, abs(cells[k]))
        sign = np.int64(1) if count >= 0 else np.int64(-1)
        put(limbs, 0, sign * count, exponent - 52, sign)


@piece
def one_by_one(cells: Any, limbs: Any) -> None:
    for k in range(TILE):
        m, e = magnitude(cells[k])
        put(limbs, 0, m, e, np.int64(1) if cells[k] >= 0.0 else np.int64(-1))


@piece
def value_of(state: Any, over: Any) -> Any:
    """The sum over a number: that of the cells that are not finite, where there are some."""
    if state[NOT_A_NUMBER] != 0 or (state[PLUS] != 0 and state[MINUS] != 0):
        return math.nan
    if state[PLUS] != 0 or state[MINUS] != 0:
        return math.inf if state[PLUS] != 0 else -math.inf
    return rounded(state, over)


def exact(label: str, term: Any) -> Any:
    """The sum of term(x, xs, y, ys, i) over `count` i, over the integer `over`; `state` holds zeros."""
    shared_room = shared(STATE, integers=True)

    def sums(x: Any, xs: Any, y: Any, ys: Any, count: Any, over: Any, state: Any, out: Any) -> None:
        room, cells = shared_room(), cuda.local.array(TILE, np.float64)
        me = np.int64(cuda.threadIdx.x)
        for k in range(me, STATE, THREADS):
            room[k] = 0
        cuda.syncthreads()
        for start in range(np.int64(cuda.blockIdx.x) * CELLS, count, np.int64(cuda.gridDim.x) * CELLS):
            top = 0.0
            for k in range(TILE):
                i = start + k * THREADS + me
                value = term(x, xs, y, ys, i) if i < count else 0.0
                if not abs(value) < math.inf:
                    add(room, kind_of(value), 1)
                    value = 0.0
                cells[k] = value
                top = max(top, abs(value))
            if top <= MOST:
                swept(cells, top, room)
            else:
                one_by_one(cells, room)
        cuda.syncthreads()
        if me == 0:
            carry(room, 0)
        cuda.syncthreads()
        for k in range(me, TICKETS, THREADS):
            add(state, k, room[k])
        cuda.threadfence()
        cuda.syncthreads()
        if me == 0:
            room[TICKETS] = cuda.atomic.add(state, TICKETS, 1)
            cuda.threadfence()
        cuda.syncthreads()
        if room[TICKETS] == cuda.gridDim.x - 1:
            for k in range(me, TICKETS, THREADS):
                room[k] = state[k]
            cuda.syncthreads()
            if me == 0:
                out[0] = value_of(room, over)

    return kernel(sums, label, THREADS)


@functools.cache
def of_values() -> Any:
    """The sum of an array of float64."""

    @piece
    def term(x: Any, xs: Any, y: Any, ys: Any, i: Any) -> Any:
        return load(x, i * xs)

    return exact("sum-of-values", term)


@functools.cache
def of_cells(name: str, first: str, second: str) -> Any:
    """The sum of the cells of `flat.pointwise`."""
    x_of, y_of, formula = number_of(first), number_of(second), device(POINTWISE[name])

    @piece
    def term(x: Any, xs: Any, y: Any, ys: Any, i: Any) -> Any:
        return formula(np.float64(x_of(x, i * xs)), np.float64(y_of(y, i * ys)))

    return exact(f"{name}-sum-{first}-{second}", term)
