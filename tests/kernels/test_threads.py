"""Threads, processes and other people's pools: right answers, no abort, no hang.

Every case that could hang or abort runs in a process of its own, with a time limit.
"""

from __future__ import annotations

import contextlib
import importlib.util
import multiprocessing
import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import klnumba as kl
from klnumba.kernels import compiler
from klnumba.kernels.threads import apart
from tests.kernels import sub

HEAD = """
import multiprocessing, os, sys, threading
import numpy as np
import klnumba as kl

def data(seed=0, shape=(400, 1000)):
    rng = np.random.default_rng(seed)
    return rng.gamma(1.0, size=shape), rng.gamma(1.0, size=shape)

def reference(p, q):
    p, q = (x / x.sum(-1, keepdims=True) for x in (p, q))
    return (p * np.log(p / q)).sum(-1)

def check(p, q, **settings):
    found = kl.kl_divergence(p, q, **settings)
    np.testing.assert_allclose(found, reference(p, q), rtol=1e-12)
    return found

def child(seed):
    p, q = data(seed)
    return float(np.abs(check(p, q, threads=2) - reference(p, q)).max())
"""

LAYER = """
from numba import njit, prange, threading_layer

@njit(parallel=True)
def theirs(x):
    s = 0.0
    for i in prange(x.size):
        s += x[i]
    return s
"""


LIBRARIES = os.pathsep.join(filter(None, [str(Path(sys.prefix) / "lib"), os.environ.get("LD_LIBRARY_PATH")]))


def layer_available(layer: str, folder: Path) -> bool:
    """Whether Numba can load one of its threading layers here; TBB's library may lie in the environment."""
    name = {"omp": "omppool", "tbb": "tbbpool", "workqueue": "workqueue"}[layer]
    program = f"""
try:
    import numba.np.ufunc.{name}
except ImportError:
    print("missing")
"""
    return sub.run(program, folder, LD_LIBRARY_PATH=LIBRARIES) == ""


@pytest.fixture
def process(tmp_path):
    """Runs programs with the cache of these tests."""

    def run(program, seconds=60.0, **settings):
        return sub.run(HEAD + program, tmp_path, seconds=seconds, **sub.shared(), **settings)

    return run


# --- threads of the caller ------------------------------------------------------------------------------------------

CALLERS = """
x = np.ones(100_000)
assert theirs(x) == x.size
assert threading_layer() == os.environ["NUMBA_THREADING_LAYER"]
failures = []
stop = threading.Event()

def caller(seed):
    try:
        p, q = data(seed, (150, 1000))
        for threads in (None, 1, 2, 3) * 2:
            check(p, q, threads=threads)
    except BaseException as error:
        failures.append(repr(error))

def theirs_too():
    try:
        while not stop.is_set():
            assert theirs(x) == x.size
    except BaseException as error:
        failures.append(repr(error))

other = threading.Thread(target=theirs_too)  # one alone: `workqueue` aborts on two parallel loops at a time
other.start()
callers = [threading.Thread(target=caller, args=(seed,)) for seed in range(4)]
for thread in callers: thread.start()
for thread in callers: thread.join()
stop.set()
other.join()
check(*data(9))
assert not failures, failures
print("fine")
"""


@pytest.mark.part(3)
@pytest.mark.parametrize("layer", ["omp", "tbb", "workqueue"])
def test_four_callers_beside_a_threading_layer(process, tmp_path, layer):
    if not layer_available(layer, tmp_path):
        pytest.skip(f"Numba cannot load its threading layer {layer} here")
    assert process(LAYER + CALLERS, NUMBA_THREADING_LAYER=layer, LD_LIBRARY_PATH=LIBRARIES) == "fine"


def test_first_use_from_four_threads_at_once(process):
    """Four threads meet at the first compilation, and one of them does it."""
    program = """
from collections import Counter
from numba.core import event

compiled = Counter()

class Listener(event.Listener):
    def on_start(self, event):
        compiled[event.data["dispatcher"].py_func.__qualname__] += 1
    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
results = {}
gate = threading.Barrier(4)

def caller(seed):
    p, q = data(seed, (100, 1000))
    gate.wait()
    results[seed] = check(p, q)

callers = [threading.Thread(target=caller, args=(seed,)) for seed in range(4)]
for thread in callers: thread.start()
for thread in callers: thread.join()
assert sorted(results) == [0, 1, 2, 3], results
assert compiled["kl_long_float64"] == 1, compiled
print("fine")
"""
    assert process(program, KLNUMBA_CACHE="0") == "fine"


# --- processes ------------------------------------------------------------------------------------------------------

POOL = """
if __name__ == "__main__":
    check(*data(), threads=2)
    PARALLEL
    with multiprocessing.get_context("METHOD").Pool(2) as pool:
        assert max(pool.map(child, range(4))) < 1e-9
    check(*data(1), threads=2)
    print("fine")
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pools_of_processes(process, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no start method {method}")
    assert process(POOL.replace("METHOD", method).replace("PARALLEL", "")) == "fine"


def test_forked_pool_after_a_parallel_loop(process):
    """The layer `omp` of Numba ends such children when they start a parallel loop; ours is none."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system does not fork")
    line = "assert theirs(np.ones(10)) == 10.0"
    assert process(LAYER + POOL.replace("METHOD", "fork").replace("PARALLEL", line)) == "fine"


