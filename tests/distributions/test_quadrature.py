"""Every closed form once more by integrating, or summing, SciPy's densities; and where PyTorch has it, by PyTorch."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from mpmath import mp

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions import infinite
from tests.reference.distribution_errors import build, width
from tests.reference.distributions import AT, CLOSED, PARAMETERS

integrate = pytest.importorskip("scipy.integrate")
special = pytest.importorskip("scipy.special")
stats = pytest.importorskip("scipy.stats")

# Two ordinary distributions a family; for those with an end that matters, such that the first lies in the second.
ORDINARY = {
    "Uniform": [(0.25, 0.75), (-0.5, 1.25)],
    "Pareto": [(1.5, 3.7), (1.0, 4.5)],
    "Beta": [(2.0, 3.0), (1.4, 0.8)],
    "Poisson": [(3.5,), (0.8,)],
    "Bernoulli": [(0.3,), (0.6,)],
    "Geometric": [(0.3,), (0.6,)],
    "Binomial": [(10.0, 0.3), (10.0, 0.6)],
    "NegativeBinomial": [(2.5, 0.3), (2.5, 0.6)],
    "Weibull": [(1.0, 1.3), (2.5, 1.7)],
    "Chi2": [(3.0,), (5.5,)],
    "Gamma": [(2.5, 0.7), (3.1, 2.0)],
    "InverseGamma": [(2.5, 0.7), (3.1, 2.0)],
    "StudentT": [(5.0, 0.3, 0.8), (3.5, -0.5, 1.7)],
    "LogUniform": [(0.7, 2.5), (0.5, 3.0)],
    "InverseGaussian": [(2.5, 0.7), (3.1, 2.0)],
    "VonMises": [(0.3, 0.8), (-0.5, 1.7)],
    "Moyal": [(0.3, 0.8), (-0.1, 1.0)],
    "ContinuousBernoulli": [(0.3,), (0.6,)],
    "Delta": [(3.0,), (0.0,)],
    "Kumaraswamy": [(1.5, 2.5), (1.5, 0.9)],
}
LOC_SCALE = [(0.3, 0.8), (-0.5, 1.7)]
PAIRS = [pair for pair in CLOSED if "." not in "".join(pair) and pair[0] != "Poisson"] + [("Poisson", "Poisson")]
LONGEST = ("LogitNormal", "LogitNormal")  # the integral takes ten seconds


def ordinary(name):
    return ORDINARY.get(name, LOC_SCALE if len(PARAMETERS[name][0]) == 2 else [(0.7,), (1.6,)])


class ContinuousBernoulli(stats.rv_continuous):
    """With density proportional to exp(x*log(probs/(1 - probs)))."""

    def _argcheck(self, eta):
        return np.isfinite(eta)

    def _pdf(self, x, eta):
        return eta * np.exp(eta * x) / np.expm1(eta)

    def _ppf(self, u, eta):
        return np.log1p(u * np.expm1(eta)) / eta


class Kumaraswamy(stats.rv_continuous):
    """With the distribution function 1 - (1 - x**a)**b."""

    def _pdf(self, x, first, second):
        return first * second * x ** (first - 1) * (1 - x**first) ** (second - 1)

    def _ppf(self, u, first, second):
        return (-np.expm1(np.log1p(-u) / second)) ** (1 / first)


class Lindley(stats.rv_continuous):
    """With density proportional to (1 + x)*exp(-rate*x)."""

    def _pdf(self, x, rate):
        return rate**2 / (1 + rate) * (1 + x) * np.exp(-rate * x)

    def _isf(self, u, rate):
        return -1 - 1 / rate - special.lambertw(-u * (1 + rate) * np.exp(-1 - rate), -1).real / rate

    def _ppf(self, u, rate):
        return self._isf(1 - u, rate)


class LogitNormal(stats.rv_continuous):
    """1/(1 + exp(-Y)), Y normal."""

    def _argcheck(self, loc_of_y, scale_of_y):
        return scale_of_y > 0

    def _pdf(self, x, loc_of_y, scale_of_y):
        return stats.norm(loc_of_y, scale_of_y).pdf(special.logit(x)) / (x * (1 - x))

    def _ppf(self, u, loc_of_y, scale_of_y):
        return special.expit(stats.norm(loc_of_y, scale_of_y).ppf(u))


def counterpart(d):
    """In SciPy, or written here where SciPy has none."""
    if isinstance(d, D.ContinuousBernoulli):
        return ContinuousBernoulli(a=0.0, b=1.0, shapes="eta")(eta=float(np.log(d.probs / (1 - d.probs))))
    if isinstance(d, D.Lindley):
        return Lindley(a=0.0, shapes="rate")(rate=float(d.rate))
    if isinstance(d, D.LogitNormal):
        return LogitNormal(a=0.0, b=1.0, shapes="loc_of_y, scale_of_y")(float(d.loc), float(d.scale))
    if isinstance(d, D.Kumaraswamy):
        made = Kumaraswamy(a=0.0, b=1.0, shapes="first, second")
        return made(float(d.concentration1), float(d.concentration0))
    if isinstance(d, D.Delta):
        return stats.rv_discrete(values=([int(d.v)], [1.0]))
    return d.to_scipy()


HEAVY = (D.LogNormal, D.InverseGamma)  # of E X*X, a part that shows comes from what has less than 1e-15 of the mass


def log_moyal(z):
    """The logarithm of the density of loc 0 and scale 1; exp(-z) may overflow."""
    return -0.5 * (z + math.exp(min(-z, 700.0))) - 0.5 * math.log(2 * math.pi)


def by_integration(p, q):
    """E log(p/q) over the quantiles of p."""
    first, second = counterpart(p), counterpart(q)
    if p.support.discrete:
        k = np.arange(p.support.low, min(p.support.high, 500) + 1)
        k = k[first.pmf(k) > 1e-300]
        return math.fsum(first.pmf(k) * (first.logpmf(k) - second.logpmf(k)))

    log_q = second.logpdf  # SciPy takes the logarithm of the density of some, which underflows
    if isinstance(q, D.Laplace):
        log_q = lambda x: -np.log(2 * q.scale) - abs(x - q.loc) / q.scale  # noqa: E731
    if isinstance(q, D.Moyal):
        log_q = lambda x: log_moyal((x - q.loc) / q.scale) - np.log(q.scale)  # noqa: E731

    def log_ratio(x):
        return first.logpdf(x) - log_q(x)

    def in_the_tail(t):
        u = math.exp(t)
        return u * log_ratio(first.isf(u))

    ends = (1e-15, 1e-9, 1e-5, 1e-2, 0.5)
    parts = [
        integrate.quad(lambda u, at=at: log_ratio(at(u)), low, high, epsabs=1e-10, epsrel=1e-9, limit=200)[0]
        for at in (first.ppf, first.isf)
        for low, high in itertools.pairwise(ends)
    ]
    if isinstance(p, HEAVY):
        logs = np.log([1e-300, 1e-200, 1e-100, 1e-60, 1e-30, 1e-15])
        parts += [integrate.quad(in_the_tail, low, high, limit=200)[0] for low, high in itertools.pairwise(logs)]
    return math.fsum(parts)


@pytest.mark.part(24)
@pytest.mark.parametrize(
    ("p", "q"),
    [pytest.param(*pair, marks=pytest.mark.slow if pair == LONGEST else (), id="-".join(pair)) for pair in PAIRS],
)
def test_against_an_integral(p, q):
    for first, second in ((0, 1), (1, 0)):
        numbers = [*ordinary(p)[first], *ordinary(q)[second]]
        if (p, q) == ("Logistic", "Logistic"):  # a closed form for equal scales only
            numbers[3] = numbers[1]
        if (p, q) in AT:
            place, only = AT[p, q]
            numbers[place] = only
        if p in {"Laplace", "Logistic"} and q == "Moyal":  # else E exp(-X/scale) comes from beyond the quantiles
            numbers[1] = 0.4 * numbers[3]
        one, other = build(p, numbers[: width(p)]), build(q, numbers[width(p) :])
        value = float(kl.kl_divergence(one, other))
        if math.isinf(value):  # out of the support, checked below
            continue
        assert value == pytest.approx(by_integration(one, other), rel=2e-6)


def test_an_infinite_result_has_a_place_where_q_has_no_mass():
    for pair in D.registered_pairs():
        if pair.function.__name__ == "infinite":
            p, q = pair.p.__name__, pair.q.__name__
            if pair.p is D.Categorical or pair.q is D.Categorical:  # see test_counts_and_densities
                continue
            for first in PARAMETERS[p]:
                for second in PARAMETERS[q]:
                    one, other = build(p, first), build(q, second)
                    inside = other.support.low <= one.support.low and one.support.high <= other.support.high
                    reason = pair.p in infinite.NO_MEAN or pair.p is D.Delta or (p, q) == ("Pareto", "Uniform")
                    reason = reason or (pair.p is D.StudentT and pair.q in infinite.LIGHT_TAILS)
                    reason = reason or (pair.p in infinite.MASS_AT_0 and q in {"InverseGamma", "InverseGaussian"})
                    reason = reason or one.support.discrete != other.support.discrete
                    assert reason or not inside
                    assert kl.kl_divergence(one, other) == math.inf


def test_counts_and_densities():
    """A point of mass is none for a density, and the other way round."""
    for p, q in ((D.Categorical([0.5, 0.5]), D.Normal()), (D.Poisson([1.0, 2.0]), D.Gamma(2.0, 1.0))):
        for first, second in ((p, q), (q, p)):
            assert (np.asarray(kl.kl_divergence(first, second)) == math.inf).all()


def test_counts_without_end_from_counts_with_one():
    found = kl.kl_divergence(D.Geometric([1.0, 0.5]), D.Binomial(3, 0.25))
    np.testing.assert_allclose(found, [3.0 * math.log(4.0 / 3.0), math.inf], rtol=1e-15)
    found = kl.kl_divergence(D.NegativeBinomial(3.0, logits=[-math.inf, -1000.0]), D.Bernoulli(0.25))
    np.testing.assert_allclose(found, [math.log(4.0 / 3.0), math.inf], rtol=1e-15)
    for p in (D.NegativeBinomial(3.0, 0.0), D.NegativeBinomial(3.0, logits=-math.inf)):
        assert float(kl.kl_divergence(p, D.NegativeBinomial(2.0, 0.25))) == pytest.approx(2.0 * math.log(4.0 / 3.0))


def test_a_count_of_one_is_needed():
    with pytest.raises(NotImplementedError, match=r"Geometric \|\| NegativeBinomial.*total_count of 1"):
        kl.kl_divergence(D.Geometric(0.5), D.NegativeBinomial(2.0, 0.5))
    with pytest.raises(NotImplementedError, match=r"NegativeBinomial \|\| Geometric.*total_count of 1"):
        kl.kl_divergence(D.NegativeBinomial([1.0, 2.0], 0.5), D.Geometric(0.5))


def test_infinite_pairs_have_the_broadcast_shape():
    result = kl.kl_divergence(D.Normal(np.zeros(2), 1.0), D.Uniform(np.zeros((3, 1)), 1.0))
    assert result.shape == (3, 2)
    assert (result == math.inf).all()


@pytest.mark.part(4)
@pytest.mark.parametrize("name", sorted({p for p, _ in PAIRS} - {"NegativeBinomial"}))
def test_mean_variance_and_entropy_are_those_of_scipy(name):
    for numbers in ordinary(name):
        ours = build(name, numbers)
        theirs = counterpart(ours)
        if name == "VonMises":
            assert float(ours.mean) == pytest.approx(theirs.mean(), rel=1e-12)
            cosine = theirs.expect(lambda x, loc=float(ours.loc): np.cos(x - loc), lb=-math.pi, ub=math.pi)
            assert float(ours.variance) == pytest.approx(1.0 - cosine, rel=1e-9)
        elif name not in {"Cauchy", "HalfCauchy"}:
            closed = 1.0 if ours.scipy_name else 1e4  # how much wider: these SciPy integrates
            assert float(ours.mean) == pytest.approx(theirs.mean(), rel=closed * 1e-12)
            assert float(ours.variance) == pytest.approx(theirs.var(), rel=closed * 1e-11)
        assert float(ours.entropy()) == pytest.approx(float(theirs.entropy()), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", sorted({p for p, _ in PAIRS if getattr(D, p).scipy_name}))
def test_to_scipy_and_back(name):
    for numbers in ordinary(name):
        ours = build(name, numbers)
        back = type(ours).from_scipy(ours.to_scipy())
        for parameter in ours.parameters:
            assert getattr(back, parameter) == pytest.approx(getattr(ours, parameter), rel=1e-15)


@pytest.mark.parametrize(
    ("make", "shapes"),
    [
        (D.Chi, [(1e-3,), (1e4,), (2e8,)]),
        (D.StudentT, [(0.1,), (2.0,), (1e3,), (1e10,)]),
        (D.InverseGaussian, [(1.0, 1e-3), (1.0, 1e3), (1e-5, 1e5)]),
        (D.VonMises, [(0.0, 0.0), (0.0, 1e-3), (0.0, 24.9), (0.0, 25.1), (0.0, 1e3)]),
        (D.Moyal, [(0.0, 1e-5)]),
        (D.LogUniform, [(1.0, 1.001), (1e-100, 1e100)]),
    ],
)
def test_entropy_at_the_ends(make, shapes):
    """Where SciPy's own is right: to nine digits of it, or of 1."""
    for numbers in shapes:
        ours = make(*numbers)
        theirs = float(ours.to_scipy().entropy())
        assert float(ours.entropy()) == pytest.approx(theirs, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("rate", [0.0, 1e-9, 0.3, 20.0, 9.9e3, 1.01e4, 1e7])
def test_entropy_of_poisson(rate):
    from scipy import stats

    k = np.arange(max(0, int(rate - 50 * math.sqrt(rate) - 50)), int(rate + 50 * math.sqrt(rate) + 50))
    mass = stats.poisson(rate).logpmf(k)
    mass = mass[mass > -700]
    expected = -math.fsum(np.exp(mass) * mass)
    assert float(D.Poisson(rate).entropy()) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("n", "p"), [(0, 0.3), (5, 0.0), (5, 1.0), (10, 0.3), (1000, 0.999), (10**6, 0.5)])
