"""Kernels over single cells: copies in another layout, formulas of two numbers, and sums of results."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from klnumba.kernels.cpu import POINTWISE
from klnumba.kernels.cuda.cells import STORED, reader
from klnumba.kernels.cuda.target import SIMULATED, cuda, device, kernel, load, piece, shared, two_sum
from klnumba.kernels.cuda.team import team, value_of

THREADS = 8 if SIMULATED else 256
CELLS_OF_A_SUM = 64 if SIMULATED else 4096  # that a block adds up: how many depends on nothing


def _number(dtype: str) -> Any:
    """What reads one cell of any dtype; booleans come as bytes."""
    return reader(dtype).one if dtype in STORED else load


@piece
def place(i: Any, shape: Any, steps: Any) -> Any:
    """Where the i-th cell of a shape lies."""
    at = np.int64(0)
    for k in range(len(shape) - 1, -1, -1):
        at += i % shape[k] * steps[k]
        i //= shape[k]
    return at


@functools.cache
def copy(source: str, target: str, masked: bool, raw: bool) -> Any:
    """Cells of any layout, side by side, as another dtype; where the mask says no, `fill`. `raw` keeps the bits."""
    one = load if raw else _number(source)
    real = np.dtype(STORED[target]).type

    def copied(a: Any, start: Any, shape: Any, steps: Any, mask: Any, mask_start: Any, mask_steps: Any, fill: Any,
               out: Any) -> None:  # fmt: skip
        for i in range(np.int64(cuda.grid(1)), out.size, np.int64(cuda.gridsize(1))):
            held = True
            if masked:
                held = load(mask, mask_start + place(i, shape, mask_steps)) != 0
            out[i] = real(one(a, start + place(i, shape, steps))) if held else real(fill)

    return kernel(copied, f"copy-{source}-{target}-{int(masked)}{int(raw)}", THREADS)


@functools.cache
def pointwise(name: str, first: str, second: str, masked: bool) -> Any:
    """A formula of two numbers over `over`; an operand whose step is 0 is one number for all.

    Where the mask says no, `out` keeps what it holds.
    """
    x_of, y_of, formula = _number(first), _number(second), device(POINTWISE[name])

    def cells(x: Any, xs: Any, y: Any, ys: Any, over: Any, mask: Any, start: Any, shape: Any, steps: Any,
              out: Any) -> None:  # fmt: skip
        for i in range(np.int64(cuda.grid(1)), out.size, np.int64(cuda.gridsize(1))):
            held = True
            if masked:
                held = load(mask, start + place(i, shape, steps)) != 0
            if held:
                out[i] = formula(np.float64(x_of(x, i * xs)), np.float64(y_of(y, i * ys))) / over

    return kernel(cells, f"{name}-{first}-{second}-{int(masked)}", THREADS)


@functools.cache
def pointwise_sums(name: str, first: str, second: str) -> Any:
    """The sums of pieces of the cells of `pointwise`, as double-doubles."""
    x_of, y_of, formula = _number(first), _number(second), device(POINTWISE[name])
    together = team(THREADS, THREADS)
    add, shared_room = together.add, shared(together.size)

    def sums(x: Any, xs: Any, y: Any, ys: Any, count: Any, out: Any, out_low: Any) -> None:
        room = shared_room()
        me = np.int64(cuda.threadIdx.x)
        for b in range(np.int64(cuda.blockIdx.x), out.size, np.int64(cuda.gridDim.x)):
            start = b * CELLS_OF_A_SUM
            hi = lo = 0.0
            for i in range(start + me, min(start + CELLS_OF_A_SUM, count), THREADS):
                hi, e = two_sum(hi, formula(np.float64(x_of(x, i * xs)), np.float64(y_of(y, i * ys))))
                lo += e
            hi, lo = add(hi, lo, room)
            if me == 0:
                out[b], out_low[b] = hi, lo if abs(hi) < np.inf else 0.0

    return kernel(sums, f"{name}-sums-{first}-{second}", THREADS)


@functools.cache
def filled() -> Any:
    """One value for all."""

    def fill(value: Any, out: Any) -> None:
        for i in range(np.int64(cuda.grid(1)), out.size, np.int64(cuda.gridsize(1))):
            out[i] = value

    return kernel(fill, "filled", THREADS)


@functools.cache
def partial_sums(first: bool) -> Any:
    """The sums of pieces of a float64 array, as double-doubles: each block adds up `CELLS_OF_A_SUM` cells.

    The `first` level has no low parts to add; `low` is then any array.
    """
    together = team(THREADS, THREADS)
    add, shared_room = together.add, shared(together.size)

    def sums(x: Any, low: Any, out: Any, out_low: Any) -> None:
        room = shared_room()
        me = np.int64(cuda.threadIdx.x)
        for b in range(np.int64(cuda.blockIdx.x), out.size, np.int64(cuda.gridDim.x)):
            start = b * CELLS_OF_A_SUM
            hi = lo = 0.0
            for i in range(start + me, min(start + CELLS_OF_A_SUM, x.size), THREADS):
                hi, e = two_sum(hi, x[i])
                lo += e if first else e + low[i]
            hi, lo = add(hi, lo, room)
            if me == 0:
                out[b], out_low[b] = hi, lo if abs(hi) < np.inf else 0.0

    return kernel(sums, f"partial-sums-{int(first)}", THREADS)


@functools.cache
def quotient() -> Any:
    """A double-double over a number: how the mean or the sum of a call ends."""

    def divided(hi: Any, lo: Any, over: Any, out: Any) -> None:
        if cuda.grid(1) == 0:
            out[0] = value_of(hi[0], lo[0]) / over

    return kernel(divided, "quotient", THREADS)
