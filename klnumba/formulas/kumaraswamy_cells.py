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

PI_SQUARED_6 = 1.6449340668482264
TRIGAMMA_2 = 0.6449340668482264

MOST = 700.0  # exp of it is in the range
STEP, FINEST = 1.0 / 32.0, 1.0 / 2048.0
FIRST, LAST = -4.5, 5.5  # where exp(t - exp(-t)) is 1e-41, and 244
FURTHEST = 52.0  # LAST, and the logarithm of a quarter of a ratio of rates of 1e20 and more
ROUGH, ROUGHEST = 1e-12, 1e-8  # a step halved has about twice the digits


NEARLY_1 = 1.125


def log_of_share(share: float, other: float, x: float) -> float:
    """log(share*exp(x) + other) for share + other = 1, which is 0 at x = 0."""
    if x > 0.0 or share <= 0.5:
        return log1p(share * expm1(x)) if x <= 600.0 else x + log(share)
    return x + log1p(other * expm1(-x)) if x > -1.0 else log(other + share * exp(x))


def log_of_rest(z: float, log_y: float, log_rest: float, beyond_y: float, h: float, odds: float) -> float:
    """log((1 - y**h)/(1 - middle**h)) where z is the log-odds of y, given the logarithms of y, 1 - y and y/middle.

    `odds` is that of middle**h.
    """
    if z > 600.0:
        return log(h) + log_rest + log1p(odds)
    move = h * beyond_y
    less = odds * expm1(move) if move <= 1.0 else exp(h * log_y) * (1.0 + odds) - odds
    return log1p(-less) if less <= 0.5 else log(-expm1(h * log_y)) + log1p(odds)


def log_quotient(z: float, log_y: float, more: float) -> float:
    """log R(y), where more = h - 1 is small."""
    if z > 600.0:
        return log1p(more)
    return log1p(-exp(z) * expm1(more * log_y)) if z > -600.0 else 0.0


def quotient(
    z: float, log_y: float, log_rest: float, beyond_y: float, beyond_rest: float, b: float, h: float, more: float,
    odds: float, middle: float,
) -> float:  # fmt: skip
    """log R(y)/R(middle); where h is about 1, `middle` is log R(middle)."""
    if almost_1(h):
        return log_quotient(z, log_y, more) - middle
    if z <= 0.0:
        return log_of_rest(z, log_y, log_rest, beyond_y, h, odds) - beyond_rest
    over = -expm1(h * log_y) * (1.0 + exp(z)) if z <= 600.0 else h
    return log(over * (1.0 + odds) * (b / (1.0 + b)))


def almost_1(h: float) -> bool:
    """Whether R is a power of y or so, with an exponent of less than 1; above, of b**(h - 1) digits would be lost."""
    return 0.5 <= h <= NEARLY_1


def rate_of(sign: float, b: float, low: float, high: float) -> float:
    """How fast both densities fall on the side above, of sign 1, or below; q, if far slower, has nodes of its own."""
    of_p = min(1.0, b) if sign > 0.0 else 1.0
    of_q = high if sign > 0.0 else low
    return min(of_p, max(of_q, 0.25 * of_p))


def last_of_q(sign: float, b: float, low: float, high: float) -> float:
    """Where q too is next to nothing."""
    return min(LAST + log(rate_of(sign, b, low, high) / (high if sign > 0.0 else low)), FURTHEST)


