"""Peak memory of a call, beyond its inputs and its result, each in a fresh process."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import ours, peers
from benchmarks.cases import Case, grid, problem
from benchmarks.contender import REGISTRY
from benchmarks.fresh import printed
from benchmarks.machine import cores

__all__ = ["measure", "ours", "peers"]

_MIB = 2**20
_CASES = ("rows-prob-float64-3", "rows-prob-float64-1000", "rows-prob-bfloat16-1000", "rows-logit-float32-32000")
_OTHERS = (("NumPy", "plain"), ("SciPy entropy", "normalised"), ("torch", "plain"), ("JAX jit", "plain"))


def measure(cells: int, *, quick: bool = False) -> list[dict[str, Any]]:
    """Records for our default on some cases, and for some other libraries on one of them."""
    cases = {case.name: case for case in grid(cells)}
    long_row = [case for case in cases.values() if case.rows == 1 and case.dtype == "float64" and case.task == "rows"]
    records = [record(cases[name], "klnumba", "normalised") for name in (*_CASES, long_row[0].name)]
    return records if quick else records + [record(cases["rows-prob-float64-1000"], *who) for who in _OTHERS]


def record(case: Case, name: str, variant: str) -> dict[str, Any]:
    """Peak memory of one contender on one case."""
    found: dict[str, Any] = {"case": case.name, "cells": case.cells, "contender": name, "variant": variant}
    code = f"from benchmarks.memory import main; main({case!r}, {name!r}, {variant!r})"
    try:
        return found | {"status": "ok", "extra_mib": printed(f"from benchmarks.cases import Case; {code}")}
    except RuntimeError as error:
        return found | {"status": "failed", "reason": str(error)[:200]}


def main(case: Case, name: str, variant: str) -> None:
    """Print the MiB that one warmed call adds at its peak beyond its result."""
    whole = problem(case, len(cores()))
    for who in REGISTRY:
        if (who.name, who.variant) == (name, variant):
            # compiles, loads and starts threads; a few million cells, so that no kernel is left out
            who.build(whole.head(min(case.cells // 2, 2_000_000)))()
            call = who.build(whole)
            give_back()
            before = resident(reset=True)
            result = call()
            print(max(0, peak() - before - np.asarray(result).nbytes) / _MIB)


def give_back() -> None:
    """Return freed memory to the system, so that the measured call has to ask for its own again (glibc)."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def resident(*, reset: bool) -> int:
    """Bytes in memory now; ``reset`` makes the peak start from here (Linux)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak() -> int:
    return _status("VmHWM")
