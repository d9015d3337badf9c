"""A formula of two numbers over two arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.kernels.compiler import scalar


def loop(formula: Callable[..., Any]) -> Callable[..., None]:
    formula = scalar(formula)

    def pointwise(x: Any, y: Any, out: Any) -> None:
        for k in range(out.size):
            out[k] = formula(np.float64(x[k]), np.float64(y[k]))

    return pointwise


def widen() -> Callable[..., None]:
    """The bits of bfloat16 as those of float32."""

    def widened(x: Any, out: Any) -> None:
        for k in range(out.size):
            out[k] = np.uint32(x[k]) << np.uint32(16)

    return widened


def ordered_sum() -> Callable[..., None]:
    """The sum of an array in double-double, in its order."""
    from klnumba.kernels.tiles import add

    def total(x: Any, state: Any) -> None:
        for k in range(x.size):
            add(state, np.int64(0), x[k])

    return total
