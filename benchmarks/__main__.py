"""Measure, write the results as JSON, and show them: ``python -m benchmarks --help``."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import cases, first_use, machine, memory, report
from benchmarks.fresh import ROOT, environment

RESULTS = ROOT / "benchmarks" / "results"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    made.add_argument("--quick", action="store_true", help="fewer cases, smaller arrays; docs stay as they are")
    made.add_argument("--only", action="append", default=[], metavar="CASE", help="part or pattern of case names")
    made.add_argument("--threads", choices=("1", "all", "both"), default="both")
    made.add_argument(
        "--cells", type=int, help=f"cells of an array (default {cases.CELLS:,}, quick {cases.QUICK_CELLS:,})"
    )
    made.add_argument("--output", type=Path, help="folder for JSON, table and plot, instead of the repository's places")
    made.add_argument("--list", action="store_true", help="print the names of the cases and stop")
    return made


def main(arguments: list[str] | None = None) -> None:
    """Run what the command line asks for."""
    options = parser().parse_args(arguments)
    cells = options.cells or (cases.QUICK_CELLS if options.quick else cases.CELLS)
    if options.list:
        print("\n".join(c.name for c in cases.chosen(cases.grid(cells, quick=options.quick), options.only)))
        return
    start = time.perf_counter()
    results = run(cells, options.threads, quick=options.quick, only=options.only)
    results["seconds"] = round(time.perf_counter() - start)
    partial = options.quick or options.only or options.threads != "both"
    folder = options.output or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ("quick.json" if partial and not options.output else "cpu.json")
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(f"{path} written, {results['seconds']} s")
    if options.output or not partial:
        report.main([str(path), *(["--output", str(options.output)] if options.output else [])])


def run(cells: int, threads: str, *, quick: bool, only: list[str]) -> dict[str, Any]:
    """All results as they stand in the JSON file."""
    cores = machine.cores()
    counts = {"1": [1], "all": [len(cores)], "both": sorted({1, len(cores)})}[threads]
    results = machine.describe() | {"options": {"cells": cells, "quick": quick, "only": only, "threads": counts}}
    results["cases"] = [record for count in counts for record in _part(count, cells, quick, only)]
    if not only:
        results["memory"] = memory.measure(cells, quick=quick)
        results["first_use"] = first_use.measure(1 if quick else 3)
    return results


def _part(threads: int, cells: int, quick: bool, only: list[str]) -> list[dict[str, Any]]:
    """The cases on ``threads`` threads in a process of its own, which on one thread is bound to one core."""
    count = str(threads)
    changes = dict.fromkeys(("OMP_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS"), count)
    changes["OPENBLAS_NUM_THREADS"] = "1"  # the dot is cut into pieces by the benchmark itself
    if threads == 1:
        changes["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "records.json"
        command = [sys.executable, "-m", "benchmarks.worker", "--threads", count, "--cells", str(cells)]
        command += ["--output", str(output), *(["--quick"] if quick else []), *(f"--only={x}" for x in only)]
        subprocess.run(command, env=environment(**changes), check=True)
        return json.loads(output.read_text())  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
