"""Value and gradient of a loss, against PyTorch: ``python -m benchmarks.gradients``.

Writes ``benchmarks/results/gradients.json``, from which the documentation takes its table.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import expressions, machine, timing
from benchmarks.__main__ import RESULTS

CELLS = 4_000_000
LENGTHS = (10, 100, 1000, 32000)
DTYPES = ("float32", "float64")
ROUNDS = 21
FILE = RESULTS / "gradients.json"


def contenders(kind: str, dtype: str, d: int, cells: int) -> dict[str, timing.Call]:
    """What is timed, by name; the first is ours."""
    import torch

    import klnumba as kl

    generator = torch.Generator().manual_seed(0)
    sides = [torch.randn(cells // d, d, dtype=getattr(torch, dtype), generator=generator) for _ in range(2)]
    if kind == "prob":
        sides = [side.softmax(-1) for side in sides]
    fixed, learnt = sides[0], sides[1].requires_grad_()
    expression = expressions.torch_losses[kind]

    def step(loss: Callable[..., Any]) -> Any:
        learnt.grad = None
        loss(fixed, learnt).backward()
        return learnt.grad

    losses = {
        "klnumba": functools.partial(kl.kl_divergence, kind=kind, reduction="mean"),
        "PyTorch": expression,
        "torch.compile": torch.compile(expression),
    }
    return {name: functools.partial(step, loss) for name, loss in losses.items()}


def measure(cells: int) -> list[dict[str, Any]]:
    """A record a case: nanoseconds a cell, and how many times that the others take."""
    records = []
    for kind in ("logit", "prob"):
        for dtype in DTYPES:
            for d in LENGTHS:
                calls = contenders(kind, dtype, d, cells)
                for call in calls.values():
                    call()
                estimates = [timing.seconds(call) for call in calls.values()]
                samples = timing.interleaved(list(calls.values()), estimates, [ROUNDS] * len(calls))
                ours, *others = (float(np.median(x)) for x in samples)
                record = {
                    "kind": kind,
                    "dtype": dtype,
                    "cells a row": d,
                    "klnumba, ns a cell": _digits(1e9 * ours / cells),
                }
                record |= {f"{name}, times": _digits(x / ours) for name, x in zip(list(calls)[1:], others, strict=True)}
                records.append(record)
                print(record, flush=True)
    return records


def _digits(x: float) -> float:
    return float(f"{x:.3g}")


def main() -> None:
    """Measure and write."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.gradients", description=__doc__)
    made.add_argument("--cells", type=int, default=CELLS, help=f"cells of an array (default {CELLS:,})")
    options = made.parse_args()
    records = measure(options.cells)
    FILE.write_text(json.dumps({"rows": records, "measured": machine.where("torch")}, indent=1) + "\n")


if __name__ == "__main__":
    main()
