"""How often the interval holds the true divergence, and how the p-value spreads when nothing has changed.

``python -m tests.reference.interval_coverage`` writes ``docs/_data/interval_coverage.json``, and of cells that hardly
ever have a row ``docs/_data/rare_cells.json``. A table of 2,000 columns is 2,000 simulations: every column is drawn
anew from one pair of distributions, and `compare` takes all of them together.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "_data"
DATA = FOLDER / "interval_coverage.json"
RARE = FOLDER / "rare_cells.json"
COLUMNS = 2000
CASES = [(cells, rows) for cells in (5, 20) for rows in (500, 5000)]
# Rows of a table of 20 cells, and how many of them one cell lets expect, before and after.
RARE_CASES = [
    (rows, before, after) for rows, before in ((500, 20), (5000, 20), (5000, 200)) for after in (0.1, 0.3, 1, 3)
]
SHIFTS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)  # the spread of the logarithms by which the shares change


def distributions(cells: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Uneven shares, none below a fifth of an equal one, and the same after a random change."""
    rng = np.random.default_rng([cells, round(1000 * shift)])
    p = np.maximum(rng.dirichlet(np.full(cells, 5.0)), 0.2 / cells)
    q = p * np.exp(shift * rng.standard_normal(cells))
    return p / p.sum(), q / q.sum()


def with_a_rare_cell(rows: int, before: float, after: float) -> tuple[np.ndarray, np.ndarray]:
    """Twenty shares that change much, the rarest of which lets expect so many rows before and after."""
    p, q = distributions(20, 1.0)
    rarest = int(np.argmin(q))
    found = []
    for share, expected in ((p, before), (q, after)):
        rest = np.delete(share, rarest)
        found.append(np.insert(rest / rest.sum() * (1.0 - expected / rows), rarest, expected / rows))
    return found[0], found[1]


def simulated(p: np.ndarray, q: np.ndarray, rows: int, seed: list[int]) -> tuple[Any, float]:
    """The comparison of two simulated tables, and the true divergence."""
    import pandas as pd

    import klnumba as kl
    from klnumba.tables import compare

    rng = np.random.default_rng(seed)
    frames = (pd.DataFrame(_drawn(rng, share, rows, COLUMNS)) for share in (p, q))
    found = compare(*frames, bins="category").to_frame()
    assert (found["status"] == "ok").all()
    return found, float(kl.kl_divergence(p, q))


def shifted(cells: int, rows: int, shift: float) -> tuple[Any, float]:
    """The same, of one of the cases."""
    return simulated(*distributions(cells, shift), rows, [cells, rows, round(1000 * shift)])


def _drawn(rng: np.random.Generator, share: np.ndarray, rows: int, columns: int) -> np.ndarray:
    edges = share.cumsum()[:-1]
    found = np.empty((rows, columns), np.int8, order="F")
    for k in range(columns):
        found[:, k] = np.searchsorted(edges, rng.random(rows))
    return found


def row(found: Any, truth: float) -> dict[str, Any]:
    """What one pair of distributions shows."""
    below, above = found["ci_high"] < truth, found["ci_low"] > truth
    return {
        "true_KL": float(f"{truth:.3g}"),
        "covered": round(float(1.0 - (below | above).mean()), 4),
        "interval_too_low": float(below.mean()),
        "interval_too_high": float(above.mean()),
    }


def means(found: Any) -> dict[str, Any]:
    """What the estimates and the test say."""
    return {
        "mean_of_kl": float(f"{found['kl'].mean():.3g}"),
        "mean_of_kl_corrected": float(f"{found['kl_corrected'].mean():.3g}"),
        "p_below_0.05": float((found["p_value"] < 0.05).mean()),
    }


def of_case(cells: int, rows: int, shift: float) -> dict[str, Any]:
    """A line of the table."""
    found, truth = shifted(cells, rows, shift)
    return {"cells": cells, "rows": rows} | row(found, truth) | means(found)


def of_rare_case(rows: int, before: float, after: float) -> dict[str, Any]:
    """A line of the table of rare cells."""
    found, truth = simulated(*with_a_rare_cell(rows, before, after), rows, [rows, before, round(1000 * after)])
    named = {"rows": rows, "of_the_cell_before": before, "and_after": after}
    return named | row(found, truth) | {"without_an_upper_end": float(np.isinf(found["ci_high"]).mean())}


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = ",\n".join(json.dumps(one) for one in rows)
    path.write_text(f'{{"rows": [\n{lines}\n], "columns": {COLUMNS}, "confidence": 0.95}}\n', encoding="utf-8")


def main() -> None:
    """Simulate everything and write it down."""
    write(DATA, [of_case(cells, rows, shift) for cells, rows in CASES for shift in SHIFTS])
    write(RARE, [of_rare_case(*case) for case in RARE_CASES])


if __name__ == "__main__":
    main()
