"""Blocks of independent distributions."""

import math
import pickle

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D


def blocks(shift=0.0):
    return D.Joint([
        D.Normal([shift, 1.0], 2.0),
        D.Gamma([[2.0], [3.0], [4.0]], 1.0),
        D.Dirichlet([1.0, 2.0, 3.0]),
        D.Independent(D.Poisson([1.0 + shift, 2.0]), 1),
    ])  # fmt: skip


def test_shapes_and_moments():
    p = blocks()
    assert p.batch_shape == (3, 2)
    assert p.event_shape == ((), (), (3,), (2,))
    assert p.dtype == np.float64
    assert [np.shape(x) for x in p.mean] == [(2,), (3, 1), (3,), (2,)]
    assert [np.shape(x) for x in p.variance] == [(2,), (3, 1), (3,), (2,)]
    assert [x.discrete for x in p.support] == [False, False, False, True]
    both = D.Joint(p.distributions[:2])
    expected = p.distributions[0].entropy() + p.distributions[1].entropy()
    np.testing.assert_allclose(both.entropy(), expected, rtol=1e-15)


def test_the_sum_of_the_blocks():
    p, q = blocks(0.5), blocks()
    found = kl.kl_divergence(p, q)
    parts = [kl.kl_divergence(x, y) for x, y in zip(p.distributions, q.distributions, strict=True)]
    np.testing.assert_allclose(found, np.broadcast_to(sum(parts), (3, 2)), rtol=1e-15)
    np.testing.assert_array_equal(kl.kl_divergence(p, p), np.zeros((3, 2)))
    np.testing.assert_array_equal(kl.kl_divergence(p, q, base=2), found / math.log(2.0))
    uniform = D.Joint([D.Uniform(0.0, 2.0)]), D.Joint([D.Uniform(0.0, [1.0, 2.0])])
    np.testing.assert_array_equal(kl.kl_divergence(*uniform), [math.inf, 0.0])
    narrow = D.Joint([D.Normal(np.float32(0.0), np.float32(1.0))])
    assert kl.kl_divergence(narrow, narrow).dtype == np.float32


def test_blocks_of_other_families():
    p = D.Joint([D.Gamma(2.0, 3.0), D.Normal(1.0, 2.0)])
    q = D.Joint([D.Exponential(1.0), D.Laplace(0.0, 1.0)])
    expected = kl.kl_divergence(D.Gamma(2.0, 3.0), D.Exponential(1.0))
    expected += kl.kl_divergence(D.Normal(1.0, 2.0), D.Laplace(0.0, 1.0))
    assert kl.kl_divergence(p, q) == expected
    assert kl.jeffreys_divergence(p, p) == 0.0
    assert kl.cross_entropy(p, q) == pytest.approx(expected + p.entropy(), rel=1e-15)


def test_the_same_as_an_independent():
    p, q = D.Normal([0.0, 1.0], 2.0), D.Normal([1.0, 5.0], 3.0)
    joint = [D.Joint([x.one((0,)), x.one((1,))]) for x in (p, q)]
    whole = [D.Independent(x, 1) for x in (p, q)]
    assert kl.kl_divergence(*joint) == pytest.approx(kl.kl_divergence(*whole), rel=1e-15)


def test_pairwise():
    p, q = D.Joint(blocks().distributions[:2]), D.Joint([D.Normal([0.0, 3.0], 1.0), D.Gamma(2.0, 2.0)])
    found = D.pairwise_kl(p, q)
    assert found.shape == (3, 2, 2)
    assert found[2, 1, 0] == kl.kl_divergence(p.one((2, 1)), q.one((0,)))


