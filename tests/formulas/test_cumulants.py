"""The logarithm of the exponential moment of a Pareto variable, against mpmath's exponential integral."""

from __future__ import annotations

import pytest
from mpmath import mp, mpf

from klnumba.formulas.cumulants import log_pareto_moment


@pytest.mark.parametrize("alpha", [1.5000001, 1.6, 2.0, 3.7, 20.0, 300.0])
@pytest.mark.parametrize("z", [1e-12, 1e-5, 0.01, 0.4])
def test_a_moment_next_to_1_keeps_its_digits(alpha, z):
    """Largest relative error found: 8.3e-16; at z = 1e-12 a rounding of 1 would be one of 1e-4."""
    with mp.workdps(60):
        exact = mp.log(mpf(alpha) * mp.exp(mpf(z)) * mp.expint(mpf(alpha) + 1, mpf(z)))
    assert log_pareto_moment(alpha, z) == pytest.approx(float(exact), rel=2e-15, abs=0.0)


@pytest.mark.parametrize(("alpha", "z"), [(1.01, 1e-3), (1.3, 0.2), (1.5, 0.4), (3.0, 2.5), (2.5, 40.0)])
def test_other_moments(alpha, z):
    """To some roundings of 1, or of the logarithm."""
    with mp.workdps(60):
        exact = mp.log(mpf(alpha) * mp.exp(mpf(z)) * mp.expint(mpf(alpha) + 1, mpf(z)))
    assert log_pareto_moment(alpha, z) == pytest.approx(float(exact), rel=2e-15, abs=2e-15)
