"""log E exp(-z*X), for pairs with a Gumbel distribution.

It is a sum of positive terms, or the density of exp(-z*X) at its peak times an integral that goes from there to both
sides. The integral is taken by a trapezoidal rule after v = exp(t - exp(-t)) (Takahasi and Mori 1974).
"""

from __future__ import annotations

import math

from klnumba.formulas.divergences import bregman
from klnumba.formulas.elementary import exp, expm1, log, log1p, two_sum
from klnumba.formulas.integrals import log_of_mean_density
from klnumba.formulas.log_cells import phi
from klnumba.formulas.ranges import TINY
from klnumba.formulas.twofold import over, plus, times

STEP = 1.0 / 64.0
FIRST, LAST = -5.2, 5.5  # where exp(t - exp(-t)) is 1e-81, and 244
FARTHEST = 186.0  # v/size begins at 1e-81: beyond, a peak lies before the first node and nodes closer find no more
RARE, LONGEST = 1e-10, 600.0  # where X is all but 1 the sum is of that alone which is not
SMALL = 8.0  # up to here the sum serves; its parts are as large


def one_side(m: float, rest: float, a: float, b: float, peak: float, tail: float) -> float:
    """The integral of the density of a beta variable times exp(-z*X), over the odds, relative to that at the peak m.

    The nodes reach as far as the wider of peak and tail. Where that is many units of the log-odds, or many peaks, the
    steps are shorter: exp(-z*X) ends within a unit.
    """
    size = max(peak, tail)
    apart = log(size / min(peak, 1.0))
    step = STEP / float(math.ceil(1.0 + 0.5 * (apart if apart < FARTHEST else FARTHEST)))
    return sum_beside(step, size, m, rest, a, b) * step


def sum_beside(step: float, size: float, m: float, rest: float, a: float, b: float) -> float:
    """The integrand over all nodes of one side."""
    total = 0.0
    for i in range(int((LAST - FIRST) / step) + 1):
        total += beside(FIRST + i * step, size, m, rest, a, b)
    return total


def beside(t: float, size: float, m: float, rest: float, a: float, b: float) -> float:
    """The integrand at a node.

    At a peak the slope of -z*x is minus that of the density. What is lost between it and the place of the odds
    exp(-v)*m/rest is therefore a*phi(f - 1) + b*phi(g - 1), f and g the factors that take m and rest there.
    """
    small = exp(-t)
    v = size * exp(t - small)
    left = rest + m * exp(-v)
    fall = -expm1(-v)
    down = fall * (rest / left)
    fallen = phi(-down) if down < 0.5 else (v + log(left)) - down
    return exp(-(a * fallen + b * phi(fall * m / left))) * (v * (1.0 + small))


def beta_moment(a: float, b: float, z: float, z_low: float) -> tuple[float, float, float, float]:
    """(m, low, c, d): E exp(-z*X) = exp(c - z*(m + low)) of a beta variable, for z > 0, and d = z*(E X - m - low).

    `z_low` is the rounding error of z, which counts where z is about a + b.

    Examples
    --------
    >>> m, low, c, d = beta_moment(1.0, 1.0, 2.0, 0.0)
    >>> round(float(c - 2.0 * m), 12)
    -0.838560638429
    """
    s = a + b
    if z <= SMALL or (b < RARE and z <= LONGEST) or (z <= 0.5 * s and z * (b / s) <= SMALL):
        return 1.0, 0.0, log(1.0 + sum_of_moments(b, s, z)), -z * (b / s)
    gap = (max(a, b) - z) + min(a, b) - z_low
    root = math.hypot(gap, 2.0 * math.sqrt(b) * math.sqrt(z))
    m = 2.0 * a / (s + z + root)
    rest = 2.0 * b / (gap + root) if gap > 0.0 else (root - gap) / (2.0 * z)
    curvature = m * rest * root
    if curvature < TINY:  # X lies at an end, but for less than what counts
        return (0.0, 0.0, log(b / s + (a / s) * exp(-z)), z * (a / s)) if m < rest else (1.0, 0.0, 0.0, -z * (b / s))
    size = 1.0 / math.sqrt(curvature)
    integral = log(one_side(m, rest, a, b, size, 1.0 / a) + one_side(rest, m, b, a, size, 1.0 / b))
    over_mean = z * m * rest  # a - s*m, in which few digits of m would be left where that is close to a/s
    fallen = a * phi(-rest) if rest <= m else math.inf
    fall = ((a - z) - z_low) * rest
    if fallen + abs(fall) + b < away(a, b, s, m, rest, over_mean, 0.0):  # the terms from the end are the smaller ones
        shares = b * log(rest * (s / b)) - a * log1p(-b / s)
        return 1.0, 0.0, (log_of_mean_density(a, b) + integral) + (shares - fallen - fall), -z * (b / s)
    return at_peak(a, b, z, m, rest, over_mean, integral)


