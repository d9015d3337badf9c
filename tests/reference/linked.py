"""Functions of ``klnumba.formulas`` that Python can call: compiled by themselves, or as the package compiles them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numba

from klnumba.formulas import elementary
from klnumba.kernels import compiler

FUSED = frozenset({"contract", "nsz"})


@cache
def scalar(function: FunctionType, fused: bool) -> Any:
    """Compile a function, and first the plain functions that it calls, to be inlined."""
    names = function.__globals__ | {
        name: scalar(value, fused)
        for name, value in function.__globals__.items()
        if name in function.__code__.co_names and isinstance(value, FunctionType)
    }
    copy = FunctionType(function.__code__, names, function.__name__)
    flags = set(FUSED) if fused else False
    return numba.njit(error_model="numpy", fastmath=flags, forceinline=True)(copy)


@cache
def loop(name: str, fused: bool) -> Callable[..., None]:
    """Return a compiled ``apply(x, out)`` for the function of that name in `elementary`."""
    function = scalar(getattr(elementary, name), fused)

    @numba.njit(error_model="numpy")
    def apply(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    return apply


@cache
def entry(function: FunctionType) -> Any:
    """`compiler.uncontracted` with a way in for Python, which that has not."""
    return compiler.for_python(compiler.uncontracted(function))


@cache
def packaged(function: FunctionType) -> Any:
    """`compiler.scalar` with one."""
    return compiler.for_python(compiler.scalar(function))