def node(
    t: float, sign: float, b: float, log_b: float, low: float, high: float, power: float, peak: float,
    shift: float, first: float, second: float, third: float, h: float, more: float, odds: float, middle: float,
) -> tuple[float, float, float]:  # fmt: skip
    """The cell p*log(p/q) - p + q at one place, q - p and p*log(p/q) there.

    All logarithms are relative to those in the middle, where the odds of y are 1/b.
    """
    small = exp(-t)
    v = exp(t - small) / rate_of(sign, b, low, high)
    z = sign * v - log_b
    tail = log1p(exp(-abs(z)))
    log_y, log_rest = min(z, 0.0) - tail, min(-z, 0.0) - tail
    of_y, of_rest = 1.0 / (1.0 + b), b / (1.0 + b)
    beyond_y, beyond_rest = -log_of_share(of_rest, of_y, -sign * v), -log_of_share(of_y, of_rest, sign * v)
    if power == high:
        of_r = quotient(z, log_y, log_rest, beyond_y, beyond_rest, b, h, more, odds, middle)
    else:
        of_r = log_of_rest(z, log_y, log_rest, beyond_y, h, odds)
    delta = shift - first * beyond_y + second * beyond_rest - third * of_r
    p = exp(peak + beyond_y + b * beyond_rest)  # of the log-odds
    log_q = (peak - shift) + (low * beyond_y + power * beyond_rest + third * of_r)
    weight = v * (1.0 + small)
    apart = p * delta
    if delta > -1.0:
        return weight * (p * exp_excess(-delta)), weight * (p * expm1(-delta)), weight * apart
    more_q = exp(min(log_q, MOST)) - p
    return weight * (more_q + apart), weight * more_q, weight * apart


def sums(
    step: float, off: float, b: float, log_b: float, low: float, high: float, power: float, peak: float,
    shift: float, first: float, second: float, third: float, h: float, more: float, odds: float, middle: float,
) -> tuple[float, float, float]:  # fmt: skip
    """Of all three over the nodes of both sides where p is."""
    close = 0.0
    surplus = 0.0
    apart = 0.0
    for side in range(2):
        sign = 1.0 - 2.0 * side
        t = FIRST + off
        while t <= LAST:
            cell, of_mass, of_log = node(
                t, sign, b, log_b, low, high, power, peak, shift, first, second, third, h, more, odds, middle
            )
            close += cell
            surplus += of_mass
            apart += of_log
            t += step
    return close, surplus, apart


def sum_beyond(
    step: float, off: float, b: float, log_b: float, low: float, high: float, power: float, peak: float,
    shift: float, first: float, second: float, third: float, h: float, more: float, odds: float, middle: float,
) -> float:  # fmt: skip
    """Of the mass further out, where q alone is."""
    total = 0.0
    for side in range(2):
        sign = 1.0 - 2.0 * side
        last = last_of_q(sign, b, low, high)
        t = LAST + (step if off == 0.0 else off)
        while t <= last:
            total += node(
                t, sign, b, log_b, low, high, power, peak, shift, first, second, third, h, more, odds, middle
            )[0]
            t += step
    return total


def step_of(log_b: float, third: float, h: float) -> float:
    """Fine enough for what 1 - y and 1 - y**h do at -log(b) and log(h) from where the integral begins.

    A power of 1 - y**h grows where it is taken to complex y, the more the greater it is.
    """
    log_h = log(max(h, 1.0))
    far = max(-log_b, abs(log_h + log_b)) if log_b < 0.0 else log_h
    least = 1.0 / (far * (10.0 if third > 0.0 else 4.5) + 1.0)
    step = STEP
    while step > least and step > FINEST:
        step *= 0.5
    return step


