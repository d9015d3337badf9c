"""Closed forms at the ends of the range of numbers, and between families that nearly coincide, against true values."""

from __future__ import annotations

import json

import numpy as np
import pytest
from mpmath import mp, mpf

from tests.reference.distribution_errors import BOUND, evaluate
from tests.reference.distributions import CLOSED
from tests.reference.hard_values import (
    LEFT_OUT,
    TABLE,
    VALUES,
    apart,
    cases,
    errors,
    near,
    table,
    true_value,
)
from tests.reference.near_families import NEAR

ROWS = json.loads(VALUES.read_text())
RECORDED = {(row["p"], row["q"]): row for row in json.loads(TABLE.read_text())["errors"]}
PAIRS = pytest.mark.parametrize(("p", "q"), RECORDED, ids=["-".join(pair) for pair in RECORDED])


@pytest.mark.part(2)
@PAIRS
def test_errors_are_as_recorded(p, q):
    (found,) = table(errors([row for row in ROWS if (row["p"], row["q"]) == (p, q)]))
    recorded = RECORDED[p, q]
    for name in ("points", "beyond_1e-13", "not_finite"):
        assert found[name] == recorded[name]
    assert found["largest_error"] <= 1.5 * recorded["largest_error"] + 2e-16


def test_all_pairs_keep_the_bound():
    assert {pair for pair, row in RECORDED.items() if row["beyond_1e-13"] or row["largest_error"] > BOUND} == set()
    for pair in NEAR:
        close = [row for row in ROWS if (row["p"], row["q"]) == pair and tuple(row["at"]) in set(near(*pair))]
        values = evaluate(*pair, [tuple(row["at"]) for row in close])
        assert max(apart(float(v), mpf(row["value"])) for v, row in zip(values, close, strict=True)) <= BOUND


def test_every_pair_is_measured():
    """But those that are infinite unless p is always 0."""
    empty = {(p, q) for p in ("Poisson", "Geometric", "NegativeBinomial") for q in ("Bernoulli", "Binomial")}
    assert set(CLOSED) - set(RECORDED) <= LEFT_OUT | empty | {("Delta", "Delta")}


@PAIRS
@pytest.mark.filterwarnings("ignore:KL.Kumaraswamy .. Laplace.* are NaN:RuntimeWarning")  # beyond 1e30
def test_never_negative(p, q):
    found = list(cases(p, q)) or near(p, q)
    with np.errstate(all="ignore"):
        assert not (evaluate(p, q, found) < 0.0).any()


@pytest.mark.part(2)
@pytest.mark.parametrize("place", range(5, len(ROWS), 211))
def test_the_true_values_are_those_of_the_reference(place):
    row = ROWS[place]
    exact = true_value(row["p"], row["q"], tuple(row["at"]))
    with mp.workdps(30):
        assert abs(mpf(row["value"]) - exact) <= mpf(10) ** -22 * exact


def test_scales_of_pareto_beyond_the_range_in_units_of_the_others():
    """The quotient of the scales overflows; the divergence, where p lies close to its end, does not."""
    case = (1e300, 1e30, 1e300, 1e-30)
    np.testing.assert_allclose(evaluate("Pareto", "Gumbel", [case]), [1e300], rtol=1e-15)
    np.testing.assert_allclose(evaluate("Pareto", "Moyal", [case]), [5e299], rtol=1e-15)
    assert evaluate("Pareto", "Gumbel", [(1e300, 2.5, 0.0, 1e-30)])[0] == np.inf


@pytest.mark.parametrize(
    ("q", "case"),
    [
        pytest.param("Gumbel", (1e-295, 2e-300, 0.5, 0.01), marks=pytest.mark.slow),  # the truth takes long
        ("Moyal", (200.0, 1e-300, 0.5, 0.01)),
    ],
)
def test_beta_variables_that_lie_at_an_end(q, case):
    """But for less than 1e-100: the exponential moment is then that of the end, or of both."""
    np.testing.assert_allclose(evaluate("Beta", q, [case]), [float(true_value("Beta", q, case))], rtol=1e-14)
    np.testing.assert_allclose(evaluate("Beta", q, [(1e-150, 1e300, -3.7, 1e-10)]), [1e150], rtol=1e-14)
