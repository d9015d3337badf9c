"""How often the interval holds the true divergence, and how the p-value spreads when nothing has changed.

``python -m tests.reference.interval_coverage`` writes ``docs/_data/interval_coverage.json``, of cells that hardly ever
have a row ``docs/_data/rare_cells.json``, of numbers in fitted bins ``docs/_data/numeric_coverage.json``, and how often
chance goes beyond `thresholds` ``docs/_data/exceedance.json``. A table of 2,000 columns is 2,000 simulations: every
column is drawn anew from one pair of distributions, and `compare` takes all of them together.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "_data"
DATA = FOLDER / "interval_coverage.json"
RARE = FOLDER / "rare_cells.json"
NUMERIC = FOLDER / "numeric_coverage.json"
BEYOND = FOLDER / "exceedance.json"
COLUMNS = 2000
CASES = [(cells, rows) for cells in (5, 20) for rows in (500, 5000)]
# Rows of a table of 20 cells, and how many of them one cell lets expect, before and after.
RARE_CASES = [
    (rows, before, after) for rows, before in ((500, 20), (5000, 20), (5000, 200)) for after in (0.1, 0.3, 1, 3)
]
# The rule, the rows before and after, and by how many standard deviations the numbers move.
NUMERIC_CASES = [
    (bins, before, after, move)
    for bins in (5, 20, "auto") for before in (500, 5000) for after in (500, 5000) for move in (0.0, 0.3)
]  # fmt: skip
PIECE = 250  # columns that are held at a time
# What the columns hold, the rows before and after, the method, and how many columns.
BEYOND_CASES = [
    ("normal numbers", 500, 5000, "bootstrap", 2000), ("normal numbers", 500, 500, "bootstrap", 2000),
    ("normal numbers", 500, 5000, "chi2", 2000), ("normal numbers", 500, 500, "chi2", 2000),
    ("60 % zeros", 500, 3000, "bootstrap", 2000), ("half missing, left out", 500, 1000, "bootstrap", 1000),
    ("log-normal numbers in equal bins", 500, 1000, "bootstrap", 500),
    ("log-normal numbers in equal bins", 500, 5000, "bootstrap", 500),
    ("Cauchy numbers in equal bins", 500, 5000, "bootstrap", 1000),
    ("yes in 0.5 %", 500, 5000, "bootstrap", 2000), ("yes in 0.5 %", 500, 5000, "chi2", 2000),
    ("yes in 1 %", 1000, 1000, "bootstrap", 2000), ("yes in 5 %", 500, 5000, "bootstrap", 2000),
    ("five ratings", 100, 2000, "bootstrap", 2000), ("numbers by Poisson's law", 500, 2000, "bootstrap", 1000),
    ("10 names", 500, 2000, "bootstrap", 2000), ("200 names", 300, 3000, "bootstrap", 60),
    ("200 names", 1000, 1000, "bootstrap", 60), ("names by Zipf's law", 1000, 1000, "bootstrap", 100),
    ("5000 names", 3000, 3000, "bootstrap", 40), ("half of them numbers of orders", 1000, 1000, "bootstrap", 60),
    ("numbers of orders", 1000, 1000, "bootstrap", 20),
    ("4 codes, else free text in 1 %", 1000, 10_000, "bootstrap", 400),
    ("4 codes, else free text in 1 %", 1000, 2000, "bootstrap", 400),
    ("5 codes, else free text in 0.2 %", 5000, 20_000, "bootstrap", 200),
    ("5 codes, else free text in 0.5 %", 2000, 4000, "bootstrap", 400),
    ("5 codes, else free text in 3 %", 2000, 20_000, "bootstrap", 100),
    ("5 codes, else 50 names in 1 %", 2000, 20_000, "bootstrap", 200),
    ("1 code, else free text in 2 %", 1000, 10_000, "bootstrap", 400),
    ("1 code, else free text in 5 %", 300, 3000, "bootstrap", 400),
    ("12 names by Zipf's law", 200, 2000, "bootstrap", 1000), ("15 names", 100, 2000, "bootstrap", 1000),
    ("20 names", 200, 2000, "bootstrap", 1000), ("20 names", 20, 20, "bootstrap", 1000),
    ("50 names", 10, 1000, "bootstrap", 1000), ("20 whole numbers", 10, 1000, "bootstrap", 1000),
    ("half of them numbers of orders", 1000, 10_000, "bootstrap", 60),
]  # fmt: skip
# What else a comparison of such columns is asked for.
BEYOND_OPTIONS = {
    "half missing, left out": {"missing": "drop"},
    "log-normal numbers in equal bins": {"bins": "fd"},
    "Cauchy numbers in equal bins": {"bins": "sturges"},
}
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
        "standard_error_of_spread": round(float(found["standard_error"].mean() / found["kl_corrected"].std()), 3),
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


def moved(bins: Any, before: int, after: int, move: float) -> tuple[Any, np.ndarray]:
    """The comparison of normal numbers before and after they moved, and of each column the true divergence.

    The truth is that of the bins that the column has, the outer of which reach as far as numbers do.
    """
    import pandas as pd
    from scipy.special import ndtr

    import klnumba as kl
    from klnumba.tables import compare

    rng = np.random.default_rng([before, after, round(1000 * move), bins if isinstance(bins, int) else 0])
    tables, truths = [], []
    for _ in range(COLUMNS // PIECE):
        numbers = rng.normal(size=(before, PIECE)), rng.normal(move, size=(after, PIECE))
        found = compare(*map(pd.DataFrame, numbers), bins=bins)
        tables.append(found.to_frame())
        for one in found.profile.cells.values():
            edges = np.r_[-np.inf, one.edges[1:-1], np.inf]
            truths.append(float(kl.kl_divergence(np.diff(ndtr(edges)), np.diff(ndtr(edges - move)))))
    return pd.concat(tables, ignore_index=True), np.array(truths)


def of_moved(bins: Any, before: int, after: int, move: float) -> dict[str, Any]:
    """A line of the table of numbers."""
    found, truth = moved(bins, before, after, move)
    named = {"bins": bins, "rows_before": before, "rows_after": after, "moved_by": move}
    below, above = found["ci_high"] < truth, found["ci_low"] > truth
    return named | {
        "mean_true_KL": float(f"{truth.mean():.3g}"),
        "covered": round(float(1.0 - (below | above).mean()), 4),
        "interval_too_low": float(below.mean()),
        "interval_too_high": float(above.mean()),
        "p_below_0.05": float((found["p_value"] < 0.05).mean()),
    }


def column_of(kind: str, rng: np.random.Generator, rows: int, columns: int) -> Any:
    """A table of columns that hold what `kind` says."""
    import pandas as pd

    size = rows, columns
    draws = {
        "normal numbers": lambda: rng.normal(size=size),
        "60 % zeros": lambda: np.where(rng.random(size) < 0.6, 0.0, rng.lognormal(size=size)),
        "half missing, left out": lambda: np.where(rng.random(size) < 0.5, np.nan, rng.normal(size=size)),
        "log-normal numbers in equal bins": lambda: rng.lognormal(0.0, 1.5, size),
        "Cauchy numbers in equal bins": lambda: rng.standard_cauchy(size),
        "five ratings": lambda: rng.choice(5, size, p=[0.1, 0.1, 0.2, 0.3, 0.3]),
        "numbers by Poisson's law": lambda: rng.poisson(20, size),
        "names by Zipf's law": lambda: np.minimum(rng.zipf(1.6, size), 10**6).astype(str),
        "numbers of orders": lambda: rng.integers(0, 10**12, size).astype(str),
        "half of them numbers of orders": lambda: np.where(
            rng.random(size) < 0.5, rng.integers(0, 10**12, size), rng.integers(0, 10, size)
        ).astype(str),
    }
    if kind.startswith("yes in"):
        return pd.DataFrame(rng.random(size) < float(kind.split()[2]) / 100.0)
    if kind in draws:
        return pd.DataFrame(draws[kind]())
    first = int(kind.split()[0])
    if ", else " in kind:
        return pd.DataFrame(_mostly_codes(first, kind.split(", else ")[1], rng, size))
    if "Zipf" in kind:
        return pd.DataFrame(rng.choice(first, size, p=_shares(np.arange(1.0, first + 1.0) ** -2.0)).astype(str))
    found = rng.integers(0, first, size)
    return pd.DataFrame(found if "numbers" in kind else found.astype(str))


def _mostly_codes(codes: int, others: str, rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Codes of which each is rarer than the one before, and in some rows "free text" or one of "50 names" instead."""
    what, share = others.removesuffix(" %").split(" in ")
    names = 10**12 if what == "free text" else int(what.split()[0])
    found = rng.choice(codes, size, p=_shares(np.arange(codes, 0.0, -1.0)))
    return np.where(rng.random(size) < float(share) / 100.0, codes + rng.integers(0, names, size), found).astype(str)