def test_what_is_shown_refused_and_kept():
    p = D.Joint([D.Normal(0.0, 1.0), D.Poisson(2.0)])
    assert repr(p) == "Joint(distributions=(Normal(loc=0.0, scale=1.0), Poisson(rate=2.0)))"
    assert kl.kl_divergence(pickle.loads(pickle.dumps(p)), p) == 0.0
    with pytest.raises(AttributeError, match="does not change"):
        p.distributions = ()
    with pytest.raises(TypeError, match=r"Joint: distributions\[1\] must be a Distribution, not float"):
        D.Joint([D.Normal(), 1.0])
    with pytest.raises(TypeError, match="Joint: distributions must be a list of Distribution objects, not Normal"):
        D.Joint(D.Normal())
    with pytest.raises(ValueError, match="Joint: distributions must be one or more"):
        D.Joint([])
    with pytest.raises(ValueError, match=r"do not broadcast: \[\(2,\), \(3,\)\]"):
        D.Joint([D.Normal([0.0, 1.0]), D.Normal([0.0, 1.0, 2.0])])
    with pytest.raises(ValueError, match="a Joint of 2 blocks and one of 1"):
        kl.kl_divergence(p, D.Joint([D.Normal()]))
    with pytest.raises(ValueError, match="event shapes"):
        kl.kl_divergence(p, D.Joint([D.Normal(), D.Dirichlet([1.0, 2.0])]))
    with pytest.raises(NotImplementedError, match=r"KL\(Normal \|\| StudentT\) is not registered"):
        kl.kl_divergence(p, D.Joint([D.StudentT(3.0), D.Poisson(1.0)]))


@pytest.mark.parametrize("summed", [0, 1, 2])
@pytest.mark.parametrize("base", [None, 2])
def test_gradients_in_pytorch(summed, base):
    """Of blocks, of which one is no tensor and one a Joint itself, beside those that PyTorch adds up."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    T = torch.distributions
    zeros, thirds = torch.zeros(2, 3).double(), torch.full((3,), 1 / 3).double()

    def ours(x, s):
        p = D.Joint([D.Normal(x, s), D.Joint([D.Exponential(s), D.Categorical(logits=x)]), D.Poisson([1.0])])
        q = D.Joint([D.Normal(zeros, 1.0), D.Joint([D.Exponential(2.0), D.Categorical(thirds)]), D.Poisson(2.0)])
        return kl.kl_divergence(*(D.Independent(one, summed) for one in (p, q)), base=base)

    def theirs(x, s):
        total = T.kl_divergence(T.Normal(x, s), T.Normal(zeros, 1.0)) + T.kl_divergence(
            T.Exponential(s), T.Exponential(2.0)
        )
        total = total + T.kl_divergence(T.Categorical(logits=x), T.Categorical(thirds)) + 1.0 - math.log(2.0)
        return (total.sum(tuple(range(2 - summed, 2))) if summed else total) / math.log(base or math.e)

    def close(a, b):
        return torch.allclose(a, b, rtol=2e-15, atol=0.0)  # found: 4.1e-16

    given = torch.tensor([1.0, 2.0, 3.0]).double(), torch.tensor([[0.5], [2.0]]).double()
    assert close(torch.as_tensor(ours(*given)), theirs(*given))
    leaves = [x.clone().requires_grad_() for x in given]
    found = torch.autograd.grad(ours(*leaves).sum(), leaves)
    expected = torch.autograd.grad(theirs(*leaves).sum(), leaves)
    assert all(map(close, found, expected))
    hessian = [torch.func.hessian(call, argnums=1)(*given) for call in (ours, theirs)]
    assert close(*hessian)
    many = [
        torch.func.vmap(call, in_dims=(None, 0))(given[0], torch.stack([given[1], 2.0 * given[1]]))
        for call in (ours, theirs)
    ]
    assert close(*many)


def test_the_dtype_of_blocks_in_a_graph():
    """float32 where all of them are, as without a graph."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    x = torch.ones(2, requires_grad=True)
    q = D.Joint([D.Normal(torch.zeros(2), torch.ones(2)), D.Normal(torch.zeros(()), torch.ones(()))])
    for single, dtype in ((torch.ones(()), torch.float32), (1.0, torch.float64)):
        p = D.Joint([D.Normal(x, torch.ones(2)), D.Normal(single, torch.ones(()))])
        found = kl.kl_divergence(p, q)
        assert found.dtype == dtype
        assert found.tolist() == [1.0, 1.0]


