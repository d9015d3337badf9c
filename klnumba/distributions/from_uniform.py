"""KL of a uniform distribution from families with a logarithm, a power or an inverse in their densities.

With x = log(high/low)/2, E log X lies x*coth(x) - 1 above the logarithm of the geometric mean of the ends, E 1/X is
x/sinh(x) over that mean, and the variance of log X is 1 - (x/sinh(x))**2.
"""

from __future__ import annotations

import math

from klnumba.distributions.cauchy import Cauchy, cauchy_cauchy
from klnumba.distributions.chi import Chi
from klnumba.distributions.continuous_bernoulli import slope
from klnumba.distributions.half_cauchy import HalfCauchy
from klnumba.distributions.inverse_gamma import InverseGamma
from klnumba.distributions.log_normal import LogNormal
from klnumba.distributions.log_uniform import log_width
from klnumba.distributions.registry import register_kl
from klnumba.distributions.student_t import StudentT, log_density
from klnumba.distributions.uniform import Uniform, log_sinhc, mean_log_excess
from klnumba.distributions.weibull import Weibull
from klnumba.formulas.elementary import exp, expm1, log, log1p, two_sum
from klnumba.formulas.exponents import log_ratio_twofold, shows
from klnumba.formulas.logarithms import log_less
from klnumba.formulas.ranges import in_range, times_excess, times_log, unit_in_range
from klnumba.formulas.special import (
    HALF_LOG_2PI,
    LN2,
    excess_of_products,
    exp_excess,
    log_gamma_bregman,
    log_in_parts,
    log_of_products,
    stirling,
)
from klnumba.formulas.twofold import plus, times

LARGEST = 700.0  # exp of it is finite
NEXT_TO_0 = 1e-20  # an interval that begins there, by its end, is as good as one from 0
STEEP = 40.0
LOG_PI = 1.1447298858494002
MUCH = 1e150  # the square of it is finite


def mean_log(low: float, high: float, unit: float) -> float:
    """E log(X/unit), for low >= 0."""
    mean = 0.5 * low + 0.5 * high
    return log(mean / unit) - mean_log_excess(min(0.5 * (high - low) / mean, 1.0))


def mean_log_of_square_and_1(low: float, high: float) -> float:
    """E log(1 + X*X): far from 0 and close together a series about the middle, else an integral in closed form."""
    middle = 0.5 * low + 0.5 * high
    half = 0.5 * (high - low)
    size = math.hypot(1.0, middle)
    if half <= 0.5 * size:  # the real part of the series in w = half/(middle - i)
        real = (half / size) * (middle / size)
        imaginary = (half / size) / size
        square = (real - imaginary) * (real + imaginary)
        twist = 2.0 * real * imaginary
        x = square
        y = twist
        total = 0.0
        k = 1.0
        while k < 30.0:
            total += x / (k * (2.0 * k + 1.0))
            x, y = x * square - y * twist, x * twist + y * square
            k += 1.0
        far = abs(middle) > MUCH
        return (2.0 * log(abs(middle)) if far else log1p(middle * middle)) - total
    up = high / (2.0 * half)
    down = low / (2.0 * half)
    logs = up * log_1p_square(high) - down * log_1p_square(low)
    return logs - 2.0 + (math.atan(high) - math.atan(low)) / half


def log_1p_square(x: float) -> float:
    """log(1 + x*x)."""
    return log1p(x * x) if abs(x) < MUCH else 2.0 * log(abs(x))


def mean_log_of_square(low: float, high: float) -> float:
    """E log(X*X)."""
    if low >= 0.0 or high <= 0.0:
        return 2.0 * (mean_log(low, high, 1.0) if low >= 0.0 else mean_log(-high, -low, 1.0))
    up = high / (0.5 * high - 0.5 * low)
    return up * log(high) + (2.0 - up) * log(-low) - 2.0


def mean_log_of_1_and_square(low: float, high: float, unit: float, root: float) -> float:
    """E log(1 + (X/(unit*root))**2); where X is as good as always far from 0, without the 1."""
    far = max(abs(low), abs(high))
    if far / unit / root < MUCH:
        return mean_log_of_square_and_1(low / unit / root, high / unit / root)
    return mean_log_of_square(low / far, high / far) + 2.0 * (log_of_products(far, 1.0, unit, 1.0) - log(root))


