"""The entropy of the negative binomial distribution."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

import klnumba as kl
from klnumba import distributions as D


def by_sum(r, p):
    """With 40 digits."""
    with mp.workdps(40):
        r, p = mp.mpf(r), mp.mpf(p)
        mean, k, total = r * p / (1 - p), 0, mp.mpf(0)
        log_mass = r * mp.log(1 - p)
        while True:
            mass = mp.exp(log_mass)
            total -= mass * log_mass
            if k > mean and mass < mp.mpf(10) ** -32:
                return float(total)
            log_mass += mp.log((k + r) / (k + 1) * p)
            k += 1


@pytest.mark.parametrize(
    ("r", "p"),
    [
        (1e-3, 0.3), (0.5, 1e-10), (0.5, 0.3), (0.5, 0.95), (1.0, 0.5), (1.0, 1e-5), (3.0, 0.4), (7.5, 0.98),
        (99.0, 0.5), (99.9, 0.01), (100.0, 0.01), (100.0, 0.5), (100.0, 0.9), (250.0, 0.7), (1e6, 1e-6), (1e6, 1e-10),
        (1e15, 1e-15),
    ],
)  # fmt: skip
def test_against_a_sum(r, p):
    assert float(D.NegativeBinomial(r, p).entropy()) == pytest.approx(by_sum(r, p), rel=2e-14)


@pytest.mark.parametrize("r", [0.5, 3.0, 50.0, 99.0, 100.0, 1e4])
@pytest.mark.parametrize("a", [50.0, 300.0])
def test_many_successes_are_a_gamma_distribution(r, a):
    found = float(D.NegativeBinomial(r, logits=a).entropy())
    assert found == pytest.approx(float(D.Gamma(r, 1.0).entropy()) + a, rel=4e-13)


def test_ends_and_shapes():
    assert D.NegativeBinomial([1.0, 200.0], 0.0).entropy().tolist() == [0.0, 0.0]
    assert D.NegativeBinomial(3.0, logits=[-800.0, 0.0]).entropy().shape == (2,)
    geometric = D.Geometric([0.3, 0.9]).entropy()
    np.testing.assert_allclose(D.NegativeBinomial(1.0, [0.7, 0.1]).entropy(), geometric, rtol=1e-15)


def test_a_cross_entropy():
    p, q = D.NegativeBinomial(3.0, 0.5), D.NegativeBinomial(3.0, 0.25)
    ways = math.fsum(  # the mean of -log q
        math.exp(-float(kl.kl_divergence(D.Delta(k), p))) * float(kl.kl_divergence(D.Delta(k), q))
        for k in map(float, range(120))
    )
    assert kl.cross_entropy(p, q) == pytest.approx(ways, rel=1e-13)
