"""Starting kernels on a device without Numba's own launch, which takes longer than a small kernel runs.

Numba compiles a kernel, and says where its function is. A launch here then only packs the arguments, each of them
eight bytes wide, and calls the driver. What is packed is compared once for each kernel and types with what Numba would
pass; where that differs, or Numba's inner parts have moved, Numba starts the kernel itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import struct
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from klnumba.kernels.cuda.target import SIMULATED, numba_cuda

SLOT = 8  # bytes of each number that a kernel is given
MOST = 512  # numbers of a launch: 4,096 bytes, the most that every driver takes
STREAMS = 256  # streams that are kept ready
CONFIGURED = 4096  # launches of Numba that are kept ready


class Cells:
    """Adjacent cells of a device's memory, as an argument of kernels; there is a class of them for each dtype."""

    __slots__ = ("numbers", "owner", "pointer", "size")
    dtype: ClassVar[str]
    itemsize: ClassVar[int]

    def __init__(self, pointer: int, size: int, owner: Any) -> None:
        self.pointer, self.size, self.owner = pointer, size, owner
        item = self.itemsize
        self.numbers = (0, 0, size, item, pointer, size, item)  # no memory of Numba's, no parent, ..., shape, stride

    def of_numba(self) -> Any:
        """The same cells as an array of Numba's."""
        interface = {
            "version": 3, "shape": (self.size,), "typestr": np.dtype(self.dtype).str, "data": (self.pointer, False),
        }  # fmt: skip
        return numba_cuda.from_cuda_array_interface(interface, owner=self.owner)


@functools.cache
def cells_of(dtype: str) -> type[Cells]:
    """The class for a dtype: what tells types of arguments from each other is `type` alone."""
    inside = {"__slots__": (), "dtype": dtype, "itemsize": np.dtype(dtype).itemsize}
    return type(f"Cells_{dtype}", (Cells,), inside)


def start(kernel: Any, grid: int, threads: int, device: int, stream: int, args: tuple[Any, ...]) -> None:
    """Start a kernel on a grid, a stream and the device at work.

    Raises
    ------
    RuntimeError
        If the driver refuses.
    """
    kinds: tuple[Any, ...] = tuple(map(type, args))
    ready = _ready.get((kernel, device, kinds))
    if ready is None:  # these are no plain numbers and cells, or it is the first time
        args = plain(args)
        kinds = kinds_of(args)
        ready = _ready.get((kernel, device, kinds))
        if ready is None:
            ready = _ready[kernel, device, kinds] = _prepared(kernel, kinds, device, args)
    ready(grid, threads, stream, args)


Start = Callable[[int, int, int, tuple[Any, ...]], None]
_ready: dict[Any, Start] = {}