def _shares(weights: np.ndarray) -> np.ndarray:
    found: np.ndarray = weights / weights.sum()
    return found


def of_beyond(kind: str, before: int, after: int, method: str, columns: int) -> dict[str, Any]:
    """How many of so many columns go beyond their threshold of 5 % though nothing has changed."""
    from klnumba.tables import Profile, thresholds

    rng = np.random.default_rng([before, after, len(kind)])
    options: dict[str, Any] = dict(BEYOND_OPTIONS.get(kind, {}))
    bins = options.pop("bins", "auto")
    options["smoothing"] = "jeffreys" if method == "bootstrap" else "none"
    beyond = 0
    for start in range(0, columns, 100):
        size = min(100, columns - start)
        profile = Profile.fit(column_of(kind, rng, before, size), bins=bins)
        found = profile.compare(column_of(kind, rng, after, size), **options).to_frame()["kl"].to_numpy()
        with warnings.catch_warnings():  # of cells too empty for the law of large samples: this shows why
            warnings.simplefilter("ignore", UserWarning)
            limits = thresholds(profile, after, 0.05, method=method, samples=400, rng=start, **options)
        beyond += int((found > limits.to_numpy()).sum())
    named = {"columns_of": kind, "rows_before": before, "rows_after": after, "method": method, "columns": columns}
    return named | {"beyond": round(beyond / columns, 4)}


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """The lines of one table."""
    lines = ",\n".join(json.dumps(one) for one in rows)
    path.write_text(f'{{"rows": [\n{lines}\n], "columns": {COLUMNS}, "confidence": 0.95}}\n', encoding="utf-8")


def main() -> None:
    """Simulate everything and write it down."""
    write(DATA, [of_case(cells, rows, shift) for cells, rows in CASES for shift in SHIFTS])
    write(RARE, [of_rare_case(*case) for case in RARE_CASES])
    write(NUMERIC, [of_moved(*case) for case in NUMERIC_CASES])
    write(BEYOND, [of_beyond(*case) for case in BEYOND_CASES])


if __name__ == "__main__":
    main()
