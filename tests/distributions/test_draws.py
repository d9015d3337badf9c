"""KL by draws, against the closed forms, for everything that can be drawn from."""

from __future__ import annotations

import math

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D
from tests.distributions.test_fallbacks import VECTORS
from tests.distributions.test_quadrature import ordinary
from tests.reference.distribution_errors import build
from tests.reference.distributions import PARAMETERS

stats = pytest.importorskip("scipy.stats")

ON_A_CIRCLE, POINTS = {"VonMises"}, {"Delta"}


def by_draws(p, q, samples=20_000, rng=7):
    return kl.kl_divergence(p, q, method="monte_carlo", return_error=True, samples=samples, rng=rng)


def assert_drawn(p, q, closed=True, **options):
    value, spread = by_draws(p, q, **options)
    exact = np.asarray(kl.kl_divergence(p, q) if closed else kl.kl_divergence(p, q, method="quadrature"))
    assert np.all(np.abs(value - exact) <= 5.0 * spread + 1e-14)
    assert np.all(spread <= 0.1 * exact + 0.01)


# --- every kind ------------------------------------------------------------------------------------------------------


FAMILIES = sorted({name for name in PARAMETERS if "." not in name} - ON_A_CIRCLE - POINTS)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_over_numbers(name):
    p, q = (build(name, numbers) for numbers in ordinary(name))
    if name == "Logistic":  # a closed form for equal scales alone
        q = D.Logistic(q.loc, p.scale)
    assert_drawn(p, q, closed=name != "StudentT")


@pytest.mark.parametrize(("p", "q"), VECTORS, ids=lambda d: type(d).__name__)
def test_every_family_over_vectors(p, q):
    assert_drawn(p, q)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Binomial(5, 0.5), D.Binomial(6, 0.2)),
        (D.Binomial([3, 5], 0.5), D.Binomial([[6], [7]], 0.2)),
        (stats.binom(5, 0.5), stats.binom(6, 0.2)),
        (D.NegativeBinomial(3, 0.5), D.NegativeBinomial(3, 0.4)),
        (D.Independent(D.Binomial([3, 5], 0.5), 1), D.Independent(D.Binomial([4, 5], 0.4), 1)),
    ],
    ids=lambda d: type(d).__name__,
)
def test_counts_of_draws_are_integers_to_a_generator(p, q):
    assert_drawn(p, q)


def test_binomials_of_pytorch():
    torch = pytest.importorskip("torch")
    p, q = (torch.distributions.Binomial(n, torch.tensor(x)) for n, x in ((5, 0.5), (6, 0.2)))
    value, spread = by_draws(p, q)
    assert abs(float(value) - float(kl.kl_divergence(p, q))) <= 5.0 * float(spread)


@pytest.mark.parametrize(
    "frozen",
    [
        stats.betabinom(5, 2.3, 0.63), stats.betanbinom(5, 9.3, 1.0), stats.binom(5, 0.4), stats.boltzmann(1.4, 19),
        stats.dlaplace(0.8), stats.geom(0.5), stats.hypergeom(30, 12, 6), stats.logser(0.6), stats.nbinom(5, 0.5),
        stats.nchypergeom_fisher(140, 80, 60, 0.5), stats.nhypergeom(20, 7, 1), stats.planck(0.51),
        stats.poisson(3.0, loc=2), stats.randint(7, 31), stats.skellam(15, 8), stats.zipfian(1.25, 10),
    ],
    ids=lambda d: d.dist.name,
)  # fmt: skip
def test_counts_of_scipy(frozen):
    assert by_draws(frozen, frozen, samples=100) == (0.0, 0.0)


# --- where numbers are coarse, or end -------------------------------------------------------------------------------

