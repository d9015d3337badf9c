"""Measure the largest relative error of every pair of `vector_distributions` over its cases.

Run ``python -m tests.reference.vector_errors`` to write ``docs/_data/vector_errors.json`` anew, with a part of a pair's
name to measure such pairs alone. Those of matrices differ by processor, as LAPACK does.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from klnumba import distributions, kl_divergence
from tests.reference.distribution_errors import error
from tests.reference.vector_distributions import NAMES, PAIRS, Case, Pair, Values, truth

TABLE = Path(__file__).parents[2] / "docs" / "_data" / "vector_errors.json"


def build(name: str, values: Values) -> Any:
    """One distribution."""
    family = name.partition(".")[0]
    given = dict(zip(NAMES[name], values, strict=True))
    if name == "Independent.Delta":
        return distributions.Independent(distributions.Delta(**given), 1)
    axes = int(name.endswith(".vectors"))
    if "rate" in given and family == "TransformedDistribution":
        counts = distributions.Independent(distributions.Poisson(given["rate"]), axes)
        return distributions.TransformedDistribution(counts, [distributions.AffineTransform(0.0, given["scale"])])
    if family == "Mixture":
        chosen = distributions.Categorical(given["weights"])
        return distributions.Mixture(chosen, distributions.Independent(distributions.Poisson(given["rates"]), axes))
    if family == "Independent":
        return distributions.Independent(distributions.Normal(**given), 1)
    if family == "Joint":
        parts = distributions.Normal(*values[:2]), distributions.Gamma(*values[2:])
        return distributions.Joint(parts)
    if family == "TransformedDistribution":
        return distributions.TransformedDistribution(distributions.Normal(**given), [distributions.ExpTransform()])
    return getattr(distributions, family)(**given)


def evaluate(pair: Pair, case: Case) -> float:
    """KL at a case."""
    return float(kl_divergence(build(pair.p, case[0]), build(pair.q, case[1])))


def worst(pair: Pair) -> tuple[float, Case | None, int]:
    """The largest relative error, where it is, and how many cases had a normal number as their result."""
    largest, place, counted = 0.0, None, 0
    for case in pair.cases():
        found = error(evaluate(pair, case), truth(pair, case))
        if not math.isnan(found):
            counted += 1
            if found >= largest:
                largest, place = found, case
    return largest, place, counted


def entry(pair: Pair) -> dict[str, Any]:
    """What names a pair in the table."""
    return {"p": pair.p, "q": pair.q, "note": pair.note}


def measure(only: str = "") -> dict[str, Any]:
    """The table: an entry a pair; of those that are not chosen, the old one."""
    old = json.loads(TABLE.read_text())["errors"]
    rows = []
    for pair in PAIRS:
        if only in f"{pair.p}-{pair.q}":
            largest, at, points = worst(pair)
            rows.append({**entry(pair), "largest_error": float(f"{largest:.2g}"), "points": points})
            print(rows[-1], flush=True)
            if only or largest > pair.bound:
                print(at)
        else:
            rows += [row for row in old if row.items() >= entry(pair).items()]
    return {"errors": rows}


if __name__ == "__main__":
    TABLE.write_text(json.dumps(measure(*sys.argv[1:]), indent=1) + "\n")
