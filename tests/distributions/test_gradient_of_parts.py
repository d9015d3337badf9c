"""Derivatives of distributions that are made of others, by the parameters of these."""

from __future__ import annotations

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions import kl_divergence_grad

GAMMAS = D.Gamma([[1.5, 2.0, 4.0], [0.3, 7.0, 1.0]], [0.5, 2.0, 1.0]), D.Gamma([2.0, 3.0, 1.0], 1.0)
NORMALS = D.Normal([[0.0], [1.0]], 2.0), D.Normal(0.5, [1.0, 2.0, 3.0])


def assert_same(found, expected):
    """The same numbers by the same names."""
    assert found.keys() == expected.keys()
    for name, slopes in found.items():
        np.testing.assert_array_equal(slopes, expected[name], strict=True)


@pytest.mark.parametrize("axes", [0, 1, 2])
@pytest.mark.parametrize("both", [GAMMAS, NORMALS], ids=["Gamma", "Normal"])
def test_independent(both, axes):
    """By each number of a draw, those of the parts."""
    p, q = (D.Independent(D.Independent(x, min(axes, 1)), max(axes - 1, 0)) for x in full(*both))
    value, gradient = kl_divergence_grad(p, q)
    assert np.array_equal(value, kl.kl_divergence(p, q))
    assert value.shape == (2, 3)[: 2 - axes]
    _, of_parts = kl_divergence_grad(*both)
    for found, expected in zip(gradient, of_parts, strict=True):
        assert_same(found, expected)


def full(p, q):
    """Both with the batch that they have together, so that axes of it can belong to a draw."""
    zero = np.zeros((2, 3))
    return [
        type(x)(**{name: getattr(x, name) + zero for name in type(x).parameters}, validate_args=False) for x in (p, q)
    ]


def test_joint():
    """A mapping a block, of the batch of the whole."""
    vectors = [D.MultivariateNormal([mean, 0.0], [[2.0, 0.5], [0.5, 1.0]]) for mean in (0.0, 1.0)]
    p, q = D.Joint([GAMMAS[0], vectors[0]]), D.Joint([GAMMAS[1], vectors[1]])
    value, gradient = kl_divergence_grad(p, q)
    assert np.array_equal(value, kl.kl_divergence(p, q))
    for k, pair in enumerate([GAMMAS, vectors]):
        for found, expected in zip(gradient, kl_divergence_grad(*pair)[1], strict=True):
            wide = {name: np.broadcast_to(x, (2, 3, *x.shape[2 * (1 - k) :])) for name, x in expected.items()}
            assert_same(found[k], wide)


def test_blocks_that_are_in_a_draw_several_times():
    """A block without the axis that belongs to the draw counts once for each of its numbers."""

    def pair(rate, size=2):
        normals = [D.Normal(np.linspace(0.0, 1.0, size), 1.0), D.Normal(np.zeros(size), 2.0)]
        gammas = [D.Gamma(2.0, 1.0), D.Gamma(2.0, rate)]
        return [D.Independent(D.Joint(both), 1) for both in zip(normals, gammas, strict=True)]

    step = 1e-6
    _, gradient = kl_divergence_grad(*pair(3.0))
    found = gradient.q[1]["rate"]
    assert found.shape == (2,)
    moved = (kl.kl_divergence(*pair(3.0 + step)) - kl.kl_divergence(*pair(3.0 - step))) / (2.0 * step)
    assert found.sum() == pytest.approx(moved, rel=1e-8)
    _, gradient = kl_divergence_grad(*pair(3.0, size=0))
    assert gradient.q[1]["rate"].shape == (0,)


def test_joint_of_independent_of_joint():
    both = zip(full(*NORMALS), full(*GAMMAS), strict=True)
    p, q = (D.Joint([D.Independent(D.Joint([x, y]), 1), D.Independent(y, 1)]) for x, y in both)
    _, gradient = kl_divergence_grad(p, q)
    for found, normal, gamma in zip(
        gradient, kl_divergence_grad(*NORMALS)[1], kl_divergence_grad(*GAMMAS)[1], strict=True
    ):
        (first, second), third = found
        assert_same(first, normal)
        assert_same(second, gamma)
        assert_same(third, gamma)


