"""Arrays of other libraries on a CUDA device: what they are made of, and new ones of their kind.

A library here is a class with `stream`, the number of its current stream, and `empty`, a new array of its own. PyTorch
has `keep`, which tells it that memory is in use. No data passes through the host, and no device is waited for (but see
`_Jax`).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.arrays import from_python
from klnumba.gpu import required
from klnumba.gpu.layout import KEPT, Layout, adjacent
from klnumba.tensors import array_library, is_tensor, strided

CUDA = 2  # kDLCUDA and
CUDA_MANAGED = 13  # kDLCUDAManaged of DLPack
REAL = "fiub"
DEFAULT, LEGACY = 0, 1  # the default stream, and as the protocols name it
ELSEWHERE = "in the memory of the CPU"


@dataclass(eq=False, slots=True)  # not frozen: that takes long to make
class Array:
    """An array on a device: the address of the cell with all indices 0, how the others lie, and whose it is."""

    name: str
    pointer: int
    layout: Layout
    dtype: str
    device: int
    library: Any
    owner: Any
    writable: bool = True
    ready: int | None = None  # the stream on which its cells come about, if that is not the current one of the library

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.shape

    def memory(self) -> tuple[int, int]:
        """The addresses of the first byte and of the one after the last."""
        item = 2 if self.dtype == "bfloat16" else np.dtype(self.dtype).itemsize
        start = self.pointer + self.layout.least() * item
        return start, start + self.layout.extent() * item

    def overlaps(self, other: Array) -> bool:
        """Whether the two may share memory."""
        (a, b), (c, e) = self.memory(), other.memory()
        return a < e and c < b


_ON_HOST = (np.ndarray, np.generic, float, int, list, tuple)


def is_on_device(x: Any) -> bool:
    """Whether an argument lies in the memory of a CUDA device; loads nothing."""
    if x is None or isinstance(x, _ON_HOST):
        return False
    if is_tensor(x):
        here = getattr(x, "is_cuda", None)  # what `__dlpack_device__` tells takes longer
        if here is False or (here is True and sys.modules["torch"].version.hip is None):
            return here
    where = getattr(type(x), "__dlpack_device__", None)
    if where is not None:
        try:
            return int(x.__dlpack_device__()[0]) in (CUDA, CUDA_MANAGED)
        except Exception:  # a lazy or exotic array: leave the error to whoever reads it
            return False
    return hasattr(x, "__cuda_array_interface__") or getattr(x, "__cuda_ndarray__", False) is True


def any_on_device(*arguments: Any) -> bool:
    """Whether one of the arguments lies on a CUDA device."""
    return any(map(is_on_device, arguments))


def shape_of(x: Any, name: str) -> tuple[int, ...]:
    """The shape of an argument in any place, which one on a device may tell by its protocol alone."""
    if hasattr(x, "shape") or not is_on_device(x):
        try:
            return tuple(np.shape(x))
        except ValueError as error:
            raise ValueError(f"{name}: not an array: {error}") from None
    required()
    return take(x, name).shape


def dtype_of(x: Any, name: str) -> str:
    """The name of the dtype of an argument in any place."""
    found = getattr(x, "dtype", None)
    if found is None and is_on_device(x):
        required()
        interface = getattr(x, "__cuda_array_interface__", None)
        return take(x, name).dtype if interface is None else np.dtype(interface["typestr"]).name
    return str(from_python(x, name).dtype if found is None else found)


def all_of(**arguments: Any) -> dict[str, Array]:
    """The arrays behind arguments by name; they must be on one device. None is no array, nor is a flag as `where`.

    Raises
    ------
    ImportError
        If numba-cuda is not installed.
    ValueError
        If they are in different places: the text names two.
    TypeError
        If a dtype is complex, text or object.
    """
    required()
    given = {name: x for name, x in arguments.items() if x is not None and not (name == "where" and _is_flag(x))}
    found = {name: take(x, name) for name, x in given.items() if is_on_device(x)}
    if len(found) == len(given) and len({array.device for array in found.values()}) == 1:
        return found
    places = {name: f"on device cuda:{found[name].device}" if name in found else ELSEWHERE for name in given}
    (first, place), *others = places.items()
    name, other = next((name, other) for name, other in others if other != place)
    raise ValueError(f"{first} and {name}: {first} is {place}, {name} is {other}; move one to the other")


def _is_flag(x: Any) -> bool:
    return isinstance(x, bool | np.bool_)


def at_work(found: dict[str, Array]) -> Any:
    """A context in which kernels start where arrays lie."""
    from klnumba.kernels.cuda.machine import at

    return at(next(iter(found.values())).device)


def stream_of(stream: Any, array: Array) -> int:
    """The address of the stream to work on: the one given, or the current one of the array's library.

    Raises
    ------
    TypeError
        If what is given is no stream.
    """
    if stream is None:
        return int(array.library.stream(array.device))
    return _address(stream)


def _address(stream: Any) -> int:
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("cuda_stream", "ptr", "handle"):  # PyTorch, CuPy, Numba
        address = getattr(stream, name, None)
        if address is not None:
            return int(getattr(address, "value", address) or 0)
    raise TypeError(f"stream: a CUDA stream or its address, not {type(stream).__name__}")


def take(x: Any, name: str) -> Array:
    """The array behind an argument."""
    maker = _makers.get(array_library(x))
    if maker is not None:
        return maker(x, name)
    if getattr(x, "__cuda_ndarray__", False) is True:
        return _numba(x, name)
    return _interface(x, name) if hasattr(x, "__cuda_array_interface__") else _dlpack(x, name)


def _checked(name: str, dtype: str) -> str:
    """The dtype by NumPy's name."""
    found, fault = _known(dtype)
    if fault:
        raise TypeError(f"{name}: dtype {dtype} is not {fault}")
    return found


