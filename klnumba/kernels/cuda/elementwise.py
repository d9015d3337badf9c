"""A formula of any count of numbers over as many columns."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.kernels import compiler
from klnumba.kernels.cuda.flat import THREADS
from klnumba.kernels.cuda.target import cuda, device, kernel, load, piece


@functools.cache
def numbers_at(count: int) -> Any:
    """What reads the i-th number of each of the first `count` columns: those of one fewer, and one more."""
    if count == 0:

        @piece
        def none(columns: Any, steps: Any, i: Any) -> Any:
            return ()

        return none
    before, last = numbers_at(count - 1), count - 1

    @piece
    def numbers(columns: Any, steps: Any, i: Any) -> Any:
        return (*before(columns, steps, i), np.float64(load(columns[last], i * steps[last])))

    return numbers


@functools.cache
def over_columns(formula: Callable[..., float], count: int) -> Any:
    """From a tuple of columns, those with step 0 one number for all, to the values, over `unit`."""
    compiled, at = device(formula), numbers_at(count)

    def elementwise(columns: Any, steps: Any, unit: Any, out: Any) -> None:
        for i in range(np.int64(cuda.grid(1)), out.size, np.int64(cuda.gridsize(1))):
            # + 0.0: no result is -0.0
            out[i] = compiled(*at(columns, steps, i)) / unit + 0.0

    where = formula.__module__.rpartition(".")[2]
    return kernel(elementwise, f"{where}-{formula.__name__}-{count}", THREADS, cached=compiler.is_ours(formula))
