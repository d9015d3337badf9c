"""Scoring two files of float32 logits from the page cache: ``python -m benchmarks.scoring``.

Beside it stands a compiled loop that adds up all cells of the same memory maps, which is the least that reading them
takes. They take turns, each in a process of its own, whose peak of resident memory is noted. Writes
``benchmarks/results/scoring.json``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.__main__ import RESULTS

SIZE = 2 * 10**9
CELLS = 32_000
ROUNDS = 7
FILE = RESULTS / "scoring.json"

# Reads a line, works once, answers with seconds; at the end with the bytes that came on top of the libraries.
COMMON = """
import sys, time
import numba
import numpy as np
import klnumba as kl
from benchmarks import memory
p, q = sys.argv[1:]
before = memory.resident(reset=True)

@numba.njit(parallel=True, fastmath=True)
def total(x, y):
    s = 0.0
    for i in numba.prange(x.shape[0]):
        t = np.float32(0)
        for j in range(x.shape[1]):
            t += x[i, j] + y[i, j]
        s += t
    return s

def maps():
    return [np.load(name, mmap_mode="r") for name in (p, q)]

once = maps()
work = {
    "klnumba.score": lambda: kl.score(p, q, kind="logit"),
    "sum of both maps": lambda: total(*once),
    "sum of both maps, mapped anew": lambda: total(*maps()),
}[NAME]
work()
for line in sys.stdin:
    start = time.perf_counter()
    work()
    print(time.perf_counter() - start, flush=True)
print(memory.peak() - before, flush=True)
"""
PROGRAMS = ("klnumba.score", "sum of both maps", "sum of both maps, mapped anew")


class Contender:
    """A program in a process of its own, which works when it is told to."""

    def __init__(self, name: str, files: list[str]) -> None:
        program = COMMON.replace("NAME", repr(name))
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *files], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.ask, self.answers = self.process.stdin, self.process.stdout
        self.turn()  # so that all are warm before the first round

    def turn(self) -> float:
        """Seconds of one more run."""
        self.ask.write("\n")
        self.ask.flush()
        return float(self.answers.readline())

    def finish(self) -> float:
        """Bytes that the process held at most beyond its libraries."""
        self.ask.close()
        peak = float(self.answers.readline())
        self.process.wait()
        return peak


def write(folder: Path, size: int) -> list[str]:
    """Two files of logits of the size that is asked for; a model's are the reference's with some noise."""
    rows = max(1, size // (4 * CELLS))
    rng = np.random.default_rng(0)
    paths = [folder / "p.npy", folder / "q.npy"]
    with ExitStack() as stack:  # written as files are: through a map the kernel would keep them in its smallest pages
        files = [stack.enter_context(path.open("wb")) for path in paths]
        header = {"descr": "<f4", "fortran_order": False, "shape": (rows, CELLS)}
        for file in files:
            np.lib.format.write_array_header_1_0(file, header)
        for first in range(0, rows, 256):
            part = rng.standard_normal((min(256, rows - first), CELLS), np.float32) * 3
            part.tofile(files[0])
            (part + rng.standard_normal(part.shape, np.float32) * 0.3).tofile(files[1])
    return [str(path) for path in paths]


def measure(size: int, folder: Path) -> list[dict[str, Any]]:
    """A record a program."""
    files = write(folder, size)
    total = sum(Path(file).stat().st_size for file in files)
    contenders = {name: Contender(name, files) for name in PROGRAMS}
    rounds = [[contender.turn() for contender in contenders.values()] for _ in range(ROUNDS)]
    seconds = dict(zip(PROGRAMS, np.median(rounds, axis=0).tolist(), strict=True))
    records = []
    for name, contender in contenders.items():
        speed = {"seconds": round(seconds[name], 3), "GB/s": round(total / seconds[name] / 1e9, 2)}
        share = round(seconds["sum of both maps"] / seconds[name], 2)
        peak = round(contender.finish() / 2**20)
        records.append({"program": name, **speed, "of the sum's speed": share, "peak (MiB)": peak})
        print(records[-1], flush=True)
    return records


def main() -> None:
    """Measure and write."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.scoring", description=__doc__)
    made.add_argument("--size", type=int, default=SIZE, help=f"bytes of a file (default {SIZE:,})")
    options = made.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        records = measure(options.size, Path(folder))
    about = {"rows": records, "bytes of a file": options.size, "cells of a row": CELLS, "measured": machine.where()}
    FILE.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
