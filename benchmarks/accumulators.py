"""Accumulating over batches, against one call and against torchmetrics: ``python -m benchmarks.accumulators``.

Writes ``benchmarks/results/accumulators.json``, from which the documentation takes its table.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from benchmarks import machine, memory, timing
from benchmarks.__main__ import RESULTS
from benchmarks.fresh import printed

ROWS, CELLS, BATCH, GROUPS = 1_000_000, 100, 10_000, 1000
ROUNDS = 9
FILE = RESULTS / "accumulators.json"


def contenders(rows: int) -> dict[str, timing.Call]:
    """What is timed, by name; the first is the measure of the others."""
    import torch
    import torchmetrics

    import klnumba as kl

    rng = np.random.default_rng(0)
    p, q = (rng.dirichlet(np.ones(CELLS), rows) for _ in range(2))
    labels = rng.integers(0, GROUPS, rows)
    tensors = [torch.from_numpy(x) for x in (p, q)]
    batches = [slice(k, k + BATCH) for k in range(0, rows, BATCH)]

    def accumulated(**columns: Any) -> Any:
        metric = kl.KLDivergence()
        for batch in batches:
            metric.update(p[batch], q[batch], **{name: x[batch] for name, x in columns.items()})
        return metric.compute()

    def theirs() -> Any:
        metric = torchmetrics.KLDivergence()
        for batch in batches:
            metric.update(tensors[0][batch], tensors[1][batch])
        return metric.compute()

    return {
        "one call of kl_divergence": lambda: kl.kl_divergence(p, q),
        "calls of kl_divergence, batch by batch": lambda: [kl.kl_divergence(p[x], q[x]) for x in batches],
        "KLDivergence": accumulated,
        f"KLDivergence, {GROUPS:,} groups": lambda: accumulated(groups=labels),
        "torchmetrics.KLDivergence": theirs,
    }


def measure(rows: int) -> list[dict[str, Any]]:
    """A record a contender: nanoseconds a row, and relative to one call."""
    calls = contenders(rows)
    estimates = [timing.seconds(call) for call in calls.values()]
    rounds = [3 if "torchmetrics" in name else ROUNDS for name in calls]
    samples = timing.interleaved(list(calls.values()), estimates, rounds)
    medians = [float(np.median(x)) for x in samples]
    records = []
    for k, (name, seconds) in enumerate(zip(calls, medians, strict=True)):
        extra = printed(f"from benchmarks.accumulators import peak; peak({k}, {rows})")
        records.append({
            "what": name,
            "ns a row": float(f"{1e9 * seconds / rows:.3g}"),
            "relative to one call": round(seconds / medians[0], 2),
            "peak memory beyond inputs (MiB)": round(extra, 1),
        })  # fmt: skip
    return records


def peak(number: int, rows: int) -> None:
    """Print the MiB that one warmed call of a contender adds at its peak."""
    call = list(contenders(rows).values())[number]
    call()
    memory.give_back()
    before = memory.resident(reset=True)
    call()
    print(max(0, memory.peak() - before) / 2**20)


def main() -> None:
    """Measure and write."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.accumulators", description=__doc__)
    made.add_argument("--rows", type=int, default=ROWS, help=f"rows of {CELLS} cells (default {ROWS:,})")
    options = made.parse_args()
    records = measure(options.rows)
    for record in records:
        print(record)
    FILE.write_text(json.dumps({"rows": records, "measured": machine.where("torch", "torchmetrics")}, indent=1) + "\n")


if __name__ == "__main__":
    main()
