"""Means and variances, where powers leave the range, or the spread is small or large against the mean."""

from __future__ import annotations

import warnings

import mpmath as mp
import numpy as np
import pytest

from klnumba import distributions as D


def of_log_uniform(low, high):
    width = mp.log(high / low)
    return (high - low) / width, (high**2 - low**2) / (2 * width) - ((high - low) / width) ** 2


def of_weibull(scale, shape):
    first, second = (mp.gamma(1 + k / shape) for k in (1, 2))
    return scale * first, scale**2 * (second - first**2)


def of_kumaraswamy(a, b):
    first, second = (b * mp.beta(1 + k / a, b) for k in (1, 2))
    return first, second - first**2


def of_beta(a, b):
    return a / (a + b), a * b / (a + b) ** 2 / (a + b + 1)


def of_log_normal(loc, scale):
    return mp.exp(loc + scale**2 / 2), mp.expm1(scale**2) * mp.exp(2 * loc + scale**2)


def of_gamma(shape, rate):
    return shape / rate, shape / rate**2


def of_inverse_gamma(shape, rate):
    return rate / (shape - 1), (rate / (shape - 1)) ** 2 / (shape - 2)


def of_pareto(scale, alpha):
    return scale * alpha / (alpha - 1), (scale / (alpha - 1)) ** 2 * alpha / (alpha - 2)


def of_inverse_gaussian(loc, shape):
    return loc, loc**3 / shape


CASES = [
    (D.LogUniform, of_log_uniform, (1e-300, 1e300)),
    (D.LogUniform, of_log_uniform, (1.0, 1.0 + 1e-10)),
    (D.LogUniform, of_log_uniform, (1.0, 10.0)),
    (D.LogUniform, of_log_uniform, (1e-5, 1e140)),
    (D.Weibull, of_weibull, (1.0, 1e8)),
    (D.Weibull, of_weibull, (2.0, 1.5)),
    (D.Weibull, of_weibull, (1.0, 1e-3)),
    (D.Weibull, of_weibull, (1e-300, 0.007)),
    (D.Weibull, of_weibull, (1e-250, 0.009)),
    (D.Weibull, of_weibull, (1e150, 1e10)),
    (D.Kumaraswamy, of_kumaraswamy, (1e8, 2.0)),
    (D.Kumaraswamy, of_kumaraswamy, (3.0, 4.0)),
    (D.Kumaraswamy, of_kumaraswamy, (0.2, 30.0)),
    (D.Kumaraswamy, of_kumaraswamy, (0.01, 1e-17)),
    (D.Kumaraswamy, of_kumaraswamy, (0.5, 1e-15)),
    (D.Kumaraswamy, of_kumaraswamy, (3.0, 1e-13)),
    (D.Kumaraswamy, of_kumaraswamy, (1e-3, 50.0)),
    (D.Beta, of_beta, (1e308, 1e308)),
    (D.Beta, of_beta, (1e300, 1e-5)),
    (D.Beta, of_beta, (1e-310, 1e-310)),
    (D.Beta, of_beta, (2.0, 3.0)),
    (D.LogNormal, of_log_normal, (400.0, 1e-200)),
    (D.LogNormal, of_log_normal, (-800.0, 30.0)),
    (D.LogNormal, of_log_normal, (800.0, 1.0)),
    (D.LogNormal, of_log_normal, (1.0, 0.5)),
    (D.Gamma, of_gamma, (1e-300, 1e-200)),
    (D.InverseGamma, of_inverse_gamma, (1e100, 1e300)),
    (D.Pareto, of_pareto, (1e300, 1e100)),
    (D.Pareto, of_pareto, (1e308, 1e308)),
    (D.InverseGaussian, of_inverse_gaussian, (1e200, 1e300)),
    (D.InverseGaussian, of_inverse_gaussian, (1e-200, 1e-300)),
]


@pytest.mark.parametrize(("family", "truth", "parameters"), CASES)
def test_against_mpmath(family, truth, parameters):
    with mp.workdps(700):
        mean, variance = (float(x) for x in truth(*(mp.mpf(x) for x in parameters)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = family(*parameters)
        assert float(one.mean) == pytest.approx(mean, rel=2e-13, abs=1e-322)
        assert float(one.variance) == pytest.approx(variance, rel=4e-13, abs=1e-322)


EXTREMES = [1e-307, 1e-200, 0.3, 2.5, 1e200, 1.5e308]


def families():
    return sorted(
        (
            x
            for x in vars(D).values()
            if isinstance(x, type)
            and issubclass(x, D.Distribution)
            and x.parameters
            and not any(getattr(getattr(x, name), "event_dims", 0) for name in x.parameters)
        ),
        key=lambda x: x.__name__,
    )


@pytest.mark.parametrize("family", families(), ids=lambda x: x.__name__)
def test_no_warnings(family):
    """Nor NaN, where there is a variance."""
    grid = np.meshgrid(*[EXTREMES] * len(family.parameters))
    flat = [x.reshape(-1) for x in grid]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for numbers in zip(*flat, strict=True):
            for dtype in (np.float64, np.float32):
                with np.errstate(all="ignore"):
                    given = [dtype(x) for x in numbers]
                try:
                    one = family(*given)
                except ValueError:
                    continue
                moments = np.stack([one.mean, one.variance])
                if family not in (D.Cauchy, D.HalfCauchy, D.NormalGamma, D.StudentT):
                    assert not np.isnan(moments).any(), one
                assert not np.any(moments[1] < 0.0), one
