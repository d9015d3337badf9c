"""KL from exponential and half-normal distributions, for families with a mean or a mean square.

It is an excess of the ratio of these, and what is left where they agree, which is no less than zero.
"""

from __future__ import annotations

import math

from klnumba.distributions.beta import Beta, beta_entropy
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.half_normal import HalfNormal
from klnumba.distributions.inverse_gaussian import InverseGaussian, in_larger_unit
from klnumba.distributions.inverse_gaussian import scaled_entropy as scaled_entropy_of_wald
from klnumba.distributions.kumaraswamy import Kumaraswamy, log_moment, to_standard_uniform
from klnumba.distributions.lindley import Lindley, scaled_entropy
from klnumba.distributions.log_uniform import LogUniform, log_width
from klnumba.distributions.pareto import Pareto
from klnumba.distributions.registry import register_kl
from klnumba.distributions.uniform import Uniform, log_sinhc
from klnumba.distributions.weibull import least_to_gamma
from klnumba.formulas.divergences import log_ratio
from klnumba.formulas.elementary import exp, log, log1p, split_exponent, two_sum
from klnumba.formulas.kumaraswamy_cells import digamma_from_2
from klnumba.formulas.log_cells import phi
from klnumba.formulas.power_distances import FIRST, LAST, STEP
from klnumba.formulas.primitives import fma
from klnumba.formulas.ranges import excess_of_power, in_range, product
from klnumba.formulas.special import (
    excess_of_nearly,
    excess_of_products,
    exp_excess,
    log_gamma_bregman,
    log_of_products,
)

OF_HALF_LINE = 0.7257913526447274  # 1/2 + log(pi/2)/2


def to_half_normal(root: float, log_spread: float, scale: float) -> float:
    """From the root of the mean square, and its logarithm less the entropy."""
    return 0.5 * excess_of_products(root, root, scale, scale) + max(OF_HALF_LINE + log_spread, 0.0)


@register_kl(InverseGaussian, Exponential, compiled=True)
def inverse_gaussian_exponential(loc: float, concentration: float, rate: float) -> float:
    """The excess of the means' ratio, and what is left where they agree."""
    return excess_of_products(rate, loc, 1.0, 1.0) + (1.0 - scaled_entropy_of_wald(loc, concentration))


@register_kl(LogUniform, Exponential, compiled=True)
def log_uniform_exponential(low: float, high: float, rate: float) -> float:
    """The excess of the means' ratio, and 1 + log(sinh(x)/x) - log(2*x), x = log(high/low)/2."""
    width = log_width(low, high)
    return excess_of_products(rate, (high - low) / width, 1.0, 1.0) + (1.0 + (log_sinhc(0.5 * width) - log(width)))


def beyond_straight(u: float) -> float:
    """The mean of (1 - T)**2/(1 - u*(1 - T)), T exponential, for u up to 1/2."""
    total = 0.0
    t = FIRST
    while t <= LAST:
        small = exp(-t)
        v = exp(t - small)
        total += exp(-v) * ((1.0 - v) * (1.0 - v) / ((1.0 - u) + u * v)) * (v * (1.0 + small))
        t += STEP
    return total * STEP


@register_kl(Lindley, Exponential, compiled=True)
def lindley_exponential(rate_p: float, rate_q: float) -> float:
    """The excess of the means' ratio, and what is left where they agree, about 1/(2*rate_p**4)."""
    more, low = two_sum(1.0, rate_p)
    u = 1.0 / more
    if rate_p < 1.0:
        rest = 1.0 + log1p(u) - scaled_entropy(rate_p)
        return excess_of_products(rate_q, 1.0 + u, rate_p, 1.0) + rest
    d = rate_q - rate_p
    ratio = ((fma(d, more, rate_q) + d * low) / more) / rate_p
    means = phi(ratio) if abs(ratio) <= 0.5 else excess_of_products(rate_q, 1.0 + u, rate_p, 1.0)
    square = u * u
    return means + (square * square * beyond_straight(u) - phi(-square))


@register_kl(Kumaraswamy, Exponential, compiled=True)
def kumaraswamy_exponential(a: float, b: float, rate: float) -> float:
    """exp(v) - 1 - v, v the logarithm of the means' ratio, and what is left where they agree."""
    h = 1.0 / a
    d = (1.0 - a) / a
    if abs(d) > 0.5:
        log_mean = log_moment(a, b, 1.0)
        v = log(rate) + log_mean
        rest = to_standard_uniform(a, b)
        if v < -2.0:  # the logarithm of a mean that is small cancels
            return exp(v) + (rest - log(rate))
        return exp_excess(v) + max(1.0 + log_mean + rest, 0.0)
    curve = log_gamma_bregman(2.0 + b, 1.0 + b + h, d)
    apart = d * (digamma_from_2(b + 1.0))
    v = log_ratio(rate, 1.0 + b, (rate - 1.0) - b) + ((log_gamma_bregman(2.0, 1.0 + h, d) - curve) - apart)
    return exp_excess(v) + max(least_to_gamma(h, d, 1.0) + (phi(1.0 / b) - d / (1.0 + b) - curve), 0.0)


