"""The gamma function's relatives: error, limits, recorded table, and where the constants come from."""

from __future__ import annotations

import inspect
import json
import math

import numpy as np
import pytest
from mpmath import mp, mpf

from klnumba.distributions import beta, continuous_bernoulli
from klnumba.formulas import bessel, bessel_orders, integrals, logarithms, quick, ranges, special
from tests.reference import coefficients
from tests.reference.linked import packaged
from tests.reference.special_errors import (
    OF_AN_ORDER,
    ONE_NUMBER,
    QUICK,
    REMAINDERS,
    REMAINDERS_OF_AN_ORDER,
    TABLE,
    worst,
)

# In units of the last place, of which none may have more than 4, and relative.
LIMITS = {
    "log_gamma": 4.0,
    "digamma": 4.0,
    "trigamma": 4.0,
    "stirling": 3.0,
    "stirling_slope": 4.0,
    "bessel_ratio": 4.0,
    "bessel_gap": 4.0,
    "bessel_ratio_slope": 4.0,
    "scaled_exponential_integral": 4.0,
    "log_gamma_bregman": 1.5e-15,
    "digamma_bregman": 2e-15,
    "stirling_bregman": 1.5e-14,
    "quick_log_gamma_bregman": 2.5e-15,
    "quick_beyond_means": 1.5e-14,
    "log_bessel_bregman": 4e-14,
    "ratio_of_orders": 4.0,
    "gap_of_orders": 4.0,
    "slope_of_orders": 4.0,
    "log_bregman": 4e-14,
}


@pytest.mark.parametrize("name", LIMITS)
def test_error_against_mpmath(name):
    error, at = worst(name, np.random.default_rng(1), 1_000)
    assert error <= LIMITS[name], at


@pytest.mark.parametrize("name", LIMITS)
def test_recorded_error_is_within_the_limit(name):
    (row,) = [r for r in json.loads(TABLE.read_text())["errors"] if r["function"] == name]
    assert float(row["largest_error"].split()[0]) <= LIMITS[name]


def test_every_function_is_measured():
    assert set(LIMITS) == {*ONE_NUMBER, *REMAINDERS, *QUICK, *OF_AN_ORDER, *REMAINDERS_OF_AN_ORDER}


@pytest.mark.parametrize(("name", "root"), [("log_gamma", 1.0), ("log_gamma", 2.0), ("digamma", 1.4616321449683623)])
def test_near_a_root_the_error_is_of_the_order_of_the_terms(name, root):
    function = packaged(getattr(special, name))
    truth, _ = ONE_NUMBER[name]
    for x in root + np.concatenate([np.linspace(-0.4, 0.4, 41), 10.0 ** -np.arange(1, 15)]):
        with mp.workdps(50):
            assert abs(mpf(float(function(x))) - truth(mpf(float(x)))) < 6e-16


@pytest.mark.parametrize("delta", [0.9, 1e-3, 1e-9, 1e-15])
def test_excess_of_products(delta):
    function = packaged(special.excess_of_products)
    rng = np.random.default_rng(2)
    for _ in range(300):
        a, b, c = np.exp(rng.uniform(-200, 200, 3))
        d = a / c * b * (1 + delta * rng.uniform(-1, 1))
        if 1e-300 < d < 1e300:
            with mp.workdps(60):
                ratio = mpf(a) * mpf(b) / (mpf(c) * mpf(d))
                exact = ratio - 1 - mp.log(ratio)
                value = mpf(float(function(a, b, c, d)))
                assert value == 0 if exact == 0 else abs(value - exact) <= 2e-15 * exact


@pytest.mark.parametrize(
    ("numbers", "value"),
    [
        ((1.0, 1.0, 1.0, 1.0), 0.0),
        ((1e300, 1e300, 1.0, 1.0), math.inf),
        ((1e300, 1.0, 1e300, 1.0), 0.0),
        ((5e-324, 1.0, 5e-324, 1.0), 0.0),
        ((1e-300, 1e-300, 1.0, 1.0), 600 * math.log(10) - 1),
    ],
)
def test_excess_of_products_at_the_ends(numbers, value):
    assert float(packaged(special.excess_of_products)(*numbers)) == pytest.approx(value, rel=1e-15, abs=0.0)


@pytest.mark.parametrize("v", [-math.inf, -1e300, -800.0, -1.0, -1e-9, 0.0, 1e-9, 1.0, 700.0, 1e300, math.inf])
def test_exp_excess(v):
    value = float(packaged(special.exp_excess)(v))
    if v > 1000 or v == -math.inf:
        assert value == math.inf
    else:
        with mp.workdps(60):
            assert value == pytest.approx(float(mp.expm1(v) - mpf(v)), rel=1e-15, abs=0.0)