TWO = np.array([1.0, 2.0])
SPREAD = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 3.0]])
HALF = D.Categorical([0.5, 0.5])


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Normal(1.7e18, 100.0), D.Normal(1.7e18, 200.0)),
        (D.Normal(1.7e9, 1e-7), D.Normal(1.7e9, 2e-7)),
        (D.Normal(1e6, 1e-12), D.Normal(1e6, 2e-12)),
        (D.Normal(1e18, 100.0), D.Normal(1e18 + 256.0, 200.0)),
        (D.Laplace(1e18, 1.0), D.Laplace(1e18, 2.0)),
        (D.Gumbel(1e18, 1.0), D.Gumbel(1e18, 2.0)),
        (D.Cauchy(-1e18, 1.0), D.Cauchy(-1e18, 2.0)),
        (D.Uniform(1e18, 1e18 + 1024.0), D.Uniform(1e18 - 1024.0, 1e18 + 1024.0)),
        (stats.norm(1e18, 1.0), stats.norm(1e18, 2.0)),
        (D.Independent(D.Normal([1e18, -1e18], 1.0), 1), D.Independent(D.Normal([1e18, -1e18], 2.0), 1)),
        (D.MultivariateNormal([1e18, 0.0], np.eye(2)), D.MultivariateNormal([1e18, 0.0], 2.0 * np.eye(2))),
        (
            D.MatrixNormal(1e18 * np.eye(2), np.eye(2), np.eye(2)),
            D.MatrixNormal(1e18 * np.eye(2), 2.0 * np.eye(2), np.eye(2)),
        ),
    ],
    ids=lambda d: type(d).__name__,
)
def test_a_spread_that_is_small_beside_the_location(p, q):
    assert_drawn(p, q)


def test_parts_of_a_mixture_that_are_small_beside_their_locations():
    p, q = (D.Mixture(HALF, D.Normal([1e18, -1e18], scale)) for scale in TWO)
    value, spread = by_draws(p, q)
    assert abs(value - kl.kl_divergence(D.Normal(0.0, 1.0), D.Normal(0.0, 2.0))) <= 5.0 * spread < 0.1


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.LogNormal(0.0, 1e-18), D.LogNormal(0.0, 2e-18)),
        (D.LogNormal(0.0, 1e-15), D.LogNormal(0.0, 2e-15)),
        (D.Pareto(1.0, 1e18), D.Pareto(1.0, 2e18)),
        (D.Beta(1e40, 1e40), D.Beta(2e40, 2e40)),
    ],
    ids=repr,
)
def test_draws_that_are_too_coarse_are_told_of(p, q):
    with pytest.warns(RuntimeWarning, match="the draws are rounded to numbers too far apart for p or q") as told:
        value, error = by_draws(p, q)
    assert [x.filename for x in told] == [__file__]  # the caller's line
    assert abs(value - kl.kl_divergence(p, q)) <= 5.0 * error


def test_the_rounding_of_ordinary_draws_does_not_show():
    """The error is the standard error but for its last digits."""
    _, error = by_draws(D.Normal(0.0, 1.0), D.Normal(1.0, 1.0), samples=1_000_000)
    assert error == pytest.approx(1e-3, rel=2e-3)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Gamma(1e-3, 1.0), D.Gamma(2e-3, 1.0)),
        (D.Gamma(1e-3, 1.0), D.LogNormal(0.0, 100.0)),
        (D.InverseGamma(1e-3, 1.0), D.InverseGamma(2e-3, 1.0)),
        (D.Chi2(1e-3), D.Chi2(2e-3)),
        (D.Chi(1e-3), D.Chi(2e-3)),
        (D.Weibull(1.0, 1e-3), D.Weibull(1.0, 2e-3)),
        (D.Pareto(1.0, 1e-3), D.Pareto(0.5, 2e-3)),
        (D.LogNormal(0.0, 1e3), D.LogNormal(0.0, 2e3)),
        (D.Beta(1e-3, 1e-3), D.Beta(2e-3, 1e-3)),
        (D.Beta(1.0, 0.05), D.Beta(1.0, 1.0)),
        (D.Kumaraswamy(1e-3, 1e-3), D.Kumaraswamy(2e-3, 2e-3)),
        (D.LogitNormal(0.0, 1e3), D.LogitNormal(1.0, 2e3)),
        (D.Independent(D.Gamma([1e-3, 2.0], 1.0), 1), D.Independent(D.Gamma([2e-3, 3.0], 1.0), 1)),
        (D.Dirichlet([0.05] * 10), D.Dirichlet([0.1] * 10)),
        (D.Dirichlet([1e-4] * 3), D.Dirichlet([2e-4] * 3)),
        (D.Dirichlet([0.005, 3.0]), D.Dirichlet([1.0, 3.0])),
        (D.Dirichlet([1e-2] * 3), D.Dirichlet([2e-2, 1e-2, 2.0])),
        (D.Dirichlet([1e-4, 2.0, 1e8]), D.Dirichlet([2e-4, 3.0, 1.001e8])),
        (D.Dirichlet([1e8] * 3), D.Dirichlet([1.0001e8] * 3)),  # whose gamma functions have logarithms of 1e10
    ],
    ids=repr,
)
def test_draws_and_densities_at_the_ends_of_the_range(p, q):
    assert_drawn(p, q)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Wishart(1.5, scale_tril=np.eye(2)), D.Wishart(2.5, scale_tril=np.eye(2))),
        (D.Wishart(2.1, SPREAD), D.Wishart(4.0, precision_matrix=SPREAD)),
        (D.Wishart(2.001, SPREAD), D.Wishart(4.0, np.eye(3))),
        (D.Wishart(1e-3, np.eye(1)), D.Wishart(2e-3, np.eye(1))),
        (D.InverseWishart(2.1, SPREAD), D.InverseWishart(4.0, np.eye(3))),
        (D.Independent(D.Wishart([1.5, 1.1], np.eye(2)), 1), D.Independent(D.Wishart([2.5, 3.0], np.eye(2)), 1)),
    ],
    ids=lambda d: type(d).__name__,
)
def test_matrices_whose_determinant_no_digit_shows(p, q):
    assert_drawn(p, q)


