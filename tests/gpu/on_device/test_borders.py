"""Libraries, streams and places: what goes in, what comes out, and what is refused."""

import contextlib
import sys
import types
from dataclasses import replace

import numpy as np
import pytest

import klnumba as kl
from klnumba.gpu import borders, given, host
from klnumba.kernels.cuda import machine
from tests.gpu.on_device.arrays import SIMULATED, Interface, get, put

P, Q = np.random.default_rng(0).gamma(1.0, size=(2, 3, 20)) + 0.01
FUNCTIONS = ("kl_divergence", "js_divergence", "cross_entropy", "rel_entr", "generalized_kl", "row_statistics")


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("order", [1, -1])
def test_arrays_in_two_places(function, order):
    sides = [P, put(Q)][::order]
    with pytest.raises(ValueError, match=r"p and q: p is .* q is .*; move one to the other") as raised:
        getattr(kl, function)(*sides)
    assert "in the memory of the CPU" in str(raised.value)
    assert "on device cuda:0" in str(raised.value)


def test_a_mask_or_a_result_elsewhere():
    with pytest.raises(ValueError, match=r"p and where: p is on device cuda:0, where is in the memory of the CPU"):
        kl.kl_divergence(put(P), put(Q), where=np.ones(P.shape, bool))
    with pytest.raises(ValueError, match=r"p and out: p is on device cuda:0, out is in the memory of the CPU"):
        kl.kl_divergence(put(P), put(Q), out=np.empty(3))
    with pytest.raises(ValueError, match=r"input and target: "):
        kl.functional.kl_div(put(np.log(Q)), P, reduction="sum")


def test_two_devices(monkeypatch):
    first, second = Interface(P), Interface(Q)
    take = borders.take
    monkeypatch.setattr(borders, "take", lambda x, name: replace(take(x, name), device=int(x is second)))
    with pytest.raises(ValueError, match=r"p and q: p is on device cuda:0, q is on device cuda:1"):
        kl.kl_divergence(first, second)


def test_each_array_is_on_the_device_of_its_address(monkeypatch):
    p, q = put(P), Interface(Q)
    other = borders.take(q, "q").pointer
    monkeypatch.setattr(machine, "device_of", lambda pointer: int(pointer == other))
    with pytest.raises(ValueError, match=r"p and q: p is on device cuda:0, q is on device cuda:1"):
        kl.kl_divergence(p, q)
    with pytest.raises(ValueError, match=r"p and q: p is on device cuda:1, q is on device cuda:0"):
        kl.kl_divergence(q, p)


def test_options_are_checked_as_on_the_cpu():
    p, q = put(P), put(Q)
    with pytest.raises(ValueError, match="do not broadcast"):
        kl.kl_divergence(p, put(np.ones((2, 7))))
    with pytest.raises(ValueError, match="kind"):
        kl.kl_divergence(p, q, kind="odds")
    with pytest.raises(TypeError, match="p: dtype complex128"):
        kl.kl_divergence(put(P + 0j), q)
    for wrapped in (put, Interface):
        with pytest.raises(TypeError, match="q: dtype >f8 is not in this machine's byte order"):
            kl.kl_divergence(p, wrapped(Q.astype(">f8")))
    with pytest.raises(ValueError, match=r"out: shape \(4,\)"):
        kl.kl_divergence(p, q, out=put(np.empty(4)))
    with pytest.raises(TypeError, match="where: a boolean array"):
        kl.kl_divergence(p, q, where=put(np.ones(P.shape)))
    with pytest.raises(TypeError, match="dtype: float64 or float32"):
        kl.kl_divergence(p, q, dtype=np.float16)
    with pytest.raises(TypeError, match="stream: a CUDA stream"):
        kl.kl_divergence(p, q, stream="fast")


