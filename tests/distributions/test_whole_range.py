"""Parameters drawn from the whole range of numbers: no divergence is negative, and within 1e-300 to 1e300 none is NaN.

Sizes are drawn apart, so that products, quotients and sums of parameters leave the range in every way there is.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from tests.reference.distribution_errors import build, evaluate
from tests.reference.matched import ROLES, pairs

CELLS = 800
INSIDE = [1e-300, 1e-299, 1e-200, 1e-100, 1e-30, 1e-8, 0.3, 0.5, 1.0, 2.0, 3.7, 1e8, 1e30, 1e100, 1e200, 1e300]
ALL = [*INSIDE, 5e-324, 1e-320, 2.0**-1022, 1.7e308]
PROBABILITIES = [1e-300, 1e-16, 1e-8, 0.5, 1.0 - 2.0**-53]
# Negative binomial distributions have a closed form for equal counts, which are not drawn.
SERVED = [pair for pair in pairs() if pair[0].partition(".")[0] != "NegativeBinomial" or "Binomial" not in pair[1]]

# The page of pairs says where.
MAY_BE_NAN = {("Kumaraswamy", "Kumaraswamy"), ("Kumaraswamy", "Beta"), ("Kumaraswamy", "Laplace")}
NO_WARNING = pytest.mark.filterwarnings("ignore:KL.*are NaN:RuntimeWarning")


def drawn(role: str, sizes: list[float], rng: np.random.Generator) -> np.ndarray:
    """Numbers that a parameter of this role may be."""
    positive = np.where(rng.random(CELLS) < 0.6, rng.choice(sizes, CELLS), 10.0 ** rng.uniform(-20.0, 20.0, CELLS))
    if role in ("place", "odds"):
        return np.where(rng.random(CELLS) < 0.1, 0.0, rng.choice([-1.0, 1.0], CELLS) * positive)
    if role == "probability":
        return np.where(rng.random(CELLS) < 0.3, rng.choice(PROBABILITIES, CELLS), rng.random(CELLS))
    if role in ("count", "kept"):
        return rng.choice([1.0, 2.0, 5.0, 100.0, 1e6], CELLS)
    return positive


def member(family: str, sizes: list[float], rng: np.random.Generator) -> list[np.ndarray]:
    """The parameters of a family, one array each."""
    numbers = {role: drawn(role, sizes, rng) for role in dict.fromkeys(ROLES[family])}
    if "low" in numbers:
        low, high = np.sort([numbers["low"], numbers["high"]], axis=0)
        numbers |= {"low": np.where(low < high, low, 1.0), "high": np.where(low < high, high, 2.0)}
    return [numbers[role] if ROLES[family].count(role) == 1 else drawn(role, sizes, rng) for role in ROLES[family]]


def cases(p: str, q: str, sizes: list[float]) -> list[tuple[float, ...]]:
    rng = np.random.default_rng(zlib.crc32(f"{p}-{q}".encode()))
    columns = [*member(p, sizes, rng), *member(q, sizes, rng)]
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.part(2)
@NO_WARNING
@pytest.mark.parametrize(("p", "q"), SERVED)
def test_no_divergence_is_negative(p, q):
    found = evaluate(p, q, cases(p, q, ALL))
    assert not (found < 0.0).any()


@pytest.mark.part(2)
@NO_WARNING
@pytest.mark.parametrize(("p", "q"), [pair for pair in SERVED if pair not in MAY_BE_NAN])
def test_no_divergence_is_nan(p, q):
    found = evaluate(p, q, cases(p, q, INSIDE))
    assert not np.isnan(found).any()


def test_members_are_drawn_from_the_whole_range():
    rng = np.random.default_rng(0)
    low, high = member("Uniform", ALL, rng)
    assert (low < high).all()
    loc, scale = member("Normal", ALL, rng)
    assert build("Normal", [loc, scale]).batch_shape == (CELLS,)
    assert scale.min() == 5e-324
    assert scale.max() == 1.7e308
    assert loc.min() < 0.0 < loc.max()
