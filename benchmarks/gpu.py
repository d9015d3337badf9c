"""Rows on a CUDA device against the speed of its memory: ``python -m benchmarks.gpu``.

Runs the tests that need a device, then measures: a copy on the device (the ceiling), klnumba, PyTorch eager and
compiled, CuPy's expression and ``cupyx.scipy.special.rel_entr`` reduced. Writes ``benchmarks/results/gpu.json`` and a
table, ``gpu.md``, beside it. In the simulator (``NUMBA_ENABLE_CUDASIM=1``) the sizes are toys and nothing is kept but
in ``--output``.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import klnumba as kl
from benchmarks import machine
from benchmarks.gpu_libraries import KINDS, Library, library
from benchmarks.gpu_timing import Device

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results"
DTYPES = ("float32", "bfloat16", "float64")
LENGTHS = (10, 128, 1_000, 32_000, 128_256)
CELLS = 1 << 27  # of each input: larger than any cache
TRAINED, TRAINED_LENGTHS = ("prob", "logit"), (1_000, 32_000)
ONE_ROW = 1_000_000_000
PAIRS = 10_000_000
SMALL = (64, 100)
TOY_SHAPES, TOY_PAIRS, TOY_SMALL = [(2, 10), (1, 150)], 4, (2, 6)
BUDGET = 440.0  # seconds for everything
TESTS = 150.0  # of these for the tests
VERSIONS = ("numba", "numba-cuda", "numpy", "torch")  # that the table names
COPIES = 8  # of an input of float32, one after the other
A_CASE = 0.3  # and for one contender in one case
MOST_NAMED = 5  # of the tests that failed
AT_A_TIME = min(16, os.cpu_count() or 1)  # tests, which spend most of their time compiling
PATIENCE = 20.0  # seconds that tests which were interrupted have for their last words


def main(arguments: list[str] | None = None) -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--output", type=Path, default=None, help="the folder for gpu.json and gpu.md")
    parser.add_argument("--no-tests", action="store_true", help="measure alone")
    parser.add_argument("--no-peers", action="store_true", help="klnumba and the copy alone")
    parser.add_argument("--seconds", type=float, default=BUDGET, help="for everything")
    options = parser.parse_args(arguments)
    why = kl.cuda.reason()
    if why is not None:
        raise SystemExit(f"no CUDA device: {why}")
    device = Device(time.monotonic() + options.seconds)
    if device.simulated:
        sys.setswitchinterval(1e-6)  # a simulated thread that waits would hold the others up
    if device.simulated and options.output is None:
        raise SystemExit("in the simulator nothing is measured: --output FOLDER for what a run writes")
    folder = RESULTS if options.output is None else options.output
    folder.mkdir(parents=True, exist_ok=True)
    content: dict[str, Any] = machine.describe() | {"device": device.describe()}
    peers = not options.no_peers
    if not options.no_tests:
        content |= run_tests(device)
    content |= {"small call": small_call(device), "pairs": [], "rows": [], "training": []}
    for name, found in (
        ("rows", rows(device, many_rows(device), peers)),
        ("pairs", pairs(device, peers)),
        ("training", training(device, peers)),
        ("rows", rows(device, [] if device.simulated else [(1, ONE_ROW)], peers)),
    ):
        for case in found:
            content[name].append(case)
            keep(content, folder)
            print(f"{device.left():6.1f} s left after {case}", file=sys.stderr, flush=True)
    print(table(content))


def keep(content: dict[str, Any], folder: Path) -> None:
    """Write what there is so far."""
    (folder / "gpu.json").write_text(json.dumps(content, indent=1) + "\n")
    (folder / "gpu.md").write_text(table(content))


def run_tests(device: Device) -> dict[str, Any]:
    """The last line of the tests on the device, and which failed; a toy run takes one file of them."""
    where = ROOT / "tests" / "gpu" / "on_device"
    chosen = where / "test_borders.py" if device.simulated else where
    several = not device.simulated and importlib.util.find_spec("xdist") is not None
    how = ["-n", str(AT_A_TIME), "-p", "no:benchmark"] if several else ["-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *how, str(chosen)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    output, ended = run_for(command, TESTS, cwd=ROOT, env=env)
    last = output.strip().splitlines()[-1].strip("= ") if output.strip() else "nothing was printed"
    return {"tests": last if ended else f"not finished after {TESTS:.0f} s: {last}", "failed": failed(output)}


# What is started in the background would else ignore interrupts.
HEED = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"


def run_for(command: list[str], seconds: float, **settings: Any) -> tuple[str, bool]:
    """(what a command printed, whether it ended by itself); one that takes longer is interrupted, and then stopped."""
    posix = os.name == "posix"
    started = [sys.executable, "-c", HEED, *command] if posix else command
    with subprocess.Popen(
        started, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=posix, **settings
    ) as process:
        try:
            return process.communicate(timeout=seconds)[0], True
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # pytest tells what it has seen so far
        try:
            return process.communicate(timeout=PATIENCE)[0], False
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL) if posix else process.kill()
            return process.communicate()[0], False


def failed(text: str) -> list[str]:
    """The tests that failed, with why where that is said at the end, from what pytest prints on the way."""
    found: dict[str, str] = {}
    for name in re.findall(r"^(tests/.*?) (?:FAILED|ERROR)\b", text, re.MULTILINE):
        found[name] = ""
    for name, why in re.findall(r"(?:FAILED|ERROR) (tests/.*?) *(?: - (.*))?$", text, re.MULTILINE):
        found[name] = why or found.get(name, "")
    return [f"{name}: {why}" if why else name for name, why in found.items()]


def many_rows(device: Device) -> list[tuple[int, int]]:
    """(rows, cells of a row) of the cases."""
    return TOY_SHAPES if device.simulated else [(CELLS // d, d) for d in LENGTHS]


def rows(device: Device, shapes: list[tuple[int, int]], peers: bool) -> Iterator[dict[str, Any]]:
    """Every kind, dtype and length: seconds of each contender and its share of the ceiling."""
    for dtype in DTYPES:
        ours = library()
        for n, d in shapes:
            for kind in KINDS:
                if device.left() <= 0:
                    return
                yield one_case(device, ours, kind, dtype, n, d, peers)


def busy_with(ours: Library, device: Device) -> Callable[[], None]:
    """Copies that take a device about two milliseconds: longer than the host takes to start any contender."""
    held = _held(ours, device.simulated)

    def busy() -> None:
        for _ in range(1 if device.simulated else COPIES):
            ours.copy(*held)

    return busy


@functools.cache
def _held(ours: Library, toy: bool) -> tuple[Any, Any]:
    return ours.inputs("prob", "float32", *(TOY_SHAPES[0] if toy else (CELLS // 1_000, 1_000)), 0)


def one_case(device: Device, ours: Library, kind: str, dtype: str, n: int, d: int, peers: bool) -> dict[str, Any]:
    """One case; inputs rotate, so that no cache holds them."""
    bytes_read = 2 * n * d * ours.item(dtype)
    sets = [ours.inputs(kind, dtype, n, d, seed) for seed in range(device.rotation(bytes_read))]
    busy = busy_with(ours, device)
    record: dict[str, Any] = {"kind": kind, "dtype": dtype, "rows": n, "cells": d}
    record |= timed(device, {"copy": ours.copy, **ours.contenders(kind, dtype, peers)}, sets, busy)
    ceiling = record["seconds"].get("copy")
    mine = record["seconds"].get("klnumba")
    if ceiling and mine:
        # A copy reads one input and writes as much: it moves the bytes that we read.
        record["share of the ceiling"] = round(ceiling / mine, 3)
        record["bytes a second"] = bytes_read / mine
    return record


def timed(
    device: Device, contenders: dict[str, Callable[..., Any]], sets: list[Any], busy: Callable[[], None]
) -> dict[str, Any]:  # fmt: skip
    """The seconds of each contender; a peer that cannot is told of with the reason."""
    found: dict[str, Any] = {"seconds": {}}
    for name, call in contenders.items():
        if device.left() <= 0:
            break
        try:
            found["seconds"][name] = device.median([partial(call, *s) for s in sets], A_CASE, busy)
        except Exception as error:
            found["seconds"][name] = None
            found.setdefault("failed", {})[name] = f"{type(error).__name__}: {error}"[:200]
    return found


def training(device: Device, peers: bool) -> Iterator[dict[str, Any]]:
    """The mean KL of a teacher's and a student's rows, and its derivative by the student."""
    ours = library()
    busy = busy_with(ours, device)
    for kind in TRAINED:
        for n, d in TOY_SHAPES if device.simulated else [(CELLS // d, d) for d in TRAINED_LENGTHS]:
            if device.left() <= 0:
                return
            sets = [ours.inputs(kind, "float32", n, d, seed) for seed in range(device.rotation(8 * n * d))]
            contenders = {"copy": ours.copy, **ours.training_contenders(kind, peers)}
            yield {"kind": kind, "rows": n, "cells": d} | timed(device, contenders, sets, busy)


def pairs(device: Device, peers: bool) -> Iterator[dict[str, Any]]:
    """Normal and gamma distributions, element by element."""
    ours = library()
    busy = busy_with(ours, device)
    n = TOY_PAIRS if device.simulated else PAIRS
    for family in ("Normal", "Gamma"):
        if device.left() <= 0:
            return
        sets = [ours.parameters(n, seed) for seed in range(device.rotation(16 * n))]
        seconds = {
            name: device.median([partial(call, family, *s) for s in sets], A_CASE, busy)
            for name, call in ours.pair_contenders(peers).items()
        }
        yield {"family": family, "pairs": n, "seconds": seconds}


def small_call(device: Device) -> dict[str, Any]:
    """The latency of a small call: all of it, the part of the host, the kernel alone."""
    ours = library()
    n, d = TOY_SMALL if device.simulated else SMALL
    p, q = ours.inputs("prob", "float32", n, d, 0)
    call = ours.contenders("prob", "float32", False)["klnumba"]
    return {"rows": n, "cells": d} | device.latency(lambda: call(p, q), ours.wait, busy_with(ours, device))


def table(content: dict[str, Any]) -> str:
    """The Markdown tables of a run."""
    versions = ", ".join(f"{name} {content['versions'][name]}" for name in VERSIONS)
    shares = (
        f"Each of two inputs has {CELLS / 1e6:.0f} million cells, or is one row. Shares are of the speed of a copy on "
        "the device, in bytes read and written; TB/s are bytes that klnumba reads."
    )
    lines = [f"{content['device']['name']}, {content['date']} (commit {content['commit']}); {versions}. {shares}", ""]
    names = ["klnumba", *sorted({name for case in content["rows"] for name in case["seconds"]} - {"copy", "klnumba"})]
    lines += [
        f"| kind | dtype | cells of a row | {' | '.join(names)} | TB/s |",
        "|---|---" + "|--:" * (2 + len(names)) + "|",
    ]
    lines += [_row(case, names) for case in content["rows"]]
    lines += ["", "| pairs | contender | ms |", "|---|---|--:|"]
    for case in content["pairs"]:
        lines += [f"| {case['family']} | {name} | {1e3 * s:.3f} |" for name, s in case["seconds"].items() if s]
    lines += ["", "| value and derivative by q, float32 | cells of a row | contender | ms |", "|---|--:|---|--:|"]
    for case in content["training"]:
        start = f"| {case['kind']} | {case['cells']:,} |"
        lines += [f"{start} {name} | {1e3 * s:.3f} |" for name, s in case["seconds"].items() if s]
    small = content["small call"]
    told = f"of {small['rows']} rows of {small['cells']} cells of float32, waited for: {small['call µs']:.0f} µs"
    tests = f" Tests on the device: {content['tests']}." if "tests" in content else ""
    if content.get("failed"):
        tests += f" Failed: {'; '.join(content['failed'][:MOST_NAMED])}."
    return "\n".join(
        [*lines, "", f"A small call {told}, of which the kernel takes {small['kernel µs']:.0f}.{tests}", ""]
    )


def _row(case: dict[str, Any], names: list[str]) -> str:
    seconds, ceiling = case["seconds"], case["seconds"].get("copy")
    shares = [f"{ceiling / seconds[name]:.2f}" if ceiling and seconds.get(name) else "" for name in names]
    speed = f"{case['bytes a second'] / 1e12:.2f}" if "bytes a second" in case else ""
    return f"| {case['kind']} | {case['dtype']} | {case['cells']:,} | {' | '.join(shares)} | {speed} |"


if __name__ == "__main__":
    main()
