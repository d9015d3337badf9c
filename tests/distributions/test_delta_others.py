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


@pytest.mark.parametrize(
    "q",
    [
        D.MultivariateNormal([0.0, 1.0], np.eye(2)),
        D.LowRankMultivariateNormal([0.0, 1.0], [[1.0], [1.0]], [1.0, 1.0]),
        D.Dirichlet([1.0, 1.0]),
        D.VonMisesFisher([0.0, 1.0], 2.0),
        D.SphericalUniform(2),
        D.PowerSpherical([0.0, 1.0], 2.0),
        D.NormalGamma(0.0, 1.0, 1.0, 1.0),
        D.Independent(D.Normal([0.0, 1.0], 1.0), 1),
        D.Mixture(D.Categorical([0.5, 0.5]), D.MultivariateNormal(np.eye(2), np.eye(2))),
        of(D.MultivariateNormal([0.0, 1.0], np.eye(2)), D.ExpTransform()),
        of(D.MultivariateNormal([0.0], [[1.0]]), D.StickBreakingTransform()),
        D.MatrixNormal(np.eye(2), np.eye(2), np.eye(2)),
        D.Wishart(3.0, np.eye(2)),
        D.InverseWishart(3.0, np.eye(2)),
    ],
    ids=lambda q: type(q).__name__,
)
def test_vectors_and_matrices_are_infinitely_far_from_what_is_continuous(q):
    axes = len(q.event_shape)
    place = [0.0, 1.0] if axes == 1 else np.eye(2)
    p = D.Independent(D.Delta(place), axes)
    assert kl.kl_divergence(p, q) == kl.kl_divergence(q, p) == math.inf
    batch = D.Independent(D.Delta(np.stack([np.asarray(place)] * 3)[:, None]), axes)
    for found in (kl.kl_divergence(batch, q), kl.kl_divergence(q, batch)):
        np.testing.assert_array_equal(found, np.full((3, 1), math.inf))


def test_vectors_of_counts():
    p = D.Independent(D.Delta([0.0, 1.0]), 1)
    assert kl.kl_divergence(p, D.Independent(D.Poisson([2.0, 1.0]), 1)) == 3.0
    nested = D.Independent(D.Independent(D.Delta([[0.0, 1.0], [1.0, 0.0]]), 1), 1)
    assert kl.kl_divergence(nested, D.Independent(D.Poisson([[2.0, 1.0], [1.0, 2.0]]), 2)) == 6.0
    components = D.Independent(D.Poisson([[1.0, 2.0], [2.0, 1.0]]), 1)
    q = D.Mixture(D.Categorical([0.25, 0.75]), components)
    expected = -math.log(0.25 * 2.0 + 0.75 * 1.0) + 3.0
    assert kl.kl_divergence(p, q) == pytest.approx(expected, rel=4e-16)
    q = of(D.Independent(D.Binomial([2.0, 2.0], 0.5), 1), D.AffineTransform(0.0, [1.0, 0.5]))
    assert kl.kl_divergence(p, q) == pytest.approx(math.log(16.0), rel=4e-16)
    assert kl.kl_divergence(D.Independent(D.Delta([0.0, 0.75]), 1), q) == math.inf


def test_batches_of_vectors_broadcast():
    counts = np.array([[3.0, 0.0, 1.0], [2.0, 2.0, 0.0], [1.0, 1.0, 1.0]])
    p = D.Independent(D.Delta(counts), 1)
    q = D.Multinomial(4, logits=np.log([[0.25, 0.25, 0.5], [1.0, 1.0, 2.0]])[:, None])
    with np.errstate(divide="ignore"):
        expected = -np.log([4 * 0.25**3 * 0.5, 6 * 0.25**4, 0.0])
    np.testing.assert_allclose(kl.kl_divergence(p, q), [expected, expected], rtol=1e-15)
    vectors = D.Independent(D.Delta(np.eye(3)), 1)
    found = kl.kl_divergence(vectors, D.OneHotCategorical([0.25, 0.25, 0.5]))
    np.testing.assert_allclose(found, np.log([4.0, 4.0, 2.0]), rtol=1e-15)


