"""Interleaved timing: every round calls each contender once, in an order that changes from round to round."""

from __future__ import annotations

import functools
import gc
import hashlib
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

Call = Callable[[], Any]
SHORTEST_SAMPLE = 2e-3
_REST = 8e-3  # OpenMP threads of the contender before spin for some milliseconds after their work
_BYTES = bytes(1 << 16)


def seconds(call: Call, number: int = 1) -> float:
    """Time of one of ``number`` calls in a row."""
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number


def rested(call: Call, number: int) -> float:
    """`seconds` once the threads of others have gone to sleep and the contender's own are awake.

    Every processor is kept busy meanwhile: asleep it would lose its clock rate, and the first calls would pay for it.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    end = time.perf_counter() + _REST
    list(_spinning(cores).map(_spin, [end] * cores))
    call()
    return seconds(call, number)


@functools.cache
def _spinning(cores: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores)


def _spin(end: float) -> None:
    while time.perf_counter() < end:
        hashlib.sha256(_BYTES)  # does not hold the interpreter's lock


def calls_a_sample(estimate: float) -> int:
    """How many calls make a sample that the clock resolves."""
    return max(1, round(SHORTEST_SAMPLE / max(estimate, 1e-9)))


def rounds_for(estimate: float, budget: float, least: int, most: int) -> int:
    """How many rounds a contender takes part in, so that it costs about ``budget`` seconds."""
    return max(least, min(most, int(budget / max(estimate * calls_a_sample(estimate), 1e-9))))


def interleaved(calls: Sequence[Call], estimates: Sequence[float], rounds: Sequence[int]) -> list[list[float]]:
    """Seconds a call, one list a contender; contender ``i`` takes part in ``rounds[i]`` rounds, spread evenly."""
    samples: list[list[float]] = [[] for _ in calls]
    total, shuffle = max(rounds, default=0), random.Random(0).shuffle
    gc.collect()
    gc.disable()
    try:
        for turn in range(total):
            order = [i for i, n in enumerate(rounds) if (turn + 1) * n // total > turn * n // total]
            shuffle(order)
            for i in order:
                samples[i].append(rested(calls[i], calls_a_sample(estimates[i])))
    finally:
        gc.enable()
    return samples


def summary(samples: Sequence[float]) -> dict[str, float | int]:
    """Median, quartiles and least of the samples, in nanoseconds a call."""
    ns = sorted(x * 1e9 for x in samples)
    q1, median, q3 = statistics.quantiles(ns, n=4, method="inclusive") if len(ns) > 1 else ns * 3
    return {"samples": len(ns), "median_ns": median, "q1_ns": q1, "q3_ns": q3, "min_ns": ns[0]}