def test_the_density_of_matrices_is_that_of_scipy():
    """Where there are digits: the mean of log(p/q) over draws of one family from the other."""
    p, q = D.Wishart(7.0, SPREAD), D.InverseWishart(5.0, SPREAD)
    for one, other in ((p, q), (q, p)):
        value, spread = by_draws(one, other)
        x = np.moveaxis(one.to_scipy().rvs(20_000, random_state=3), 0, -1)
        ratios = one.to_scipy().logpdf(x) - other.to_scipy().logpdf(x)
        assert abs(value - ratios.mean()) <= 5.0 * (spread + ratios.std() / math.sqrt(20_000))


def test_inverse_matrices_whose_factors_are_no_numbers():
    with pytest.warns(RuntimeWarning, match="beyond the range of numbers"):
        value, spread = by_draws(D.InverseWishart(2.001, SPREAD), D.InverseWishart(4.0, np.eye(3)))
    assert math.isnan(value)
    assert spread == math.inf


@pytest.mark.parametrize(
    ("p", "words"),
    [
        (D.Poisson(1e19), r"p: Poisson\(.*\) cannot be drawn from: lam value too large; the closed form, or another"),
        (D.Geometric(1e-19), r"p: Geometric\(.*\) cannot be drawn from: a draw is beyond the largest integer of NumPy"),
    ],
)
def test_counts_that_no_generator_draws(p, words):
    with pytest.raises(ValueError, match=words):
        by_draws(p, p)


def test_counts_that_are_not_all_numbers():
    """Of 2**60 every 256th integer is a number; the two are 1e9 wide."""
    assert_drawn(D.Poisson(2.0**60), D.Poisson(2.0**60 + 2.0**30))


@pytest.mark.parametrize(
    ("p", "q", "words"),
    [
        (D.Dirichlet([1.0, 2.0]), D.Independent(D.Beta([1.0, 1.0], 1.0), 1), "over a simplex .* over numbers"),
        (D.SphericalUniform(2), D.MultivariateNormal([0.0, 0.0], np.eye(2)), "over a sphere .* over numbers"),
        (D.Wishart(3.0, np.eye(2)), D.MatrixNormal(np.eye(2), np.eye(2), np.eye(2)), "over positive definite matrices"),
    ],
    ids=["simplex", "sphere", "matrices"],
)
def test_densities_over_other_things_have_nothing_to_do_with_each_other(p, q, words):
    with pytest.raises(ValueError, match=words):
        by_draws(p, q)


def test_the_error_counts_the_rounding_of_the_logarithms():
    """Of two uniform distributions log(p/q) is the same at every draw."""
    value, spread = by_draws(D.Uniform(0.0, 1.0), D.Uniform(-1.0, 1.0))
    assert abs(value - math.log(2.0)) <= spread <= 1e-15
