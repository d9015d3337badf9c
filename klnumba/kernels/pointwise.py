"""A formula of two numbers over two arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.kernels.compiler import scalar
from klnumba.kernels.tiles import TILE


def loop(formula: Callable[..., Any]) -> Callable[..., None]:
    formula = scalar(formula)

    def pointwise(x: Any, y: Any, out: Any) -> None:
        for k in range(out.size):
            out[k] = formula(np.float64(x[k]), np.float64(y[k]))

    return pointwise


def loop_with_shortcut(formula: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., None]:
    """The same for a formula with a quick form, which also says of every cell whether it serves.

    `out` shares no memory with the arguments.
    """
    formula, plain = scalar(formula), scalar(plain)

    def pointwise(x: Any, y: Any, out: Any) -> None:
        for start in range(0, out.size, TILE):
            xs, ys, zs = x[start : start + TILE], y[start : start + TILE], out[start : start + TILE]
            count = 0
            for k in range(zs.size):
                zs[k], served = plain(np.float64(xs[k]), np.float64(ys[k]))
                count += served
            if count < zs.size:
                for k in range(zs.size):
                    if not plain(np.float64(xs[k]), np.float64(ys[k]))[1]:
                        zs[k] = formula(np.float64(xs[k]), np.float64(ys[k]))

    return pointwise


def widen() -> Callable[..., None]:
    """The bits of bfloat16 as those of float32."""

    def widened(x: Any, out: Any) -> None:
        for k in range(out.size):
            out[k] = np.uint32(x[k]) << np.uint32(16)

    return widened
