"""Scoring two files of float32 logits from the page cache: ``python -m benchmarks.scoring``.

Beside it stands a compiled loop that adds up all cells of the same memory maps, which is the least that reading them
takes. Each takes turns in a process of its own, whose peak of resident memory is noted. Writes
``benchmarks/results/scoring.json``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.__main__ import RESULTS
from benchmarks.pairs import where

SIZE = 2 * 10**9
CELLS = 32_000
ROUNDS = 5
FILE = RESULTS / "scoring.json"

COMMON = """
import sys, time
import numpy as np
from klnumba.scoring import memory
p, q, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
before = memory.resident()
def report(work):
    work()
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        print(time.perf_counter() - start, flush=True)
    print(memory.peak() - before, flush=True)
"""
PROGRAMS = {
    "klnumba score": COMMON
    + """
import klnumba as kl
report(lambda: kl.score(p, q, kind="logit"))
""",
    "sum of both maps": COMMON
    + """
import numba
@numba.njit(parallel=True, fastmath=True)
def total(x, y):
    s = 0.0
    for i in numba.prange(x.shape[0]):
        t = np.float32(0)
        for j in range(x.shape[1]):
            t += x[i, j] + y[i, j]
        s += t
    return s
maps = [np.load(name, mmap_mode="r") for name in (p, q)]
report(lambda: total(*maps))
""",
    "sum of both maps, mapped again": COMMON
    + """
import numba
@numba.njit(parallel=True, fastmath=True)
def total(x, y):
    s = 0.0
    for i in numba.prange(x.shape[0]):
        t = np.float32(0)
        for j in range(x.shape[1]):
            t += x[i, j] + y[i, j]
        s += t
    return s
report(lambda: total(*[np.load(name, mmap_mode="r") for name in (p, q)]))
""",
}


def write(folder: Path, size: int) -> list[str]:
    """Two files of logits of the size that is asked for; a model's are the reference's with some noise."""
    rows = max(1, size // (4 * CELLS))
    rng = np.random.default_rng(0)
    paths = [folder / "p.npy", folder / "q.npy"]
    maps = [np.lib.format.open_memmap(path, "w+", np.float32, (rows, CELLS)) for path in paths]
    for first in range(0, rows, 256):
        part = rng.standard_normal((min(256, rows - first), CELLS), np.float32) * 3
        maps[0][first : first + len(part)] = part
        maps[1][first : first + len(part)] = part + rng.standard_normal(part.shape, np.float32) * 0.3
    return [str(path) for path in paths]


def measure(size: int, folder: Path) -> list[dict[str, Any]]:
    """A record a program."""
    files = write(folder, size)
    total = sum(Path(file).stat().st_size for file in files)
    found = {}
    for name, program in PROGRAMS.items():
        run = [sys.executable, "-c", program, *files, str(ROUNDS)]
        done = subprocess.run(run, capture_output=True, text=True, check=True)
        *seconds, peak = map(float, done.stdout.split())
        found[name] = float(np.median(seconds)), peak
    records = []
    for name, (seconds, peak) in found.items():
        speed = {"seconds": round(seconds, 3), "GB/s": round(total / seconds / 1e9, 2)}
        share = round(found[name][0] and found["sum of both maps"][0] / seconds, 2)
        records.append({"program": name, **speed, "of the sum's speed": share, "peak MiB": round(peak / 2**20)})
        print(records[-1], flush=True)
    return records


def main() -> None:
    """Measure and write."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.scoring", description=__doc__)
    made.add_argument("--size", type=int, default=SIZE, help=f"bytes of a file (default {SIZE:,})")
    options = made.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        records = measure(options.size, Path(folder))
    about = {"rows": records, "bytes of a file": options.size, "cells of a row": CELLS, "measured": where()}
    FILE.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
