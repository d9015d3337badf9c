"""Integrals, sums and draws of what has no closed form: mixtures, transformed draws, vectors, frozen distributions."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions.frozen import Frozen
from tests.reference.distributions import AT

stats = pytest.importorskip("scipy.stats")
integrate = pytest.importorskip("scipy.integrate")

EYE = np.eye(2)


def by(method, p, q, **options):
    value, error = kl.kl_divergence(p, q, method=method, return_error=True, **options)
    return float(value), float(error)


# --- counts and categories --------------------------------------------------------------------------------------------

COUNTS = {
    "Bernoulli": D.Bernoulli(0.3),
    "Binomial": D.Binomial(2, 0.4),
    "Geometric": D.Geometric(0.5),
    "Poisson": D.Poisson(2.0),
    "NegativeBinomial": D.NegativeBinomial(2.0, 0.3),
}
ROW = D.Categorical([0.2, 0.3, 0.5])


@pytest.mark.parametrize("name", COUNTS)
def test_counts_and_categories_by_sums(name):
    """A category is a whole number from 0 on."""
    other = COUNTS[name]
    masses = [math.exp(-float(kl.kl_divergence(D.Delta(float(k)), other))) for k in range(3)]
    rest = 1.0 - sum(masses)
    with pytest.raises(NotImplementedError, match="'sum'"):
        kl.kl_divergence(ROW, other)
    expected = sum(p * math.log(p / q) if q > 0.0 else math.inf for p, q in zip(ROW.probs, masses, strict=True))
    assert by("sum", ROW, other)[0] == pytest.approx(expected, rel=1e-12)
    back = sum(q * math.log(q / p) for p, q in zip(ROW.probs, masses, strict=True) if q > 0.0)
    assert by("sum", other, ROW)[0] == pytest.approx(back if rest < 1e-12 else math.inf, rel=1e-12)


@pytest.mark.parametrize("one", [D.Bernoulli(1.0), D.Binomial(3, 1.0), D.Geometric(1.0), D.Categorical([0.0, 1.0])])
def test_one_place_by_sums(one):
    place = float(np.argmax(one.probs)) if isinstance(one, D.Categorical) else float(one.mean)
    assert by("sum", one, D.Delta(place))[0] == 0.0
    assert by("sum", one, D.Delta(place + 1.0))[0] == math.inf


@pytest.mark.parametrize("other", [*COUNTS.values(), ROW], ids=lambda x: type(x).__name__)
def test_more_than_one_place_by_sums(other):
    assert by("sum", other, D.Delta(1.0))[0] == math.inf


# --- a sweep ----------------------------------------------------------------------------------------------------------

ROUNDS = 1
SEED = 11
LIMIT = 1e-8  # what an integral promises, relative
ROUNDING = 3e-13  # of the closed form, and of the logarithms of SciPy's densities: 9e-14 in 2,000 pairs


def spread_out(rng, widest):
    """A positive number; of three widths of exponents, each is as likely."""
    width = rng.choice([0.3, 1.0, widest])
    return float(10.0 ** rng.uniform(-width, width))


def drawn(family, rng):
    """One of the family, of ordinary to extreme shapes."""
    name = family.__name__
    if name in ("Uniform", "LogUniform"):
        low = spread_out(rng, 2.0) * (1.0 if name == "LogUniform" else float(rng.choice([-1.0, 0.0, 1.0])))
        return family(low, low + spread_out(rng, 2.0))
    if name == "ContinuousBernoulli":
        return family(logits=spread_out(rng, 2.0) * float(rng.choice([-1.0, 1.0])))
    if name in ("LogNormal", "LogitNormal"):
        return family(float(rng.normal()), spread_out(rng, 1.0))
    signed = "loc" if name != "InverseGaussian" else ""
    return family(*(
        spread_out(rng, 2.5) * (float(rng.normal()) if x == signed else 1.0) for x in family.parameters
    ))  # fmt: skip


def is_over_numbers(family, rng):
    try:
        one = drawn(family, rng)
        return one.event_shape == () and not one.circular and not one.support.discrete
    except (TypeError, ValueError, AttributeError, NotImplementedError):
        return False


def swept():
    rng = np.random.default_rng(SEED)
    for pair in D.registered_pairs():
        if pair.function.__name__ != "infinite" and is_over_numbers(pair.p, rng) and is_over_numbers(pair.q, rng):
            for _ in range(ROUNDS):
                p, q = drawn(pair.p, rng), drawn(pair.q, rng)
                yield served(pair, p, q)


def served(pair, p, q):
    """The same, at parameters for which the pair has a closed form."""
    if pair.p is pair.q is D.Logistic:
        return p, D.Logistic(q.loc, p.scale)
    names = pair.p.__name__, pair.q.__name__
    if names not in AT:
        return p, q
    place, only = AT[names]
    numbers = [float(getattr(x, name)) for x in (p, q) for name in x.parameters]
    numbers[place] = only
    cut = len(p.parameters)
    return pair.p(*numbers[:cut]), pair.q(*numbers[cut:])


SWEPT = list(swept())


@pytest.mark.part(4)
@pytest.mark.parametrize(
    ("p", "q"), SWEPT, ids=[f"{i}-{type(p).__name__}-{type(q).__name__}" for i, (p, q) in enumerate(SWEPT)]
)
def test_integrals_reach_the_closed_forms_or_say_that_they_do_not(p, q):
    exact = float(kl.kl_divergence(p, q))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        value, error = by("quadrature", p, q)
    if math.isnan(value):
        assert error == math.inf
        assert "the integral is nan" in str(told[0].message)
    else:
        assert value == exact or abs(value - exact) <= 3.0 * error + ROUNDING * exact
        assert value == exact or abs(value - exact) <= LIMIT * exact


def test_the_sweep_is_of_all_families():
    assert len({type(p) for p, _ in SWEPT}) >= 24
    assert len(SWEPT) >= 100


@pytest.mark.parametrize(
    "pair",
    [
        "D.Logistic(856.5972418835556, 0.14080395846863278), D.Laplace(-0.0007776080696063427, 0.8656383308652446)",
        "D.Normal(0, 1), D.Moyal(-1600, 1)",
    ],
)
def test_the_interpreter_survives(pair):
    """SciPy's `quad` may end the process where an integrand is no number."""
    start = "import klnumba as kl; from klnumba import distributions as D; "
    program = f"{start}print(float(kl.kl_divergence({pair}, method='quadrature')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert math.isfinite(float(done.stdout))