def test_where_a_result_can_be():
    p, q = put(P), put(Q)
    for function, shape in ((kl.kl_divergence, 3), (kl.rel_entr, P.shape)):
        with pytest.raises(ValueError, match="out: read-only"):
            function(p, q, out=Interface(np.zeros(shape)))
        out = Interface(np.zeros(shape), read_only=False)
        assert function(p, q, out=out) is out
        np.testing.assert_allclose(host.numbers(out), function(P, Q), rtol=1e-14)
        with pytest.raises(TypeError, match="out: float64 or float32 for arrays on a device, not float16"):
            function(p, q, out=put(np.zeros(shape, np.float16)))
        with pytest.raises(TypeError, match="dtype: float64 or float32 for arrays on a device, not bool"):
            function(p, q, dtype=bool)


@pytest.mark.skipif(not SIMULATED, reason="JAX's arrays of the CPU stand for those of a device")
def test_no_result_is_put_into_an_array_of_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    out = borders.take(jax.numpy.zeros(3, "float32"), "out")
    with pytest.raises(ValueError, match="out: read-only"):
        given.fit_for_results(out)


@pytest.mark.parametrize("where", [True, np.True_, False, np.False_])
def test_a_mask_that_is_one_truth_value(where):
    for settings in ({}, {"normalize": False}, {"reduction": "mean"}):
        found = get(kl.kl_divergence(put(P), put(Q), where=where, **settings))
        np.testing.assert_allclose(found, kl.kl_divergence(P, Q, where=where, **settings), rtol=1e-14)
    found = get(kl.row_statistics(put(P), put(Q), where=where)["js"])
    np.testing.assert_allclose(found, kl.row_statistics(P, Q, where=where)["js"], rtol=1e-14)
    out = put(np.full(P.shape, 7.0))
    kl.rel_entr(put(P), put(Q), out, where=where)
    np.testing.assert_allclose(get(out), kl.rel_entr(P, Q, np.full(P.shape, 7.0), where=where), rtol=1e-14)
    with pytest.raises(ValueError, match="p and q: p is in the memory of the CPU"):
        kl.rel_entr(where, put(Q))


def test_a_row_that_is_none_is_named():
    p = P.copy()
    p[1, 7] = np.nan
    with pytest.raises(ValueError, match="p: row 1, cell 7 is NaN"):
        kl.kl_divergence(put(p), put(Q), invalid="raise")
    np.testing.assert_allclose(get(kl.kl_divergence(put(P), put(Q), invalid="raise")), kl.kl_divergence(P, Q))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_row_that_is_none_is_named_before_all_become_one_number(reduction):
    p = P.copy()
    p[1, 7] = np.nan
    with pytest.raises(ValueError, match="p: row 1, cell 7 is NaN"):
        kl.kl_divergence(put(p), put(Q), reduction=reduction, invalid="raise")
    for x in (P, P[:0]):
        found = get(kl.kl_divergence(put(x), put(Q[: len(x)]), reduction=reduction, invalid="raise"))
        np.testing.assert_allclose(found, kl.kl_divergence(x, Q[: len(x)], reduction=reduction, invalid="raise"))
    assert get(kl.row_statistics(put(P[:0]), put(Q[:0]), invalid="raise")["kl"]).shape == (0,)


def test_an_input_is_not_overwritten_where_a_row_is_none():
    p = P[:, :3].copy()
    p[0, 1] = np.nan
    there = put(p)
    with pytest.raises(ValueError, match="p: row 1, cell 0 is NaN"):
        kl.kl_divergence(there, put(Q[:, :3].copy()), axis=0, out=there[0], invalid="raise")
    np.testing.assert_array_equal(get(there), p)


def test_inputs_stay_as_they_are():
    p, q = put(P), put(Q)
    kl.row_statistics(p, q)
    kl.kl_divergence(p, q, axis=0)
    np.testing.assert_array_equal(get(p), P)
    np.testing.assert_array_equal(get(q), Q)


def test_streams_of_other_libraries():
    array = borders.take(put(P), "p")
    handle = types.SimpleNamespace(value=7)
    for stream in (7, types.SimpleNamespace(cuda_stream=7), types.SimpleNamespace(ptr=7),
                   types.SimpleNamespace(handle=handle),
                   types.SimpleNamespace(__cuda_stream__=lambda: (0, 7))):  # fmt: skip
        assert borders.stream_of(stream, array) == 7
    assert borders.stream_of(None, array) == 0


