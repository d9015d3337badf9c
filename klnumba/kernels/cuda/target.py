"""How text becomes code for a CUDA device or for the simulator: the one place where the two part ways.

A formula of the CPU is compiled for the device from the same text (`device`). Contraction of products and sums is on
there, as in the CPU's formulas; `two_sum`, which it would break, is made of additions that are never contracted.

In the simulator a formula is the compiled function of the CPU, and the loops around it run as Python; what it lacks
(warps, loads of several cells) has a twin here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda as numba_cuda
from numba.core import config

from klnumba.formulas import elementary, primitives
from klnumba.kernels import compiler
from klnumba.kernels.compiler import rebuilt, scalar

SIMULATED = bool(config.ENABLE_CUDASIM)
WARP = 4 if SIMULATED else 32  # threads that exchange numbers without shared memory

# Registers of a function that is called: the rare roads must not keep the kernel from having many threads. The kernel
# itself takes what it needs.
REGISTERS = 96


class _Context:
    """`numba.cuda` as the simulated thread at work sees it.

    The simulator puts a stand-in for `numba.cuda` into the globals of a function while that runs, which goes wrong
    where several threads are inside one function of another module.
    """

    def __getattr__(self, name: str) -> Any:
        from numba.cuda.simulator.kernel import _get_kernel_context

        return getattr(_get_kernel_context(), name)


cuda: Any = _Context() if SIMULATED else numba_cuda


def _is_text(value: Any) -> bool:
    return compiler._is_formula(value) or hasattr(value, "py_func") or value in _SPECIAL


@functools.cache
def device(function: Callable[..., Any]) -> Any:
    """A formula, or a piece of a CPU loop, and all that it calls, for the loops here."""
    if function in _SPECIAL:
        return _SPECIAL[function]
    text = getattr(function, "py_func", function)
    if SIMULATED:
        return scalar(function) if text is function else function
    return numba_cuda.jit(device=True, forceinline=True)(rebuilt(text, device, _is_hashable_text))


def _is_hashable_text(value: Any) -> bool:
    try:
        return _is_text(value)
    except TypeError:
        return False


def piece(function: Callable[..., Any]) -> Any:
    """A piece of a loop over cells: put into the loops that call it."""
    return function if SIMULATED else numba_cuda.jit(device=True, forceinline=True)(function)


def apart(function: Callable[..., Any]) -> Any:
    """A piece that few rows need: called, and never put into the loop, which keeps that one small."""
    return function if SIMULATED else numba_cuda.jit(device=True)(function)


def kernel(function: Callable[..., Any], name: str, threads: int) -> Any:
    """A kernel of blocks of `threads`."""
    function.__qualname__ = function.__name__ = "kl_" + name.replace("-", "_")
    if SIMULATED:
        return numba_cuda.jit(function)
    return numba_cuda.jit(launch_bounds=threads, max_registers=REGISTERS)(function)


# --- instructions -----------------------------------------------------------------------------------------------------

if SIMULATED:

    def load(array: Any, index: Any) -> Any:
        """array[index], for an index that is in range."""
        return array[index]

    def wide_load(count: int) -> Callable[[Any, Any], Any]:
        """Load `count` cells at once, from an address that 16 bytes divide."""

        def load_some(array: Any, index: Any) -> Any:
            return tuple(array[index + k] for k in range(count))

        return load_some

    def address(array: Any) -> Any:
        """Where an array begins."""
        return array._item._ary.ctypes.data

    def half(bits: Any) -> Any:
        """The float32 of 16 bits in the format float16."""
        return np.float32(np.uint16(bits).view(np.float16))

    def noinline() -> None:
        """Keep the function that calls this a function of its own."""

    def exchange(x: Any, distance: Any, room: Any) -> Any:
        """The x of the thread whose number differs in the bit `distance`, below a warp's size."""
        me = cuda.threadIdx.x
        room[me] = x
        cuda.syncthreads()
        other = room[me ^ distance]
        cuda.syncthreads()
        return other

    def vote(flag: Any) -> Any:
        """Whether any thread of the warp has set its flag."""
        return cuda.syncthreads_or(flag)

    ROOM = 1  # numbers of `room` that a thread needs for an exchange
    two_sum, fma = scalar(elementary.two_sum), compiler.INSTRUCTIONS[primitives.fma]
else:
    from klnumba.kernels.cuda import intrinsics

    load, wide_load, address = intrinsics.load, intrinsics.wide_load, intrinsics.address
    half, noinline = intrinsics.half, intrinsics.noinline
    ROOM = 0

    @piece
    def exchange(x: Any, distance: Any, room: Any) -> Any:
        return cuda.shfl_xor_sync(0xFFFFFFFF, x, distance)

    @piece
    def vote(flag: Any) -> Any:
        return cuda.any_sync(0xFFFFFFFF, flag)

    @piece
    def two_sum(a: Any, b: Any) -> Any:
        s = intrinsics.add(a, b)
        t = intrinsics.add(s, -a)
        return s, intrinsics.add(intrinsics.add(a, -intrinsics.add(s, -t)), intrinsics.add(b, -t))

    @piece
    def fma(x: Any, y: Any, z: Any) -> Any:
        return cuda.fma(x, y, z)


_SPECIAL: dict[Any, Any] = {
    elementary.two_sum: two_sum,
    scalar(elementary.two_sum): two_sum,
    primitives.fma: fma,
    compiler.INSTRUCTIONS[primitives.fma]: fma,
}
