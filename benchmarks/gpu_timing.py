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
LEAST_ROUNDS, MOST_ROUNDS = 5, 41
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

    def median(self, calls: Sequence[Callable[[], Any]], seconds: float) -> float:
        """Median seconds of a call, the calls taken in turn."""
        for call in calls[: 0 if self.simulated else WARM_UPS]:
            call()
        cuda.synchronize()
        times: list[float] = []
        start = time.monotonic()
        rounds = 1 if self.simulated else MOST_ROUNDS
        while len(times) < rounds and (len(times) < LEAST_ROUNDS or time.monotonic() - start < seconds):
            times.append(self._one(calls[len(times) % len(calls)]))
            if self.left() <= 0:
                break
        return statistics.median(times)

    def _one(self, call: Callable[[], Any]) -> float:
        if self.simulated:
            start = time.perf_counter()
            call()
            return time.perf_counter() - start
        before, after = cuda.event(), cuda.event()
        before.record()
        call()
        after.record()
        after.synchronize()
        return cuda.event_elapsed_time(before, after) / 1e3

    def latency(self, call: Callable[[], Any], arrays: tuple[Any, Any], n: int, d: int) -> dict[str, float]:
        """µs of a whole call that is waited for, of the launch alone and of the kernel alone."""
        from klnumba.kernels.cuda import choice, rows

        chosen = choice.choose(d)
        kernel = rows.one("kl", False, True, True, "float32", chosen)
        out = cuda.device_array(n, "float32")
        started = kernel[max(1, n * chosen.width // chosen.threads), chosen.threads]
        count = 2 if self.simulated else 500

        def launch() -> None:
            started(arrays[0], d, arrays[1], d, n, d, 1.0, 0.0, 0.5, 1.0, out)

        def host(do: Callable[[], Any], wait: bool) -> float:
            do()
            cuda.synchronize()
            start = time.perf_counter()
            for _ in range(count):
                do()
                if wait:
                    cuda.synchronize()
            end = time.perf_counter()
            cuda.synchronize()
            return (end - start) / count * 1e6

        kernel_alone = self.median([launch] * 3, 0.1) * 1e6
        whole, launched = host(call, True), host(launch, False)
        return {
            "call µs": whole, "launch µs": launched, "kernel µs": kernel_alone,
            "Python µs": max(0.0, whole - launched - kernel_alone),
        }  # fmt: skip
