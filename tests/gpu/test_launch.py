"""Launches without a device: what a kernel is given, what goes wrong, and where nothing is entered."""

import ctypes
import struct
import threading
import time
import types
import warnings

import numpy as np
import pytest

from klnumba import gpu
from tests.gpu import compiled

MISSING = "the simulator has no launches" if gpu.is_simulated() else compiled.installed()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))

if MISSING is None:
    from cuda.bindings import driver as bindings

    from klnumba.kernels.cuda import flat, launch, machine, target
    from klnumba.kernels.cuda.launch import cells_of


class Driver:
    """As much of the driver as a launch asks for: what it copied, of `count` numbers, and where that was started."""

    CUfunction, CUresult = int, bindings.CUresult if MISSING is None else None

    def __init__(self, count=0, error="CUDA_SUCCESS", wait=0.0):
        self.count, self.error, self.wait, self.seen = count, getattr(self.CUresult, error), wait, []

    def CUstream(self, handle):
        return handle

    def cuLaunchKernel(self, function, gx, gy, gz, bx, by, bz, shared, stream, numbers, extra):
        time.sleep(self.wait)  # another thread may come in here
        places = (ctypes.c_uint64 * self.count).from_address(numbers)
        copied = b"".join(ctypes.string_at(place, 8) for place in places)
        self.seen.append(((function, gx, bx, stream), copied))
        assert (gy, gz, by, bz, shared, extra) == (1, 1, 1, 1, 0, 0)
        return (self.error,)


@pytest.fixture
def driver(monkeypatch):
    """What installs a `Driver`, with nothing prepared."""

    def install(*args, **options):
        found = Driver(*args, **options)
        monkeypatch.setattr(launch, "driver", lambda: found)
        monkeypatch.setattr(launch, "_stream", found.CUstream)
        monkeypatch.setattr(launch, "_ready", {})
        return found

    return install


@pytest.fixture
def numba_arrays(monkeypatch):
    """Numba's part of passing an array, which asks for a device, of cells that say themselves what it would find."""

    def wrapped(cells):
        shape = types.SimpleNamespace(strides_in_bytes=None, is_contiguous_c=True, is_contiguous_f=True)
        assert cells.size, "Numba passes no cells otherwise"
        found = types.SimpleNamespace(
            size=cells.size, dtype=np.dtype(cells.dtype), ptr=cells.pointer, shape=(cells.size,), _layout=shape
        )
        return types.SimpleNamespace(to_device=lambda retr, stream: found)

    monkeypatch.setattr(compiled.stubbed(), "wrap_arg", wrapped)
    monkeypatch.setattr(launch.Cells, "of_numba", lambda self: self)


class Made:
    """A compiled kernel of the types of some arguments, with Numba's own way of passing them."""

    debug = cooperative = False
    extensions = ()

    def __init__(self, argument_types, handle=7):
        self.argument_types = argument_types
        self._codelibrary = types.SimpleNamespace(get_cufunc=lambda: types.SimpleNamespace(handle=handle))

    def _prepare_args(self, *args):
        compiled.stubbed()._Kernel._prepare_args(self, *args)


class Kernel:
    """A kernel whose compilation is counted; `name` tells it in what Numba starts."""

    def __init__(self, make=Made):
        self.make, self.compiled, self.started = make, [], []

    def compile(self, signature):
        self.compiled.append(signature)
        return self.make(signature)

    def __getitem__(self, configuration):
        return lambda *args: self.started.append((configuration, args))


def cells(pointer=1 << 62, size=5, dtype="float32"):
    return cells_of(dtype)(pointer, size, None)


A, B = (1 << 63) + 16, 4096  # addresses, one of them with the highest bit
ARGUMENTS = [
    (lambda: (cells(A, 5),), [0, 0, 5, 4, A, 5, 4]),
    (lambda: (cells(B, 0, "int64"), -3), [0, 0, 0, 8, B, 0, 8, -3]),
    (lambda: (2, 2.5, -(1 << 63)), [2, 2.5, -(1 << 63)]),
    (lambda: ((1, 2), (0.5,), (), 3), [1, 2, 0.5, 3]),
    (
        lambda: ((cells(A, 5, "uint16"), cells(B, 9, "uint8")), 1.0, (7, (8, 0.25)), cells(B, 1, "int32")),
        [0, 0, 5, 2, A, 5, 2, 0, 0, 9, 1, B, 9, 1, 1.0, 7, 8, 0.25, 0, 0, 1, 4, B, 1, 4],
    ),
]


