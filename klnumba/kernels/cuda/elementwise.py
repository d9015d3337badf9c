"""A formula of any count of numbers over as many columns."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.quick import quick_form
from klnumba.kernels import compiler
from klnumba.kernels.cuda.flat import THREADS
from klnumba.kernels.cuda.target import apart, cuda, device, kernel, load, noinline, piece


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
def value_at(formula: Callable[..., float], count: int) -> Any:
    """What computes the i-th value: by the quick form where the formula has one and that serves."""
    compiled, at = device(formula), numbers_at(count)
    quick = quick_form(formula)
    if not quick:

        @piece
        def value(columns: Any, steps: Any, i: Any) -> Any:
            return compiled(*at(columns, steps, i))

        return value
    (form,) = map(device, quick)

    @apart
    def careful(columns: Any, steps: Any, i: Any) -> Any:
        noinline()
        return compiled(*at(columns, steps, i))

    @piece
    def quick_value(columns: Any, steps: Any, i: Any) -> Any:
        found, serves = form(*at(columns, steps, i))
        return found if serves else careful(columns, steps, i)

    return quick_value


@functools.cache
def over_columns(formula: Callable[..., float], count: int) -> Any:
    """From a tuple of columns, those with step 0 one number for all, to the values, over `unit`."""
    value = value_at(formula, count)

    def elementwise(columns: Any, steps: Any, unit: Any, out: Any) -> None:
        for i in range(np.int64(cuda.grid(1)), out.size, np.int64(cuda.gridsize(1))):
            # + 0.0: no result is -0.0
            out[i] = value(columns, steps, i) / unit + 0.0

    name = f"{compiler.name_of(formula)}-{count}"
    return kernel(elementwise, name, THREADS, cached=compiler.is_ours(formula))