def test_the_value_moves_as_the_derivatives_say():
    """Of a sum over draws, by one parameter that all parts share."""
    step = 1e-6

    def value(loc):
        p = D.Independent(D.Normal(np.full(3, loc), 1.0), 1)
        return kl_divergence_grad(D.Joint([p, p]), D.Joint([D.Independent(D.Laplace(np.zeros(3), 2.0), 1)] * 2))

    found, gradient = value(0.7)
    moved = (value(0.7 + step)[0] - value(0.7 - step)[0]) / (2.0 * step)
    assert moved == pytest.approx(sum(side["loc"].sum() for side in gradient.p), rel=1e-8)
    assert found > 0.0


def test_of_what_transforms_were_made_from():
    """By the parameters of the family that they make, if there is one, and else of the base."""
    transforms = [D.transforms.TanhTransform()]
    p, q = (D.TransformedDistribution(x, transforms) for x in NORMALS)
    for found, expected in zip(kl_divergence_grad(p, q)[1], kl_divergence_grad(*NORMALS)[1], strict=True):
        assert_same(found, expected)
    stretch = [D.transforms.AffineTransform(0.0, 3.0)]
    p, q = (D.Independent(D.TransformedDistribution(x, stretch), 1) for x in full(*NORMALS))
    wide = [D.Normal(3.0 * x.loc, 3.0 * x.scale) for x in NORMALS]
    for found, expected in zip(kl_divergence_grad(p, q)[1], kl_divergence_grad(*wide)[1], strict=True):
        assert_same(found, expected)


PAIRS_OF_TRANSFORMS = [
    (
        D.TransformedDistribution(D.Normal(0.3, 1.0), [D.AffineTransform(0.0, 2.0), D.ExpTransform()]),
        D.TransformedDistribution(D.Laplace(0.1, 1.0), [D.AffineTransform(0.0, 3.0), D.ExpTransform()]),
        (D.Normal(0.6, 2.0), D.Laplace(0.1 * 3.0, 3.0)),
    ),
    (
        D.LogNormal(1.0, 2.0),
        D.TransformedDistribution(D.Laplace(0.0, 1.0), D.ExpTransform()),
        (D.Normal(1.0, 2.0), D.Laplace(0.0, 1.0)),
    ),
    (
        D.TransformedDistribution(D.Laplace(0.0, 1.0), D.ExpTransform()),
        D.LogNormal(1.0, 2.0),
        (D.Laplace(0.0, 1.0), D.Normal(1.0, 2.0)),
    ),
    (
        D.TransformedDistribution(D.Gamma(2.0, 1.0), [D.AffineTransform(0.0, 2.0), D.SigmoidTransform()]),
        D.TransformedDistribution(D.Gamma(3.0, 1.0), [D.AffineTransform(0.0, 4.0), D.SigmoidTransform()]),
        (D.Gamma(2.0, 0.5), D.Gamma(3.0, 0.25)),
    ),
    (
        D.TransformedDistribution(D.Normal(0.0, 1.0), D.PowerTransform(2.0)),
        D.TransformedDistribution(D.Normal(0.0, 2.0), D.PowerTransform(2.0)),
        (D.Normal(0.0, 1.0), D.Normal(0.0, 2.0)),
    ),
]


@pytest.mark.parametrize(("p", "q", "behind"), PAIRS_OF_TRANSFORMS)
def test_transforms_that_are_equal_in_part(p, q, behind):
    """What the divergence is of is what the derivatives are of."""
    value, gradient = kl_divergence_grad(p, q)
    assert value == kl.kl_divergence(p, q) == kl.kl_divergence(*behind)
    for found, expected in zip(gradient, kl_divergence_grad(*behind)[1], strict=True):
        assert_same(found, expected)


def of_ones_own(*pairs):
    """Pairs of subclasses, which give 7 whatever the numbers."""
    for p, q in pairs:
        D.register_kl(p, q)(lambda p, q: 7.0)


