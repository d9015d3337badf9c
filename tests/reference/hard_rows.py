"""Rows built to make the plain sums inside the quick loops round the same way again and again.

One or two cells of p are nearly all of its row, the others are tiny and alike, and q is flat or has other large cells:
beside a large cell every addition of a small one rounds alike. Logits of a few values have exponentials that all round
alike, and so do cells that are alike but for one, and every sum of equally many of them. What is found is what the
documentation states as limits.

    python -m tests.reference.hard_rows

writes docs/_data/hard_rows.json; `tests/divergence/test_hard_rows.py` holds it, and fresh rows, against the limits.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import klnumba as kl
from tests.reference import mp
from tests.reference.row_families import families

DATA = Path(__file__).parents[2] / "docs" / "_data" / "hard_rows.json"


@dataclass(frozen=True)
class Hard:
    """A kind of rows, of `least` to `greatest` cells, and the error in ulp that it stays below."""

    dtype: str
    kind: str
    least: int
    greatest: int
    limit: float
    function: str = "kl_divergence"

    def holds(self, cells: int) -> bool:
        """Whether rows of so many cells are of this kind."""
        return self.least <= cells <= self.greatest

    @property
    def name(self) -> str:
        """For a table and for the names of tests."""
        of = {"js_divergence": ", Jensen-Shannon", "cross_entropy": ", cross-entropy"}.get(self.function, "")
        return f"{self.dtype} {self.kind}, {self.least:,} to {self.greatest:,} cells{of}"


HARD = (
    Hard("float64", "prob", 2, 26, 6.0),
    Hard("float64", "prob", 27, 148, 8.0),
    Hard("float64", "prob", 149, 255, 8.0),
    Hard("float64", "prob", 256, 3_000, 6.0),
    Hard("float32", "prob", 2, 255, 1.0),
    Hard("float32", "prob", 256, 3_000, 3.5),
    Hard("float64", "logit", 2, 255, 8.0),
    Hard("float64", "logit", 256, 3_000, 7.5),
    Hard("float32", "logit", 2, 6_000, 4.0),
    Hard("float32", "logit", 8_192, 20_000, 4.0),
    Hard("float64", "prob", 2, 255, 6.0, "js_divergence"),
    Hard("float64", "prob", 256, 3_000, 5.0, "js_divergence"),
    Hard("float32", "prob", 256, 3_000, 3.0, "js_divergence"),
    Hard("float64", "prob", 2, 255, 6.0, "cross_entropy"),
    Hard("float64", "prob", 256, 3_000, 6.0, "cross_entropy"),
    Hard("float32", "prob", 256, 3_000, 3.0, "cross_entropy"),
)


def draw(case: Hard, rng: np.random.Generator) -> tuple[Any, Any]:
    """One pair of rows."""
    n = int(rng.integers(case.least, case.greatest + 1))
    digits = 54 if case.dtype == "float64" else 25
    if case.kind == "logit" and rng.random() < 0.5:
        x, y = levels(rng, n)
        return x.astype(case.dtype), y.astype(case.dtype)
    if case.kind == "prob" and rng.random() < 0.4:
        p, q = families(case.dtype)["constant"](rng, n)
        return p.astype(case.dtype), q.astype(case.dtype)
    p, q = peaks(rng, n, digits), peaks(rng, n, digits)
    q = q if rng.random() < 0.4 else (np.full(n, 1.0 / n) if rng.random() < 0.7 else rng.random(n))
    if case.kind == "logit":
        shift = rng.choice([0.0, 0.0, 5.0, 60.0, -35.0])
        p, q = np.log(p) + shift, np.log(q) + shift
    if case.function != "kl_divergence" and rng.random() < 0.7:  # of other masses it takes the scaled loop
        p, q = p / p.sum(), q / q.sum()
    return p.astype(case.dtype), q.astype(case.dtype)


def peaks(rng: np.random.Generator, n: int, digits: int) -> Any:
    """One or two large cells among tiny ones, most of the time alike."""
    tiny = 2.0 ** -int(rng.integers(digits - 32 if digits > 32 else 4, digits)) * rng.uniform(0.3, 1)
    row = np.full(n, tiny) * (1.0 if rng.random() < 0.7 else rng.random(n))
    places = [0, n // 2, n - 1, *rng.integers(n, size=2)]
    row[rng.choice(places, size=int(rng.integers(1, 3)))] = 1.0 if rng.random() < 0.7 else rng.uniform(0.05, 1.0)
    return row


def levels(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Logits of two values, close to each other in p and q but for a shift: their exponentials all round alike."""
    x, y = np.full(n, rng.uniform(-20.0, 20.0)), np.full(n, rng.uniform(-20.0, 20.0))
    y[: int(rng.integers(n + 1))] += rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-3.0, 0.0)
    return x, y


def known(case: Hard) -> list[tuple[Any, Any]]:
    """The worst rows that longer searches have found."""
    p, q = np.full(31, 1.9489998681906283e-08), np.full(31, 7.877058566364538e-08)
    p[[4, 15]], q[18] = 0.14310202963479104, 1.0
    u, v = np.full(200, 0.3), np.full(200, 1.0)
    u[0], v[0] = 200.0, 1e-25
    x, y = np.full(554, 10.5, np.float32), np.full(554, 19.2, np.float32)
    y[:498] -= np.float32(0.05)
    if case.function != "kl_divergence":
        return []
    rows = [("float64", "prob", p, q), ("float64", "prob", u, v), ("float32", "logit", x, y)]
    return [(a, b) for dtype, kind, a, b in rows if (dtype, kind) == (case.dtype, case.kind) and case.holds(a.size)]


def error(case: Hard, p: Any, q: Any) -> float:
    """The error of one pair, in ulp."""
    truth, scale = mp.of_rows(case.function, p, q, case.kind, True)
    return mp.ulp_error(getattr(kl, case.function)(p, q, kind=case.kind), truth, case.dtype, scale)


def largest(case: Hard, seed: int, pairs: int) -> float:
    """The largest error over some pairs."""
    rng = np.random.default_rng([seed, case.least, len(case.kind)])
    drawn = (draw(case, rng) for _ in range(pairs))
    return max(error(case, *rows) for rows in itertools.chain(known(case), drawn))


def load() -> list[dict[str, Any]]:
    """The recorded measurement."""
    found: list[dict[str, Any]] = json.loads(DATA.read_text(encoding="utf-8"))["rows"]
    return found


def main() -> None:
    """Measure and write."""
    rows = []
    for case in HARD:
        pairs = 600 if case.greatest < 256 else 150
        record = {"rows": case.name, "largest error": round(largest(case, 0, pairs), 2), "limit": case.limit}
        rows.append(record | {"pairs": pairs})
        print(rows[-1], flush=True)
    DATA.write_text(json.dumps({"rows": rows, "unit": "ulp of the result"}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
