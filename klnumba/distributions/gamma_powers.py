"""KL of powers of gamma variables from gamma distributions, for the families of which they are members.

Of Z, proportional to G**m with G of shape a and rate 1, KL from a gamma distribution of shape c and rate d is

    c*excess of d*(E Z)/c  +  excess of m*m*c/a, halved  +  c*(B - m*m/(2*a)) + c(c) - c(a) + a*c'(a),

B what log-gamma has beyond first order from a to a + m, and c(x) the rest of Stirling's formula. Everything after the
second excess is of first order in 1/a.
"""

from __future__ import annotations

from klnumba.formulas.elementary import log, two_sum
from klnumba.formulas.log_cells import phi
from klnumba.formulas.odd_series import series
from klnumba.formulas.primitives import fma
from klnumba.formulas.ranges import product, times_excess
from klnumba.formulas.special import (
    EULER,
    digamma,
    excess,
    excess_of_products,
    log_gamma,
    log_gamma_bregman,
    log_of_products,
    stirling,
    stirling_bregman,
    stirling_slope,
)

SMALL = 0.05


def log_gamma_curve(x: float, h: float) -> float:
    """log-gamma(x + 2*h) - 2*log-gamma(x + h) + log-gamma(x) >= 0, for h > 0."""
    middle = x + h
    return log_gamma_bregman(middle, middle + h, h) + log_gamma_bregman(middle, x, -h)


def power_to_gamma(a: float, square: float, beyond: float, c: float) -> float:
    """KL to the gamma distribution of shape c and the same mean, given m*m and B - m*m/(2*a)."""
    rest = (stirling(c) - stirling(a)) + a * stirling_slope(a)
    return max(0.5 * excess_of_products(square, c, a, 1.0) + (c * beyond + rest), 0.0)


def of_small_shape(a: float, m: float, c: float) -> float:
    """The same for a small a and m > 0: with log-gamma(x) = log-gamma(1 + x) - log(x), the excess of m*c/a and a rest.

    All of the rest is of the order of a and c, and so are the terms of it.
    """
    one = log_gamma_1p(a)
    slope = digamma(1.0 + a)
    r = log_of_products(m, c, a, 1.0)
    rest = (log_gamma_1p(c) - one) + a * (slope - 1.0)
    rest += c * ((1.0 + log(m) - r) + (log_gamma(a + m) - one - m * slope))
    return max(excess_of_products(m, c, a, 1.0) + rest, 0.0)


def log_gamma_1p(x: float) -> float:
    """log-gamma(1 + x) for x > 0, also where 1 + x is 1."""
    return log_gamma_bregman(1.0, 1.0 + x, x) - EULER * x if x < 0.5 else log_gamma(1.0 + x)


def square_to_gamma(a: float, c: float) -> float:
    """The same of squares."""
    if a < SMALL:
        return of_small_shape(a, 2.0, c)
    return power_to_gamma(a, 4.0, -phi(1.0 / a) - 2.0 * stirling_slope(a), c)


def root_to_gamma(a: float, c: float) -> float:
    """The same of square roots."""
    if a < SMALL:
        return of_small_shape(a, 0.5, c)
    t = 0.5 / a
    return power_to_gamma(a, 0.25, stirling_bregman(a, a + 0.5, 0.5) - a * phi_beyond_square(t), c)


def inverse_to_gamma(a: float, c: float) -> float:
    """The same of inverses, for a > 1."""
    return power_to_gamma(a, 1.0, excess(a, a - 1.0, -1.0) + stirling_slope(a), c)


def inverse_square_to_gamma(a: float, c: float) -> float:
    """The same of inverse squares, for a > 2."""
    return power_to_gamma(a, 4.0, excess(a, a - 1.0, -1.0) + excess(a, a - 2.0, -2.0) + 2.0 * stirling_slope(a), c)


def phi_beyond_square(t: float) -> float:
    """t - log(1 + t) - t*t/2 for t >= 0; up to 1 by log(1 + t) = 2*atanh(s), s = t/(2 + t)."""
    if t > 1.0:
        return phi(t) - 0.5 * t * t
    s = t / (2.0 + t)
    return -(0.5 * t * t * s + s * s * s * series(s * s))


def gamma_root(shape: float, rate: float, c: float, scale: float) -> float:
    """KL of a gamma distribution from that of `scale` times the square root of 2*G, G of shape c."""
    more, low = two_sum(shape, 1.0)
    unit, lost, k = product(rate, scale)
    below = 2.0 * c * unit
    off = low / more - (2.0 * (lost / unit) + fma(2.0 * c, unit, -below) / below)
    return times_excess(c, shape, more, below, unit, off, -2 * k) + square_to_gamma(shape, c)
