"""KL from a normal distribution, for families with a mean and a variance.

It is half the excess of the ratio of variances, half the square of the distance of the means over q's standard
deviation, and what is left where both agree: KL from the normal distribution of the same mean and variance, which is
log(2*pi*e*variance)/2 less the entropy. Where that goes to zero, parts of first order are left out of it by hand.
"""

from __future__ import annotations

import math

from klnumba.distributions.chi import Chi, log_mean
from klnumba.distributions.continuous_bernoulli import slope
from klnumba.distributions.gamma_powers import phi_beyond_square
from klnumba.distributions.half_normal import SQRT_2_OVER_PI, HalfNormal
from klnumba.distributions.inverse_gamma import InverseGamma
from klnumba.distributions.inverse_gaussian import InverseGaussian
from klnumba.distributions.kumaraswamy import Kumaraswamy, log_moment, to_standard_uniform
from klnumba.distributions.lindley import Lindley, scaled_entropy
from klnumba.distributions.log_normal import LogNormal
from klnumba.distributions.log_uniform import LogUniform, log_width
from klnumba.distributions.moyal import HALF_PI_SQUARED, Moyal
from klnumba.distributions.normal import Normal
from klnumba.distributions.registry import register_kl
from klnumba.distributions.uniform import log_sinhc
from klnumba.distributions.weibull import Weibull
from klnumba.formulas.elementary import exp, expm1, log, log1p, two_sum
from klnumba.formulas.integrals import scaled_exponential_integral
from klnumba.formulas.log_cells import phi
from klnumba.formulas.primitives import fma
from klnumba.formulas.special import (
    EULER,
    HALF_LOG_2PI,
    LN2,
    difference_of_products,
    excess_of_nearly,
    excess_of_products,
    exp_excess,
    log_gamma_bregman,
    stirling,
    stirling_bregman,
    stirling_slope,
)

HALF_LOG_2PIE = HALF_LOG_2PI + 0.5
OF_HALF_NORMAL = 0.1869944136213184  # log(2) + log(1 - 2/pi)/2
DEVIATION_OF_HALF_NORMAL = 0.602810274989087  # sqrt(1 - 2/pi)
OF_MOYAL = 0.16297487283868844  # log(pi/2) - EULER/2
MOYAL_MEAN = EULER + LN2


def of_parts(deviation: float, t: float, scale: float, rest: float) -> float:
    """From p's standard deviation, the distance of the means over `scale`, and what is left where both agree."""
    return 0.5 * (excess_of_products(deviation, deviation, scale, scale) + t * t) + rest