def packed(numbers):
    return b"".join(struct.pack("d" if isinstance(x, float) else "Q" if x >= 0 else "q", x) for x in numbers)


@pytest.mark.parametrize(("arguments", "expected"), ARGUMENTS)
def test_a_kernel_is_given_what_numba_gives(arguments, expected, driver, numba_arrays):
    args, found = arguments(), driver(len(expected))
    kernel = Kernel()
    launch.start(kernel, 3, 128, 0, 9, args)
    launch.start(kernel, 3, 128, 0, 9, args)
    assert found.seen == [((7, 3, 128, 9), packed(expected))] * 2
    assert len(kernel.compiled) == 1
    assert not kernel.started


def test_types_are_those_of_numba():
    from numba.cuda import types as theirs
    from numba.cuda.typing.typeof import typeof

    args = (cells(), 1, 1.0, (1, 2), (1, 0.5), (), (cells(), cells()))
    array = theirs.Array(theirs.float32, 1, "C")
    numbers = tuple(map(typeof, args[1:6]))
    assert launch.signature(launch.kinds_of(args)) == (array, *numbers, theirs.UniTuple(array, 2))


def test_numbers_of_any_kind(driver, numba_arrays):
    found, kernel = driver(6), Kernel()
    for args in (
        (1, 0, 3, 2.0, 0.5, 1.5),
        (True, np.False_, np.int32(3), np.float64(2), np.float32(0.5), np.float16(1.5)),
        (np.uint8(1), np.int64(0), np.uint64(3), 2.0, np.float64(0.5), 1.5),
    ):
        launch.start(kernel, 1, 1, 0, 0, args)
    assert [numbers for _, numbers in found.seen] == [packed([1, 0, 3, 2.0, 0.5, 1.5])] * 3
    assert len(kernel.compiled) == 1
    with pytest.raises(TypeError, match="cells or a number, not str"):
        launch.start(kernel, 1, 1, 0, 0, ("1",))


def test_each_device_and_each_type_has_a_function_of_its_own(driver, numba_arrays):
    found, kernel = driver(7), Kernel()
    for device, dtype in ((0, "float32"), (1, "float32"), (0, "float64"), (1, "float32"), (0, "float32")):
        launch.start(kernel, 1, 1, device, 0, (cells(dtype=dtype),))
    assert len(kernel.compiled) == 3
    assert len(found.seen) == 5


