"""Integrals over a Kumaraswamy variable, for its divergence from distributions with powers of x and of 1 - x.

With Y = X**a the density of p is b*(1 - y)**(b - 1), and that of q proportional to a power of y, one of 1 - y, and one
of

    R(y) = (1 - y**h)/(1 - y),

which is 1 for h = 1. The integral goes from where the odds of Y have the highest density to both sides, each by a
trapezoidal rule after v = exp(t - exp(-t)), v the distance in log-odds (Takahasi and Mori 1974).
"""

from __future__ import annotations

import math

from klnumba.formulas.elementary import exp, expm1, log, log1p
from klnumba.formulas.log_cells import phi
from klnumba.formulas.special import EULER, digamma, digamma_bregman, exp_excess, log_gamma, log_gamma_bregman

TRIGAMMA_2 = 0.6449340668482264

STEP = 1.0 / 32.0
FIRST, LAST = -4.5, 5.5  # where exp(t - exp(-t)) is 1e-41, and 244


def log_quotient(z: float, log_y: float, log_rest: float, h: float, more: float) -> float:
    """log R(y) where z is the log-odds of y, given the logarithms of y and 1 - y and more = h - 1."""
    if z > 37.0:
        return log1p(more)
    if h < 0.5:
        return log(-expm1(h * log_y)) - log_rest
    return log1p(-exp(log_y - log_rest) * expm1(more * log_y)) if z > -600.0 else 0.0


def rate_of(sign: float, b: float, first: float, second: float) -> float:
    """How fast both densities fall on the side above, of sign 1, or below; further apart, q is not integrated."""
    of_p = min(1.0, b) if sign > 0.0 else 1.0
    of_q = b - second if sign > 0.0 else 1.0 + first
    return min(of_p, max(of_q, 0.25 * of_p))


def node(
    t: float, sign: float, rate: float, b: float, log_b: float,
    shift: float, first: float, second: float, third: float, h: float, more: float,
) -> tuple[float, float]:  # fmt: skip
    """The cell p*log(p/q) - p + q at one place, and p*log R there."""
    small = exp(-t)
    v = exp(t - small) / rate
    z = sign * v - log_b
    tail = log1p(exp(-abs(z)))
    log_y = min(z, 0.0) - tail
    log_rest = min(-z, 0.0) - tail
    quotient = log_quotient(z, log_y, log_rest, h, more)
    delta = shift - first * log_y + second * log_rest - third * quotient
    log_p = log_b + log_y + b * log_rest  # of the log-odds
    p = exp(log_p)
    weight = v * (1.0 + small)
    far = exp(min(log_p - delta, 700.0)) + p * (delta - 1.0)
    return weight * (p * exp_excess(-delta) if delta > -1.0 else far), weight * (p * quotient)


def sums(
    b: float, log_b: float, shift: float, first: float, second: float, third: float, h: float, more: float
) -> tuple[float, float]:
    """Of both over all nodes of both sides."""
    close = 0.0
    moment = 0.0
    for side in range(2):
        sign = 1.0 - 2.0 * side
        rate = rate_of(sign, b, first, second)
        t = FIRST
        while t <= LAST:
            cell, of_quotient = node(t, sign, rate, b, log_b, shift, first, second, third, h, more)
            close += cell
            moment += of_quotient
            t += STEP
    return close, moment


def divergence(b: float, shift: float, first: float, second: float, third: float, h: float, more: float) -> float:
    """KL(p || q) for log(p/q) = shift - first*log(y) + second*log(1 - y) - third*log R(y).

    Of distributions close to each other it is the integral of the cells p*log(p/q) - p + q, none of which is negative;
    of others the sum of the expectations.
    """
    close, moment = sums(b, log(b), shift, first, second, third, h, more)
    apart = shift + first * (1.0 + digamma_from_2(b)) - second / b - third * (moment * STEP)
    return apart if apart > 0.5 else close * STEP


def digamma_from_2(b: float) -> float:
    """digamma(b + 1) - digamma(2)."""
    d = b - 1.0
    if abs(d) <= 0.5:
        return TRIGAMMA_2 * d - digamma_bregman(2.0, b + 1.0, d)
    return digamma(b + 1.0) - (1.0 - EULER)


def log_beta_beyond(a: float, b: float) -> float:
    """The logarithm of a times the beta function, which is zero for b = 1."""
    e = b - 1.0
    slope = 1.0 + digamma_from_2(a)
    return log_gamma_bregman(1.0, b, e) - (slope * e + log_gamma_bregman(1.0 + a, a + b, e))


def log_beta(a: float, b: float) -> float:
    """The logarithm of the beta function."""
    large, small = max(a, b), min(a, b)
    return log_gamma(small) - (small * digamma(large) + log_gamma_bregman(large, large + small, small))


def shortfall(a: float, b: float, place: float, y: float) -> float:
    """E max(place - X, 0) of the Kumaraswamy variable, y = place**a up to the mean of a beta variable."""
    total = 0.0
    t = FIRST
    while t <= LAST:
        small = exp(-t)
        w = exp(t - small) / (1.0 + a)
        total += -expm1(b * log1p(-y * exp(-a * w))) * exp(-w) * (w * (1.0 + small))
        t += STEP
    return place * (total * STEP)


def surplus(a: float, b: float, place: float, y: float, rest: float) -> float:
    """E max(X - place, 0), y = place**a = 1 - rest from that mean on."""
    c = 1.0 / a
    s = c + b + 1.0
    slope = max((b + 1.0) * y - c * rest, 0.0)
    size = 2.0 / (slope + math.sqrt(slope * slope + 2.0 * s * y * rest))
    total = 0.0
    t = FIRST
    while t <= LAST:
        small = exp(-t)
        v = size * exp(t - small)
        lost = slope * v + s * (rest * exp_excess(-v) - phi(rest * expm1(-v)))
        total += exp(-lost) * (v * (1.0 + small))
        t += STEP
    return place * c * exp((b + 1.0) * log(rest)) * (total * STEP)
