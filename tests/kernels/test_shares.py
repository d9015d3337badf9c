"""Rows shared out among threads: every row once, whoever comes, and the same bits as on one thread."""

from __future__ import annotations

import contextlib
import signal
import threading
import time

import numpy as np
import pytest
from numba import types

import klnumba as kl
from klnumba import arrays, engine, reduction
from klnumba.kernels import cpu, shares, threads
from klnumba.kernels.compiler import loop
from tests.kernels import sub


def _counting(n, d, out, flag, turn):
    """A loop over rows that leaves in `out` how often it met each, and its flag."""
    while True:
        first, stop = shares.take(turn, n, d)
        if first == stop:
            break
        for r in range(first, stop):
            out[r] += 1.0
            flag[r] = turn[3]


@pytest.fixture(scope="module")
def counting():
    signature = types.void(cpu.INT, cpu.INT, cpu.VALUES, cpu.FLAGS, shares.TURN)
    return loop("counting", _counting, signature, cached=False)


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize(("n", "d"), [(1, 5), (2, 40_000), (7, 3), (64, 1), (1000, 300), (50_000, 7), (3000, 100)])
@pytest.mark.parametrize("comes", ["all", "the caller", "the last", "one by one"])
def test_every_row_once(counting, n, d, count, comes):
    out, flag, taken = np.zeros(n), np.zeros(n, np.int8), shares.parts(count)

    def work(me):
        counting(n, d, out, flag, shares.turn(taken, me, d))

    if comes == "all":
        threads.together(work, count)
    order = {"all": [], "the caller": [0], "the last": [count - 1, 0], "one by one": range(count)}[comes]
    for me in dict.fromkeys(order):
        work(me)
    assert (out == 1.0).all()
    assert set(flag) <= {2 + me for me in order or range(count)}


def test_no_more_threads_than_flags(monkeypatch):
    assert shares.turn(shares.parts(1), shares.MOST - 1, 1)[3] == np.iinfo(np.int8).max
    asked = []
    together = threads.together
    monkeypatch.setattr(shares, "MOST", 3)
    monkeypatch.setattr(threads, "together", lambda work, count: (asked.append(count), together(work, count)))
    p, q = _rows("logit", 3)
    alone = kl.kl_divergence(p, q, kind="logit", threads=1)
    assert kl.kl_divergence(p, q, kind="logit", threads=5).tobytes() == alone.tobytes()
    assert asked == [1, 3]


def _rows(kind, d, n=3000):
    """Rows of which some are for the quick loop, some for a common mass, some for the exact one; in no order."""
    rng = np.random.default_rng(d)
    p, q = rng.gamma(1.0, size=(2, n, d))
    if kind != "logit":
        p /= p.sum(axis=1, keepdims=True)
        q /= q.sum(axis=1, keepdims=True)
    else:
        p, q = np.log(p), np.log(q)
    which = rng.integers(0, 5, n)
    q[which == 0] = p[which == 0] * (1.0 + 1e-9 * rng.standard_normal((int((which == 0).sum()), d)))
    p[which == 1] += 1.0
    q[which == 2, 0] = 0.0 if kind != "logit" else -np.inf
    return p, q


SPANS = [(arrays.SPAN, arrays.SPAN_ROWS), (4096, arrays.SPAN_ROWS), (arrays.SPAN, 100)]
SUMS = ("cross_entropy", "entropy", "jeffreys_divergence", "js_divergence")
QUICK = [
    ("kl_divergence", "prob"),
    ("jeffreys_divergence", "prob"),
    ("kl_divergence", "plain"),
    *((name, "logit") for name in ("kl_divergence", *SUMS)),
]


def _call(function, p, q, **given):
    return kl.entropy(p, **given) if function == "entropy" else getattr(kl, function)(p, q, **given)


