"""The truth for derivatives: central differences of the textbook closed forms, with mpmath.

The step is 1e-100 times the parameter (for a parameter 0, times the least other that is not, or 1): the difference is
off by about 1e-200 of the third derivative. There are 330 digits and more where parameters are very large or small.
Where one side is infinite, the difference is taken on the other side, to second order, with the same step.

Run ``python -m tests.reference.gradients`` to write ``docs/_data/gradient_errors.json`` anew, with names such as
``Gamma-Laplace`` to measure these pairs alone.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Collection, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp, mpf

from klnumba import distributions
from klnumba.distributions import kl_divergence_grad, registered_pairs
from klnumba.distributions.gradient import has_derivatives, is_count
from tests.reference import distributions as reference
from tests.reference import gradient_integrals as integrals
from tests.reference.distribution_errors import build, width
from tests.reference.distribution_errors import evaluate as kl_of

TABLE = Path(__file__).parents[2] / "docs" / "_data" / "gradient_errors.json"
DIGITS = 330
STEP = mpf(10) ** -100
MOST_OF_ODDS = 450.0  # beyond, a probability is below the range
# Of these, one case in so many is taken.
SLOW = {("Beta", "Gumbel"): 12}
# Families whose density has a pole at 0 where this parameter is below 1.
POLES = {"Gamma": 0, "Beta": 0, "Chi": 0, "Kumaraswamy": 0, "Weibull": 1}
WANTED = 1e-12
# Parameters up to which it is compared: beyond 100 log-odds, 1 - p takes more digits than there are.
ODDS = ("Bernoulli", "Geometric", "Binomial", "NegativeBinomial", "ContinuousBernoulli")
LARGE = {f"{name}.logits": 600.0 if name == "ContinuousBernoulli" else 100.0 for name in ODDS}
LARGEST = 1e300  # beyond it a derivative may overflow on the way
NOTHING = 1e-60  # what is left of the step where the derivative is 0

CLOSED = dict(reference.CLOSED)
CLOSED["NormalGamma", "NormalGamma"] = lambda m, s, a, b, n, t, c, d: (
    reference.gamma(a, b, c, d) + (t / s - 1 - mp.log(t / s) + t * a / b * (m - n) ** 2) / 2
)
PARAMETERS = dict(reference.PARAMETERS)
PARAMETERS["NormalGamma"] = [(0.0, 1.0, 1.0, 1.0), (1.5, 0.3, 2.5, 0.7), (-3.0, 1e-3, 0.3, 40.0), (1e5, 1e6, 1e4, 1e2)]

REGISTERED = {(x.p.__name__, x.q.__name__) for x in registered_pairs() if has_derivatives(x)}
NONE = {("Delta", "Delta")}  # finite at a single point
COMPILED = [pair for pair in CLOSED if tuple(name.partition(".")[0] for name in pair) in REGISTERED - NONE]
COMPILED.append(("Chi2", "Chi2"))  # a subclass, by its own parameter


def derivative(p: str, q: str, numbers: tuple[float, ...], i: int) -> Any:
    """By the i-th of the parameters of p and then of q; NaN where there is none, None where it is not known."""
    if integrals.serves(p, q, i):
        return integrals.derivative(p, q, numbers, i)
    formula = CLOSED[p, q]
    with mp.workdps(_digits(p, q, numbers)):
        at = [mpf(float(x)) for x in numbers]
        unit = abs(at[i]) or min((abs(x) for x in at if x != 0), default=mpf(1))
        step = (unit if at[i] else min(unit, mpf(1))) * STEP

        def moved(times: int) -> Any:
            return formula(*(x + times * step if j == i else x for j, x in enumerate(at)))

        up, down = moved(1), moved(-1)
        if mp.isinf(moved(0)) or (mp.isinf(up) and mp.isinf(down)):
            return mp.nan
        if not mp.isinf(up) and not mp.isinf(down):
            return (up - down) / (2 * step)
        side = -1 if mp.isinf(up) else 1
        return side * (-3 * moved(0) + 4 * moved(side) - moved(2 * side)) / (2 * step)


def _digits(p: str, q: str, numbers: tuple[float, ...]) -> int:
    """As many as the differences of the parameters from 0, and those of probabilities from 1, ask for."""
    sizes = [0.0]
    for family, x in zip(_families(p, q), numbers, strict=True):
        if family.endswith("logits"):
            sizes.append(min(0.44 * abs(x), MOST_OF_ODDS))
        elif x != 0:
            sizes.append(abs(math.log10(abs(x))))
    return DIGITS + round(2 * max(sizes))


def _cases(p: str, q: str) -> Iterator[tuple[float, ...]]:
    if (p, q) in reference.CLOSED:
        yield from reference.cases(p, q)
        return
    yield from (first + second for first, second in product(PARAMETERS[p], PARAMETERS[q]))
    yield from (first + second for first in PARAMETERS[p] for second in reference.near(p, first))


def points(p: str, q: str) -> list[tuple[float, ...]]:
    """The cases of ordinary size with q down to 1e-10 from p, those aside where a derivative or the value is infinite.

    The value is that of float64: what is beyond its range has no derivatives either.
    """
    every = list(_ordinary(p, q))[:: SLOW.get((p, q), 1)]
    return [case for case, finite in zip(every, np.isfinite(kl_of(p, q, every)), strict=True) if finite]


def _ordinary(p: str, q: str) -> Iterator[tuple[float, ...]]:
    for case in _cases(p, q):
        half = len(case) // 2
        pairs = zip(case[:half], case[half:], strict=False)
        apart = max((abs(x - y) / (abs(x) + abs(y)) for x, y in pairs if x != y), default=1)
        ordinary = all(_is_ordinary(name, x) for name, x in zip(_families(p, q), case, strict=True))
        if ordinary and not (p == q and apart < 4e-11) and not _on_boundary(p, q, case):
            yield case


def _is_ordinary(family: str, x: float) -> bool:
    """Whether a parameter is of ordinary size, or at the end of its range; also its distance from 1."""
    near_1 = family in ODDS and 0.0 < 1.0 - x < 1e-9
    return x == 0 or (1e-9 < abs(x) < LARGE.get(family, 1e9) and not near_1)


def _families(p: str, q: str) -> list[str]:
    """For each of the parameters of p and then of q, the family."""
    return [p] * width(p) + [q] * width(q)


def _on_boundary(p: str, q: str, numbers: tuple[float, ...]) -> bool:
    """Whether p has no mass at an end of its range, or an end where the density of either has a zero or a pole."""
    if p in {"Binomial", "NegativeBinomial", "Geometric"}:
        return bool({0.0, 1.0} & {numbers[-1], numbers[width(p) - 1]})
    if p == "Poisson" and q in {"Bernoulli", "Binomial"}:
        return numbers[-1] in {0.0, 1.0}
    if p in {"Bernoulli", "Poisson"}:
        return numbers[0] == 0.0 or (p == "Bernoulli" and numbers[0] == 1.0) or 0.0 in numbers[1:]
    if p == "Uniform" and q in {"Gamma", "Beta"}:
        return numbers[0] == 0.0 or (q == "Beta" and numbers[1] == 1.0)
    if q == "Laplace" and p in POLES:  # a central difference is none there, see test_at_a_pole
        place = numbers[width(p)]
        above = p in {"Beta", "Kumaraswamy"} and numbers[1] < 1.0 and place == 1.0
        return (numbers[POLES[p]] < 1.0 and place == 0.0) or above
    return False


def evaluate(p: str, q: str, numbers: list[tuple[float, ...]]) -> np.ndarray:
    """The derivatives at every case, a row each."""
    columns = np.array(numbers).T
    _, gradient = kl_divergence_grad(build(p, columns[: width(p)]), build(q, columns[width(p) :]))
    return np.array([*gradient.p.values(), *gradient.q.values()]).T


def places(p: str, q: str) -> list[int]:
    """Which of the parameters of p and then of q have derivatives."""
    names = [(family, name) for x in (p, q) for family, name in product([_family(x)], _names(x))]
    return [i for i, (family, name) in enumerate(names) if not is_count(family, name)]


def error(value: float, exact: Any) -> float:
    """Relative error, absolute where the exact value is zero; NaN where it is beyond the range, or none."""
    if exact is None:
        return math.nan
    if mp.isnan(exact):
        return math.nan if math.isnan(value) else math.inf
    if abs(exact) > LARGEST:
        return math.nan
    if not math.isfinite(value):
        return math.inf
    with mp.workdps(DIGITS):
        if abs(exact) < NOTHING:
            return abs(value)
        return float(abs(mpf(value) - exact) / abs(exact))


def worst(p: str, q: str, numbers: list[tuple[float, ...]]) -> tuple[float, tuple[float, ...], int, int]:
    """The largest error, the case and the place of the parameter where it is, and how many derivatives there were."""
    values = evaluate(p, q, numbers)
    errors = np.array(
        [
            [error(float(v), derivative(p, q, case, i)) for i, v in zip(places(p, q), row, strict=True)]
            for row, case in zip(values, numbers, strict=True)
        ]
    )
    at, i = np.unravel_index(int(np.nanargmax(errors)), errors.shape)
    return float(errors[at, i]), numbers[at], places(p, q)[int(i)], int(np.sum(~np.isnan(errors)))


def measure(chosen: Collection[str]) -> dict[str, Any]:
    """The table: an entry a pair; of those that are not chosen, the old one."""
    old = {(row["p"], row["q"]): row for row in json.loads(TABLE.read_text())["errors"]}
    rows = []
    for p, q in COMPILED:
        if chosen and f"{p}-{q}" not in chosen:
            rows.append(old[p, q])
            continue
        largest, at, i, count = worst(p, q, points(p, q))
        names = [f"p.{x}" for x in _names(p)] + [f"q.{x}" for x in _names(q)]
        rows.append(
            {"p": p, "q": q, "largest_error": float(f"{largest:.2g}"), "by": names[i], "at": list(at), "points": count}
        )
        print(rows[-1], flush=True)
    return {"errors": rows}


def _family(name: str) -> type[distributions.Distribution]:
    found: type[distributions.Distribution] = getattr(distributions, name.partition(".")[0])
    return found


def _names(family: str) -> tuple[str, ...]:
    form = family.partition(".")[2]
    found = _family(family).parameters
    return (*found[:-1], form) if form else found


if __name__ == "__main__":
    TABLE.write_text(json.dumps(measure(sys.argv[1:]), indent=1) + "\n")
