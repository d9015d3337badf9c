"""Kernels over single cells: copies in another layout, and formulas of two numbers."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from klnumba.kernels.cpu import POINTWISE
from klnumba.kernels.cuda.cells import STORED, reader
from klnumba.kernels.cuda.target import SIMULATED, cuda, device, kernel, load, piece

THREADS = 8 if SIMULATED else 256


def number_of(dtype: str) -> Any:
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
    one = load if raw else number_of(source)
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
    x_of, y_of, formula = number_of(first), number_of(second), device(POINTWISE[name])

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
def filled() -> Any:
    """One value for all."""

    def fill(value: Any, out: Any) -> None:
        for i in range(np.int64(cuda.grid(1)), out.size, np.int64(cuda.gridsize(1))):
            out[i] = value

    return kernel(fill, "filled", THREADS)