@register_kl(Uniform, Cauchy, compiled=True)
def uniform_cauchy(low: float, high: float, loc: float, scale: float) -> float:
    """The logarithm of pi times scale over the width, and E log(1 + ((X - loc)/scale)**2)."""
    unit = unit_in_range(high - low, max(-low, high), loc, scale)
    low, high, loc = unit * low, unit * high, unit * loc
    rest = mean_log_of_1_and_square(low - loc, high - loc, scale, unit)
    return rest + (LOG_PI + log_of_products(scale, unit, high - low, 1.0))


@register_kl(Uniform, HalfCauchy, compiled=True)
def uniform_half_cauchy(low: float, high: float, scale: float) -> float:
    """That to the Cauchy distribution, less log(2); infinite below 0."""
    return math.inf if low < 0.0 else uniform_cauchy(low, high, 0.0, scale) - LN2


@register_kl(Uniform, StudentT, compiled=True)
def uniform_student_t(low: float, high: float, df: float, loc: float, scale: float) -> float:
    """(df + 1)/2*E log(1 + ((X - loc)/scale)**2/df), and the logarithm of the peak of q times the width."""
    unit = unit_in_range(high - low, max(-low, high), loc, scale)
    low, high, loc = unit * low, unit * high, unit * loc
    mean = mean_log_of_1_and_square(low - loc, high - loc, scale, unit * math.sqrt(df))
    return (0.5 * df + 0.5) * mean + (log_of_products(scale, unit, high - low, 1.0) - log_density(df, 0.0))


@register_kl(Uniform, LogNormal, compiled=True)
def uniform_log_normal(low: float, high: float, loc: float, scale: float) -> float:
    """That of the logarithms: the variances' excess, the distance of the means, and what is left where both agree."""
    if low < 0.0:
        return math.inf
    middle, lost = two_sum(0.5 * low, 0.5 * high)
    width = high - low
    short = mean_log_excess(min(0.5 * width / middle, 1.0))
    variance = 1.0 if low == 0.0 else -expm1(-2.0 * log_sinhc(0.5 * log_width(low, high)))
    t = (log_less(middle, lost, loc) - short) / scale
    rest = (0.5 + HALF_LOG_2PI) + (0.5 * log(variance) + (log_of_products(middle, 1.0, width, 1.0) - short))
    return 0.5 * (excess_of_products(variance / scale, 1.0, scale, 1.0) + t * t) + rest


@register_kl(Uniform, Chi, compiled=True)
def uniform_chi(low: float, high: float, df: float) -> float:
    """df/2 times the excess of the ratio of mean squares, and what is left where they agree; infinite below 0."""
    if low < 0.0:
        return math.inf
    middle, beside = two_sum(0.5 * low, 0.5 * high)
    half = 0.5 * df
    share = min(0.5 * (high - low) / middle, 1.0)
    short = mean_log_excess(share)
    part = share * share / 3.0
    square, less = two_sum(middle, middle * part)  # E X*X over the middle
    lost = half * (log1p(part) + 2.0 * short)
    wide = middle / (high - low)
    rest = (0.5 * log_of_products(wide, wide, df, 1.0) - short) + (HALF_LOG_2PI - 0.5 * LN2)
    squares = times_excess(half, square, middle, df, 1.0, less / square + 2.0 * beside / middle, 0)
    return squares + (lost + (rest + stirling(half)))


@register_kl(Uniform, InverseGamma, compiled=True)
def uniform_inverse_gamma(low: float, high: float, shape: float, rate: float) -> float:
    """The excess of the inverses' means' ratio, times the shape, and what is left where they agree; infinite at 0."""
    if low <= 0.0:
        return math.inf
    width, width_low = log_ratio_twofold(high, low)
    d, d_low = two_sum(high, -low)
    lost = width * slope(width) - log_sinhc(0.5 * width)
    inverses = times_excess(shape, rate, width, d, shape, width_low / width - d_low / d, 0)
    rest = mean_log(low, high, d) + (HALF_LOG_2PI - 0.5 * log(shape) + stirling(shape))
    return inverses + (shape * lost + rest)


