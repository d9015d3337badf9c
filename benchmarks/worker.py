"""Every case on a given number of threads, in one process: ``python -m benchmarks.worker``, started by ``__main__``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import ours, peers, timing
from benchmarks.cases import Case, Problem, chosen, grid, problem
from benchmarks.contender import REGISTRY, Call, Contender, NotOffered
from benchmarks.machine import cores

__all__ = ["measure_case", "peers"]

_PROBE = 100_000  # cells on which values are checked and slow contenders are found out
_SLOW = 0.08  # seconds a call: a slower contender is timed on an eighth of the rows
_SMALL = 1e-2  # errors are relative to the value, to this where the value is smaller
_TOLERANCE = {"float64": 1e-5, "float32": 1e-3, "bfloat16": 1e-3}


@dataclass(frozen=True)
class Effort:
    """How long to measure: seconds for a contender and case, and the least and most rounds."""

    budget: float
    least: int
    most: int


FULL, QUICK = Effort(0.1, 3, 15), Effort(0.03, 3, 7)


@dataclass
class Entry:
    """One contender ready to be timed, or why it is not."""

    who: Contender
    record: dict[str, Any]
    call: Call | None = None
    estimate: float = 0.0


class _Truth:
    """The values to expect, computed once for each variant of the first rows (of the whole where there is one row)."""

    def __init__(self, whole: Problem, probe: Problem) -> None:
        self._whole, self._probe = whole, probe
        self._known: dict[tuple[bool, bool], Any] = {}

    def of(self, part: Problem, normalise: bool) -> Any:
        """Flat float64 values; for the probe if ``part`` is the probe."""
        on_probe = part is self._probe
        if (on_probe, normalise) not in self._known:
            value = ours.reference(self._probe if on_probe else self._whole, normalise=normalise)
            self._known[on_probe, normalise] = np.ravel(value)
        return self._known[on_probe, normalise]


def measure_case(case: Case, threads: int, effort: Effort) -> dict[str, Any]:
    """Time every contender on one case; returns the record for the JSON file."""
    whole = problem(case, threads)
    probe = whole.head(_PROBE)
    truth = _Truth(whole if probe.case.d < case.d else probe, probe)
    with np.errstate(all="ignore"):
        entries = [_prepare(who, whole, probe, truth) for who in REGISTRY]
        ready = [x for x in entries if x.call is not None]
        estimates = [x.estimate for x in ready]
        rounds = [timing.rounds_for(x, effort.budget, effort.least if x < 1 else 1, effort.most) for x in estimates]
        samples = timing.interleaved([x.call for x in ready if x.call], estimates, rounds)
    for entry, seconds in zip(ready, samples, strict=True):
        entry.record |= timing.summary(seconds)
    _forget()
    kept = [x.record for x in entries if x.record["status"] != "not offered"]
    return asdict(case) | {"name": case.name, "threads": threads, "contenders": kept}


def _prepare(who: Contender, whole: Problem, probe: Problem, truth: _Truth) -> Entry:
    """Build, warm and check a contender; a slow one gets an eighth of the rows."""
    record: dict[str, Any] = {"contender": who.name, "variant": who.variant, "status": "ok", "cells": whole.case.cells}
    entry = Entry(who, record)
    try:
        part = whole if who.compiled else probe
        call = who.build(part)
        value = call()
        record |= _check(who, whole, value, truth.of(part, who.variant == "normalised"))
        entry.estimate = timing.seconds(call)
        if not who.compiled:
            part = _affordable(whole, entry.estimate / probe.case.cells)
            call = who.build(part)
            entry.estimate *= part.case.cells / probe.case.cells
        entry.call, record["cells"] = call, part.case.cells
    except NotOffered as reason:
        record |= {"status": "not offered", "reason": str(reason)}
    except ModuleNotFoundError as missing:
        record |= {"status": "not installed", "reason": f"no module {missing.name}"}
    except Exception as error:  # a contender that fails is a line of the report, not the end of the run
        record |= {"status": "failed", "reason": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    return entry


def _affordable(whole: Problem, seconds_a_cell: float) -> Problem:
    """The whole, or for a slow contender an eighth, which is still more than caches hold at the default size."""
    slow = seconds_a_cell * whole.case.cells > _SLOW
    return whole.head(whole.case.cells // 8) if slow else whole


def _check(who: Contender, whole: Problem, value: Any, want: Any) -> dict[str, Any]:
    """Compare the first values with the reference."""
    if who.variant == "memory":
        return {}
    got = np.asarray(value).reshape(-1)[: want.size].astype(np.float64)
    error = float(np.max(np.abs(got - want) / np.maximum(np.abs(want), _SMALL)))
    right = error <= _TOLERANCE[whole.case.dtype]
    return {"error": error} | ({} if right else {"status": "wrong"})


def _forget() -> None:
    """Drop compiled shapes, so that memory and look-up time do not grow from case to case."""
    if "torch" in sys.modules:
        sys.modules["torch"]._dynamo.reset()
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


def _told(record: dict[str, Any]) -> str:
    """The six fastest, nanoseconds a cell."""
    timed = [x for x in record["contenders"] if "samples" in x]
    times = [(x["median_ns"] / x["cells"], x["contender"], x["variant"]) for x in timed]
    return "  ".join(f"{name}/{variant[:4]} {ns:.3g}" for ns, name, variant in sorted(times)[:6])


def main() -> None:
    """Run the cases and write their records as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--cells", type=int, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    if options.threads == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores()[:1])
    records = []
    for case in chosen(grid(options.cells, quick=options.quick), options.only):
        start = time.perf_counter()
        record = measure_case(case, options.threads, QUICK if options.quick else FULL)
        records.append(record)
        spent = time.perf_counter() - start
        print(f"{options.threads} thr {case.name} ({spent:.1f} s; ns a cell): {_told(record)}", flush=True)
    options.output.write_text(json.dumps(records))


if __name__ == "__main__":
    main()
