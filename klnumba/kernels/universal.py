"""Formulas that return pairs, as functions of NumPy's arrays: these broadcast, whatever their strides."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from klnumba.kernels import compiler

NUMBERS = types.CPointer(types.float64)
SIGNATURE = types.void(types.CPointer(NUMBERS), types.CPointer(types.intp), types.CPointer(types.intp), types.voidptr)
FLOAT64 = np.dtype(np.float64).num


def _of_two(f: Any) -> Callable[..., None]:
    """The loop of a function of two pairs, with what NumPy calls it with: addresses, sizes, and strides in bytes.

    Addresses and strides are read before the loop, since what it writes could change them for all that LLVM knows.
    """

    def two(a: Any, sizes: Any, s: Any, _: Any) -> None:
        x, x_low, y, y_low, high, low = a[0], a[1], a[2], a[3], a[4], a[5]
        i, i_low, j, j_low, k, k_low = s[0] // 8, s[1] // 8, s[2] // 8, s[3] // 8, s[4] // 8, s[5] // 8
        for n in range(sizes[0]):
            high[n * k], low[n * k_low] = f(x[n * i], x_low[n * i_low], y[n * j], y_low[n * j_low])

    return two


def _of_three(f: Any) -> Callable[..., None]:
    """That of three pairs."""

    def three(a: Any, sizes: Any, s: Any, _: Any) -> None:
        x, x_low, y, y_low, z, z_low, high, low = a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]
        i, i_low, j, j_low, m, m_low = s[0] // 8, s[1] // 8, s[2] // 8, s[3] // 8, s[4] // 8, s[5] // 8
        k, k_low = s[6] // 8, s[7] // 8
        for n in range(sizes[0]):
            high[n * k], low[n * k_low] = f(
                x[n * i], x_low[n * i_low], y[n * j], y_low[n * j_low], z[n * m], z_low[n * m_low]
            )

    return three


LOOPS = {4: _of_two, 6: _of_three}


@compiler.once
def universal(formula: Callable[..., tuple[float, float]]) -> Any:
    """The universal function of a formula of two pairs or of three. It keeps the loop, and so its machine code."""
    from numba.np.ufunc import _internal  # type: ignore[attr-defined]

    count = len(inspect.signature(formula).parameters)
    step = compiler.uncontracted(formula)
    loop = compiler.c_loop(
        f"universal-{compiler.name_of(formula)}", LOOPS[count](step), SIGNATURE, compiler.is_ours(formula)
    )
    types_of_all = [[FLOAT64] * (count + 2)]
    return _internal.fromfunc(
        formula.__name__, formula.__doc__, [loop.address], types_of_all, count, 2, [None], loop, _internal.PyUFunc_None
    )