@pytest.mark.parametrize(
    ("p", "v", "alone"),
    [
        (D.Poisson([0.0, 1e-300]), 0.0, [True, False]),
        (D.Poisson(0.0), 1.0, False),
        (D.Binomial(3, [0.0, 1.0, 0.5]), 3.0, [False, True, False]),
        (D.Bernoulli(logits=800.0), 1.0, False),
        (D.Geometric([1.0, 0.5]), 0.0, [True, False]),
        (D.NegativeBinomial(2.0, [0.0, 0.5]), 0.0, [True, False]),
        (D.Categorical([[0.0, 1.0], [1e-300, 1.0]]), 1.0, [True, False]),
        (D.Categorical([0.0, 1.0]), 2.0, False),
        (D.Categorical(logits=[[800.0, -math.inf, 0.0], [0.0, -math.inf, -math.inf]]), 0.0, [False, True]),
        (D.Mixture(D.Categorical([0.5, 0.5]), D.Delta([[2.0, 2.0], [2.0, 3.0]])), 2.0, [True, False]),
        (of(D.Poisson([0.0, 1.0]), D.AffineTransform(1.0, 2.0)), 1.0, [True, False]),
        (D.OneHotCategorical([[0.0, 1.0], [0.5, 0.5]]), [0.0, 1.0], [True, False]),
        (D.Multinomial(2, [[0.0, 1.0], [0.5, 0.5]]), [0.0, 2.0], [True, False]),
        (Positive(1.0), 1.0, False),
    ],
    ids=lambda x: type(x).__name__,
)
def test_to_one_place_it_is_infinite_unless_all_mass_is_there(p, v, alone):
    q = D.Independent(D.Delta(v), 1) if np.ndim(v) else D.Delta(v)
    found = kl.kl_divergence(p, q)
    np.testing.assert_array_equal(found, np.where(alone, 0.0, math.inf))
    assert np.shape(found) == np.shape(alone)


def test_an_independent_of_no_axes_is_its_base():
    alone = D.Independent(D.Poisson([1.0, 2.0]), 0)
    np.testing.assert_array_equal(kl.kl_divergence(D.Delta(0.0), alone), [1.0, 2.0])
    np.testing.assert_array_equal(kl.kl_divergence(alone, D.Delta(0.0)), [math.inf, math.inf])
    np.testing.assert_array_equal(kl.kl_divergence(D.Independent(D.Delta(0.0), 0), D.Poisson([1.0, 2.0])), [1.0, 2.0])
    assert kl.kl_divergence(D.Independent(D.Normal(1.0, 1.0), 0), D.Normal()) == 0.5
    with pytest.raises(ValueError, match=r"a draw of Delta is a number, one of Independent has the shape \(2,\)"):
        kl.kl_divergence(D.Delta(0.0), D.Independent(D.Poisson([1.0, 2.0]), 1))


def test_what_does_not_fit():
    array = D.Independent(D.Delta(np.eye(2)), 2)
    for p, q, text in (
        (D.Delta(0.5), D.Dirichlet([1.0, 1.0]), r"a draw of Delta is a number, one of Dirichlet has the shape \(2,\)"),
        (D.Dirichlet([1.0, 1.0]), D.Delta(0.5), r"a draw of Delta is a number, one of Dirichlet has the shape \(2,\)"),
        (array, D.Dirichlet([1.0, 1.0]), r"Independent is an array of the shape \(2, 2\), one of Dirichlet has the"),
        (D.Independent(D.Delta([1.0]), 1), D.Normal(), r"is an array of the shape \(1,\), one of Normal is a number"),
    ):
        with pytest.raises(ValueError, match=text):
            kl.kl_divergence(p, q)
    normals = D.Independent(D.Normal([0.0, 1.0], 1.0), 1)
    with pytest.raises(
        NotImplementedError, match=r"KL\(Independent \|\| Dirichlet\) is not registered; registered for"
    ):
        kl.kl_divergence(normals, D.Dirichlet([1.0, 1.0]))
    with pytest.raises(NotImplementedError, match=r"KL\(Dirichlet \|\| Independent\) is not registered"):
        kl.kl_divergence(D.Dirichlet([1.0, 1.0]), normals)


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
