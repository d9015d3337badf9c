"""A divergence is the same in every unit: of members near the ends of the range, and of those of ordinary size.

`tests/distributions` has the truth of ordinary sizes; here the same cells are measured in units of 2**-1000 to 2**1000,
and with locations that are further apart than float64 reaches.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import klnumba as kl
import klnumba.distributions as D
from klnumba.distributions.infinite import infinite
from klnumba.distributions.registry import find

CELLS = 500
BOUND = 5e-14  # seen over 40,000 cells a pair: 2e-14

# A member with a location, a scale and a shape, in a unit.
Member = Callable[[Any, Any, Any, float], D.Distribution]
MEMBERS: dict[str, Member] = {
    "Normal": lambda loc, scale, shape, unit: D.Normal(loc * unit, scale * unit),
    "Laplace": lambda loc, scale, shape, unit: D.Laplace(loc * unit, scale * unit),
    "Logistic": lambda loc, scale, shape, unit: D.Logistic(loc * unit, scale * unit),
    "Gumbel": lambda loc, scale, shape, unit: D.Gumbel(loc * unit, scale * unit),
    "Moyal": lambda loc, scale, shape, unit: D.Moyal(loc * unit, scale * unit),
    "Cauchy": lambda loc, scale, shape, unit: D.Cauchy(loc * unit, scale * unit),
    "StudentT": lambda loc, scale, shape, unit: D.StudentT(1.0 + shape, loc * unit, scale * unit),
    "StudentT of df 1": lambda loc, scale, shape, unit: D.StudentT(1.0, loc * unit, scale * unit),
    "Uniform": lambda loc, scale, shape, unit: D.Uniform(-scale * unit, 0.875 * (scale * unit)),
    "Uniform above 0": lambda loc, scale, shape, unit: D.Uniform(0.5 * (scale * unit), scale * unit),
    "LogUniform": lambda loc, scale, shape, unit: D.LogUniform(0.125 * (scale * unit), scale * unit),
    "Exponential": lambda loc, scale, shape, unit: D.Exponential(1.0 / scale / unit),
    "HalfNormal": lambda loc, scale, shape, unit: D.HalfNormal(scale * unit),
    "HalfCauchy": lambda loc, scale, shape, unit: D.HalfCauchy(scale * unit),
    "Gamma": lambda loc, scale, shape, unit: D.Gamma(shape, 1.0 / scale / unit),
    "InverseGamma": lambda loc, scale, shape, unit: D.InverseGamma(shape, scale * unit),
    "Weibull": lambda loc, scale, shape, unit: D.Weibull(scale * unit, shape),
    "Pareto": lambda loc, scale, shape, unit: D.Pareto(scale * unit, shape),
    "InverseGaussian": lambda loc, scale, shape, unit: D.InverseGaussian(scale * unit, 0.5 * (scale * unit)),
}


# Closed forms that are none for these members, and means of what has none.
WITHOUT = {
    *(("StudentT", q) for q in ("Cauchy", "StudentT", "StudentT of df 1")),
    *(("StudentT of df 1", q) for q in ("Laplace", "Normal")),
}


def can_be_finite(first: str, second: str) -> bool:
    """Whether there is a closed form, and q has mass wherever p has; nothing is computed before the tests run."""
    p, q = (MEMBERS[name](0.0, 1.0, 2.5, 1.0) for name in (first, second))
    if (first, second) == ("Logistic", "Logistic"):
        return True
    try:
        served = find(type(p), type(q)).function is not infinite
    except NotImplementedError:
        return False
    wide = [MEMBERS[second](0.0, scale, 2.5, 1.0).support for scale in (0.01, 1.0, 100.0)]
    within = any(there.low <= p.support.low and p.support.high <= there.high for there in wide)
    return served and within and (first, second) not in WITHOUT


PAIRS = [pair for pair in itertools.product(MEMBERS, MEMBERS) if can_be_finite(*pair)]


def in_units(pair: tuple[str, str], cells: list[tuple[Any, Any, Any]], unit: float) -> Any:
    """The divergences in a unit, of q with the scale or the location that the closed form asks for."""
    of_p, (loc, scale, shape) = cells
    if pair == ("Logistic", "Logistic"):
        scale = of_p[1]
    if pair[0] in ("Exponential", "HalfCauchy") and pair[1].startswith(("Cauchy", "StudentT")):
        loc = 0.0 * loc
    return kl.kl_divergence(MEMBERS[pair[0]](*of_p, unit), MEMBERS[pair[1]](loc, scale, shape, unit))


def assert_alike(found: Any, expected: Any) -> None:
    finite = np.isfinite(expected)
    assert np.array_equal(found[~finite], expected[~finite])
    assert np.all(found[finite] >= 0.0)
    np.testing.assert_allclose(found[finite], expected[finite], rtol=BOUND, atol=0.0)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_in_small_and_large_units(pair: tuple[str, str]) -> None:
    rng = np.random.default_rng(1)

    def cells() -> tuple[Any, Any, Any]:
        loc = rng.standard_normal(CELLS) * 2.0 ** rng.integers(-6, 6, CELLS)
        return loc, 2.0 ** rng.integers(-8, 8, CELLS), 10.0 ** rng.uniform(-0.7, 1.3, CELLS)

    both = [cells(), cells()]
    expected = in_units(pair, both, 1.0)
    assert np.isfinite(expected).any()
    for power in (1000, -900, -1000):
        assert_alike(in_units(pair, both, 2.0**power), expected)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_locations_further_apart_than_the_range(pair: tuple[str, str]) -> None:
    rng = np.random.default_rng(2)

    def cells() -> tuple[Any, Any, Any]:
        loc = rng.choice([-1.0, 1.0], CELLS) * rng.uniform(0.0, 1.79e308, CELLS)
        return loc, 10.0 ** rng.uniform(306.0, 308.2, CELLS), np.full(CELLS, 2.5)

    both = [cells(), cells()]
    assert_alike(in_units(pair, both, 1.0), in_units(pair, both, 2.0**-40))


@pytest.mark.parametrize("exact", [8.9e307, 1.7e308])
@pytest.mark.parametrize("name", ["Normal", "Moyal", "Logistic"])
def test_at_the_end_of_the_range_a_divergence_is_right_or_infinite(name: str, exact: float) -> None:
    """From 9e307 on, half of a sum that is beyond the range."""
    scale = 1e-100
    far = math.sqrt(2.0) * math.sqrt(exact) * scale
    found = float(kl.kl_divergence(getattr(D, name)(0.0, scale), D.Normal(far, scale)))
    if exact < 9e307 or found < math.inf:
        assert found == pytest.approx(exact, rel=1e-15)


def test_narrow_cauchy_distributions_at_both_ends() -> None:
    p, q = D.Cauchy(-1e308, 1e-300), D.Cauchy(1e308, 1e-300)
    expected = 2.0 * (np.log(1e308) - np.log(1e-300))
    assert kl.kl_divergence(p, q) == pytest.approx(expected, rel=1e-15)
    assert kl.kl_divergence(p, D.StudentT(1.0, 1e308, 1e-300)) == pytest.approx(expected, rel=1e-15)


def test_derivatives_where_locations_are_further_apart_than_the_range() -> None:
    value, slopes = D.kl_divergence_grad(D.Normal(-1e308, 1e308), D.Normal(1e308, 1e308))
    assert value == 2.0
    assert slopes.p["loc"] == pytest.approx(-2e-308, rel=1e-14)
    assert slopes.q["scale"] == pytest.approx(-4e-308, rel=1e-14)
