"""Quick slopes against the derivatives that duals give: what they serve, how exact that is, and what they leave."""

from __future__ import annotations

import math

import numpy as np
import pytest

from klnumba import distributions as D
from klnumba.distributions import (
    beta,
    binomial,
    cauchy,
    continuous_bernoulli,
    exponential,
    gamma,
    gumbel,
    half_cauchy,
    half_normal,
    inverse_gaussian,
    kl_divergence_grad,
    laplace,
    log_uniform,
    negative_binomial,
    normal,
    odds,
    pareto,
    poisson,
    uniform,
    von_mises,
    weibull,
)
from klnumba.distributions.bernoulli import Bernoulli
from klnumba.distributions.evaluate import evaluate_slopes
from klnumba.distributions.gradient import CLEAR
from klnumba.distributions.registry import find
from klnumba.duals.twin import slopes, twin
from klnumba.formulas import quick

FEW = 2.0**-24  # what is served at some ten thousand times the error
MANY = 2.0**40  # only what has no terms is served
ROUNDING = 2.0**-53
COUNT = 60

# What each parameter is drawn from: any size, any number, a probability, log-odds, a count, that of p once more.
SIZE, PLACE, CHANCE, ODDS, DRAWS, SAME = "size", "place", "chance", "odds", "draws", "same"
LOW, HIGH, WIDER_LOW, WIDER_HIGH = "low", "high", "wider low", "wider high"  # ends of intervals
BEYOND_2, REST = "beyond 2", "rest"
LOCATIONS, SIZES = (PLACE, SIZE) * 2, (SIZE,) * 4


def _mixed(p, q):
    """The formula of one form of the probability of p and another of that of q."""
    return find(Bernoulli, Bernoulli).function.choose(p, q)[0]


PROBS_TO_LOGITS = _mixed(Bernoulli(0.5), Bernoulli(logits=0.0))
LOGITS_TO_PROBS = _mixed(Bernoulli(logits=0.0), Bernoulli(0.5))

# Products of differences of the parameters: served wherever no derivative is infinite.
PRODUCTS = {
    odds.two_outcomes: (CHANCE, CHANCE),
    odds.two_outcomes_logits: (ODDS, ODDS),
    PROBS_TO_LOGITS: (CHANCE, ODDS),
    LOGITS_TO_PROBS: (ODDS, CHANCE),
    odds.per_success: (CHANCE, CHANCE),
    odds.per_success_logits: (ODDS, ODDS),
    binomial.binomial_probs: (DRAWS, CHANCE, SAME, CHANCE),
    binomial.binomial_logits: (DRAWS, ODDS, SAME, ODDS),
    negative_binomial.negative_binomial_probs: (SIZE, CHANCE, SAME, CHANCE),
    negative_binomial.negative_binomial_logits: (SIZE, ODDS, SAME, ODDS),
    poisson.generalized_kl: (SIZE, SIZE),
    poisson.bernoulli_poisson_probs: (CHANCE, SIZE),
    exponential.exponential_exponential: (SIZE, SIZE),
    half_normal.half_normal_half_normal: (SIZE, SIZE),
    half_cauchy.half_cauchy_half_cauchy: (SIZE, SIZE),
    uniform.uniform_uniform: (LOW, HIGH, WIDER_LOW, WIDER_HIGH),
    log_uniform.log_uniform_log_uniform: (LOW, HIGH, WIDER_LOW, WIDER_HIGH),
}
# Sums of squares in twice the digits.
NARROW = {
    normal.normal_normal: LOCATIONS,
    cauchy.cauchy_cauchy: LOCATIONS,
    laplace.laplace_normal: LOCATIONS,
}
# Sums: with the share of ordinary draws that is served at `CLEAR`.
SUMS = {
    gamma.gamma_gamma: (SIZES, 0.8),
    gamma.gamma_exponential: (SIZES[:3], 0.8),
    gamma.exponential_gamma: (SIZES[:3], 0.8),
    gamma.gamma_normal: ((SIZE, SIZE, PLACE, SIZE), 0.7),
    gamma.gamma_gumbel: ((SIZE, SIZE, PLACE, SIZE), 0.5),
    exponential.exponential_normal: ((SIZE, PLACE, SIZE), 0.7),
    exponential.exponential_gumbel: ((SIZE, PLACE, SIZE), 0.5),
    beta.beta_beta: (SIZES, 0.5),
    beta.beta_gamma: (SIZES, 0.3),
    beta.beta_exponential: (SIZES[:3], 0.25),
    beta.beta_normal: ((SIZE, SIZE, PLACE, SIZE), 0.2),
    laplace.laplace_laplace: (LOCATIONS, 0.8),
    laplace.normal_laplace: (LOCATIONS, 0.7),
    gumbel.gumbel_gumbel: (LOCATIONS, 0.5),
    gumbel.gumbel_normal: (LOCATIONS, 0.6),
    gumbel.normal_gumbel: (LOCATIONS, 0.8),
    weibull.weibull_weibull: (SIZES, 0.5),
    pareto.pareto_pareto: ((REST, SIZE, SIZE, SIZE), 0.8),
    pareto.pareto_exponential: ((SIZE, BEYOND_2, SIZE), 0.6),
    pareto.pareto_gamma: ((SIZE, BEYOND_2, SIZE, SIZE), 0.5),
    pareto.pareto_normal: ((SIZE, BEYOND_2, PLACE, SIZE), 0.6),
    uniform.uniform_normal: ((LOW, HIGH, PLACE, SIZE), 0.6),
    uniform.uniform_exponential: ((LOW, HIGH, SIZE), 0.6),
    uniform.beta_uniform: ((SIZE, SIZE, WIDER_LOW, WIDER_HIGH), 0.6),
    inverse_gaussian.inverse_gaussian_inverse_gaussian: (SIZES, 0.8),
    von_mises.von_mises_von_mises: (LOCATIONS, 0.7),
    continuous_bernoulli.by_probs: ((CHANCE, CHANCE), 0.7),
    continuous_bernoulli.by_logits: ((ODDS, ODDS), 0.7),
    poisson.bernoulli_poisson_logits: ((ODDS, SIZE), 0.7),
}
KINDS = PRODUCTS | NARROW | {formula: kinds for formula, (kinds, _) in SUMS.items()}
# Parameters that are 1e18 apart, or angles that large, cost digits of the duals.
NOT_WIDE = {
    beta.beta_beta,
    beta.beta_exponential,
    beta.beta_gamma,
    inverse_gaussian.inverse_gaussian_inverse_gaussian,
    laplace.laplace_laplace,
    laplace.normal_laplace,
    pareto.pareto_exponential,
    pareto.pareto_gamma,
    uniform.beta_uniform,
    von_mises.von_mises_von_mises,
}


