"""Every distribution of one batch against every one of another."""

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions import pairwise_kl


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


def test_distributions_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    found = pairwise_kl([stats.norm(0, 1), stats.norm(1, 1)], [stats.norm(0, 1)])
    np.testing.assert_array_equal(found, [[0.0], [0.5]])


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"p\[1\]: a single distribution, not a batch of shape \(2,\)"):
        pairwise_kl([D.Normal(), D.Normal([0.0, 1.0], 1.0)])
    with pytest.raises(TypeError, match=r"q\[0\]: a distribution like the other argument, not float"):
        pairwise_kl([D.Normal()], [1.0])
    with pytest.raises(NotImplementedError, match="Independent: a batch of these is not taken apart"):
        pairwise_kl(D.Independent(D.Normal(np.zeros((2, 3)), 1.0), 1))
    with pytest.raises(NotImplementedError, match="is not registered"):
        pairwise_kl([D.Normal()], [D.Cauchy()])
