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
    """A mapping a block, of the batch of the two blocks."""
    vectors = [D.MultivariateNormal([mean, 0.0], [[2.0, 0.5], [0.5, 1.0]]) for mean in (0.0, 1.0)]
    p, q = D.Joint([GAMMAS[0], vectors[0]]), D.Joint([GAMMAS[1], vectors[1]])
    value, gradient = kl_divergence_grad(p, q)
    assert np.array_equal(value, kl.kl_divergence(p, q))
    for k, pair in enumerate([GAMMAS, vectors]):
        for found, expected in zip(gradient, kl_divergence_grad(*pair)[1], strict=True):
            assert_same(found[k], expected)


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


def test_what_is_refused():
    with pytest.raises(ValueError, match="p, q: a Joint of 1 blocks and one of 2"):
        kl_divergence_grad(D.Joint([NORMALS[0]]), D.Joint([NORMALS[1], NORMALS[1]]))
    wishart = D.Wishart(3.0, np.eye(2))
    with pytest.raises(NotImplementedError, match=r"Wishart \|\| Wishart.*not registered with compiled=True"):
        kl_divergence_grad(D.Joint([wishart]), D.Joint([wishart]))
