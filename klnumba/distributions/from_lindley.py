"""KL of a Lindley distribution from families with a logarithm, a square or an exponential in their densities.

With Y = rate*X and u = 1/(1 + rate), Y is a gamma variable of shape 2 with probability u, else an exponential one: its
density is (1 - u + u*y)*exp(-y), E Y = 1 + u, E Y**2 = 2 + 4*u, E log Y = u - EULER, and log Y has the variance
pi**2/6 - u**2.
"""

from __future__ import annotations

from klnumba.distributions.chi import Chi
from klnumba.distributions.gamma import Gamma
from klnumba.distributions.gumbel import Gumbel
from klnumba.distributions.lindley import Lindley, of_rates, scaled_entropy
from klnumba.distributions.log_normal import LogNormal
from klnumba.distributions.moyal import Moyal
from klnumba.distributions.registry import register_kl
from klnumba.distributions.to_moyal import from_gumbel
from klnumba.distributions.weibull import Weibull
from klnumba.formulas.elementary import exp, log, log1p, split_exponent, two_sum
from klnumba.formulas.exponents import log_gamma_1p_twofold, log_of_products_twofold, shows
from klnumba.formulas.log_cells import phi
from klnumba.formulas.logarithms import log_less
from klnumba.formulas.primitives import fma
from klnumba.formulas.ranges import gap, times_excess, times_exp_excess, times_log
from klnumba.formulas.special import (
    EULER,
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

PI_SQUARED_6 = 1.6449340668482264
CLOSE = 0.02  # below it the terms of the closed form cancel
STEP = 5.0 / 32.0
LOWEST, HIGHEST = -56.0, 4.5  # of log(Y), but for what u leaves below
LARGE_RATE = 1e100


def unlike(
    y: float, u: float, rest: float, slope: float, power: float, bend: float, log_scale: float, other_u: float
) -> float:
    """log of the density of Y over another one, but for a constant, all its terms small where the two are close.

    The other is a gamma density, `power` and `slope` its shape and rate, less 1, plus u in `slope`, or for u > 1/2 less
    2 and 1. Or it is a Weibull density, `bend` its shape less 1, `slope` u, or 0, less the logarithm of the scale. For
    u = 0 it may be a Lindley density, `other_u` 1/(1 + rate) and `slope` its rate over that of p, less 1 and `other_u`.
    """
    head = -phi(u * (y - 1.0)) if u <= 0.5 else log1p(rest * (1.0 - y) / y)
    log_y = log(y)
    straight = head + (slope * y - power * log_y)
    if other_u > 0.0:
        return straight + phi(other_u * (y - 1.0))
    if bend == 0.0 and log_scale == 0.0:
        return straight
    more = bend * (log_y - log_scale)
    return straight + y * (more + exp_excess(more - log_scale))


def from_close(
    u: float, rest: float, slope: float, power: float, bend: float, log_scale: float, other_u: float
) -> float:
    """KL: log E exp(m - D), D the log-ratio of the densities and m its mean.

    E exp(m - D) - 1 is the mean of exp(m - D) - 1 - (m - D), of which nothing cancels. The integrals are sums over even
    steps of log(Y), which converge as fast as those of periodic functions.
    """
    lowest = LOWEST + log(rest) if u > 0.5 else LOWEST
    mass = 0.0
    mean = 0.0
    s = HIGHEST
    while s > lowest:
        y = exp(s)
        weight = (rest + u * y) * exp(s - y)
        mass += weight
        mean += weight * unlike(y, u, rest, slope, power, bend, log_scale, other_u)
        s -= STEP
    mean /= mass
    beyond = 0.0
    s = HIGHEST
    while s > lowest:
        y = exp(s)
        weight = (rest + u * y) * exp(s - y)
        beyond += weight * exp_excess(mean - unlike(y, u, rest, slope, power, bend, log_scale, other_u))
        s -= STEP
    return log1p(beyond / mass)


def to_gamma(rate_p: float, shape: float, rate_q: float) -> float:
    """The means' excess, times the shape, and what is left where they agree."""
    u = 1.0 / (1.0 + rate_p)
    logs = (HALF_LOG_2PI - 0.5 * log(shape)) + (stirling(shape) + (u - EULER))
    rest = shape * (EULER - phi(u)) + (logs - scaled_entropy(rate_p))
    return times_excess(shape, rate_q, 1.0 + u, shape, rate_p, 0.0, 0) + rest


@register_kl(Lindley, Gamma, compiled=True)
def lindley_gamma(rate_p: float, shape: float, rate_q: float) -> float:
    """The means' excess, times the shape, and what is left where they agree; an integral where that cancels."""
    found = to_gamma(rate_p, shape, rate_q)
    if found > CLOSE:
        return found
    more, low = two_sum(1.0, rate_p)
    u = 1.0 / more
    d = rate_q - rate_p
    if rate_p < 1.0:
        return from_close(u, rate_p / more, d / rate_p, shape - 2.0, 0.0, 0.0, 0.0)
    slope = (fma(d, more, rate_p) + d * low) / more / rate_p if rate_p < LARGE_RATE else d / rate_p + u
    return from_close(u, rate_p / more, slope, shape - 1.0, 0.0, 0.0, 0.0)


def to_weibull(rate: float, scale: float, shape: float) -> float:
    """exp(v) - 1 - v, v the logarithm of E (X/scale)**shape, and what is left where that is 0."""
    u = 1.0 / (1.0 + rate)
    k, x = log_in_parts(1.0, 1.0, scale, rate)
    first, lost = times_log(shape, k, x)
    curve = log_gamma_bregman(1.0, 1.0 + shape, shape)
    moment, more = curve - EULER * shape, 0.0
    if shows(shape) or shows(first):
        first, lost = times(-shape, 0.0, *log_of_products_twofold(scale, rate, 1.0, 1.0))
        moment, more = log_gamma_1p_twofold(shape, 1.0)
    power, off = plus(moment, more, log1p(shape * u), 0.0)
    v, low = plus(first, lost, power, off)
    rest = (u - EULER) - (log(shape) + scaled_entropy(rate))
    if v < -2.0:  # log-gamma cancels
        return exp(v) + ((shape * (EULER - u) - first) + rest)
    return times_exp_excess(1.0, v, low) + (1.0 + (curve - phi(shape * u)) + rest)


@register_kl(Lindley, Weibull, compiled=True)
def lindley_weibull(rate: float, scale: float, shape: float) -> float:
    """exp(v) - 1 - v, v the logarithm of E (X/scale)**shape, and what is left; an integral where that cancels."""
    found = to_weibull(rate, scale, shape)
    if found > CLOSE:
        return found
    more, low = two_sum(1.0, rate)
    u = 1.0 / more
    product = scale * rate
    d, d_low = product - 1.0, fma(scale, rate, -product)
    log_scale = log1p(d + d_low)
    if rate < 1.0:
        return from_close(u, rate / more, -log_scale, shape - 2.0, shape - 1.0, log_scale, 0.0)
    slope = (fma(-d, more, 1.0) - (d_low * more + d * low)) / more + phi(d + d_low)
    return from_close(u, rate / more, slope, shape - 1.0, shape - 1.0, log_scale, 0.0)


@register_kl(Lindley, LogNormal, compiled=True)
def lindley_log_normal(rate: float, loc: float, scale: float) -> float:
    """That of the logarithms: the variances' excess, the distance of the means, and what is left where both agree."""
    u = 1.0 / (1.0 + rate)
    variance = PI_SQUARED_6 - u * u
    t = ((u - EULER) - log_less(rate, 0.0, -loc)) / scale
    rest = (0.5 + HALF_LOG_2PI) + (0.5 * log(variance) + ((u - EULER) - scaled_entropy(rate)))
    return 0.5 * (excess_of_products(variance, 1.0, scale, scale) + t * t) + rest


@register_kl(Lindley, Chi, compiled=True)
def lindley_chi(rate: float, df: float) -> float:
    """df/2 times the excess of the ratio of mean squares, and what is left where they agree."""
    u = 1.0 / (1.0 + rate)
    square = 2.0 + 4.0 * u
    half = 0.5 * df
    m, k = split_exponent(df)
    squares = times_excess(half, square / m, 1.0, rate, rate, 0.0, -k)
    logs = (HALF_LOG_2PI - 0.5 * LN2 - 0.5 * log(df)) + (stirling(half) + (u - EULER))
    return squares + (half * (log(square) + 2.0 * (EULER - u)) + (logs - scaled_entropy(rate)))


@register_kl(Lindley, Gumbel, compiled=True)
def lindley_gumbel(rate: float, loc: float, scale: float) -> float:
    """exp(v) - 1 - v, v the logarithm of E exp((loc - X)/scale), and what is left where that is 0."""
    more = 1.0 / scale
    unit = scale * rate
    widths = log_of_products(scale, rate, 1.0, 1.0)
    lost = 2.0 * (log1p(1.0 / unit) if unit > 1e-290 else -widths) - log1p(more / (1.0 + rate))
    v = gap(loc / scale, lost)
    beyond = of_rates(rate, rate + more, more)
    return exp_excess(v) + (1.0 + (beyond + (widths - scaled_entropy(rate))))


@register_kl(Lindley, Moyal, compiled=True)
def lindley_moyal(rate: float, loc: float, scale: float) -> float:
    """Half that to the Gumbel distribution of q's parameters, and half of log(2*pi*scale) less the entropy."""
    return from_gumbel(lindley_gumbel(rate, loc, scale), scaled_entropy(rate), log_of_products(scale, rate, 1.0, 1.0))