def test_log_twofold():
    function = packaged(logarithms.log_twofold)
    rng = np.random.default_rng(4)
    for x in [*np.exp(rng.uniform(-600, 600, 300)), *(1.0 + rng.uniform(-0.3, 0.4, 300)), 1.0, 1e-310]:
        high, low = function(x)
        with mp.workdps(60):
            exact = mp.log(mpf(float(x)))
            # at most 4.4e-32 of 40,000
            assert abs(mpf(float(high)) + mpf(float(low)) - exact) <= 1e-31 * max(1, abs(exact))
            assert abs(float(low)) <= np.spacing(abs(float(high)))


@pytest.mark.parametrize(
    ("numbers", "value"),
    [
        ((3.0, 2.0, 5.0, 1.0, 2.0, 0.25), 2.0),
        ((1e300, 1e300, 1e300, 1e300, 1e200, 1e200), 0.0),
        ((1e300, 1e300, -1e300, 1e300, 1e300, 1e290), 2e10),
        ((1e-300, 1e-300, 0.0, 1.0, 1e-300, 1e-290), 1e-10),
        ((1.0, 1.0, 1e300, 1e300, 1.0, 1.0), -math.inf),
        ((1e-300, 1e-200, 1e300, 1.0, 1e300, 1.0), -1.0),
    ],
)
def test_difference_over(numbers, value):
    assert float(packaged(ranges.difference_over)(*numbers)) == pytest.approx(value, rel=1e-15, abs=0.0)


@pytest.mark.parametrize(
    ("numbers", "value"),
    [
        ((1e-10, 1e300, 1e10, 1.0, 1.0, 0.0, 0), 1e300),
        ((1e-300, 1e300, 1e300, 1e-300, 1.0, 0.0, -1000), 1e300 * (1e300 * 2.0**-1000)),
        ((2.0, 3.0, 1.0, 1.0, 1.0, 0.0, 0), 2.0 * (2.0 - math.log(3.0))),
        ((5.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0), 0.0),
    ],
)
def test_times_excess(numbers, value):
    assert float(packaged(ranges.times_excess)(*numbers)) == pytest.approx(value, rel=1e-14, abs=0.0)


@pytest.mark.parametrize(
    ("a", "v", "low"), [(1e-10, 712.0, 0.0), (3.0, 690.0, 1e-14), (2.0, -1e300, 0.0), (1.0, 1e9, 0.0)]
)
def test_times_exp_excess(a, v, low):
    value = float(packaged(ranges.times_exp_excess)(a, v, low))
    with mp.workdps(400):
        w = mpf(v) + mpf(low)
        exact = mpf(a) * (mp.expm1(w) - w) if v < 1000 else mpf("inf")
        assert value == pytest.approx(float(exact), rel=2e-15, abs=0.0)


def test_the_text_runs_uncompiled():
    """As plain Python, though without the compiler's fused operations."""
    for name in ("log_gamma", "digamma", "trigamma", "stirling", "stirling_slope"):
        for x in (0.01, 0.7, 3.3, 50.0):
            plain, compiled = getattr(special, name)(x), packaged(getattr(special, name))(x)
            assert float(plain) == pytest.approx(float(compiled), rel=3e-15)


def test_formulas_call_no_library():
    text = "".join(map(inspect.getsource, (special, bessel, bessel_orders, integrals)))
    for name in ("math.lgamma", "math.log", "math.exp", "np.log", "np.exp", "scipy"):
        assert name not in text


def test_constants_are_those_of_the_generator():
    with mp.workdps(50):
        assert list(special.STIRLING) == [float(b) for b in coefficients.stirling(len(special.STIRLING))]
        assert list(quick.SERIES) == [float(c) for c in coefficients.stirling_from(quick.FROM, len(quick.SERIES))]
        made, error = coefficients.smallest(coefficients.TARGETS["atanh_wide_f64"])
        assert list(special.WIDE) == [float(c) for c in made]
        assert error <= coefficients.TARGETS["atanh_wide_f64"].tolerance
        debye = [c for row in coefficients.debye(bessel_orders.TERMS) for c in row]
        assert list(bessel_orders.DEBYE) == [float(c) for c in debye]
        assert list(bessel.HANKEL) == [float(h) for h in coefficients.hankel(len(bessel.HANKEL))]
        assert list(continuous_bernoulli.SLOPE) == [float(b) for b in coefficients.mean_slope(15)]
        for module in (beta, bessel):
            nodes, weights = zip(*coefficients.gauss_legendre(len(module.NODES)), strict=True)
            np.testing.assert_allclose(module.NODES, [float(x) for x in nodes], rtol=4e-16)
            np.testing.assert_allclose(module.WEIGHTS, [float(x) for x in weights], rtol=4e-16)
        for j, (high, low) in enumerate(zip(logarithms.LOGS, logarithms.LOGS_LOW, strict=True), logarithms.FIRST):
            exact = mp.log(mpf(j) / 128)
            assert (high, low) == (float(exact), float(exact - mpf(float(exact))))
        for value, exact in (
            (special.LN2, mp.log(2)),
            (special.HALF_LOG_2PI, mp.log(2 * mp.pi) / 2),
            (special.EULER, mp.euler),
            (special.E, mp.e),
            (special.E_LOW, mp.e - mpf(special.E)),
        ):
            assert value == float(exact)
