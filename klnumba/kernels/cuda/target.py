"""How text becomes code for a CUDA device or for the simulator: the one place where the two part ways.

A formula of the CPU is compiled for the device from the same text (`device`). Contraction of products and sums is on
there, as in the CPU's formulas; `two_sum`, which it would break, is made of additions that are never contracted.

In the simulator a formula is the compiled function of the CPU, and the loops around it run as Python; what it lacks
(warps, loads of several cells) has a twin here.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from klnumba.formulas import device as formulas
from klnumba.formulas import elementary, primitives
from klnumba.gpu import is_simulated
from klnumba.kernels import compiler, instructions
from klnumba.kernels.compiler import rebuilt, scalar

SIMULATED = is_simulated()
numba_cuda: Any = importlib.import_module("numba.cuda")
twin: Any = importlib.import_module("klnumba.kernels.cuda." + ("simulated" if SIMULATED else "intrinsics"))

# Registers of a function that is called: the rare roads must not keep the kernel from having many threads.
REGISTERS = 64
# Threads of a processor that hide the memory's latency, and those of loops in float64: 64 and 128 registers each. What
# does not fit lies in memory from row to row; the loops over cells have all of theirs.
RESIDENT, RESIDENT_WIDE = 1024, 512
WARP: int = twin.WARP
ROOM: int = twin.ROOM
cuda, load, load_at, two_at, wide_load, address, half = (
    twin.cuda, twin.load, twin.load_at, twin.two_at, twin.wide_load, twin.address, twin.half
)  # fmt: skip
kept: Any = twin.kept
noinline, exchange, vote, shared = twin.noinline, twin.exchange, twin.vote, twin.shared
two_sum, fma, larger_bfloat16s = twin.two_sum, twin.fma, twin.larger_bfloat16s

_SPECIAL: dict[Any, Any] = {
    elementary.two_sum: two_sum,
    scalar(elementary.two_sum): two_sum,
    primitives.fma: fma,
    instructions.INSTRUCTIONS[primitives.fma]: fma,
}
if not SIMULATED:
    _INSTRUCTIONS = (
        "larger", "held", "power", "power_short", "reciprocal", "rough_reciprocal", "rough_power", "rough_log",
    )  # fmt: skip
    _SPECIAL |= {getattr(formulas, name): getattr(twin, name) for name in _INSTRUCTIONS}


def resident_of(store: str) -> int:
    """The threads that a kernel which waits for memory leaves room for."""
    return RESIDENT_WIDE if store == "float64" else RESIDENT


def _is_text(value: Any) -> bool:
    """Whether a name of a formula's text is to be converted along with it."""
    if compiler.is_formula(value) or hasattr(value, "py_func"):
        return True
    return isinstance(value, type(instructions.INSTRUCTIONS[primitives.fma])) and value in _SPECIAL


@functools.cache
def device(function: Callable[..., Any]) -> Any:
    """A formula, or a piece of a CPU loop, and all that it calls, for the loops here."""
    if function in _SPECIAL:
        return _SPECIAL[function]
    text = getattr(function, "py_func", function)
    if SIMULATED:
        return compiler.for_python(scalar(function) if text is function else function)
    return piece(rebuilt(text, device, _is_text))


def piece(function: Callable[..., Any]) -> Any:
    """A piece of a loop over cells: put into the loops that call it."""
    return function if SIMULATED else twin.piece(function)


def apart(function: Callable[..., Any]) -> Any:
    """A piece that few rows need: called, and never put into the loop, which keeps that one small."""
    return function if SIMULATED else twin.together(numba_cuda.jit(device=True)(function))


def kernel(function: Callable[..., Any], name: str, threads: int, resident: int = 0, cached: bool = True) -> Any:
    """A kernel of blocks of `threads`; its registers leave a processor room for `resident` threads, if that is said.

    `name` tells it from every other kernel in the cache.
    """
    function.__qualname__ = function.__name__ = "kl_" + name.replace("-", "_")
    if SIMULATED:
        return numba_cuda.jit(function)
    bounds = (threads, max(1, resident // threads))
    made = numba_cuda.jit(launch_bounds=bounds, max_registers=REGISTERS)(function)
    return importlib.import_module("klnumba.kernels.cuda.cache").kept(made, name) if cached else made
