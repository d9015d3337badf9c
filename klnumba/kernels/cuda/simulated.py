"""What a thread of the simulator has in the place of a device's instructions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas import elementary, primitives
from klnumba.kernels import compiler, instructions

WARP = 4  # threads that exchange numbers
ROOM = 1  # numbers of `room` that a thread needs for that


class _Context:
    """`numba.cuda` as the simulated thread at work sees it.

    The simulator puts a stand-in for `numba.cuda` into the globals of a function while that runs, which goes wrong
    where several threads are inside one function of another module.
    """

    def __getattr__(self, name: str) -> Any:
        from numba.cuda.simulator.kernel import _get_kernel_context

        return getattr(_get_kernel_context(), name)


cuda = _Context()
two_sum = compiler.for_python(compiler.scalar(elementary.two_sum))
fma = instructions.INSTRUCTIONS[primitives.fma]


_lock = threading.Lock()


def shared(size: int, integers: bool = False) -> Callable[[], Any]:
    """What gives a block its shared memory of `size` numbers, float64 or int64.

    The simulator looks for it and makes it in two steps, between which another thread may make its own.
    """

    def room() -> Any:
        with _lock:
            return cuda.shared.array(size, np.int64 if integers else np.float64)

    return room


def load(array: Any, index: Any) -> Any:
    """array[index], for an index that is in range."""
    return array[index]


def load_at(array: Any, index: Any, offset: Any) -> Any:
    """array[index + offset]."""
    return array[index + offset]


def two_at(apart: int) -> Callable[[Any, Any, Any], Any]:
    """Load array[index + offset] and the cell `apart` cells behind it."""

    def load_two(array: Any, index: Any, offset: Any) -> Any:
        return array[index + offset], array[index + offset + apart]

    return load_two


def kept(x: Any) -> Any:
    """The number itself."""
    return x


def wide_load(count: int) -> Callable[[Any, Any, Any], Any]:
    """Load `count` cells at once, from an address that 16 divides; of 16-bit cells, words of two."""

    def load_some(array: Any, index: Any, offset: Any) -> Any:
        cells = tuple(array[index + offset + k] for k in range(count))
        if cells[0].itemsize != 2:
            return cells
        return tuple(
            np.uint32(low) | np.uint32(high) << np.uint32(16) for low, high in zip(cells[::2], cells[1::2], strict=True)
        )

    return load_some


def address(array: Any) -> Any:
    """Where an array begins."""
    return array._item._ary.ctypes.data


def larger_bfloat16s(word: Any, other: Any) -> Any:
    """The larger of two bfloat16, or NaN, in each half of two words."""
    found = np.uint32(0)
    for shift in (0, 16):
        a, b = (np.uint32(np.uint32(x >> np.uint32(shift)) << np.uint32(16)) for x in (word, other))
        x, y = a.view(np.float32), b.view(np.float32)
        found |= np.uint32((a if x > y or x != x else b) >> np.uint32(16)) << np.uint32(shift)
    return found


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
    """Whether any thread of the warp, here of the block, has set its flag."""
    return cuda.syncthreads_or(flag)
