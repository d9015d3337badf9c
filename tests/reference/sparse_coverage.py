"""How often the interval and the test find a change where there is none: few rows a cell, and rows of uneven weight.

``python -m tests.reference.sparse_coverage`` writes ``docs/_data/sparse_cells.json`` (a minute). Every column of a
table is drawn anew from one law, and `compare` takes all of them together.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "docs" / "_data" / "sparse_cells.json"
COLUMNS = 1000
# How many names, of equal shares (0: normal numbers), the rows before and after, the spread of weights' logarithms.
CASES = [
    (5, 20, 2000, 0.0), (30, 75, 7500, 0.0), (100, 250, 25_000, 0.0), (300, 1000, 1000, 0.0), (300, 1000, 10_000, 0.0),
    (5, 300, 300, 1.0), (60, 300, 300, 0.7), (60, 300, 300, 1.0), (60, 3000, 1000, 1.0), (900, 3000, 1000, 1.0),
    (20, 3000, 1000, 2.0), (0, 300, 300, 1.5), (0, 3000, 1000, 1.0),
    (50, 2, 10_000, 0.0), (200, 5, 1000, 0.0), (1000, 20, 10_000, 0.0), (1000, 40, 1000, 0.0), (0, 1, 1000, 0.0),
    (0, 2, 1000, 0.0),
]  # fmt: skip


def drawn(rng: np.random.Generator, names: int, rows: int, columns: int) -> Any:
    """A table of so many columns."""
    import pandas as pd

    if not names:
        return pd.DataFrame(rng.normal(size=(rows, columns)))
    labels = [f"k{k}" for k in range(names)]
    return pd.DataFrame({c: pd.Categorical.from_codes(rng.integers(0, names, rows), labels) for c in range(columns)})


def of_case(names: int, before: int, after: int, spread: float) -> dict[str, Any]:
    """A line of the table."""
    from klnumba.tables import compare

    rng = np.random.default_rng([names, before, after, round(10 * spread)])
    frames = [drawn(rng, names, rows, COLUMNS) for rows in (before, after)]
    weights = tuple(rng.lognormal(0.0, spread, rows) for rows in (before, after)) if spread else None
    found = compare(*frames, weights=weights).to_frame()
    row = {
        "names": names or "numbers", "rows_before": before, "rows_after": after, "spread_of_log_weights": spread,
        "interval_without_0": float((found["ci_low"] > 0).mean()),
        "p_below_0.05": float((found["p_value"] < 0.05).mean()),
        "p_below_0.5": float((found["p_value"] < 0.5).mean()),
        "mean_of_kl": float(f"{found['kl'].mean():.3g}"),
    }  # fmt: skip
    if found["kl_corrected"].notna().any():
        row["mean_of_kl_corrected"] = float(f"{found['kl_corrected'].mean():.3g}")
    return row


def main() -> None:
    """Simulate everything and write it down."""
    lines = ",\n".join(json.dumps(of_case(*case)) for case in CASES)
    DATA.write_text(f'{{"rows": [\n{lines}\n], "columns": {COLUMNS}, "confidence": 0.95}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
