"""KL from a normal distribution, for families with a mean and a variance.

It is half the excess of the ratio of variances, half the square of the distance of the means over q's standard
deviation, and what is left where both agree: KL from the normal distribution of the same mean and variance, which is
log(2*pi*e*variance)/2 less the entropy. Where that goes to zero, parts of first order are left out of it by hand.
"""

from __future__ import annotations

import math

from klnumba.distributions.chi import Chi, log_mean, mean_less
from klnumba.distributions.continuous_bernoulli import slope
from klnumba.distributions.gamma_powers import log_gamma_curve
from klnumba.distributions.half_normal import SQRT_2_OVER_PI, HalfNormal
from klnumba.distributions.inverse_gamma import InverseGamma
from klnumba.distributions.inverse_gaussian import InverseGaussian, in_larger_unit, mean_log
from klnumba.distributions.kumaraswamy import Kumaraswamy, log_moment, log_moment_beyond, log_spread_over
from klnumba.distributions.lindley import Lindley, scaled_entropy
from klnumba.distributions.log_normal import LogNormal
from klnumba.distributions.log_uniform import LogUniform, log_width
from klnumba.distributions.moyal import HALF_PI_SQUARED, Moyal
from klnumba.distributions.normal import Normal
from klnumba.distributions.registry import register_kl
from klnumba.distributions.uniform import LEAST, log_sinhc
from klnumba.distributions.weibull import Weibull
from klnumba.formulas.elementary import exp, expm1, log, log1p, split_exponent, two_sum
from klnumba.formulas.exponents import plus_half_square, shows
from klnumba.formulas.log_cells import phi
from klnumba.formulas.logarithms import log_ratio_beyond, log_twofold
from klnumba.formulas.primitives import fma
from klnumba.formulas.ranges import (
    FAR,
    MOST,
    difference_over,
    distance_over,
    excess_of_power,
    excess_over_square,
    gap,
    in_range,
    product,
    times_exp_excess,
    unit_in_range,
)
from klnumba.formulas.special import (
    EULER,
    HALF_LOG_2PI,
    LARGE,
    LN2,
    excess_of_nearly,
    excess_of_products,
    log_gamma_bregman,
    stirling,
    stirling_slope,
)

HALF_LOG_2PIE = HALF_LOG_2PI + 0.5
OF_HALF_NORMAL = 0.1869944136213184  # log(2) + log(1 - 2/pi)/2
DEVIATION_OF_HALF_NORMAL = 0.602810274989087  # sqrt(1 - 2/pi)
HALF_LOG_PI_SQUARED_6 = 0.24885015123537267
NARROW = 1e-20  # up to here the variance is its first term
OF_MOYAL = 0.16297487283868844  # log(pi/2) - EULER/2
MOYAL_MEAN = EULER + LN2

# Taylor's series of `weibull_negentropy` in 1/shape - 9/32, near its least value; up to 1/10 a relative error of 3e-17.
LEAST_OF_WEIBULL = 0.28125
OF_WEIBULL = (
    0.0030343183787174214,
    0.032666602262957006,
    1.0193425762655641,
    -0.5546707000201503,
    0.4402318694701737,
    -0.4052186243115513,
    0.40535048808701596,
    -0.42768880601648673,
    0.4676929031313272,
    -0.524386086599596,
    0.5986915971228377,
    -0.692841078622676,
    0.810206738460492,
    -0.955327547868476,
    1.1340529338714442,
    -1.3537793947000338,
    1.6237773156360016,
    -1.9556172617453023,
    2.3637134925463354,
)


def of_parts(deviation: float, t: float, scale: float, rest: float) -> float:
    """From p's standard deviation, the distance of the means over `scale`, and what is left where both agree."""
    return 0.5 * (excess_of_products(deviation, deviation, scale, scale) + t * t) + rest


