"""Arrays of PyTorch, CuPy and JAX on a real device: what comes back is theirs, on their device and stream."""

import gc
import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import cuda as numba_cuda

import klnumba as kl
from tests.gpu.on_device.arrays import SIMULATED

pytestmark = pytest.mark.skipif(SIMULATED, reason="these libraries have no arrays in the simulator")

P, Q = np.random.default_rng(0).gamma(1.0, size=(2, 300, 65)) + 0.01
EXPECTED = kl.kl_divergence(P, Q)
# JAX brings libraries of CUDA that need not go with those of PyTorch: it is tried in a process of its own.
ALONE = "KLNUMBA_TESTS_OF_JAX"
LIBRARIES = ("jax",) if ALONE in os.environ else ("torch", "cupy")
SHORT = {"float64": 1e-14, "float32": 1e-6, "float16": 1e-2, "bfloat16": 1e-1}


@pytest.fixture(params=LIBRARIES)
def name(request, monkeypatch):
    """A library that finds the device."""
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    found = pytest.importorskip(request.param)
    if request.param == "torch" and not found.cuda.is_available():
        pytest.skip("this build of PyTorch has no CUDA")
    if request.param == "jax":
        found.config.update("jax_enable_x64", True)
        if not any(device.platform == "gpu" for device in found.devices()):
            pytest.skip("this build of JAX has no CUDA")
    return request.param


def put(array, name, dtype="float64"):
    library = importlib.import_module(name)
    if name == "torch":
        return library.as_tensor(array, device="cuda").to(getattr(library, dtype))
    if name == "cupy":
        return library.asarray(array).astype(dtype)
    return library.device_put(library.numpy.asarray(array, dtype), library.devices("gpu")[0])


def get(result, name):
    """On the host, once it is seen to be the library's own."""
    assert type(result).__module__.partition(".")[0].startswith(name)
    if name == "torch":
        assert result.is_cuda
        return result.cpu().numpy()
    return result.get() if name == "cupy" else np.asarray(result)


@pytest.mark.parametrize("dtype", SHORT)
@pytest.mark.parametrize("kind", ["prob", "log_prob", "logit"])
def test_results_are_the_librarys(name, dtype, kind):
    if name == "cupy" and dtype == "bfloat16":
        pytest.skip("CuPy has no bfloat16 without ml_dtypes")
    cells = [np.log(side) if kind != "prob" else side for side in (P, Q)]
    found = kl.kl_divergence(*(put(side, name, dtype) for side in cells), kind=kind)
    assert str(found.dtype).removeprefix("torch.") == ("float64" if dtype == "float64" else "float32")
    np.testing.assert_allclose(get(found, name), EXPECTED, rtol=SHORT[dtype])


def test_reductions_and_axes(name):
    p, q = put(P, name), put(Q, name)
    for settings in ({"reduction": "mean"}, {"reduction": "sum"}, {"axis": 0}, {"keepdims": True}):
        np.testing.assert_allclose(
            get(kl.kl_divergence(p, q, **settings), name), kl.kl_divergence(P, Q, **settings), rtol=1e-14
        )
    found, expected = kl.row_statistics(p, q), kl.row_statistics(P, Q)
    for key, values in expected.items():
        np.testing.assert_allclose(get(found[key], name).astype(float), values.astype(float), rtol=1e-13)
    np.testing.assert_allclose(get(kl.rel_entr(p, q), name), kl.rel_entr(P, Q), rtol=1e-14)


def test_views_and_masks(name):
    p, q = put(P, name), put(Q, name)
    found, expected = kl.kl_divergence(p[::2, 3:], q[::2, 3:]), kl.kl_divergence(P[::2, 3:], Q[::2, 3:])
    np.testing.assert_allclose(get(found, name), expected, rtol=1e-14)
    where = np.random.default_rng(1).random(P.shape) < 0.8
    found, expected = kl.kl_divergence(p, q, where=put(where, name, "bool")), kl.kl_divergence(P, Q, where=where)
    np.testing.assert_allclose(get(found, name), expected, rtol=1e-14)


def test_metrics(name):
    there, here = kl.KLDivergence(), kl.KLDivergence()
    for start in range(0, len(P), 100):
        there.update(put(P[start : start + 100], name), put(Q[start : start + 100], name))
        here.update(P[start : start + 100], Q[start : start + 100])
    assert float(there.compute()) == pytest.approx(float(here.compute()), rel=1e-14)


@pytest.mark.skipif(ALONE in os.environ, reason="this is that process")
def test_jax():
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    root = Path(__file__).parents[3]
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    program = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    process = subprocess.run(
        [*program, "-k", "jax and not test_jax", __file__],
        cwd=root, env=env | {ALONE: "1", "PYTHONPATH": path}, capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip
    if process.returncode == 0 and " passed" not in process.stdout:
        pytest.skip("this build of JAX has no CUDA")
    assert process.returncode == 0, process.stdout[-6000:] + process.stderr[-2000:]


def test_streams_of_torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this build of PyTorch has no CUDA")
    p, q = put(P, "torch"), put(Q, "torch")
    work = torch.cuda.Stream()
    with torch.cuda.stream(work):
        for _ in range(20):  # what is still to be computed on the stream is what the rows are made of
            held = (p.repeat(20, 20) @ q.repeat(20, 20).T)[:300, :65] * 0.0
            found = kl.kl_divergence(p + held, q + held)
    work.synchronize()
    np.testing.assert_allclose(found.cpu().numpy(), EXPECTED, rtol=1e-14)
    other = torch.cuda.Stream()
    torch.cuda.synchronize()
    found = kl.kl_divergence(p, q, stream=other)
    other.synchronize()
    np.testing.assert_allclose(found.cpu().numpy(), EXPECTED, rtol=1e-14)


def test_streams_of_cupy():
    cupy = pytest.importorskip("cupy")
    p, q = put(P, "cupy"), put(Q, "cupy")
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        found = kl.kl_divergence(p + 0.0, q + 0.0)
    stream.synchronize()
    np.testing.assert_allclose(found.get(), EXPECTED, rtol=1e-14)


def forget_arrays_of_numba():
    """Give back the memory that is garbage by now: a driver that frees some waits for the device."""
    gc.collect()
    numba_cuda.current_context().memory_manager.deallocations.clear()


def test_nothing_waits_for_the_device():
    """A call comes back while work that takes long still runs on its stream."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this build of PyTorch has no CUDA")
    p, q = put(P, "torch"), put(Q, "torch")
    kl.kl_divergence(p, q)
    forget_arrays_of_numba()
    torch.cuda.synchronize()
    torch.cuda._sleep(1_000_000_000)
    done = torch.cuda.Event()
    found = kl.kl_divergence(p, q)
    done.record()
    assert not done.query()
    np.testing.assert_allclose(found.cpu().numpy(), EXPECTED, rtol=1e-14)


@pytest.mark.filterwarnings("ignore:reduction")
def test_losses_are_those_of_torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this build of PyTorch has no CUDA")
    log_q, p = put(np.log(Q / Q.sum(-1, keepdims=True)), "torch"), put(P / P.sum(-1, keepdims=True), "torch")
    for reduction in ("none", "sum", "mean", "batchmean"):
        ours = kl.functional.kl_div(log_q, p, reduction=reduction)
        theirs = torch.nn.functional.kl_div(log_q, p, reduction=reduction)
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-15)
