"""Pairs of rows on which the functions are measured: ordinary ones, and ones built to hurt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = tuple[NDArray[np.float64], NDArray[np.float64]]
Family = Callable[[np.random.Generator, int], Rows]

KINDS = ("prob", "log_prob", "logit")


def _cells(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Positive cells of a few magnitudes."""
    return rng.gamma(rng.choice([0.2, 1.0, 10.0]), size=n) + 1e-12


def _noise(rng: np.random.Generator, n: int, least: float) -> NDArray[np.float64]:
    return 10.0 ** rng.uniform(least, -0.5) * rng.uniform(-1, 1, n)


def _ordinary(rng: np.random.Generator, n: int) -> Rows:
    return _cells(rng, n), _cells(rng, n)


def _sum_to_one(rng: np.random.Generator, n: int) -> Rows:
    p, q = _ordinary(rng, n)
    return p / p.sum(), q / q.sum()


def _near(rng: np.random.Generator, n: int) -> Rows:
    p = _cells(rng, n)
    p /= p.sum()
    return p, p * (1 + _noise(rng, n, -15))


def _near_single(rng: np.random.Generator, n: int) -> Rows:
    p = _cells(rng, n)
    p /= p.sum()
    return p, p * (1 + _noise(rng, n, -6))


def _near_after_scaling(rng: np.random.Generator, n: int) -> Rows:
    p, q = _near(rng, n)
    return p, q * 10.0 ** rng.uniform(-5, 5)


def _one_cell_differs(rng: np.random.Generator, n: int) -> Rows:
    p = _cells(rng, n)
    q = p.copy()
    q[rng.integers(n)] *= 1 + float(_noise(rng, 1, -14)[0])
    return p, q


def _constant(rng: np.random.Generator, n: int) -> Rows:
    p, q = np.full(n, rng.uniform(0.1, 1)), np.full(n, rng.uniform(0.1, 9))
    q[rng.integers(n)] *= rng.uniform(0.5, 2)
    return p, q


def _counts(rng: np.random.Generator, n: int) -> Rows:
    rate = _cells(rng, n) * 10
    p = rng.poisson(rate) + 0.0
    p[rng.integers(n)] += 1
    return p, rng.poisson(rate * rng.uniform(0.5, 50)) + 0.5


def _sparse(rng: np.random.Generator, n: int) -> Rows:
    p, q = _ordinary(rng, n)
    keep = rng.random(n) < 0.1
    keep[rng.integers(n)] = True
    return p * keep, q * (keep | (rng.random(n) < 0.5))


def _peaked(rng: np.random.Generator, n: int) -> Rows:
    p, q = (_cells(rng, n) * 10.0 ** rng.uniform(-14, -1) for _ in range(2))
    top = rng.integers(n)
    p[top] = q[top] = 1.0
    return p, q


def _one_against_many(rng: np.random.Generator, n: int) -> Rows:
    """One row is nearly all in one cell; of the other, whose cells are of a size, that cell is one of many."""
    many, one = _cells(rng, n), np.exp(-rng.uniform(20, 60, n))
    one[rng.integers(n)] = 1.0
    return (many, one) if rng.random() < 0.5 else (one, many)


def _tails(rng: np.random.Generator, n: int) -> Rows:
    return tuple(np.exp(-rng.uniform(0, 60, n)) for _ in range(2))  # type: ignore[return-value]


def _tiny_and_huge(rng: np.random.Generator, n: int) -> Rows:
    p, q = _ordinary(rng, n)
    return p * 1e-25, q * 1e25


def _extreme(rng: np.random.Generator, n: int) -> Rows:
    p, q = _ordinary(rng, n)
    return p * 10.0 ** rng.uniform(-305, 300), q * 10.0 ** rng.uniform(-290, 300)


def _far(rng: np.random.Generator, n: int) -> Rows:
    p, q = _ordinary(rng, n)
    return p, q * np.exp(-rng.uniform(0, 700, n))


COMMON: dict[str, Family] = {
    "ordinary": _ordinary,
    "sum to one": _sum_to_one,
    "near, as float32 sees it": _near_single,
    "near": _near,
    "near after scaling": _near_after_scaling,
    "one cell differs": _one_cell_differs,
    "constant": _constant,
    "counts": _counts,
    "sparse": _sparse,
    "peaked": _peaked,
    "one against many": _one_against_many,
    "tails": _tails,
    "tiny and huge": _tiny_and_huge,
}
DOUBLE_ONLY: dict[str, Family] = {"extreme": _extreme, "far": _far}
LOG_SHIFTS = (0.0, 0.0, 3.0, -40.0, 700.0)  # added to a row of logits


def families(dtype: str) -> dict[str, Family]:
    """The families whose cells a dtype can hold."""
    return COMMON | DOUBLE_ONLY if dtype == "float64" else COMMON


def draw(family: Family, rng: np.random.Generator, n: int, kind: str, dtype: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """One pair of rows of a family, as cells of a kind, rounded to a dtype."""
    p, q = family(rng, n)
    if kind != "prob":
        with np.errstate(divide="ignore"):
            p, q = np.log(p), np.log(q)
        if kind == "logit":
            p, q = p + rng.choice(LOG_SHIFTS), q + rng.choice(LOG_SHIFTS)
        else:
            p, q = p - p.max(), q - q.max()
    return p.astype(dtype), q.astype(dtype)


def without_a_common_cell(rng: np.random.Generator, n: int, d: int, kind: str) -> Rows:
    """n pairs of rows, in each of which a cell has mass on one side alone."""
    p, q = rng.gamma(1.0, size=(2, n, d)) + 1e-3
    mine = rng.random((n, d)) < 0.5
    mine[:, 0], mine[:, 1] = True, False
    p[mine] = q[~mine] = 0.0
    return as_cells(p, q, kind)


def no_distributions(d: int, kind: str) -> Rows:
    """Six rows, of which the second to the fifth are no distributions, beside six that are."""
    rows = np.full((6, d), 0.5)
    rows[:, 1] = 2.0
    other = rows.copy()
    rows[1, 0], rows[2, 1], rows[3], rows[4, 0] = -0.5, np.inf, 0.0, np.nan
    return as_cells(rows, other, kind)


def as_cells(p: NDArray[np.float64], q: NDArray[np.float64], kind: str) -> Rows:
    """Probabilities as they are, or their logarithms."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return (p, q) if kind == "prob" else (np.log(p), np.log(q))