def test_fork_while_other_threads_compute(process):
    """The child must not inherit a lock that is held."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system does not fork")
    program = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads
check(*data(), threads=2)
stop = threading.Event()

def busy():
    p, q = data(5, (200, 1000))
    while not stop.is_set():
        kl.kl_divergence(p, q, threads=2)

thread = threading.Thread(target=busy)
thread.start()
for seed in range(5):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if child(seed) < 1e-9 else 1)
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
thread.join()
print("fine")
"""
    assert process(program) == "fine"


# --- other libraries' workers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_joblib(process, backend):
    if importlib.util.find_spec("joblib") is None:
        pytest.skip("joblib is not installed")
    program = """
from joblib import Parallel, delayed

def work(seed):
    import numpy as np, klnumba as kl
    rng = np.random.default_rng(seed)
    p, q = rng.gamma(1.0, size=(400, 1000)), rng.gamma(1.0, size=(400, 1000))
    return kl.kl_divergence(p, q)

if __name__ == "__main__":
    check(*data(), threads=2)
    for seed, found in enumerate(Parallel(n_jobs=2, backend="BACKEND")(delayed(work)(seed) for seed in range(4))):
        assert found.tobytes() == check(*data(seed)).tobytes()
    print("fine")
"""
    assert process(program.replace("BACKEND", backend)) == "fine"


@pytest.mark.parametrize("scheduler", ["threads", "processes", "sync"])
def test_dask_schedulers(process, scheduler):
    if importlib.util.find_spec("dask") is None:
        pytest.skip("dask is not installed")
    program = """
import dask

if __name__ == "__main__":
    check(*data(), threads=2)
    parts = [data(seed) for seed in range(4)]
    found = dask.compute(*[dask.delayed(kl.kl_divergence)(p, q) for p, q in parts], scheduler="SCHEDULER")
    for (p, q), one in zip(parts, found):
        assert one.tobytes() == check(p, q).tobytes()
    print("fine")
"""
    assert process(program.replace("SCHEDULER", scheduler)) == "fine"


def test_dask_cluster(process):
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("distributed is not installed")
    program = """
from dask.distributed import Client, LocalCluster

if __name__ == "__main__":
    check(*data(), threads=2)
    parts = [data(seed, (40, 1000)) for seed in range(4)]
    with LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster, Client(cluster) as client:
        found = client.gather([client.submit(kl.kl_divergence, p, q) for p, q in parts])
    for (p, q), one in zip(parts, found):
        assert one.tobytes() == check(p, q).tobytes()
    print("fine")
"""
    assert process(program) == "fine"


# --- threads= -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    return rng.gamma(1.0, size=(600, 1000)), rng.gamma(1.0, size=(600, 1000))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", [(600, 1000), (1, 600_000), (60_000, 10)], ids=str)
def test_every_number_of_threads_gives_the_same_bits(rows, shape, reduction):
    p, q = (x.reshape(shape) for x in rows)
    found = {kl.kl_divergence(p, q, threads=n, reduction=reduction).tobytes() for n in (1, 2, 7, None)}
    assert len(found) == 1


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2"], ids=repr)
def test_what_is_no_number_of_threads(threads):
    with pytest.raises(ValueError, match="threads"):
        kl.kl_divergence([0.5, 0.5], [0.25, 0.75], threads=threads)


def test_a_numpy_integer_is_a_number_of_threads(rows):
    one = kl.kl_divergence(*rows, threads=1)
    assert kl.kl_divergence(*rows, threads=np.int64(2)).tobytes() == one.tobytes()


def test_small_inputs_start_no_thread(process):
    program = """
before = threading.active_count()
for shape in ((10,), (100, 10), (1, 1000), (3, 4000)):
    check(*data(0, shape))
assert threading.active_count() == before
check(*data(0, (400, 1000)), threads=2)
assert threading.active_count() == before + 1
print("fine")
"""
    assert process(program, KLNUMBA_NUM_THREADS="4") == "fine"


@pytest.mark.parametrize(("variable", "value", "more"), [
    ("KLNUMBA_NUM_THREADS", "3", 2), ("KLNUMBA_NUM_THREADS", "1", 0), ("NUMBA_NUM_THREADS", "2", 1),
])  # fmt: skip
def test_the_environment_sets_the_number_of_threads(process, variable, value, more):
    program = f"""
before = threading.active_count()
check(*data(0, (400, 1000)))
assert threading.active_count() == before + {more}, threading.enumerate()
assert kl.info()["threads"]["available"] == {value}
print("fine")
"""
    assert process(program, **{variable: value}) == "fine"


def test_our_variable_goes_before_numbas(monkeypatch):
    monkeypatch.setenv("KLNUMBA_NUM_THREADS", "3")
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    assert kl.info()["threads"]["available"] == 3