def divergence(
    b: float, low: float, high: float, shift: float, first: float, third: float, h: float, more: float
) -> float:
    """KL(p || q) for log(p/q) = shift - first*log(y) + (b - high)*log(1 - y) - third*log R(y), third = high - 1.

    low = 1 + first and high are the powers of y and of 1 - y in q's density of the log-odds; their digits would be lost
    in sums. Where 1 - y**h is next to 1, and to a high power, it takes the place of R, in which it would be lost.
    A step at which the sum is not yet what it is at half of it is halved again; NaN where that does not end. A surplus
    of q's mass that is no rounding of its terms is mass where there are no nodes: then the cells are not all of it.
    """
    log_b = log(b)
    power = 1.0 if high > 1.0 and h > NEARLY_1 else high
    second = b - power
    log_y, log_rest = -log1p(b), -log1p(1.0 / b)
    odds = 1.0 / expm1(-h * log_y)
    if power != high:
        middle = -log1p(odds)
    elif almost_1(h):
        middle = log_quotient(-log_b, log_y, more)
    else:
        middle = -log1p(odds) - log_rest
    size = abs(shift) + abs(first * log_y) + abs(second * log_rest) + abs(third * middle)
    shift += -first * log_y + second * log_rest - third * middle
    peak = (1.0 + b) * log_rest
    step = 4.0 * step_of(log_b, third, h)
    close, surplus, apart = sums(
        step, 0.0, b, log_b, low, high, power, peak, shift, first, second, third, h, more, odds, middle
    )
    near = not sure(apart * step, size)
    if near:
        beyond = sum_beyond(
            step, 0.0, b, log_b, low, high, power, peak, shift, first, second, third, h, more, odds, middle
        )
        close, surplus = close + beyond, surplus + beyond
    result, change = of_sums(step, close, surplus, apart, near), math.inf
    while not change <= ROUGH * result and step > FINEST:
        off = 0.5 * step
        cells, masses, logs = sums(
            step, off, b, log_b, low, high, power, peak, shift, first, second, third, h, more, odds, middle
        )
        if near:
            beyond = sum_beyond(
                step, off, b, log_b, low, high, power, peak, shift, first, second, third, h, more, odds, middle
            )
            cells, masses = cells + beyond, masses + beyond
        step, close, surplus, apart = off, close + cells, surplus + masses, apart + logs
        rough, result = result, of_sums(step, close, surplus, apart, near)
        change = abs(result - rough)
    if not change <= ROUGHEST * result:
        return math.nan
    return apart * step if near and abs(surplus * step) > ROUGH * (1.0 + size) else result


def sure(apart: float, size: float) -> bool:
    """Whether terms of such a size leave enough digits of their sum."""
    return apart > 1.0 and size <= 50.0 * apart


def of_sums(step: float, close: float, surplus: float, apart: float, near: bool) -> float:
    """The mean of log(p/q), or that of the cells, less what it makes that the mass of q was taken as 1 + surplus."""
    return close * step - phi(surplus * step) if near else apart * step


def harmonic(x: float) -> float:
    """digamma(x + 1) - digamma(1)."""
    return PI_SQUARED_6 * x - digamma_bregman(1.0, 1.0 + x, x) if x < 0.5 else digamma_from_2(x) + 1.0


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


def shortfall(a: float, b: float, place: float, log_y: float) -> float:
    """E max(place - X, 0) of the Kumaraswamy variable, y = place**a up to the mean of a beta variable."""
    total = 0.0
    t = FIRST
    while t <= LAST:
        small = exp(-t)
        w = exp(t - small) / (1.0 + a)
        x = log_y - a * w
        log_rest = log1p(-exp(x)) if x < -0.7 else log(-expm1(x))  # y may be next to 1
        total += -expm1(b * log_rest) * exp(-w) * (w * (1.0 + small))
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
        lost = slope * v + s * log_blend_excess(y, rest, v)
        total += exp(-lost) * (v * (1.0 + small))
        t += STEP
    log_rest = log1p(-y) if y < 0.5 else log(rest)
    return place * c * exp((b + 1.0) * log_rest) * (total * STEP)


def log_blend_excess(y: float, rest: float, v: float) -> float:
    """log(y*exp(v) + rest) - y*v >= 0 for y + rest = 1 and v > 0, right to the last digits of the smaller of both."""
    if y >= 0.5:
        return rest * exp_excess(-v) - phi(rest * expm1(-v))
    if v > MOST:
        return rest * v + log(y + rest * exp(-v))
    more = y * expm1(v)
    return y * exp_excess(v) - phi(more) if v <= 1.0 else log1p(more) - y * v
