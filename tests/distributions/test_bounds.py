"""Bounds of KL between mixtures hold, against the integral on a fine grid."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import klnumba as kl
from klnumba.distributions import Categorical, Gamma, Mixture, MultivariateNormal, Normal, Poisson

GRID = np.linspace(-40.0, 40.0, 200_001)


def mixture(rng, count, spread=2.0):
    weights, loc, scale = rng.dirichlet(np.ones(count)), spread * rng.normal(size=count), rng.uniform(0.3, 2.0, count)
    return Mixture(Categorical(weights), Normal(loc, scale)), (weights, loc, scale)


def log_density(weights, loc, scale):
    return logsumexp(stats.norm.logpdf(GRID[:, None], loc, scale), axis=1, b=weights)


@pytest.mark.parametrize("seed", range(25))
def test_normal_mixtures(seed):
    rng = np.random.default_rng(seed)
    (p, first), (q, second) = (mixture(rng, rng.integers(1, 6)) for _ in range(2))
    f, g = log_density(*first), log_density(*second)
    true = np.sum(np.exp(f) * (f - g)) * (GRID[1] - GRID[0])
    found = kl.kl_divergence(p, q, method="bounds")
    assert 0.0 <= found.lower <= true * (1 + 1e-9)
    assert true * (1 - 1e-9) <= found.upper
    assert found.upper < 3.0 * true + 1.0, "a bound that says nothing"


def test_one_component_each_is_the_closed_form():
    p, q = Normal(0.0, 1.0), Normal(1.0, 2.0)
    mixtures = [Mixture(Categorical([1.0]), Normal([x.loc], [x.scale])) for x in (p, q)]
    found = kl.kl_divergence(*mixtures, method="bounds")
    assert found.upper == pytest.approx(kl.kl_divergence(p, q), rel=1e-14)


def test_equal_mixtures():
    p, _ = mixture(np.random.default_rng(0), 4)
    found = kl.kl_divergence(p, p, method="bounds")
    assert found.lower == 0.0
    assert 0.0 <= found.upper < 1e-6


def test_a_mixture_and_a_plain_distribution():
    p = Mixture(Categorical([0.5, 0.5]), MultivariateNormal([[0.0, 0.0], [3.0, 3.0]], np.eye(2)))
    q = MultivariateNormal([0.0, 0.0], 3.0 * np.eye(2))
    rng = np.random.default_rng(1)
    draws = rng.normal(size=(200_000, 2)) + 3.0 * rng.integers(0, 2, (200_000, 1))
    one = [stats.multivariate_normal(mean, np.eye(2)).pdf(draws) for mean in ([0, 0], [3, 3])]
    logs = np.log(0.5 * (one[0] + one[1])) - stats.multivariate_normal([0, 0], 3.0 * np.eye(2)).logpdf(draws)
    found = kl.kl_divergence(p, q, method="bounds")
    error = 5.0 * logs.std() / math.sqrt(logs.size)
    assert found.lower - error <= logs.mean() <= found.upper + error


def test_other_families_have_a_trivial_lower_bound():
    p = Mixture(Categorical([0.3, 0.7]), Gamma([1.0, 2.0], 1.0))
    q = Mixture(Categorical([0.5, 0.5]), Gamma([1.0, 5.0], 2.0))
    x = np.linspace(1e-6, 60.0, 400_001)
    f = 0.3 * stats.gamma.pdf(x, 1.0) + 0.7 * stats.gamma.pdf(x, 2.0)
    g = 0.5 * stats.gamma.pdf(x, 1.0, scale=0.5) + 0.5 * stats.gamma.pdf(x, 5.0, scale=0.5)
    found = kl.kl_divergence(p, q, method="bounds")
    assert found.lower == 0.0
    assert np.sum(f * np.log(f / g)) * (x[1] - x[0]) <= found.upper


def test_components_without_weight_do_not_matter():
    p = Mixture(Categorical([1.0, 0.0]), Normal([0.0, 9.0], 1.0))
    q = Mixture(Categorical([0.5, 0.5]), Normal([0.0, 2.0], 1.0))
    alone = kl.kl_divergence(Normal(0.0, 1.0), q, method="bounds")
    assert kl.kl_divergence(p, q, method="bounds") == alone


def test_far_components():
    """exp(-KL) of all components underflows; the bound holds nevertheless."""
    p = Mixture(Categorical([0.25, 0.75]), Normal([0.0, 100.0], 0.01))
    q = Mixture(Categorical([0.5, 0.5]), Normal([1000.0, -1000.0], 1.0))
    found = kl.kl_divergence(p, q, method="bounds")
    nearest = 0.25 * kl.kl_divergence(Normal(0.0, 0.01), Normal(1000.0, 1.0))
    assert math.isfinite(found.upper)
    assert nearest < found.upper
    assert found.lower <= found.upper


def test_infinite():
    p = Mixture(Categorical([0.5, 0.5]), Normal([0.0, 1.0], 1.0))
    q = Mixture(Categorical([1.0]), kl.distributions.Uniform([0.0], [1.0]))
    assert kl.kl_divergence(p, q, method="bounds").upper == math.inf


def test_batches_and_bases():
    rng = np.random.default_rng(2)
    (p, _), (q, second) = mixture(rng, 3), mixture(rng, 2)
    weights, loc, scale = second
    many = Mixture(Categorical(weights), Normal(np.stack([loc, loc + 1.0]), scale))
    found = kl.kl_divergence(p, many, method="bounds", base=2)
    assert found.lower.shape == found.upper.shape == (2,)
    assert found.upper[0] == pytest.approx(kl.kl_divergence(p, q, method="bounds").upper / math.log(2))


@pytest.mark.parametrize(("p", "options", "text"), [
    (Normal(0.0, 1.0), {}, "'bounds' is for mixtures"),
    (mixture(np.random.default_rng(0), 2)[0], {"return_error": True}, "return_error: bounds have none"),
])  # fmt: skip
def test_refused(p, options, text):
    with pytest.raises(ValueError, match=text):
        kl.kl_divergence(p, p, method="bounds", **options)


def test_no_closed_form_between_components():
    p = Mixture(Categorical([0.5, 0.5]), Poisson([1.0, 2.0]))
    with pytest.raises(NotImplementedError, match="is not registered"):
        kl.kl_divergence(p, Mixture(Categorical([1.0]), Normal([0.0], 1.0)), method="bounds")