@register_kl(Uniform, Weibull, compiled=True)
def uniform_weibull(low: float, high: float, scale: float, shape: float) -> float:
    """exp(v) - 1 - v, v the logarithm of E (X/scale)**shape, and what is left where that is 0; infinite below 0."""
    if low < 0.0:
        return math.inf
    mean = mean_log(low, high, high - low)
    width = log_width(low, high) if low > 0.0 else math.inf
    if shape * min(width, 1.0) > STEEP:
        return uniform_steep_weibull(low, high, scale, shape, width, mean)
    if low <= NEXT_TO_0 * high:
        lost = shape - log1p(shape)
    else:
        x = 0.5 * width
        lost = log_sinhc((shape + 1.0) * x) - log_sinhc(x) - shape * (width * slope(width))
    middle, beside = two_sum(0.5 * low, 0.5 * high)
    k, y = log_in_parts(middle, 1.0, scale, 1.0)
    short = mean_log_excess(min(0.5 * (high - low) / middle, 1.0)) - beside / middle
    v, more = times_log(shape, k, y - short)
    if shows(v):
        first, first_low = log_ratio_twofold(middle, scale)
        v, more = times(shape, 0.0, *plus(first, first_low, -short, 0.0))
    v, rounded = two_sum(v, lost)
    more = (rounded + more) * expm1(v) if abs(v) < LARGEST else 0.0  # exp(v) has the digits v has behind the point
    return (exp_excess(v) + more) + ((1.0 + lost - log(shape)) + mean)


def uniform_steep_weibull(low: float, high: float, scale: float, shape: float, width: float, mean: float) -> float:
    """The same where E X**shape comes from next to the upper end only, of which nothing cancels with E log X."""
    k, y = log_in_parts(high, 1.0, scale, 1.0)
    v, more = times_log(shape, k, y)
    if shows(v):
        v, more = times(shape, 0.0, *log_ratio_twofold(high, scale))
    v, rounded = two_sum(v, log1p(-exp(-(shape + 1.0) * width)) - log(shape + 1.0) - log((high - low) / high))
    power = exp(v) if v < LARGEST else exp(v - LARGEST) * exp(LARGEST)
    lost = (rounded + more) * power if abs(v) < LARGEST else 0.0
    middle, beside = two_sum(0.5 * low, 0.5 * high)
    short = mean_log_excess(min(0.5 * (high - low) / middle, 1.0)) - beside / middle
    above = short + log_of_products(scale, 1.0, middle, 1.0)
    return (power + lost) + (shape * above - log(shape) + mean)


# --- Cauchy -----------------------------------------------------------------------------------------------------------


@register_kl(Cauchy, StudentT, compiled=True)
def cauchy_student_t(loc_p: float, scale_p: float, df: float, loc_q: float, scale_q: float) -> float:
    """KL of Cauchy distributions, and what log-beta has beyond first order from df = 1, where q is one too."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    e = 0.5 * (df - 1.0)
    x = 0.5 * df
    root = math.sqrt(df)
    apart = loc_p - loc_q
    ratio = log_of_products(scale_p, 1.0, scale_q, 1.0) - 0.5 * (log1p(2.0 * e) if abs(e) < 0.4 else log(df))
    y, z = scale_p / scale_q / root, abs(apart) / scale_q / root
    if abs(e) < 10.0 and 1.0 / MUCH < y < MUCH and z < MUCH:
        unit = scale_q * root
        if abs(ratio) < 1.0:
            sinh = 0.5 * (expm1(0.5 * ratio) - expm1(-0.5 * ratio))
            cauchy = log1p(sinh * sinh + 0.25 * (apart / scale_p) * (apart / unit))
        else:
            cauchy = cauchy_cauchy(loc_p, scale_p, loc_q, unit)
        beyond = log_gamma_bregman(0.5, x, e) - log_gamma_bregman(1.0, x + 0.5, e)
        return max(cauchy * (1.0 + e) + (e * ratio + beyond), 0.0)
    if max(y, z) < MUCH:
        mean = log1p(y * (2.0 + y) + z * z)
    else:
        half = math.hypot(0.5 * (scale_q * root) + 0.5 * scale_p, 0.5 * loc_p - 0.5 * loc_q)
        mean = 2.0 * (log_of_products(half, 2.0, scale_q, 1.0) - log(root))
    whole = (x + 0.5) * mean  # (df + 1)/2*E log(1 + ((X - loc_q)/unit)**2)
    return whole - (log_density(df, 0.0) + 2.0 * LN2 + LOG_PI + ratio + 0.5 * log(df))
