"""How many threads, and when none.

The loops release the interpreter's lock, so ordinary Python threads run them
side by side. A pool of our own keeps clear of Numba's threading layers, of
which one aborts the process when two threads call it and another kills forked
children; here any number of callers may come at once, and a forked child makes
its own pool at first use.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from klnumba.kernels.tiles import SCRATCH, SPACE

SERIAL_CELLS = 1 << 16  # about 60 microseconds of work, twice what waking a thread costs

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_local = threading.local()


def _forget() -> None:
    """In a forked child: the parent's threads are not here."""
    global _lock, _pool, _pool_size, _local
    _lock, _pool, _pool_size, _local = threading.Lock(), None, 0, threading.local()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def available() -> int:
    """The processors this process may use, or what KLNUMBA_NUM_THREADS or NUMBA_NUM_THREADS says."""
    for name in ("KLNUMBA_NUM_THREADS", "NUMBA_NUM_THREADS"):
        text = os.environ.get(name, "")
        if text.isdigit() and int(text) > 0:
            return int(text)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def choose(threads: int | None, cells: int) -> int:
    """The number of threads for a call over `cells` cells.

    Unless the caller names a number, a small job, and a job that comes from
    another thread than the main one (a worker of Dask, joblib or a server,
    which already shares the processors out), runs where it is.
    """
    if threads is not None:
        return threads
    if cells < SERIAL_CELLS or threading.current_thread() is not threading.main_thread():
        return 1
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


def _aligned(size: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Zeros that start at a cache line, so that no vector of them lies across two."""
    line = 64
    raw = np.zeros(size * dtype.itemsize + line, np.uint8)
    start = -raw.ctypes.data % line
    return raw[start : start + size * dtype.itemsize].view(dtype)


def _executor(size: int) -> ThreadPoolExecutor:
    global _pool, _pool_size
    with _lock:
        if _pool is None or _pool_size < size:
            _pool = ThreadPoolExecutor(size, thread_name_prefix="klnumba")
            _pool_size = size
        return _pool


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

    def work() -> None:
        for item in take():
            function(item)

    others = [_executor(threads - 1).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        for other in others:
            other.cancel()
        failures = [other.exception() for other in others if not other.cancelled()]
    for failure in failures:
        if failure is not None:
            raise failure
