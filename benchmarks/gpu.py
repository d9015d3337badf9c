"""Rows on a CUDA device against the speed of its memory: ``python -m benchmarks.gpu``.

Runs the tests that need a device, then measures: a copy on the device (the ceiling), klnumba, PyTorch eager and
compiled, CuPy's expression and ``cupyx.scipy.special.rel_entr`` reduced. Writes ``benchmarks/results/gpu.json`` and a
table, ``gpu.md``, beside it. In the simulator (``NUMBA_ENABLE_CUDASIM=1``) the sizes are toys and nothing is kept but
in ``--output``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
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
ONE_ROW = 1_000_000_000
PAIRS = 10_000_000
SMALL = (64, 100)
TOY_SHAPES, TOY_PAIRS, TOY_SMALL = [(2, 10), (1, 150)], 4, (2, 6)
BUDGET = 440.0  # seconds for everything
TESTS = 150.0  # of these for the tests
A_CASE = 1.2  # and for one contender in one case


def main(arguments: list[str] | None = None) -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--output", type=Path, default=None, help="the folder for gpu.json and gpu.md")
    parser.add_argument("--no-tests", action="store_true", help="measure alone")
    options = parser.parse_args(arguments)
    why = kl.cuda.reason()
    if why is not None:
        raise SystemExit(f"no CUDA device: {why}")
    device = Device(time.monotonic() + BUDGET)
    if device.simulated:
        sys.setswitchinterval(1e-6)  # a simulated thread that waits would hold the others up
    if device.simulated and options.output is None:
        raise SystemExit("in the simulator nothing is measured: --output FOLDER for what a run writes")
    folder = RESULTS if options.output is None else options.output
    folder.mkdir(parents=True, exist_ok=True)
    content: dict[str, Any] = machine.describe() | {"device": device.describe()}
    if not options.no_tests:
        content["tests"] = run_tests(device)
    content |= {"rows": rows(device), "pairs": pairs(device), "small call": small_call(device)}
    (folder / "gpu.json").write_text(json.dumps(content, indent=1) + "\n")
    (folder / "gpu.md").write_text(table(content))
    print(table(content))


def run_tests(device: Device) -> str:
    """The last line of the tests on the device; a toy run takes one file of them."""
    where = ROOT / "tests" / "gpu" / "on_device"
    chosen = where / "test_borders.py" if device.simulated else where
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(chosen)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=TESTS, check=False
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"not finished after {TESTS:.0f} s"
    return (done.stdout.strip() or done.stderr.strip()).splitlines()[-1]


def shapes(device: Device) -> list[tuple[int, int]]:
    """(rows, cells of a row) of the cases."""
    if device.simulated:
        return TOY_SHAPES
    return [(CELLS // d, d) for d in LENGTHS] + [(1, ONE_ROW)]


def rows(device: Device) -> list[dict[str, Any]]:
    """Every kind, dtype and length: seconds of each contender and its share of the ceiling."""
    found = []
    for dtype in DTYPES:
        ours = library(dtype)
        for n, d in shapes(device):
            for kind in KINDS:
                if device.left() <= 0:
                    return found
                found.append(one_case(device, ours, kind, dtype, n, d))
    return found


def one_case(device: Device, ours: Library, kind: str, dtype: str, n: int, d: int) -> dict[str, Any]:
    """One case; inputs rotate, so that no cache holds them."""
    bytes_read = 2 * n * d * ours.item(dtype)
    sets = [ours.inputs(kind, dtype, n, d, seed) for seed in range(device.rotation(bytes_read))]
    record: dict[str, Any] = {"kind": kind, "dtype": dtype, "rows": n, "cells": d, "seconds": {}}
    contenders = {"copy": ours.copy, **ours.contenders(kind, dtype)}
    for name, call in contenders.items():
        if device.left() <= 0:
            break
        try:
            record["seconds"][name] = device.median([partial(call, *s) for s in sets], A_CASE)
        except Exception as error:  # a peer that cannot: its absence is told with the reason
            record["seconds"][name] = None
            record.setdefault("failed", {})[name] = f"{type(error).__name__}: {error}"[:200]
    ceiling = record["seconds"].get("copy")
    mine = record["seconds"].get("klnumba")
    if ceiling and mine:
        # A copy reads one input and writes as much: it moves the bytes that we read.
        record["share of the ceiling"] = round(ceiling / mine, 3)
        record["bytes a second"] = bytes_read / mine
    return record


def pairs(device: Device) -> list[dict[str, Any]]:
    """Normal and gamma distributions, element by element."""
    ours = library("float32")
    n = TOY_PAIRS if device.simulated else PAIRS
    found = []
    for family in ("Normal", "Gamma"):
        if device.left() <= 0:
            break
        sets = [ours.parameters(n, seed) for seed in range(device.rotation(16 * n))]
        seconds = {
            name: device.median([partial(call, family, *s) for s in sets], A_CASE)
            for name, call in ours.pair_contenders().items()
        }
        found.append({"family": family, "pairs": n, "seconds": seconds})
    return found


def small_call(device: Device) -> dict[str, Any]:
    """The latency of a small call: all of it, the launch alone, the kernel alone; what is left is Python."""
    ours = library("float32")
    n, d = TOY_SMALL if device.simulated else SMALL
    p, q = ours.inputs("prob", "float32", n, d, 0)
    call = ours.contenders("prob", "float32")["klnumba"]
    return {"rows": n, "cells": d} | device.latency(lambda: call(p, q), ours.numba_arrays(p, q), n, d)


def table(content: dict[str, Any]) -> str:
    """The Markdown table of a run."""
    device = content["device"]
    lines = [f"{device['name']}, {content['date']}; shares are of the speed of a copy on the device.", ""]
    names = sorted({name for case in content["rows"] for name in case["seconds"] if name != "copy"})
    lines += [f"| kind | dtype | rows | cells | {' | '.join(names)} |", "|---" * (4 + len(names)) + "|"]
    for case in content["rows"]:
        ceiling = case["seconds"].get("copy")
        shares = [
            f"{ceiling / case['seconds'][name]:.2f}" if ceiling and case["seconds"].get(name) else "" for name in names
        ]
        lines.append(
            f"| {case['kind']} | {case['dtype']} | {case['rows']:,} | {case['cells']:,} | {' | '.join(shares)} |"
        )
    lines += ["", "| pairs | contender | ms |", "|---|---|---|"]
    for case in content["pairs"]:
        lines += [f"| {case['family']} | {name} | {1e3 * s:.3f} |" for name, s in case["seconds"].items() if s]
    small = ", ".join(f"{name} {value:.1f}" for name, value in content["small call"].items() if "µs" in name)
    return "\n".join([*lines, "", f"A small call, in µs: {small}.", ""])


if __name__ == "__main__":
    main()