@pytest.mark.parametrize(
    ("p", "q", "exact"),
    [
        # log(p/q) of a Moyal density: the mean of (z + exp(-z))/2 over p, and constants
        (D.Uniform(0.0, 1.0), D.Moyal(-5000.0, 1.0), 0.5 * 5000.5 + 0.5 * math.log(2.0 * math.pi)),
        (D.Normal(0.0, 1.0), D.Moyal(-1600.0, 1.0), 800.0 - 0.5),
    ],
)
def test_far_from_all_mass_of_q(p, q, exact):
    value, error = by("quadrature", p, q)
    assert value == pytest.approx(exact, rel=1e-12)
    assert error < 1e-10 * value


def test_where_numbers_end_a_growing_tail_is_infinite():
    assert by("quadrature", D.StudentT(2.0), D.Normal()) == (math.inf, 0.0)
    assert by("quadrature", D.Laplace(0.0, 1.0), D.Gumbel(0.0, 0.99)) == (math.inf, 0.0)
    assert by("quadrature", D.Exponential(1.0), D.InverseGamma(1.0, 1.0)) == (math.inf, 0.0)


# --- mixtures and transformed draws -----------------------------------------------------------------------------------


def mixture(weights, parts):
    return D.Mixture(D.Categorical(weights), parts)


NORMALS = (
    mixture([0.5, 0.5], D.Normal([-3.0, 3.0], 1.0)),
    mixture([0.3, 0.3, 0.4], D.Normal([-4.0, 0.0, 4.0], 1.5)),
)


def test_mixtures_of_normals():
    def log_density(x, weights, middles, scale):
        return np.log(np.sum(weights * stats.norm.pdf(x, middles, scale)))

    def cell(x):
        log_p = log_density(x, np.array([0.5, 0.5]), np.array([-3.0, 3.0]), 1.0)
        return np.exp(log_p) * (log_p - log_density(x, np.array([0.3, 0.3, 0.4]), np.array([-4.0, 0.0, 4.0]), 1.5))

    exact = integrate.quad(cell, -14.0, 14.0, points=[-3.0, 0.0, 3.0], epsabs=1e-13, epsrel=1e-12, limit=500)[0]
    value, error = by("quadrature", *NORMALS)
    assert value == pytest.approx(exact, rel=1e-10)
    assert error < 1e-10
    middle, half = by("bounds", *NORMALS)
    assert abs(value - middle) <= half
    draws, spread = by("monte_carlo", *NORMALS, rng=3, samples=20_000)
    assert abs(draws - value) < 5.0 * spread < 0.1


