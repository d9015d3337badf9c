"""log E exp(-z*X), for pairs with a Gumbel distribution.

It is a sum of positive terms, or the density of exp(-z*X) at its peak times an integral that goes from there to both
sides. The integral is taken by a trapezoidal rule after v = exp(t - exp(-t)) (Takahasi and Mori 1974).
"""

from __future__ import annotations

import math

from klnumba.formulas.divergences import generalized_kl
from klnumba.formulas.elementary import exp, expm1, log, two_sum
from klnumba.formulas.exponents import UNBOUNDED
from klnumba.formulas.integrals import log_beta_density, log_of_mean_density
from klnumba.formulas.kumaraswamy_cells import log_blend_excess
from klnumba.formulas.ranges import TINY
from klnumba.formulas.special import exp_excess
from klnumba.formulas.twofold import over, plus, times

STEP = 1.0 / 64.0
FIRST, LAST = -4.5, 5.5  # where exp(t - exp(-t)) is 1e-41, and 244
FARTHEST = 94.0  # v/size begins at 1e-41: beyond, a peak lies before the first node and nodes closer find no more
SMALL = 50.0  # up to here the sum serves


def one_side(m: float, rest: float, tilt: float, s: float, peak: float, tail: float) -> float:
    """The integral of the density of a beta variable times exp(-z*X), over the odds, relative to that at the peak m.

    At the peak the slopes of both are the same, `tilt`. The nodes reach as far as the wider of peak and tail. Where
    that is many units of the log-odds, or many peaks, the steps are shorter: exp(-z*X) ends within a unit.
    """
    size = max(peak, tail)
    apart = log(size / min(peak, 1.0))
    step = STEP / float(math.ceil(1.0 + 0.5 * (apart if apart < FARTHEST else FARTHEST)))
    return sum_beside(step, size, m, rest, tilt, s) * step


def sum_beside(step: float, size: float, m: float, rest: float, tilt: float, s: float) -> float:
    """The integrand over all nodes of one side."""
    total = 0.0
    t = FIRST
    while t <= LAST:
        total += beside(t, size, m, rest, tilt, s)
        t += step
    return total


def beside(t: float, size: float, m: float, rest: float, tilt: float, s: float) -> float:
    """The integrand at a node."""
    small = exp(-t)
    v = size * exp(t - small)
    fall = -expm1(-v)
    straight = exp_excess(-v)
    left = rest + m * exp(-v)  # 1 - m*fall
    lost = s * log_blend_excess(rest, m, v) + tilt * (straight - m * fall * (fall / left))
    return exp(-lost) * (v * (1.0 + small))


def beta_moment(a: float, b: float, z: float) -> tuple[float, float, float, float]:
    """(m, low, c, d): E exp(-z*X) = exp(c - z*(m + low)) of a beta variable, for z > 0, and d = z*(E X - m - low).

    Examples
    --------
    >>> m, low, c, d = beta_moment(1.0, 1.0, 2.0)
    >>> round(float(c - 2.0 * m), 12)
    -0.838560638429
    """
    s = a + b
    if z <= SMALL or (z <= 0.5 * s and z * (b / s) <= SMALL):
        term = 1.0
        total = 0.0
        n = 0.0
        while term > 1e-34 * total:  # what derivatives need
            term *= z * ((b + n) / ((s + n) * (n + 1.0)))
            total += term
            n += 1.0
        return 1.0, 0.0, log(1.0 + total), -z * (b / s)
    root = math.hypot(s - z, 2.0 * math.sqrt(b) * math.sqrt(z))
    m = 2.0 * a / (s + z + root)
    rest = 2.0 * b / (s - z + root) if s > z else (z - s + root) / (2.0 * z)
    tilt = z * m * rest
    curvature = m * rest * s + tilt * (1.0 - 2.0 * m)
    if curvature < TINY:  # X lies at an end, but for less than what counts
        return (0.0, 0.0, log(b / s + (a / s) * exp(-z)), z * (a / s)) if m < rest else (1.0, 0.0, 0.0, -z * (b / s))
    size = 1.0 / math.sqrt(curvature)
    integral = one_side(m, rest, tilt, s, size, 1.0 / a)
    integral += one_side(rest, m, -tilt, s, size, 1.0 / b)
    if s + z < UNBOUNDED:
        return peak_in_two(a, b, z, m, rest, log(integral))
    return m, 0.0, log_beta_density(a, b, m, rest) + log(integral), z * (tilt / s)


def peak_in_two(
    a: float, b: float, z: float, m: float, rest: float, integral: float
) -> tuple[float, float, float, float]:
    """What `beta_moment` gives, m and rest the sums of two numbers each: thousands of units of c show their roundings.

    The smaller one is taken as it is, and the integral, which hardly moves with them, is given by its logarithm.
    """
    low = left = 0.0
    if m < rest:
        rest, left = two_sum(1.0, -m)
    else:
        m, low = two_sum(1.0, -rest)
    s, lost = two_sum(a, b)
    apart = twofold_kl(a, *times(s, lost, m, low)) + twofold_kl(b, *times(s, lost, rest, left))
    mean, mean_low = over(a, 0.0, s, lost)
    off, off_low = plus(mean, mean_low, -m, -low)
    return m, low, (log_of_mean_density(a, b) + integral) - apart, z * off + z * off_low


def twofold_kl(x: float, y: float, low: float) -> float:
    """x*log(x/(y + low)) - x + y + low of positive numbers."""
    return generalized_kl(x, y) + low * ((y - x) / y)


def log_pareto_moment(alpha: float, z: float) -> float:
    """log E exp(-z*(X - 1)) of a Pareto variable of scale 1, z > 0."""
    total = 0.0
    t = FIRST
    while t <= LAST:
        small = exp(-t)
        u = exp(t - small) / (alpha + z)
        total += exp(-(alpha * u + z * expm1(min(u, 700.0)))) * (u * (1.0 + small))
        t += STEP
    return log(alpha * (total * STEP))
