"""Kernels on disk, without a device."""

import types

import pytest

from tests.gpu import compiled

MISSING = compiled.installed()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


@pytest.fixture
def device(monkeypatch):
    """What Numba asks of the device for which it compiles."""
    import numba.cuda.codegen as codegen

    stub = types.SimpleNamespace(compute_capability=(9, 0))
    monkeypatch.setattr(compiled.stubbed(), "get_current_device", lambda: stub)
    monkeypatch.setattr(codegen.devices, "get_context", lambda *_: types.SimpleNamespace(device=stub))
    monkeypatch.setattr(codegen.JITCUDACodegen, "magic_tuple", lambda self: (stub.compute_capability,))
    return stub


def test_a_kernel_comes_back_from_disk(tmp_path, device):
    from klnumba.kernels.cuda import cache

    (kernel,) = [kernel for kernel in compiled.flats() if kernel.name == "filled"]
    dispatcher, types_ = kernel.function, tuple(kernel.arguments)
    first, second = (cache._cache_of(dispatcher.py_func, "filled", tmp_path) for _ in range(2))
    assert first.load_overload(types_, dispatcher.targetctx) is None
    made = compiled.stubbed()._Kernel(dispatcher.py_func, types_, **dispatcher.targetoptions)
    first.save_overload(types_, made)
    found = second.load_overload(types_, dispatcher.targetctx)
    assert found._codelibrary.get_asm_str(cc=(9, 0)) == made._codelibrary.get_asm_str(cc=(9, 0))
    device.compute_capability = (8, 0)
    assert second.load_overload(types_, dispatcher.targetctx) is None
    device.compute_capability = (9, 0)
    for path in tmp_path.glob("*.nbc"):
        path.write_bytes(b"damaged")
    assert second.load_overload(types_, dispatcher.targetctx) is None


def test_every_kernel_has_a_name_of_its_own():
    functions = {id(kernel.function): kernel.function for kernel in compiled.kernels()}
    names = [function.py_func.__name__ for function in functions.values()]
    assert len(set(names)) == len(names)


def test_kernels_are_looked_for_on_disk(monkeypatch):
    from klnumba.kernels import cache as of_loops
    from klnumba.kernels.cuda import cache

    dispatcher = compiled.flats().__next__().function
    wanted = cache._dispatcher.CUDACache if of_loops.cache_folder() else cache._caching.NullCache
    assert isinstance(dispatcher._cache, wanted)
    monkeypatch.setattr(of_loops, "cache_folder", lambda: None)
    assert cache._folder() is None