def _id(formula):
    mixed = {PROBS_TO_LOGITS: "probs_to_logits", LOGITS_TO_PROBS: "logits_to_probs"}
    return f"{formula.__module__.rpartition('.')[2]}.{mixed.get(formula, formula.__name__)}"


def _of_formulas(formulas):
    """A third of them; all with the slow tests."""
    chosen = list(formulas)

    def of_each(test):
        return pytest.mark.part(4)(pytest.mark.parametrize("formula", chosen, ids=_id)(test))

    return of_each


def drawn(kind, rng, count, spread):
    """Numbers of a kind: `spread` is how many factors of e they are apart."""
    size = np.exp(rng.uniform(-spread, spread, count))
    number = rng.normal(size=count)
    found = {
        SIZE: size,
        PLACE: number * (1.0 if spread <= 2.0 else size),
        CHANCE: 1.0 / (1.0 + np.exp(-0.75 * spread * number)),
        ODDS: spread * number,
        DRAWS: np.floor(1.0 + size),
        LOW: 0.2 + 0.2 * rng.uniform(size=count),
        HIGH: 0.4 + 0.5 * rng.uniform(size=count),
        WIDER_LOW: -size,
        WIDER_HIGH: 1.0 + size,
        BEYOND_2: 2.0 + size,
        REST: size,
        SAME: size,
    }
    return found[kind]


def columns_of(formula, count, spread, near):
    """Draws of the parameters; `near` ones of q are those of p moved by some part between 1e-15 and 1e-2."""
    rng = np.random.default_rng(len(formula.__name__) + 100 * near)
    kinds = KINDS[formula]
    found = [drawn(kind, rng, count, spread) for kind in kinds]
    half = len(kinds) // 2
    for i, kind in enumerate(kinds):
        moved = 10.0 ** rng.uniform(-15, -2, count)
        if kind == SAME:
            found[i] = found[i - half]
        elif near and i >= half and kinds[i - half] == kind and len(kinds) % 2 == 0:
            found[i] = found[i - half] * (1.0 + moved * rng.choice([-1.0, 1.0], count))
            found[i] = np.clip(found[i], 0.0, 1.0) if kind == CHANCE else found[i]
    if formula is log_uniform.log_uniform_log_uniform:
        found[2] = 0.2 * np.exp(found[2] / (1.0 + abs(found[2])))
    if formula is laplace.normal_laplace:  # far from each other, the duals lose digits
        found[0] = found[2] + found[1] * np.clip((found[0] - found[2]) / found[1], -30.0, 30.0)
    if formula is pareto.pareto_pareto:
        found[0] = found[2] * (1.0 + (10.0 ** rng.uniform(-15, -2, count) if near else found[0]))
    return found


