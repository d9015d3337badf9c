"""Integrals that closed forms need: the exponential integral, and mean distances from a given place.

The mean distance of X from m is the distance of the mean, and twice what X falls short of m on average if m is below
the mean: all of it positive. What it falls short is the density at m times an integral that begins at m, which a
trapezoidal rule takes after v = exp(t - exp(-t)); the integrand then dies doubly exponentially at both ends
(Takahasi and Mori 1974).
"""

from __future__ import annotations

import math

from klnumba.formulas.divergences import LEAST, bregman
from klnumba.formulas.elementary import exp, expm1, log, log1p, two_sum
from klnumba.formulas.log_cells import phi
from klnumba.formulas.power_distances import FIRST, INVERSE_SQRT_2PI, LAST, STEP, density_at, power_distance
from klnumba.formulas.special import EULER, HALF_LOG_2PI, difference_of_products, exp_excess, stirling

SERIES_BELOW = 0.6  # the continued fraction of the exponential integral serves above
HALF_PI = 1.5707963267948966
LOG_STEP = 5.0 / 32.0
INVERSE_SQRT_PI = 0.5641895835477563


def entire_exponential_integral(z: float) -> float:
    """The integral of (1 - exp(-t))/t from 0 to z >= 0: exp(-z) times the sum of z**k/k!*(1 + 1/2 + ... + 1/k)."""
    if z > 40.0:
        return log(z) + EULER
    term = z
    harmonic = 1.0
    total = z
    k = 1.0
    while term * harmonic > 1e-18 * total:
        k += 1.0
        term *= z / k
        harmonic += 1.0 / k
        total += term * harmonic
    return exp(-z) * total


def scaled_exponential_integral(z: float) -> float:
    """exp(z) times the integral of exp(-t)/t from z > 0 on.

    Examples
    --------
    >>> round(float(scaled_exponential_integral(1.0)), 12)
    0.596347362323
    """
    if z <= SERIES_BELOW:
        return exp(z) * (entire_exponential_integral(z) - (log(z) + EULER))
    # 1/(z + 1/(1 + 1/(z + 2/(1 + 2/(z + ...))))), Stieltjes.
    n = 20.0 + float(int(150.0 / z))
    rest = z
    while n > 0.0:
        rest = z + n / (1.0 + n / rest)
        n -= 1.0
    return 1.0 / rest


def cosine_integral_part(z: float) -> float:
    """The integral of t*exp(-z*t)/(1 + t*t) from 0 on, z > 0: -Ci(z)*cos(z) - si(z)*sin(z).

    Examples
    --------
    >>> round(float(cosine_integral_part(1.0)), 12)
    0.343377961556
    """
    if z <= 1.0:
        cosine = log(z) + EULER
        sine = z - HALF_PI
        term = z
        k = 1.0
        while k < 16.0:
            term *= -z / (2.0 * k)
            cosine += term / (2.0 * k)
            term *= z / (2.0 * k + 1.0)
            sine += term / (2.0 * k + 1.0)
            k += 1.0
        return -(cosine * math.cos(z) + sine * math.sin(z))
    total = 0.0  # over even steps of log(z*t), as of a periodic function
    s = -36.0
    while s < 4.5:
        y = exp(s)
        t = y / z
        total += exp(-y) * t * (t / (1.0 + t * t))
        s += LOG_STEP
    return total * LOG_STEP


def gamma_below(shape: float, y: float) -> float:
    """The probability of a gamma variable of rate 1 to be below y, for y up to the shape."""
    above = shape - y
    size = 2.0 / (above + math.sqrt(above * above + 2.0 * y))
    total = 0.0
    t = FIRST
    while t <= LAST:
        small = exp(-t)
        v = size * exp(t - small)
        total += exp(-(above * v + y * exp_excess(-v))) * (v * (1.0 + small))
        t += STEP
    return density_at(shape, y, above) * (total * STEP)


def gamma_distance(shape: float, y: float, off: float) -> float:
    """E abs(X - y) of a gamma variable of rate 1, given off = shape - y."""
    return off if y <= 0.0 else power_distance(shape, 1.0, y, y, off, off)


