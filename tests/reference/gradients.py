"""The truth for derivatives: central differences of the textbook closed forms, with mpmath.

The step is 1e-70 times the parameter (for a parameter 0, times the least other that is not, or 1), in 230 digits, and
more where parameters are very large or small: the difference is off by about 1e-140 of the third derivative. By
log-odds a derivative may be that small; their step is 1e-100 in 330 digits. Where one side is infinite, the difference
is taken on the other side, to second order, with the same step.

Run ``python -m tests.reference.gradients`` to write ``docs/_data/gradient_errors.json`` anew, with names such as
``Gamma-Laplace`` to measure these pairs alone.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

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
DIGITS_OF_STEP, DIGITS_OF_STEP_OF_ODDS = 70, 100
MOST_OF_ODDS = 450.0  # beyond, a probability is below the range
# Of a pair so many cases are taken at most, every so manieth; of those whose truth takes a second a case, fewer.
MOST, MOST_OF_SLOW = 80, 16
SLOW = {
    ("Kumaraswamy", "Kumaraswamy"),
    ("Kumaraswamy", "Beta"),
    ("Beta", "Beta"),
    ("Beta", "Gumbel"),
    ("Beta", "Moyal"),
    ("Pareto", "Gumbel"),
    ("Pareto", "Moyal"),
    ("Beta", "ContinuousBernoulli"),
    ("Beta", "ContinuousBernoulli.logits"),
    ("Binomial.logits", "Poisson"),
}
# Families whose density has a pole at 0 where this parameter is below 1.
POLES = {"Gamma": 0, "Beta": 0, "Chi": 0, "Kumaraswamy": 0, "Weibull": 1}
WANTED = 1e-12
ODDS = ("Bernoulli", "Geometric", "Binomial", "NegativeBinomial", "ContinuousBernoulli")
LARGEST, SMALLEST = mpf(10) ** 300, mpf(10) ** -290  # beyond, a derivative or its terms leave the range


def _bare(family: str) -> str:
    """The name without the form of its probability."""
    return family.partition(".")[0]


def _sigmoid(a: Any) -> Any:
    return 1 / (1 + mp.exp(-a))


def _per_success(p: Any, q: Any) -> Any:
    """KL of two geometric distributions."""
    return mp.log(p / q) + (1 - p) / p * mp.log((1 - p) / (1 - q))


CLOSED = dict(reference.CLOSED)
CLOSED["NormalGamma", "NormalGamma"] = lambda m, s, a, b, n, t, c, d: (
    reference.gamma(a, b, c, d) + (t / s - 1 - mp.log(t / s) + t * a / b * (m - n) ** 2) / 2
)
CLOSED["Geometric", "NegativeBinomial"] = lambda p, r, q: _per_success(p, 1 - q)
CLOSED["Geometric.logits", "NegativeBinomial.logits"] = lambda a, r, b: _per_success(_sigmoid(a), _sigmoid(-b))
CLOSED["NegativeBinomial", "Geometric"] = lambda r, p, q: _per_success(1 - p, q)
CLOSED["NegativeBinomial.logits", "Geometric.logits"] = lambda r, a, b: _per_success(_sigmoid(-a), _sigmoid(b))
ONE_FAILURE = {pair for pair in CLOSED if {_bare(x) for x in pair} == {"Geometric", "NegativeBinomial"}}
PARAMETERS = dict(reference.PARAMETERS)
PARAMETERS["NormalGamma"] = [(0.0, 1.0, 1.0, 1.0), (1.5, 0.3, 2.5, 0.7), (-3.0, 1e-3, 0.3, 40.0), (1e5, 1e6, 1e4, 1e2)]

REGISTERED = {(x.p.__name__, x.q.__name__) for x in registered_pairs() if has_derivatives(x)}
# Finite at a single point of p.
NONE = {("Delta", "Delta"), *product(("Geometric", "NegativeBinomial"), ("Bernoulli", "Binomial"))}
COMPILED = [pair for pair in CLOSED if tuple(map(_bare, pair)) in REGISTERED - NONE]
COMPILED.append(("Chi2", "Chi2"))  # a subclass, by its own parameter


def derivative(p: str, q: str, numbers: tuple[float, ...], i: int) -> Any:
    """By the i-th of the parameters of p and then of q; NaN where there is none, None where it is not known."""
    if integrals.serves(p, q, i):
        return integrals.derivative(p, q, numbers, i)
    formula = CLOSED[p, q]
    with mp.workdps(_digits(p, q, numbers)):
        at = [mpf(float(x)) for x in numbers]
        unit = abs(at[i]) or min((abs(x) for x in at if x != 0), default=mpf(1))
        step = (unit if at[i] else min(unit, mpf(1))) * mpf(10) ** -_of_step(p, q)

        def moved(times: int) -> Any:
            return formula(*(x + times * step if j == i else x for j, x in enumerate(at)))

        def slope(times: int) -> Any:
            up, down = moved(times), moved(-times)
            if mp.isinf(moved(0)) or (mp.isinf(up) and mp.isinf(down)):
                return mp.nan
            if mp.isinf(up) or mp.isinf(down):
                side = -times if mp.isinf(up) else times
                return (-3 * moved(0) + 4 * moved(side) - moved(2 * side)) / (2 * side * step)
            return (up - down) / (2 * times * step)

        return integrals.unless_of_the_step(slope(1), lambda: slope(2), unit)


def _of_step(p: str, q: str) -> int:
    return DIGITS_OF_STEP_OF_ODDS if "logits" in p + q else DIGITS_OF_STEP


def _digits(p: str, q: str, numbers: tuple[float, ...]) -> int:
    """As many as the differences of the parameters from 0, and those of probabilities from 1, ask for."""
    sizes = [0.0]
    for family, x in zip(_families(p, q), numbers, strict=True):
        if family.endswith("logits"):
            sizes.append(min(0.44 * abs(x), MOST_OF_ODDS))
        if x != 0:
            sizes.append(abs(math.log10(abs(x))))
    squares = 6 if "ContinuousBernoulli" in p + q else 3  # of log-odds of the size of the step
    return squares * _of_step(p, q) + 30 + round(2 * max(sizes))


def _cases(p: str, q: str) -> Iterator[tuple[float, ...]]:
    if (p, q) == ("Binomial", "Bernoulli"):  # finite for one draw only
        yield from ((1.0, *first, *second) for first, second in product(PARAMETERS[q], repeat=2))
    if (p, q) in ONE_FAILURE:
        yield from _of_one_failure(p, q)
        return
    if (p, q) in reference.CLOSED:
        yield from reference.cases(p, q)
        return
    yield from (first + second for first, second in product(PARAMETERS[p], PARAMETERS[q]))
    yield from (first + second for first in PARAMETERS[p] for second in reference.near(p, first))


def _of_one_failure(p: str, q: str) -> Iterator[tuple[float, ...]]:
    """Of a geometric and a negative binomial distribution, whose probability is that of the opposite."""
    geometric = next(x for x in (p, q) if _bare(x) == "Geometric")
    chances = [x for (x,) in PARAMETERS[geometric]]
    close = [(x, y) for (x,) in PARAMETERS[geometric] for (y,) in reference.near(geometric, (x,))]
    for x, y in [*product(chances, repeat=2), *close]:
        if p == geometric:
            yield (x, 1.0, -y if "logits" in q else 1.0 - y)
        else:
            yield (1.0, -x if "logits" in p else 1.0 - x, y)


def points(p: str, q: str) -> list[tuple[float, ...]]:
    """The cases, but those where a derivative is infinite or the value is, or where p = q.

    The value is that of float64: what is beyond its range has no derivatives either.
    """
    every = [case for case in _cases(p, q) if not (_equal(p, q, case) or _on_boundary(p, q, case))]
    finite = [case for case, found in zip(every, np.isfinite(kl_of(p, q, every)), strict=True) if found]
    return finite[:: -(-len(finite) // (MOST_OF_SLOW if (p, q) in SLOW else MOST))]


def _equal(p: str, q: str, case: tuple[float, ...]) -> bool:
    return p == q and case[: width(p)] == case[width(p) :]


def is_extreme(p: str, q: str, case: tuple[float, ...]) -> bool:
    """Whether a parameter is beyond 1e9 or below 1e-9."""
    return any(x != 0 and not 1e-9 <= abs(x) <= 1e9 for x in case)


def _families(p: str, q: str) -> list[str]:
    """For each of the parameters of p and then of q, the family."""
    return [p] * width(p) + [q] * width(q)


def _on_boundary(p: str, q: str, numbers: tuple[float, ...]) -> bool:
    """Whether p has no mass at an end of its range, or an end where the density of either has a zero or a pole."""
    ends = {numbers[width(p) - 1] if p in ODDS else 0.5, numbers[-1] if q in ODDS else 0.5}
    if p != "Delta" and ends & {0.0, 1.0}:
        return True
    if q == "Poisson":
        return numbers[-1] == 0.0 or (p == "Poisson" and numbers[0] == 0.0)
    if p == "Uniform" and q in {"Gamma", "Beta", "LogNormal", "Chi", "Weibull"}:
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
    names = [(family, name) for x in (p, q) for family, name in product([_family(x)], names_of(x))]
    return [i for i, (family, name) in enumerate(names) if not is_count(family, name)]


def error(value: float, exact: Any) -> float:
    """Relative error, absolute where the exact value is zero; NaN where it is beyond the range, unknown, or none."""
    if exact is None:
        return math.nan
    if mp.isnan(exact):
        return math.nan if math.isnan(value) else math.inf
    if abs(exact) > LARGEST:
        return math.nan
    if not math.isfinite(value):
        return math.inf
    with mp.workdps(3 * DIGITS_OF_STEP):
        size = abs(exact)
        if exact == 0:
            return abs(value)
        return math.nan if max(size, abs(value)) < SMALLEST else float(abs(mpf(value) - exact) / size)


class Errors(NamedTuple):
    """What a comparison found: where the largest error is, and how many derivatives are further off than wanted.

    These are lost to terms that are so much larger than the derivative; `largest` leaves them out where parameters are
    extreme.
    """

    largest: float
    at: tuple[float, ...]
    place: int
    count: int
    lost: int
    lost_at: tuple[float, ...] | None


def compare(p: str, q: str, numbers: list[tuple[float, ...]]) -> Errors:
    """All derivatives at these cases with the truth."""
    found = np.array(
        [
            [error(float(v), derivative(p, q, case, i)) for i, v in zip(places(p, q), row, strict=True)]
            for row, case in zip(evaluate(p, q, numbers), numbers, strict=True)
        ]
    )
    lost = (found > WANTED) & np.array([[is_extreme(p, q, case)] for case in numbers])
    kept = np.where(lost, 0.0, found)
    at, i = np.unravel_index(int(np.nanargmax(kept)), kept.shape)
    where = np.flatnonzero(lost.any(1))
    return Errors(
        float(kept[at, i]),
        numbers[at],
        places(p, q)[int(i)],
        int(np.sum(~np.isnan(found))),
        int(lost.sum()),
        numbers[where[0]] if where.size else None,
    )


def measure(chosen: Collection[str]) -> dict[str, Any]:
    """The table: an entry a pair; of those that are not chosen, the old one."""
    old = {(row["p"], row["q"]): row for row in json.loads(TABLE.read_text())["errors"]}
    new = [(p, q) for p, q in COMPILED if not chosen or f"{p}-{q}" in chosen]
    with ProcessPoolExecutor() as pool:
        for found in pool.map(row, *zip(*new, strict=True)):
            print(found, flush=True)
            old[found["p"], found["q"]] = found
    return {"errors": [old[pair] for pair in COMPILED]}


def row(p: str, q: str) -> dict[str, Any]:
    """The entry of a pair."""
    found = compare(p, q, points(p, q))
    names = [f"p.{x}" for x in names_of(p)] + [f"q.{x}" for x in names_of(q)]
    entry = {"p": p, "q": q, "largest_error": float(f"{found.largest:.2g}"), "by": names[found.place]}
    entry |= {"at": list(found.at), "points": found.count, "lost": found.lost}
    return entry | ({"lost_at": list(found.lost_at)} if found.lost_at else {})


def _family(name: str) -> type[distributions.Distribution]:
    found: type[distributions.Distribution] = getattr(distributions, _bare(name))
    return found


def names_of(family: str) -> tuple[str, ...]:
    """The parameters of a family in one of its forms."""
    form = family.partition(".")[2]
    found = _family(family).parameters
    return (*found[:-1], form) if form else found


if __name__ == "__main__":
    TABLE.write_text(json.dumps(measure(sys.argv[1:]), indent=1) + "\n")
