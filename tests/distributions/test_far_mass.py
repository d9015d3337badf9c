"""Integrals of densities whose mass lies beyond the range of numbers, or close to its ends."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from mpmath import mp

import klnumba as kl
from klnumba import distributions as D

stats = pytest.importorskip("scipy.stats")

REACHED = 1e-12  # relative; 4e-13 at most in the list below


def by_quadrature(p, q):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return tuple(map(float, kl.kl_divergence(p, q, method="quadrature", return_error=True)))


@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("p", "q"),
    [
        # next to 0, and far out
        (D.Gamma(1e-3, 1.0), D.Gamma(2e-3, 1.0)),
        (D.Gamma(1e-5, 1.0), D.Gamma(2e-5, 3.0)),
        (D.Gamma(1e-3, 1.0), D.Normal(0.0, 1.0)),
        (D.Gamma(1e-3, 1e300), D.Gamma(2e-3, 1e300)),
        (D.Chi(1e-3), D.Gamma(1e-3, 1.0)),
        (D.Chi2(1e-3), D.Gamma(1e-3, 1.0)),
        (D.InverseGamma(1e-3, 1.0), D.LogNormal(0.0, 100.0)),
        (D.Pareto(1.0, 1e-3), D.Pareto(0.5, 2e-3)),
        (D.LogNormal(0.0, 76.0), D.LogNormal(0.0, 6.0)),
        (D.LogNormal(0.0, 500.0), D.Weibull(1.0, 1e-3)),
        (D.Weibull(1.0, 1e-3), D.LogNormal(2.0, 500.0)),
        (D.Gamma(1.25, 0.5), D.LogNormal(3000.0, 14.0)),
        (D.LogNormal(1e6, 1.0), D.LogNormal(1e6 - 1.0, 2.0)),
        (D.LogNormal(-1000.0, 1.0), D.LogNormal(-999.0, 2.0)),
        # next to 1 too
        (D.Kumaraswamy(0.0145, 0.27), D.Normal(-0.086, 16.4)),
        (D.Kumaraswamy(1e-3, 1e-3), D.Beta(2e-3, 2e-3)),
        (D.Beta(2.0, 1e-3), D.Beta(1.0, 2e-3)),
        (D.Beta(1e-3, 1e-3), D.Uniform(0.0, 1.0)),
        (D.LogitNormal(0.0, 300.0), D.LogitNormal(1.0, 400.0)),
        # scales at the ends
        (D.Normal(0.0, 1e-300), D.Normal(0.0, 2e-300)),
        (D.Normal(1.0, 1e-300), D.Normal(1.0, 2e-300)),
        (D.Normal(0.0, 1e300), D.Normal(0.0, 2e300)),
        (D.Gumbel(0.0, 1e-303), D.Gumbel(0.0, 2e-303)),
        (D.Laplace(0.0, 1e307), D.Laplace(1e307, 1e307)),
        (D.Exponential(1e-307), D.Exponential(2e-307)),
        (D.HalfNormal(1e-305), D.Exponential(1e305)),
        (D.Cauchy(0.0, 1e-300), D.Cauchy(0.0, 1.0)),
        (D.Uniform(-1.7e308, 1.7e308), D.Normal(0.0, 1e308)),
        (D.Uniform(-1.0, 1.0), D.Uniform(-1.7e308, 1.7e308)),
        (D.Mixture(D.Categorical([1.0, 0.0]), D.Normal([0.0, 1.0], 1e-300)), D.Normal(0.0, 2e-300)),
        (D.TransformedDistribution(D.Normal(0.0, 1e-300), D.AffineTransform(0.0, 3.0)), D.Normal(0.0, 2e-300)),
        # where SciPy finds no quantiles
        (D.InverseGaussian(0.35, 1000.0), D.HalfNormal(1.7)),
        # a tail that ends at the square of the mean, which is no number
        (D.InverseGaussian(1e160, 1.0), D.Exponential(1e-160)),
        (D.InverseGaussian(1e160, 1.0), D.InverseGaussian(3e160, 2.0)),
    ],
)  # fmt: skip
def test_what_the_closed_forms_say(p, q):
    single = p.component_distribution.one((0,)) if isinstance(p, D.Mixture) else p
    exact = float(kl.kl_divergence(single, q))
    value, error = by_quadrature(p, q)
    assert value == pytest.approx(exact, rel=REACHED)
    assert abs(value - exact) <= 3.0 * error <= 1e-10 * exact


def test_a_heavy_tail_seen_from_a_wide_one():
    """LogNormal(0, 80) || Cauchy: of y = log x, E log(1 + exp(2*y)) in closed pieces."""
    with mp.workdps(30):
        s = mp.mpf(80)
        far = mp.quad(lambda y: mp.npdf(y, 0, s) * mp.log1p(mp.exp(-2 * y)), [0, 1, 10, 50])
        exact = mp.log(mp.pi) + 2 * far + 2 * s / mp.sqrt(2 * mp.pi) - mp.log(2 * mp.pi * mp.e * s**2) / 2
    value, error = by_quadrature(D.LogNormal(0.0, 80.0), D.Cauchy(0.0, 1.0))
    assert value == pytest.approx(float(exact), rel=REACHED)
    assert error < 1e-11 * value
    half, _ = by_quadrature(D.LogNormal(0.0, 80.0), D.HalfCauchy(1.0))
    assert half == pytest.approx(float(exact) - math.log(2.0), rel=REACHED)
    moved, _ = by_quadrature(D.LogNormal(0.0, 80.0), D.StudentT(1.0, 1e-30, 1.0))
    assert moved == pytest.approx(float(exact), rel=REACHED)


def test_tails_of_cauchy_and_student():
    """The densities of SciPy lose a square where it is no number, though the logarithm is an ordinary one."""
    p = D.Cauchy(0.02165306886728931, 0.5591399224811849)
    q = D.StudentT(0.134030395065459, -0.022688526881216583, 8.854163032592734)
    value, _ = by_quadrature(p, q)
    assert value == pytest.approx(float(kl.kl_divergence(p, q)), rel=REACHED)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.LogNormal(2677.0, 0.3), D.Weibull(2.0, 0.15)),  # where p is, there is no number
        (D.Normal(0.0, 1e-300), D.Normal(0.0, 1e300)),
    ],
)
def test_mass_that_is_not_found_is_told(p, q):
    with pytest.warns(RuntimeWarning, match="the integral is nan"):
        value, error = kl.kl_divergence(p, q, method="quadrature", return_error=True)
    assert np.isnan(value)
    assert error == math.inf


def test_a_scale_that_is_no_number_is_refused():
    p = D.Uniform(-1.7e308, 1.7e308)
    with pytest.raises(NotImplementedError, match="p: no density, its scale in the terms of SciPy is beyond the range"):
        kl.kl_divergence(p, D.Normal(), method="monte_carlo", samples=10)
