"""Formulas with a quick form: what is taken where, the same for one number as for a batch, and exact relations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import klnumba as kl
from klnumba.distributions import Bernoulli, Dirichlet, beta, dirichlet, evaluate, gamma, normal, odds
from klnumba.distributions.registry import ByForm, registered_pairs
from klnumba.formulas import quick
from klnumba.kernels import row_sums
from tests.reference import linked
from tests.reference.special_errors import QUICK, apart

FORMULAS = [normal.normal_normal, gamma.gamma_gamma, beta.beta_beta]
FORMULA = pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.__name__)
# Both sides of every limit: of what is ordinary, of small and large, of what a difference may lose.
EDGES = [5e-324, 1e-310, 0.99 * quick.LEAST, quick.LEAST, 1e-9, 0.5, 2.999, 3.0, 3.001, 40.0, 1e8, quick.MOST, 1e200]


@FORMULA
def test_the_quick_form_agrees_with_the_formula_wherever_it_serves(formula):
    (form,) = (linked.entry(quick_form) for quick_form in quick.quick_form(formula))
    careful = linked.entry(formula)
    rng = np.random.default_rng(3)
    spread = np.exp(rng.uniform(-3, 6, (1500, 4)))
    close = spread.copy()
    close[:, 2:] = close[:, :2] * (1 + 10.0 ** rng.uniform(-12, -1, (1500, 1)) * rng.uniform(-1, 1, (1500, 2)))
    edges = rng.choice(EDGES, (1500, 4))
    served = 0
    for row in np.concatenate([spread, close, edges]).tolist():
        value, serves = form(*row)
        if serves:
            served += 1
            assert value == pytest.approx(careful(*row), rel=1e-13, abs=0.0), row
            assert value >= 0.0, row
    assert served > 1500


@FORMULA
def test_what_is_not_ordinary_is_left_to_the_formula(formula):
    (form,) = (linked.entry(quick_form) for quick_form in quick.quick_form(formula))
    for extreme in (5e-324, 0.99 * quick.LEAST, 1.01 * quick.MOST, 1e308, math.inf, math.nan):
        for place in (1, 3):
            row = [1.0, 2.0, 3.0, 4.0]
            row[place] = extreme
            assert not form(*row)[1], row


@FORMULA
def test_one_number_gets_the_bits_that_it_gets_in_a_batch(formula):
    """Whatever the neighbours and wherever in the batch."""
    rng = np.random.default_rng(4)
    columns = list(np.exp(rng.uniform(-4, 4, (4, 1003))))
    columns[3][rng.choice(1003, 40)] = rng.choice(EDGES, 40)
    batch = evaluate.evaluate(formula, columns, (1003,))
    alone = [evaluate.evaluate(formula, [np.float64(c[k]) for c in columns], ()) for k in range(1003)]
    np.testing.assert_array_equal(batch, alone)


@pytest.mark.parametrize("width", [2, 3, 10, 32, 33, 511, 512, 513, 2000])
def test_rows_do_not_depend_on_their_neighbours(width):
    rng = np.random.default_rng(5)
    rows = 4 + 3 * row_sums.GROUP // width
    p, q = np.exp(rng.uniform(-2, 2, (2, rows, width)))
    q[::3] = p[::3] * (1 + 1e-9 * rng.standard_normal(q[::3].shape))
    p[1, 0] = 1e-200
    batch = kl.kl_divergence(Dirichlet(p), Dirichlet(q))
    ones = [kl.kl_divergence(Dirichlet(a), Dirichlet(b)) for a, b in zip(p, q, strict=True)]
    np.testing.assert_array_equal(batch, ones)
    shared = kl.kl_divergence(Dirichlet(p[2]), Dirichlet(q))
    np.testing.assert_array_equal(shared, [kl.kl_divergence(Dirichlet(p[2]), Dirichlet(b)) for b in q])


def test_the_quick_form_of_rows_agrees_with_stick_by_stick():
    careful = linked.entry(dirichlet.stick_by_stick)
    rng = np.random.default_rng(6)
    for width in (2, 5, 10, 64, 300):
        p = np.exp(rng.uniform(-3, 5, (60, width)))
        for q in (np.exp(rng.uniform(-3, 5, p.shape)), p * (1 + 1e-8 * rng.standard_normal(p.shape))):
            found = kl.kl_divergence(Dirichlet(p), Dirichlet(q))
            exact = [careful(np.empty(0), a, b) for a, b in zip(p, q, strict=True)]
            np.testing.assert_allclose(found, exact, rtol=1e-13, atol=0.0)


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-8, 1e8), st.floats(-1.0, 1.0), st.integers(0, 12))
def test_the_remainder_of_log_gamma(a, part, digits):
    b = a * (1 + part * 10.0**-digits)
    if b > 0.0 and b != a:
        for name, truth in QUICK.items():
            value, serves = linked.entry(getattr(quick, name))(a, b, b - a)
            with mp.workdps(80):
                assert not serves or apart(value, truth(mpf(a), mpf(b))) < 4.5e-14


LOG_ODDS = [0.0, 1e-300, 1.0, -1.0, 36.0, -36.0, 37.5, -40.0, 599.0, -599.0, 600.0, -600.0]
# Roundings that the quick form of log-odds is off by at most; the largest found in 27,500 draws is 14.0, where the two
# are some log(2) apart. The formula that it stands in for is off by up to 39.
MOST_OF_LOG_ODDS = 20.0


def two_outcomes_exactly(a, b):
    """KL from two log-odds."""
    p, rest = 1 / (1 + mp.exp(-a)), 1 / (1 + mp.exp(a))
    return p * mp.log((1 + mp.exp(-b)) / (1 + mp.exp(-a))) + rest * mp.log((1 + mp.exp(b)) / (1 + mp.exp(a)))


def log_odds(seed, count):
    """Far apart, close to each other, and ends of the range."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(4, count)) * np.array([[10.0], [150.0], [5.0], [20.0]])
    b = rng.normal(size=(4, count)) * np.array([[10.0], [150.0], [5.0], [0.0]])
    b[2] = a[2] + b[2] * 10.0 ** rng.uniform(-12, 0, count)
    b[3] = a[3] + rng.choice([-1.0, 1.0], count) * rng.uniform(0.3, 1.2, count)
    ends = rng.choice(LOG_ODDS, (2, count))
    return np.concatenate([a.ravel(), ends[0]]), np.concatenate([b.ravel(), ends[1]])


