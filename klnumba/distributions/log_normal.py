"""The log-normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE, REAL
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.gamma import Gamma
from klnumba.distributions.gumbel import gumbel_apart
from klnumba.distributions.laplace import SQRT_2_OVER_PI, Laplace, narrow_to_laplace, to_laplace
from klnumba.distributions.normal import normal_normal
from klnumba.distributions.registry import register_kl
from klnumba.formulas.bessel import NODES, WEIGHTS
from klnumba.formulas.elementary import exp, expm1, log, log1p, two_sum
from klnumba.formulas.exponents import plus_half_square
from klnumba.formulas.logarithms import log_less, log_ratio_beyond
from klnumba.formulas.ranges import MOST, TINY, product, times_exp_excess
from klnumba.formulas.special import (
    HALF_LOG_2PI,
    LARGE,
    STIRLING,
    excess_of_nearly,
    excess_of_products,
    log_of_products,
    stirling,
    stirling_slope,
    trigamma,
)

HALF_SQRT_2 = 0.7071067811865476
BEYOND = 40.0  # standard deviations, which no mass is beyond


def log_normal_entropy(loc: float, scale: float) -> float:
    """The differential entropy, in nats."""
    return loc + (0.5 + HALF_LOG_2PI + log(scale))


def log_normal_variance(loc: float, scale: float) -> float:
    """The square of the standard deviation, of which no factor leaves the range alone."""
    square = scale * scale
    if square > 1.0:
        deviation = exp(loc + square) * math.sqrt(-expm1(-square))
    else:
        more = expm1(square) / square if square > 1e-300 else 1.0
        deviation = exp(loc + 0.5 * square) * (scale * math.sqrt(more))
    return deviation * deviation


class LogNormal(Distribution):
    """The distribution of exp(X), X normal.

    Parameters
    ----------
    loc, scale : array_like
        Mean and standard deviation of X.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import LogNormal
    >>> float(kl.kl_divergence(LogNormal(1.0, 2.0), LogNormal(0.0, 2.0)))
    0.125
    """

    parameters = ("loc", "scale")
    loc = Parameter(REAL)
    scale = Parameter(POSITIVE)
    entropy_formula = staticmethod(log_normal_entropy)
    scipy_name = "lognorm"

    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, loc=loc, scale=scale)

    @property
    def support(self) -> Support:
        return Support(0.0, math.inf)

    @property
    def mean(self) -> Any:
        return self._full(np.exp(self.loc + 0.5 * np.square(self.scale)))

    @property
    def variance(self) -> Any:
        return self._of_formula(log_normal_variance)

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.scale,), 0.0, np.exp(self.loc)

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"loc": np.log(scale), "scale": shapes[0]}


register_kl(LogNormal, LogNormal, compiled=True)(normal_normal)


def to_gamma(v: float, low: float, scale: float, shape: float) -> float:
    """KL to a gamma distribution, v + low the logarithm of the means' ratio."""
    m, lost, k = product(shape, scale)
    variances = 0.5 * excess_of_nearly(m, scale, 1.0, 1.0, lost / m, k)
    return times_exp_excess(shape, v, low) + (variances + stirling(shape))


@register_kl(LogNormal, Gamma, compiled=True)
def log_normal_gamma(loc: float, scale: float, shape: float, rate: float) -> float:
    """exp(v) - 1 - v, v the logarithm of the means' ratio, times the shape, and what is left where they agree."""
    apart, low = log_ratio_beyond(rate, shape, -loc)
    return to_gamma(*plus_half_square(apart, low, scale), scale, shape)


@register_kl(LogNormal, Exponential, compiled=True)
def log_normal_exponential(loc: float, scale: float, rate: float) -> float:
    """That to the gamma distribution of shape 1."""
    return log_normal_gamma(loc, scale, 1.0, rate)


