"""How many threads, and when none.

The loops release the interpreter's lock, so ordinary Python threads run them
side by side. A pool of our own keeps clear of Numba's threading layers, of
which one aborts the process when two threads call it and another kills forked
children; here any number of callers may come at once, and a forked child makes
its own pool at first use.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from klnumba.kernels.tiles import SCRATCH, SPACE

SERIAL_CELLS = 1 << 16  # about 60 microseconds of work, twice what waking a thread costs

_local = threading.local()


class _Job:
    """What one worker does for one call."""

    def __init__(self, work: Callable[[int], None], me: int) -> None:
        self.work: Callable[[int], None] | None = work
        self.me = me
        self.failure: BaseException | None = None
        self.end = threading.Lock()
        self.end.acquire()

    def join(self) -> BaseException | None:
        """Wait until the work is done, also where Ctrl-C comes: it reads and writes the caller's arrays.

        Returns what came instead of an end, if anything.
        """
        try:
            self.end.acquire()
        except BaseException as interruption:
            while self.work is not None:  # the lock may be ours by now
                time.sleep(1e-4)
            return interruption
        failure, self.failure = self.failure, None
        return failure


class _Worker:
    """A thread that waits for jobs. Bare locks wake it 40 microseconds sooner than a future of the library does."""

    def __init__(self) -> None:
        self.idle, self._last = True, False
        self._begin = threading.Lock()
        self._begin.acquire()
        self._job: _Job | None = None
        try:
            threading.Thread(target=self._serve, name="klnumba", daemon=True).start()
        except BaseException:  # Ctrl-C: if the thread runs, it finds no job and ends
            self._begin.release()
            raise

    def _serve(self) -> None:
        while True:
            self._begin.acquire()
            job = self._job
            if job is None or job.work is None:  # woken before there was one, or twice for one
                return
            try:
                job.work(job.me)
            except BaseException as failure:
                job.failure = failure
            job.work = None  # this thread holds the job until the next comes
            self.idle = True
            job.end.release()
            if self._last:
                return

    def start(self, job: _Job) -> None:
        self.idle, self._job = False, job
        self._begin.release()

    def start_last(self, job: _Job) -> None:
        """Start a job of which it is not known whether it has been started; the thread ends with it."""
        self._last, self._job = True, job
        with contextlib.suppress(RuntimeError):  # the lock is free: started, and not yet heard
            self._begin.release()


class _Crew:
    """The workers: as many as the largest call asked for, which calls at the same time share."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal's handler may call while it is held
        self._workers: list[_Worker] = []
        self._most = 0
        self._starting = False
        self.closed = False  # an interpreter that ends runs no worker any more, though they look idle

    def start(self, work: Callable[[int], None], count: int, jobs: list[_Job]) -> None:
        """Have so many workers do this, or those that are idle, with the numbers from 1 on; their jobs go to a list.

        A handler of a signal that came while this thread is in here gets none: the one before has them in hand.
        """
        with self._lock:
            if self._starting:
                return
            try:
                self._starting = True
                self._most = max(self._most, count)
                for worker in self._idle():
                    self._begin(worker, _Job(work, len(jobs) + 1), jobs)
                    if len(jobs) == count:
                        break
            finally:
                self._starting = False

    def _begin(self, worker: _Worker, job: _Job, jobs: list[_Job]) -> None:
        try:
            jobs.append(job)
            worker.start(job)
        except BaseException:  # Ctrl-C: the caller waits for this job, and another worker takes the next
            self._workers.remove(worker)
            worker.start_last(job)
            raise

    def _idle(self) -> Iterator[_Worker]:
        if self.closed:
            return
        yield from (worker for worker in self._workers if worker.idle)
        while len(self._workers) < self._most:
            try:
                self._workers.append(_Worker())
            except RuntimeError:  # the system gives no more threads
                return
            yield self._workers[-1]


_crew = _Crew()


def _forget() -> None:
    """In a forked child: the parent's threads are not here."""
    global _crew, _local
    _crew, _local = _Crew(), threading.local()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@atexit.register