@pytest.mark.part(6)
@pytest.mark.parametrize("span", SPANS, ids=["one span", "few cells", "few rows"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("d", [2, 40, 300, 1200])
@pytest.mark.parametrize(("function", "kind"), QUICK)
def test_bits_of_rows_of_every_sort(monkeypatch, function, kind, d, dtype, span):
    p, q = (x.astype(dtype) for x in _rows(kind, d))
    how = {"kind": "prob", "normalize": False} if kind == "plain" else {"kind": kind}
    alone = _call(function, p, q, **how, threads=1)
    one_by_one = np.array([_call(function, x, y, **how) for x, y in zip(p[:50], q[:50], strict=True)])
    assert alone[:50].tobytes() == one_by_one.tobytes()
    monkeypatch.setattr(arrays, "SPAN", span[0])
    monkeypatch.setattr(arrays, "SPAN_ROWS", span[1])
    monkeypatch.setattr(engine, "FEW", 100)
    monkeypatch.setattr(reduction, "KEPT", 70)
    for count in (1, 2, 5):
        given = how | {"threads": count}
        assert _call(function, p, q, **given).tobytes() == alone.tobytes()
        in_bits = _call(function, p, q, base=2, **given)
        np.testing.assert_allclose(in_bits, alone / np.log(2.0), rtol=1e-6 if dtype == "float32" else 1e-15)
        finite = np.isfinite(alone)
        total = _call(function, p[finite], q[finite], reduction="sum", **given)
        assert total == _call(function, p[finite], q[finite], reduction="sum", **how, threads=1)


def test_a_bad_row_in_a_later_span(monkeypatch):
    monkeypatch.setattr(arrays, "SPAN_ROWS", 100)
    p, q = _rows("prob", 12)
    p[1234, 5] = -1.0
    for count in (1, 3):
        with pytest.raises(ValueError, match="p: row 1234, cell 5 is negative"):
            kl.kl_divergence(p, q, invalid="raise", threads=count)


def test_where_the_system_gives_no_threads(monkeypatch):
    """The caller does it all."""

    def refuse(self):
        raise RuntimeError("can't start new thread")

    p, q = _rows("prob", 40)
    alone = kl.kl_divergence(p, q, threads=1)
    monkeypatch.setattr(threads, "_crew", threads._Crew())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert kl.kl_divergence(p, q, threads=3).tobytes() == alone.tobytes()


def test_workers_are_taken_again(monkeypatch):
    monkeypatch.setattr(threads, "_crew", threads._Crew())
    before = threading.active_count()
    seen = set()
    for count in (2, 3, 2, 3):
        threads.together(lambda me: seen.add((me, threading.get_ident())), count)
    assert threading.active_count() == before + 2
    assert len({thread for _, thread in seen}) == 3
    assert {me for me, _ in seen} == {0, 1, 2}


def test_an_interrupted_wait_outlasts_the_work():
    """Ctrl-C while the caller waits: it gets on when the worker is done with its arrays."""
    job = threads._Job(lambda me: None, 1)

    class Interrupted:
        def acquire(self):
            raise KeyboardInterrupt

    job.end = Interrupted()
    timer = threading.Timer(0.05, lambda: setattr(job, "work", None))
    timer.start()
    assert isinstance(job.join(), KeyboardInterrupt)
    assert job.work is None


@pytest.mark.parametrize("when", ["before", "midway", "after"])
def test_an_interrupt_at_the_start_costs_no_worker(monkeypatch, when):
    """What has begun is done before the call returns, and the next call has as many threads as before."""
    monkeypatch.setattr(threads, "_crew", threads._Crew())
    start, before = threads._Worker.start, threading.active_count()
    interrupted, done = [], []

    def broken(self, job):
        if interrupted:
            start(self, job)
            return
        interrupted.append(job)
        if when == "midway":
            self.idle = False
        if when == "after":
            start(self, job)
        raise KeyboardInterrupt

    def work(me):
        time.sleep(0.05)
        done.append(me)

    monkeypatch.setattr(threads._Worker, "start", broken)
    for _ in range(2):
        threads.together(lambda me: None, 1)
    with pytest.raises(KeyboardInterrupt):
        threads.together(work, 3)
    assert done == [1]
    gate = threading.Barrier(3, timeout=20.0)
    threads.together(lambda me: gate.wait(), 3)
    deadline = time.monotonic() + 20.0
    while threading.active_count() > before + 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before + 2  # the one that was interrupted has ended


@pytest.mark.parametrize("broken", [False, True])
def test_a_handler_while_a_worker_is_chosen(monkeypatch, broken):
    """A call from it does its work alone, and Ctrl-C in it is what the caller sees; the next call has all threads."""
    monkeypatch.setattr(threads, "_crew", threads._Crew())
    start, seen, inner = threads._Worker.start, [], []

    def interrupted(self, job):
        if not seen:
            seen.append(job)
            threads.together(inner.append, 3)
            if broken:
                raise KeyboardInterrupt
        start(self, job)

    monkeypatch.setattr(threads._Worker, "start", interrupted)
    done = []
    with pytest.raises(KeyboardInterrupt) if broken else contextlib.nullcontext():
        threads.together(done.append, 3)
    assert inner == [0]
    assert sorted(done) == ([1] if broken else [0, 1, 2])
    gate = threading.Barrier(3, timeout=20.0)
    threads.together(lambda me: gate.wait(), 3)


def test_what_a_worker_raises_is_raised():
    def work(me):
        if me:
            raise LookupError(f"thread {me}")

    with pytest.raises(LookupError, match="thread 1"):
        threads.together(work, 2)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int32, np.int64])
