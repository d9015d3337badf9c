"""Uniform distributions whose width, or distance from the other, is beyond the largest number."""

from __future__ import annotations

import mpmath as mp
import pytest

import klnumba as kl
from klnumba import distributions as D

U = (-1e308, 1e308)
LAST = 1.7976931348623157e308


def of_uniform(low, high, minus_log):
    """By quadrature of -log q over p, in parts."""
    width = high - low
    places = [low + width * mp.mpf(i) / 16 for i in range(17)]
    inner = sorted({*places, *(x for x in (mp.mpf(0),) if low < x < high)})
    return mp.quad(minus_log, inner) / width - mp.log(width)


def normal(loc, scale):
    return lambda x: ((x - loc) / scale) ** 2 / 2 + mp.log(scale) + mp.log(2 * mp.pi) / 2


def laplace(loc, scale):
    return lambda x: abs(x - loc) / scale + mp.log(2 * scale)


def cauchy(loc, scale):
    return lambda x: mp.log1p(((x - loc) / scale) ** 2) + mp.log(mp.pi * scale)


def student(df, loc, scale):
    size = mp.loggamma(df / 2) - mp.loggamma((df + 1) / 2) + mp.log(df * mp.pi) / 2 + mp.log(scale)
    return lambda x: (df + 1) / 2 * mp.log1p(((x - loc) / scale) ** 2 / df) + size


def gumbel(loc, scale):
    return lambda x: (x - loc) / scale + mp.exp(-(x - loc) / scale) + mp.log(scale)


def moyal(loc, scale):
    return lambda x: ((x - loc) / scale + mp.exp(-(x - loc) / scale)) / 2 + mp.log(scale) + mp.log(2 * mp.pi) / 2


@pytest.mark.part(8)
@pytest.mark.parametrize("interval", [U, (-1e308, 2e307), (1e307, LAST), (-3.0, 5.0)])
@pytest.mark.parametrize(
    ("family", "surprise", "parameters"),
    [
        (D.Normal, normal, (0.0, 1e308)),
        (D.Normal, normal, (-1e308, 1.7e308)),
        (D.Laplace, laplace, (0.0, 1e308)),
        (D.Laplace, laplace, (-1.7e308, 1e306)),
        (D.Cauchy, cauchy, (0.0, 1e308)),
        (D.Cauchy, cauchy, (1.7e308, 1e307)),
        (D.StudentT, student, (2.5, -1e308, 1e307)),
        (D.Gumbel, gumbel, (0.0, 1e308)),
        (D.Gumbel, gumbel, (-1e308, 1.5e308)),
        (D.Moyal, moyal, (0.0, 1e308)),
    ],
)
def test_against_an_integral(interval, family, surprise, parameters):
    with mp.workdps(30):
        true = float(of_uniform(*(mp.mpf(x) for x in interval), surprise(*(mp.mpf(x) for x in parameters))))
    assert kl.kl_divergence(D.Uniform(*interval), family(*parameters)) == pytest.approx(true, rel=1e-13)


@pytest.mark.parametrize("scale", [1e-300, 1e-310, 1.0])
def test_a_narrow_one_from_a_wide_one(scale):
    """E log(1 + (X/scale)**2) is 2*E log(X/scale) there."""
    with mp.workdps(30):
        true = float(2 * (mp.log(mp.mpf(1e308) / scale) - 1) + mp.log(mp.pi * scale) - mp.log(mp.mpf(2e307) * 10))
    assert kl.kl_divergence(D.Uniform(*U), D.Cauchy(0.0, scale)) == pytest.approx(true, rel=1e-13)
    assert kl.kl_divergence(D.Uniform(*U), D.Normal(0.0, scale)) == float("inf")
    assert kl.kl_divergence(D.Uniform(*U), D.Laplace(0.0, scale)) == pytest.approx(5e307 / scale, rel=1e-13)


def log_ratio_of_widths(p, q):
    with mp.workdps(30):
        return float(mp.log((mp.mpf(q[1]) - q[0]) / (mp.mpf(p[1]) - p[0])))


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (U, (-1.5e308, 1.5e308)), (U, (-1e308, 1.0000000000000002e308)), ((0.0, 1.0), U), ((0.0, 5e-324), U),
        ((-1e-310, 3e-310), U), ((1e307, 1e308), U), ((-LAST, LAST), (-LAST, LAST)), ((0.5, 2.0), (0.5, 2.5)),
    ],
)  # fmt: skip
def test_of_two_intervals(p, q):
    true = log_ratio_of_widths(p, q)
    assert kl.kl_divergence(D.Uniform(*p), D.Uniform(*q)) == pytest.approx(true, rel=4e-15, abs=0.0)
    if p != q:
        assert kl.kl_divergence(D.Uniform(*q), D.Uniform(*p)) == float("inf")


def test_from_0_to_1():
    width = log_ratio_of_widths((0.0, 1.0), U)
    for p in (D.Beta(1.0, 1.0), D.Kumaraswamy(1.0, 1.0), D.ContinuousBernoulli(0.5)):
        assert kl.kl_divergence(p, D.Uniform(*U)) == pytest.approx(width, rel=1e-15)
    assert float(D.Uniform(*U).entropy()) == pytest.approx(width, rel=1e-15)


@pytest.mark.parametrize(("low", "high"), [(1e308, LAST), (1.0, LAST), (1e-310, 1e308), (2.0, 3.0)])
def test_above_0(low, high):
    with mp.workdps(30):
        a, b = mp.mpf(low), mp.mpf(high)
        mean_log = (b * mp.log(b) - a * mp.log(a)) / (b - a) - 1
        pareto = float(-mp.log(b - a) - mp.log(2) - 2 * mp.log(mp.mpf(0.5 * low)) + 3 * mean_log)
        rate = mp.mpf(1e-308)
        gamma = float(-mp.log(b - a) - 2 * mp.log(rate) - mean_log + rate * (a + b) / 2)
    p = D.Uniform(low, high)
    assert kl.kl_divergence(p, D.Pareto(0.5 * low, 2.0)) == pytest.approx(pareto, rel=1e-13)
    assert kl.kl_divergence(p, D.Gamma(2.0, 1e-308)) == pytest.approx(gamma, rel=1e-13)


@pytest.mark.parametrize(("low", "high"), [(1e308, LAST), (1e300, LAST), (1e-200, 1e308), (2.0, 3.0)])
@pytest.mark.parametrize(("loc", "scale"), [(-1e308, 1e308), (3e307, 1e308), (2.5e307, 1e307)])
def test_of_a_logarithm(low, high, loc, scale):
    with mp.workdps(40):
        a, b, m, s = (mp.mpf(x) for x in (low, high, loc, scale))
        width = mp.log(b / a)
        entropy = mp.log(width) + mp.log(a * b) / 2
        mean, square = (b - a) / width, (b * b - a * a) / (2 * width)
        to_normal = (square - 2 * m * mean + m * m) / (2 * s * s) + mp.log(s) + mp.log(2 * mp.pi) / 2 - entropy
        inside = (m * mp.log(m / a) - m + a + m * mp.log(m / b) - m + b) / width if m > 0 else 0
        apart = inside if a < m < b else abs(mean - m)
        to_laplace = apart / s + mp.log(2 * s) - entropy
    p = D.LogUniform(low, high)
    assert kl.kl_divergence(p, D.Normal(loc, scale)) == pytest.approx(float(to_normal), rel=1e-13)
    assert kl.kl_divergence(p, D.Laplace(loc, scale)) == pytest.approx(float(to_laplace), rel=1e-13)