def plain(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments whose numbers are int and float, whatever they were."""
    return tuple(map(_plain, args))


def _plain(x: Any) -> Any:
    if isinstance(x, Cells):
        return x
    if isinstance(x, tuple):
        return plain(x)
    if isinstance(x, int | np.integer | np.bool_):
        return int(x)
    if isinstance(x, float | np.floating):
        return float(x)
    raise TypeError(f"an argument of a kernel: cells or a number, not {type(x).__name__}")


def kinds_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The types of plain arguments; of a tuple, those of its parts."""
    return tuple(kinds_of(x) if isinstance(x, tuple) else type(x) for x in args)


def signature(kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    """The types by which Numba knows them."""
    types: Any = importlib.import_module("numba.cuda.types")

    def of(kind: Any) -> Any:
        if isinstance(kind, tuple):
            return types.BaseTuple.from_types(tuple(map(of, kind)))
        if issubclass(kind, Cells):
            return types.Array(getattr(types, kind.dtype), 1, "C")
        return types.int64 if kind is int else types.float64

    return tuple(map(of, kinds))


def _flat(args: tuple[Any, ...]) -> Iterator[Any]:
    """The arguments without tuples around them."""
    for x in args:
        if isinstance(x, tuple):
            yield from _flat(x)
        else:
            yield x


class Packer:
    """How arguments of some types become the numbers that a kernel reads, side by side."""

    def __init__(self, kinds: tuple[Any, ...]) -> None:
        flat = list(_flat(kinds))
        self._nested = len(flat) != len(kinds) or flat != list(kinds)
        self._arrays = [i for i, kind in enumerate(flat) if kind is not int and kind is not float][::-1]
        formats = {int: "q", float: "d"}
        self.pack_into = struct.Struct("".join(formats.get(kind, "qqqqQqq") for kind in flat)).pack_into
        if struct.calcsize("qdQ") != 3 * SLOT:
            raise TypeError("numbers of this machine are not eight bytes wide")

    def numbers(self, args: tuple[Any, ...]) -> list[Any]:
        """All numbers of a launch."""
        found = list(_flat(args)) if self._nested else list(args)
        for i in self._arrays:  # from the last on: the places of the others stay
            found[i : i + 1] = found[i].numbers
        return found


class Room(NamedTuple):
    """Memory for the numbers of a launch, and where the list of their addresses is, which is the same for all."""

    numbers: Any
    addresses: Any
    at: int

    @classmethod
    def new(cls) -> Room:
        numbers = ctypes.create_string_buffer(MOST * SLOT)
        first = ctypes.addressof(numbers)
        addresses = (ctypes.c_uint64 * MOST)(*range(first, first + MOST * SLOT, SLOT))
        return cls(numbers, addresses, ctypes.addressof(addresses))


# Rooms that no launch uses: each takes one out and puts it back, so that neither another thread nor a handler of a
# signal, which starts a kernel too, can write into it.
_rooms: list[Room] = []


@functools.cache
def driver() -> Any:
    """The driver's functions."""
    return importlib.import_module("cuda.bindings.driver")


@functools.lru_cache(STREAMS)
def _stream(handle: int) -> Any:
    return driver().CUstream(handle)


def direct(function: int, packer: Packer) -> Start:
    """What starts a function of the driver."""
    calls = driver()
    handle, launch, fine = calls.CUfunction(function), calls.cuLaunchKernel, calls.CUresult.CUDA_SUCCESS
    pack_into, numbers = packer.pack_into, packer.numbers

    def started(grid: int, threads: int, stream: int, args: tuple[Any, ...]) -> None:
        found = numbers(args)
        try:
            room = _rooms.pop()
        except IndexError:
            room = Room.new()
        pack_into(room.numbers, 0, *found)
        # The driver has copied the numbers before it returns.
        (error,) = launch(handle, grid, 1, 1, threads, 1, 1, 0, _stream(stream), room.at, 0)
        _rooms.append(room)
        if error is not fine and error != fine:
            raise RuntimeError(f"a kernel could not be started: {getattr(error, 'name', error)}")

    return started


def through_numba(kernel: Any, device: int) -> Start:
    """What starts a kernel as Numba does."""

    def started(grid: int, threads: int, stream: int, args: tuple[Any, ...]) -> None:
        configured(kernel, grid, threads, device, stream)(*map(_of_numba, args))

    return started


def _of_numba(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(_of_numba, x))
    return x.of_numba() if isinstance(x, Cells) else x


def _prepared(kernel: Any, kinds: tuple[Any, ...], device: int, args: tuple[Any, ...]) -> Start:
    """What starts a kernel on the device at work with arguments of these types; compiles it."""
    try:
        made = kernel.compile(signature(kinds))
        packer = Packer(kinds)
        if not made.debug and not made.cooperative and not made.extensions and _as_numba(made, packer, args):
            return direct(int(made._codelibrary.get_cufunc().handle), packer)
    except (AttributeError, ImportError, TypeError, ValueError):  # Numba's inner parts have moved
        pass
    return through_numba(kernel, device)


def _as_numba(made: Any, packer: Packer, args: tuple[Any, ...]) -> bool:
    """Whether the numbers that are packed are those that Numba passes."""
    args, theirs = _not_empty(args), list[Any]()
    for kind, x in zip(made.argument_types, args, strict=True):
        made._prepare_args(kind, _of_numba(x), 0, [], theirs)
    ours = packer.numbers(args)
    if len(ours) != len(theirs) or len(ours) > MOST:
        return False
    room = Room.new()
    packer.pack_into(room.numbers, 0, *ours)
    return room.numbers.raw[: SLOT * len(ours)] == b"".join(map(_bytes, theirs))


def _not_empty(x: Any) -> Any:
    """Arguments in which no cells are none: of those Numba says other numbers, which no kernel reads."""
    if isinstance(x, tuple):
        return tuple(map(_not_empty, x))
    return type(x)(x.pointer, 1, x.owner) if isinstance(x, Cells) and not x.size else x


def _bytes(x: Any) -> bytes:
    """A number as Numba's launch passes it on: one of ctypes, or an int as wide as an address."""
    return struct.pack("Q", x % (1 << 64)) if isinstance(x, int) else bytes(x)


@functools.lru_cache(CONFIGURED)
def configured(kernel: Any, grid: int, threads: int, device: int, stream: int) -> Any:
    """Numba's launch of a kernel on a grid and a stream of the device at work: making one takes long.

    Numba warns that a small grid leaves most of a device idle, which is what a call with few rows does.
    """
    with warnings.catch_warnings():
        for kind in _warnings():
            warnings.simplefilter("ignore", kind)
        return kernel[grid, threads, numba_cuda.external_stream(stream) if stream and not SIMULATED else 0]


@functools.cache
def _warnings() -> list[Any]:
    """The class of that warning: numba-cuda has one of its own."""
    found = []
    for module in ("numba.core.errors", "numba.cuda.core.errors"):
        with contextlib.suppress(ImportError, AttributeError):
            found.append(importlib.import_module(module).NumbaPerformanceWarning)
    return found
