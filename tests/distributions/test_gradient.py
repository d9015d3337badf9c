"""Derivatives of closed forms against mpmath, near p = q as well as far from it, and what they do on boundaries."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D
from klnumba.distributions import Distribution, Parameter, kl_divergence_grad, register_kl, registered_pairs
from klnumba.distributions.constraint import POSITIVE
from tests.reference.distribution_errors import build, width
from tests.reference.distributions import AT
from tests.reference.gradients import (
    COMPILED,
    NONE,
    ODDS,
    ONE_FAILURE,
    PARAMETERS,
    SLOW,
    TABLE,
    WANTED,
    compare,
    is_extreme,
    points,
    row,
)

EULER = 0.5772156649015329


def _slow(chosen):
    return pytest.mark.slow if chosen else ()


PAIR = pytest.mark.parametrize(("p", "q"), COMPILED, ids=["-".join(pair) for pair in COMPILED])
# Whose truth, or derivatives, take ten seconds or more.
SLOWEST = {
    ("Binomial.logits", "Poisson"),
    ("Pareto", "Gumbel"),
    ("InverseGamma", "Laplace"),
    ("Kumaraswamy", "Laplace"),
    ("Kumaraswamy", "Kumaraswamy"),
}
PAIR_UNLESS_SLOW = pytest.mark.parametrize(
    ("p", "q"),
    [pytest.param(*pair, marks=_slow(pair in SLOWEST), id="-".join(pair)) for pair in COMPILED],
)
# For what does not depend on the formula.
SOME_PAIRS = pytest.mark.parametrize(
    ("p", "q"),
    [pytest.param(*pair, marks=_slow(pair in SLOW | SLOWEST), id="-".join(pair)) for pair in COMPILED],
)


def recorded(p, q):
    (found,) = [r for r in json.loads(TABLE.read_text())["errors"] if (r["p"], r["q"]) == (p, q)]
    return found


def all_derivatives(gradient):
    return [*gradient.p.values(), *gradient.q.values()]


# Families over numbers: the others have vectors or matrices for parameters, or are made of distributions.
OF_MORE_THAN_NUMBERS = (
    *(D.Independent, D.Joint, D.Mixture, D.TransformedDistribution, D.MatrixNormal, D.MultivariateNormal),
    *(D.LowRankMultivariateNormal, D.Wishart, D.InverseWishart, D.Dirichlet, D.VonMisesFisher, D.PowerSpherical),
    *(D.Categorical, D.OneHotCategorical, D.Multinomial),
)


def test_every_scalar_pair_has_derivatives_that_are_compared():
    ours = [x for x in registered_pairs() if x.p.__module__.startswith("klnumba.")]
    scalar = {
        (x.p.__name__, x.q.__name__)
        for x in ours
        if not issubclass(x.p, OF_MORE_THAN_NUMBERS) and not issubclass(x.q, OF_MORE_THAN_NUMBERS)
        if x.function.__name__ != "infinite"
    }
    compared = {tuple(name.partition(".")[0] for name in pair) for pair in COMPILED}
    # the last are infinite, 0 or refused
    assert scalar - compared == NONE | {("Delta", "Distribution"), ("Distribution", "Delta")}
    assert compared - scalar == {("Chi2", "Chi2")}


def test_every_record_is_of_a_pair_and_small():
    rows = json.loads(TABLE.read_text())["errors"]
    assert [(r["p"], r["q"]) for r in rows] == COMPILED
    assert max(r["largest_error"] for r in rows) <= WANTED


def test_digits_are_lost_at_extreme_parameters_only():
    for r in json.loads(TABLE.read_text())["errors"]:
        assert 0 <= r["lost"] < 0.2 * r["points"]
        assert (r["lost"] > 0) == ("lost_at" in r)
        assert r["lost"] == 0 or is_extreme(r["p"], r["q"], r["lost_at"])


@pytest.mark.part(16)
@PAIR_UNLESS_SLOW
def test_some_derivatives_are_as_exact_as_recorded(p, q):
    known = recorded(p, q)
    every = [case for case in points(p, q) if not is_extreme(p, q, case)]
    chosen = np.random.default_rng(7).choice(len(every), min(1 if (p, q) in SLOW else 3, len(every)), replace=False)
    found = compare(p, q, [every[i] for i in chosen])
    assert found.count >= 1
    assert found.largest <= 1.5 * known["largest_error"] + 2e-16, found.at


@pytest.mark.slow
@PAIR
def test_all_derivatives_are_as_exact_as_recorded(p, q):
    known, found = recorded(p, q), row(p, q)
    assert (found["points"], found["lost"]) == (known["points"], known["lost"])
    assert found["largest_error"] <= 1.5 * known["largest_error"] + 2e-16, found["at"]


SMOOTH = sorted({p for p, q in COMPILED if p == q} - {"Uniform", "LogUniform", "Pareto"})


def inside(family, numbers):
    """Whether a probability, or a rate, is one from which it can move to both sides."""
    return numbers[-1] > 0.0 if family == "Poisson" else family not in ODDS or 0.0 < numbers[-1] < 1.0


@pytest.mark.parametrize("name", [pytest.param(x, marks=_slow(x == "Kumaraswamy")) for x in SMOOTH])
def test_exactly_zero_at_equal_parameters(name):
    numbers = np.array([x for x in PARAMETERS[name] if inside(name, x)]).T
    if name == "StudentT":
        numbers[0] = 1.0
    value, gradient = kl_divergence_grad(build(name, numbers), build(name, numbers))
    np.testing.assert_array_equal(value, 0.0)
    for slope in all_derivatives(gradient):
        np.testing.assert_array_equal(slope, 0.0)
        assert not np.signbit(slope).any()


def test_one_sided_where_the_support_moves():
    """At p = q the divergence is finite on one side only."""
    _, gradient = kl_divergence_grad(D.Uniform(1.0, 3.0), D.Uniform(1.0, 3.0))
    assert dict(gradient.p) == {"low": 0.5, "high": -0.5}
    assert dict(gradient.q) == {"low": -0.5, "high": 0.5}
    _, gradient = kl_divergence_grad(D.LogUniform(1.0, 3.0), D.LogUniform(1.0, 3.0))
    slopes = np.array([1.0, -1.0 / 3.0]) / math.log(3.0)
    np.testing.assert_allclose(list(gradient.p.values()), slopes, rtol=1e-15)
    np.testing.assert_allclose(list(gradient.q.values()), -slopes, rtol=1e-15)
    _, gradient = kl_divergence_grad(D.Pareto(2.0, 3.0), D.Pareto(2.0, 3.0))
    assert dict(gradient.p) == {"scale": 1.5, "alpha": 0.0}
    assert dict(gradient.q) == {"scale": -1.5, "alpha": 0.0}


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Uniform(0.0, 2.0), D.Uniform(0.0, 1.0)),
        (D.Pareto(1.0, 2.0), D.Normal(0.0, 1.0)),
        (D.Pareto(1.0, 1.0), D.Exponential(1.0)),
        (D.Laplace(0.0, 2.0), D.Gumbel(0.0, 1.0)),
        (D.Poisson(1.0), D.Poisson(0.0)),
        (D.Uniform(-1.0, 1.0), D.Gamma(1.0, 1.0)),
    ],
    ids=repr,
)
def test_nan_where_the_divergence_is_infinite(p, q):
    value, gradient = kl_divergence_grad(p, q)
    assert value == math.inf
    assert np.isnan(all_derivatives(gradient)).all()


@pytest.mark.parametrize("shape", [1e-4, 0.5, 1.0, 3.0])
def test_at_a_pole(shape):
    """The mean distance from the end of the support falls by the move, as there is no mass at the pole itself."""
    _, gradient = kl_divergence_grad(D.Gamma(shape, 2.0), D.Laplace(0.0, 4.0))
    assert gradient.q["loc"] == -0.25
    _, gradient = kl_divergence_grad(D.Beta([shape, 2.0], [2.0, shape]), D.Laplace([0.0, 1.0], 4.0))
    np.testing.assert_array_equal(gradient.q["loc"], [-0.25, 0.25])


def test_infinite_and_finite_cells_keep_apart():
    value, gradient = kl_divergence_grad(D.Uniform(0.0, [1.0, 3.0]), D.Uniform(-1.0, 2.0))
    np.testing.assert_allclose(value, [math.log(3.0), math.inf])
    np.testing.assert_array_equal(gradient.p["high"], [-1.0, math.nan])


@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("p", "q", "of_p", "of_q"),
    [
        (D.Poisson(0.0), D.Poisson(2.5), [math.nan], [1.0]),
        (D.Poisson(0.0), D.Poisson(0.0), [math.nan], [1.0]),
        (D.Bernoulli([0.0, 1.0]), D.Bernoulli([0.0, 1.0]), [[math.nan] * 2], [[1.0, -1.0]]),
        (D.Bernoulli(0.0), D.Poisson(0.0), [math.nan], [1.0]),
        (D.Bernoulli(0.0), D.Geometric(1.0), [math.nan], [-1.0]),
        (D.Bernoulli(0.0), D.NegativeBinomial(3.0, 0.0), [math.nan], [0.0, 3.0]),
        (D.Bernoulli(0.0), D.NegativeBinomial(3.0, 0.5), [math.nan], [math.log(2.0), 6.0]),
        (D.Binomial(3, [0.0, 1.0]), D.Binomial(3, [0.0, 1.0]), [[math.nan] * 2], [[3.0, -3.0]]),
        (D.Geometric(1.0), D.Geometric(1.0), [math.nan], [-1.0]),
        (D.Geometric(1.0), D.NegativeBinomial(1.0, 0.0), [math.nan], [0.0, 1.0]),
        (D.NegativeBinomial(1.0, 0.0), D.Geometric(1.0), [0.0, math.nan], [-1.0]),
        (D.NegativeBinomial(2.0, 0.0), D.NegativeBinomial(2.0, 0.0), [0.0, math.nan], [0.0, 2.0]),
        (D.Bernoulli(0.0), D.Poisson(2.5), [math.nan], [1.0]),
        (D.Bernoulli(1.0), D.Poisson(2.0), [math.nan], [0.5]),
        (D.Binomial(3, 0.0), D.NegativeBinomial(2.0, 0.5), [math.nan], [math.log(2.0), 4.0]),
        (D.Geometric(1.0), D.NegativeBinomial(1.0, 0.5), [math.nan], [math.log(2.0), 2.0]),
        (D.NegativeBinomial(1.0, 0.0), D.Geometric(0.5), [0.0, math.nan], [-2.0]),
        (D.NegativeBinomial(2.0, 0.0), D.Binomial(3, 0.5), [0.0, math.nan], [6.0]),
        (D.NegativeBinomial(2.0, logits=-math.inf), D.Bernoulli(0.5), [0.0, math.nan], [2.0]),
        (D.Geometric(1.0), D.Binomial(3, logits=0.0), [math.nan], [1.5]),
        (D.Uniform(0.0, 2.0), D.Gamma(2.0, 3.0), [math.nan, 0.5], [2.0 - EULER - math.log(6.0), 1.0 / 3.0]),
    ],
    ids=repr,
)
def test_on_the_boundary(p, q, of_p, of_q):
    """NaN is a derivative that is infinite; the others are not touched by it."""
    _, gradient = kl_divergence_grad(p, q)
    np.testing.assert_allclose(list(gradient.p.values()), of_p, rtol=1e-13)
    np.testing.assert_allclose(list(gradient.q.values()), of_q, rtol=1e-13)


@pytest.mark.part(24)
@SOME_PAIRS
def test_float32_parameters(p, q):
    """Computed in more digits, then rounded: the parameters are what they are in float32."""
    cases = np.array([case for case in points(p, q) if all(x == 0 or 1e-3 < abs(x) < 1e3 for x in case)], np.float32)
    if p in ODDS:
        cases = cases[cases[:, width(p) - 1] < 1.0]
    if q in ODDS:
        cases = cases[cases[:, -1] < 1.0]
    if q in {"Uniform", "LogUniform"}:  # some have no width in float32
        cases = cases[cases[:, -2] < cases[:, -1]]
    assert len(cases)
    numbers = cases[np.random.default_rng(5).choice(len(cases), min(8, len(cases)), replace=False)].T
    narrow = build(p, numbers[: width(p)]), build(q, numbers[width(p) :])
    wide = build(p, numbers[: width(p)].astype(float)), build(q, numbers[width(p) :].astype(float))
    value, gradient = kl_divergence_grad(*narrow)
    assert value.dtype == np.float32
    for found, expected in zip(all_derivatives(gradient), all_derivatives(kl_divergence_grad(*wide)[1]), strict=True):
        assert found.dtype == np.float32
        with np.errstate(over="ignore", under="ignore"):
            rounded = expected.astype(np.float32)
            np.testing.assert_array_equal(found, np.where(np.isinf(rounded), np.float32(np.nan), rounded))


@pytest.mark.part(12)
@SOME_PAIRS
def test_parameters_broadcast(p, q):
    """(2,) with (3, 1): each cell is what it is by itself."""
    first = np.array(PARAMETERS[p][:2])
    second = np.array(PARAMETERS[q][:3])
    if p == q == "Logistic":  # of equal scales
        first[:, 1] = second[:, 1] = 2.0
    if (p, q) in ONE_FAILURE:
        (first if p.startswith("Negative") else second)[:, 0] = 1.0
    if (p, q) in AT:
        place, number = AT[p, q]
        (first if place < width(p) else second)[:, place if place < width(p) else place - width(p)] = number
    value, gradient = kl_divergence_grad(build(p, first.T), build(q, [column[:, None] for column in second.T]))
    assert value.shape == (3, 2)
    for at in ((0, 1), (2, 0)):
        single, alone = kl_divergence_grad(build(p, first[at[1]]), build(q, second[at[0]]))
        assert single == value[at]
        for whole, one in zip(all_derivatives(gradient), all_derivatives(alone), strict=True):
            assert whole.shape == (3, 2)
            np.testing.assert_array_equal(whole[at], one)


def test_names_and_shapes():
    p, q = D.Gamma(2.0, 3.0), D.Normal(0.5, 1.0)
    value, gradient = kl_divergence_grad(p, q)
    assert value == kl.kl_divergence(p, q)
    assert list(gradient.p) == ["concentration", "rate"]
    assert list(gradient.q) == ["loc", "scale"]
    assert np.ndim(gradient.p["rate"]) == 0
    with pytest.raises(TypeError):
        gradient.p["rate"] = 0.0
    with pytest.raises(AttributeError):
        gradient.p = {}


def test_no_cells():
    value, gradient = kl_divergence_grad(D.Normal(np.zeros(0), 1.0), D.Normal(0.0, 2.0))
    assert value.shape == gradient.q["scale"].shape == (0,)


def test_many_cells_on_all_sides_of_the_branches():
    """More than one block, and the derivatives of one do not depend on the others."""
    rng = np.random.default_rng(3)
    numbers = np.exp(rng.normal(0, 2, (4, 5000)))
    _, gradient = kl_divergence_grad(D.Laplace(*numbers[:2]), D.Laplace(*numbers[2:]))
    few = rng.choice(5000, 50)
    _, again = kl_divergence_grad(D.Laplace(*numbers[:2, few]), D.Laplace(*numbers[2:, few]))
    for whole, part in zip(all_derivatives(gradient), all_derivatives(again), strict=True):
        np.testing.assert_array_equal(whole[few], part)


def test_a_subclass_has_its_own_parameters():
    _, own = kl_divergence_grad(D.Chi2(5.0), D.Gamma(2.0, 0.7))
    _, base = kl_divergence_grad(D.Gamma(2.5, 0.5), D.Gamma(2.0, 0.7))
    assert list(own.p) == ["df"]
    assert own.p["df"] == 0.5 * base.p["concentration"]
    assert dict(own.q) == dict(base.q)


def test_by_the_form_that_was_given():
    """d/d(logits) = probs*(1 - probs)*d/d(probs), and total_count has no derivative."""
    p, a = 0.3, math.log(0.3 / 0.7)
    _, by_probs = kl_divergence_grad(D.Binomial(5, p), D.Binomial(5, 0.6))
    _, mixed = kl_divergence_grad(D.Binomial(5, logits=a), D.Binomial(5, 0.6))
    _, by_logits = kl_divergence_grad(D.Binomial(5, logits=a), D.Binomial(5, logits=0.4))
    _, other = kl_divergence_grad(D.Bernoulli(logits=a), D.Poisson(2.0))
    _, compiled = kl_divergence_grad(D.Bernoulli(p), D.Poisson(2.0))
    assert list(by_probs.p) == list(by_probs.q) == list(mixed.q) == ["probs"]
    assert list(mixed.p) == list(by_logits.p) == list(by_logits.q) == list(other.p) == ["logits"]
    assert mixed.p["logits"] == pytest.approx(p * (1 - p) * by_probs.p["probs"], rel=1e-14)
    assert mixed.q["probs"] == pytest.approx(by_probs.q["probs"], rel=1e-14)
    assert other.p["logits"] == pytest.approx(p * (1 - p) * compiled.p["probs"], rel=1e-14)


TORCH = [
    (D.Normal, D.Normal, (1.0, 2.0), (0.3, 0.7)),
    (D.Laplace, D.Laplace, (1.0, 2.0), (0.3, 0.7)),
    (D.Gamma, D.Gamma, (1.5, 2.0), (0.3, 0.7)),
    (D.Beta, D.Beta, (1.5, 2.0), (0.3, 0.7)),
    (D.Gumbel, D.Gumbel, (1.5, 2.0), (0.3, 0.7)),
    (D.Gumbel, D.Normal, (1.5, 2.0), (0.3, 0.7)),
    (D.Uniform, D.Gumbel, (0.1, 0.8), (0.3, 0.7)),
]


@pytest.mark.parametrize(("p", "q", "of_p", "of_q"), TORCH, ids=[f"{t[0].__name__}-{t[1].__name__}" for t in TORCH])
def test_agrees_with_torch(p, q, of_p, of_q):
    torch = pytest.importorskip("torch")
    leaves = [[torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in xs] for xs in (of_p, of_q)]
    theirs = [
        getattr(torch.distributions, f.__name__)(**dict(zip(f.parameters, xs, strict=True)))
        for f, xs in zip((p, q), leaves, strict=True)
    ]
    torch.distributions.kl_divergence(*theirs).backward()
    _, gradient = kl_divergence_grad(p(*of_p), q(*of_q))
    expected = [x.grad.item() for xs in leaves for x in xs]
    np.testing.assert_allclose(all_derivatives(gradient), expected, rtol=1e-7)  # its trigamma has 8 digits


def test_a_pair_of_ones_own():
    class Rayleigh(Distribution):
        parameters = ("scale",)
        scale = Parameter(POSITIVE)

        def __init__(self, scale):
            super().__init__(scale=scale)

    @register_kl(Rayleigh, Rayleigh, compiled=True)
    def rayleigh(scale_p, scale_q):
        r = scale_p / scale_q
        return r * r - 1.0 - 2.0 * math.log(r)

    _, gradient = kl_divergence_grad(Rayleigh([1.0, 3.0]), Rayleigh(2.0))
    np.testing.assert_allclose(gradient.p["scale"], [-1.5, 1.5 - 2.0 / 3.0], rtol=1e-15)

    @register_kl(Rayleigh, Rayleigh, compiled=True, replace=True)
    def without_a_rule(scale_p, scale_q):
        return math.gamma(scale_p)

    with pytest.raises(NotImplementedError, match=r"math\.gamma has no rule for derivatives"):
        kl_divergence_grad(Rayleigh(1.0), Rayleigh(2.0))


def test_what_is_refused():
    with pytest.raises(TypeError, match=r"q: a distribution of klnumba\.distributions, not float"):
        kl_divergence_grad(D.Normal(0.0, 1.0), 1.0)
    with pytest.raises(TypeError, match=r"p: a distribution of klnumba\.distributions, not ndarray"):
        kl_divergence_grad(np.ones(2), D.Normal(0.0, 1.0))
    with pytest.raises(ValueError, match=r"batch shapes \(2,\) and \(3,\) do not broadcast"):
        kl_divergence_grad(D.Normal([0.0, 1.0], 1.0), D.Normal([0.0, 1.0, 2.0], 1.0))
    with pytest.raises(NotImplementedError, match=r"Wishart \|\| Wishart.*not registered with compiled=True"):
        kl_divergence_grad(D.Wishart(3.0, np.eye(2)), D.Wishart(3.0, np.eye(2)))
    with pytest.raises(NotImplementedError, match=r"Logistic \|\| Logistic\) has no closed form for unequal scale"):
        kl_divergence_grad(D.Logistic(0.0, 1.0), D.Logistic(0.0, 2.0))
    with pytest.raises(NotImplementedError, match=r"NegativeBinomial\) has no closed form for unequal total_count"):
        kl_divergence_grad(D.NegativeBinomial(2.0, 0.5), D.NegativeBinomial(3.0, 0.5))
    with pytest.raises(NotImplementedError, match=r"Normal \|\| Cauchy.* is not registered"):
        kl_divergence_grad(D.Normal(0.0, 1.0), D.Cauchy(0.0, 1.0))