@register_kl(HalfNormal, Normal, compiled=True)
def half_normal_normal(scale_p: float, loc: float, scale_q: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    _, scale_p, loc, scale_q = in_range(0.0, scale_p, loc, scale_q)
    t = (SQRT_2_OVER_PI * scale_p - loc) / scale_q
    return of_parts(DEVIATION_OF_HALF_NORMAL * scale_p, t, scale_q, OF_HALF_NORMAL)


@register_kl(Moyal, Normal, compiled=True)
def moyal_normal(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    t = ((loc_p - loc_q) + MOYAL_MEAN * scale_p) / scale_q
    return 0.5 * (excess_of_products(HALF_PI_SQUARED * scale_p, scale_p, scale_q, scale_q) + t * t) + OF_MOYAL


@register_kl(Lindley, Normal, compiled=True)
def lindley_normal(rate: float, loc: float, scale: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    share = rate / (1.0 + rate)
    variance = 2.0 - share * share
    t = difference_over(1.0 + 1.0 / (1.0 + rate), 1.0, loc, rate, rate, scale)
    variances = excess_over_square(variance, rate, scale)
    return 0.5 * (variances + t * t) + (HALF_LOG_2PIE + 0.5 * log(variance) - scaled_entropy(rate))


@register_kl(InverseGaussian, Normal, compiled=True)
def inverse_gaussian_normal(loc_p: float, concentration: float, loc_q: float, scale: float) -> float:
    """The variances' excess, the distance of the means, and 3/2*exp(x)*E1(x), x = 2*concentration/loc_p."""
    loc_p, concentration, loc_q, scale = in_larger_unit(loc_p, concentration, loc_q, scale)
    t = (loc_p - loc_q) / scale
    square, lost, k = product(loc_p, loc_p)
    below, lost_below, n = product(scale, scale)
    m, j = split_exponent(loc_p)
    c, i = split_exponent(concentration)
    variances = excess_of_nearly(square, m, below, c, lost / square - lost_below / below, (k + j) - (n + i))
    return 0.5 * (variances + t * t) - 1.5 * mean_log(loc_p, concentration)


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
    t = difference_over(rate, 1.0, loc, more, more, scale)
    if abs(t) < FAR:
        t -= low / more * loc / scale
    r, k = split_exponent(rate)
    s, n = split_exponent(less)
    below, lost_below, j = product(more, scale)
    unit = r / below
    moved = (fma(-unit, below, r) - unit * lost_below) / r - low / more
    variances = excess_of_nearly(unit, unit, s, 1.0, 2.0 * moved - lost / less, 2 * (k - j) - n)
    return 0.5 * (variances + t * t) + inverse_gamma_negentropy(shape)


def chi_variance_and_1(df: float) -> float:
    """Twice the variance, less 1: about -1/(4*df), for df from 4 on.

    Twice the square of the mean is b(2*df - 1), b(s) = s + 1/(2*s + 9/(2*s + 25/(2*s + ...))) (Brouncker): of many
    degrees of freedom few terms are left, and b(s)*b(s + 2) = (s + 1)**2 leads down from there.
    """
    steps = 0.0
    while df + steps < LARGE:
        steps += 1.0
    s = 2.0 * (df + steps) - 1.0
    k = 33.0
    beyond = (k + 1.0) * ((k + 1.0) / (s + math.hypot(s, k + 1.0)))  # as if all further terms were alike
    while k > 0.0:
        beyond = k * (k / (2.0 * s + beyond))
        k -= 2.0
    while steps > 0.0:
        steps -= 1.0
        twice = 2.0 * (df + steps)
        beyond = (1.0 - (twice - 1.0) * beyond) / (twice + 1.0 + beyond)
    return -beyond


@register_kl(Chi, Normal, compiled=True)
def chi_normal(df: float, loc: float, scale: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    half = 0.5 * df
    t = mean_less(df, loc) / scale
    if df < 4.0:
        twice = -2.0 * df * expm1(2.0 * log_mean(df))
        above = fma(-2.0 * scale, scale, twice)
    else:
        lost = chi_variance_and_1(df)
        twice = 1.0 + lost
        above = fma(-2.0 * scale, scale, 1.0) + lost
    ratio = 0.5 * (above / scale) / scale
    variances = phi(ratio) if abs(ratio) <= 0.5 else excess_of_products(0.5 * twice, 1.0, scale, scale)
    rest = stirling(half) - (half - 0.5) * stirling_slope(half) - 0.25 / half
    size = 0.5 * (log1p(lost) if df >= 4.0 else log(twice))
    return 0.5 * (variances + t * t) + (size - rest)


def log_normal_distance(loc_p: float, scale_p: float, loc_q: float, unit: float) -> float:
    """The distance of the mean from loc_q over `unit`: from that of the logarithms where these are close."""
    square = scale_p * scale_p
    if loc_q > 0.0:
        high, low = log_twofold(loc_q)
        d, first = two_sum(loc_p, -high)
        ratio, second = two_sum(d, 0.5 * square)
        if abs(ratio) < 1.0:
            return loc_q * expm1(ratio + (0.5 * fma(scale_p, scale_p, -square) + (first + second - low))) / unit
    v, low = plus_half_square(*log_ratio_beyond(1.0, unit, -loc_p), scale_p)
    mean = exp(v)
    return gap(mean + mean * low if mean < math.inf else mean, loc_q / unit)


@register_kl(LogNormal, Normal, compiled=True)
def log_normal_to_normal(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The variances' excess, the distance of the means, and 3/4*x + log(sinh(x/2)/(x/2))/2, x = scale_p**2."""
    square = scale_p * scale_p
    if square == math.inf:
        return square
    rest = 0.75 * square + (0.5 * log_sinhc(0.5 * square) if square > 0.0 else 0.0)
    t = log_normal_distance(loc_p, scale_p, loc_q, scale_q)
    if shows(square):
        apart, low = log_ratio_beyond(1.0, scale_q, -loc_p)
        v, lost = plus_half_square(2.0 * apart, 2.0 * low, 2.0 * scale_p)
        variances = times_exp_excess(1.0, v, lost + log1p(-exp(-square)))
        return 0.5 * (variances + t * t) + rest
    high, low = log_ratio_beyond(scale_p, scale_q, -loc_p)
    v, lost = two_sum(high, low + rest)
    variances = times_exp_excess(1.0, 2.0 * v, 2.0 * lost)
    return 0.5 * (variances + t * t) + rest


def weibull_negentropy(h: float, once: float, size: float) -> float:
    """KL to the normal distribution of the same mean and variance, of shape 1/h; 0.003 where it is least."""
    d = h - LEAST_OF_WEIBULL
    if abs(d) > 0.1:
        return (HALF_LOG_2PIE - 1.0 - EULER) + (once + size)
    total = 0.0
    for k in range(len(OF_WEIBULL) - 1, -1, -1):
        total = OF_WEIBULL[k] + total * d
    return total


@register_kl(Weibull, Normal, compiled=True)
def weibull_normal(scale_p: float, shape: float, loc: float, scale_q: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    _, scale_p, loc, scale_q = in_range(0.0, scale_p, loc, scale_q)
    h = 1.0 / shape
    once = log_gamma_bregman(1.0, 1.0 + h, h)
    log_mean_of_1 = once - EULER * h
    size = HALF_LOG_PI_SQUARED_6  # half the logarithm of the variance of X over the mean and h
    if h > NARROW:
        spread = log_gamma_curve(1.0, h)  # log(1 + variance/mean**2)
        size = 0.5 * (log(expm1(spread)) if spread < MOST else spread) - log(h)
    rest = weibull_negentropy(h, once, size)
    variances = excess_of_power(scale_p, log_mean_of_1 + size, scale_q, shape)
    t = distance_over(scale_p, log_mean_of_1, loc, scale_q)
    return 0.5 * (variances + t * t) + rest


@register_kl(Kumaraswamy, Normal, compiled=True)
def kumaraswamy_normal(a: float, b: float, loc: float, scale: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    h = 1.0 / a
    first = log_moment(a, b, 1.0)
    size = log_spread_over(h, b)
    curves = log_moment_beyond(h, b)
    rest = (HALF_LOG_2PIE - 1.0 - EULER) + ((curves + size) + (0.5 / b - stirling_slope(b)))
    off = (1.0 - loc) + expm1(first) if first > -0.5 else exp(first) - loc
    t = off / scale
    return 0.5 * (excess_of_power(1.0, first + size, scale, a) + t * t) + rest


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
    unit = unit_in_range(low, high, loc, scale)
    low, high, loc, scale = unit * low, unit * high, unit * loc, max(unit * scale, (1.0 - unit) * LEAST)
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