@pytest.mark.usefixtures("own")
def test_pairs_of_subclasses_are_no_pairs_of_their_bases():
    class Parts(D.Independent):
        pass

    class Made(D.TransformedDistribution):
        pass

    class Vector(D.MultivariateNormal):
        pass

    of_ones_own((Parts, Parts), (Made, Made), (Vector, Vector), (Parts, D.Normal))
    normal = D.Normal([0.0, 1.0], 1.0)
    vector = Vector([0.0, 1.0], np.eye(2))
    for p, q in [
        (Parts(normal, 1), Parts(normal, 1)), (Made(normal, D.ExpTransform()), Made(normal, D.ExpTransform())),
        (vector, vector), (Parts(normal, 0), normal),
    ]:  # fmt: skip
        assert np.all(kl.kl_divergence(p, q) == 7.0)
        with pytest.raises(NotImplementedError, match="not registered with compiled=True"):
            kl_divergence_grad(p, q)


@pytest.mark.usefixtures("own")
def test_a_pair_of_ones_own_behind_transforms():
    class Mine(D.Normal):
        pass

    D.register_kl(Mine, Mine, compiled=True)(lambda a, b, c, d: 3.0 * (a - c) * (a - c))
    for transform in (D.ExpTransform(), D.AffineTransform(0.0, 2.0), D.SigmoidTransform()):
        p, q = (D.TransformedDistribution(Mine(x, 1.0), transform) for x in (0.5, 1.0))
        value, gradient = kl_divergence_grad(p, q)
        assert value == 0.75
        assert gradient.p["loc"] == -3.0
        assert gradient.q["scale"] == 0.0


@pytest.mark.usefixtures("own")
def test_a_pair_that_declines_leaves_those_of_the_base():
    torch = pytest.importorskip("torch")

    class Parts(D.Independent):
        pass

    D.register_kl(Parts, Parts)(lambda p, q: NotImplemented)
    x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    q = Parts(D.Normal([1.0], 1.0), 1)
    kl.kl_divergence(Parts(D.Normal(x, 1.0), 1), q).backward()
    assert x.grad.item() == -0.5
    _, gradient = kl_divergence_grad(Parts(D.Normal([0.5], 1.0), 1), q)
    assert gradient.p["loc"].item() == -0.5


@pytest.mark.usefixtures("own")
def test_nor_are_they_in_pytorch():
    torch = pytest.importorskip("torch")

    class Parts(D.Independent):
        pass

    class Vector(D.MultivariateNormal):
        pass

    of_ones_own((Vector, Vector))

    @D.register_kl(Parts, Parts)
    def seven(p, q):  # of numbers, of which none waits for a gradient
        return 7.0 + 0.0 * np.asarray(kl.kl_divergence(p.base_distribution, q.base_distribution)).sum(-1)

    x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    p, q = Parts(D.Normal(x, 1.0), 1), Parts(D.Normal(np.ones(2), 1.0), 1)
    with pytest.raises(NotImplementedError, match="no gradient goes to what the Parts is made of"):
        kl.kl_divergence(p, q)
    with pytest.raises(NotImplementedError, match="not registered with compiled=True"):
        kl.kl_divergence(Vector(x, np.eye(2)), Vector(np.ones(2), np.eye(2)))
    with torch.no_grad():
        assert kl.kl_divergence(Parts(D.Normal(x, 1.0), 1), q) == 7.0


def test_an_infinite_part_leaves_those_of_the_others():
    """As in PyTorch's graph: the derivatives are those of the terms of the sum."""
    p, q = (D.Joint([D.Normal(mean, 1.0), x]) for mean, x in ((0.0, D.Normal(0.0, 1.0)), (1.0, D.Uniform(0.0, 1.0))))
    value, gradient = kl_divergence_grad(p, q)
    assert value == np.inf
    assert gradient.p[0]["loc"] == -1.0
    assert np.isnan(gradient.p[1]["loc"])


def test_what_is_refused():
    with pytest.raises(ValueError, match="p, q: a Joint of 1 blocks and one of 2"):
        kl_divergence_grad(D.Joint([NORMALS[0]]), D.Joint([NORMALS[1], NORMALS[1]]))
    wishart = D.Wishart(3.0, np.eye(2))
    with pytest.raises(NotImplementedError, match=r"Wishart \|\| Wishart.*not registered with compiled=True"):
        kl_divergence_grad(D.Joint([wishart]), D.Joint([wishart]))
