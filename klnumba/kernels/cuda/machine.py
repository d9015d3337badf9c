"""The device at work: whether there is one, its memory as flat arrays, its streams."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from klnumba.kernels.cuda import launch
from klnumba.kernels.cuda.target import SIMULATED, numba_cuda

BLOCKS_PER_PROCESSOR = 16  # of a grid that walks over its rows
TAKEN_IN = 1 << 16  # bytes of the host's memory that a driver copies before it returns
SIMULATED_BLOCKS = 3  # few, so that blocks in the simulator do walk


def reason() -> str | None:
    """Why no device can be used, or None."""
    if SIMULATED:
        return None
    if numba_cuda.is_available():
        return None
    error = getattr(numba_cuda.cudadrv.driver.driver, "initialization_error", None)
    told = " ".join(str(error or "none was found").split()).rstrip(" :.")
    return f"no CUDA driver or device: {told}"


def name() -> str:
    """The device and its compute capability."""
    if SIMULATED:
        return "numba-cuda's simulator"
    found = numba_cuda.get_current_device()
    label = found.name.decode() if isinstance(found.name, bytes) else found.name
    major, minor = found.compute_capability
    return f"{label}, compute capability {major}.{minor}"


@functools.cache
def _processors(number: int) -> int:
    return int(numba_cuda.gpus[number].MULTIPROCESSOR_COUNT)


def blocks(device: int) -> int:
    """The most blocks that a grid needs on a device: no result depends on how many there are."""
    return SIMULATED_BLOCKS if SIMULATED else BLOCKS_PER_PROCESSOR * _processors(device)


# Of devices that Numba has entered, the handle of the context in which it and other libraries work there.
_contexts: dict[int, int] = {}
_HERE = contextlib.nullcontext()


def at(device: int) -> Any:
    """A context in which kernels start on a device: nothing is entered where this thread is in it already."""
    if SIMULATED or _current() == _contexts.get(device, -1):
        return _HERE
    return _entered(device)


def _current() -> int:
    """The handle of the context that the driver has for this thread; 0 where there is none."""
    try:
        return int(launch.driver().cuCtxGetCurrent()[1] or 0)
    except ImportError:
        return 0


@contextlib.contextmanager
def _entered(device: int) -> Iterator[None]:
    with numba_cuda.gpus[device]:
        context = _current()
        if context:  # Numba holds it from now on, so that no other gets this handle
            _contexts[device] = context
        yield


def start(kernel: Any, grid: int, threads: int, device: int, stream: int, args: tuple[Any, ...]) -> None:
    """Start a kernel on a grid, a stream and the device at work."""
    if SIMULATED:
        launch.configured(kernel, grid, threads, device, stream)(*args)
    else:
        launch.start(kernel, grid, threads, device, stream, args)


def flat(pointer: int, cells: int, dtype: str, owner: Any) -> Any:
    """`cells` adjacent cells of the device's memory from `pointer` on, as an array for a kernel."""
    if SIMULATED:
        return _simulated(pointer, cells, np.dtype(dtype), owner)
    return launch.cells_of(dtype)(pointer, cells, owner)


def _simulated(pointer: int, cells: int, kind: np.dtype[Any], owner: Any) -> Any:
    import ctypes

    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    if not cells:
        return FakeCUDAArray(np.empty(0, kind))
    buffer: Any = (ctypes.c_byte * (cells * kind.itemsize)).from_address(pointer)
    array: Any = FakeCUDAArray(np.frombuffer(buffer, kind))
    array.owner = owner  # whose memory it is
    return array


def number() -> int:
    """The number of the device at work."""
    if SIMULATED:
        return 0
    current = _current()
    for device, context in _contexts.items():
        if context == current:
            return device
    return int(numba_cuda.get_current_device().id)


@functools.cache
def _devices() -> int:
    return len(numba_cuda.gpus)


def device_of(pointer: int) -> int:
    """The number of the device on which an address lies; of one that no device gave out, that of the device at work."""
    found = _owner(pointer) if not SIMULATED and pointer and _devices() > 1 else -1
    return number() if found < 0 else found


def _owner(pointer: int) -> int:
    """The number that the driver has for the device of an address; below 0 where it has none."""
    try:
        calls = launch.driver()
    except ImportError:
        return -1
    asked = calls.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    error, found = calls.cuPointerGetAttribute(asked, pointer)
    return int(found) if error == calls.CUresult.CUDA_SUCCESS else -1


def empty(shape: tuple[int, ...], dtype: str) -> Any:
    """A new array of Numba's own."""
    return numba_cuda.device_array(shape, dtype)


def pointer_of(array: Any) -> int:
    """Where an array of Numba's own begins."""
    return int(array._ary.ctypes.data if SIMULATED else array.device_ctypes_pointer.value or 0)


def upload(cells: np.ndarray[Any, Any], target: Any, on: int) -> None:
    """Copy from the host, on a stream, without waiting for it: a driver takes so much in at once."""
    step, target = TAKEN_IN // cells.itemsize, _array(target)
    for start in range(0, cells.size, step):
        part = cells[start : start + step]
        target[start : start + part.size].copy_to_device(part, stream=_stream(on))


def download(source: Any, on: int) -> np.ndarray[Any, Any]:
    """A copy in the memory of the host, once all that was started on a stream is done."""
    wait(on)
    found: np.ndarray[Any, Any] = np.asarray(_array(source).copy_to_host())
    return found


def _array(cells: Any) -> Any:
    """An array for kernels as one that Numba copies."""
    return cells.of_numba() if isinstance(cells, launch.Cells) else cells


def _stream(on: int) -> Any:
    if SIMULATED:
        return 0
    return numba_cuda.external_stream(on) if on else numba_cuda.default_stream()


def follow(on: int, before: int) -> None:
    """Let what is started on a stream from now on come after all that was started on another."""
    if not SIMULATED:
        event = numba_cuda.event(timing=False)
        event.record(_stream(before))
        event.wait(_stream(on))


def wait(on: int) -> None:
    """Until all that was started on a stream is done."""
    if not SIMULATED:
        _stream(on).synchronize()