def sum_of_moments(b: float, s: float, z: float) -> float:
    """E exp(z*(1 - X)) - 1, the sum of z**n/n! times the moments of 1 - X."""
    term = 1.0
    total = 0.0
    n = 0.0
    while term > 1e-34 * total:  # what derivatives need
        term *= z * ((b + n) / ((s + n) * (n + 1.0)))
        total += term
        n += 1.0
    return total


def at_peak(
    a: float, b: float, z: float, m: float, rest: float, over_mean: float, integral: float
) -> tuple[float, float, float, float]:
    """What `beta_moment` gives, of a peak that is the sum of two numbers: thousands of units of c show its rounding.

    The integral, which hardly moves with it, is given by its logarithm.
    """
    lost = low = 0.0
    s, s_low = two_sum(a, b)
    if m >= rest:
        rest, rest_low = over(*two_sum(b, over_mean), s, s_low)
        m, low = two_sum(1.0, -rest)
        low -= rest_low
    else:
        if over_mean < 0.5 * a:
            m, low = over(*two_sum(a, -over_mean), s, s_low)
        else:
            over_mean, lost = plus(a, 0.0, *times(-s, -s_low, m, 0.0))
        rest = 1.0 - m
    c = (log_of_mean_density(a, b) + integral) - away(a, b, s, m, rest, over_mean, lost)
    return m, low, c, z * (over_mean / s)


def away(a: float, b: float, s: float, m: float, rest: float, d: float, low: float) -> float:
    """By how much the logarithm of m**a*rest**b is below that at the mean, given a - s*m = d + low."""
    return away_from(a, s, m, d, low) + away_from(b, s, rest, -d, -low)


def away_from(x: float, s: float, share: float, d: float, low: float) -> float:
    """x*log(x/y) - x + y for y = s*share, which may be below the range, given x - y = d + low."""
    unit = 2.0**500 if s * share < 1e-250 else 1.0
    return bregman(x * unit, s * unit * share, d * unit, low * unit) / unit


def log_pareto_moment(alpha: float, z: float) -> float:
    """log E exp(-z*(X - 1)) of a Pareto variable of scale 1, z > 0.

    With I(a) = int exp(-a*u - z*(exp(u) - 1)) du, u > 0, the moment is alpha*I(alpha), or 1 - z*I(alpha - 1) by parts:
    the second keeps the digits of a moment near 1. Of alpha near 1 its integrand ends as if cut off, and nodes miss it.
    """
    near_1 = alpha > 1.5 and z < alpha - 1.0
    a = alpha - 1.0 if near_1 else alpha
    total = 0.0
    t = FIRST
    while t <= LAST:
        small = exp(-t)
        u = exp(t - small) / (a + z)
        total += exp(-(a * u + z * expm1(min(u, 700.0)))) * (u * (1.0 + small))
        t += STEP
    integral = total * STEP
    return log1p(-z * integral) if near_1 else log(alpha * integral)
