"""Timing with the device's own clock."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from numba import cuda
from numba.core import config

CACHES = 4  # inputs that rotate are so many times larger than the cache
MOST_SETS = 8
LEAST_ROUNDS, MOST_ROUNDS = 5, 21
WARM_UPS = 2


class Device:
    """The device at work, and until when it may be used."""

    def __init__(self, deadline: float) -> None:
        self.simulated = bool(config.ENABLE_CUDASIM)
        self._deadline = deadline

    def left(self) -> float:
        """Seconds left."""
        return self._deadline - time.monotonic()

    def describe(self) -> dict[str, Any]:
        """Name, capability and driver."""
        if self.simulated:
            return {"name": "simulator"}
        found = cuda.get_current_device()
        name = found.name.decode() if isinstance(found.name, bytes) else found.name
        return {
            "name": name,
            "compute capability": ".".join(map(str, found.compute_capability)),
            "processors": found.MULTIPROCESSOR_COUNT,
            "cache": found.L2_CACHE_SIZE,
            "driver": ".".join(map(str, cuda.cudadrv.driver.driver.get_version())),
        }

    def rotation(self, size: int) -> int:
        """How many sets of inputs of so many bytes outgrow the cache."""
        if self.simulated:
            return 1
        return max(1, min(MOST_SETS, -(-CACHES * cuda.get_current_device().L2_CACHE_SIZE // size)))

    def median(self, calls: Sequence[Callable[[], Any]], seconds: float, busy: Callable[[], Any]) -> float:
        """Median seconds of a call on the device, the calls taken in turn.

        `busy` keeps the device at work for longer than the host takes to start the call.
        """
        for call in calls[: 0 if self.simulated else WARM_UPS]:
            call()
        cuda.synchronize()
        times: list[float] = []
        start = time.monotonic()
        rounds = 1 if self.simulated else MOST_ROUNDS
        while len(times) < rounds and (len(times) < LEAST_ROUNDS or time.monotonic() - start < seconds):
            times.append(self._one(calls[len(times) % len(calls)], busy))
            if self.left() <= 0:
                break
        return statistics.median(times)

    def _one(self, call: Callable[[], Any], busy: Callable[[], Any]) -> float:
        if self.simulated:
            start = time.perf_counter()
            call()
            return time.perf_counter() - start
        before, after = cuda.event(), cuda.event()
        busy()
        before.record()
        call()
        after.record()
        after.synchronize()
        return cuda.event_elapsed_time(before, after) / 1e3

    def latency(
        self, call: Callable[[], Any], wait: Callable[[], None], busy: Callable[[], Any]
    ) -> dict[str, float]:  # fmt: skip
        """µs of a whole call that is waited for, of the host's part of it, and of what it starts on the device."""
        count = 2 if self.simulated else 500

        def host(waits: bool) -> float:
            call()
            wait()
            start = time.perf_counter()
            for _ in range(count):
                call()
                if waits:
                    wait()
            end = time.perf_counter()
            wait()
            return (end - start) / count * 1e6

        return {
            "call µs": host(True), "Python µs": host(False), "kernel µs": self.median([call] * 3, 0.1, busy) * 1e6,
        }  # fmt: skip
