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
from klnumba.formulas.elementary import LN2_HI, LN2_LO, expm1, log, log1p, two_sum
from klnumba.formulas.primitives import fma
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

LARGEST = 700.0  # exp of it is finite
LOG_PI = 1.1447298858494002


def mean_log(low: float, high: float) -> float:
    """E log X, for low >= 0."""
    mean = 0.5 * low + 0.5 * high
    return log(mean) - mean_log_excess(min(0.5 * (high - low) / mean, 1.0))


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
        far = abs(middle) > 1e150
        return (2.0 * log(abs(middle)) if far else log1p(middle * middle)) - total
    up = high / (2.0 * half)
    down = low / (2.0 * half)
    logs = up * log_1p_square(high) - down * log_1p_square(low)
    return logs - 2.0 + (math.atan(high) - math.atan(low)) / half


def log_1p_square(x: float) -> float:
    """log(1 + x*x)."""
    return log1p(x * x) if abs(x) < 1e150 else 2.0 * log(abs(x))


@register_kl(Uniform, Cauchy, compiled=True)
def uniform_cauchy(low: float, high: float, loc: float, scale: float) -> float:
    """The logarithm of pi times scale over the width, and E log(1 + ((X - loc)/scale)**2)."""
    rest = mean_log_of_square_and_1((low - loc) / scale, (high - loc) / scale)
    return rest + (LOG_PI + log_of_products(scale, 1.0, high - low, 1.0))


@register_kl(Uniform, HalfCauchy, compiled=True)
def uniform_half_cauchy(low: float, high: float, scale: float) -> float:
    """That to the Cauchy distribution, less log(2); infinite below 0."""
    return math.inf if low < 0.0 else uniform_cauchy(low, high, 0.0, scale) - LN2


@register_kl(Uniform, StudentT, compiled=True)
def uniform_student_t(low: float, high: float, df: float, loc: float, scale: float) -> float:
    """(df + 1)/2*E log(1 + ((X - loc)/scale)**2/df), and the logarithm of the peak of q times the width."""
    unit = scale * math.sqrt(df)
    mean = mean_log_of_square_and_1((low - loc) / unit, (high - loc) / unit)
    return (0.5 * df + 0.5) * mean + (log_of_products(scale, 1.0, high - low, 1.0) - log_density(df, 0.0))


@register_kl(Uniform, LogNormal, compiled=True)
def uniform_log_normal(low: float, high: float, loc: float, scale: float) -> float:
    """That of the logarithms: the variances' excess, the distance of the means, and what is left where both agree."""
    if low < 0.0:
        return math.inf
    mean = mean_log(low, high)
    variance = 1.0 if low == 0.0 else -expm1(-2.0 * log_sinhc(0.5 * log_width(low, high)))
    t = (mean - loc) / scale
    rest = (0.5 + HALF_LOG_2PI) + (0.5 * log(variance) + (mean - log(high - low)))
    return 0.5 * (excess_of_products(variance / scale, 1.0, scale, 1.0) + t * t) + rest


@register_kl(Uniform, Chi, compiled=True)
def uniform_chi(low: float, high: float, df: float) -> float:
    """df/2 times the excess of the ratio of mean squares, and what is left where they agree; infinite below 0."""
    if low < 0.0:
        return math.inf
    middle = 0.5 * low + 0.5 * high
    half = 0.5 * df
    share = min(0.5 * (high - low) / middle, 1.0)
    short = mean_log_excess(share)
    beyond = log1p(share * share / 3.0)  # log of E X*X over the square of the middle
    square = middle * (1.0 + share * share / 3.0)
    lost = half * (beyond + 2.0 * short)
    rest = (log(middle / (high - low)) - short) + (HALF_LOG_2PI - 0.5 * LN2 - 0.5 * log(df))
    return half * excess_of_products(square, middle, df, 1.0) + (lost + (rest + stirling(half)))


@register_kl(Uniform, InverseGamma, compiled=True)
def uniform_inverse_gamma(low: float, high: float, shape: float, rate: float) -> float:
    """The excess of the inverses' means' ratio, times the shape, and what is left where they agree; infinite at 0."""
    if low <= 0.0:
        return math.inf
    width = log_width(low, high)
    lost = width * slope(width) - log_sinhc(0.5 * width)
    inverses = excess_of_products(rate, width, high - low, shape)
    rest = (mean_log(low, high) - log(high - low)) + (HALF_LOG_2PI - 0.5 * log(shape) + stirling(shape))
    return shape * inverses + (shape * lost + rest)


@register_kl(Uniform, Weibull, compiled=True)
def uniform_weibull(low: float, high: float, scale: float, shape: float) -> float:
    """exp(v) - 1 - v, v the logarithm of E (X/scale)**shape, and what is left where that is 0; infinite below 0."""
    if low < 0.0:
        return math.inf
    mean = mean_log(low, high)
    if low == 0.0:
        lost = shape - log1p(shape)
    else:
        width = log_width(low, high)
        x = 0.5 * width
        lost = log_sinhc((shape + 1.0) * x) - log_sinhc(x) - shape * (width * slope(width))
    middle = 0.5 * low + 0.5 * high
    k, y = log_in_parts(middle, 1.0, scale, 1.0)
    short = mean_log_excess(min(0.5 * (high - low) / middle, 1.0))
    whole = shape * (k * LN2_HI)
    v, rounded = two_sum(whole, shape * (k * LN2_LO + (y - short)) + lost)
    more = 0.0
    if abs(v) < LARGEST:  # exp(v) has the digits that v has behind the point
        more = (rounded + fma(shape, k * LN2_HI, -whole)) * expm1(v)
    return (exp_excess(v) + more) + ((1.0 + lost - log(shape)) + (mean - log(high - low)))


# --- Cauchy -----------------------------------------------------------------------------------------------------------


@register_kl(Cauchy, StudentT, compiled=True)
def cauchy_student_t(loc_p: float, scale_p: float, df: float, loc_q: float, scale_q: float) -> float:
    """KL of Cauchy distributions, and what log-beta has beyond first order from df = 1, where q is one too."""
    e = 0.5 * (df - 1.0)
    x = 0.5 * df
    unit = scale_q * math.sqrt(df)
    apart = loc_p - loc_q
    ratio = log_of_products(scale_p, 1.0, scale_q, 1.0) - 0.5 * (log1p(2.0 * e) if abs(e) < 0.4 else log(df))
    if abs(ratio) < 1.0:
        sinh = 0.5 * (expm1(0.5 * ratio) - expm1(-0.5 * ratio))
        cauchy = log1p(sinh * sinh + 0.25 * (apart / scale_p) * (apart / unit))
    else:
        cauchy = cauchy_cauchy(loc_p, scale_p, loc_q, unit)
    if abs(e) < 10.0:
        beyond = log_gamma_bregman(0.5, x, e) - log_gamma_bregman(1.0, x + 0.5, e)
        return max(cauchy * (1.0 + e) + (e * ratio + beyond), 0.0)
    y, z = scale_p / unit, apart / unit
    mean = log1p(y * (2.0 + y) + z * z) if max(y, abs(z)) < 1e150 else cauchy + ratio + 2.0 * LN2
    whole = (x + 0.5) * mean  # (df + 1)/2*E log(1 + ((X - loc_q)/unit)**2)
    return whole - (log_density(df, 0.0) + 2.0 * LN2 + LOG_PI + ratio + 0.5 * log(df))
