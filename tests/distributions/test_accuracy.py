"""Every closed form against mpmath, over small, ordinary and extreme parameters and q close to p."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from mpmath import mp, mpf

import klnumba as kl
from klnumba import distributions as D
from tests.reference.cross_distributions import about
from tests.reference.distribution_errors import BOUND, TABLE, build, evaluate, width, worst
from tests.reference.distributions import AT, CLOSED, INTERVALS, PARAMETERS, PARTIAL, PROBABILITIES, cases

PAIR = pytest.mark.parametrize(("p", "q"), CLOSED, ids=["-".join(pair) for pair in CLOSED])
SAME = sorted({p for p, q in CLOSED if p == q})


# Their true values, sums and integrals with mpmath, take more than ten seconds.
SLOW_TRUTHS = [
    ("Binomial", "Poisson"),
    ("Binomial", "Binomial"),
    ("Binomial.logits", "Poisson"),
    ("Binomial.logits", "Binomial.logits"),
    ("Binomial.logits", "Geometric.logits"),
    ("Kumaraswamy", "Kumaraswamy"),
    ("Kumaraswamy", "Beta"),
]

# Those of them that run by default.
BY_DEFAULT = {("Binomial", "Poisson"), ("Binomial.logits", "Geometric.logits"), ("Kumaraswamy", "Beta")}


def recorded(p, q):
    (row,) = [r for r in json.loads(TABLE.read_text())["errors"] if (r["p"], r["q"]) == (p, q)]
    return row


@pytest.mark.parametrize(
    ("p", "q"),
    [
        pytest.param(*pair, id="-".join(pair), marks=[] if pair in BY_DEFAULT else pytest.mark.slow)
        for pair in SLOW_TRUTHS
    ],
)
def test_some_errors_are_as_recorded(p, q):
    row, every = recorded(p, q), list(cases(p, q))
    chosen = np.random.default_rng(11).choice(len(every), len(every) // 12, replace=False)
    error, at, points = worst(p, q, [tuple(row["at"]), *(every[i] for i in chosen)])
    assert points > 3
    assert 0.5 * row["largest_error"] <= error <= 1.5 * row["largest_error"] + 2e-16, at


@pytest.mark.part(16)
@pytest.mark.parametrize(
    ("p", "q"),
    [pytest.param(*pair, marks=pytest.mark.slow if pair in SLOW_TRUTHS else (), id="-".join(pair)) for pair in CLOSED],
)
def test_error_is_within_the_bound_and_as_recorded(p, q):
    row = recorded(p, q)
    error, at, points = worst(p, q, list(cases(p, q)))
    assert points > 5 or (p, q) == ("Delta", "Delta")  # which is 0 or infinite
    assert points == row["points"]
    assert error <= BOUND, at
    assert error <= 1.5 * row["largest_error"] + 2e-16, at


@pytest.mark.part(8)
@PAIR
def test_never_negative_and_never_nan(p, q):
    values = evaluate(p, q, list(cases(p, q)))
    assert not np.isnan(values).any()
    assert values.min() >= 0.0


def at_one_value(p, q, table):
    """The numbers of p and those of q, with the one value at which there is a closed form."""
    found = [[list(row) for row in rows] for rows in table]
    if (p, q) in AT:
        place, only = AT[p, q]
        for row in found[place >= width(p)]:
            row[place - (place >= width(p)) * width(p)] = only
    return found


@pytest.mark.part(2)
@pytest.mark.parametrize("name", SAME)
def test_exactly_zero_at_equal_parameters(name):
    numbers = [(*first, *first) for first in at_one_value(name, name, [PARAMETERS[name], []])[0]]
    values = evaluate(name, name, numbers)
    np.testing.assert_array_equal(values, 0.0)
    assert not np.signbit(values).any()
    rng = np.random.default_rng(1)
    wild = np.exp(rng.uniform(-20, 20, (2000, width(name))))
    if name in PROBABILITIES:
        wild[:, -1] = rng.uniform(0, 1, 2000)
    if name.startswith("Binomial"):
        wild[:, 0] = np.floor(wild[:, 0])
    if name in INTERVALS:
        wild[:, 1] = 2.0 * wild[:, 0] + wild[:, 1]
    numbers = [(*row, *row) for row in at_one_value(name, name, [wild.tolist(), []])[0]]
    values = evaluate(name, name, numbers)
    np.testing.assert_array_equal(values, 0.0)
    assert not np.signbit(values).any()


@pytest.mark.part(4)
@PAIR
def test_float32_parameters(p, q):
    """Computed in float64, then rounded: the parameters are what they are in float32."""
    numbers = np.array([case for case in cases(p, q) if all(x == 0 or 1e-3 < abs(x) < 1e3 for x in case)], np.float32)
    numbers = numbers[:300]
    if q in INTERVALS:
        numbers = numbers[numbers[:, -2] < numbers[:, -1]]
    if q == "NegativeBinomial":
        numbers = numbers[numbers[:, -1] < 1]
    if p == "ContinuousBernoulli":
        numbers = numbers[numbers[:, 0] < 1]
    if q == "ContinuousBernoulli":
        numbers = numbers[numbers[:, -1] < 1]
    if p == "NegativeBinomial":
        numbers = numbers[numbers[:, 1] < 1]
    narrow = build(p, numbers.T[: width(p)]), build(q, numbers.T[width(p) :])
    result = kl.kl_divergence(*narrow)
    assert narrow[0].dtype == narrow[1].dtype == result.dtype == np.float32
    with np.errstate(over="ignore", under="ignore"):
        expected = evaluate(p, q, numbers.astype(float).tolist()).astype(np.float32)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.part(4)
@PAIR
def test_parameters_broadcast(p, q):
    """(2,) with (3, 1)."""
    rng = np.random.default_rng(2)
    table = list(PARAMETERS[p]), list(PARAMETERS[q])
    if (p, q) in AT:
        table = at_one_value(p, q, table)
    elif (p, q) in PARTIAL:
        table = [[x for x in t if x[1] == 1.0] * 3 for t in table]
    some = [np.array([t[i] for i in rng.permutation(len(t))[:n]]) for t, n in zip(table, (2, 3), strict=True)]
    first = build(p, some[0].T)
    second = build(q, [column[:, None] for column in some[1].T])
    result = kl.kl_divergence(first, second)
    assert result.shape == (3, 2)
    expected = [[evaluate(p, q, [(*a, *b)])[0] for a in some[0].tolist()] for b in some[1].tolist()]
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("p", "q", "value"),
    [
        (D.Bernoulli(0.0), D.Bernoulli(0.0), 0.0),
        (D.Bernoulli(1.0), D.Bernoulli(1.0), 0.0),
        (D.Bernoulli(0.0), D.Bernoulli(1.0), math.inf),
        (D.Bernoulli(1.0), D.Bernoulli(0.25), math.log(4.0)),
        (D.Bernoulli(0.5), D.Bernoulli(1.0), math.inf),
        (D.Bernoulli(logits=1000.0), D.Bernoulli(logits=-1000.0), 1000.0),
        (D.Bernoulli(logits=-1000.0), D.Bernoulli(logits=1000.0), 1000.0),
        (D.Bernoulli(logits=math.inf), D.Bernoulli(logits=-1000.0), 1000.0),
        (D.Bernoulli(logits=-math.inf), D.Bernoulli(logits=-math.inf), 0.0),
        (D.Bernoulli(logits=0.0), D.Bernoulli(logits=math.inf), math.inf),
        (D.Bernoulli(logits=0.0), D.Bernoulli(logits=300.0), 150.0 - math.log(2.0)),
        (D.Geometric(1.0), D.Geometric(1.0), 0.0),
        (D.Geometric(1.0), D.Geometric(0.25), math.log(4.0)),
        (D.Geometric(0.5), D.Geometric(1.0), math.inf),
        (D.Geometric(logits=math.inf), D.Geometric(logits=math.inf), 0.0),
        (D.Poisson(0.0), D.Poisson(0.0), 0.0),
        (D.Poisson(0.0), D.Poisson(2.5), 2.5),
        (D.Poisson(2.5), D.Poisson(0.0), math.inf),
        (D.Poisson(0.0), D.Bernoulli(0.75), math.log(4.0)),
        (D.Poisson(0.0), D.Bernoulli(logits=1000.0), 1000.0),
        (D.Poisson(1.0), D.Bernoulli(0.75), math.inf),
        (D.Poisson(0.0), D.Binomial(3, 0.75), 3 * math.log(4.0)),
        (D.Poisson(0.0), D.Binomial(3, logits=1000.0), 3000.0),
        (D.Bernoulli(0.0), D.Poisson(0.0), 0.0),
        (D.Bernoulli(1.0), D.Poisson(0.0), math.inf),
        (D.Binomial(10, 1.0), D.Binomial(10, 1.0), 0.0),
        (D.Binomial(10, 1.0), D.Binomial(10, 0.5), 10 * math.log(2.0)),
        (D.Binomial(10, 0.5), D.Binomial(10, 0.0), math.inf),
        (D.Binomial(10, 0.5), D.Binomial(9, 0.5), math.inf),
        (D.Binomial(10, 0.0), D.Binomial(9, 0.5), 9 * math.log(2.0)),
        (D.Binomial(1, 0.5), D.Binomial(2, 0.5), 0.5 * math.log(2.0)),
        (D.Binomial(1, 1.0), D.Binomial(2, 0.5), math.log(2.0)),
        (D.Binomial(1, 0.5), D.Binomial(2, 1.0), math.inf),
        (D.Binomial(1, 0.5), D.Binomial(2, 0.0), math.inf),
        (D.Binomial(0, 0.5), D.Binomial(2, 0.5), 2.0 * math.log(2.0)),
        (D.Binomial(1, logits=0.0), D.Binomial(2, logits=-1000.0), 500.0 - 1.5 * math.log(2.0)),
        (D.Binomial(1, logits=-1000.0), D.Binomial(2, logits=0.0), 2.0 * math.log(2.0)),
        (D.Binomial(0, 0.5), D.Poisson(0.0), 0.0),
        (D.Binomial(3, 0.5), D.Poisson(0.0), math.inf),
        (D.Binomial(3, 0.0), D.Poisson(2.5), 2.5),
        (D.Binomial(1, 1.0), D.Poisson(1.0), 1.0),
        (D.Binomial(3, logits=-1000.0), D.Poisson(0.0), math.inf),
        (D.ContinuousBernoulli(0.5), D.Uniform(0.0, 1.0), 0.0),
        (D.ContinuousBernoulli(0.9), D.Uniform(0.0, 0.9), math.inf),
        (D.Uniform(0.0, 1.0), D.ContinuousBernoulli(0.5), 0.0),
        (D.Uniform(-0.1, 1.0), D.ContinuousBernoulli(0.5), math.inf),
        (D.Uniform(0.0, 1.0), D.ContinuousBernoulli(logits=1e300), 5e299),
        (D.ContinuousBernoulli(logits=-500.0), D.ContinuousBernoulli(logits=20.0), 22.17887582280704),
        (D.VonMises(1.0, 0.0), D.VonMises(2.0, 0.0), 0.0),
        (D.VonMises(0.0, 1e-200), D.VonMises(0.0, 1.0), 0.23591435850717865),
        (D.StudentT(2.0), D.Normal(0.0, 1.0), math.inf),
        (D.Logistic(0.0, 1.0), D.Gumbel(0.0, 1.0), math.inf),
        (D.Pareto(1.0, 1.0), D.Laplace(0.0, 1.0), math.inf),
        (D.LogUniform(1.0, 3.0), D.LogUniform(1.0, 2.0), math.inf),
        (D.Delta(2.0), D.Delta(2.0), 0.0),
        (D.Delta(2.0), D.Delta(3.0), math.inf),
        (D.Delta(0.0), D.Poisson(0.0), 0.0),
        (D.Delta(1.0), D.Poisson(0.0), math.inf),
        (D.Delta(1.0), D.Bernoulli(0.25), math.log(4.0)),
        (D.Delta(2.0), D.Bernoulli(0.25), math.inf),
        (D.Delta(1.0), D.Bernoulli(logits=-1000.0), 1000.0),
        (D.Delta(0.0), D.Geometric(1.0), 0.0),
        (D.Delta(1.0), D.Geometric(1.0), math.inf),
        (D.Delta(0.0), D.NegativeBinomial(2.0, 0.75), 2.0 * math.log(4.0)),
        (D.Delta(0.5), D.Normal(0.0, 1.0), math.inf),
        (D.Binomial(0, 0.5), D.Binomial(0, 0.0), 0.0),
        (D.Normal(0.0, 1e-200), D.Normal(0.0, 1e-200), 0.0),
        (D.Normal(0.0, 1e-200), D.Normal(0.0, 1.0), 200 * math.log(10.0) - 0.5),
        (D.Gamma(1e8, 1.0), D.Gamma(1e8, 1.0), 0.0),
        (D.Pareto(1.0, 2.0), D.Pareto(1.5, 2.0), math.inf),
        (D.Uniform(0.0, 1.0), D.Uniform(0.0, 0.5), math.inf),
        (D.Pareto(1.0, 1.0), D.Exponential(1.0), math.inf),
        (D.Pareto(1.0, 2.0), D.Normal(0.0, 1.0), math.inf),
        (D.Uniform(-1.0, 1.0), D.Exponential(1.0), math.inf),
        (D.Uniform(0.5, 1.0), D.Pareto(0.75, 1.0), math.inf),
    ],
    ids=repr,
)
def test_boundaries(p, q, value):
    assert float(kl.kl_divergence(p, q)) == pytest.approx(value, rel=4e-16, abs=0.0)


def _of_one_draw(p, q):
    return p * mp.log(p / q) + (1 - p) * mp.log((1 - p) / (1 - q))


def _of_log_odds(p, q):
    a, b = mp.log(p / (1 - p)), mp.log(q / (1 - q))
    integral = [mp.log(mp.sinh(x / 2) / (x / 2)) if x else mpf(0) for x in (a, b)]
    slope = mp.coth(a / 2) / 2 - 1 / a if a else mpf(0)
    return integral[1] - integral[0] - slope * (b - a)


MIXED = {
    "Bernoulli": (D.Bernoulli, _of_one_draw),
    "Geometric": (D.Geometric, lambda p, q: _of_one_draw(p, q) / p),
    "ContinuousBernoulli": (D.ContinuousBernoulli, _of_log_odds),
    "Binomial": (lambda **form: D.Binomial(7, **form), lambda p, q: 7 * _of_one_draw(p, q)),
    "NegativeBinomial": (lambda **form: D.NegativeBinomial(3.0, **form), lambda p, q: 3 * _of_one_draw(p, q) / (1 - p)),
}


@pytest.mark.part(4)
@pytest.mark.parametrize("name", MIXED)
def test_mixed_forms_of_a_probability(name):
    """One side as a probability, the other as log-odds that are close to it or not; at most 5.7e-14 was found.

    Log-odds that are equal but for their rounding are left out, and those next to 0: test_mixed_forms_of_even_odds.
    """
    make, formula = MIXED[name]
    rng = np.random.default_rng(3)
    probs = [*rng.uniform(0.0, 1.0, 20), *np.exp(-rng.uniform(0.0, 600.0, 20)), 0.9, 0.25, 1.0 - 1e-15, 1e-300]
    for p, d in itertools.product(probs, [0.0, 1e-12, -1e-10, 1e-7, 1e-3, -0.5, 3.0, -2.0]):
        b = float((np.log(p) - np.log1p(-p)) * (1.0 + d))
        with mp.workdps(700):
            first, second = mpf(float(p)), 1 / (1 + mp.exp(-mpf(b)))
            if abs(mp.log(first / (1 - first)) - mpf(b)) < 1e-12 * abs(b):
                continue
            found = [make(probs=p), make(logits=b)]
            for of_p, of_q, x, y in ((first, second, *found), (second, first, *found[::-1])):
                true = formula(of_p, of_q)
                if 1e-300 < true < 1e300:
                    assert abs(mpf(float(kl.kl_divergence(x, y))) / true - 1) < 1e-13


def _log_odds(p):
    return math.log(p / (1.0 - p))


# What p's probability makes of the family, what a mean makes of q, and how many draws there are.
OF_ONE_MEAN = {
    "Bernoulli-Poisson": (D.Bernoulli, D.Poisson, 1.0),
    "Bernoulli-Geometric": (D.Bernoulli, lambda mean: D.Geometric(logits=-math.log(mean)), 1.0),
    "Binomial-Poisson": (lambda **form: D.Binomial(7, **form), D.Poisson, 7.0),
}


@pytest.mark.parametrize("name", OF_ONE_MEAN)
def test_log_odds_against_counts_of_nearly_the_same_mean(name):
    """Probabilities down to 1e-14: what counts is by how much the log-odds are off a double; 1.2e-14 was found."""
    make, other, n = OF_ONE_MEAN[name]
    rng = np.random.default_rng(8)
    pair = tuple(name.split("-"))
    for p, e in zip(*10.0 ** rng.uniform([[-14], [-13]], [[-0.7], [-2]], (2, 40)), strict=True):
        a = _log_odds(p)
        q = other(float(n * p * (1 + e)))
        found = kl.kl_divergence(make(logits=a), q)
        with mp.workdps(120):
            first = 1 / (1 + mp.exp(-mpf(a)))
            second = 1 / (1 + mp.exp(-mpf(float(q.logits)))) if pair[1] == "Geometric" else mpf(float(q.rate))
            true = CLOSED[pair](*((mpf(n), first) if n > 1 else (first,)), second)
            assert abs(mpf(float(found)) / true - 1) < 5e-14


@pytest.mark.parametrize("side", ["p", "q", "both"])
@pytest.mark.parametrize("n", [1, 7])
def test_log_odds_against_negative_binomial_counts_of_nearly_the_same_mean(n, side):
    """The same, with one side given by its probability; 3e-14 was found."""
    rng = np.random.default_rng(9)
    family = (lambda **form: D.Bernoulli(**form)) if n == 1 else (lambda **form: D.Binomial(n, **form))
    for p, e in zip(*10.0 ** rng.uniform([[-14], [-13]], [[-1.5], [-2]], (2, 25)), strict=True):
        q = float(n * p / 2.5 * (1 + e))
        of_p = {"probs": p} if side == "q" else {"logits": _log_odds(p)}
        of_q = {"probs": q} if side == "p" else {"logits": _log_odds(q)}
        found = kl.kl_divergence(family(**of_p), D.NegativeBinomial(2.5, **of_q))
        with mp.workdps(120):
            x, y = (mpf(v["probs"]) if "probs" in v else 1 / (1 + mp.exp(-mpf(v["logits"]))) for v in (of_p, of_q))
            true = CLOSED["Binomial", "NegativeBinomial"](mpf(n), x, mpf(2.5), y)
            assert abs(mpf(float(found)) / true - 1) < 1e-13


@pytest.mark.parametrize("scale", [1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("loc", [0.0, 1.5, -3.2])
def test_narrow_log_normal_distributions_close_to_normal_ones(loc, scale):
    """Down to the scale that the reference page names; at most 3.9e-16 was found."""
    for e, f in itertools.product([0.0, 1e-12, -1e-9, 1e-6, 1e-3], repeat=2):
        case = (loc, scale, *about(math.exp(loc + scale * scale / 2), scale * math.exp(loc), e, f))
        with mp.workdps(120):
            true = float(CLOSED["LogNormal", "Normal"](*map(mpf, case)))
        found = float(kl.kl_divergence(D.LogNormal(*case[:2]), D.Normal(*case[2:])))
        assert found == pytest.approx(true, rel=2e-15, abs=0.0)


def test_mixed_forms_of_even_odds():
    """The log-odds of 1/2 + x are about 4*x, and known to 1e-28; at most 3.2e-16 was found."""
    for x in (1e-3, 1e-5, 1e-7):
        p = 0.5 + x
        b = float((np.log(p) - np.log1p(-p)) * (1.0 + 1e-8))
        with mp.workdps(100):
            true = _of_one_draw(mpf(p), 1 / (1 + mp.exp(-mpf(b))))
        assert float(kl.kl_divergence(D.Bernoulli(p), D.Bernoulli(logits=b))) == pytest.approx(float(true), rel=1e-15)


EXTREME = [1e-300, 1e-150, 1e-5, 1.0, 1e5, 1e150, 1e300]


@pytest.mark.parametrize(
    ("make", "count"), [(D.Gamma, 2), (D.InverseGamma, 2), (D.Beta, 2), (D.Chi, 1), (D.Poisson, 1), (D.NormalGamma, 3)]
)
def test_the_ends_of_the_range_of_numbers(make, count):
    """Never NaN or negative; a result beyond the range is infinite."""
    numbers = np.array(list(itertools.product(EXTREME, repeat=2 * count))).T
    moved = [np.zeros(numbers.shape[1])] if make is D.NormalGamma else []
    found = kl.kl_divergence(make(*moved, *numbers[:count]), make(*moved, *numbers[count:]))
    assert (found >= 0.0).all()
    same = (numbers[:count] == numbers[count:]).all(0)
    np.testing.assert_array_equal(found[same], 0.0)


def test_dirichlet_at_the_ends_of_the_range_of_numbers():
    numbers = np.array(list(itertools.product([1e-300, 1e-5, 1.0, 1e300], repeat=6)))
    found = kl.kl_divergence(D.Dirichlet(numbers[:, :3]), D.Dirichlet(numbers[:, 3:]))
    assert (found >= 0.0).all()
    np.testing.assert_array_equal(found[(numbers[:, :3] == numbers[:, 3:]).all(1)], 0.0)


@pytest.mark.parametrize(
    ("p", "q", "value"),
    [
        (D.Gamma(1e-300, 1.0), D.Gamma(2e-300, 1.0), 1.0 - math.log(2.0)),
        (D.Gamma(2.0, 1.0), D.Gamma(1e-300, 1.0), 300.0 * math.log(10.0) + 2.0 * 0.42278433509846713),
        (D.Gamma(1e-300, 1e-300), D.Gamma(1e-300, 1e300), 1e300),
        (D.Beta(1e-300, 1e-300), D.Beta(2e-300, 1e-300), 1.0 - math.log(2.0) - (0.5 - math.log(1.5))),
        (D.Beta(1e-300, 1e-5), D.Beta(1e-300, 1e-300), math.log(2.0)),
        (D.Beta(1e-300, 1.0), D.Beta(1e-300, 1e300), math.pi**2 / 6.0),
        (D.Beta(1e-300, 1.0), D.Beta(1.0, 1.0), 1e300),
    ],
    ids=repr,
)
def test_values_at_the_ends_of_the_range_of_numbers(p, q, value):
    assert float(kl.kl_divergence(p, q)) == pytest.approx(value, rel=1e-12)
