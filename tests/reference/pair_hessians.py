"""The truth for second derivatives of closed forms: differences of the textbook forms on four sides, with mpmath.

Run ``python -m tests.reference.pair_hessians`` to see the largest error of every pair.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from mpmath import mp, mpf

from klnumba.distributions.hessian import hessian
from klnumba.distributions.registry import divergence
from tests.reference.distribution_errors import build, width
from tests.reference.gradients import CLOSED, COMPILED, SLOW, names_of, places, points

DIGITS, STEP = 160, mpf(10) ** -40
ORDINARY = 1e-3, 1e2  # the sizes of parameters, of those that are not 0


def product(p: str, q: str, numbers: tuple[float, ...], moves: tuple[float, ...]) -> list[Any]:
    """What the derivatives by all parameters change by as these move; by none where a side of it is infinite."""
    formula = CLOSED[p, q]
    with mp.workdps(DIGITS):
        at, step = [mpf(float(x)) for x in numbers], [STEP * mpf(float(x)) for x in moves]

        def value(i: int, side: int, along: int) -> Any:
            return formula(
                *(x + along * m + side * STEP * (j == i) for j, (x, m) in enumerate(zip(at, step, strict=True)))
            )

        def one(i: int) -> Any:
            corners = [a * b * value(i, a, b) for a in (1, -1) for b in (1, -1)]
            return mp.fsum(corners) / (4 * STEP * STEP) if all(map(mp.isfinite, corners)) else mp.nan

        return [one(i) for i in range(len(at))]


def cases(p: str, q: str, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Some of the points of a pair with parameters of ordinary size, and a direction for each: columns.

    Of one family with itself, also such with p = q.
    """
    low, high = ORDINARY
    fitting = [x for x in points(p, q) if all(y == 0 or low <= abs(y) <= high for y in x) and not _on_a_kink(p, q, x)]
    rng = np.random.default_rng(seed)
    chosen = [fitting[i] for i in rng.choice(len(fitting), min(count, len(fitting)), replace=False)]
    chosen += [x[: width(p)] * 2 for x in chosen[:2] if p == q]
    columns = np.array(chosen).reshape(-1, width(p) + width(q)).T
    moves = rng.normal(size=columns.shape) * np.where(columns == 0.0, 1.0, np.abs(columns))
    fixed = set(range(len(columns))) - set(places(p, q))
    moves[list(fixed)] = 0.0  # counts
    return columns, moves


def _on_a_kink(p: str, q: str, numbers: tuple[float, ...]) -> bool:
    """Whether q's density has its kink at an end of the support of p."""
    return q == "Laplace" and numbers[width(p)] in (0.0, 1.0)


def found(p: str, q: str, columns: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """What the package computes."""
    sides = [build(p, columns[: width(p)]), build(q, columns[width(p) :])]
    by = [(side, name) for side, family in zip("pq", (p, q), strict=True) for name in names_of(family)]
    product = hessian(*sides)(divergence(*sides), 1.0, dict(zip(by, moves, strict=True)))._asdict()
    return np.array([product[side].get(name, np.zeros(columns.shape[1])) for side, name in by])


def errors(p: str, q: str, count: int) -> tuple[float, tuple[float, ...]]:
    """The largest error, as a part of the largest product of its case, and where; -1 if there is none to compare."""
    columns, moves = cases(p, q, count)
    worst, where = -1.0, ()
    for case, move, ours in zip(columns.T, moves.T, found(p, q, columns, moves).T, strict=True):
        true = product(p, q, tuple(case), tuple(move))
        for i in places(p, q):
            if mp.isnan(true[i]):
                continue
            size = max(abs(x) for x in true if not mp.isnan(x))
            off = float(abs(mpf(float(ours[i])) - true[i]) / size) if size else abs(float(ours[i]))
            if not off <= worst:
                worst, where = off, tuple(map(float, case))
    return worst, where


def main() -> None:
    """Print."""
    for p, q in COMPILED:
        if (p, q) not in SLOW and (not sys.argv[1:] or f"{p}-{q}" in sys.argv[1:]):
            try:
                print(f"{p}-{q}", *errors(p, q, 4), flush=True)
            except NotImplementedError as reason:
                print(f"{p}-{q}", reason, flush=True)


if __name__ == "__main__":
    main()