def _close() -> None:
    _crew.closed = True


def available() -> int:
    """The processors this process may use, or what KLNUMBA_NUM_THREADS or NUMBA_NUM_THREADS says."""
    for name in ("KLNUMBA_NUM_THREADS", "NUMBA_NUM_THREADS"):
        text = os.environ.get(name, "").strip()
        if text.isdecimal() and int(text) > 0:
            return int(text)
        if text and name.startswith("KLNUMBA"):  # Numba itself tells of the other one
            warnings.warn(f"{name}: a positive integer, not {text!r}; it is ignored", RuntimeWarning, stacklevel=2)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def choose(threads: int | None, cells: int) -> int:
    """The number of threads for a call over `cells` cells.

    Unless the caller names a number, a small job, and a job that comes from
    another thread than the main one (a worker of Dask, joblib or a server,
    which already shares the processors out), runs where it is.

    Raises ValueError if the number is none.
    """
    if threads is not None:
        if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
            raise ValueError(f"threads: a positive integer, not {threads!r}")
        return int(threads)
    if cells < SERIAL_CELLS or threading.current_thread() is not threading.main_thread():
        return 1
    return _available_lately(int(time.monotonic()))


@functools.lru_cache(maxsize=1)
def _available_lately(second: int) -> int:
    """`available`, which a stream of batches need not ask the system for again and again."""
    return available()


def scratch(dtype: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """This thread's scratch for loops over cells of `dtype`: (cells, a read-only view of them, float64 numbers)."""
    store = _local.__dict__.setdefault("scratch", {})
    if dtype not in store:
        work = _aligned(SCRATCH, dtype)
        view = work.view()
        view.flags.writeable = False
        store[dtype] = (work, view, _aligned(SPACE, np.dtype(np.float64)))
    found: tuple[np.ndarray, np.ndarray, np.ndarray] = store[dtype]
    return found


def room(rows: int, cells: int) -> np.ndarray:
    """This thread's room for so many rows of float64 numbers: nothing else may compute here while it is used."""
    size = rows * cells
    found: np.ndarray | None = _local.__dict__.get("room")
    if found is None or found.size < size:
        _local.room = found = _aligned(size, np.dtype(np.float64))
    return found[:size].reshape(rows, cells)


def _aligned(size: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Zeros that start at a cache line, so that no vector of them lies across two."""
    line = 64
    raw = np.zeros(size * dtype.itemsize + line, np.uint8)
    start = -raw.ctypes.data % line
    return raw[start : start + size * dtype.itemsize].view(dtype)


def apart(items: Sequence[Any], threads: int) -> list[Any]:
    """The items in an order in which so many threads, each taking the next, are at places far from each other.

    For blocks of new memory: two threads that write to one page of 2 MiB for the first time both wait for it.
    """
    step = -(-len(items) // threads)
    return [item for k in range(step) for item in items[k::step]]


def run(function: Callable[[Any], None], items: Iterable[Any], threads: int) -> None:
    """Call `function` on every item, on so many threads, the caller's own among them."""
    items = list(items)
    threads = min(threads, len(items))
    if threads <= 1:
        for item in items:
            function(item)
        return
    queue = iter(items)
    guard = threading.Lock()

    def take() -> Iterator[Any]:
        while True:
            with guard:
                item = next(queue, guard)
            if item is guard:
                return
            yield item

    def work(me: int) -> None:
        for item in take():
            function(item)

    together(work, threads)


def together(work: Callable[[int], None], threads: int) -> None:
    """Call `work` on so many threads, each with its number, of which the caller's own is 0.

    Where there are fewer threads to be had, those that come do the work of all.
    """
    if threads <= 1:
        work(0)
        return
    jobs: list[_Job] = []
    try:
        _crew.start(work, threads - 1, jobs)
        work(0)
    finally:
        failures = [job.join() for job in jobs]
    failure = next((one for one in failures if one is not None), None)
    if failure is not None:
        try:
            raise failure
        finally:
            del failure, failures  # which hold this frame, and with it the arrays
