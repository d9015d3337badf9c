"""Closed forms where parameters of any size are nearly equal, against true values."""

from __future__ import annotations

import itertools

import pytest

from klnumba import kl_divergence
from klnumba.distributions import Beta, Dirichlet
from tests.reference.distribution_errors import BOUND, evaluate
from tests.reference.distributions import CLOSED
from tests.reference.drawn_extremes import drawn
from tests.reference.hard_values import LEFT_OUT, apart, true_value

EMPTY = {(p, q) for p in ("Poisson", "Geometric", "NegativeBinomial") for q in ("Bernoulli", "Binomial")}  # infinite
INTEGRAL = {("Kumaraswamy", "Laplace")}  # which may be NaN beyond 1e30, with a warning
PAIRS = [pair for pair in CLOSED if pair not in LEFT_OUT | EMPTY | INTEGRAL | {("Delta", "Delta")}]
NEAR_THE_END = 9e307  # where a value may be infinite
LONG = {("Beta", "Gumbel"), ("Beta", "Moyal")}  # whose truth is an integral


def case_of(p, q):
    """A pair with its name; `pytest.mark.part` takes its choice of those that are not slow."""
    return pytest.param(p, q, id=f"{p}-{q}", marks=[pytest.mark.slow] if (p, q) in LONG else [])


@pytest.mark.part(10)
@pytest.mark.parametrize(("p", "q"), [case_of(*pair) for pair in PAIRS])
def test_drawn_parameters(p, q):
    known = ((case, true_value(p, q, case)) for case in drawn(p, q, 60))
    of_value = ((case, value) for case, value in known if value is not None and value < NEAR_THE_END)
    cases = dict(itertools.islice(of_value, 6))
    assert cases
    values = evaluate(p, q, list(cases))
    errors = {case: apart(float(v), exact) for v, (case, exact) in zip(values, cases.items(), strict=True)}
    assert {case: e for case, e in errors.items() if not e <= BOUND} == {}


# Found in a search of the same kind: of each the parts of some formula leave the range of numbers, its value does not.
FOUND = [
    ("Beta", "Beta", (1e-160, 1e-155, 1e-9, 1.0000001e-155)),
    ("Beta", "Beta", (1e-300, 1e-160, 1e-9, 1.0000001e-160)),
    ("Beta", "Beta", (1e-160, 1e-155, 2.0, 1.001e-155)),
    ("Beta", "Beta", (1e-300, 1e-155, 1e-160, 1.0000001e-155)),
    ("Beta", "Beta", (10.0, 1e-300, 1e200, 1.000000001e-300)),
    ("Beta", "Gamma", (1e60, 1e100, 1e60, 1e100)),
    ("Beta", "Gamma", (5.0, 1e100, 5.0, 1e100)),
    ("Beta", "Gamma", (1e100, 1e100, 1.0, 1.0)),
    ("Beta", "Gamma", (1e-300, 1.35235e-84, 1e-300, 3.01962e-260)),
    ("Beta", "Exponential", (1e10, 1e156, 1e-10)),
    ("Beta", "Exponential", (1e27, 1e300, 1e-10)),
    ("Binomial", "NegativeBinomial", (10.0, 1e-300, 2.5, 1e-300)),
    ("Binomial", "NegativeBinomial", (2.0, 6.88e-109, 40.0, 3.44e-110)),
    ("Binomial", "NegativeBinomial", (2.0, 2.19e-10, 7.0, 4.31e-20)),
    ("Bernoulli", "NegativeBinomial", (8.68e-157, 0.3, 8.68000001e-157)),
    ("InverseGaussian", "InverseGaussian", (2.53e-153, 6.17e155, 53.7, 6.17000000001e155)),
]


@pytest.mark.parametrize(("p", "q", "case"), FOUND)
def test_found_parameters(p, q, case):
    assert apart(float(evaluate(p, q, [case])[0]), true_value(p, q, case)) <= 1e-15


@pytest.mark.parametrize("case", [case for p, q, case in FOUND if (p, q) == ("Beta", "Beta")])
def test_shares_of_two_are_beta_variables(case):
    (a, b, c, d), exact = case, float(true_value("Beta", "Beta", case))
    assert float(kl_divergence(Beta(b, a), Beta(d, c))) == pytest.approx(exact, rel=1e-15)
    assert float(kl_divergence(Dirichlet([a, b]), Dirichlet([c, d]))) == pytest.approx(exact, rel=1e-15)
