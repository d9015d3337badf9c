"""Measure the errors of `kl_from_samples` on pairs of distributions whose divergence is known.

Run ``python -m tests.reference.sample_errors`` to write ``docs/_data/sample_errors.json`` anew (some minutes).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from klnumba import kl_divergence
from klnumba.distributions import Distribution, Exponential, MultivariateNormal, Normal, Uniform
from klnumba.tables import kl_from_samples

TABLE = Path(__file__).parents[2] / "docs" / "_data" / "sample_errors.json"
METHODS = ("knn", "bias-reduced")
REPEATS = {100: 400, 1_000: 200, 10_000: 50}  # how often samples of each size are drawn
CONFIDENCE = 0.95

Draw = Callable[[np.random.Generator, int], np.ndarray]


@dataclass(frozen=True)
class Case:
    """Two distributions and how to draw from them."""

    p: str
    q: str
    pair: tuple[Distribution, Distribution]
    draw_p: Draw
    draw_q: Draw
    dimensions: int = 1
    largest: int = 10_000

    @property
    def true(self) -> float:
        """The divergence."""
        return float(kl_divergence(*self.pair))


def normal(rng: np.random.Generator, n: int, loc: float, scale: float) -> np.ndarray:
    """Normal numbers."""
    return rng.normal(loc, scale, n)


def exponential(rng: np.random.Generator, n: int, rate: float) -> np.ndarray:
    """Exponential numbers."""
    return rng.exponential(1.0 / rate, n)


def uniform(rng: np.random.Generator, n: int, high: float) -> np.ndarray:
    """Numbers from 0 to `high`."""
    return rng.uniform(0.0, high, n)


def correlated(rng: np.random.Generator, n: int, covariance: np.ndarray) -> np.ndarray:
    """Normal vectors around zero."""
    return rng.normal(size=(n, len(covariance))) @ np.linalg.cholesky(covariance).T


def covariance(dimensions: int, correlation: float) -> np.ndarray:
    """Ones on the diagonal, `correlation` elsewhere."""
    return np.full((dimensions, dimensions), correlation) + (1.0 - correlation) * np.eye(dimensions)


def _normal(*parameters: tuple[float, float]) -> Case:
    names = [f"Normal({loc:g}, {scale:g})" for loc, scale in parameters]
    draws = [partial(normal, loc=loc, scale=scale) for loc, scale in parameters]
    p, q = (Normal(*given) for given in parameters)
    return Case(*names, (p, q), *draws)


def _vectors(dimensions: int, correlations: tuple[float, float], largest: int) -> Case:
    matrices = [covariance(dimensions, correlation) for correlation in correlations]
    p, q = (MultivariateNormal(np.zeros(dimensions), matrix) for matrix in matrices)
    names = [f"normal vectors, correlation {correlation:g}" for correlation in correlations]
    draws = [partial(correlated, covariance=matrix) for matrix in matrices]
    return Case(*names, (p, q), *draws, dimensions, largest)


CASES = (
    _normal((0.0, 1.0), (0.0, 1.0)),
    _normal((0.0, 1.0), (1.0, 1.0)),
    _normal((0.0, 1.0), (0.0, 2.0)),
    _normal((0.0, 2.0), (0.0, 1.0)),
    Case(
        "Exponential(1)", "Exponential(0.5)", (Exponential(1.0), Exponential(0.5)),
        partial(exponential, rate=1.0), partial(exponential, rate=0.5),
    ),
    Case(
        "Uniform(0, 1)", "Uniform(0, 2)", (Uniform(0.0, 1.0), Uniform(0.0, 2.0)),
        partial(uniform, high=1.0), partial(uniform, high=2.0),
    ),
    _vectors(2, (0.5, 0.0), 10_000),
    _vectors(2, (0.0, 0.5), 10_000),
    _vectors(5, (0.5, 0.0), 1_000),
    _vectors(10, (0.5, 0.0), 1_000),
)  # fmt: skip


def neighbours(case: Case) -> tuple[int, ...]:
    """Which neighbours are tried: of long vectors the nearest one too, which is what the authors did."""
    return (1, 5) if case.dimensions > 2 else (5,)


def estimates(case: Case, n: int, method: str, k: int, repeats: int, seed: int) -> Iterator[Any]:
    """Estimates from `repeats` pairs of samples of n points each."""
    rng = np.random.default_rng(seed)
    for _ in range(repeats):
        x, y = case.draw_p(rng, n), case.draw_q(rng, n)
        yield kl_from_samples(x, y, k=k, method=method, confidence=CONFIDENCE, rng=rng)


def measure(case: Case, n: int, method: str, k: int, repeats: int, seed: int = 0) -> dict[str, Any]:
    """A row of the table."""
    found = list(estimates(case, n, method, k, repeats, seed))
    values = np.array([one.kl for one in found])
    covered = [one.interval[0] <= case.true <= one.interval[1] for one in found]
    return {
        "p": case.p, "q": case.q, "numbers a point": case.dimensions, "method": method, "k": k, "points in each": n,
        "true KL": round(case.true, 4), "mean error": round(float(values.mean() - case.true), 4),
        "standard deviation": round(float(values.std(ddof=1)), 4),
        "mean standard error": round(float(np.mean([one.standard_error for one in found])), 4),
        "covered by the interval": f"{np.mean(covered):.0%}", "repeats": repeats,
    }  # fmt: skip


def table() -> dict[str, Any]:
    """All rows."""
    rows = []
    for case, method in itertools.product(CASES, METHODS):
        for k, (n, repeats) in itertools.product(neighbours(case), REPEATS.items()):
            if n <= case.largest:
                rows.append(measure(case, n, method, k, repeats))
                print(rows[-1], flush=True)
    return {"errors": rows, "confidence of the interval": CONFIDENCE}


if __name__ == "__main__":
    TABLE.write_text(json.dumps(table(), indent=1) + "\n")
