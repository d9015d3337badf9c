"""What is said where CUDA cannot be used."""

import importlib.util
import json
import re

import numpy as np
import pytest

import klnumba as kl
from klnumba import gpu
from tests.kernels import sub


class OnDevice:
    """An array that says it lies on a device."""

    shape, dtype, ndim = (3,), np.dtype(float), 1
    __cuda_array_interface__ = {"version": 3, "shape": (3,), "typestr": "<f8", "data": (0, True)}  # noqa: RUF012


class Bare:
    """One that has the protocol alone."""

    __cuda_array_interface__ = OnDevice.__cuda_array_interface__


@pytest.fixture
def without(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "numba_cuda" else find(name, *rest)
    )


@pytest.mark.parametrize("function", ["kl_divergence", "entropy", "rel_entr", "row_statistics"])
def test_arrays_on_a_device_need_the_package(without, function):
    arguments = (OnDevice(),) if function == "entropy" else (OnDevice(), OnDevice())
    with pytest.raises(ImportError, match=r'python -m pip install "klnumba\[cuda13\]"') as raised:
        getattr(kl, function)(*arguments)
    assert "\n" not in str(raised.value)


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("function", [kl.functional.kl_div, kl.functional.kl_divergence, kl.KLDivergence().update])
def test_so_do_those_whose_shape_the_protocol_tells(without, function):
    with pytest.raises(ImportError, match=r'python -m pip install "klnumba\[cuda13\]"'):
        function(Bare(), Bare())


def test_the_reason_is_told(without):
    assert not kl.cuda.is_available()
    assert "klnumba[cuda13]" in kl.cuda.reason()
    assert "klnumba[cuda13]" in kl.info()["cuda"]


@pytest.mark.skipif(not gpu.is_installed(), reason=gpu.MISSING)
def test_a_numpy_that_is_too_new_is_named(monkeypatch):
    monkeypatch.setattr(gpu.importlib.metadata, "version", lambda name: "0.30.4")
    monkeypatch.setattr(np, "__version__", "2.5.0rc1")
    gpu._unfit.cache_clear()
    told = r'numba-cuda 0\.30\.4 does not work with NumPy 2\.5\.0rc1 \(python -m pip install "numpy<2\.5"\)'
    assert re.fullmatch(told, kl.cuda.reason())
    with pytest.raises(ImportError, match=told):
        kl.kl_divergence(OnDevice(), OnDevice())
    gpu._unfit.cache_clear()
    monkeypatch.setattr(gpu.importlib.metadata, "version", lambda name: "0.31.0")
    assert gpu.unfit() is None
    gpu._unfit.cache_clear()

    def absent(name):
        raise gpu.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(gpu.importlib.metadata, "version", absent)
    assert gpu.unfit() is None
    gpu._unfit.cache_clear()


def test_a_stream_is_for_devices():
    with pytest.raises(ValueError, match="stream: only arrays on a CUDA device"):
        kl.kl_divergence([1.0, 2.0], [2.0, 1.0], stream=1)


@pytest.mark.skipif(not gpu.is_installed(), reason=gpu.MISSING)
def test_where_there_is_no_driver_the_package_says_so(tmp_path):
    program = (
        "import json, klnumba as kl\nprint(json.dumps([kl.cuda.is_available(), kl.cuda.reason(), kl.info()['cuda']]))"
    )
    found, reason, told = json.loads(sub.run(program, tmp_path))
    assert found == (reason is None)
    assert found or told == f"not used: {reason}"


def test_nothing_of_cuda_is_loaded_for_arrays_of_the_cpu(tmp_path):
    program = (
        "import sys, klnumba as kl\n"
        "kl.kl_divergence([1.0, 2.0], [2.0, 1.0]), kl.cuda\n"
        "theirs = 'numba.cuda', 'numba_cuda', 'klnumba.kernels.cuda'\n"
        "print(sorted(name for name in sys.modules if name.startswith(theirs)))"
    )
    assert sub.run(program, tmp_path) == "[]"
