"""Arithmetic of pairs, and logarithms of small moves, against mpmath."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from klnumba.formulas import logarithms, twofold
from tests.reference.linked import packaged

EXACT = {
    twofold.plus: lambda x, y: x + y,
    twofold.times: lambda x, y: x * y,
    twofold.over: lambda x, y: x / y,
}


def pairs(rng, count):
    """Numbers of all sizes, each with what is up to half its last digit."""
    high = np.exp(rng.uniform(-200.0, 200.0, count)) * rng.choice([-1.0, 1.0], count)
    return high, 0.5 * np.spacing(high) * rng.uniform(-1.0, 1.0, count)


@pytest.mark.parametrize("formula", EXACT, ids=lambda x: x.__name__)
def test_twice_the_digits(formula):
    rng, function = np.random.default_rng(8), packaged(formula)
    for a, a_low, b, b_low in zip(*pairs(rng, 400), *pairs(rng, 400), strict=True):
        high, low = function(a, a_low, b, b_low)
        with mp.workdps(60):
            exact = EXACT[formula](mpf(a) + mpf(a_low), mpf(b) + mpf(b_low))
            # at most 6.5e-32 of 60,000
            assert abs(mpf(high) + mpf(low) - exact) <= 8e-32 * abs(exact)
            assert abs(low) <= np.spacing(abs(high))


def test_sum_that_cancels():
    assert packaged(twofold.plus)(1.0, 1e-17, -1.0, 3e-20) == (1e-17 + 3e-20, 0.0)


def test_log_of_move():
    rng, function = np.random.default_rng(9), packaged(logarithms.log_of_move)
    for x, low in zip(*(np.abs(y) for y in pairs(rng, 300)), strict=True):
        for move in np.exp(rng.uniform(-30.0, 30.0, 2)):
            for d in (x * move, -x * min(move, 0.99)):
                high, rest = function(x, low, d)
                with mp.workdps(80):
                    exact = mp.log1p(mpf(d) / (mpf(x) + mpf(low)))
                    error = abs(mpf(high) + mpf(rest) - exact)
                    if abs(d) < x / 200.0:
                        assert error <= 1e-26 * abs(exact)  # at most 4.7e-27 of 12,000
                    else:
                        assert error <= 2e-29 * max(abs(exact), abs(mp.log(x)), 1)  # at most 8.2e-30


def test_no_move():
    assert packaged(logarithms.log_of_move)(3.0, 1e-17, 0.0) == (0.0, 0.0)
    assert math.isclose(packaged(logarithms.log_of_move)(1e-300, 0.0, 1.0)[0], 300 * math.log(10), rel_tol=1e-15)
