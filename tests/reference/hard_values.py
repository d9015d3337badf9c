"""True values of KL where parameters are extreme, and where two families nearly coincide; and what we reach there.

Run ``python -m tests.reference.hard_values`` to write ``tests/reference/hard_values.json``, the cases with their true
values, and ``docs/_data/hard_errors.json``, the largest errors; with names such as ``Gamma-Laplace`` to find the true
values of these pairs alone. With the argument ``errors`` the true values stay.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp, mpf

from tests.reference.distribution_errors import BOUND, LARGEST, SMALLEST, evaluate, names
from tests.reference.distributions import AT, CLOSED, INTERVALS
from tests.reference.near_families import NEAR, STEPS

VALUES = Path(__file__).parent / "hard_values.json"
TABLE = Path(__file__).parents[2] / "docs" / "_data" / "hard_errors.json"
DIGITS = 1_300  # 1e300 times 1e300 less 1e-300 times 1e-300
DRAWN, KEPT = 60, 14  # cases of a pair that are drawn, and those kept, of a true value that is a normal number
# Their truth is an integral or a special function that takes no such parameters.
LEFT_OUT = {("Kumaraswamy", "Kumaraswamy"), ("Kumaraswamy", "Beta")}
POSITIVE_ONLY = {"Exponential", "Gamma", "HalfNormal", "HalfCauchy", "Chi", "Weibull", "LogNormal", "InverseGamma"}

POSITIVE = (1e-300, 1e-150, 1e-30, 1e-10, 1.0, 2.5, 1e10, 1e30, 1e150, 1e300)
REAL = (0.0, 1.0, -1.0, 1e-300, -1e-30, 1e-10, -3.7, 1e10, -1e30, 1e150, -1e150, 1e300, -1e300)
PROBS = (1e-300, 1e-150, 1e-30, 1e-10, 0.5, 0.9, 1.0 - 2.0**-53)
LOGITS = (0.0, 1e-300, -1e-30, 1e-10, -1.0, 30.0, -800.0, 1500.0)
BY_NAME = {"loc": REAL, "probs": PROBS, "logits": LOGITS, "total_count": (1.0, 2.0, 10.0), "v": (0.0, 1.0, 3.0, 1e10)}


def grid(name: str) -> list[tuple[float, ...]]:
    """Extreme parameters of a family."""
    family = name.partition(".")[0]
    if family in INTERVALS:
        return [
            ends
            for ends in itertools.product(POSITIVE if family == "LogUniform" else REAL, repeat=2)
            if ends[0] < ends[1]
        ]
    choices = [BY_NAME.get(x, POSITIVE) for x in names(name)]
    if family == "VonMises":
        choices[0] = (0.0, 1.0, -1e-30, 1e-10, 3.0)
    if family == "InverseGaussian":
        choices[0] = POSITIVE
    if family == "NegativeBinomial":
        choices[0] = (2.5,)
    return list(itertools.product(*choices))


def cases(p: str, q: str) -> Iterator[tuple[float, ...]]:
    """Extreme parameters, drawn in an order that is always the same, and all those of nearly the same densities."""
    rng = random.Random(f"{p}-{q}")
    first, second = grid(p), grid(q)
    if p == "Uniform" and q in POSITIVE_ONLY:
        first = [ends for ends in first if ends[0] >= 0.0]
    found = [(*rng.choice(first), *rng.choice(second)) for _ in range(DRAWN if (p, q) not in LEFT_OUT else 0)]
    if (p, q) == ("Logistic", "Logistic"):
        found = [(m, s, n, s) for m, s, n, _ in found]
    if (p, q) in AT:
        place, number = AT[p, q]
        found = [(*case[:place], number, *case[place + 1 :]) for case in found]
    yield from dict.fromkeys(found)


def near(p: str, q: str) -> list[tuple[float, ...]]:
    """Parameters at which two families nearly coincide."""
    found = [numbers for e, f in itertools.product(STEPS, STEPS) for numbers in NEAR.get((p, q), lambda e, f: [])(e, f)]
    return list(dict.fromkeys(tuple(float(x) for x in numbers) for numbers in found))


def true_value(p: str, q: str, case: tuple[float, ...]) -> Any:
    """To so many digits that nothing of the cancellation is left; None where the truth has no value."""
    try:
        with mp.workdps(DIGITS):
            value = CLOSED[p, q](*(mpf(x) for x in case))
            return value if isinstance(value, mpf) and SMALLEST <= value < LARGEST else None
    except (ArithmeticError, ValueError, RuntimeError):
        return None


def measure_truth(chosen: Collection[str]) -> list[dict[str, Any]]:
    """All cases with their true values; of pairs that are not chosen, the old ones."""
    old = json.loads(VALUES.read_text()) if chosen else []
    rows = []
    for p, q in CLOSED:
        if chosen and f"{p}-{q}" not in chosen:
            rows += [row for row in old if (row["p"], row["q"]) == (p, q)]
            continue
        known = ((case, true_value(p, q, case)) for case in cases(p, q))
        kept = list(itertools.islice(((case, value) for case, value in known if value is not None), KEPT))
        closely = near(p, q)
        beside = ((case, true_value(p, q, case)) for case in closely[:: max(1, len(closely) // KEPT)])
        kept += [(case, value) for case, value in beside if value is not None]
        for case, value in dict(kept).items():
            rows.append({"p": p, "q": q, "at": list(case), "value": mp.nstr(value, 25)})
        print(p, q, len(kept), flush=True)
    return rows


def errors(rows: list[dict[str, Any]]) -> dict[tuple[str, str], list[tuple[float, list[float]]]]:
    """By pair: the relative error of every case, infinite where ours is no finite number, and where it is."""
    found = {}
    for pair, group in itertools.groupby(rows, key=lambda row: (row["p"], row["q"])):
        mine = list(group)
        values = evaluate(*pair, [tuple(row["at"]) for row in mine])
        found[pair] = [(apart(float(v), mpf(row["value"])), row["at"]) for v, row in zip(values, mine, strict=True)]
    return found


def apart(value: float, exact: Any) -> float:
    """The relative error."""
    return float(abs(mpf(value) - exact) / exact) if math.isfinite(value) else math.inf


def table(found: dict[tuple[str, str], list[tuple[float, list[float]]]]) -> list[dict[str, Any]]:
    """A row a pair: how many cases, how many beyond the bound, the largest error of those that are finite."""
    rows = []
    for (p, q), measured in found.items():
        finite = [one for one in measured if math.isfinite(one[0])]
        largest, at = max(finite)
        beyond = sum(one > BOUND for one, _ in measured)
        row = {
            "p": p,
            "q": q,
            "points": len(measured),
            "beyond_1e-13": beyond,
            "not_finite": len(measured) - len(finite),
        }
        rows.append({**row, "largest_error": float(f"{largest:.2g}"), "at": at})
    return rows


if __name__ == "__main__":
    if "errors" not in sys.argv:
        VALUES.write_text("[\n" + ",\n".join(map(json.dumps, measure_truth(sys.argv[1:]))) + "\n]\n")
    with np.errstate(all="ignore"):
        TABLE.write_text(json.dumps({"errors": table(errors(json.loads(VALUES.read_text())))}, indent=1) + "\n")
