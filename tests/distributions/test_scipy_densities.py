"""Integrals of densities that only SciPy has, and that it gives with few digits, or none, next to where they end."""

from __future__ import annotations

import math

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D

stats = pytest.importorskip("scipy.stats")

NORMAL = stats.norm()
EXPONENTIAL = 0.5 * math.log(2.0 * math.pi) - 0.5  # KL of a shifted exponential of mean 0 and variance 1 from NORMAL


def by_quadrature(p, q):
    return kl.kl_divergence(p, q, method="quadrature", return_error=True)


# --- pearson3: SciPy says that its support is all numbers -----------------------------------------------------------


@pytest.mark.parametrize("skew", [2.0, -2.0])
def test_a_support_that_ends_where_scipy_does_not_say_so(skew):
    value, error = by_quadrature(stats.pearson3(skew), NORMAL)
    assert value == pytest.approx(EXPONENTIAL, rel=1e-11)
    assert error < 1e-10


@pytest.mark.parametrize("skew", [0.5, 1.0, 3.0])
def test_a_pearson_distribution_is_a_gamma_distribution(skew):
    same = stats.gamma(4.0 / skew**2, loc=-2.0 / skew, scale=0.5 * skew)
    value, error = by_quadrature(stats.pearson3(skew), NORMAL)
    exact, _ = by_quadrature(same, NORMAL)
    assert abs(value - exact) <= 3.0 * error < 1e-8
    wide, wide_same = stats.pearson3(skew, 0.0, 2.0), stats.gamma(4.0 / skew**2, loc=-4.0 / skew, scale=skew)
    value, error = by_quadrature(stats.pearson3(skew), wide)
    exact, _ = by_quadrature(same, wide_same)
    assert abs(value - exact) <= 3.0 * error < 1e-8


def test_a_pearson_distribution_leaves_another():
    assert by_quadrature(stats.pearson3(1.0), stats.pearson3(2.0)) == (math.inf, 0.0)
    assert by_quadrature(NORMAL, stats.pearson3(2.0)) == (math.inf, 0.0)
    assert by_quadrature(stats.pearson3(0.0), stats.norm(1.0))[0] == pytest.approx(0.5, rel=1e-11)


# --- ends and tails at which digits are lost ------------------------------------------------------------------------

ARCSINE = math.log(2.0 / math.pi)  # the mean of log of the density of arcsine(-1, 2), which is x = cos(u)
SEMICIRCLE = math.log(2.0 / math.pi) + 0.5 * (math.log(0.25) + 1.0)  # and of semicircular()


@pytest.mark.parametrize(
    ("p", "q", "exact"),
    [
        (stats.semicircular(), NORMAL, SEMICIRCLE + 0.5 * math.log(2.0 * math.pi) + 0.125),
        (stats.semicircular(), stats.uniform(-1.0, 2.0), SEMICIRCLE + math.log(2.0)),
        (stats.arcsine(-1.0, 2.0), NORMAL, ARCSINE + 0.5 * math.log(2.0 * math.pi) + 0.25),
        (stats.arcsine(0.0, 0.5), stats.arcsine(0.0, 2.0), math.acosh(2.0)),
        (stats.argus(1.0), NORMAL, 1.2880275487477304),
        (stats.rdist(1.6), NORMAL, 0.437810330247989),
        (stats.rdist(3.5), stats.rdist(1.6), 0.16068701139755),
        (stats.kappa4(0.5, 0.2), NORMAL, 0.335572808080695),
        (stats.jf_skew_t(8.0, 4.0), stats.jf_skew_t(4.0, 8.0), 319.0 / 105.0),
        (stats.foldnorm(2.0), stats.foldnorm(1.0), 0.474481291515509),
        (stats.foldnorm(2.0), stats.foldnorm(2.001), 4.891788750904e-07),
    ],
    ids=lambda d: d.dist.name if hasattr(d, "dist") else "",
)
def test_densities_that_lose_digits_next_to_an_end(p, q, exact):
    value, error = by_quadrature(p, q)
    assert abs(value - exact) <= 3.0 * error + 1e-12 * exact + 1e-14
    assert error < 1e-9


@pytest.mark.parametrize(
    "frozen",
    [
        stats.arcsine(0.0, 0.5), stats.argus(1.0), stats.foldnorm(2.0), stats.jf_skew_t(8.0, 4.0),
        stats.kappa4(0.1, 0.2), stats.pearson3(2.0), stats.rdist(1.6), stats.semicircular(), stats.skewnorm([1.0, 2.0]),
    ],
    ids=lambda d: d.dist.name,
)  # fmt: skip
def test_a_distribution_from_itself(frozen):
    value, error = by_quadrature(frozen, frozen)
    assert not np.any(value)
    assert not np.any(error)


def test_a_distribution_that_is_none_from_itself():
    with pytest.warns(RuntimeWarning, match="the integral is nan"):
        assert math.isnan(by_quadrature(stats.rdist(-1.0), stats.rdist(-1.0))[0])


def test_equal_numbers_of_other_classes_prove_nothing():
    """They may hold more than their numbers."""
    one, other = (stats.rv_histogram((counts, [0.0, 1.0, 2.0]), density=False)() for counts in ([1, 3], [1, 1]))
    assert by_quadrature(one, other)[0] == pytest.approx(math.log(2.0) - 0.5623351446188083, rel=1e-12)


# --- what cannot be integrated --------------------------------------------------------------------------------------


def test_a_place_without_room_is_told_of():
    with pytest.warns(RuntimeWarning, match="the integral is nan"):
        value, error = by_quadrature(D.Normal(1e300, 1e-300), D.Normal(1e300, 2e-300))
    assert math.isnan(value)
    assert error == math.inf


def test_an_overflow_in_a_density_of_scipy():
    """SciPy raises an error for some numbers next to 0."""
    value, error = by_quadrature(stats.ncf(27, 27, 0.4), stats.ncf(27, 27, 0.6))
    assert value == pytest.approx(0.00017260303191806, rel=1e-9)
    assert error < 1e-12


class Overflowing(stats.rv_continuous):
    """Uniform from -1 to 2, with masses that raise SciPy's error."""

    def _pdf(self, x):
        return np.full_like(x, 1.0 / 3.0)

    def _cdf(self, x):
        raise OverflowError("Error in function ibeta")


def test_an_overflow_in_a_mass_of_scipy():
    with pytest.warns(RuntimeWarning, match="the integral is nan"):
        value, error = by_quadrature(D.Uniform(0.0, 1.0), Overflowing(a=-1.0, b=2.0)())
    assert math.isnan(value)
    assert error == math.inf