@register_kl(HalfNormal, Normal, compiled=True)
def half_normal_normal(scale_p: float, loc: float, scale_q: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    t = (SQRT_2_OVER_PI * scale_p - loc) / scale_q
    return of_parts(DEVIATION_OF_HALF_NORMAL * scale_p, t, scale_q, OF_HALF_NORMAL)


@register_kl(Moyal, Normal, compiled=True)
def moyal_normal(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    t = ((loc_p - loc_q) + MOYAL_MEAN * scale_p) / scale_q
    return 0.5 * (excess_of_products(HALF_PI_SQUARED * scale_p, scale_p, scale_q, scale_q) + t * t) + OF_MOYAL


@register_kl(Lindley, Normal, compiled=True)
def lindley_normal(rate: float, loc: float, scale: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    share = rate / (1.0 + rate)
    variance = 2.0 - share * share
    t = ((1.0 + 1.0 / (1.0 + rate)) / rate - loc) / scale
    variances = excess_of_products(variance / rate, 1.0 / rate, scale, scale)
    return 0.5 * (variances + t * t) + (HALF_LOG_2PIE + 0.5 * log(variance) - scaled_entropy(rate))


@register_kl(InverseGaussian, Normal, compiled=True)
def inverse_gaussian_normal(loc_p: float, concentration: float, loc_q: float, scale: float) -> float:
    """The variances' excess, the distance of the means, and 3/2*exp(x)*E1(x), x = 2*concentration/loc_p."""
    t = (loc_p - loc_q) / scale
    unit = loc_p / scale
    if 1e-140 < unit < 1e140:
        square = unit * unit
        off = (fma(unit, unit, -square) + 2.0 * unit * (fma(-unit, scale, loc_p) / scale)) / square
        variances = excess_of_nearly(square, loc_p, concentration, 1.0, off, 0)
    else:
        variances = excess_of_products(unit, unit * (loc_p / concentration), 1.0, 1.0)
    return 0.5 * (variances + t * t) + 1.5 * scaled_exponential_integral(2.0 * (concentration / loc_p))


def inverse_gamma_negentropy(shape: float) -> float:
    """KL to the normal distribution of the same mean and variance, about 4/3/shape, for a shape above 2."""
    less = log1p(-2.0 / shape) if shape > 4.0 else log((shape - 2.0) / shape)
    rest = stirling(shape) - (1.0 + shape) * stirling_slope(shape) + 0.5 / shape
    return -(log1p(-1.0 / shape) + 0.5 * less) - rest


@register_kl(InverseGamma, Normal, compiled=True)
def inverse_gamma_normal(shape: float, rate: float, loc: float, scale: float) -> float:
    """The variances' excess, the distance of the means, and what is left where both agree; infinite up to shape 2."""
    if shape <= 2.0:
        return math.inf
    more, low = two_sum(shape, -1.0)
    less, lost = two_sum(shape, -2.0)
    t = (difference_of_products(rate, 1.0, more, loc) - low * loc) / more / scale
    below = more * scale
    unit = rate / below
    moved = (fma(-unit, below, rate) - unit * (fma(more, scale, -below) + low * scale)) / rate
    off = 2.0 * moved - lost / less
    variances = excess_of_nearly(unit, unit, less, 1.0, off, 0)
    return 0.5 * (variances + t * t) + inverse_gamma_negentropy(shape)


def chi_variance_and_1(df: float) -> float:
    """Twice the variance, less 1: about -1/(4*df)."""
    mean = log_mean(df)
    if df < 4.0:
        return -2.0 * df * expm1(2.0 * mean) - 1.0
    half = 0.5 * df
    rise = stirling_bregman(half, half + 0.5, 0.5) + 0.5 * stirling_slope(half)
    return 8.0 * half * (half * phi_beyond_square(0.5 / half) - rise) - 4.0 * half * exp_excess(2.0 * mean)


@register_kl(Chi, Normal, compiled=True)
def chi_normal(df: float, loc: float, scale: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    half = 0.5 * df
    root = math.sqrt(df)
    mean = log_mean(df)
    off = root - loc
    if loc > 0.5 * root and loc < 2.0 * root:
        off = fma(-loc, loc, df) / (root + loc)
    t = (off + root * expm1(mean)) / scale
    lost = chi_variance_and_1(df)
    twice = -2.0 * df * expm1(2.0 * mean) if df < 4.0 else 1.0 + lost
    ratio = 0.5 * ((fma(-2.0 * scale, scale, 1.0) + lost) / scale) / scale
    variances = phi(ratio) if abs(ratio) <= 0.5 else excess_of_products(0.5 * twice, 1.0, scale, scale)
    rest = stirling(half) - (half - 0.5) * stirling_slope(half) - 0.25 / half
    size = 0.5 * (log1p(lost) if df >= 4.0 else log(twice))
    return 0.5 * (variances + t * t) + (size - rest)


@register_kl(LogNormal, Normal, compiled=True)
def log_normal_to_normal(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The variances' excess, the distance of the means, and 3/4*x + log(sinh(x/2)/(x/2))/2, x = scale_p**2."""
    square = scale_p * scale_p
    curve = 0.5 * log_sinhc(0.5 * square) if square > 0.0 else 0.0
    log_deviation = loc_p + (0.75 * square + curve)
    mean = exp(loc_p + 0.5 * square)
    deviation = scale_p * exp(log_deviation)
    if deviation > 1e300 or mean > 1e300:
        return math.inf
    t = (mean - loc_q) / scale_q
    rest = 0.75 * square + curve
    if deviation > 1e-290:
        return of_parts(deviation, t, scale_q, rest)
    narrow = 2.0 * (log(scale_q) - log(scale_p) - log_deviation) - 1.0  # the ratio of variances is next to nothing
    return 0.5 * (narrow + t * t) + rest


@register_kl(Weibull, Normal, compiled=True)
def weibull_normal(scale_p: float, shape: float, loc: float, scale_q: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    h = 1.0 / shape
    once = log_gamma_bregman(1.0, 1.0 + h, h)
    log_mean_of_1 = once - EULER * h
    spread = log_gamma_bregman(1.0, 1.0 + 2.0 * h, 2.0 * h) - 2.0 * once  # log(1 + variance/mean**2)
    log_variance = log(expm1(spread)) if spread < 700.0 else spread
    rest = (HALF_LOG_2PIE - 1.0 - EULER) + (once + 0.5 * log_variance - log(h))
    log_deviation = log_mean_of_1 + 0.5 * log_variance
    if log_deviation + log(scale_p) > 709.0:
        return math.inf
    off = (scale_p - loc) + scale_p * expm1(log_mean_of_1)
    return of_parts(scale_p * exp(log_deviation), off / scale_q, scale_q, rest)


@register_kl(Kumaraswamy, Normal, compiled=True)
def kumaraswamy_normal(a: float, b: float, loc: float, scale: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    first = log_moment(a, b, 1.0)
    spread = log_moment(a, b, 2.0) - 2.0 * first
    half_log = 0.5 * log(expm1(spread)) if spread < 700.0 else 0.5 * spread
    off = (1.0 - loc) + expm1(first) if first > -0.5 else exp(first) - loc
    rest = HALF_LOG_2PIE + ((first + half_log) + to_standard_uniform(a, b))
    return of_parts(exp(first + half_log), off / scale, scale, rest)


def mean_square_beyond(w: float) -> float:
    """sinh(w)/w - (sinh(w/2)/(w/2))**2, for w up to 2: the sum of 2*k*w**(2*k)/(2*k + 2)!."""
    z = w * w
    term = 1.0 / 2.0
    total = 0.0
    k = 1.0
    while k < 16.0:
        term *= z / ((2.0 * k + 1.0) * (2.0 * k + 2.0))
        total += 2.0 * k * term
        k += 1.0
    return total


@register_kl(LogUniform, Normal, compiled=True)
def log_uniform_normal(low: float, high: float, loc: float, scale: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    w = log_width(low, high)
    mean = (high - low) / w
    if w <= 2.0:
        variance = mean_square_beyond(w)
        off = 0.5 * ((low - loc) + (high - loc)) - mean * (w * slope(w))
        variances = excess_of_products(low * variance / scale, high, scale, 1.0)
        rest = HALF_LOG_2PIE + (0.5 * log(variance) - log(w))
    else:
        ratio = low / high
        share = (1.0 - ratio) / w
        variance = 0.5 * share * (1.0 + ratio) - share * share
        off = mean - loc
        variances = excess_of_products(high * variance, high, scale, scale)
        rest = HALF_LOG_2PIE + (0.5 * (log(variance) + w) - log(w))
    t = off / scale
    return 0.5 * (variances + t * t) + rest
