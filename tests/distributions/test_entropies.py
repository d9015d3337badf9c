"""The entropies of counts."""

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
    assert float(D.NegativeBinomial(r, p).entropy()) == pytest.approx(by_sum(r, p), rel=2e-14, abs=0.0)


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


def of_masses(start, log_mass, ratio, last):
    """From a count on which there is much, both ways, with 40 digits."""
    total = mp.mpf(0)
    for way in (1, -1):
        k, log_now = start, log_mass
        while True:
            if way > 0 or k != start:
                total -= mp.exp(log_now) * log_now
            if log_now < -90 or (k == last if way > 0 else k == 0):
                break
            log_now += mp.log(ratio(k)) if way > 0 else -mp.log(ratio(k - 1))
            k += way
    return float(total)


def of_binomial(n, p):
    """A sum over the masses, each from that next to it."""
    with mp.workdps(40):
        p, other = mp.mpf(p), 1 - mp.mpf(p)
        start = int(mp.floor(n * p))
        ways = mp.loggamma(n + 1) - mp.loggamma(start + 1) - mp.loggamma(n - start + 1)
        log_mass = ways + start * mp.log(p) + (n - start) * mp.log(other)
        return of_masses(start, log_mass, lambda k: (n - k) * p / ((k + 1) * other), n)


@pytest.mark.parametrize(
    ("n", "p"),
    [
        (1, 0.5), (1, 1e-10), (2, 0.3), (30, 0.99), (400, 0.5), (401, 0.5), (1000, 0.2), (1000, 0.201), (10_000, 0.5),
        (10**15, 1e-15), (10**15, 2e-13), (10**6, 1e-3), (10**6, 0.75), (10**13, 1e-25),
    ],
)  # fmt: skip
def test_draws_against_a_sum(n, p):
    true = of_binomial(n, p)
    assert float(D.Binomial(n, p).entropy()) == pytest.approx(true, rel=4e-15, abs=0.0)
    assert float(D.Binomial(n, logits=math.log(p) - math.log1p(-p)).entropy()) == pytest.approx(
        true, rel=2e-14, abs=0.0
    )
    if p < 0.5:
        assert float(D.Multinomial(n, [1.0 - p, p]).entropy()) == pytest.approx(true, rel=4e-15, abs=0.0)


@pytest.mark.parametrize("n", [1e7, 1e12, 1e15, 4e15, 1e50, 1e300])
@pytest.mark.parametrize("p", [0.5, 0.25, 1.0 / 1024.0])
def test_many_draws_are_normal(n, p):
    """The next terms are below 1/(3*n*p)."""
    with mp.workdps(40):
        true = float(mp.log(2 * mp.pi * mp.e * mp.mpf(n) * p * (1 - p)) / 2)
    rough = 1.0 / (3.0 * n * p)
    if n < 2.0**53:
        assert float(D.Binomial(n, p).entropy()) == pytest.approx(true, rel=4e-15, abs=rough)
        assert float(D.Multinomial(n, [p, 1.0 - p]).entropy()) == pytest.approx(true, rel=4e-15, abs=rough)
    many = float(D.NegativeBinomial(n, p).entropy())
    assert many == pytest.approx(true - 1.5 * math.log1p(-p), rel=1e-14, abs=rough)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("probs", [[0.2, 0.3, 0.5], [0.25] * 4, [1e-9, 1e-3, 0.998999999], [0.0, 0.4, 0.6]])
def test_categories_against_a_sum(n, probs):
    with mp.workdps(40):
        weights = [mp.mpf(p) for p in probs]
        weights = [w / sum(weights) for w in weights]
        total = mp.mpf(0)
        for counts in np.ndindex(*[n + 1] * len(probs)):
            if sum(counts) == n:
                mass = mp.factorial(n)
                for x, w in zip(counts, weights, strict=True):
                    mass *= w**x / mp.factorial(x)
                total -= mass * mp.log(mass) if mass else 0
    assert float(D.Multinomial(n, probs).entropy()) == pytest.approx(float(total), rel=2e-15, abs=0.0)


def test_many_draws_of_several_categories():
    """Of a normal distribution in one dimension less, to 1/n."""
    n, probs = 1e15, np.array([0.1, 0.2, 0.3, 0.4])
    true = 1.5 * math.log(2.0 * math.pi * math.e * n) + 0.5 * np.log(probs).sum()
    assert float(D.Multinomial(n, probs).entropy()) == pytest.approx(true, rel=1e-15)
    assert D.Multinomial([0, 3], [0.5, 0.5]).entropy().tolist() == [0.0, pytest.approx(1.2554823251787535, rel=4e-16)]


@pytest.mark.parametrize("rate", [1e-300, 1e-10, 0.3, 1.0, 199.0, 201.0, 3000.0, 1e4, 12345.0])
def test_a_rate_against_a_sum(rate):
    with mp.workdps(40):
        rate, start = mp.mpf(rate), int(rate)
        log_mass = start * mp.log(rate) - rate - mp.loggamma(start + 1)
        true = of_masses(start, log_mass, lambda k: rate / (k + 1), math.inf)
    rounding = 4e-15 + 1e-16 * abs(math.log(rate))  # of the logarithm in an exponent
    assert float(D.Poisson(float(rate)).entropy()) == pytest.approx(true, rel=rounding, abs=0.0)


@pytest.mark.parametrize("a", [-720.0, -40.0, -1.0, 0.0, 3.0, 40.0, 600.0, 800.0, 1e5])
def test_from_log_odds(a):
    with mp.workdps(400):
        p, other = 1 / (1 + mp.exp(-mp.mpf(a))), 1 / (1 + mp.exp(mp.mpf(a)))
        one = float(-p * mp.log(p) - other * mp.log(other))
        waiting = float(-mp.log(p) - other / p * mp.log(other))
    assert float(D.Bernoulli(logits=a).entropy()) == pytest.approx(one, rel=4e-15, abs=1e-320)
    assert float(D.Binomial(1, logits=a).entropy()) == pytest.approx(one, rel=4e-15, abs=1e-320)
    assert float(D.Geometric(logits=a).entropy()) == pytest.approx(waiting, rel=4e-15, abs=1e-320)
    assert float(D.NegativeBinomial(1.0, logits=-a).entropy()) == pytest.approx(waiting, rel=4e-15, abs=1e-320)
    gamma = float(D.Gamma(300.0, 1.0).entropy())
    if a >= 40.0:
        assert float(D.NegativeBinomial(300.0, logits=a).entropy()) == pytest.approx(gamma + a, rel=4e-15, abs=0.0)


def test_success_that_is_next_to_nothing():
    assert float(D.Geometric(5e-324).entropy()) == pytest.approx(1.0 - math.log(5e-324), rel=1e-15)
