"""Every kind of SciPy's objects that is known, and locations and scales that are moved where that is exact."""

from __future__ import annotations

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions import scipy_objects

stats = pytest.importorskip("scipy.stats")
integrate = pytest.importorskip("scipy.integrate")

SQUARE = [[2.0, 0.5], [0.5, 1.0]]
VECTORS = {
    "dirichlet_frozen": (lambda x: stats.dirichlet([1.0, x]), lambda x: D.Dirichlet([1.0, x])),
    "matrix_normal_frozen": (
        lambda x: stats.matrix_normal([[0.0, x]], [[2.0]], SQUARE),
        lambda x: D.MatrixNormal([[0.0, x]], [[2.0]], SQUARE),
    ),
    "invwishart_frozen": (lambda x: stats.invwishart(4 + x, SQUARE), lambda x: D.InverseWishart(4 + x, SQUARE)),
    "multinomial_frozen": (
        lambda x: stats.multinomial(5, [x / 4, 1 - x / 4]),
        lambda x: D.Multinomial(5, [x / 4, 1 - x / 4]),
    ),
    "multivariate_normal_frozen": (
        lambda x: stats.multivariate_normal([0.0, x], SQUARE),
        lambda x: D.MultivariateNormal([0.0, x], SQUARE),
    ),
    "uniform_direction_frozen": (lambda x: stats.uniform_direction(3), lambda x: D.SphericalUniform(3)),
    "vonmises_fisher_frozen": (
        lambda x: stats.vonmises_fisher([0.0, 1.0], x),
        lambda x: D.VonMisesFisher([0.0, 1.0], x),
    ),
    "wishart_frozen": (lambda x: stats.wishart(4 + x, SQUARE), lambda x: D.Wishart(4 + x, SQUARE)),
}
NEW = {
    "Binomial": (lambda x: stats.Binomial(n=10, p=x / 4), lambda x: D.Binomial(10, x / 4)),
    "Logistic": (lambda x: stats.Logistic(), lambda x: D.Logistic()),
    "Normal": (lambda x: stats.Normal(mu=x, sigma=2.0), lambda x: D.Normal(x, 2.0)),
    "StandardNormal": (lambda x: stats.Normal(), lambda x: D.Normal()),
    "Uniform": (lambda x: stats.Uniform(a=-x, b=3.0), lambda x: D.Uniform(-x, 3.0)),
}


@pytest.mark.parametrize("kind", sorted(scipy_objects.FROZEN_VECTORS | scipy_objects.NEW_SCIPY))
def test_every_kind_that_is_known(kind):
    theirs, ours = (VECTORS | NEW)[kind]
    p, q = theirs(1.0), theirs(0.5)
    assert type(p).__name__ == kind
    assert kl.kl_divergence(p, q) == kl.kl_divergence(ours(1.0), ours(0.5))
    assert repr(type(ours(1.0)).from_scipy(p)) == repr(ours(1.0))