def test_mixtures_whose_parts_are_apart():
    p = mixture([0.5, 0.5], D.Uniform([0.0, 2.0], [1.0, 3.0]))
    q = mixture([0.3, 0.7], D.Uniform([0.0, 2.0], [1.0, 3.0]))
    assert by("quadrature", p, q)[0] == pytest.approx(float(kl.kl_divergence([0.5, 0.5], [0.3, 0.7])), rel=1e-12)
    assert by("quadrature", D.Uniform(0.0, 3.0), q) == (math.inf, 0.0)  # q has a gap
    assert by("monte_carlo", D.Uniform(0.0, 3.0), q, samples=10) == (math.inf, 0.0)


def test_a_mixture_of_equal_parts_is_one_part():
    one, other = D.Gamma(2.0, 3.0), D.Gamma(1.5, 1.0)
    p = mixture([0.2, 0.8, 0.0], D.Gamma([2.0, 2.0, 7.0], 3.0))
    assert by("quadrature", p, other)[0] == pytest.approx(float(kl.kl_divergence(one, other)), rel=1e-11)


def test_mixtures_over_integers():
    p, q = mixture([0.5, 0.5], D.Poisson([3.0, 10.0])), mixture([0.4, 0.6], D.Poisson([4.0, 9.0]))
    k = np.arange(80)
    first = 0.5 * stats.poisson.pmf(k, 3.0) + 0.5 * stats.poisson.pmf(k, 10.0)
    second = 0.4 * stats.poisson.pmf(k, 4.0) + 0.6 * stats.poisson.pmf(k, 9.0)
    value, _ = by("sum", p, q)
    assert value == pytest.approx(math.fsum(first * np.log(first / second)), rel=1e-11)
    draws, spread = by("monte_carlo", p, q, samples=5_000, rng=2)
    assert abs(draws - value) < 5.0 * spread


@pytest.mark.parametrize(
    ("p", "q", "same"),
    [
        ((D.Normal(1.0, 2.0), [D.ExpTransform()]), D.LogNormal(0.0, 2.0), 0.125),
        ((D.Normal(1.0, 2.0), [D.SigmoidTransform()]), D.LogitNormal(0.0, 2.0), 0.125),
        (
            (D.Gamma(2.0, 2.0), [D.PowerTransform(-1.0)]),
            D.InverseGamma(2.0, 3.0),
            (D.InverseGamma(2.0, 2.0), D.InverseGamma(2.0, 3.0)),
        ),
        (
            (D.Exponential(2.0), [D.AffineTransform(0.0, -2.0), D.AffineTransform(0.0, -1.0)]),
            D.Exponential(3.0),
            (D.Exponential(1.0), D.Exponential(3.0)),
        ),
        ((D.Normal(0.0, 0.3), [D.TanhTransform()]), D.Uniform(-1.0, 1.0), None),
    ],
)
def test_transformed_draws(p, q, same):
    p = D.TransformedDistribution(*p)
    value, error = by("quadrature", p, q)
    draws, spread = by("monte_carlo", p, q, samples=20_000, rng=4)
    assert abs(draws - value) < 5.0 * spread
    if same is not None:
        exact = same if isinstance(same, float) else float(kl.kl_divergence(*same))
        assert value == pytest.approx(exact, rel=1e-10)
        assert error < 1e-9 * value


def test_what_cannot_be_taken_back_has_no_density():
    for base, transform in ((D.Normal(), D.AbsTransform()), (D.Laplace(), D.PowerTransform(2.0))):
        with pytest.raises((NotImplementedError, ValueError)):
            by("quadrature", D.TransformedDistribution(base, transform), D.HalfNormal(1.0))


# --- lists, vectors, and what only SciPy has --------------------------------------------------------------------------


