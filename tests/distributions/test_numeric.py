"""KL by an integral, a sum or draws, against the closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D

stats = pytest.importorskip("scipy.stats")

CONTINUOUS = [
    (D.Normal(0.0, 1.0), D.Normal(1.0, 2.0)),
    (D.Normal(0.0, 1e-200), D.Normal(0.0, 2e-200)),
    (D.Normal(1e8, 1.0), D.Normal(1e8 + 2.0, 1.0)),
    (D.Normal(0.0, 1.0), D.Normal(1e-5, 1.0)),
    (D.Gamma(2.0, 1.0), D.Gamma(3.0, 1.0)),
    (D.Gamma(0.1, 1.0), D.Gamma(0.2, 1.0)),
    (D.Gamma(0.01, 1.0), D.Gamma(0.02, 1.0)),  # 6e-4 of the mass lies where there are no numbers
    (D.Cauchy(0.0, 1.0), D.Cauchy(1.0, 3.0)),
    (D.Exponential(1.0), D.Normal(0.0, 2.0)),
    (D.Weibull(1.0, 0.5), D.Weibull(2.0, 0.4)),
    (D.Uniform(0.0, 1.0), D.Uniform(-1.0, 3.0)),
    (D.Pareto(2.0, 1.5), D.Pareto(1.0, 0.5)),
    (D.Laplace(0.0, 1.0), D.Normal(0.0, 1.0)),
    (D.LogNormal(0.0, 1.0), D.LogNormal(0.0, 9.0)),
    (D.Uniform(0.0, 1.0), D.Beta(1.0, 0.5)),
    (D.Normal(1e8, 1e-8), D.Normal(1e8, 2e-8)),  # narrower than the spacing of numbers
    (D.Gamma(0.01, 1.0), D.Gamma(0.02, 1.0)),  # much of the mass next to 0
    (D.Pareto(1.0, 0.05), D.Pareto(1.0, 3.0)),  # and beyond the largest number
    (D.Beta(1e-3, 1e-3), D.Beta(2e-3, 0.5)),
    (D.StudentT(2.01), D.Normal()),
    (D.Logistic(856.5972418835556, 0.14080395846863278), D.Laplace(-0.0007776080696063427, 0.8656383308652446)),
    (D.Uniform(0.0, 1000.0), D.Laplace(0.0, 1.0)),
    (D.Uniform(1.0, 2.0), D.Pareto(1.0, 2000.0)),
    (D.LogUniform(0.0123, 107.3), D.Laplace(-8.25, 0.104)),
    (D.Normal(0.0, 1.0), D.Laplace(1000.0, 1.0)),
    (D.HalfNormal(1.0), D.Laplace(0.0, 5e-4)),
    (D.Normal(0.0, 1.0), D.Gumbel(-2000.0, 1.0)),
    (D.Chi(0.0059), D.HalfNormal(0.0495)),
    (D.Exponential(0.855), D.Chi(0.00435)),
    (D.Exponential(272.0), D.Weibull(265.0, 0.00385)),
    (D.InverseGamma(0.0065, 0.0033), D.InverseGamma(0.037, 0.239)),
    (D.InverseGamma(0.0033, 1.0), D.LogNormal(0.0, 1.0)),
    (D.Kumaraswamy(0.073, 3.46), D.Kumaraswamy(15.8, 0.0356)),
    (D.Beta(0.0209, 22.0), D.ContinuousBernoulli(0.4496)),
    (D.Laplace(0.97, 0.71), D.Gumbel(-1.25, 0.744)),
]
DISCRETE = [
    (D.Poisson(3.0), D.Poisson(4.0)),
    (D.Poisson(1e6), D.Poisson(1.001e6)),
    (D.Geometric(0.3), D.Geometric(0.01)),
    (D.Binomial(10, 0.3), D.Binomial(10, 0.4)),
    (D.NegativeBinomial(3.0, 0.4), D.NegativeBinomial(3.0, 0.41)),
    (D.Bernoulli(0.3), D.Poisson(1.0)),
    (D.Poisson(1e6), D.Poisson(1.01e6)),
    (D.Binomial(10**6, 0.5), D.Binomial(10**6, 0.4)),
]


def assert_agrees(p, q, method):
    value, error = kl.kl_divergence(p, q, method=method, return_error=True)
    exact = kl.kl_divergence(p, q)
    assert value == pytest.approx(exact, rel=1e-8)
    assert abs(value - exact) <= 3.0 * error
    assert kl.kl_divergence(p, q, method=method) == value


@pytest.mark.part(2)
@pytest.mark.parametrize(("p", "q"), CONTINUOUS, ids=str)
def test_quadrature(p, q):
    assert_agrees(p, q, "quadrature")


@pytest.mark.parametrize(("p", "q"), DISCRETE, ids=str)
def test_sum(p, q):
    assert_agrees(p, q, "sum")


@pytest.mark.parametrize(
    ("p", "q", "method"),
    [
        (D.Cauchy(0.0, 1.0), D.Normal(0.0, 1.0), "quadrature"),
        (D.Normal(0.0, 1.0), D.Exponential(1.0), "quadrature"),
        (D.Uniform(0.0, 2.0), D.Uniform(0.0, 1.0), "quadrature"),
        (D.Poisson(1.0), D.Bernoulli(0.3), "sum"),
        (D.Binomial(12, 1e-30), D.Binomial(10, 0.4), "sum"),
        (D.Uniform(0.0, 1.0 + 1e-7), D.Uniform(0.0, 1.0), "monte_carlo"),
    ],
)
def test_infinite(p, q, method):
    assert kl.kl_divergence(p, q, method=method) == math.inf


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Weibull(0.019, 0.0042), D.Gamma(1.4, 1.4)),
        (D.Laplace(0.0, 1.0), D.Gumbel(0.0, 1.0)),  # infinite, and so is the next: the cell becomes level
        (D.Laplace(0.0, 1.0), D.Moyal(0.0, 1.0)),
    ],
)
def test_an_integral_that_is_not_known_says_so(p, q):
    with pytest.warns(RuntimeWarning, match="the integral is nan") as told:
        value, error = kl.kl_divergence(p, q, method="quadrature", return_error=True)
    assert [x.filename for x in told] == [__file__]  # the caller's line
    assert math.isnan(value)
    assert error == math.inf


def test_a_sum_whose_rounding_shows_says_so():
    """SciPy's logarithms of these masses are those of numbers of 1e7, and the two are close."""
    p, q = (stats.betabinom(10**6, a, 2 * a) for a in (1e5, 1.0001e5))
    with pytest.warns(RuntimeWarning, match=r"the sum is [0-9.e-]+ \+- ") as told:
        value, error = kl.kl_divergence(p, q, method="sum", return_error=True)
    assert [x.filename for x in told] == [__file__]
    assert 1e-6 < error / value < 1e-3