@pytest.mark.parametrize(
    ("p", "q", "same"),
    [
        (stats.gamma(2.0, loc=1.0), stats.norm(0.0, 3.0), (D.Gamma(2.0, 1.0), D.Normal(-1.0, 3.0))),
        (stats.gamma(2.0, loc=1.0), stats.Normal(mu=0.0, sigma=3.0), (D.Gamma(2.0, 1.0), D.Normal(-1.0, 3.0))),
        (stats.gamma(2.0, loc=1.0), D.Normal(0.0, 3.0), (D.Gamma(2.0, 1.0), D.Normal(-1.0, 3.0))),
        (stats.norm(0.0, 3.0), stats.gamma(2.0, loc=1.0), (D.Normal(-1.0, 3.0), D.Gamma(2.0, 1.0))),
        (stats.expon(1.0), stats.laplace(0.0, 1.0), (D.Exponential(1.0), D.Laplace(-1.0, 1.0))),
        (stats.beta(2, 3, loc=1, scale=4), stats.norm(0.0, 2.0), (D.Beta(2.0, 3.0), D.Normal(-0.25, 0.5))),
        (stats.beta(2, 3, scale=4), stats.gamma(2.0), (D.Beta(2.0, 3.0), D.Gamma(2.0, 4.0))),
        (stats.uniform(1.0, 3.0), stats.beta(2, 3, scale=8), (D.Uniform(0.125, 0.5), D.Beta(2.0, 3.0))),
        (D.Uniform(1.0, 4.0), stats.beta(2, 3, scale=8), (D.Uniform(0.125, 0.5), D.Beta(2.0, 3.0))),
        (stats.gamma([2, 3], loc=[1, 1]), stats.gamma(3, loc=1), (D.Gamma([2.0, 3.0], 1.0), D.Gamma(3.0, 1.0))),
        (stats.gamma(2, loc=[[1], [2]]), stats.norm([[1], [2]]), (D.Gamma([[2.0]] * 2, 1.0), D.Normal())),
        (stats.poisson(2, loc=[1, 2]), stats.poisson(3, loc=[1, 2]), (D.Poisson([2.0, 2.0]), D.Poisson(3.0))),
        (stats.vonmises(2.0, 1, 2), stats.vonmises(3.0, 2, 2), (D.VonMises(0.5, 2.0), D.VonMises(1.0, 3.0))),
        # special cases of families
        (stats.rayleigh(scale=2.0), stats.rayleigh(scale=3.0), (D.Exponential(0.125), D.Exponential(1 / 18))),
        (stats.rayleigh(1.0), stats.rayleigh(1.0, 2.0), (D.Exponential(0.5), D.Exponential(0.125))),
        (stats.wald(scale=2.0), stats.wald(scale=3.0), (D.InverseGaussian(2.0, 2.0), D.InverseGaussian(3.0, 3.0))),
        (stats.reciprocal(1.0, 2.0), stats.reciprocal(0.5, 3.0), (D.LogUniform(1.0, 2.0), D.LogUniform(0.5, 3.0))),
        # as squares
        (stats.chi(2, scale=2), stats.chi(3, scale=3), (D.Gamma(1.0, 0.125), D.Gamma(1.5, 1 / 18))),
        (stats.maxwell(1.0, 2), stats.maxwell(1.0, 3), (D.Gamma(1.5, 0.125), D.Gamma(1.5, 1 / 18))),
        (stats.maxwell(scale=2), stats.rayleigh(scale=3), (D.Gamma(1.5, 0.125), D.Gamma(1.0, 1 / 18))),
        # mirrored
        (stats.gumbel_l(1.0, 2.0), stats.gumbel_l(0.0, 3.0), (D.Gumbel(-1.0, 2.0), D.Gumbel(0.0, 3.0))),
        (stats.norm(1.0, 2.0), stats.gumbel_l(0.0, 3.0), (D.Normal(-1.0, 2.0), D.Gumbel(0.0, 3.0))),
        (stats.uniform(1.0, 2.0), stats.gumbel_l(0.0, 3.0), (D.Uniform(-3.0, -1.0), D.Gumbel(0.0, 3.0))),
        (stats.weibull_max(2.0, 1), stats.weibull_max(1.5, 1), (D.Weibull(1.0, 2.0), D.Weibull(1.0, 1.5))),
        # SciPy's shifted and scaled distributions, and mixtures
        (2.0 * stats.Normal(mu=1.0, sigma=3.0) + 1.0, stats.norm(), (D.Normal(3.0, 6.0), D.Normal())),
        (1.0 - 2.0 * stats.Normal(mu=1.0, sigma=3.0), stats.norm(), (D.Normal(-1.0, 6.0), D.Normal())),
        (stats.Logistic() + 1.0, stats.logistic(2.0), (D.Logistic(1.0, 1.0), D.Logistic(2.0, 1.0))),
    ],
)
def test_a_location_and_a_scale_are_moved_where_that_is_exact(p, q, same):
    found, expected = kl.kl_divergence(p, q), kl.kl_divergence(*same)
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_mixtures_of_scipy():
    p, q = (stats.Mixture([stats.Normal(mu=x, sigma=1.0) for x in (0.0, y)], weights=[0.25, 0.75]) for y in (3.0, 4.0))
    ours = [D.Mixture(D.Categorical([0.25, 0.75]), D.Normal([0.0, y], 1.0)) for y in (3.0, 4.0)]
    assert kl.kl_divergence(p, q, method="bounds") == kl.kl_divergence(*ours, method="bounds")
    mixed = stats.Mixture([stats.Normal(), stats.Uniform(a=0.0, b=1.0)], weights=[0.25, 0.75])
    with pytest.raises(TypeError, match=r"q: scipy\.stats' Mixture has no counterpart"):
        kl.kl_divergence(p, mixed, method="bounds")