@register_kl(LogNormal, Laplace, compiled=True)
def log_normal_laplace(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The excess of E abs(X - loc_q)/scale_q, and what is left where that is 1."""
    unit = exp(min(max(plus_half_square(loc_p, 0.0, scale_p)[0], -MOST), MOST + 9.0))  # about the mean
    place, low = log_ratio_beyond(1.0, unit, -loc_p)
    v, rest = plus_half_square(place, low, scale_p)
    mean = exp(v)
    if mean == math.inf:
        return exp(v + log_of_products(unit, 1.0, scale_q, 1.0))
    mean += mean * rest
    off = loc_q / unit
    distance = mean - off
    if loc_q > 0.0:
        apart, lost = log_ratio_beyond(loc_q, 1.0, loc_p)
        d = (apart + lost) / scale_p
        if scale_p < 0.5 and (abs(d) < BEYOND or abs(d) * scale_p < 1.0):
            entropy = log_normal_entropy(-d * scale_p, 1.0)
            return narrow_to_laplace(narrow_distance(d, scale_p), loc_q, 1.0 / scale_p, scale_q, entropy, 0.0)
        distance = off * math.erf(HALF_SQRT_2 * d) - mean * math.erf(HALF_SQRT_2 * (d - scale_p))
    entropy = log_normal_entropy(place + low, scale_p)
    return to_laplace(distance, unit, scale_q, entropy, distance * unit if distance < math.inf else loc_q)


def narrow_distance(d: float, scale: float) -> float:
    """E abs(X - 1) of a log-normal variable of this scale below 1/2, of which log X is d scales below 0 on average.

    (1 - m)*erf(d/sqrt(2)) and m times the rise of erf from (d - scale)/sqrt(2) to there, m = E X.
    """
    off = expm1(scale * (0.5 * scale - d))
    rise = 0.0
    for i in range(12):
        x = min(max(d - scale * NODES[i], -BEYOND), BEYOND)
        rise += WEIGHTS[i] * exp(-0.5 * x * x)
    return (1.0 + off) * (SQRT_2_OVER_PI * scale * rise) - off * math.erf(HALF_SQRT_2 * d)


def negentropy_of_log(shape: float) -> float:
    """KL of the logarithm of a gamma variable to the normal distribution of its mean and variance, about 1/(12*shape).

    log(shape*trigamma(shape))/2 + shape*c'(shape) - c(shape).
    """
    if shape < LARGE:
        return 0.5 * log(shape * trigamma(shape)) + (shape * stirling_slope(shape) - stirling(shape))
    y = 1.0 / shape
    rest = 20.0 * STIRLING[9]
    for k in range(8, -1, -1):
        rest = rest * (y * y) + (2.0 * k + 2.0) * STIRLING[k]
    return 0.5 * log1p(trigamma_beyond(shape)) - y * rest


def trigamma_beyond(shape: float) -> float:
    """shape*trigamma(shape) - 1 for a shape from `LARGE` on, about 1/(2*shape)."""
    y = 1.0 / shape
    z = y * y
    tail = 380.0 * STIRLING[9]
    for k in range(8, -1, -1):
        tail = tail * z + (2.0 * k + 1.0) * (2.0 * k + 2.0) * STIRLING[k]
    return 0.5 * y + z * tail


def log_gamma_normal(shape: float, times: float, t: float, scale: float) -> float:
    """KL of so many times log G, G of a shape, from a normal distribution, t its mean less that of q, over `scale`."""
    if shape < TINY:  # where the variance of log G is shape**-2
        unit, _, k = product(shape, scale)
        variances = excess_of_nearly(times * times, 1.0, unit, unit, 0.0, -2 * k)
        return 0.5 * (variances + t * t) + ((shape * stirling_slope(shape) - stirling(shape)) - 0.5 * log(shape))
    if shape < LARGE:
        variances = excess_of_products(times * times, trigamma(shape), scale, scale)
    else:
        one_more, low = two_sum(1.0, trigamma_beyond(shape))
        below, lost, k = product(shape, scale)
        off = low / one_more - lost / below
        variances = excess_of_nearly(times * times, one_more, below, scale, off, -k)
    return 0.5 * (variances + t * t) + negentropy_of_log(shape)


@register_kl(Gamma, LogNormal, compiled=True)
def gamma_log_normal(shape: float, rate: float, loc: float, scale: float) -> float:
    """That of the logarithms: the variances' excess, the distance of the means, and what is left where both agree."""
    apart, low = log_ratio_beyond(shape, rate, loc)
    t = (apart + (low - (0.5 / shape - stirling_slope(shape)))) / scale
    return log_gamma_normal(shape, 1.0, t, scale)


@register_kl(Exponential, LogNormal, compiled=True)
def exponential_log_normal(rate: float, loc: float, scale: float) -> float:
    """That of minus the logarithms, Gumbel and normal."""
    return gumbel_apart(log_less(rate, 0.0, -loc), 1.0, scale)
