"""Measure the largest relative error of every pair of distributions over the cases of `distributions`.

Run ``python -m tests.reference.distribution_errors`` to write ``docs/_data/distribution_errors.json`` anew, with names
such as ``Gamma-Laplace`` to measure these pairs alone.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp, mpf

from klnumba import distributions, kl_divergence
from tests.reference.distributions import CLOSED, DIGITS, cases, truth

TABLE = Path(__file__).parents[2] / "docs" / "_data" / "distribution_errors.json"
BOUND = 1e-13  # what a closed form promises
SMALLEST, LARGEST = mpf(2) ** -1022, mpf(2) ** 1024


def names(name: str) -> tuple[str, ...]:
    """The names of the parameters of a family, or of a form of one such as ``Binomial.logits``."""
    family, _, form = name.partition(".")
    found: tuple[str, ...] = getattr(distributions, family).parameters
    return (*found[:-1], form) if form else found


def build(name: str, numbers: Any) -> Any:
    """A batch of distributions, one a column of `numbers`."""
    return getattr(distributions, name.partition(".")[0])(**dict(zip(names(name), numbers, strict=True)))


def width(name: str) -> int:
    """How many parameters the family has."""
    return len(names(name))


def evaluate(p: str, q: str, numbers: list[tuple[float, ...]]) -> np.ndarray:
    """KL at every case, in one call."""
    columns = np.array(numbers).T
    return np.asarray(kl_divergence(build(p, columns[: width(p)]), build(q, columns[width(p) :])))


def error(value: float, exact: Any) -> float:
    """Relative error; NaN where the exact value is no normal number and the value is right in that."""
    with mp.workdps(DIGITS):
        if abs(exact) < mpf(10) ** -100 and value == 0.0 and abs(exact) < SMALLEST:
            return math.nan
        if exact >= LARGEST or exact == 0:
            return math.nan if value == float(exact) or (math.isinf(value) and exact >= LARGEST) else math.inf
        if not math.isfinite(value):
            return math.inf
        if exact < SMALLEST:
            return math.nan if 0.0 <= value <= float(2 * SMALLEST) else math.inf
        return float(abs(mpf(value) - exact) / exact)


def worst(p: str, q: str, numbers: list[tuple[float, ...]]) -> tuple[float, tuple[float, ...], int]:
    """The largest relative error, where it is, and how many cases had a normal number as their result."""
    values = evaluate(p, q, numbers)
    errors = np.array([error(float(v), truth(p, q, *case)) for v, case in zip(values, numbers, strict=True)])
    counted = int(np.sum(~np.isnan(errors)))
    place = int(np.nanargmax(errors)) if counted else 0
    return float(errors[place]) if counted else 0.0, numbers[place], counted


def measure(chosen: Collection[str]) -> dict[str, Any]:
    """The table: an entry a pair; of those that are not chosen, the old one."""
    old = {(row["p"], row["q"]): row for row in json.loads(TABLE.read_text())["errors"]}
    rows = []
    for p, q in CLOSED:
        if chosen and f"{p}-{q}" not in chosen:
            rows += [old[p, q]] if (p, q) in old else []
            continue
        largest, at, points = worst(p, q, list(cases(p, q)))
        rows.append({"p": p, "q": q, "largest_error": float(f"{largest:.2g}"), "points": points, "at": list(at)})
        print(rows[-1], flush=True)
    return {"errors": rows}


if __name__ == "__main__":
    TABLE.write_text(json.dumps(measure(sys.argv[1:]), indent=1) + "\n")
