"""Families read as what transforms make of others, beside a `TransformedDistribution` that ends with the same ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp
from scipy import stats

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions.apart import PARTS, apart
from klnumba.distributions.densities import frozen

EXP, ABS, SIGMOID = D.ExpTransform(), D.AbsTransform(), D.SigmoidTransform()


def of(base, *chain):
    return D.TransformedDistribution(base, chain)


ONES = {
    D.LogNormal: (0.3, 2.0),
    D.LogitNormal: (0.3, 2.0),
    D.HalfNormal: (2.0,),
    D.HalfCauchy: (2.0,),
    D.Pareto: (3.0, 2.0),
    D.Weibull: (3.0, 7.0),
    D.Exponential: (2.0,),
    D.Gumbel: (1.0, 3.0),
    D.Logistic: (1.0, 3.0),
    D.InverseGamma: (2.0, 3.0),
    D.Kumaraswamy: (4.0, 0.2),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("family", PARTS)
def test_the_parts_make_the_family(family, dtype):
    one = family(*(dtype(x) for x in ONES[family]))
    base, chain = apart(one)
    draws = base.to_scipy().rvs(size=20_000, random_state=7)
    for transform in chain:
        draws = transform(draws)
    assert stats.kstest(draws, frozen(one).cdf).pvalue > 0.01
    assert base.dtype == dtype
    assert of(base, *chain).support[:2] == one.support[:2]


def test_an_integral_over_what_the_transforms_make():
    """Of y = 3*exp(x), x gamma or exponential, over y itself."""

    def log_gamma(y):
        x = mp.log(y / 3)
        return mp.log(x) - x - mp.log(y)

    def log_pareto(y):
        return mp.log(2) + 2 * mp.log(3) - 3 * mp.log(y)

    with mp.workdps(20):
        steps = [3 * mp.exp(x) for x in (0, 0.5, 1, 2, 4, 8, 16, 32, 64)]
        exact = mp.quad(lambda y: mp.exp(log_gamma(y)) * (log_gamma(y) - log_pareto(y)), steps)
    p = of(D.Gamma(2.0, 1.0), EXP, D.AffineTransform(0.0, 3.0))
    assert float(kl.kl_divergence(p, D.Pareto(3.0, 2.0))) == pytest.approx(float(exact), rel=1e-13)


WEIBULL = [D.PowerTransform(1.0 / 49.0), D.AffineTransform(0.0, [3.0, 2.0])]
FLIP = D.AffineTransform(1.0, -1.0)


@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("one", "other", "base", "second"),
    [
        (D.LogNormal([0.5, 1.0], 2.0), of(D.Laplace(), EXP), D.Normal([0.5, 1.0], 2.0), D.Laplace()),
        (D.LogNormal(0.5, 2.0), of(D.Gumbel([0.0, 1.0]), EXP), D.Normal(0.5, 2.0), D.Gumbel([0.0, 1.0])),
        (D.Pareto(3.0, 2.0), of(D.LogNormal(), D.AffineTransform(0.0, 3.0)), D.Pareto(1.0, 2.0), D.LogNormal()),
        (D.Pareto(1.0, 2.0), of(of(D.Gamma(2.0, 1.0), EXP), D.AffineTransform(0.0, 1.0)),
         D.Exponential(2.0), D.Gamma(2.0, 1.0)),
        # a scale of 1 on one side alone
        (D.Pareto([1.0, 1.0], 3.0), of(D.Gamma(2.0, 1.0), EXP), D.Exponential(3.0), D.Gamma(2.0, 1.0)),
        (D.Weibull(1.0, 2.0), of(D.Gamma([2.0, 3.0], 1.0), D.PowerTransform(0.5)),
         D.Exponential(1.0), D.Gamma([2.0, 3.0], 1.0)),
        (D.Logistic(0.0, 1.0), of(D.Beta(2.0, 3.0), SIGMOID.inv), D.Uniform(0.0, 1.0), D.Beta(2.0, 3.0)),
        (D.Kumaraswamy(1.0, 4.0), of(D.Beta(2.0, 3.0), D.PowerTransform(0.25), FLIP),
         D.Uniform(0.0, 1.0), D.Beta(2.0, 3.0)),
        (D.Weibull([3.0, 2.0], 49.0), of(D.Gamma(2.0, 1.0), *WEIBULL), D.Exponential(1.0), D.Gamma(2.0, 1.0)),
        (D.Kumaraswamy(49.0, 4.0), of(D.Beta(2.0, 3.0), D.PowerTransform(0.25), FLIP, D.PowerTransform(1.0 / 49.0)),
         D.Uniform(0.0, 1.0), D.Beta(2.0, 3.0)),
        (D.Kumaraswamy(49.0, 4.0), of(D.Beta(2.0, 3.0), D.PowerTransform(1.0 / 49.0)),
         D.Kumaraswamy(1.0, 4.0), D.Beta(2.0, 3.0)),
        (D.Gumbel(1.0, 2.0), of(D.Gamma(2.0, 1.0), EXP.inv, D.AffineTransform(1.0, -2.0)),
         D.Exponential(1.0), D.Gamma(2.0, 1.0)),
        (D.Logistic(1.0, 2.0), of(D.LogitNormal(), SIGMOID.inv, D.AffineTransform(1.0, 2.0)),
         D.Logistic(), D.Normal()),
        (D.InverseGamma(2.0, 3.0), of(D.Weibull(2.0, 3.0), D.PowerTransform(-1.0)),
         D.Gamma(2.0, 3.0), D.Weibull(2.0, 3.0)),
        (D.HalfNormal(2.0), of(D.Laplace(0.0, 3.0), ABS), D.Normal(0.0, 2.0), D.Laplace(0.0, 3.0)),
        (D.HalfCauchy(2.0), of(D.StudentT(1.0, 0.0, 3.0), ABS), D.Cauchy(0.0, 2.0), D.StudentT(1.0, 0.0, 3.0)),
        (D.HalfNormal(2.0), of(D.Gamma(2.0, 3.0), ABS), D.HalfNormal(2.0), D.Gamma(2.0, 3.0)),
        (of(D.Normal(), EXP, D.PowerTransform(2.0)), of(D.Laplace(), EXP), D.Normal(0.0, 2.0), D.Laplace()),
        (D.Independent(D.LogNormal([0.5, 1.0], 2.0), 1), of(D.Independent(D.Laplace([0.0, 1.0]), 1), EXP),
         D.Independent(D.Normal([0.5, 1.0], 2.0), 1), D.Independent(D.Laplace([0.0, 1.0]), 1)),
    ],
)  # fmt: skip
def test_the_bases_decide(one, other, base, second):
    known = 0
    for made, same in (((one, other), (base, second)), ((other, one), (second, base))):
        try:
            expected = kl.kl_divergence(*same)
        except NotImplementedError:
            continue
        np.testing.assert_allclose(kl.kl_divergence(*made), expected, rtol=1e-15)
        assert np.shape(kl.kl_divergence(*made)) == np.broadcast_shapes(one.batch_shape, other.batch_shape)
        known += 1
    assert known


def test_a_sign_that_says_nothing_is_given_up():
    """The density of the absolute value is twice that of the number, on both sides."""
    for transform in (ABS, D.PowerTransform(2.0), D.PowerTransform(-2.0)):
        for p, q in ((D.Normal(0.0, 2.0), D.Laplace(0.0, 3.0)), (D.Uniform(-1.0, 1.0), D.Normal(0.0, [1.0, 2.0]))):
            np.testing.assert_allclose(
                kl.kl_divergence(of(p, transform), of(q, transform)), kl.kl_divergence(p, q), rtol=1e-15
            )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (D.HalfNormal(2.0), of(D.Normal([0.0, 1.0], 1.0), ABS)),
        (D.Weibull(2.0, 3.0), of(D.Gamma(2.0, 1.0), D.PowerTransform(0.5), D.AffineTransform(0.0, 2.0))),
        (D.Weibull([1.0, 2.0], 2.0), of(D.Gamma(2.0, 1.0), D.PowerTransform(0.5))),
        (D.LogNormal(0.0, 1.0), of(D.Laplace(), D.SoftplusTransform())),
        (D.LogNormal(0.0, [1.0, -1.0], validate_args=False), of(D.Laplace(), EXP)),
        (D.Normal(), of(D.Normal(), D.TanhTransform())),
    ],
)
def test_what_is_not_read_so(one, other):
    for p, q in ((one, other), (other, one)):
        with pytest.raises(
            NotImplementedError, match=r"is not registered; registered for|is known for equal transforms"
        ):
            kl.kl_divergence(p, q)


class TestPyTorch:
    """Each family that is a transformed distribution there."""

    @pytest.fixture(autouse=True)
    def _torch(self):
        self.torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        self.of = self.torch.distributions

    def tensor(self, x):
        return self.torch.tensor(x, dtype=self.torch.float64)

    def assert_both(self, p, q, *, rtol=1e-13):
        checked = 0
        for one, other in ((p, q), (q, p)):
            try:
                expected = self.of.kl_divergence(one, other)
            except NotImplementedError:
                continue
            found = kl.kl_divergence(one, other)
            self.torch.testing.assert_close(found, expected, rtol=rtol, atol=0.0)
            checked += 1
        assert checked

    def assert_with_bases(self, family, *bases):
        for base in bases:
            self.assert_both(family, self.of.TransformedDistribution(base, family.transforms))

    def test_every_family(self):
        of, x = self.of, self.tensor
        laplace, gamma, beta = of.Laplace(x([0.0, 1.0]), x(1.0)), of.Gamma(x(2.0), x(1.5)), of.Beta(x(2.0), x(3.0))
        gumbel, uniform = of.Gumbel(x(0.0), x(1.0)), of.Uniform(x(0.0), x(1.0))
        centred = of.Laplace(x(0.0), x(3.0))
        self.assert_with_bases(of.LogNormal(x([0.3, 0.5]), x(1.2)), laplace, gumbel, uniform, of.Normal(x(0.0), x(1.0)))
        self.assert_with_bases(
            of.LogisticNormal(x([0.3, 0.5]), x([1.0, 1.2])), of.Laplace(x([0.0, 1.0]), x([1.0, 2.0]))
        )
        self.assert_with_bases(of.Pareto(x(3.0), x(2.0)), gamma, of.Exponential(x(2.0)))
        self.assert_with_bases(of.Weibull(x(3.0), x([7.0, 49.0])), gamma, of.Exponential(x(2.0)))
        self.assert_with_bases(of.HalfNormal(x(2.0)), centred, of.Normal(x(0.0), x(1.0)))
        self.assert_with_bases(of.HalfCauchy(x(2.0)), of.Cauchy(x(0.0), x(1.0)))
        self.assert_with_bases(of.Kumaraswamy(x(49.0), x([0.3, 7.0])), beta)
        self.assert_with_bases(of.InverseGamma(x(2.0), x(3.0)), of.Exponential(x(2.0)), gamma)

    def test_every_class_that_is_one_is_known(self):
        of = self.of
        there = {kind for kind in of.TransformedDistribution.__subclasses__() if kind.__module__.startswith("torch.")}
        others = {"LogisticNormal", "RelaxedBernoulli", "RelaxedOneHotCategorical"}  # transformed here too, or refused
        only_here = {"Exponential", "Logistic", "LogitNormal"}
        assert {kind.__name__ for kind in there} == {kind.__name__ for kind in PARTS} - only_here | others

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_rounded_parameters_are_rounded_alike(self, dtype):
        of, dtype = self.of, getattr(self.torch, dtype)
        numbers = self.torch.tensor(np.random.default_rng(5).gamma(2.0, 3.0, 1_000), dtype=dtype)
        for family in (of.Weibull(2.0 * numbers, numbers), of.Kumaraswamy(numbers, 2.0 * numbers)):
            self.torch.testing.assert_close(
                kl.kl_divergence(of.TransformedDistribution(family.base_dist, family.transforms), family),
                self.torch.zeros(1_000, dtype=dtype),
                rtol=0.0,
                atol=0.0,
            )

    def test_of_ours_and_theirs(self):
        of, x = self.of, self.tensor
        ours, theirs = D.LogNormal(0.5, 2.0), of.LogNormal(x(0.5), x(2.0))
        for other in (
            D.TransformedDistribution(D.Laplace(), EXP),
            of.TransformedDistribution(of.Laplace(x(0.0), x(1.0)), of.ExpTransform()),
        ):
            expected = float(kl.kl_divergence(D.Normal(0.5, 2.0), D.Laplace()))
            for one in (ours, theirs, stats.lognorm(2.0, scale=math.exp(0.5))):
                assert float(kl.kl_divergence(one, other)) == pytest.approx(expected, rel=1e-15)

    def test_the_uniform_inside_their_gumbel_has_other_ends(self):
        """Both directions are 0 there, and one of a Beta from 0 to 1 infinite."""
        of, x = self.of, self.tensor
        whole = of.Gumbel(x(1.0), x(2.0))
        parts = of.TransformedDistribution(whole.base_dist, whole.transforms)
        assert float(kl.kl_divergence(whole, parts)) == math.inf
        assert float(kl.kl_divergence(parts, whole)) == pytest.approx(2.0**-52, rel=1e-12)
        beta = of.Beta(x(2.0), x(3.0))
        found = kl.kl_divergence(of.TransformedDistribution(beta, whole.transforms), whole)
        assert float(found) == float(kl.kl_divergence(D.Beta(2.0, 3.0), D.Uniform(0.0, 1.0)))

    def test_what_is_wrong_there_is_not_taken_over(self):
        """The absolute value of a gamma variable is itself, and that of a normal one with a mean loses the sign."""
        of, x = self.of, self.tensor
        half = of.HalfNormal(x(2.0))
        found = kl.kl_divergence(half, of.TransformedDistribution(of.Gamma(x(2.0), x(3.0)), half.transforms))
        assert float(found) == float(kl.kl_divergence(D.HalfNormal(2.0), D.Gamma(2.0, 3.0)))
        with pytest.raises(NotImplementedError, match=r"KL\(HalfNormal \|\| TransformedDistribution\)"):
            kl.kl_divergence(half, of.TransformedDistribution(of.Normal(x(1.0), x(3.0)), half.transforms))
