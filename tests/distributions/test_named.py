"""Transformed distributions that are ones of a family."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import klnumba as kl
from klnumba import distributions as D

EXP, SIGMOID, ABS = D.ExpTransform(), D.SigmoidTransform(), D.AbsTransform()
INVERSE = D.PowerTransform(-1.0)
UNIT = D.Uniform(0.0, 1.0)


def of(base, *chain):
    return D.TransformedDistribution(base, chain)


def affine(loc, scale):
    return D.AffineTransform(loc, scale)


def parts(x):
    inner = x.base_distribution if isinstance(x, D.Independent) else x
    return [getattr(inner, name) for name in inner.parameters]


SAME = [
    (of(D.Normal([0.5, 1.0], 2.0), EXP), D.LogNormal([0.5, 1.0], 2.0)),
    (of(D.LogNormal(0.5, 2.0), EXP.inv), D.Normal(0.5, 2.0)),
    (of(D.Normal(0.5, 2.0), SIGMOID), D.LogitNormal(0.5, 2.0)),
    (of(D.LogitNormal(0.5, 2.0), SIGMOID.inv), D.Normal(0.5, 2.0)),
    (of(D.Normal(0.0, 2.0), ABS), D.HalfNormal(2.0)),
    (of(D.Cauchy(0.0, 2.0), ABS), D.HalfCauchy(2.0)),
    (of(D.Laplace(0.0, 4.0), ABS), D.Exponential(0.25)),
    (of(D.Gamma(2.0, 3.0), ABS), D.Gamma(2.0, 3.0)),
    (of(D.HalfNormal(2.0), affine(0.0, 3.0)), D.HalfNormal(6.0)),
    (of(D.HalfCauchy(2.0), affine(0.0, 3.0)), D.HalfCauchy(6.0)),
    (of(D.Pareto(1.0, [2.0, 3.0]), EXP.inv), D.Exponential([2.0, 3.0])),
    (of(D.Weibull(1.0, 4.0), D.PowerTransform(0.5), affine(0.0, 3.0)), D.Weibull(3.0, 8.0)),
    (of(D.Normal(0.5, 2.0), EXP, D.PowerTransform(-2.0)), D.LogNormal(-1.0, 4.0)),
    (of(D.Normal(0.0, 2.0), affine([3.0, 1.0], -2.0)), D.Normal([3.0, 1.0], 4.0)),
    (of(D.Normal(1.0, 2.0), affine(0.0, -2.0)), D.Normal(-2.0, 4.0)),
    (of(D.StudentT(5.0, 0.0, 2.0), affine(3.0, -2.0)), D.StudentT(5.0, 3.0, 4.0)),
    (of(D.Gumbel(0.0, 1.0), affine(3.0, 2.0)), D.Gumbel(3.0, 2.0)),
    (of(D.Exponential(2.0), EXP, affine(0.0, 3.0)), D.Pareto(3.0, 2.0)),
    (of(D.Exponential(2.0), affine(0.0, 4.0)), D.Exponential(0.5)),
    (of(D.Exponential(1.0), D.PowerTransform(0.25), affine(0.0, 3.0)), D.Weibull(3.0, 4.0)),
    (of(D.Gamma(2.0, 3.0), INVERSE), D.InverseGamma(2.0, 3.0)),
    (of(D.Chi2(3.0), INVERSE, affine(0.0, 2.0)), D.InverseGamma(1.5, 1.0)),
    (of(D.InverseGamma(2.0, 3.0), INVERSE, affine(0.0, 2.0)), D.Gamma(2.0, 1.5)),
    (of(UNIT, SIGMOID.inv, affine(3.0, 2.0)), D.Logistic(3.0, 2.0)),
    (of(UNIT, D.PowerTransform(0.5), affine(1.0, -1.0), D.PowerTransform(0.25)), D.Kumaraswamy(4.0, 2.0)),
    (of(D.Independent(D.Normal([0.5, 1.0], 2.0), 1), EXP), D.Independent(D.LogNormal([0.5, 1.0], 2.0), 1)),
]


@pytest.mark.parametrize(("made", "same"), SAME)
def test_families(made, same):
    found = made.named()
    assert type(found) is type(same)
    for one, other in zip(parts(found), parts(same), strict=True):
        np.testing.assert_array_equal(one, other)


def test_values_are_those_of_the_families():
    made = of(D.Normal([0.5, 1.0], 2.0), EXP)
    for other in (D.LogNormal(0.0, 1.0), D.Gamma(2.0, [[1.0], [2.0]])):
        there, back = D.LogNormal([0.5, 1.0], 2.0), other
        np.testing.assert_array_equal(kl.kl_divergence(made, other), kl.kl_divergence(there, back))
        np.testing.assert_array_equal(kl.kl_divergence(other, made), kl.kl_divergence(back, there))
    assert kl.kl_divergence(made, D.LogNormal(0.0, 1.0), base=2.0).shape == (2,)
    found = kl.kl_divergence(D.Independent(made, 1), D.Independent(D.LogNormal([0.0, 0.0], 1.0), 1))
    np.testing.assert_allclose(found, kl.kl_divergence(made, D.LogNormal(0.0, 1.0)).sum(), rtol=1e-15)


def test_derivatives_are_those_of_the_families():
    made, same = of(D.Normal([0.5, 1.0], 2.0), EXP), D.LogNormal([0.5, 1.0], 2.0)
    for other in (of(D.Normal(0.0, 3.0), EXP), D.LogNormal(0.0, 3.0), D.Gamma(2.0, [[1.0], [2.0]])):
        value, found = D.kl_divergence_grad(made, other)
        expected_value, expected = D.kl_divergence_grad(same, other)
        np.testing.assert_array_equal(value, expected_value)
        for one, another in zip(found, expected, strict=True):
            assert one.keys() == another.keys()
            for name in one:
                np.testing.assert_array_equal(one[name], another[name])
    with pytest.raises(NotImplementedError, match=r"KL\(TransformedDistribution \|\| LogNormal\) is not registered"):
        D.kl_divergence_grad(of(D.Normal(), D.TanhTransform()), D.LogNormal())


def test_the_batch_of_the_transforms_and_the_precision_are_kept():
    made = of(D.Gamma(np.float32(2.0), np.float32(3.0)), D.PowerTransform([-1.0, -1.0]))
    found = kl.kl_divergence(made, D.InverseGamma(np.float32(1.0), np.float32(1.0)))
    assert (found.shape, found.dtype) == ((2,), np.float32)


def test_transforms_that_both_end_with_are_taken_off():
    last = affine(1.0, 3.0)
    expected = kl.kl_divergence(D.Normal(0.5, 2.0), D.Normal(0.0, 1.0))
    made = of(D.Normal(0.5, 2.0), EXP, last)
    for other in (of(D.LogNormal(0.0, 1.0), last), of(of(D.Normal(), EXP), last)):
        assert kl.kl_divergence(made, other) == expected
    assert kl.kl_divergence(of(D.Normal(0.0, 1.0), ABS), of(D.Normal(0.0, 2.0), ABS)) == kl.kl_divergence(
        D.HalfNormal(1.0), D.HalfNormal(2.0)
    )


@pytest.mark.parametrize(
    "made",
    [
        of(D.Normal(1.0, 2.0), ABS),
        of(D.Pareto(2.0, 3.0), EXP.inv),
        of(D.Weibull(2.0, 3.0), D.PowerTransform(2.0)),
        of(D.Normal(1.0, 2.0), affine(-2.0, 2.0)),  # two roundings, which may leave nothing
        of(D.Gumbel(0.0, 1.0), affine(0.0, -1.0)),
        of(D.Gamma(2.0, 1.0), D.PowerTransform(-2.0)),
        of(D.Gamma(2.0, 1.0), affine(1.0, 1.0)),
        of(D.Gamma(2.0, 1.0), EXP),
        of(D.Uniform(0.0, 2.0), D.PowerTransform(2.0)),
        of(D.Exponential([1.0, 2.0]), D.PowerTransform(2.0)),
        of(D.Independent(D.Normal([0.0, 1.0], 1.0), 1), D.StickBreakingTransform()),
    ],
)
def test_what_is_of_no_family_here(made):
    assert made.named() is made
    with pytest.raises(NotImplementedError, match=r"KL\(TransformedDistribution \|\| Normal\) is not registered"):
        kl.kl_divergence(made, D.Normal())


def test_what_was_not_checked_stays_so():
    made = of(D.Normal(0.0, [1.0, -1.0], validate_args=False), EXP)
    assert np.isnan(kl.kl_divergence(made, D.LogNormal())).tolist() == [False, True]


class TestPyTorch:
    @pytest.fixture(autouse=True)
    def _torch(self):
        self.torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        self.of = self.torch.distributions

    def assert_both(self, p, q):
        for one, other in ((p, q), (q, p)):
            expected = self.of.kl_divergence(one, other)
            self.torch.testing.assert_close(kl.kl_divergence(one, other), expected, rtol=1e-12, atol=1e-15)

    def test_families_that_are_transformed_ones_there(self):
        of, made = self.of, self.of.TransformedDistribution
        one, two, three = (self.torch.tensor(x, dtype=self.torch.float64) for x in (1.0, 2.0, 3.0))
        chain = [of.ExpTransform(), of.AffineTransform(0.0, three)]
        self.assert_both(made(of.Normal(one, two), [of.ExpTransform()]), of.LogNormal(two, one))
        self.assert_both(made(of.Exponential(two), chain), of.Pareto(three, one))
        self.assert_both(made(of.Gamma(two, three), [of.PowerTransform(-one)]), of.InverseGamma(one, two))
        self.assert_both(made(of.Normal(0.0 * one, two), [of.AbsTransform()]), of.HalfNormal(three))
        self.assert_both(made(of.Cauchy(0.0 * one, two), [of.AbsTransform()]), of.HalfCauchy(three))
        for same in (of.Weibull(two, three), of.Kumaraswamy(two, three)):
            self.assert_both(made(same.base_dist, same.transforms), same)

    def test_equal_transforms(self):
        of, made = self.of, self.of.TransformedDistribution
        numbers = self.torch.tensor([0.5, 1.0], dtype=self.torch.float64)
        bases = of.Normal(numbers, 2.0 * numbers), of.Normal(numbers - 1.0, numbers)
        exp = of.ExpTransform()
        for chain in (
            [of.SoftplusTransform()],
            [of.StickBreakingTransform()],
            [of.ComposeTransform([exp, of.ComposeTransform([of.AffineTransform(1.0, 2.0)]), exp.inv, exp])],
            [exp, of.ComposeTransform([exp.inv, of.AffineTransform(1.0, 2.0)]).inv],
        ):
            self.assert_both(*(made(base, chain) for base in bases))
        independent = [of.IndependentTransform(exp, 1)]  # torch.distributions refuses these
        found = kl.kl_divergence(*(made(base, independent) for base in bases))
        self.torch.testing.assert_close(found, of.kl_divergence(*bases).sum())

    def test_transforms_without_a_counterpart(self):
        of = self.of
        from klnumba.distributions.torch_transforms import NONE, SAME

        abstract = {"ComposeTransform", "IndependentTransform", "CumulativeDistributionTransform"}
        elsewhere = {x for x in of.transforms.__all__ if x.endswith("Transform")} - abstract
        assert set(SAME) | set(NONE) - abstract == elsewhere - {"Transform"}
        base = of.Normal(self.torch.zeros(2), 1.0)
        for transform in (of.SoftmaxTransform(), of.ReshapeTransform((2,), (1, 2))):
            name = type(transform).__name__
            with pytest.raises(TypeError, match=rf"p: torch\.distributions' {name} has no .* here: {NONE[name]}"):
                kl.kl_divergence(of.TransformedDistribution(base, [transform]), base)


def test_what_float32_would_round_is_float64():
    f = np.float32
    p, q = (D.TransformedDistribution(D.Normal(f(0), f(0.3)), D.AffineTransform(f(0), f(s))) for s in (0.1, 0.10001))
    exact = float(kl.kl_divergence(D.Normal(0.0, float(f(0.1))), D.Normal(0.0, float(f(0.10001)))))
    assert float(kl.kl_divergence(p, q)) == pytest.approx(exact, rel=1e-6)


def test_what_a_product_beyond_the_range_would_round_has_no_name():
    base = D.Normal(0.0, 1e-160)
    p, q = (D.TransformedDistribution(base, D.AffineTransform(0.0, s)) for s in (1.2345e-160, 1e-160))
    with pytest.raises(NotImplementedError, match="known for equal transforms"):
        kl.kl_divergence(p, q)
    with pytest.raises(NotImplementedError, match="known for equal transforms"):
        kl.kl_divergence(
            *(D.TransformedDistribution(D.Normal(0.0, 1e200), D.AffineTransform(0.0, s)) for s in (1e200, 1e201))
        )


def test_equal_transforms_that_make_one_number_of_two_distributions():
    """Each is injective on its own numbers, and not on those of both: the divergence is less than that of the bases."""
    pairs = [
        (D.Uniform(-1.0, 0.0), D.Uniform(0.0, 2.0), D.AbsTransform()),
        (D.Uniform(-2.0, -1.0), D.Uniform(1.0, 2.0), D.PowerTransform(2.0)),
    ]
    for first, second, transform in pairs:
        p, q = (D.TransformedDistribution(x, transform) for x in (first, second))
        with pytest.raises(NotImplementedError, match="injective on the numbers of both"):
            kl.kl_divergence(p, q)


class Shifted(D.TransformedDistribution):
    """A subclass with arguments of its own."""

    def __init__(self, a):
        super().__init__(D.Normal(a, 1.0), D.AffineTransform(1.0, 2.0))


class Twice(D.Mixture):
    def __init__(self, a):
        super().__init__(D.Categorical([0.5, 0.5]), D.Normal([a, a + 1.0], 1.0))


class Both(D.Independent):
    def __init__(self, a):
        super().__init__(D.Normal([a, 1.0], 1.0), 1)


class Scaled(D.Normal):
    """A subclass that keeps more than its parameters."""

    def __init__(self, loc, unit):
        super().__init__(loc, 1.0)
        self.__dict__["unit"] = unit

    def to_scipy(self):
        return stats.norm(self.loc, self.unit)


@pytest.mark.parametrize(
    ("p", "q", "method", "exact"),
    [
        (Shifted(0.0), Shifted(2.0), "auto", 2.0),
        (Shifted(0.0), Shifted(2.0), "quadrature", 2.0),
        (Twice(0.0), Twice(0.0), "quadrature", 0.0),
        (Twice(0.0), Twice(0.0), "monte_carlo", 0.0),
        (Both(0.0), Both(0.0), "monte_carlo", 0.0),
        (Scaled(0.0, 3.0), D.Normal(0.0, 1.0), "quadrature", 4.0 - math.log(3.0)),
    ],
)
def test_subclasses_have_what_their_base_has(p, q, method, exact):
    assert float(kl.kl_divergence(p, q, method=method)) == pytest.approx(exact, rel=1e-8, abs=1e-12)