def test_threads_as_a_number_of_numpy(kind):
    p, q = _rows("prob", 3)
    alone = kl.kl_divergence(p, q, threads=1)
    assert kl.kl_divergence(p, q, threads=kind(3)).tobytes() == alone.tobytes()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer signals")
def test_a_call_from_a_handler_of_signals_while_workers_start(tmp_path):
    program = """
import signal
import numpy as np
import klnumba as kl

p, q = np.random.default_rng(0).random((2, 200, 3))
alone, heard = kl.kl_divergence(p, q, threads=1).tobytes(), []
kl.kl_divergence(p, q, threads=2)
deep = 0


def hear(*_):
    global deep
    deep += 1
    if deep < 3:  # a call within a call within a call, and not all the way down
        signal.setitimer(signal.ITIMER_REAL, 0.0001)
    heard.append(kl.kl_divergence(p, q, threads=2).tobytes() == alone)
    deep -= 1


signal.signal(signal.SIGALRM, hear)
for k in range(3000):
    signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + k % 300))
    kl.kl_divergence(p, q, threads=2)
signal.signal(signal.SIGALRM, signal.SIG_IGN)
print(len(heard) > 10 and all(heard))
"""
    assert sub.run(program, tmp_path, seconds=120.0) == "True"


def test_two_threads_at_one_part(counting):
    """Rows are claimed in one step: neither thread gets what the other has."""
    n, d = 1_000_000, shares.CELLS  # shares of one row
    out, flag, taken = np.zeros(n), np.zeros(n, np.int8), shares.parts(2)
    threads.together(lambda me: counting(n, d, out, flag, shares.turn(taken, 1, d)), 2)
    counting(n, d, out, flag, shares.turn(taken, 0, d))
    assert (out == 1.0).all()


def test_a_call_while_the_interpreter_ends(tmp_path):
    """No worker runs any more: the caller does it all."""
    program = """
import numpy as np
import klnumba as kl

class Last:
    def __init__(self):
        self.call, self.p = kl.kl_divergence, np.random.default_rng(0).random((2000, 100))
        self.call(self.p, self.p[::-1], threads=2)

    def __del__(self):
        print(self.call(self.p, self.p[::-1], threads=2).shape)

last = Last()
"""
    assert sub.run(program, tmp_path, seconds=60.0) == "(2000,)"