@pytest.mark.parametrize(
    ("p", "q", "options", "kind", "words"),
    [
        (D.VonMises(0.0, 2.0), D.VonMises(1.0, 3.0), {"method": "quadrature"}, NotImplementedError, "on a circle"),
        (D.Poisson(2.0), D.Normal(), {"method": "monte_carlo"}, ValueError, "one is discrete and one continuous"),
        (D.Normal(), D.Normal(), {"samples": 5}, ValueError, "samples, rng: for method 'monte_carlo'"),
        (D.Normal(), D.Normal(), {"rng": np.array([1, 2])}, ValueError, "samples, rng: for method 'monte_carlo'"),
        ([0.5, 0.5], [0.1, 0.9], {"rng": np.array([1, 2])}, ValueError, "rng: for distributions"),
        (D.Normal([0, 1], 1), D.Normal([0, 1, 2], 1), {"method": "quadrature"}, ValueError, "do not broadcast"),
        (D.Poisson(1e15), D.Poisson(1.01e15), {"method": "sum"}, ValueError, "does not find the quantiles"),
    ],
)
def test_what_a_method_does_not_serve(p, q, options, kind, words):
    with pytest.raises(kind, match=words):
        kl.kl_divergence(p, q, **options)


@pytest.mark.parametrize("off", [stats.binom(3, 0.3, loc=0.5), stats.rv_discrete(values=([0, 0.5], [0.2, 0.8]))()])
def test_a_sum_is_over_integers(off):
    whole = stats.binom(3, 0.4)
    with pytest.raises(ValueError, match=r"^p: .* draws must be integers for a sum, but 0\.5 is none$"):
        kl.kl_divergence(off, whole, method="sum")
    with pytest.raises(ValueError, match=r"^q: .* draws must be integers for a sum, but 0\.5 is none$"):
        kl.kl_divergence(D.Delta(1.0), off, method="sum")
    listed = stats.rv_discrete(values=([0.5, 1.5], [0.2, 0.8]))
    assert kl.kl_divergence(listed(0.5), D.Bernoulli(0.8), method="sum") == math.inf  # on 1 and 2


