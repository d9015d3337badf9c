"""Beta with Gumbel and Moyal where concentrations are so large that no series of the exponential moment ends in time.

There the truth is an integral.
"""

from __future__ import annotations

import pytest
from mpmath import mp, mpf

import klnumba as kl
from klnumba.distributions import Beta, Gumbel, Moyal
from tests.reference.further_distributions import h_beta, log_beta_moment

CASES = [
    # z = 1/scale about a + b, where E exp(z*(1 - X)) of a gamma variable, which 1 - X all but is, has its pole
    (1e12, 3.0, 1.0, 1.1e-12),
    (1e12, 3.0, 1.0, 1e-12),
    (1e20, 2.0, 1.0, 1e-20),
    (1e6, 2.0, 1.0, 1.000001e-6),
    (5.615199952020104e27, 16.089055411474806, 1.0, 1.8e-28),
    # X nearly normal
    (1e12, 1e12, 0.5, 1e-6),
    (1e30, 1e30, 0.5, 3e-16),
    (3.5112272492686725e22, 496686714809032.56, 0.9999999858543274, 1.6570382167962916e-15),
    # nearly a gamma variable, and of nearly q's shape
    (2.3242506636043427, 154429448289230.34, 1.0432219344855938e-14, 6.475363551313556e-15),
    (562.5877473685491, 2.016447909073715e20, 2.7270047887179783e-18, 1.0653622698176372e-19),
    (0.01, 1e15, 1e-15, 1e-15),
]


def truths(a, b, loc, scale):
    """KL to the Gumbel and the Moyal distribution of these parameters."""
    moment = mp.exp(log_beta_moment(a, b, 1 / scale) + (loc - 1) / scale)
    mean = (a / (a + b) - loc) / scale
    known = mp.log(scale) - h_beta(a, b)
    return known + mean + moment, known + (mean + moment + mp.log(2 * mp.pi)) / 2


@pytest.mark.part(4)
@pytest.mark.parametrize("case", CASES)
def test_large_concentrations(case):
    with mp.workdps(130):
        exact = truths(*map(mpf, case))
    for family, expected in zip((Gumbel, Moyal), exact, strict=True):
        found = kl.kl_divergence(Beta(*case[:2]), family(*case[2:]))
        assert float(found) == pytest.approx(float(expected), rel=1e-13)  # 5.1e-14 was the largest error