def test_a_refused_launch_has_a_name(driver, numba_arrays):
    driver(1, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")
    with pytest.raises(RuntimeError, match="could not be started: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"):
        launch.start(Kernel(), 1, 1, 0, 0, (1,))


def test_threads_have_their_own_numbers(driver, numba_arrays):
    found, kernel, count = driver(3, wait=0.001), Kernel(), 40

    def work(first):
        for k in range(count):
            launch.start(kernel, first + k, 1, 0, 0, (first + k, 1.0, first + k))

    workers = [threading.Thread(target=work, args=(first,)) for first in (100, 200, 300)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found.seen) == 3 * count
    for (_, grid, _, _), numbers in found.seen:
        assert numbers == packed([grid, 1.0, grid])


def test_a_launch_inside_a_launch_has_its_own_numbers(driver, numba_arrays):
    found, kernel = driver(1), Kernel()
    copy = found.cuLaunchKernel

    def interrupted(*args):  # as by a handler of a signal
        if args[1] < 3:
            launch.start(kernel, args[1] + 1, 1, 0, 0, (args[1] + 1,))
        return copy(*args)

    found.cuLaunchKernel = interrupted
    launch.start(kernel, 1, 1, 0, 0, (1,))
    assert [(grid, numbers) for (_, grid, _, _), numbers in found.seen] == [(k, packed([k])) for k in (3, 2, 1)]


class Moved:
    """A compiled kernel of another Numba."""

    def __init__(self, argument_types):
        pass


class Wider(Made):
    """A compiled kernel of a Numba that passes one number more."""

    def _prepare_args(self, kind, value, stream, retr, numbers):
        super()._prepare_args(kind, value, stream, retr, numbers)
        numbers.append(0)


class Debugged(Made):
    """A kernel whose errors Numba looks for after the launch."""

    debug = True


def no_module(argument_types):
    raise ImportError("cuda.bindings")


@pytest.mark.parametrize("make", [Moved, Wider, Debugged, no_module] if MISSING is None else [])
def test_numba_starts_what_is_not_understood(make, driver, numba_arrays, monkeypatch):
    found, kernel = driver(), Kernel(make)
    monkeypatch.setattr(launch.numba_cuda, "external_stream", lambda handle: ("stream", handle))
    monkeypatch.setattr(launch.Cells, "of_numba", lambda self: ("array of Numba", self.pointer))
    if make is Wider:
        monkeypatch.setattr(launch, "_of_numba", lambda x: x)
        args = (1, (2, 0.5))
    else:
        args = (cells(A), (2, cells(B)))
    for stream in (0, 5, 5):
        launch.start(kernel, 3, 128, 0, stream, args)
    places = [(3, 128, 0), (3, 128, ("stream", 5)), (3, 128, ("stream", 5))]
    passed = args if make is Wider else (("array of Numba", A), (2, ("array of Numba", B)))
    assert kernel.started == [(place, passed) for place in places]
    assert not found.seen
    assert len(kernel.compiled) == 1


def test_a_failed_compilation_is_told(driver):
    def fails(argument_types):
        raise RuntimeError("no room")

    with pytest.raises(RuntimeError, match="no room"):
        launch.start(Kernel(fails), 1, 1, 0, 0, (1,))


def test_numba_says_nothing_of_small_grids():
    from numba.core import errors as first
    from numba.cuda.core import errors as second

    class Warns:
        def __getitem__(self, configuration):
            for module in (first, second):
                warnings.warn(module.NumbaPerformanceWarning("Grid size 1 will likely ..."), stacklevel=1)
            return len

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert launch.configured(Warns(), 1, 32, 0, 0) is len


def test_what_numba_compiles_has_a_function(monkeypatch, driver, numba_arrays):
    """The inner parts of the installed numba-cuda are where a launch looks for them."""
    import numba.cuda.codegen as codegen

    capability = types.SimpleNamespace(compute_capability=(9, 0), id=0)
    module = types.SimpleNamespace(
        initialized=True, get_function=lambda name: types.SimpleNamespace(handle=77, module=module)
    )
    context = types.SimpleNamespace(device=capability, create_module_image=lambda *_: module)
    monkeypatch.setattr(compiled.stubbed(), "get_current_device", lambda: capability)
    monkeypatch.setattr(codegen.devices, "get_context", lambda *_: context)
    monkeypatch.setattr(codegen.JITCUDACodegen, "magic_tuple", lambda self: ((9, 0),))
    kernel = target.numba_cuda.jit(launch_bounds=(256, 1))(flat.filled().py_func)
    found = driver(8)
    launch.start(kernel, 2, 256, 0, 0, (1.5, cells(A, 3, "float64")))
    assert found.seen == [((77, 2, 256, 0), packed([1.5, 0, 0, 3, 8, A, 3, 8]))]


@pytest.fixture
def devices(monkeypatch):
    """Devices whose contexts are 100 and 101, the context of this thread, and which ones were entered."""
    found = types.SimpleNamespace(current=0, entered=[])

    class Device:
        def __init__(self, number):
            self.number = number

        def __enter__(self):
            found.entered.append(self.number)
            self.before, found.current = found.current, 100 + self.number

        def __exit__(self, *_):
            found.current = self.before

    def get_current():
        return bindings.CUresult.CUDA_SUCCESS, bindings.CUcontext(found.current)

    monkeypatch.setattr(machine, "numba_cuda", types.SimpleNamespace(gpus=[Device(0), Device(1)]))
    monkeypatch.setattr(machine, "_contexts", {})
    monkeypatch.setattr(launch, "driver", lambda: types.SimpleNamespace(cuCtxGetCurrent=get_current))
    return found


def test_a_device_is_entered_where_the_thread_is_not_in_it(devices):
    def enter(device):
        with machine.at(device):
            assert devices.current == 100 + device

    devices.current = 100  # another library is at work there, but Numba has not seen it
    enter(0)
    assert devices.entered == [0]
    enter(0)
    assert devices.entered == [0]
    enter(1)
    enter(1)
    assert devices.entered == [0, 1, 1]
    assert devices.current == 100
    devices.current = 101
    enter(1)
    enter(0)
    assert devices.entered == [0, 1, 1, 0]
    for other in (0, 555):  # a fresh thread, and a context that is nobody's first
        devices.current = other
        enter(0)
        assert devices.entered.pop() == 0
        assert devices.current == other


def test_the_number_of_the_device_at_work(devices, monkeypatch):
    for device in (0, 1):
        with machine.at(device):
            assert machine.number() == device
    devices.current = 555
    machine.numba_cuda.get_current_device = lambda: types.SimpleNamespace(id=3)
    assert machine.number() == 3


def test_the_device_of_an_address(devices, monkeypatch):
    places = {4096: (0, 1), 8192: (0, 0), 12288: (1, None), 16384: (0, -1)}
    asked = types.SimpleNamespace(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL=9)
    calls = types.SimpleNamespace(
        CUpointer_attribute=asked, CUresult=types.SimpleNamespace(CUDA_SUCCESS=0),
        cuPointerGetAttribute=lambda attribute, pointer: places[pointer] if attribute == 9 else None,
    )  # fmt: skip
    monkeypatch.setattr(launch, "driver", lambda: calls)
    monkeypatch.setattr(machine, "number", lambda: 7)
    monkeypatch.setattr(machine, "_devices", lambda: 2)
    assert [machine.device_of(pointer) for pointer in (0, *places)] == [7, 1, 0, 7, 7]
    monkeypatch.setattr(machine, "_devices", lambda: 1)
    assert machine.device_of(4096) == 7

    def missing():
        raise ImportError("cuda.bindings")

    monkeypatch.setattr(machine, "_devices", lambda: 2)
    monkeypatch.setattr(launch, "driver", missing)
    assert machine.device_of(4096) == 7


def test_without_the_driver_every_device_is_entered(devices, monkeypatch):
    def missing():
        raise ImportError("cuda.bindings")

    monkeypatch.setattr(launch, "driver", missing)
    for _ in range(2):
        with machine.at(1):
            assert devices.current == 101
    assert devices.entered == [1, 1]


def test_cells_go_to_the_host_and_come_from_there(monkeypatch):
    memory = np.zeros(1 << 15)

    class Part:
        def __init__(self, cells):
            self.cells = cells

        def __getitem__(self, which):
            return Part(self.cells[which])

        def copy_to_device(self, source, stream):
            self.cells[...] = source

        def copy_to_host(self):
            return self.cells.copy()

    monkeypatch.setattr(launch.Cells, "of_numba", lambda self: Part(memory[: self.size]))
    monkeypatch.setattr(machine, "_stream", lambda on: types.SimpleNamespace(synchronize=lambda: None))
    numbers, there = np.random.default_rng(0).normal(size=20_000), cells(A, 20_000, "float64")
    machine.upload(numbers, there, 0)
    np.testing.assert_array_equal(machine.download(there, 0), numbers)
    np.testing.assert_array_equal(machine.download(Part(numbers), 0), numbers)


def test_a_stream_goes_on_where_another_is(monkeypatch):
    done = []

    def event(timing):
        return types.SimpleNamespace(
            record=lambda stream: done.append(("record", stream, timing)),
            wait=lambda stream: done.append(("wait", stream)),
        )

    monkeypatch.setattr(machine, "numba_cuda", types.SimpleNamespace(event=event))
    monkeypatch.setattr(machine, "_stream", lambda on: on)
    machine.follow(5, 7)
    assert done == [("record", 7, False), ("wait", 5)]


def test_cells_as_an_array_of_numba(monkeypatch):
    seen = []
    monkeypatch.setattr(
        launch, "numba_cuda",
        types.SimpleNamespace(from_cuda_array_interface=lambda parts, owner: seen.append((parts, owner))),
    )  # fmt: skip
    cells_of("uint16")(64, 3, "theirs").of_numba()
    assert seen == [({"version": 3, "shape": (3,), "typestr": "<u2", "data": (64, False)}, "theirs")]
