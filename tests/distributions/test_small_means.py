"""Variables between 0 and 1 that lie close to one end, against mpmath: where E log X or a place is close to 0 or 1."""

import mpmath as mp
import numpy as np
import pytest

import klnumba as kl
from klnumba.distributions import Beta, Gamma, Kumaraswamy, Laplace

BOUND = 5e-14


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(60):
        yield


def beta_negentropy(a, b):
    log_1, log_0 = (mp.digamma(x) - mp.digamma(a + b) for x in (a, b))
    return (a - 1) * log_1 + (b - 1) * log_0 - (mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b))


def beta_gamma(*numbers):
    a, b, shape, rate = map(mp.mpf, numbers)
    mean_log = mp.digamma(a) - mp.digamma(a + b)
    of_q = shape * mp.log(rate) - mp.loggamma(shape) + (shape - 1) * mean_log - rate * a / (a + b)
    return beta_negentropy(a, b) - of_q


def beta_laplace(*numbers):
    a, b, loc, scale = map(mp.mpf, numbers)
    mean = a / (a + b)
    below = loc * mp.betainc(a, b, 0, loc, regularized=True) - mean * mp.betainc(a + 1, b, 0, loc, regularized=True)
    return beta_negentropy(a, b) + mp.log(2 * scale) + (mean - loc + 2 * below) / scale


def kumaraswamy_laplace(*numbers):
    a, b, loc, scale = map(mp.mpf, numbers)
    harmonic = mp.digamma(b + 1) + mp.euler
    negentropy = mp.log(a * b) - (a - 1) / a * harmonic - (b - 1) / b
    places = [0, *(loc * mp.mpf(10) ** -k for k in range(30, 0, -2)), loc]
    below = mp.quad(lambda x: -mp.expm1(b * mp.log1p(-(x**a))), places)
    return negentropy + mp.log(2 * scale) + (b * mp.beta(1 + 1 / a, b) - loc + 2 * below) / scale


def check_value(truth, p, q, numbers, bound=BOUND):
    value = kl.kl_divergence(p(*numbers[:2]), q(*numbers[2:]))
    assert float(abs(value / truth(*numbers) - 1)) <= bound, (numbers, value)


@pytest.mark.parametrize(
    "numbers",
    [
        (1.0, 1e-3, 1e12, 1e12),
        (0.1, 1e-7, 1e12, 1e12),
        (1e-5, 1e-12, 1e13, 1e13),
        (1e-16, 1e-32, 2e40, 1e40),
        (1.2837265408245532e-16, 1.1840319002083671e-32, 2.0586515320679232e40, 1.1752200886772056e40),
        (1.3e9, 1.1e-9, 1.7e15, 0.9e12),
    ],
)
def test_beta_gamma_of_a_mean_close_to_one(numbers):
    check_value(beta_gamma, Beta, Gamma, numbers)


def test_beta_gamma_over_decades():
    """On both sides of where the slopes are taken together."""
    a, b, shape, rate = np.stack(
        np.meshgrid(1.3 * 10.0 ** np.arange(-6, 4, 2), [0.9, 1.1], 1.7 * 10.0 ** np.arange(-2, 13, 2), [0.01, 1.0])
    ).reshape(4, -1)
    b *= a / 16
    rate *= shape
    found = kl.kl_divergence(Beta(a, b), Gamma(shape, rate))
    truth = [beta_gamma(*numbers) for numbers in zip(a, b, shape, rate, strict=True)]
    errors = [float(abs(value / right - 1)) for value, right in zip(found, truth, strict=True)]
    assert max(errors) <= BOUND


@pytest.mark.parametrize(
    "numbers",
    [
        (1.5, 1e24, 1e-22, 1.0),
        (1.5, 1e15, 3e-15, 1e-15),
        (3.0, 1e9, 5e-9, 1e-8),
        (2.0, 1e20, 3e-20, 1e-20),
        (40.0, 60.0, 0.3, 0.1),
        (5e3, 2.0, 0.9999, 1e-3),
        (1e3, 1e3, 0.5 + 2.0**-50, 0.05),
    ],
)
def test_beta_laplace_of_a_place_close_to_an_end(numbers):
    check_value(beta_laplace, Beta, Laplace, numbers)


@pytest.mark.parametrize(
    "numbers",
    [
        (1.0, 1e6, 1.3e-6, 1e-6),
        (1.0, 1e10, 1.3e-10, 1e-10),
        (0.5, 1e8, 4.8045301391820145e-17, 4.8045301391820145e-17),
        (1.0, 1e17, 1.3e-17, 1e-17),
        (0.01, 1e16, 1e-30, 1.0),
        (2.0, 3.0, 0.4999999, 0.1),
        (2.0, 3.0, 0.5000001, 0.1),
    ],
)
def test_kumaraswamy_laplace_of_a_place_close_to_zero(numbers):
    check_value(kumaraswamy_laplace, Kumaraswamy, Laplace, numbers)
