"""Rows built to make the plain sums inside the quick loops round the same way again and again.

One cell of p is nearly all of its row, the others are tiny and alike, and q is flat: beside the large cell every
addition of a small one rounds alike. What is found is what the documentation states as limits.

    python -m tests.reference.hard_rows

writes docs/_data/hard_rows.json; `tests/divergence/test_hard_rows.py` holds it, and fresh rows, against the limits.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import klnumba as kl
from tests.reference import mp

DATA = Path(__file__).parents[2] / "docs" / "_data" / "hard_rows.json"


@dataclass(frozen=True)
class Hard:
    """A kind of rows, of `least` to `greatest` cells, and the error in ulp that it stays below."""

    dtype: str
    kind: str
    least: int
    greatest: int
    limit: float

    @property
    def name(self) -> str:
        """For a table and for the names of tests."""
        return f"{self.dtype} {self.kind}, {self.least:,} to {self.greatest:,} cells"


HARD = (
    Hard("float64", "prob", 2, 26, 5.5),
    Hard("float64", "prob", 27, 148, 6.5),
    Hard("float64", "prob", 149, 255, 9.5),
    Hard("float64", "prob", 256, 3_000, 5.0),
    Hard("float32", "prob", 2, 255, 1.0),
    Hard("float32", "prob", 256, 3_000, 3.5),
    Hard("float64", "logit", 2, 255, 8.0),
    Hard("float64", "logit", 256, 3_000, 7.5),
    Hard("float32", "logit", 2, 6_000, 1.5),
)


def draw(case: Hard, rng: np.random.Generator) -> tuple[Any, Any]:
    """One pair of rows."""
    n = int(rng.integers(case.least, case.greatest + 1))
    digits = 54 if case.dtype == "float64" else 25
    tiny = 2.0 ** -int(rng.integers(digits - 32 if digits > 32 else 4, digits)) * rng.uniform(0.3, 1)
    p = np.full(n, tiny) * (1.0 if rng.random() < 0.7 else rng.random(n))
    p[rng.choice([0, n // 2, n - 1, int(rng.integers(n))])] = 1.0
    q = np.full(n, 1.0 / n) if rng.random() < 0.7 else rng.random(n)
    if case.kind == "logit":
        shift = rng.choice([0.0, 0.0, 5.0, 60.0, -35.0])
        p, q = np.log(p) + shift, np.log(q) + shift
    return p.astype(case.dtype), q.astype(case.dtype)


def error(case: Hard, rng: np.random.Generator) -> float:
    """The error of one pair, in ulp."""
    p, q = draw(case, rng)
    truth, scale = mp.pair_of_rows(p, q, case.kind, True)["kl_divergence"]
    return mp.ulp_error(kl.kl_divergence(p, q, kind=case.kind), truth, case.dtype, scale)


def largest(case: Hard, seed: int, pairs: int) -> float:
    """The largest error over some pairs."""
    rng = np.random.default_rng([seed, case.least, len(case.kind)])
    return max(error(case, rng) for _ in range(pairs))


def load() -> list[dict[str, Any]]:
    """The recorded measurement."""
    found: list[dict[str, Any]] = json.loads(DATA.read_text(encoding="utf-8"))["rows"]
    return found


def main() -> None:
    """Measure and write."""
    rows = []
    for case in HARD:
        pairs = 800 if case.greatest < 256 else 200
        record = {"rows": case.name, "largest error": round(largest(case, 0, pairs), 2), "limit": case.limit}
        rows.append(record | {"pairs": pairs})
        print(rows[-1], flush=True)
    DATA.write_text(json.dumps({"rows": rows, "unit": "ulp of the result"}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
