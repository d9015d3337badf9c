"""Every distribution of one batch against every one of another."""

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions import pairwise_kl, registry


def test_a_matrix_of_two_batches():
    p, q = D.Gamma([1.0, 2.0, 3.0], 2.0), D.Gamma([0.5, 4.0], [1.0, 3.0])
    found = pairwise_kl(p, q)
    assert found.shape == (3, 2)
    for i in range(3):
        for j in range(2):
            assert found[i, j] == kl.kl_divergence(p.one((i,)), q.one((j,)))
    np.testing.assert_array_equal(pairwise_kl(p, q, base=2), found / np.log(2))
    assert pairwise_kl(p.one((0,)), q).shape == (2,)


def test_a_batch_with_itself():
    rng = np.random.default_rng(0)
    p = D.MultivariateNormal(rng.normal(size=(4, 3)), scale_tril=np.tril(rng.random((4, 3, 3)) + np.eye(3)))
    found = pairwise_kl(p)
    np.testing.assert_array_equal(np.diag(found), 0.0)
    assert (found[~np.eye(4, dtype=bool)] > 0.0).all()
    assert found[1, 2] == pytest.approx(kl.kl_divergence(p.one((1,)), p.one((2,))), rel=1e-13)


def gaussians(kind, rng, count, numbers):
    """A batch, half of it close to the first."""
    loc, scale = rng.normal(size=(count, numbers)), np.exp(rng.normal(0.0, 0.3, (count, numbers)))
    near = slice(count // 2, None)
    loc[near], scale[near] = loc[0] * (1 + 10.0 ** rng.uniform(-12, -1, (count - count // 2, 1))), scale[0]
    if kind == "normal":
        return D.Normal(loc[:, 0], scale[:, 0])
    if kind == "independent":
        return D.Independent(D.Normal(loc, scale), 1)
    lower = np.tril(rng.normal(0.0, 0.1, (count, numbers, numbers)), -1)
    lower[near] = lower[0]
    lower[:, range(numbers), range(numbers)] = scale
    if kind == "scale_tril":
        return D.MultivariateNormal(loc, scale_tril=lower)
    return D.MultivariateNormal(loc, lower @ np.swapaxes(lower, -1, -2))


@pytest.mark.parametrize("kind", ["normal", "independent", "scale_tril", "covariance"])
def test_products_of_matrices_are_right_where_they_serve(kind):
    """To 1e-13 of each entry, however close p and q are; what is close comes from the closed form itself."""
    rng = np.random.default_rng(5)
    p, q = gaussians(kind, rng, 40, 4), gaussians(kind, rng, 30, 4)
    for other in (p, q):
        found, expected = pairwise_kl(p, other), registry.divergence(p.spread(1), other)
        assert found.shape == expected.shape
        assert (found >= 0.0).all()
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=0.0)
        assert (found != expected).any(), "no entry was taken by products"
    itself = pairwise_kl(p)
    np.testing.assert_array_equal(np.diag(itself), 0.0)
    np.testing.assert_array_equal(itself[20:, 20:], registry.divergence(p.spread(1), p)[20:, 20:])
    np.testing.assert_array_equal(pairwise_kl(p, q, base=2), pairwise_kl(p, q) / np.log(2.0))


def test_products_beyond_the_range_and_of_other_shapes():
    p = D.Normal(np.zeros((4, 5)), np.geomspace(1e-200, 1e150, 20).reshape(4, 5))
    np.testing.assert_allclose(pairwise_kl(p), registry.divergence(p.spread(2), p), rtol=1e-13, atol=0.0)
    narrow = D.Normal(np.linspace(0, 9, 20, dtype=np.float32), np.float32(1.0))
    assert pairwise_kl(narrow).dtype == np.float32
    far = D.MultivariateNormal(np.arange(40.0).reshape(20, 2), scale_tril=np.eye(2))
    np.testing.assert_allclose(pairwise_kl(far)[0], 0.5 * 8.0 * np.arange(20.0) ** 2, rtol=1e-13)
    other = D.MultivariateNormal(np.zeros((20, 3)), scale_tril=np.eye(3))
    with pytest.raises(ValueError, match="event shapes"):
        pairwise_kl(far, other)


def test_batches_of_independent_distributions():
    p = D.Independent(D.Gamma([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], 1.0), 1)
    q = D.Independent(D.Gamma(2.0, [[1.0, 2.0], [2.0, 3.0]]), 1)
    found = pairwise_kl(p, q)
    assert found.shape == (3, 2)
    for i in range(3):
        for j in range(2):
            assert found[i, j] == kl.kl_divergence(p.one((i,)), q.one((j,)))


def test_lists_of_one_family_and_of_several():
    normals = [D.Normal(0.0, 1.0), D.Normal(1.0, 2.0)]
    others = [D.Laplace(0.0, 1.0), D.Normal(0.5, 1.0), D.Exponential(1.0)]
    np.testing.assert_array_equal(pairwise_kl(normals), pairwise_kl(D.Normal([0.0, 1.0], [1.0, 2.0])))
    found = pairwise_kl(normals, others)
    np.testing.assert_array_equal(found, [[kl.kl_divergence(p, q) for q in others] for p in normals])
    np.testing.assert_array_equal(pairwise_kl(D.Normal([0.0, 1.0], [1.0, 2.0]), others), found)
    independent = [D.Independent(D.Normal([0.0, x], 1.0), 1) for x in (0.0, 2.0)]
    np.testing.assert_array_equal(pairwise_kl(independent), [[0.0, 2.0], [2.0, 0.0]])
    assert pairwise_kl([], others).shape == (0, 3)


def test_threads_of_the_matrix_product_change_no_more_than_last_digits():
    """And with the same number of them the bits are the same."""
    controller = pytest.importorskip("threadpoolctl", reason="threadpoolctl is not installed").threadpool_limits
    rng = np.random.default_rng(3)
    for rows, columns, d in ((513, 1031, 16), (300, 200, 1)):
        p, q = (
            D.Independent(D.Normal(rng.normal(size=(n, d)), rng.uniform(0.5, 2.0, (n, d))), 1) for n in (rows, columns)
        )
        found = []
        for threads in (1, 2, 3, 2):
            with controller(limits=threads, user_api="blas"):
                found.append(pairwise_kl(p, q))
        np.testing.assert_array_equal(found[1], found[3])
        for other in found[1:]:
            np.testing.assert_allclose(other, found[0], rtol=1e-13, atol=0.0)


def test_distributions_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    found = pairwise_kl([stats.norm(0, 1), stats.norm(1, 1)], [stats.norm(0, 1)])
    np.testing.assert_array_equal(found, [[0.0], [0.5]])


def test_what_those_of_scipy_have_in_common():
    """As kl_divergence, pair by pair."""
    stats = pytest.importorskip("scipy.stats")
    scales = (1.0, 2.0, 5.0)
    found = pairwise_kl([stats.expon(1.0, s) for s in scales])
    np.testing.assert_array_equal(found, pairwise_kl(D.Exponential(1.0 / np.array(scales))))
    both = [stats.expon(1.0), stats.gamma(2.0, 1.0, 3.0)]
    np.testing.assert_array_equal(pairwise_kl(both), [[kl.kl_divergence(p, q) for q in both] for p in both])
    with pytest.raises(
        ValueError, match=r"p\[0\]: Exponential has no location, but loc is 1.0; .* 1.0 of p and 2.0 of q"
    ):
        pairwise_kl([stats.expon(1.0)], [stats.expon(1.0), stats.expon(2.0)])
    with pytest.raises(ValueError, match=r"q\[1\]: Exponential has no location, but loc is 2.0"):
        pairwise_kl([D.Exponential(1.0)], [stats.expon(), stats.expon(2.0)])
    with pytest.raises(ValueError, match=r"p\[0\], q\[0\]: single distributions, not a batch of shape \(2,\)"):
        pairwise_kl([stats.expon([1.0, 1.0])], [stats.expon(1.0)])


def test_batches_of_transformed_distributions():
    bases = D.Laplace([0.0, 1.0, 3.0], 2.0)
    for transform in (D.ExpTransform(), D.PowerTransform(3.0).inv, D.AffineTransform(1.0, [[2.0]])):
        found = pairwise_kl(D.TransformedDistribution(bases, transform))
        np.testing.assert_array_equal(found.reshape(3, 3), pairwise_kl(bases))
    wide = D.TransformedDistribution(D.Normal([0.0, 1.0], 1.0), D.AffineTransform(0.0, [[2.0], [3.0]]))
    assert wide.with_axes(1, 2).batch_shape == (2, 1, 1, 2)
    assert wide.with_axes(0, 1).batch_shape == (1, 2, 2)
    expected = kl.kl_divergence(wide.named().spread(2), wide.named())
    np.testing.assert_array_equal(pairwise_kl(wide), expected)
    cube = D.TransformedDistribution(D.Normal([0.0, 1.0], 1.0), D.PowerTransform([[3.0], [5.0]]).inv)
    assert cube.spread(1).transforms == (D.PowerTransform([[[3.0]], [[5.0]]]).inv,)


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"p\[1\]: a single distribution, not a batch of shape \(2,\)"):
        pairwise_kl([D.Normal(), D.Normal([0.0, 1.0], 1.0)])
    with pytest.raises(TypeError, match=r"q\[0\]: a distribution like the other argument, not float"):
        pairwise_kl([D.Normal()], [1.0])
    with pytest.raises(NotImplementedError, match="Mixture: a batch of these is not taken apart"):
        pairwise_kl(D.Mixture(D.Categorical([0.5, 0.5]), D.Normal(np.zeros((2, 2)), 1.0)))
    with pytest.raises(NotImplementedError, match="is not registered"):
        pairwise_kl([D.Normal()], [D.Cauchy()])


def test_a_missing_pair_is_named_with_its_places():
    with pytest.raises(NotImplementedError, match=r"p\[1\], q\[0\]: KL\(Gamma \|\| Cauchy\) is not registered"):
        D.pairwise_kl([D.Cauchy(), D.Gamma(2.0, 1.0)], [D.Cauchy()])