@pytest.mark.parametrize("word", ["", " ", "0", "-2", "many", "²"])
def test_a_variable_that_is_no_number_is_passed_over(monkeypatch, word):
    """And said so, unless it is empty."""
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.delenv("KLNUMBA_NUM_THREADS", raising=False)
    without = kl.info()["threads"]["available"]
    monkeypatch.setenv("KLNUMBA_NUM_THREADS", word)
    told = pytest.warns(RuntimeWarning, match=f"KLNUMBA_NUM_THREADS: a positive integer, not '{word}'; it is ignored")
    with told if word.strip() else contextlib.nullcontext():
        assert kl.info()["threads"]["available"] == without >= 1


@pytest.mark.parametrize("n", [1000, 100_000])
@pytest.mark.parametrize("threads", [1, 3])
def test_what_numpy_shall_tell_of_is_the_same_on_all_threads(n, threads):
    """Of nothing: a value beyond the range of float32 is infinite, whatever the caller asked NumPy to say."""
    wide = np.full((n, 8), 3e38, np.float32)[:, ::2]  # copied, and its values cast
    for rule in ("ignore", "warn", "raise"):
        with np.errstate(all=rule):
            assert np.isinf(kl.kl_divergence(wide, wide / 8, normalize=False, threads=threads)).all()
            assert (kl.kl_divergence(wide.astype(np.longdouble), wide, threads=threads) == 0.0).all()
            assert (kl.js_divergence(np.full((n, 2), 1e-44, np.float32), wide[:, :2], threads=threads) == 0.0).all()


# --- what goes wrong in a worker ------------------------------------------------------------------------------------


def test_a_bad_row_is_reported_from_any_thread(rows):
    p, q = rows[0].copy(), rows[1]
    p[411, 7] = -1.0
    p[598, 3] = np.nan
    for threads in (1, 2, 7):
        with pytest.raises(ValueError, match=r"p: row 411, cell 7 is negative"):
            kl.kl_divergence(p, q, threads=threads, invalid="raise")
    p[411, 7] = p[598, 3] = 0.5
    np.testing.assert_array_equal(kl.kl_divergence(p, q, threads=2, invalid="raise"), kl.kl_divergence(p, q, threads=1))


@pytest.mark.parametrize("kind", [ValueError, MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("bad", ["first", "last", "all"])
def test_an_exception_in_a_worker_reaches_the_caller(kind, bad):
    from klnumba.kernels.threads import run

    items = list(range(50))
    wrong = {"first": {0}, "last": {49}, "all": set(items)}[bad]
    done = []

    def work(item):
        if item in wrong:
            raise kind(f"item {item}")
        done.append(item)

    for _ in range(3):
        with pytest.raises(kind, match="item"):
            run(work, items, 3)
    done.clear()
    wrong.clear()
    run(work, items, 3)
    assert sorted(done) == items


def test_a_worker_that_calls_again_does_not_wait_for_itself():
    """More nested jobs than the pool has threads."""
    from klnumba.kernels.threads import run

    done = []

    def outer(item):
        run(lambda inner: done.append((item, inner)), range(4), 3)

    thread = threading.Thread(target=run, args=(outer, range(8), 3), daemon=True)
    thread.start()
    thread.join(timeout=30)
    assert not thread.is_alive()
    assert sorted(done) == [(i, k) for i in range(8) for k in range(4)]


def test_an_interrupt_leaves_the_pool_usable(process):
    """Ctrl+C in the midst of a long call."""
    if not hasattr(__import__("signal"), "setitimer"):
        pytest.skip("this system has no timer signals")
    program = """
import signal

def interrupt(*_):
    raise KeyboardInterrupt

p, q = data()
check(p, q, threads=2)
signal.signal(signal.SIGALRM, interrupt)
caught = 0
for k in range(6):
    signal.setitimer(signal.ITIMER_REAL, 0.005 + 0.004 * k)
    try:
        for _ in range(10_000):
            kl.kl_divergence(p, q, threads=2)
    except KeyboardInterrupt:
        caught += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    check(p, q, threads=2)
assert caught == 6
print("fine")
"""
    assert process(program) == "fine"


@pytest.mark.parametrize(
    ("count", "workers", "order"),
    [(0, 2, []), (3, 1, [0, 1, 2]), (8, 2, [0, 4, 1, 5, 2, 6, 3, 7]), (7, 2, [0, 4, 1, 5, 2, 6, 3]),
     (10, 4, [0, 3, 6, 9, 1, 4, 7, 2, 5, 8]), (3, 8, [0, 1, 2])],
)  # fmt: skip
def test_items_apart(count, workers, order):
    assert apart(range(count), workers) == order


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")
def test_ctrl_c_waits_for_a_loop_that_is_being_built():
    """llvmlite that is interrupted may free an object twice, which ends the process."""
    built = []

    @compiler.once
    def build():
        signal.raise_signal(signal.SIGINT)
        built.append(1)
        return "a loop"

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            build()
        assert build() == "a loop"
    finally:
        signal.signal(signal.SIGINT, before)
    assert built == [1]
