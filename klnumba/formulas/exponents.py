"""Exponents as sums of two numbers: the relative error of exp(v) is the absolute one of v.

Where v is what is left of parts that are thousands or millions, one number of 16 digits holds few or none of those that
count. Parts up to `ENOUGH` leave digits enough in one number.
"""

from __future__ import annotations

from klnumba.formulas.elementary import two_sum
from klnumba.formulas.logarithms import log_of_move, log_ratio_beyond, log_twofold
from klnumba.formulas.primitives import fma
from klnumba.formulas.ranges import gap, times_exp_excess
from klnumba.formulas.special import HALF_LOG_2PI, digamma, exp_excess, log_gamma, stirling
from klnumba.formulas.twofold import over, plus, times

ENOUGH = 32.0
UNBOUNDED = 1e200  # parts beyond it are not told apart
LEAST = 1e-290  # of numbers below it a quotient of two parts loses digits


def shows(x: float) -> bool:
    """Whether the digits that one number loses of a part of this size show in an exponential."""
    return ENOUGH < abs(x) < UNBOUNDED


def log_ratio_twofold(a: float, b: float) -> tuple[float, float]:
    """log(a/b) of positive numbers as the sum of two.

    Examples
    --------
    >>> high, low = log_ratio_twofold(1.0, 3.0)
    >>> print(f"{high} {low:.6e}")
    -1.0986122886681098 9.071297e-17
    """
    d = a - b
    if abs(d) < b / 181.0:
        return log_of_move(b, 0.0, d)
    if a > LEAST and 1.0 / UNBOUNDED < a / b < UNBOUNDED:  # the logarithms of both may be far larger than that
        ratio, ratio_low = over(a, 0.0, b, 0.0)
        high, low = log_twofold(ratio)
        return two_sum(high, low + ratio_low / ratio)
    return log_ratio_beyond(a, b, 0.0)


def log_of_products_twofold(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """log(a*b/(c*d)) of positive numbers as the sum of two."""
    return plus(*log_ratio_beyond(a, c, 0.0), *log_ratio_beyond(b, d, 0.0))


def log_gamma_twofold(x: float, x_low: float) -> tuple[float, float]:
    """log-gamma(x + x_low) as the sum of two numbers, with an error of 1e-15 or so: that of the small terms.

    Examples
    --------
    >>> high, low = log_gamma_twofold(1e12, 0.0)
    >>> print(f"{high} {low:.6e}")
    26631021115915.652 -7.075589e-04
    """
    if x < ENOUGH:
        return log_gamma(x), digamma(x) * x_low
    high, low = log_twofold(x)
    half, lost = two_sum(x, -0.5)
    first, first_low = times(half, lost + x_low, high, low + x_low / x)
    first, first_low = plus(first, first_low, -x, -x_low)
    return plus(first, first_low, HALF_LOG_2PI, stirling(x))


def log_gamma_rise_twofold(a: float, q: float) -> tuple[float, float]:
    """log-gamma(a + q) - log-gamma(a) as the sum of two numbers, for q > 0."""
    high, low = log_gamma_twofold(*two_sum(a, q))
    if a >= 1.0:
        first, first_low = log_gamma_twofold(a, 0.0)
        return plus(high, low, -first, -first_low)
    pole, pole_low = log_twofold(a)
    high, low = plus(high, low, pole, pole_low)
    return plus(high, low, -log_gamma(1.0 + a), 0.0)


def log_gamma_1p_twofold(above: float, below: float) -> tuple[float, float]:
    """log-gamma(1 + above/below) as the sum of two numbers."""
    r, r_low = over(above, 0.0, below, 0.0)
    return log_gamma_twofold(*plus(1.0, 0.0, r, r_low))


def difference_over_twofold(x: float, y: float, scale: float) -> tuple[float, float]:
    """(x - y)/scale as the sum of two numbers, the second 0 where the first is beyond what is told apart."""
    d, lost = two_sum(x, -y)
    high, low = over(d, lost, scale, 0.0)
    return (high, low) if abs(high) < UNBOUNDED else (d / scale, 0.0)


def exp_excess_of_difference(x: float, x_low: float, y: float, y_low: float) -> float:
    """exp(v) - 1 - v >= 0 for v = x - y; infinite where both are, for a function that is so at both ends."""
    if not (abs(x) < UNBOUNDED and abs(y) < UNBOUNDED):
        return exp_excess(gap(x, y))
    return times_exp_excess(1.0, *plus(x, x_low, -y, -y_low))


def plus_half_square(x: float, x_low: float, scale: float) -> tuple[float, float]:
    """x + scale*scale/2 as the sum of two numbers, the second 0 where they are beyond what is told apart."""
    square = scale * scale
    if not (square < UNBOUNDED and abs(x) < UNBOUNDED):
        return x + 0.5 * square, 0.0
    return plus(x, x_low, 0.5 * square, 0.5 * fma(scale, scale, -square))