def test_log_odds_against_the_truth():
    a, b = log_odds(7, 100)
    (form,) = (linked.entry(one) for one in quick.quick_form(odds.two_outcomes_logits))
    with mp.workdps(400):
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            value, serves = form(x, y)
            exact = two_outcomes_exactly(mpf(x), mpf(y))
            assert serves
            assert abs(mpf(value) - exact) <= MOST_OF_LOG_ODDS * 2.0**-53 * exact + mpf(5e-324), (x, y)


@pytest.mark.parametrize("extreme", [600.1, -601.0, 1e308, math.inf, -math.inf, math.nan])
def test_log_odds_that_are_not_ordinary_are_left_to_the_formula(extreme):
    (form,) = (linked.entry(one) for one in quick.quick_form(odds.two_outcomes_logits))
    assert not form(extreme, 1.0)[1]
    assert not form(1.0, extreme)[1]


def test_log_odds_have_the_bits_that_they_have_in_a_batch():
    a, b = log_odds(8, 300)
    a[::50] = 700.0
    batch = kl.kl_divergence(Bernoulli(logits=a), Bernoulli(logits=b))
    ones = [kl.kl_divergence(Bernoulli(logits=x), Bernoulli(logits=y)) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(batch, ones)
    assert np.all(batch >= 0.0)


def test_every_quick_form_belongs_to_a_registered_pair_or_to_rows():
    """So that the tests of this file, which name them, miss none."""
    functions = [pair.function for pair in registered_pairs()]
    scalar = [one for f in functions for one in (f.formulas if isinstance(f, ByForm) else (f,))]
    assert {one for one in scalar if quick.quick_form(one)} == {*FORMULAS, odds.two_outcomes_logits}
