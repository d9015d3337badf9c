"""Families of matrices, and distributions made of others: what they take, refuse and say of themselves.

Their divergences are checked with those of `test_vectors`.
"""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions import positive_definite

SIGMA = np.array([[4.0, 1.0], [1.0, 3.0]])
EYE = np.eye(2)


def batch(count, n, seed=0):
    """Definite matrices."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(count, n, n))
    found = a @ np.swapaxes(a, -1, -2) + n * np.eye(n)
    return 0.5 * (found + np.swapaxes(found, -1, -2))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: D.MultivariateNormal([0, 0]), "exactly one of covariance_matrix, precision_matrix and scale_tril"),
        (lambda: D.MultivariateNormal([0, 0], EYE, EYE), "exactly one of"),
        (lambda: D.MultivariateNormal([0, 0, 0], EYE), "loc has 3 numbers, but covariance_matrix 2 rows"),
        (lambda: D.MultivariateNormal([0, math.nan], EYE), r"loc must be a finite number, but loc\[1\] is nan"),
        (lambda: D.MultivariateNormal(0.0, EYE), "loc must have 1 axis or more, but is a number"),
        (lambda: D.MultivariateNormal([0, 0], [1, 1]), r"covariance_matrix must have 2 axes .* shape \(2,\)"),
        (
            lambda: D.MultivariateNormal([0, 0], np.ones((2, 3))),
            "must be a square matrix, but has 2 rows and 3 columns",
        ),
        (
            lambda: D.MultivariateNormal([0, 0], [EYE, [[1, 2], [2, 1]]]),
            r"covariance_matrix must be positive definite, but covariance_matrix\[1\] is \[\[1., 2.\], \[2., 1.\]\]",
        ),
        (
            lambda: D.MultivariateNormal([0, 0], precision_matrix=[[1, 0.5], [0, 1]]),
            "precision_matrix must be a symmetric matrix, but precision_matrix is",
        ),
        (
            lambda: D.MultivariateNormal([0, 0], scale_tril=[[1, 0], [1, -1]]),
            "scale_tril must be a lower triangular matrix with a positive diagonal",
        ),
        (lambda: D.MultivariateNormal([0, 0], [[1, math.inf], [math.inf, 1]]), r"covariance_matrix\[0, 1\] is inf"),
        (
            lambda: D.LowRankMultivariateNormal([0, 0], [[1], [1], [1]], [1, 1]),
            "loc has 2 numbers, cov_factor 3 rows and cov_diag 2 numbers",
        ),
        (
            lambda: D.LowRankMultivariateNormal([0, 0], [[1], [1]], [1, 0]),
            r"cov_diag must be .* > 0, but cov_diag\[1\]",
        ),
        (lambda: D.Wishart([2, 1.0], EYE), r"Wishart: df must be above 1 for 2 rows, but df\[1\] is 1.0"),
        (lambda: D.Wishart(3.0, -EYE), "Wishart: covariance_matrix must be positive definite"),
        (lambda: D.InverseWishart(0.5, EYE), "InverseWishart: df must be above 1 for 2 rows, but df is 0.5"),
        (
            lambda: D.MatrixNormal(np.ones((2, 3)), EYE, EYE),
            "loc is 2 by 3, but the covariances are of 2 rows and of 2",
        ),
        (lambda: D.NormalGamma(0.0, 1.0, -1.0, 1.0), "concentration must be a finite number > 0"),
        (lambda: D.Independent(D.Normal([0, 1]), 2), "reinterpreted_batch_ndims must be from 0 to 1, but is 2"),
        (
            lambda: D.Mixture(D.Categorical([1, 1, 1]), D.Normal([0, 1])),
            r"a last axis of 3 in its batch, which is \(2,\)",
        ),
        (lambda: D.AffineTransform(0.0, 0.0), "scale must be a finite number, not 0, but scale is 0.0"),
    ],
)
def test_what_is_refused(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_what_is_no_distribution_is_refused():
    with pytest.raises(TypeError, match="base_distribution must be a Distribution, not float"):
        D.Independent(1.0, 0)
    with pytest.raises(TypeError, match="mixture_distribution must be a Categorical, not Normal"):
        D.Mixture(D.Normal(), D.Normal([0, 1]))
    with pytest.raises(TypeError, match="transforms must be Transform objects, not function"):
        D.TransformedDistribution(D.Normal(), [lambda x: x])
    with pytest.raises(TypeError, match="transforms must be Transform objects, not int"):
        D.TransformedDistribution(D.Normal(), 3)


def test_without_validation_a_matrix_is_factored_when_it_is_needed():
    d = D.MultivariateNormal([0, 0], [[1, 2], [2, 1]], validate_args=False)
    with pytest.raises(ValueError, match="must be positive definite"):
        d.entropy()


@pytest.mark.parametrize("form", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_the_three_forms_of_a_covariance(form):
    sigma = batch(3, 4)
    given = {
        "covariance_matrix": sigma,
        "precision_matrix": np.linalg.inv(sigma),
        "scale_tril": np.linalg.cholesky(sigma),
    }
    if form == "precision_matrix":
        given[form] = 0.5 * (given[form] + np.swapaxes(given[form], -1, -2))
    d = D.MultivariateNormal(np.zeros(4), **{form: given[form]})
    assert d.batch_shape == (3,)
    assert d.event_shape == (4,)
    for name, expected in given.items():
        np.testing.assert_allclose(getattr(d, name), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(d.variance, np.diagonal(sigma, axis1=-2, axis2=-1))
    np.testing.assert_allclose(d.entropy(), 0.5 * np.linalg.slogdet(2 * np.pi * np.e * sigma)[1])
    assert d.mean.shape == (3, 4)
    with pytest.raises(AttributeError, match="does not change"):
        d.loc = 1.0


def test_a_large_batch_equals_its_parts():
    """Loops for few and for many rows, blocks and threads."""
    for n in (3, 20):
        p = D.MultivariateNormal(np.ones(n), batch(3000, n))
        q = D.MultivariateNormal(np.zeros(n), batch(1, n, 1))
        whole = kl.kl_divergence(p, q)
        for i in (0, 1, 1700, 2999):
            one = D.MultivariateNormal(np.ones(n), p.covariance_matrix[i])
            assert whole[i] == kl.kl_divergence(one, D.MultivariateNormal(np.zeros(n), q.covariance_matrix[0]))


def test_the_way_of_the_factors_and_that_of_the_difference_meet():
    """At the border between them both are right."""
    sigma = batch(40, 5)
    near = sigma * (1 + 0.1 * np.linspace(0, 1, 40)[:, None, None])
    factors = np.linalg.cholesky(near), np.linalg.cholesky(sigma)
    by_factors = positive_definite.excess((40,), *factors)
    by_both = positive_definite.excess((40,), *factors, near - sigma)
    np.testing.assert_allclose(by_factors[5:], by_both[5:], rtol=1e-10)
    assert by_both[0] == by_factors[0] == 0.0
    assert (by_both >= 0).all()


@pytest.mark.parametrize("n", [3, 12, 13, 40])
def test_a_scaled_matrix_of_any_size(n):
    """Of q = p times 1 + d it is n*(log(1 + d) - d/(1 + d))/2, in whatever form the matrix is given."""
    d = 2.0**-20
    sigma = np.round(batch(1, n)[0] * 2**20) / 2**20  # such that sigma*(1 + d) is exact
    expected = 0.5 * n * (math.log1p(d) - d / (1 + d))
    exact = 0.5 * n * sum((-1) ** k * d**k * (k - 1) / k for k in range(2, 8))
    assert expected == pytest.approx(exact, rel=1e-6)
    loc = np.zeros(n)
    value = kl.kl_divergence(D.MultivariateNormal(loc, sigma), D.MultivariateNormal(loc, sigma * (1 + d)))
    assert float(value) == pytest.approx(exact, rel=1e-13)
    back = kl.kl_divergence(
        D.MultivariateNormal(loc, precision_matrix=sigma * (1 + d)), D.MultivariateNormal(loc, precision_matrix=sigma)
    )
    assert float(back) == pytest.approx(exact, rel=1e-13)


STEEP = [[0.6894432431875768, 0.0], [1898003129822.119, 1.1225865982343453]]
FIRST = [[1.956660234992019, 0.0], [154854312.97767997, 0.6471588395584795]]
NEXT = [[1.9566602388616516, 0.0], [154854313.28393105, 0.6471588408383476]]

# errors of two rows that a third takes with weights of other signs than the estimate of them
OPPOSED = [
    [0.8059421501173103, 0.0, 0.0, 0.0],
    [33.949416053103604, 0.7336487667438035, 0.0, 0.0],
    [30.807254456531936, 0.0, 1.0050781912741342, 0.0],
    [0.0, 31.899319333081205, -48.159687347339634, 0.850957094864415],
]
FAR_ALIKE = [0.3868223354639474, 16.293440179744156, 14.786181160445627, 0.4001057111437041]


@pytest.mark.parametrize(
    ("mean", "p", "q", "exact"),
    [
        (FAR_ALIKE, OPPOSED, OPPOSED, 0.24697429315035460735),
        ([0.0, 0.0], FIRST, NEXT, 2.7422030742697843e-17),
        ([1.0845633490790867, 2985749227921.5005], STEEP, STEEP, 1.4778569790655403),
        ([1.0, 79142157.7483592], NEXT, NEXT, 0.130598793445107),
    ],
)
def test_numbers_below_the_diagonal_that_dwarf_it(mean, p, q, exact):
    """Where little is left of them, that is taken in twice the digits."""
    one, other = D.MultivariateNormal(np.zeros(len(mean)), scale_tril=p), D.MultivariateNormal(mean, scale_tril=q)
    assert float(kl.kl_divergence(one, other)) == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize(
    "make",
    [
        lambda m: D.MultivariateNormal(np.zeros(3), covariance_matrix=m),
        lambda m: D.MultivariateNormal(np.zeros(3), precision_matrix=m),
        lambda m: D.Wishart(5.0, m),
        lambda m: D.InverseWishart(5.0, m),
        lambda m: D.MatrixNormal(np.zeros((3, 3)), m, np.eye(3)),
    ],
)
def test_the_lower_triangle_alone_is_read(make):
    first = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 1.5]])
    second = first * (1 + 1e-6)
    other = second * (1 + 5e-7 * np.triu([[0, 1, -1], [0, 0, 1], [0, 0, 0]]))
    assert kl.kl_divergence(make(second), make(other)) == 0.0
    assert kl.kl_divergence(make(first), make(second)) == kl.kl_divergence(make(first), make(other)) > 0.0


def test_an_unchecked_matrix_that_is_not_symmetric_gives_nan():
    """In a batch, it alone."""
    given = np.array([[[1.0, 5.0], [0.3, 1.0]], [[1.0, 0.3 * (1 + 1e-8)], [0.3, 1.0]]])
    p = D.MultivariateNormal(np.zeros(2), given, validate_args=False)
    value = kl.kl_divergence(p, D.MultivariateNormal(np.zeros(2), EYE))
    assert math.isnan(value[0])
    assert value[1] == kl.kl_divergence(
        D.MultivariateNormal(np.zeros(2), [[1.0, 0.3], [0.3, 1.0]]), D.MultivariateNormal(np.zeros(2), EYE)
    )


def test_a_far_matrix_with_a_difference_takes_the_factors():
    near = np.array([[1.0, 0.0], [0.0, 1.0]])
    far = np.array([[1.0, 0.999], [0.999, 1.0]])
    value = kl.kl_divergence(D.MultivariateNormal([0, 0], far), D.MultivariateNormal([0, 0], near))
    assert float(value) == pytest.approx(-0.5 * math.log(1 - 0.999**2), rel=1e-13)


def test_independent_takes_any_part_of_a_batch():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 3, 4, 5))
    p, q = D.Normal(a, 1.0), D.Normal(b, 2.0)
    each = kl.kl_divergence(p, q)
    for count in range(4):
        one, other = D.Independent(p, count), D.Independent(q, count)
        assert one.event_shape == (3, 4, 5)[3 - count :]
        expected = each.sum(tuple(range(3 - count, 3)))
        np.testing.assert_allclose(kl.kl_divergence(one, other), expected, rtol=1e-14)
        assert one.entropy().shape == (3, 4, 5)[: 3 - count]
    twice = D.Independent(D.Independent(p, 1), 1)
    np.testing.assert_array_equal(
        kl.kl_divergence(twice, D.Independent(q, 2)), kl.kl_divergence(D.Independent(p, 2), D.Independent(q, 2))
    )
    np.testing.assert_allclose(kl.kl_divergence(twice, twice), 0.0)
    assert repr(D.Independent(D.Normal([0.0, 1.0], 1.0), 1)) == (
        "Independent(base_distribution=Normal(loc=[0., 1.], scale=1.0), reinterpreted_batch_ndims=1)"
    )


def test_independent_of_other_families():
    p = D.Independent(D.Uniform([0.0, 0.0], 1.0), 1)
    q = D.Independent(D.Uniform([0.0, 0.0], [2.0, 0.5]), 1)
    assert kl.kl_divergence(p, q) == math.inf
    assert kl.kl_divergence(q, q) == 0.0
    p = D.Independent(D.Dirichlet([[1.0, 2.0], [3.0, 4.0]]), 1)
    q = D.Independent(D.Dirichlet([[1.0, 1.0], [1.0, 1.0]]), 1)
    assert p.event_shape == (2, 2)
    expected = sum(kl.kl_divergence(p.base_distribution, q.base_distribution))
    assert float(kl.kl_divergence(p, q)) == pytest.approx(float(expected), rel=1e-15)
    with pytest.raises(NotImplementedError, match=r"Independent\(Normal, 1\), not of Laplace"):
        kl.kl_divergence(D.Independent(D.Laplace([0, 0], 1.0), 1), D.MultivariateNormal([0, 0], EYE))


def test_independent_normals_are_a_diagonal_multivariate_normal():
    loc, scale = np.array([0.5, -1.0]), np.array([1.5, 0.25])
    diagonal = D.Independent(D.Normal(loc, scale), 1)
    full = D.MultivariateNormal(loc, np.diag(scale**2))
    low = D.LowRankMultivariateNormal(loc, np.zeros((2, 1)), scale**2)
    other = D.MultivariateNormal([0, 0], SIGMA)
    for second in (other, D.LowRankMultivariateNormal([0, 0], [[1.0], [2.0]], [1.0, 1.0])):
        expected = kl.kl_divergence(full, second)
        np.testing.assert_allclose(kl.kl_divergence(diagonal, second), expected, rtol=1e-13)
        np.testing.assert_allclose(kl.kl_divergence(low, second), expected, rtol=1e-13)
        back = kl.kl_divergence(second, full)
        np.testing.assert_allclose(kl.kl_divergence(second, diagonal), back, rtol=1e-13)
        np.testing.assert_allclose(kl.kl_divergence(second, low), back, rtol=1e-13)


def test_equal_transforms_leave_the_divergence_of_the_bases():
    base = D.Normal([0.0, 1.0], 2.0), D.Normal(0.5, 1.0)
    for chain in (
        D.ExpTransform(),
        [D.AffineTransform(1.0, -3.0), D.SigmoidTransform()],
        [D.ExpTransform(), D.PowerTransform(0.5)],
        D.TanhTransform(),
        [],
    ):
        p, q = (D.TransformedDistribution(d, chain) for d in base)
        np.testing.assert_array_equal(kl.kl_divergence(p, q), kl.kl_divergence(*base))
    log_normal = kl.kl_divergence(D.LogNormal([0.0, 1.0], 2.0), D.LogNormal(0.5, 1.0))
    np.testing.assert_array_equal(kl.kl_divergence(*base), log_normal)


def test_other_transforms_are_refused():
    p = D.TransformedDistribution(D.Normal(1.0, 1.0), D.AbsTransform())
    with pytest.raises(NotImplementedError, match=r"AbsTransform\(\) is not injective"):
        kl.kl_divergence(p, p)
    p = D.TransformedDistribution(D.Normal(), [D.ExpTransform(), D.AffineTransform(1.0, 2.0)])
    q = D.TransformedDistribution(D.Normal(), [D.ExpTransform(), D.AffineTransform(1.0, 3.0)])
    with pytest.raises(
        NotImplementedError, match=r"numbers of both, not for \[Exp.*, Affine.*\(loc=1.0, scale=2.0\)\]"
    ):
        kl.kl_divergence(p, q)
    with pytest.raises(ValueError, match=r"of shapes \[\(\), \(3,\)\] do not fit a batch \(\) of draws \(2,\)"):
        D.TransformedDistribution(D.Dirichlet([1, 1]), D.AffineTransform(0.0, np.ones(3)))


def test_what_a_transformed_distribution_says_of_itself():
    p = D.TransformedDistribution(D.Normal(1.0, 2.0), [D.AffineTransform([1.0, 0.0], -3.0)])
    assert p.batch_shape == (2,)
    np.testing.assert_array_equal(p.mean, [-2.0, -3.0])
    np.testing.assert_array_equal(p.variance, 36.0)
    np.testing.assert_allclose(p.entropy(), D.Normal(0.0, 6.0).entropy())
    assert D.TransformedDistribution(D.Uniform(0.0, 1.0), D.AffineTransform(1.0, -3.0)).support[:2] == (-2.0, 1.0)
    assert D.TransformedDistribution(D.Normal(), D.AbsTransform()).support[:2] == (0.0, math.inf)
    assert D.TransformedDistribution(D.Normal(), D.SigmoidTransform()).support[:2] == (0.0, 1.0)
    q = D.TransformedDistribution(D.Normal(), D.ExpTransform())
    for ask in (lambda: q.mean, lambda: q.variance):
        with pytest.raises(NotImplementedError, match="AffineTransform"):
            ask()
    assert hash(D.AffineTransform(0, 1)) == hash(D.AffineTransform(0.0, 1.0))
    assert D.AffineTransform(0, 1) != D.ExpTransform()


def test_a_mixture_has_moments_but_no_divergence():
    rng = np.random.default_rng(2)
    d = D.Mixture(D.Categorical([0.2, 0.3, 0.5]), D.Normal([0.0, 1.0, -2.0], [1.0, 2.0, 0.5]))
    which = rng.choice(3, 200_000, p=[0.2, 0.3, 0.5])
    draws = rng.normal(d.component_distribution.loc[which], d.component_distribution.scale[which])
    assert float(d.mean) == pytest.approx(draws.mean(), abs=0.02)
    assert float(d.variance) == pytest.approx(draws.var(), rel=0.02)
    assert d.support[:2] == (-math.inf, math.inf)
    with pytest.raises(NotImplementedError, match=r"KL\(Mixture \|\| Mixture\) is not registered"):
        kl.kl_divergence(d, d)
    with pytest.raises(NotImplementedError, match="no closed form"):
        d.entropy()
    vectors = D.Mixture(D.Categorical(np.ones(3)), D.MultivariateNormal(np.eye(3)[:, :2], np.eye(2)))
    assert vectors.event_shape == (2,)
    np.testing.assert_allclose(vectors.mean, [1 / 3, 1 / 3])
    np.testing.assert_allclose(vectors.variance, 1 + 2 / 9)


def test_moments_and_entropies_are_those_of_scipy():
    stats, special = pytest.importorskip("scipy.stats"), pytest.importorskip("scipy.special")
    d, theirs = D.Wishart(5.0, SIGMA), stats.wishart(5.0, SIGMA)
    np.testing.assert_allclose(d.mean, theirs.mean())
    np.testing.assert_allclose(d.variance, theirs.var())
    assert float(d.entropy()) == pytest.approx(float(theirs.entropy()), rel=1e-12)
    inverse = D.Wishart(5.0, precision_matrix=np.linalg.inv(SIGMA))
    assert float(inverse.entropy()) == pytest.approx(float(theirs.entropy()), rel=1e-12)
    d, theirs = D.InverseWishart(9.0, SIGMA), stats.invwishart(9.0, SIGMA)
    np.testing.assert_allclose(d.mean, theirs.mean())
    np.testing.assert_allclose(d.variance, theirs.var())
    # By the change of variables from the Wishart distribution: SciPy 1.17 leaves out powers of 2 from 2 rows on.
    wishart = D.Wishart(9.0, precision_matrix=SIGMA)
    log_det = special.psi(4.5) + special.psi(4.0) + 2 * math.log(2.0) - np.linalg.slogdet(SIGMA)[1]
    assert float(d.entropy()) == pytest.approx(float(wishart.entropy() - 3 * log_det), rel=1e-12)
    assert np.isnan(D.InverseWishart(2.5, SIGMA).mean).all()
    d = D.MatrixNormal(np.ones((2, 3)), SIGMA, 2.0 * np.eye(3))
    theirs = stats.matrix_normal(np.ones((2, 3)), SIGMA, 2.0 * np.eye(3))
    assert float(d.entropy()) == pytest.approx(float(theirs.entropy()), rel=1e-12)
    np.testing.assert_allclose(d.variance, np.outer(np.diag(SIGMA), [2.0, 2.0, 2.0]))
    d = D.LowRankMultivariateNormal([1.0, 2.0], [[1.0], [2.0]], [3.0, 4.0])
    cov = np.array([[4.0, 2.0], [2.0, 8.0]])
    np.testing.assert_allclose(d.covariance_matrix, cov)
    np.testing.assert_allclose(d.scale_tril, np.linalg.cholesky(cov))
    np.testing.assert_allclose(d.variance, [4.0, 8.0])
    assert float(d.entropy()) == pytest.approx(float(stats.multivariate_normal([1, 2], cov).entropy()), rel=1e-13)


def test_moments_and_entropy_of_normal_gamma():
    d = D.NormalGamma(0.5, 2.0, 3.0, 4.0)
    assert d.event_shape == (2,)
    np.testing.assert_allclose(d.mean, [0.5, 0.75])
    np.testing.assert_allclose(d.variance, [1.0, 3.0 / 16.0])
    rng = np.random.default_rng(4)
    t = rng.gamma(3.0, 0.25, 400_000)
    given_t = D.Normal(0.5, 1.0 / np.sqrt(2.0 * t)).entropy()
    assert float(d.entropy()) == pytest.approx(float(D.Gamma(3.0, 4.0).entropy() + given_t.mean()), abs=0.01)


def test_to_scipy_and_back():
    stats = pytest.importorskip("scipy.stats")
    for d in (
        D.MultivariateNormal([1.0, 2.0], SIGMA),
        D.Wishart(5.0, SIGMA),
        D.InverseWishart(5.0, SIGMA),
        D.MatrixNormal(np.ones((2, 2)), SIGMA, EYE),
    ):
        back = type(d).from_scipy(d.to_scipy())
        assert repr(back) == repr(d)
    with pytest.raises(ValueError, match="one distribution"):
        D.MultivariateNormal(np.zeros((3, 2)), EYE).to_scipy()
    with pytest.raises(TypeError, match=r"a frozen scipy.stats.multivariate_normal, not wishart_frozen"):
        D.MultivariateNormal.from_scipy(stats.wishart(5.0, SIGMA))


def test_low_rank_to_scipy():
    pytest.importorskip("scipy.stats")
    d = D.LowRankMultivariateNormal([1.0, 2.0], [[1.0], [0.5]], [1.0, 2.0])
    back = D.MultivariateNormal.from_scipy(d.to_scipy())
    assert repr(back) == repr(D.MultivariateNormal(d.loc, d.covariance_matrix))
    with pytest.raises(ValueError, match=r"LowRankMultivariateNormal: .* is one distribution, not \(3,\)"):
        D.LowRankMultivariateNormal(np.zeros((3, 2)), [[1.0], [0.5]], [1.0, 2.0]).to_scipy()
    with pytest.raises(NotImplementedError, match="MultivariateNormal takes it"):
        D.LowRankMultivariateNormal.from_scipy(d.to_scipy())


def test_pickle():
    for d in (
        D.MultivariateNormal([1.0, 2.0], SIGMA),
        D.Independent(D.Normal([0.0, 1.0], 2.0), 1),
        D.TransformedDistribution(D.Normal(), D.ExpTransform()),
        D.Wishart(5.0, SIGMA),
    ):
        back = pickle.loads(pickle.dumps(d))
        assert repr(back) == repr(d)
        assert kl.kl_divergence(d, back) == 0.0


def test_wishart_and_its_inverse_are_one():
    """KL does not change when both are inverted."""
    a, b = batch(2, 3)
    direct = kl.kl_divergence(D.Wishart(6.0, precision_matrix=a), D.Wishart(4.5, precision_matrix=b))
    assert float(direct) == pytest.approx(float(kl.kl_divergence(D.InverseWishart(6.0, a), D.InverseWishart(4.5, b))))


def test_the_same_bits_for_any_number_of_threads(monkeypatch):
    p = D.MultivariateNormal(np.ones(3), batch(20_000, 3))
    q = D.MultivariateNormal(np.zeros(3), batch(20_000, 3, 1))
    monkeypatch.setenv("KLNUMBA_NUM_THREADS", "4")
    whole = kl.kl_divergence(p, q)
    monkeypatch.setenv("KLNUMBA_NUM_THREADS", "1")
    np.testing.assert_array_equal(kl.kl_divergence(p, q), whole)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3), (1, 1)])
def test_one_base_with_other_events_is_an_error_of_shapes(shape):
    base = D.Normal(np.zeros(shape), 1.0)
    with pytest.raises(ValueError, match=r"p, q: event shapes .* differ"):
        kl.kl_divergence(D.Independent(base, 1), D.Independent(base, 2))