def log_of_mean_density(a: float, b: float) -> float:
    """log of m**a*(1 - m)**b over the beta function at m = a/(a + b)."""
    s = a + b
    return (0.5 * (log(a / s) + log(b)) - HALF_LOG_2PI) - (stirling(a) + stirling(b) - stirling(s))


def beta_density(a: float, b: float, m: float, rest: float, above: float) -> float:
    """m**a*rest**b over the beta function, given above = a - (a + b)*m."""
    s = a + b
    root = math.sqrt(min(a, b)) * math.sqrt(max(a, b) / s) * INVERSE_SQRT_2PI
    away = bregman(a, max(s * m, LEAST), above, 0.0) + bregman(b, max(s * rest, LEAST), -above, 0.0)
    return root * exp(-(away + (stirling(a) + stirling(b) - stirling(s))))


def beta_shortfall_near_zero(a: float, b: float, m: float, rest: float, above: float) -> float:
    """`beta_shortfall` for m up to 1/2 and 2/(a + b): a sum over n*m**n*(a + b)*(a + b + 1).../((a + 1)*(a + 2)...)."""
    s = a + b
    term = 1.0
    total = 0.0
    n = 0.0
    while n < 3.0 or n * term > 1e-18 * total:
        term *= m * ((s + n) / (a + 1.0 + n))
        n += 1.0
        total += n * term
    return beta_density(a, b, m, rest, above) / a * (rest / s) * total


def log_average(v: float, m: float, rest: float) -> float:
    """log(rest*exp(v) + m) - rest*v of m = 1 - rest, which is log(m*exp(-v) + rest) + m*v, without cancellation."""
    if rest > 0.5:
        return m * exp_excess(-v) - phi(m * expm1(-v))
    t = rest * expm1(v)
    return log1p(t) - rest * v if t > 0.5 else rest * exp_excess(v) - phi(t)


def beta_shortfall(a: float, b: float, m: float, rest: float, above: float) -> float:
    """E max(m - X, 0) of a beta variable, for m = 1 - rest up to its mean, above = a - (a + b)*m."""
    s = a + b
    slope = max(above, 0.0)
    size = 2.0 / (slope + math.sqrt(slope * slope + 2.0 * s * m * rest))
    total = 0.0
    t = FIRST
    while t <= LAST:
        small = exp(-t)
        v = size * exp(t - small)
        fall = -expm1(-v)
        lost = slope * v + s * log_average(v, m, rest)
        total += fall / (rest + m * exp(-v)) * exp(-lost) * (v * (1.0 + small))
        t += STEP
    return beta_density(a, b, m, rest, above) * m * rest * (total * STEP)


def beta_distance(a: float, b: float, m: float) -> float:
    """E abs(X - m) of a beta variable."""
    s = a + b
    rest, lost = two_sum(1.0, -m)
    above = difference_of_products(a, rest, b, m) + a * lost
    off = above / s
    if m <= 0.0 or m >= 1.0:
        return a / s - m if m <= 0.0 else b / s - rest
    if m <= 0.5 and s * m <= 2.0:
        return off + 2.0 * beta_shortfall_near_zero(a, b, m, rest, above)
    if rest <= 0.5 and s * rest <= 2.0:
        return 2.0 * beta_shortfall_near_zero(b, a, rest, m, -above) - off
    if off >= 0.0:
        return off + 2.0 * beta_shortfall(a, b, m, rest, above)
    return 2.0 * beta_shortfall(b, a, rest, m, -above) - off


def scaled_erfc(x: float) -> float:
    """exp(x*x) times the integral of 2/sqrt(pi)*exp(-t*t) from x >= 0 on.

    Examples
    --------
    >>> round(float(scaled_erfc(1.0)), 12)
    0.427583576156
    """
    if x < 2.0:
        return exp(x * x) * math.erfc(x)
    # 1/(x + 1/(2*x + 2/(x + 3/(2*x + ...)))) over sqrt(pi), Laplace.
    rest = x
    n = 20.0 + float(int(160.0 / (x * x)))
    while n > 0.0:
        rest = x + 0.5 * n / rest
        n -= 1.0
    return INVERSE_SQRT_PI / rest
