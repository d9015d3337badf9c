"""Means over the counts of a binomial distribution against sums with mpmath, and what the derivatives make of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from klnumba import distributions as D
from klnumba.distributions import count_means, kl_divergence_grad
from klnumba.duals.twofold import Twofold


def mean(draws, p, other, of):
    """Over so many draws; of many, over one count in so many, as exact for a smooth function."""
    deviation = mp.sqrt(draws * p * other)
    stride = int(deviation / 4) if draws * min(p, other) > 200 else 1
    middle = int(draws * p)
    reach = min(int(30 * deviation) + 60, draws) // stride + 1
    total = mass = mpf(0)
    for k in range(middle - reach * stride, middle + reach * stride + 1, stride):
        if 0 <= k <= draws:
            ways = mp.loggamma(draws + 1) - mp.loggamma(k + 1) - mp.loggamma(draws - k + 1)
            weight = mp.exp(ways) * p**k * other ** (draws - k)
            mass, total = mass + weight, total + weight * of(k)
    return total / mass


CASES = [
    (1, 0.3, 2.5),
    (7, 1e-9, 3.0),
    (7, 1e-200, 0.25),
    (40, 1.0 - 2.0**-40, 1e-3),
    (300, 0.5, 1e5),
    (1_000, 0.01, 1e9),
    (5_000, 0.97, 12.0),
    (10**8, 0.3, 2.5),
    (10**8, 1e-6, 1e8),
]


def assert_near(found, exact, bound):
    value = mpf(float(found.hi.item())) + mpf(float(found.lo.item()))
    assert abs(value - exact) <= bound * max(abs(exact), 1)


@pytest.mark.parametrize(("n", "p", "x"), CASES)
def test_against_sums(n, p, x):
    with mp.workdps(60):
        exact, rest = mpf(p), 1 - mpf(p)
        numbers = [Twofold([y]) for y in (n, p, 1.0 - p, x)]
        numbers[2] = Twofold([float(rest)], [float(rest - mpf(float(rest)))])
        more = Twofold([n + 3.0])

        # at most 1.9e-30
        assert_near(count_means.mean_log(*numbers[:3]), mean(n - 1, exact, rest, lambda k: mp.log(n - k)), 1e-29)
        found = count_means.mean_log_ratio(*numbers[:3], more, -1.0)
        assert_near(found, mean(n - 1, exact, rest, lambda k: mp.log(mpf(n - k) / (n + 3 - k))), 1e-29)
        found = count_means.mean_log_ratio(*numbers, 1.0)
        assert_near(found, mean(n - 1, exact, rest, lambda k: mp.log((n - k) / (x + mpf(k)))), 1e-29)
        found = count_means.mean_climb(*numbers)
        assert_near(found, mean(n, exact, rest, lambda k: mp.digamma(x + mpf(k)) - mp.digamma(x)), 1e-29)


def test_nothing_to_average():
    """No draws, no numbers, and what leaves no place for the sum."""
    n, p = Twofold([0.0, 3.0, math.nan, 3.0]), Twofold([0.5, math.nan, 0.5, 0.5])
    x = Twofold([2.0, 2.0, 2.0, math.nan])
    with np.errstate(all="ignore"):  # as where derivatives are taken
        for found in (count_means.mean_log_ratio(n, p, 1.0 - p, x, 1.0), count_means.mean_climb(n, p, 1.0 - p, x)):
            np.testing.assert_array_equal(found.hi[1:], 0.0)
        assert count_means.mean_log(n, p, 1.0 - p).hi[0] == 0.0


@pytest.mark.parametrize("n", [10.0, 11.0, 1e4])
def test_even_odds(n):
    """To a geometric distribution of next to no end the slope is 0 to all digits, not what rounding leaves."""
    _, gradient = kl_divergence_grad(D.Binomial(n, logits=0.0), D.Geometric(logits=-1000.0))
    assert gradient.p["logits"] == 0.0


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Binomial([5.0, 70.0, 3e4], 0.3), D.Binomial([6.0, 1e3, 3e5], 0.2)),
        (D.Binomial([5.0, 70.0, 3e4], logits=2.0), D.NegativeBinomial([0.5, 30.0, 2e3], logits=-1.0)),
        (D.Binomial([5.0, 70.0, 3e4], 0.3), D.Poisson([1.0, 20.0, 1e4])),
    ],
    ids=["Binomial", "NegativeBinomial", "Poisson"],
)
def test_a_cell_is_what_it_is_alone(p, q):
    """Also past the end of a block."""
    many = 301
    wide = [x._rebuilt({name: np.resize(y, many) for name, y in x._given.items()}) for x in (p, q)]
    _, gradient = kl_divergence_grad(p, q)
    _, repeated = kl_divergence_grad(*wide)
    for few, all_of_them in zip(gradient, repeated, strict=True):
        for name in few:
            np.testing.assert_array_equal(all_of_them[name], np.resize(few[name], many))


def test_many_draws():
    """1e12 of them: the slope by p's probability from a Poisson distribution of the same mean is near p/(1 - p)/2."""
    _, gradient = kl_divergence_grad(D.Binomial(1e12, 0.25), D.Poisson(0.25e12))
    assert gradient.p["probs"] == pytest.approx(0.25 / 0.75 / 2.0, rel=1e-11)
    assert gradient.q["rate"] == 0.0
