"""Measure the largest error of the row functions and write it to docs/_data/accuracy.json.

    python -m tests.reference.accuracy_table

The docs print the file as a table (`markdown_table`); `tests/divergence/test_accuracy.py` holds it against `BOUNDS`.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import klnumba as kl
from tests.reference import mp
from tests.reference.row_families import draw, families

DATA = Path(__file__).parents[2] / "docs" / "_data" / "accuracy.json"

BOUNDS = {"float64": 4.0, "float32": 2.0}  # ulp of the result
LOG_BOUND = 5.0  # rows of float64 logarithms, whose cells each carry the rounding of an exponential
SMALLEST, LARGEST = 1e-30, 1e3  # divergences between these are held to the bound

# name: (least and greatest number of cells, pairs of rows a family)
LENGTHS = {
    "1 to 9": (1, 9, 12),
    "10 to 99": (10, 99, 8),
    "100 to 999": (100, 999, 3),
    "1,000 to 9,999": (1_000, 3_000, 1),
    "10,000 to 100,000": (10_000, 100_000, 0),  # two pairs a setting, and the longest row once
}
SETTINGS = [
    ("prob", True), ("prob", False), ("log_prob", True), ("log_prob", False), ("logit", True),
]  # fmt: skip


def lengths(name: str, rng: np.random.Generator) -> Iterator[int]:
    """Row lengths of a class."""
    least, greatest, repeats = LENGTHS[name]
    for _ in range(repeats):
        yield round(math.exp(rng.uniform(math.log(least), math.log(greatest))))


def errors(p: Any, q: Any, kind: str, normalize: bool, dtype: str) -> dict[str, tuple[float, float]]:
    """The error in ulp and the value of each function on one pair of rows."""
    found = {}
    for function, (truth, scale) in mp.pair_of_rows(p, q, kind, normalize).items():
        arguments = (p,) if function == "entropy" else (p, q)
        result = getattr(kl, function)(*arguments, kind=kind, normalize=normalize)
        found[function] = (mp.ulp_error(result, truth, dtype, scale), float(truth))
    return found


def bound(kind: str, dtype: str) -> float:
    """The bound for one kind of rows, in ulp."""
    return LOG_BOUND if dtype == "float64" and kind != "prob" else BOUNDS[dtype]


def in_range(value: float) -> bool:
    """Whether a value is one that the bound speaks of."""
    return value == 0 or not math.isfinite(value) or SMALLEST <= abs(value) <= LARGEST


def _measure(kind: str, normalize: bool, dtype: str, length: str) -> dict[str, float]:
    """The largest error of each function in one class of rows."""
    rng = np.random.default_rng([len(kind), normalize, len(dtype), *length.encode()])
    known = families(dtype)
    tasks = [(family, n) for family in known for n in lengths(length, rng)]
    if length == "10,000 to 100,000":
        longest = 100_000 if kind == "prob" and normalize else 10_000
        tasks = [("near, as float32 sees it", longest), ("ordinary", 10_000)]
    worst: dict[str, float] = {}
    for family, n in tasks:
        p, q = draw(known[family], rng, n, kind, dtype)
        for function, (error, value) in errors(p, q, kind, normalize, dtype).items():
            if in_range(value):
                worst[function] = max(error, worst.get(function, 0.0))
    return worst


def measure() -> list[dict[str, Any]]:
    """One record per function, dtype, kind and normalize, with the largest error in ulp for each class of lengths."""
    records: dict[tuple[Any, ...], dict[str, Any]] = {}
    for dtype, (kind, normalize), length in itertools.product(BOUNDS, SETTINGS, LENGTHS):
        for function, error in _measure(kind, normalize, dtype, length).items():
            key = {"function": function, "dtype": dtype, "kind": kind, "normalize": normalize}
            records.setdefault(tuple(key.values()), key)[f"{length} cells"] = round(error, 2)
    return [records[key] for key in sorted(records)]


def load() -> list[dict[str, Any]]:
    """The recorded measurement."""
    found: list[dict[str, Any]] = json.loads(DATA.read_text(encoding="utf-8"))["rows"]
    return found


def markdown_table() -> str:
    """The recorded errors as a Markdown table, a column for each class of lengths."""
    columns = ["function", "dtype", "kind", "normalize", *(f"{length} cells" for length in LENGTHS)]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    lines += [f"| {' | '.join(str(record[column]) for column in columns)} |" for record in load()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and write."""
    rows = ",\n".join(json.dumps(record) for record in measure())
    facts = {
        "unit": "ulp of the result; for plain sums with terms of both signs, ulp of the size of their terms",
        "reference": f"mpmath, {mp.DIGITS} digits",
        "smallest_result_held_to_the_bound": SMALLEST,
    }
    notes = "".join(f',\n"{name}": {json.dumps(fact)}' for name, fact in facts.items())
    DATA.parent.mkdir(parents=True, exist_ok=True)
    DATA.write_text(f'{{"rows": [\n{rows}\n]{notes}}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