def test_results_have_the_precision_of_the_parameters():
    p, q = D.Normal(np.float32(0.0), np.float32(1.0)), D.Normal(np.float32(1.0), np.float32(1.0))
    assert kl.kl_divergence(p, q, method="quadrature").dtype == kl.kl_divergence(p, q).dtype == np.float32


def test_without_a_closed_form():
    p, q = D.Normal(0.0, 1.0), D.Cauchy(0.0, 1.0)
    with pytest.raises(NotImplementedError, match="method='quadrature'"):
        kl.kl_divergence(p, q)
    value, error = kl.kl_divergence(p, q, method="quadrature", return_error=True)
    assert error < 1e-10
    drawn, spread = kl.kl_divergence(p, q, method="monte_carlo", return_error=True, rng=1, samples=400_000)
    assert abs(drawn - value) < 4.0 * spread < 0.01


def test_draws_are_seeded_and_batches_broadcast():
    p, q = D.Normal([0.0, 1.0], 1.0), D.Normal([[1.0], [2.0], [3.0]], 2.0)
    first = kl.kl_divergence(p, q, method="monte_carlo", rng=5, samples=20_000)
    again = kl.kl_divergence(p, q, method="monte_carlo", rng=np.random.default_rng(5), samples=20_000)
    np.testing.assert_array_equal(first, again)
    exact = kl.kl_divergence(p, q)
    assert first.shape == exact.shape == (3, 2)
    np.testing.assert_allclose(first, exact, atol=0.05)
    np.testing.assert_allclose(kl.kl_divergence(p, q, method="quadrature", base=2), exact / math.log(2.0), rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "guess"}, "method: one of 'auto'"),
        ({"method": np.array(["sum", "quadrature"])}, r"method: one of 'auto', .*, not array\(\['sum', 'quadrature'\]"),
        ({"method": np.array("sum")}, r"method: one of 'auto', .*, not array\('sum'"),
        ({"return_error": True}, "return_error: a closed form has no estimate"),
        ({"samples": np.array([5, 6])}, "samples, rng: for method 'monte_carlo', not 'auto'"),
        ({"method": "monte_carlo", "samples": np.array([5, 6])}, r"samples: an integer of .*, not array\(\[5, 6\]\)"),
        ({"method": "sum"}, "p: method 'sum' is for discrete distributions"),
        ({"method": "monte_carlo", "samples": 1}, "samples: an integer of at least 2"),
        ({"method": "quadrature", "base": 1}, "base"),
    ],
)
def test_wrong_options(options, words):
    with pytest.raises(ValueError, match=words):
        kl.kl_divergence(D.Normal(), D.Normal(1.0), **options)


def test_return_error_is_a_bool():
    with pytest.raises(TypeError, match=r"return_error: True or False, not array\(\[ True, False\]\)"):
        kl.kl_divergence(D.Normal(), D.Normal(1.0), method="quadrature", return_error=np.array([True, False]))


@pytest.mark.parametrize(
    "options",
    [
        {"method": "sum"},
        {"method": np.array(["sum", "quadrature"])},
        {"samples": np.array([5, 6])},
        {"return_error": np.array([True, False])},
    ],
)
def test_options_for_distributions_alone(options):
    with pytest.raises(ValueError, match="method, return_error, samples, rng: for distributions"):
        kl.kl_divergence([0.5, 0.5], [0.5, 0.5], **options)