def moving(formula):
    """The parameters by which there are derivatives."""
    kinds = KINDS[formula]
    counts = {DRAWS, SAME} if DRAWS in kinds else {DRAWS}
    return [i for i, kind in enumerate(kinds) if kind not in counts]


def served(formula, columns, least):
    """The derivatives, and where they are served."""
    size = columns[0].size
    found, left = evaluate_slopes(
        quick.quick_slopes(formula), [np.ascontiguousarray(x) for x in columns], (size,), 1.0, least
    )
    kept = np.ones(size, bool)
    kept[left] = False
    return np.array(found)[moving(formula)], kept


def apart(found, exact):
    """The largest relative error, in units of 2**-53; NaN where there is no derivative."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.where(found == exact, 0.0, abs(found - exact) / abs(exact)), initial=0.0) / ROUNDING)


def test_every_formula_with_quick_slopes_is_here():
    assert set(quick._quick_slopes) == set(KINDS)


# The largest found, of 900 draws each: 5.8 of products, 4.9 of sums in twice the digits. Other sums, of terms that may
# be 1/least times as large, were off by up to 2*(1 + 1/least), that is 18 at 1/8.
MOST_OF_PRODUCTS, MOST_OF_SUMS = 8.0, 3.0


@_of_formulas(KINDS)
def test_what_is_served_is_right(formula):
    """Of ordinary draws, of such as are close to each other, and of such as are far apart."""
    wide = 5.0 if formula in NOT_WIDE else 20.0
    parts = [columns_of(formula, COUNT, spread, near) for spread, near in ((2.0, False), (2.0, True), (wide, False))]
    columns = [np.concatenate(x) for x in zip(*parts, strict=True)]
    exact = slopes(twin(formula), columns)[moving(formula)]
    if formula not in SUMS:
        found, kept = served(formula, columns, MANY if formula in PRODUCTS else 1.0)
        assert apart(found[:, kept], exact[:, kept]) < MOST_OF_PRODUCTS
        assert kept.mean() >= 0.9
        return
    for least in (CLEAR, 2.0**-13, FEW):
        found, kept = served(formula, columns, least)
        assert apart(found[:, kept], exact[:, kept]) < MOST_OF_SUMS * (1.0 + 1.0 / least)
        assert kept[:COUNT].mean() >= (SUMS[formula][1] if least == CLEAR else 0.95)


OF_TWO_FAMILIES = {
    beta.beta_gamma,
    gumbel.gumbel_normal,
    gumbel.normal_gumbel,
    laplace.laplace_normal,
    laplace.normal_laplace,
    PROBS_TO_LOGITS,
    LOGITS_TO_PROBS,
}


def _of_one_family(formula):
    kinds = KINDS[formula]
    half = len(kinds) // 2
    alike = all(y in {x, SAME} for x, y in zip(kinds[:half], kinds[half:], strict=False))
    return len(kinds) % 2 == 0 and alike and formula not in OF_TWO_FAMILIES


@_of_formulas(x for x in KINDS if _of_one_family(x))
def test_nothing_is_lost_at_equal_parameters(formula):
    """There all derivatives are 0, the sizes of what they are made of included."""
    columns = columns_of(formula, COUNT, 2.0, False)
    half = len(columns) // 2
    columns[half:] = columns[:half]
    found, kept = served(formula, columns, CLEAR)
    assert kept.all()
    assert not found.any()


EXTREMES = {
    SIZE: [2.0**-100, 2.0**-60, 1e-9, 0.5, 1.0, 3.0, 10.0, 1e9, 2.0**60, 2.0**100, 2.0**101],
    PLACE: [0.0, 2.0**-100, 1.0, -1.0, -50.0, 700.0, 1e9, 2.0**100],
    CHANCE: [0.0, 1.0, 0.5, 0.3, 1e-20, 2.0**-100, 1.0 - 2.0**-53],
    ODDS: [0.0, 1.0, -1.0, 40.0, -40.0, 650.0, -650.0, 800.0, -800.0, 1e5, -1e5, 2.0**100],
    DRAWS: [0.0, 1.0, 5.0],
}


def _of_any_numbers(formula):
    return formula not in NOT_WIDE and set(KINDS[formula]) <= set(EXTREMES) | {SAME}


@_of_formulas(x for x in KINDS if _of_any_numbers(x))
def test_edges_and_ends_of_the_range(formula):
    """No infinite, overflown or underflown derivative is taken for another number."""
    rng = np.random.default_rng(3)
    kinds = KINDS[formula]
    columns = [rng.choice(EXTREMES[SIZE if kind == SAME else kind], 120) for kind in kinds]
    for i, kind in enumerate(kinds):
        if kind == SAME:  # but for some
            columns[i] = np.where(rng.uniform(size=120) < 0.8, columns[0], columns[i])
    if formula in {poisson.generalized_kl, poisson.bernoulli_poisson_probs}:
        columns[-1][::5] = 0.0
    found, kept = served(formula, columns, FEW)
    exact = slopes(twin(formula), columns)[moving(formula)]
    np.testing.assert_allclose(found[:, kept], exact[:, kept], rtol=1e-7, atol=0.0)


def test_what_is_left_is_that_of_the_duals():
    rng = np.random.default_rng(4)
    numbers = np.exp(rng.uniform(-1, 1, (4, 80)))
    _, gradient = kl_divergence_grad(D.Beta(*numbers[:2]), D.Beta(*numbers[2:]))
    _, left = evaluate_slopes(beta.beta_beta_slopes, list(numbers), (80,), 1.0, CLEAR)
    assert 5 < left.size < 75
    exact = slopes(twin(beta.beta_beta), [column[left] for column in numbers])
    found = np.array([*gradient.p.values(), *gradient.q.values()])
    np.testing.assert_array_equal(found[:, left], exact)


ONE_SIDED = [
    (D.Bernoulli([0.0, 0.5, 1.0]), D.Bernoulli([0.5, 0.0, 1.0])),
    (D.Poisson([0.0, 1.0, 2.0]), D.Poisson([1.0, 0.0, 2.0])),
    (D.Pareto(2.0, [1.0, 3.0]), D.Pareto([2.0, 3.0], 3.0)),
    (D.Uniform([0.0, 1.0], 3.0), D.Uniform(0.0, [3.0, 2.0])),
    (D.Uniform([0.0, -1.0], 3.0), D.Exponential(2.0)),
    (D.Beta(2.0, 3.0), D.Uniform([0.0, 0.5], 1.0)),
    (D.Pareto(1.0, [0.5, 1.0, 2.0]), D.Exponential(1.0)),
    (D.Pareto(1.0, [1.0, 2.0, 3.0]), D.Normal(0.0, 1.0)),
    (D.Binomial([3, 3, 0], [0.5, 0.0, 0.5]), D.Binomial([3, 3, 0], [0.5, 0.5, 0.5])),
    (D.Geometric([1.0, 0.5]), D.Geometric([0.5, 1.0])),
    (D.VonMises(0.0, [0.0, 1.0]), D.VonMises(1.0, [1.0, 0.0])),
]


@pytest.mark.parametrize(("p", "q"), ONE_SIDED, ids=[f"{type(p).__name__}-{type(q).__name__}" for p, q in ONE_SIDED])
def test_on_boundaries_they_say_what_the_duals_say(p, q, monkeypatch):
    value, quickly = kl_divergence_grad(p, q)
    monkeypatch.setattr("klnumba.distributions.gradient.quick_slopes", lambda formula: None)
    _, slowly = kl_divergence_grad(p, q)
    for found, exact in zip(quickly, slowly, strict=True):
        assert list(found) == list(exact)
        for name in found:
            np.testing.assert_allclose(found[name], exact[name], rtol=1e-15, atol=0.0, err_msg=name)
            assert np.isnan(found[name])[~np.isfinite(np.broadcast_to(value, np.shape(found[name])))].all()


def test_float32():
    value, gradient = kl_divergence_grad(
        D.Gamma(np.float32(2.0), np.float32(3.0)), D.Gamma(np.float32(2.5), np.float32(1.0))
    )
    assert value.dtype == gradient.p["rate"].dtype == np.float32
    assert math.isclose(gradient.q["rate"], 2.0 / 3.0 - 2.5, rel_tol=1e-7)