class Tensor:
    """As much of a PyTorch tensor as is asked for."""

    def __init__(self, array, name):
        self.array, self.shape, self.requires_grad = array, array.shape, False
        self.dtype = f"torch.{name}"
        self.device = types.SimpleNamespace(index=0)
        self.layout = "strided"
        self.is_nested = False

    detach = resolve_neg = lambda self: self

    def is_inference(self):
        return False

    def is_complex(self):
        return False

    def data_ptr(self):
        return self.array.ctypes.data

    def stride(self):
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def __dlpack_device__(self):
        return (2, 0)


Tensor.__module__ = "torch"
NO_TANGENT = types.SimpleNamespace(tangent=None)
AUTOGRAD = types.SimpleNamespace(forward_ad=types.SimpleNamespace(unpack_dual=lambda x: NO_TANGENT))


@pytest.mark.skipif(not SIMULATED, reason="its memory is that of the host")
@pytest.mark.parametrize("name", ["float64", "float32", "bfloat16"])
def test_tensors(name, monkeypatch):
    import ml_dtypes

    kind = np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
    torch = types.SimpleNamespace(
        Tensor=Tensor, autograd=AUTOGRAD, float64="float64", float32="float32", strided="strided",
        uint8="uint8", empty=lambda shape, dtype, device: Tensor(np.empty(shape, dtype), dtype),
        cuda=types.SimpleNamespace(
            current_stream=lambda device: types.SimpleNamespace(cuda_stream=0),
            ExternalStream=lambda stream, device: stream, stream=contextlib.nullcontext,
        ),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch", torch)
    p, q = P.astype(kind), Q.astype(kind)
    result = kl.kl_divergence(Tensor(p, name), Tensor(q, name))
    assert isinstance(result, Tensor)
    assert result.dtype == ("torch.float64" if name == "float64" else "torch.float32")
    expected = kl.kl_divergence(p.astype(float), q.astype(float))
    np.testing.assert_allclose(result.array, expected, rtol=1e-14 if name == "float64" else 1e-6)


@pytest.mark.skipif(not SIMULATED, reason="JAX's arrays of the CPU stand for those of a device")
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bool"])
def test_results_of_jax_are_as_wide_as_kernels_take_them(dtype, old, monkeypatch):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    assert not jax.config.jax_enable_x64
    (cpu,) = jax.devices("cpu")[:1]
    if old:  # JAX before 0.8
        monkeypatch.setattr(jax.experimental, "enable_x64", jax.enable_x64, raising=False)
        monkeypatch.delattr(jax, "enable_x64")
    monkeypatch.setattr(jax, "devices", lambda kind: [cpu])
    array, pointer = borders._Jax.empty((3, 5), dtype, cpu.local_hardware_id, 0)
    assert array.dtype == np.dtype(dtype)
    assert pointer == array.unsafe_buffer_pointer()


@pytest.mark.skipif(not SIMULATED, reason="JAX's arrays of the CPU stand for those of a device")
def test_a_result_of_jax_that_is_too_small_is_refused(monkeypatch):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    (cpu,) = jax.devices("cpu")[:1]
    monkeypatch.setattr(jax, "devices", lambda kind: [cpu])
    monkeypatch.setattr(borders, "_wide_numbers", lambda jax: contextlib.nullcontext())
    with pytest.warns(UserWarning, match="truncated"), pytest.raises(RuntimeError, match="of float32 where float64"):
        borders._Jax.empty((3,), "float64", cpu.local_hardware_id, 0)


def test_an_array_is_looked_at_once(monkeypatch):
    seen, take = [], borders.take
    monkeypatch.setattr(borders, "take", lambda x, name: seen.append(name) or take(x, name))
    kl.kl_divergence(put(P), put(Q), where=put(np.ones(P.shape, bool)), out=put(np.empty(3)))
    assert sorted(seen) == ["out", "p", "q", "where"]