def test_entropy_of_binomial(n, p):
    from scipy import stats

    mass = stats.binom(n, p).logpmf(np.arange(n + 1))
    mass = mass[mass > -700]
    expected = -math.fsum(np.exp(mass) * mass)
    assert float(D.Binomial(n, p).entropy()) == pytest.approx(expected, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize(("p", "q"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_against_torch(p, q):
    torch = pytest.importorskip("torch")
    theirs = torch.distributions
    for first, second in ((0, 1), (1, 0)):
        numbers = ordinary(p)[first], ordinary(q)[second]
        ours = build(p, numbers[0]), build(q, numbers[1])
        if not (hasattr(theirs, p) and hasattr(theirs, q)):
            pytest.skip("PyTorch does not have these families")
        try:
            peers = [
                getattr(theirs, name)(**{
                    key: torch.tensor(x, dtype=torch.float64)
                    for key, x in zip(d.parameters, values, strict=True)
                })
                for name, d, values in zip((p, q), ours, numbers, strict=True)
            ]  # fmt: skip
            expected = float(theirs.kl_divergence(*peers))
        except NotImplementedError:
            pytest.skip("PyTorch does not have this pair")
        assert float(kl.kl_divergence(*ours)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("concentration", [1e-5, 0.3, 1.0, 7.0, 1e3, 1e8])
def test_entropy_of_gamma_and_its_inverse(concentration):
    a = mp.mpf(concentration)
    with mp.workdps(50):
        gamma = a - mp.log(2) + mp.loggamma(a) + (1 - a) * mp.digamma(a)
        inverse = a + mp.log(2) + mp.loggamma(a) - (1 + a) * mp.digamma(a)
    assert float(D.Gamma(concentration, 2.0).entropy()) == pytest.approx(float(gamma), rel=2e-15)
    assert float(D.InverseGamma(concentration, 2.0).entropy()) == pytest.approx(float(inverse), rel=2e-15)


@pytest.mark.parametrize(("scale", "concentration"), [(1.7652361259322441e-12, 23.0), (2e-9, 30.0)])
def test_log_ratios_beyond_the_range_of_numbers_are_not_told(scale, concentration):
    """The cell rises up to where log q is no number any more, and would fall beyond: it looks infinite."""
    p, q = D.Exponential(0.35), D.Weibull(scale, concentration)
    assert np.isfinite(kl.kl_divergence(p, q))
    with pytest.warns(RuntimeWarning, match="the integral is nan"):
        value, error = kl.kl_divergence(p, q, method="quadrature", return_error=True)
    assert np.isnan(value)
    assert error == np.inf
