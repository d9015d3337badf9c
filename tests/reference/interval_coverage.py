"""How often the interval holds the true divergence, and how the p-value spreads when nothing has changed.

``python -m tests.reference.interval_coverage`` writes ``docs/_data/interval_coverage.json``. A table of 2,000
columns is 2,000 simulations: every column is drawn anew from one pair of distributions, and `compare` takes all of them
together.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "docs" / "_data" / "interval_coverage.json"
COLUMNS = 2000
CASES = [(cells, rows) for cells in (5, 20) for rows in (500, 5000)]
SHIFTS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)  # the spread of the logarithms by which the shares change


def distributions(cells: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Uneven shares, none below a fifth of an equal one, and the same after a random change."""
    rng = np.random.default_rng([cells, round(1000 * shift)])
    p = np.maximum(rng.dirichlet(np.full(cells, 5.0)), 0.2 / cells)
    q = p * np.exp(shift * rng.standard_normal(cells))
    return p / p.sum(), q / q.sum()


def simulated(cells: int, rows: int, shift: float, columns: int = COLUMNS) -> tuple[Any, float]:
    """The comparison of two simulated tables, and the true divergence."""
    import pandas as pd

    import klnumba as kl
    from klnumba.tables import compare

    p, q = distributions(cells, shift)
    rng = np.random.default_rng([cells, rows, round(1000 * shift)])
    frames = (pd.DataFrame(_drawn(rng, share, rows, columns)) for share in (p, q))
    found = compare(*frames, bins="category").to_frame()
    assert (found["status"] == "ok").all()
    return found, float(kl.kl_divergence(p, q))


def _drawn(rng: np.random.Generator, share: np.ndarray, rows: int, columns: int) -> np.ndarray:
    edges = share.cumsum()[:-1]
    found = np.empty((rows, columns), np.int8, order="F")
    for k in range(columns):
        found[:, k] = np.searchsorted(edges, rng.random(rows))
    return found


def row(cells: int, rows: int, shift: float) -> dict[str, Any]:
    """What one pair of distributions shows."""
    found, truth = simulated(cells, rows, shift)
    below, above = found["ci_high"] < truth, found["ci_low"] > truth
    return {
        "cells": cells,
        "rows": rows,
        "true_KL": float(f"{truth:.3g}"),
        "covered": round(float(1.0 - (below | above).mean()), 4),
        "interval_too_low": float(below.mean()),
        "interval_too_high": float(above.mean()),
        "mean_of_kl": float(f"{found['kl'].mean():.3g}"),
        "mean_of_kl_corrected": float(f"{found['kl_corrected'].mean():.3g}"),
        "p_below_0.05": float((found["p_value"] < 0.05).mean()),
    }


def main() -> None:
    """Simulate everything and write it down."""
    rows = [row(cells, size, shift) for cells, size in CASES for shift in SHIFTS]
    lines = ",\n".join(json.dumps(one) for one in rows)
    DATA.write_text(f'{{"rows": [\n{lines}\n], "columns": {COLUMNS}, "confidence": 0.95}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