@functools.lru_cache  # a call asks for that of each of its arrays
def _known(dtype: str) -> tuple[str, str]:
    """(NumPy's name of a dtype, what it is not if it cannot be used)."""
    if dtype in ("bfloat16", "bool"):
        return dtype, ""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        return dtype, "a real number type"
    if kind.kind not in REAL:
        return dtype, "a real number type"
    return kind.name, "" if kind.isnative else "in this machine's byte order"


def _steps(strides: tuple[int, ...] | None, shape: tuple[int, ...], item: int, name: str) -> Layout:
    """A layout from strides in bytes; None stands for adjacent cells."""
    found = _layout(None if strides is None else tuple(strides), tuple(shape), item)
    if found is None:
        raise ValueError(f"{name}: strides {strides} are no multiples of the size of a cell, {item} bytes")
    return found


@functools.lru_cache(KEPT)
def _layout(strides: tuple[int, ...] | None, shape: tuple[int, ...], item: int) -> Layout | None:
    if strides is None:
        return adjacent(shape)
    if any(stride % item for stride in strides):
        return None
    return Layout(shape, tuple(stride // item for stride in strides))


# --- the libraries ----------------------------------------------------------------------------------------------------


class _Numba:
    """Numba's device arrays, and whatever has `__cuda_array_interface__` and no library that is known here."""

    @staticmethod
    def stream(device: int) -> int:
        return 0

    @staticmethod
    def empty(shape: tuple[int, ...], dtype: str, device: int, stream: int) -> tuple[Any, int]:
        from klnumba.kernels.cuda import machine

        array = machine.empty(shape, dtype)
        return array, machine.pointer_of(array)


class _Torch:
    @staticmethod
    def keep(array: Array, stream: int) -> None:
        """Tell PyTorch of a stream, other than its current one, that is not yet done with an array."""
        if stream != _Torch.stream(array.device):
            array.owner.record_stream(sys.modules["torch"].cuda.ExternalStream(stream, array.device))

    @staticmethod
    def stream(device: int) -> int:
        torch = sys.modules["torch"]
        raw = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)  # what its own compiler asks
        return int(raw(device) if raw is not None else torch.cuda.current_stream(device).cuda_stream)

    @staticmethod
    def empty(shape: tuple[int, ...], dtype: str, device: int, stream: int) -> tuple[Any, int]:
        torch = sys.modules["torch"]
        kind, place = getattr(torch, dtype), _torch_device(device)
        if stream == _Torch.stream(device):
            array = torch.empty(shape, dtype=kind, device=place)
        else:  # the memory belongs to the stream on which it is asked for
            with torch.cuda.stream(torch.cuda.ExternalStream(stream, device)):
                array = torch.empty(shape, dtype=kind, device=place)
        return array, array.data_ptr()


@functools.cache
def _torch_device(number: int) -> Any:
    """A device as PyTorch takes it: its text takes longer to read."""
    device = getattr(sys.modules["torch"], "device", None)
    return f"cuda:{number}" if device is None else device("cuda", number)


class _Cupy:
    @staticmethod
    def stream(device: int) -> int:
        return int(sys.modules["cupy"].cuda.get_current_stream(device).ptr)

    @staticmethod
    def empty(shape: tuple[int, ...], dtype: str, device: int, stream: int) -> tuple[Any, int]:
        cupy = sys.modules["cupy"]
        other = stream != _Cupy.stream(device)
        with cupy.cuda.Device(device), cupy.cuda.ExternalStream(stream) if other else contextlib.nullcontext():
            array = cupy.empty(shape, dtype)
        return array, array.data.ptr


class _Jax:
    """JAX has no stream to join: its arrays are waited for, and so is the result."""

    waits = True
    rooms = _Numba

    @staticmethod
    def stream(device: int) -> int:
        return 0

    @staticmethod
    def empty(shape: tuple[int, ...], dtype: str, device: int, stream: int) -> tuple[Any, int]:
        jax = sys.modules["jax"]
        place = next(found for found in jax.devices("cuda") if found.local_hardware_id == device)
        with _wide_numbers(jax):
            array = jax.device_put(jax.numpy.empty(shape, dtype), place).block_until_ready()
        if array.dtype != np.dtype(dtype):  # a kernel would write beyond its end
            raise RuntimeError(f"JAX made an array of {array.dtype} where {dtype} was asked for")
        return array, array.unsafe_buffer_pointer()


def _wide_numbers(jax: Any) -> Any:
    """A context in which JAX makes arrays of float64, whatever its setting."""
    room = jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")  # before 0.8
    return room.enable_x64(True)


def _numba(x: Any, name: str) -> Array:
    from klnumba.kernels.cuda import machine

    dtype = _checked(name, x.dtype.name if x.dtype.isnative else x.dtype.str)  # the name has no byte order
    layout = _steps(x.strides, x.shape, x.dtype.itemsize, name)
    pointer = machine.pointer_of(x)
    device, ready = machine.device_of(pointer), _producer(getattr(x, "stream", 0) or None)
    return Array(name, pointer, layout, dtype, device, _Numba, x, ready=ready)


def _torch(x: Any, name: str) -> Array:
    x = strided(x, name, sys.modules["torch"]).resolve_neg()
    dtype, fault = _torch_dtype(x.dtype)
    if fault:
        raise TypeError(f"{name}: dtype {dtype} is not {fault}")
    return Array(name, x.data_ptr(), _torch_layout(x.shape, x.stride()), dtype, x.device.index, _Torch, x)


@functools.lru_cache
def _torch_dtype(dtype: Any) -> tuple[str, str]:
    """As `_known`; a complex dtype keeps PyTorch's name."""
    text = str(dtype)
    found, fault = _known(text.removeprefix("torch."))
    return text if "complex" in text else found, fault


@functools.lru_cache(KEPT)
def _torch_layout(shape: tuple[int, ...], steps: tuple[int, ...]) -> Layout:
    return Layout(tuple(shape), tuple(steps))


def _cupy(x: Any, name: str) -> Array:
    layout = _steps(x.strides, x.shape, x.itemsize, name)
    return Array(name, x.data.ptr, layout, _checked(name, x.dtype.name), x.device.id, _Cupy, x)


def _jax(x: Any, name: str) -> Array:
    x = x.block_until_ready()
    (device,) = x.devices()
    layout = _steps(None, x.shape, x.dtype.itemsize, name)
    dtype = _checked(name, x.dtype.name)
    return Array(name, x.unsafe_buffer_pointer(), layout, dtype, device.local_hardware_id, _Jax, x, False)


def _interface(x: Any, name: str) -> Array:
    from klnumba.kernels.cuda import machine

    parts = x.__cuda_array_interface__
    if parts.get("mask") is not None:
        raise TypeError(f"{name}: a masked array; give the mask as where=")
    kind = np.dtype(parts["typestr"])
    layout = _steps(parts.get("strides"), parts["shape"], kind.itemsize, name)
    pointer, read_only = parts["data"]
    dtype, device = _checked(name, kind.str), machine.device_of(pointer)
    return Array(name, pointer, layout, dtype, device, _Numba, x, not read_only, _producer(parts.get("stream")))


def _producer(stream: Any) -> int | None:
    """The stream that an array names; 1 is another name of the default stream."""
    if stream is None:
        return None
    address = _address(stream)
    return DEFAULT if address == LEGACY else address


def _dlpack(x: Any, name: str) -> Array:
    utils = importlib.import_module("cuda.core.utils")  # which numba-cuda needs itself
    view = utils.StridedMemoryView.from_dlpack(x, stream_ptr=LEGACY)  # which waits for that of the library
    dtype = _checked(name, np.dtype(view.dtype).name)
    shape = tuple(view.shape)
    layout = Layout(shape, tuple(view.strides)) if view.strides is not None else _steps(None, shape, 1, name)
    return Array(name, view.ptr, layout, dtype, view.device_id, _Numba, view, not view.readonly, DEFAULT)


_makers = {"torch": _torch, "cupy": _cupy, "jax": _jax, "jaxlib": _jax}