def test_sums_of_blocks_have_the_bits_of_arrays():
    """However many threads PyTorch has, whose own sums depend on that."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    x = torch.tensor(np.random.default_rng(0).normal(size=300_007), dtype=torch.float32)

    def divergence(x):
        p, q = (D.Independent(D.Joint([D.Normal(loc, torch.ones(()))]), 1) for loc in (x, torch.zeros(300_007)))
        return kl.kl_divergence(p, q)

    leaf, expected, usual = x.clone().requires_grad_(), divergence(x), torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found = divergence(leaf)
            assert found.item() == expected
            assert torch.equal(*torch.autograd.grad(found, leaf), x)
            value, move = torch.func.jvp(divergence, (x,), (torch.ones_like(x),))
            assert value.item() == expected
            assert move.item() == pytest.approx(math.fsum(x.tolist()), rel=2.0**-23)
    finally:
        torch.set_num_threads(usual)


def test_blocks_without_gradients_are_named():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="p, q: a Joint of 1 blocks and one of 2"):
        kl.kl_divergence(D.Joint([D.Normal(x, 1.0)]), D.Joint([D.Normal(x, 1.0)] * 2))
    with pytest.raises(ValueError, match=r"p, q: event shapes \(\(\),\) and \(\(2,\),\) differ"):
        kl.kl_divergence(D.Joint([D.Normal(x, 1.0)]), D.Joint([D.MultivariateNormal(np.zeros(2), np.eye(2))]))
    with pytest.raises(NotImplementedError, match="p: Binomial has no derivative by total_count"):
        kl.kl_divergence(D.Joint([D.Binomial(x, 0.5)]), D.Joint([D.Binomial(x.detach(), 0.5)]))
    with pytest.raises(RuntimeError, match=r"Joint\.entropy carries no gradient"):
        D.Joint([D.Normal(x, 1.0)]).entropy()


def test_moments_of_a_mixture_of_them():
    """By block; a block without the axis of the components is in each of them."""
    normal, gamma = D.Normal([[0.0, 2.0], [1.0, 5.0]], [1.0, 3.0]), D.Gamma(2.0, 1.0)
    vector = D.MultivariateNormal([[0.0, 1.0], [1.0, 1.0]], np.eye(2))
    choice = D.Categorical([0.25, 0.75])
    whole = D.Mixture(choice, D.Joint([normal, gamma, D.Joint([vector])]))
    alone = [D.Mixture(choice, x) for x in (normal, vector)]
    for name in ("mean", "variance"):
        first, second, (third,) = getattr(whole, name)
        np.testing.assert_array_equal(first, getattr(alone[0], name))
        np.testing.assert_array_equal(second, np.full(2, 2.0))
        np.testing.assert_array_equal(third, np.broadcast_to(getattr(alone[1], name), (2, 2)))
    assert whole.support[1] == (0.0, math.inf, False)


@pytest.mark.parametrize("weights", [[[0.5, 0.5], [0.1, 0.9]], [[0.5, 0.5]], [0.1, 0.9]])
def test_moments_of_more_weights_than_components(weights):
    found = D.Mixture(D.Categorical(weights), D.Normal([0.0, 1.0], 1.0))
    share = np.array(weights)[..., 1]
    np.testing.assert_allclose(found.mean, share, rtol=1e-15)
    np.testing.assert_allclose(found.variance, 1.0 + share * (1.0 - share), rtol=1e-15)
    joint = D.Mixture(D.Categorical(weights), D.Joint([D.Normal([0.0, 1.0], 1.0)]))
    np.testing.assert_array_equal(joint.variance[0], found.variance)


def test_transforms_are_for_its_blocks():
    with pytest.raises(ValueError, match="base_distribution is a Joint: transform each of its blocks"):
        D.TransformedDistribution(D.Joint([D.Normal(0.0, 1.0)]), D.ExpTransform())