def test_quadrature_is_for_continuous_ones():
    with pytest.raises(ValueError, match="q: method 'quadrature' is for continuous"):
        kl.kl_divergence(D.Normal(), D.Poisson(1.0), method="quadrature")


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Kumaraswamy(2.5, 3.0), D.Beta(1.4, 0.8)),
        (D.Kumaraswamy(0.7, 2.5), D.Kumaraswamy(1.5, 0.9)),
        (D.Lindley(0.7), D.Lindley(1.6)),
        (D.Lindley(0.07), D.Exponential(1.1)),
        (D.Lindley(20.0), D.Laplace(0.1, 0.3)),
        (D.LogitNormal(0.3, 0.8), D.LogitNormal(-0.5, 1.7)),
        (D.ContinuousBernoulli(0.3), D.Normal(0.2, 0.7)),
        (D.ContinuousBernoulli(0.5), D.ContinuousBernoulli(0.9)),
        (D.ContinuousBernoulli(logits=300.0), D.ContinuousBernoulli(logits=200.0)),
        (D.ContinuousBernoulli(logits=-300.0), D.ContinuousBernoulli(logits=-200.0)),
        (D.Beta(2.0, 3.0), D.ContinuousBernoulli(0.3)),
    ],
    ids=repr,
)
def test_families_that_scipy_does_not_have(p, q):
    value, error = kl.kl_divergence(p, q, method="quadrature", return_error=True)
    assert value == pytest.approx(float(kl.kl_divergence(p, q)), rel=1e-8)
    assert error <= 1e-8 * value
    draws, spread = kl.kl_divergence(p, q, method="monte_carlo", samples=2000, rng=1, return_error=True)
    assert abs(draws - value) < 6.0 * spread


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Uniform(-1.0370525448279508, 0.05233598974159692), D.Uniform(-1.0370525448279508, 0.052335991291579655)),
        (D.LogUniform(172925.4754240423, 172963.50282902454), D.LogUniform(172925.47525111682, 172963.50282902454)),
    ],
)
@pytest.mark.filterwarnings("ignore:KL.*the integral is:RuntimeWarning")
def test_the_error_counts_what_rounding_leaves_of_a_narrow_strip(p, q):
    value, error = kl.kl_divergence(p, q, method="quadrature", return_error=True)
    off = abs(value - float(kl.kl_divergence(p, q)))
    assert 1e-8 * value < off <= error


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Gumbel(2.8, 0.154), D.Chi(18.0)),
        (D.LogNormal(-7.67, 0.17), D.ContinuousBernoulli(0.87)),
        (D.Weibull(0.067, 7.4), D.LogitNormal(0.0, 0.1)),
        (D.Normal(7.2, 0.12), D.LogUniform(0.6, 17.1)),
        # and so is the logarithm of the density there
        (D.Normal(0.0, 1.0), D.Uniform(-1.4e154, 1.4e154)),
        (D.Normal(0.0, 1.0), D.Uniform(-1.7e308, 1.7e308)),
        (D.Normal(1e300, 1.0), D.Gamma(1.0, 1.0)),
    ],
    ids=repr,
)
def test_mass_outside_that_underflows(p, q):
    """It is beyond the range of numbers, and yet there."""
    assert kl.kl_divergence(p, q, method="quadrature", return_error=True) == (math.inf, 0.0)
    assert kl.kl_divergence(p, q) == math.inf


def test_a_gap_of_the_support_is_enough_for_what_is_made_of_families():
    """Where the logarithm of the density is no number either."""
    q = D.Uniform(-1e200, 1e200)
    parts = D.Mixture(D.Categorical([0.5, 0.5]), D.Normal([0.0, 1.0], 1.0))
    moved = D.TransformedDistribution(D.Logistic(), D.AffineTransform(1.0, 2.0))
    for p in (parts, moved):
        assert kl.kl_divergence(p, q, method="quadrature", return_error=True) == (math.inf, 0.0)
