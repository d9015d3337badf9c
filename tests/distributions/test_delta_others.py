"""From one place to categories, mixtures, transformed distributions, vectors, and families of the user's own."""

from __future__ import annotations

import math

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions.constraint import POSITIVE


class Plain(D.Distribution):
    parameters = ("scale",)
    scale = D.Parameter(POSITIVE)

    def __init__(self, scale):
        super().__init__(scale=scale)


class Positive(Plain):
    @property
    def support(self):
        return D.Support(0.0, math.inf)


class Counts(Plain):
    @property
    def support(self):
        return D.Support(0, math.inf, discrete=True)


def of(base, *chain):
    return D.TransformedDistribution(base, chain)


@pytest.mark.parametrize(
    ("v", "q", "expected"),
    [
        ([0.0, 1.0, 2.0, 3.0, -1.0, 0.5], D.Categorical([1.0, 2.0, 1.0]), [0.25, 0.5, 0.25, 0.0, 0.0, 0.0]),
        ([0.0, 2.0], D.Categorical([[1.0, 0.0, 0.0], [1.0, 1.0, 2.0]]), [1.0, 0.5]),
        ([[0.0], [1.0]], D.Categorical(logits=np.log([[1.0, 3.0], [3.0, 1.0]])), [[0.25, 0.75], [0.75, 0.25]]),
        (
            [0.0, 1.0, 2.0],
            D.Mixture(D.Categorical([0.25, 0.75]), D.Bernoulli([0.5, 0.25])),
            [0.6875, 0.3125, 0.0],
        ),
        (2.0, D.Mixture(D.Categorical([0.25, 0.75]), D.Delta([2.0, 3.0])), 0.25),
        ([2.0, 5.0, 4.0], of(D.Binomial(2, 0.5), D.AffineTransform(1.0, 2.0)), [0.0, 0.25, 0.0]),
        ([1.0, np.exp(2.0)], of(D.Binomial(2, 0.5), D.ExpTransform()), [0.25, 0.25]),
        ([0.0, 4.0, 2.0, -4.0], of(D.Binomial(2, 0.5), D.PowerTransform(2.0)), [0.25, 0.25, 0.0, 0.0]),
        (4.0, of(D.Binomial(2, 0.5), D.AffineTransform(0.0, -1.0), D.PowerTransform(2.0)), 0.25),
        (2.0, of(D.Binomial(2, 0.5), D.AffineTransform(0.0, -1.0), D.AbsTransform()), 0.25),
        (-8.0, of(D.Binomial(2, 0.5), D.AffineTransform(0.0, -1.0), D.PowerTransform(3.0)), 0.25),
        (0.5, of(D.Binomial(2, 0.5), D.SigmoidTransform()), 0.25),
        (0.0, of(D.Binomial(2, 0.5), D.TanhTransform()), 0.25),
        ([math.exp(0.3), 1.0], of(D.Delta(0.3), D.ExpTransform()), [1.0, 0.0]),
    ],
)
def test_it_is_minus_the_logarithm_of_a_probability(v, q, expected):
    with np.errstate(divide="ignore"):
        wanted = -np.log(np.asarray(expected))
    found = kl.kl_divergence(D.Delta(v), q)
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=4e-16, atol=0.0)


def test_a_probability_close_to_1_keeps_its_digits():
    assert kl.kl_divergence(D.Delta(0.0), D.Categorical([1.0, 1e-20])) == pytest.approx(1e-20, rel=1e-15)
    q = D.Mixture(D.Categorical([0.5, 0.5]), D.Poisson([1e-20, 3e-20]))
    assert kl.kl_divergence(D.Delta(0.0), q) == pytest.approx(2e-20, rel=1e-15)
    far = D.Mixture(D.Categorical([0.5, 0.5]), D.Poisson([1000.0, 2000.0]))
    assert kl.kl_divergence(D.Delta(0.0), far) == pytest.approx(1000.0 + math.log(2.0), rel=1e-15)


@pytest.mark.parametrize(
    "q",
    [
        D.Mixture(D.Categorical([0.25, 0.75]), D.Normal([0.0, 1.0], 1.0)),
        of(D.Normal(), D.ExpTransform()),
        Positive(1.0),
    ],
)
def test_it_is_infinite_to_whatever_is_continuous(q):
    np.testing.assert_array_equal(kl.kl_divergence(D.Delta([0.0, 1.0]), q), math.inf)


def test_vectors():
    p = D.Independent(D.Delta([0.0, 1.0]), 1)
    for q in (
        D.MultivariateNormal([0.0, 1.0], np.eye(2)),
        D.LowRankMultivariateNormal([0.0, 1.0], [[1.0], [1.0]], [1.0, 1.0]),
    ):
        assert kl.kl_divergence(p, q) == kl.kl_divergence(q, p) == math.inf
    assert kl.kl_divergence(p, D.Independent(D.Poisson([2.0, 1.0]), 1)) == 3.0
    with pytest.raises(ValueError, match=r"a draw of Delta is a number, one of Dirichlet has the shape \(2,\)"):
        kl.kl_divergence(D.Delta(0.5), D.Dirichlet([1.0, 1.0]))


def test_what_nothing_is_known_of():
    with pytest.raises(NotImplementedError, match=r"Counts.* minus the logarithm of the probability of v"):
        kl.kl_divergence(D.Delta(0.0), Counts(1.0))
    with pytest.raises(NotImplementedError, match="Plain has no support"):
        kl.kl_divergence(D.Delta(0.0), Plain(1.0))


def test_large_counts_of_small_probability_keep_their_digits():
    """The rounding of 1 - p must not count."""
    for r, p in ((1e6, 1e-10), (1e15, 1e-15)):
        q = D.NegativeBinomial(r, p)
        poisson = kl.kl_divergence(D.Delta(3.0), D.Poisson(float(q.mean)))
        assert kl.kl_divergence(D.Delta(3.0), q) == pytest.approx(float(poisson), rel=10.0 / r)