def test_sums_over_lists_and_points():
    p, q = D.Categorical([0.2, 0.8, 0.0]), D.Categorical([0.3, 0.3, 0.4])
    assert by("sum", p, q)[0] == pytest.approx(float(kl.kl_divergence(p, q)), rel=1e-14)
    assert by("sum", q, p) == (math.inf, 0.0)
    point = D.Delta(2.0)
    assert by("sum", point, D.Poisson(3.0))[0] == pytest.approx(
        float(kl.kl_divergence(point, D.Poisson(3.0))), rel=1e-13
    )
    with pytest.raises(ValueError, match="v must be an integer"):
        by("sum", D.Delta(0.5), D.Poisson(3.0))


VECTORS = [
    (D.MultivariateNormal(np.zeros(2), EYE), D.MultivariateNormal(np.ones(2), 2.0 * EYE)),
    (
        D.LowRankMultivariateNormal(np.zeros(2), np.ones((2, 1)), np.ones(2)),
        D.MultivariateNormal(np.ones(2), 2.0 * EYE),
    ),
    (D.Independent(D.Normal([0.0, 1.0], 1.0), 1), D.MultivariateNormal(np.ones(2), 2.0 * EYE)),
    (D.MatrixNormal(np.zeros((2, 2)), EYE, EYE), D.MatrixNormal(np.ones((2, 2)), EYE, EYE)),
    (D.Dirichlet([2.0, 3.0, 4.0]), D.Dirichlet([1.0, 2.0, 3.0])),
    (D.Wishart(5.0, EYE), D.Wishart(6.0, EYE)),
    (D.InverseWishart(5.0, EYE), D.InverseWishart(6.0, EYE)),
    (D.Multinomial(5, [0.2, 0.8]), D.Multinomial(5, [0.3, 0.7])),
    (D.OneHotCategorical([0.2, 0.8]), D.OneHotCategorical([0.3, 0.7])),
    (D.Categorical([0.2, 0.8]), D.Categorical([0.3, 0.7])),
    (D.VonMisesFisher([1.0, 0.0, 0.0], 3.0), D.SphericalUniform(3)),
]


@pytest.mark.parametrize(("p", "q"), VECTORS, ids=lambda d: type(d).__name__)
def test_draws_of_vectors(p, q):
    value, spread = by("monte_carlo", p, q, samples=20_000, rng=7)
    assert abs(value - float(kl.kl_divergence(p, q))) < 5.0 * spread


def test_draws_of_a_mixture_of_vectors():
    parts = D.MultivariateNormal([[1.0, 0.0], [1.0, 0.0]], EYE)
    p, q = mixture([0.3, 0.7], parts), D.MultivariateNormal(np.zeros(2), EYE)
    value, spread = by("monte_carlo", p, q, samples=20_000, rng=7)
    assert abs(value - 0.5) < 5.0 * spread


def test_the_error_of_a_rounded_value_counts_the_rounding():
    p, q = D.Gamma(np.float32(2.0), np.float32(1.0)), D.Gamma(np.float32([2.5, 3.0]), np.float32(1.0))
    exact = kl.kl_divergence(D.Gamma(2.0, 1.0), D.Gamma([2.5, 3.0], 1.0))
    value, error = kl.kl_divergence(p, q, method="quadrature", return_error=True)
    assert value.dtype == error.dtype == np.float32
    assert np.all(np.abs(value - exact) <= error * (1.0 + 1e-6))
    assert np.all(error < 1e-7 * value)


def test_the_error_of_an_infinite_value_is_0():
    one = np.float32(1.0)
    p, q = D.Uniform(0.0 * one, one), D.Uniform(0.2 * one, 0.5 * one)
    assert kl.kl_divergence(p, q, method="quadrature", return_error=True) == (np.inf, 0.0)


def test_vectors_have_no_integral():
    with pytest.raises(NotImplementedError, match="p: MultivariateNormal is not over numbers"):
        by("quadrature", *VECTORS[0])
    with pytest.raises(NotImplementedError, match="p: no density, NormalGamma"):
        by("monte_carlo", D.NormalGamma(0.0, 1.0, 1.0, 1.0), D.NormalGamma(0.0, 1.0, 1.0, 2.0), samples=10)


def test_a_circle_stretched_has_no_integral():
    with pytest.raises(NotImplementedError, match=r"p: scipy.stats.vonmises\(2.0, 0.0, 2.0\) lies on a circle"):
        by("quadrature", stats.vonmises(2.0, scale=2.0), stats.norm())


