"""What transforms do to supports and entropies, and which are refused."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D

ALL, POSITIVE, NEGATIVE = (-math.inf, math.inf), (0.0, math.inf), (-math.inf, 0.0)


def of(base, *chain):
    return D.TransformedDistribution(base, chain)


@pytest.mark.parametrize(
    ("base", "other", "chain"),
    [
        (D.Normal(1.0, 1.0), D.Normal(-1.0, 1.0), [D.PowerTransform(2.0)]),
        (D.Normal(1.0, 1.0), D.Normal(-1.0, 1.0), [D.PowerTransform([3.0, 4.0])]),
        (D.Normal(1.0, 1.0), D.Normal(-1.0, 1.0), [D.PowerTransform(-2.0)]),
        (D.Gamma(2.0, 1.0), D.Gamma(3.0, 1.0), [D.AffineTransform(-1.0, 1.0), D.PowerTransform(2.0)]),
        (D.Gamma(2.0, 1.0), D.Normal(1.0, 1.0), [D.PowerTransform(2.0)]),
        (D.Normal(1.0, 1.0), D.Normal(-1.0, 1.0), [D.AbsTransform()]),
        (D.Uniform(-1.0, [0.0, 1.0]), D.Uniform(-1.0, [0.0, 1.0]), [D.AbsTransform()]),
    ],
)
def test_a_transform_that_is_not_injective_is_refused(base, other, chain):
    with pytest.raises(NotImplementedError, match=r"Transform\(.*\) is not injective on numbers from"):
        kl.kl_divergence(of(base, *chain), of(other, *chain))


def test_what_pytorch_has_is_refused_too():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    made = torch.distributions
    p, q = (made.TransformedDistribution(made.Normal(x, 1.0), [made.PowerTransform(2.0)]) for x in (1.0, -1.0))
    with pytest.raises(NotImplementedError, match=r"PowerTransform.* is not injective"):
        kl.kl_divergence(p, q)


@pytest.mark.parametrize(
    ("base", "other", "chain"),
    [
        (D.Normal(1.0, 1.0), D.Normal(-1.0, 1.0), [D.ExpTransform(), D.PowerTransform(2.0)]),
        (D.Normal(1.0, 1.0), D.Normal(-1.0, 1.0), [D.PowerTransform(3.0)]),
        (D.Normal(1.0, 1.0), D.Normal(-1.0, 1.0), [D.PowerTransform(-1.0)]),
        (D.Gamma(2.0, 1.0), D.Gamma(3.0, 1.0), [D.PowerTransform(0.5)]),
        (D.Gamma(2.0, 1.0), D.Gamma(3.0, 1.0), [D.AffineTransform(0.0, -1.0), D.PowerTransform(2.0)]),
        (D.Gamma(2.0, 1.0), D.Gamma(3.0, 1.0), [D.AbsTransform()]),
        (D.Poisson(2.0), D.Poisson(3.0), [D.PowerTransform(2.0)]),
        (D.Normal(1.0, 1.0), D.Normal(-1.0, 1.0), [D.SoftplusTransform()]),
        (D.Gamma(2.0, 1.0), D.Gamma(3.0, 1.0), [D.SoftplusTransform().inv]),
        (D.Gamma(2.0, 1.0), D.Gamma(3.0, 1.0), [D.ExpTransform().inv, D.TanhTransform(), D.TanhTransform().inv]),
        (D.Gamma(2.0, 1.0), D.Gamma(3.0, 1.0), [D.PowerTransform(2.0).inv, D.AffineTransform(1.0, 2.0).inv]),
        (D.Normal(1.0, 1.0), D.Normal(-1.0, 1.0), [D.PowerTransform(3.0).inv]),
    ],
)
def test_one_that_is_injective_where_there_is_mass_is_taken(base, other, chain):
    assert kl.kl_divergence(of(base, *chain), of(other, *chain)) == kl.kl_divergence(base, other) > 0.0


def test_a_root_of_negative_numbers_is_refused():
    with pytest.raises(ValueError, match=r"PowerTransform\(exponent=0.5\) must be given numbers from 0.0 to inf, but"):
        of(D.Normal(), D.PowerTransform(0.5))
    with pytest.raises(ValueError, match=r"SigmoidTransform\(\).inv must be given numbers from 0.0 to 1.0, but .* 2.0"):
        of(D.Uniform(0.5, 2.0), D.SigmoidTransform().inv)
    of(D.Uniform(0.0, [0.5, 1.0]), D.SigmoidTransform().inv)
    for exponent in (2.0, -3.0, 1.0 / 3.0, [3.0, 2.0]):
        with pytest.raises(ValueError, match=r"PowerTransform\(.*\).inv must be given numbers from .*0.* but"):
            of(D.Normal(), D.PowerTransform(exponent).inv)


@pytest.mark.parametrize(
    ("base", "transform", "ends"),
    [
        (D.Normal(), D.PowerTransform(2.0), POSITIVE),
        (D.Normal(), D.PowerTransform(3.0), ALL),
        (D.Normal(), D.PowerTransform(-1.0), ALL),
        (D.Normal(), D.PowerTransform(-2.0), POSITIVE),
        (D.Uniform(-3.0, 2.0), D.PowerTransform(2.0), (0.0, 9.0)),
        (D.Uniform(-0.5, 2.0), D.PowerTransform(-2.0), (0.25, math.inf)),
        (D.Uniform(1.0, 2.0), D.PowerTransform(-1.0), (0.5, 1.0)),
        (D.Gamma(1.0, 1.0), D.PowerTransform(-0.5), POSITIVE),
        (D.Gamma(1.0, 1.0), D.AffineTransform(0.0, -2.0), NEGATIVE),
        (D.Uniform(-3.0, 2.0), D.AbsTransform(), (0.0, 3.0)),
        (D.Uniform(-3.0, -2.0), D.AbsTransform(), (2.0, 3.0)),
        (D.Normal(), D.SoftplusTransform(), POSITIVE),
        (D.Gamma(1.0, 1.0), D.ExpTransform().inv, ALL),
        (D.Uniform(1.0, 4.0), D.PowerTransform(-2.0).inv, (0.5, 1.0)),
        (D.Uniform(-8.0, 1.0), D.PowerTransform(3.0).inv, (-2.0, 1.0)),
    ],
)
def test_supports(base, transform, ends):
    assert of(base, transform).support[:2] == ends


def test_equal_transforms():
    one, other = D.AffineTransform([1.0, 1.0], 2.0), D.AffineTransform(1.0, [2.0, 2.0])
    assert one == other == D.AffineTransform(1.0, 2.0)
    assert len({one, other, D.AffineTransform(1.0, 2.0)}) == 1
    assert one != D.AffineTransform([1.0, 0.0], 2.0)
    assert one != D.AffineTransform([1.0, 1.0, 1.0], 2.0)
    p, q = of(D.Normal([0.0, 1.0], 1.0), one), of(D.Normal(0.0, 1.0), D.AffineTransform(1.0, 2.0))
    np.testing.assert_array_equal(kl.kl_divergence(p, q), [0.0, 0.5])


EXP = D.ExpTransform()


@pytest.mark.parametrize("transform", [EXP, D.AffineTransform(1.0, -2.0), D.SoftplusTransform(), D.PowerTransform(2.0)])
def test_inverses(transform):
    x = np.array([0.25, 1.0, 3.0])
    np.testing.assert_allclose(transform.inv(transform(x)), x, rtol=1e-14)
    np.testing.assert_allclose(transform.inv.inverse(x, math.inf), transform(x), rtol=0.0)
    assert transform.inv.inv is transform
    assert transform.inv == pickle.loads(pickle.dumps(transform)).inv != transform
    assert len({transform.inv, transform.inv, transform}) == 2
    assert repr(transform.inv) == f"{transform!r}.inv"


def test_what_has_no_inverse():
    with pytest.raises(NotImplementedError, match=r"InverseTransform: StickBreakingTransform\(\) has no inverse here"):
        D.StickBreakingTransform().inv  # noqa: B018
    with pytest.raises(TypeError, match="InverseTransform: transform must be a Transform, not float"):
        D.InverseTransform(1.0)


def test_a_batch_of_inverses():
    power = D.PowerTransform([2.0, 3.0]).inv
    whole = of(D.Gamma(2.0, 1.0), power)
    assert whole.one((1,)).transforms == (D.PowerTransform(3.0).inv,)


def test_a_transform_does_not_change():
    scale = np.array([2.0, 3.0])
    affine = D.AffineTransform(0.0, scale)
    scale[0] = 5.0
    assert affine.parameters["scale"].tolist() == [2.0, 3.0]
    for again in (affine, copy.deepcopy(affine), pickle.loads(pickle.dumps(affine))):
        with pytest.raises(TypeError, match="does not support item assignment"):
            again.parameters["scale"] = np.array(-5.0)
        with pytest.raises(ValueError, match="read-only"):
            again.parameters["scale"][0] = 1.0
        with pytest.raises(AttributeError, match=r"AffineTransform\.parameters: a transform does not change"):
            again.parameters = {}
        with pytest.raises(AttributeError, match=r"AffineTransform\.parameters: a transform does not change"):
            del again.parameters
        assert again == affine
    with pytest.raises(ValueError, match="WRITEABLE"):
        affine.parameters["scale"].flags.writeable = True


@pytest.mark.parametrize(
    ("loc", "kind", "words"),
    [
        ("1", TypeError, "loc must be real numbers"),
        (1j, TypeError, "loc must be real numbers"),
        ([[1.0], [1.0, 2.0]], ValueError, "loc must be a number or an array, but its rows differ in length"),
        (np.ma.array([1.0, 2.0], mask=[False, True]), ValueError, r"loc\[1\] is masked"),
    ],
)
def test_what_is_no_parameter_is_refused_by_name(loc, kind, words):
    with pytest.raises(kind, match=f"^AffineTransform: .*{words}"):
        D.AffineTransform(loc, 1.0)


class Square(D.Transform):
    def __call__(self, x):
        return np.square(x)


class Cube(D.Transform):
    def __call__(self, x):
        return x**3

    def injective(self, low, high):
        return True


def test_a_transform_of_the_user_has_to_say_that_it_is_injective():
    bases = D.Normal(1.0, 1.0), D.Normal(-1.0, 1.0)
    for chain in ([Square()], [Square(), EXP]):
        with pytest.raises(
            NotImplementedError, match=r"Square\(\) does not say .* define injective\(self, low, high\)"
        ):
            kl.kl_divergence(*(of(base, *chain) for base in bases))
    with pytest.raises(NotImplementedError, match=r"Square\(\) does not say"):
        of(D.Normal(), Square()).support  # noqa: B018
    assert kl.kl_divergence(*(of(base, Cube()) for base in bases)) == 2.0
    assert of(D.Uniform(-1.0, 2.0), Cube()).support[:2] == (-1.0, 8.0)
    with pytest.raises(NotImplementedError, match=r"Cube\(\) has no inverse here"):
        Cube().inv  # noqa: B018


@pytest.mark.parametrize(
    ("ours", "same"),
    [
        (of(D.Normal([0.3, 1.0], 2.0), EXP), D.LogNormal([0.3, 1.0], 2.0)),
        (of(D.Normal(0.5, 1.0), D.AffineTransform(1.0, -2.0), EXP), D.LogNormal(0.0, 2.0)),
        (of(D.Normal(0.5, 1.0), EXP, D.PowerTransform(-3.0)), D.LogNormal(-1.5, 3.0)),
        (
            of(D.Normal(0.5, 1.0), EXP, D.AffineTransform(0.0, math.e), D.PowerTransform(2.0)),
            D.LogNormal(3.0, 2.0),
        ),
        (of(D.Exponential(3.0), EXP), D.Pareto(1.0, 3.0)),
        (of(D.Normal(0.5, 1.0), D.AffineTransform(1.0, -2.0)), D.Normal(0.0, 2.0)),
        (of(D.Poisson(2.0), EXP), D.Poisson(2.0)),
    ],
)
def test_entropies(ours, same):
    np.testing.assert_allclose(ours.entropy(), same.entropy(), rtol=1e-14)


def test_the_entropy_of_a_vector_sums_over_its_parts():
    base = D.Independent(D.Normal([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]), 1)
    parts = D.LogNormal([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]).entropy()
    assert of(base, EXP).entropy() == pytest.approx(parts.sum(), rel=1e-14)


def test_a_cross_entropy_of_transformed_distributions():
    p, q = of(D.Normal(0.0, 1.0), EXP), of(D.Normal(0.0, 2.0), EXP)
    same = kl.cross_entropy(D.LogNormal(0.0, 1.0), D.LogNormal(0.0, 2.0))
    assert kl.cross_entropy(p, q) == pytest.approx(float(same), rel=1e-14)


@pytest.mark.parametrize("chain", [[D.SigmoidTransform()], [EXP, EXP], [EXP, D.AffineTransform(1.0, 1.0), EXP]])
def test_entropies_that_are_not_known(chain):
    with pytest.raises(NotImplementedError, match=r"TransformedDistribution: .*known"):
        of(D.Normal(), *chain).entropy()


def test_integrals_of_softplus_and_of_inverses():
    p, q = (of(D.Normal(loc, 1.0), D.SoftplusTransform()) for loc in (0.0, 0.5))
    assert kl.kl_divergence(p, q, method="quadrature") == pytest.approx(0.125, rel=1e-8)
    p = of(D.LogNormal(0.0, 1.0), EXP.inv)
    expected = kl.kl_divergence(D.Normal(), D.Laplace(0.5, 1.0))
    assert kl.kl_divergence(p, D.Laplace(0.5, 1.0), method="quadrature") == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("exponent", [3.0, 5.0])
def test_integrals_of_odd_powers_and_roots_of_numbers_on_both_sides_of_0(exponent):
    """The density of the power has a pole at 0, that of the root a zero."""
    expected = kl.kl_divergence(D.Normal(0.3, 1.0), D.Normal(-1.0, 2.0))
    power = D.PowerTransform(exponent)
    for transform in (power, power.inv):
        p, q = (of(D.Normal(*x), transform) for x in ((0.3, 1.0), (-1.0, 2.0)))
        value, error = kl.kl_divergence(p, q, method="quadrature", return_error=True)
        assert float(value) == pytest.approx(float(expected), rel=1e-12)
        assert error < 1e-11
    mean, spread = kl.kl_divergence(p, q, method="monte_carlo", rng=1, return_error=True)
    assert abs(mean - expected) < 4.0 * spread