def test_a_tensor_stays_one():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    found = kl.kl_divergence(stats.gamma(2.0, loc=1.0), torch.distributions.Normal(0.0, 3.0))
    assert found.item() == kl.kl_divergence(D.Gamma(2.0, 1.0), D.Normal(-1.0, 3.0))


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (stats.gamma(2.0, loc=1.0), stats.norm(0.0, 3.0)),
        (stats.beta(2, 3, scale=4.0), stats.beta(3, 3, scale=4.0)),
        (stats.beta(2, 3, loc=-1.0, scale=4.0), stats.norm(1.0, 2.0)),
        (stats.chi(2, scale=2.0), stats.chi(3, scale=3.0)),  # as squares
        (stats.maxwell(scale=2.0), stats.rayleigh(scale=3.0)),
        (stats.arcsine(scale=0.25), stats.beta(2.0, 1.0, scale=0.25)),
        (stats.powerlaw(2.0, loc=1.0, scale=0.5), stats.norm(0.0, 3.0)),
        (stats.uniform(1.0, 3.0), stats.beta(2, 3, scale=8)),
        (stats.gumbel_l(1.0, 2.0), stats.gumbel_l(2.0, 3.0)),
        (3.0 - 2.0 * stats.Normal(mu=1.0, sigma=2.0), stats.Normal()),
    ],
)
def test_a_cross_entropy_sees_the_scale(p, q):
    """The integral of -p log q, by SciPy's own densities."""

    def below(x):
        return -p.pdf(x) * q.logpdf(x) if p.pdf(x) > 0.0 else 0.0

    low, high = p.support()
    middle = p.median()
    with np.errstate(over="ignore"):
        parts = [integrate.quad(below, *ends, epsabs=0.0, limit=500)[0] for ends in ((low, middle), (middle, high))]
    np.testing.assert_allclose(kl.cross_entropy(p, q), sum(parts), rtol=1e-8)


def test_a_cross_entropy_of_batches_and_counts():
    p, q = stats.beta([2.0, 3.0], 3, scale=[[4.0], [5.0]]), stats.beta(3, 3, scale=[[4.0], [5.0]])
    for at, (a, scale) in np.ndenumerate(np.array([[(2.0, 4.0), (3.0, 4.0)], [(2.0, 5.0), (3.0, 5.0)]], "d,d")):
        single = kl.cross_entropy(stats.beta(a, 3, scale=scale), stats.beta(3, 3, scale=scale))
        assert kl.cross_entropy(p, q)[at] == single
    counts = np.arange(1, 200)
    p, q = stats.geom(0.3), stats.geom(0.5)
    expected = -np.sum(p.pmf(counts) * q.logpmf(counts))
    np.testing.assert_allclose(kl.cross_entropy(p, q), expected, rtol=1e-13)
    assert kl.cross_entropy(stats.uniform(0.0, 4.0), stats.beta(2, 3, scale=2.0)) == np.inf