def test_draws_at_which_a_density_is_beyond_the_range_are_told_of():
    with pytest.warns(RuntimeWarning, match=r"the mean over draws is .*: a density is beyond the range"):
        value, spread = by("monte_carlo", *(stats.gengamma(a, 1.0) for a in (1e-3, 2e-3)), samples=20_000, rng=1)
    assert math.isnan(value)
    assert spread == math.inf


def test_frozen_distributions_that_are_not_here():
    narrow = stats.truncnorm(-1.0, 2.0)
    assert by("quadrature", narrow, stats.norm())[0] == pytest.approx(
        -math.log(stats.norm.cdf(2.0) - stats.norm.cdf(-1.0)), rel=1e-11
    )
    assert by("quadrature", stats.norm(), narrow) == (math.inf, 0.0)
    # a location that one of them has
    value = by("quadrature", stats.gamma(2.0, loc=1.0), stats.gamma(3.0, loc=1.0, scale=2.0))[0]
    assert value == pytest.approx(float(kl.kl_divergence(D.Gamma(2.0, 1.0), D.Gamma(3.0, 0.5))), rel=1e-11)
    assert by("sum", stats.randint(1, 5), stats.randint(0, 9))[0] == pytest.approx(math.log(9 / 4), rel=1e-13)
    assert by("sum", stats.randint(0, 9), stats.randint(1, 5)) == (math.inf, 0.0)
    skewed, spread = by("monte_carlo", stats.skewnorm(4.0), stats.norm(0.0, 2.0), samples=20_000, rng=3)
    assert abs(skewed - by("quadrature", stats.skewnorm(4.0), stats.norm(0.0, 2.0))[0]) < 5.0 * spread
    batch = kl.kl_divergence(stats.skewnorm([0.0, 4.0]), stats.norm(0.0, 2.0), method="quadrature")
    assert batch.shape == (2,)
    assert batch[0] == pytest.approx(float(kl.kl_divergence(D.Normal(), D.Normal(0.0, 2.0))), rel=1e-11)


def test_batches_of_mixtures_and_of_transformed_draws():
    """Each as it is by itself, weights, components and transforms broadcast."""
    weights = np.array([[[0.5, 0.5]], [[0.1, 0.9]]])
    p = D.Mixture(D.Categorical([0.25, 0.75]), D.Normal([[0.0, 4.0], [1.0, 2.0], [0.0, 0.0]], 1.0))
    q = D.Mixture(D.Categorical(weights), D.Normal([0.0, 4.0], 2.0))
    found = kl.kl_divergence(p, q, method="quadrature")
    assert found.shape == (2, 3)
    alone = D.Mixture(D.Categorical([0.25, 0.75]), D.Normal([1.0, 2.0], 1.0))
    other = D.Mixture(D.Categorical([0.1, 0.9]), D.Normal([0.0, 4.0], 2.0))
    assert found[1, 1] == kl.kl_divergence(alone, other, method="quadrature")
    moved = D.TransformedDistribution(
        D.Normal([0.0, 1.0], 1.0), [D.AffineTransform([[0.0], [1.0]], 2.0), D.ExpTransform()]
    )
    found = kl.kl_divergence(moved, D.LogNormal(0.0, 1.0), method="quadrature")
    true = kl.kl_divergence(D.LogNormal([[0.0, 2.0], [1.0, 3.0]], 2.0), D.LogNormal(0.0, 1.0))
    np.testing.assert_allclose(found, true, rtol=1e-11)


def test_closed_forms_still_refuse_them():
    with pytest.raises(TypeError, match=r"scipy.stats.skewnorm has no counterpart"):
        kl.kl_divergence(stats.skewnorm(4.0), stats.norm())
    with pytest.raises(TypeError, match="p: a distribution"):
        by("quadrature", "normal", stats.norm())


def test_frozen_distributions_say_what_they_are():
    histogram = stats.rv_histogram(np.histogram([1.0, 2.0, 2.0, 5.0], bins=4))()

    class Own(stats.rv_continuous):
        """Uniform from 0 to 1."""

        def _pdf(self, x):
            return np.ones_like(x)

    assert repr(Frozen(histogram)) == "rv_histogram of 4 bins from 1.0 to 5.0"
    assert repr(Frozen(stats.skewnorm(4.0))) == "scipy.stats.skewnorm(4.0, 0.0, 1.0)"
    assert repr(Frozen(Own(name="norm", a=0.0, b=1.0)())) == "Own(0.0, 1.0)"
