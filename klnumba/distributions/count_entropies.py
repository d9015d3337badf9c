"""Entropies of counts, as means of how much a count surprises.

By Stirling's formula that is a sum of terms that do not cancel. Far from both ends it is smooth, so that a sum over one
count in so many, or over any points, is as good as one over all: its error is below exp(-100). The probabilities are
divided by their sum, which takes the roundings that they share out of them.
"""

from __future__ import annotations

import math

from klnumba.distributions.odds import sigmoid, size_of_two, softplus
from klnumba.formulas.divergences import bregman
from klnumba.formulas.elementary import exp, expm1, log, log1p
from klnumba.formulas.special import HALF_LOG_2PI, stirling

SMOOTH = 200.0  # counts with more on either side are far from both ends
STEP = 0.25  # of a sum over points, in standard deviations, and of an integral
SUMMED = 100.0  # from so many failures on the entropy of a negative binomial distribution is a sum
GAMMA = 40.0  # log-odds from which it is a gamma distribution of that many failures, to exp(-40)
NORMAL = 1e100  # numbers that make it a normal distribution


def beyond_powers(x: float) -> float:
    """log(x!) - x*log(x) + x."""
    return 0.0 if x == 0.0 else HALF_LOG_2PI + 0.5 * log(x) + stirling(x)


def mean_surprises(n: float, mean: float, more: float) -> tuple[float, float]:
    """Two means over x successes of n draws, of which `mean` are expected, and n*more failures.

    With f(x, y) = log(x!) - log(y)*x + y that of f(x, mean), and that of f(n - x, n*more) - f(n, n). Their sum is the
    entropy; for infinite n, where the second is 0, that of a Poisson distribution.
    """
    if mean == 0.0:
        return 0.0, 0.0
    smooth = min(mean, n * more) > SMOOTH
    deviation = math.sqrt(mean * more)
    step = STEP * deviation if smooth else 1.0
    reach = 40.0 + 12.0 * math.sqrt(min(mean, n * more))
    origin = mean if smooth else 0.0  # where `x` is counted from
    x = max(-reach, -mean) if smooth else max(math.floor(mean - reach), 0.0)
    last = min(reach, n * more) if smooth else min(mean + reach, n)
    limited = n < math.inf
    whole = beyond_powers(n) if limited else 0.0
    end = stirling(n) if limited and n > 0.0 else 0.0
    mass, first, second = 0.0, 0.0, 0.0
    while x <= last:
        k, off = origin + x, x - (mean - origin)
        one, other = bregman(k, mean, off, 0.0) + beyond_powers(k), 0.0
        if limited:
            left = max(n - k, 0.0)
            rest = -whole if left == 0.0 else 0.5 * log1p(-k / n) + (stirling(left) - end)
            other = bregman(left, n * more, -off, 0.0) + rest
        weight = exp(-(one + other))
        if weight > 0.0:
            mass += weight
            first += weight * one
            second += weight * other
        x += step
    return first / mass, second / mass


def binomial_entropy_of(n: float, p: float, other: float) -> float:
    """That of n draws, other = 1 - p."""
    first, second = mean_surprises(n, n * min(p, other), max(p, other))
    return max(first + second, 0.0)


def surprise_of_category(n: float, p: float, other: float, largest: float) -> float:
    """What a category adds to the entropy of a multinomial distribution; the largest takes off what all share."""
    if largest == 0.0:
        return mean_surprises(n, n * p, other)[0]
    return mean_surprises(n, n * other, p)[1]


def poisson_entropy(rate: float) -> float:
    """The entropy, in nats."""
    if rate > 1e4:
        y = 1.0 / rate
        return (0.5 + HALF_LOG_2PI + 0.5 * log(rate)) - y * (1.0 / 12.0 + y * (1.0 / 24.0 + y * (19.0 / 360.0)))
    return mean_surprises(math.inf, rate, 1.0)[0]


# --- of negative binomial distributions, from the log-odds of success -------------------------------------------------


def mean_log_ways(r: float, a: float) -> float:
    """The mean of log(gamma(k + r)/(gamma(r)*k!)).

    By Malmsten's integral of log(gamma) that is the integral over t > 0 of

        (1 - E exp(-k*t))*(exp(-t) - exp(-r*t))/((1 - exp(-t))*t),

    here of exp(x) over x. The terms of a sum fall exponentially on the left and faster on the right, and no pole is
    closer to the real line than pi/2, so its error is exp(-pi*pi/STEP).
    """
    if r == 1.0:
        return 0.0
    x = min(-a - log(r) - log(1.0 + r), 0.0) - 40.0
    total = 0.0
    t = exp(x)
    while t * min(r, 1.0) < 745.0:
        missing = -expm1(-r * softplus(a + log(-expm1(-t))))
        total += missing * -(exp(-min(r, 1.0) * t) * expm1(-abs(r - 1.0) * t)) / -expm1(-t)
        x += STEP
        t = exp(x)
    return total * STEP if r > 1.0 else -total * STEP


def negative_binomial_sum(r: float, p: float, other: float) -> float:
    """The entropy of many failures, as a sum; other = 1 - p."""
    mean = r * p / other
    deviation = math.sqrt(mean / other)
    smooth = deviation > 16.0
    step = STEP * deviation if smooth else 1.0
    reach = 60.0 + 16.0 * deviation
    origin = mean if smooth else 0.0
    x = max(-reach, -mean) if smooth else max(math.floor(mean - reach), 0.0)
    last = reach if smooth else mean + reach
    mass, total = 0.0, 0.0
    while x <= last:
        k, off = origin + x, other * (x - (mean - origin))
        if k == 0.0:
            surprise = -r * (log1p(-p) if p < 0.5 else log(other))
        else:
            apart = bregman(k, (k + r) * p, off, 0.0) + bregman(r, (k + r) * other, -off, 0.0)
            surprise = (apart + size_of_two(k, r)) + log1p(k / r)
        weight = exp(-surprise)
        mass += weight
        total += weight * surprise
        x += step
    return total / mass


def negative_binomial_entropy(r: float, p: float) -> float:
    """The entropy, in nats."""
    if p == 0.0:
        return 0.0
    return negative_binomial_entropy_of(r, log(p) - log1p(-p), p, 1.0 - p, -log(p) * p / (1.0 - p), -log1p(-p))


def negative_binomial_entropy_logits(r: float, a: float) -> float:
    """`negative_binomial_entropy` from log-odds."""
    if a == -math.inf:
        return 0.0
    return negative_binomial_entropy_of(r, a, sigmoid(a), sigmoid(-a), success_per_failure(-a), softplus(a))


def success_per_failure(a: float) -> float:
    """exp(-a)*log(1 + exp(a))."""
    odds = exp(a)
    return softplus(a) / odds if odds > 1e-300 else 1.0


def negative_binomial_entropy_of(r: float, a: float, p: float, other: float, successes: float, failure: float) -> float:
    """The same, given -log(other), and -log(p) times p/other."""
    if r < SUMMED:
        return max(r * successes + r * failure - mean_log_ways(r, a), 0.0)
    if r > NORMAL and log(r) + a > log(NORMAL):
        return (0.5 + HALF_LOG_2PI) + 0.5 * (log(r) + a + failure)
    if a > GAMMA:
        return negative_binomial_sum(r, 1.0, exp(-GAMMA)) + (a - GAMMA)
    return negative_binomial_sum(r, p, other)