@pytest.mark.parametrize(
    ("p", "q", "words"),
    [
        (stats.gamma(2.0, loc=1.0), stats.gamma(2.0), "p: Gamma has no location, but loc is 1.0"),
        (stats.gamma(2.0), stats.gamma(2.0, loc=1.0), "q: Gamma has no location, but loc is 1.0"),
        (stats.gamma(2.0, loc=[1.0, 2.0]), stats.gamma(2.0, loc=1.0), r"p: Gamma has no location, but loc is \[1"),
        (stats.geom(0.3), stats.poisson(1.0), r"p: Geometric counts from 0.* geom\(p, loc=-1\), but loc is 0"),
        (stats.norm(0.0, -1.0), stats.norm(), "p: Normal: scale must be a finite number > 0, but scale is -1.0"),
        (stats.rayleigh(scale=-1.0), stats.rayleigh(), "p: Weibull: scale must be"),
        (stats.chi(3, scale=-1.0), stats.chi(3), "p: Chi has no scale"),
        (stats.beta(-2.0, 3, scale=4.0), stats.norm(), "p: Beta: concentration1 must be"),
        (stats.beta(2.0, -3, scale=4.0), stats.norm(), "p: Beta: concentration0 must be"),
        (stats.norm(), stats.gamma([2.0, -1.0], loc=1.0), "q: Gamma: concentration must be"),
        (stats.weibull_max(-1.0), stats.weibull_max(2.0), "p: Weibull: concentration must be"),
        (stats.geom(1.5, loc=3), stats.geom(0.5, loc=3), "p: Geometric: probs must be"),
        (stats.gamma(2.0, loc=np.inf), stats.gamma(2.0, loc=np.inf), "p: Gamma has no location, but loc is inf"),
    ],
)
def test_what_is_not_exact_is_refused(p, q, words):
    with pytest.raises(ValueError, match=words):
        kl.kl_divergence(p, q)


@pytest.mark.parametrize(
    "parts",
    [
        D.Normal([0.0, 2.0], [1.0, 0.5]),
        D.Uniform([0.0, 0.25], [3.0, 1.5]),
        D.Logistic([0.0, 2.0], [3.0, 0.5]),
        D.Gamma([2.0, 3.0], 0.5),
        D.Laplace([0.0, 1.0], 0.5),
        D.Beta(2.0, [3.0, 0.5]),
    ],
    ids=lambda x: type(x).__name__,
)
def test_mixtures_are_those_of_scipy(parts):
    ours = D.Mixture(D.Categorical([0.25, 0.75]), parts)
    theirs = ours.to_scipy()
    x = np.array([0.125, 0.5, 0.75])
    expected = sum(w * parts.one((i,)).to_scipy().pdf(x) for i, w in enumerate((0.25, 0.75)))
    np.testing.assert_allclose(theirs.pdf(x), expected, rtol=1e-13)
    if type(parts) in (D.Normal, D.Uniform, D.Logistic):  # of others SciPy's class is one without a name
        assert repr(D.Mixture.from_scipy(theirs)) == repr(ours)


def test_mixtures_that_scipy_does_not_have():
    choice = D.Categorical([0.25, 0.75])
    with pytest.raises(ValueError, match=r"scipy.stats.Mixture is one distribution, not \(2,\)"):
        D.Mixture(choice, D.Normal(np.zeros((2, 2)), 1.0)).to_scipy()
    for parts in (D.Poisson([1.0, 2.0]), D.MultivariateNormal(np.zeros((2, 2)), np.eye(2))):
        with pytest.raises(NotImplementedError, match=r"scipy.stats.Mixture is of continuous numbers, not of"):
            D.Mixture(choice, parts).to_scipy()
    with pytest.raises(NotImplementedError, match=r"Lindley: scipy.stats has no counterpart"):
        D.Mixture(choice, D.Lindley([1.0, 2.0])).to_scipy()