@register_kl(Uniform, HalfNormal, compiled=True)
def uniform_half_normal(low: float, high: float, scale: float) -> float:
    """Half the excess of the ratio of mean squares, and what is left where they agree; infinite below 0."""
    if low < 0.0:
        return math.inf
    ratio = low / high
    square = (1.0 + ratio * (1.0 + ratio)) / 3.0
    root = high * math.sqrt(square)
    return to_half_normal(root, 0.5 * log(square) - log((high - low) / high), scale)


@register_kl(Beta, HalfNormal, compiled=True)
def beta_half_normal(a: float, b: float, scale: float) -> float:
    """Half the excess of the ratio of mean squares, and what is left where they agree."""
    s = a + b
    above, low, k = product(a, a + 1.0)
    below, lost, n = product(s, s + 1.0)
    unit, gone, j = product(scale, scale)
    off = low / above - lost / below - gone / unit
    rest = 0.5 * log_of_products(a, a + 1.0, s, s + 1.0) - beta_entropy(a, b)
    return 0.5 * excess_of_nearly(above, 1.0, below, unit, off, k - (n + j)) + max(OF_HALF_LINE + rest, 0.0)


@register_kl(Kumaraswamy, HalfNormal, compiled=True)
def kumaraswamy_half_normal(a: float, b: float, scale: float) -> float:
    """Half the excess of the ratio of mean squares, and what is left where they agree."""
    half = 0.5 * log_moment(a, b, 2.0)
    rest = to_standard_uniform(a, b)
    v = half - log(scale)
    if v < -1.0:  # the logarithm of a mean square that is small cancels
        return (OF_HALF_LINE - 0.5) + (0.5 * exp(2.0 * v) + (log(scale) + rest))
    return 0.5 * excess_of_power(1.0, half, scale, 1.0) + max(OF_HALF_LINE + (half + rest), 0.0)


@register_kl(Lindley, HalfNormal, compiled=True)
def lindley_half_normal(rate: float, scale: float) -> float:
    """Half the excess of the ratio of mean squares, and what is left where they agree."""
    root = math.sqrt(2.0 + 4.0 / (1.0 + rate))
    return to_half_normal(root / rate, log(root) - scaled_entropy(rate), scale)


@register_kl(InverseGaussian, HalfNormal, compiled=True)
def inverse_gaussian_half_normal(loc: float, concentration: float, scale: float) -> float:
    """Half the excess of the ratio of mean squares, and what is left where they agree."""
    loc, concentration, _, scale = in_larger_unit(loc, concentration, 0.0, scale)
    both = concentration + loc
    square, low, k = product(loc, loc)
    unit, lost, n = product(scale, scale)
    above, j = split_exponent(both)
    below, i = split_exponent(concentration)
    rest = 0.5 * log_of_products(both, 1.0, concentration, 1.0) - scaled_entropy_of_wald(loc, concentration)
    squares = excess_of_nearly(square, above, unit, below, low / square - lost / unit, (k + j) - (n + i))
    return 0.5 * squares + max(OF_HALF_LINE + rest, 0.0)


@register_kl(LogUniform, HalfNormal, compiled=True)
def log_uniform_half_normal(low: float, high: float, scale: float) -> float:
    """Half the excess of the ratio of mean squares, and what is left where they agree."""
    width = log_width(low, high)
    ratio = low / high
    root = high * math.sqrt(0.5 * ((high - low) / high) * (1.0 + ratio) / width)
    return to_half_normal(root, 0.5 * log_sinhc(width) - log(width), scale)


@register_kl(Pareto, HalfNormal, compiled=True)
def pareto_half_normal(scale_p: float, alpha: float, scale_q: float) -> float:
    """Half the excess of the ratio of mean squares, and what is left where they agree; infinite up to alpha = 2."""
    if alpha <= 2.0:
        return math.inf
    _, scale_p, _, scale_q = in_range(0.0, scale_p, 0.0, scale_q)
    more = math.sqrt(alpha / (alpha - 2.0))
    return to_half_normal(scale_p * more, log(more) + (log(alpha) - 1.0 - 1.0 / alpha), scale_q)
