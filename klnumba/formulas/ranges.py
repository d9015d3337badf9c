"""Products, quotients and differences of numbers that leave the range of float64 on the way, though not at the end.

A number is split into m*2**k, m about 1; what is done with the parts m cannot leave the range, and what is done with
the exponents k is exact.
"""

from __future__ import annotations

import math

import numpy as np

from klnumba.formulas.elementary import LN2_HI, LN2_LO, exp, expm1, log, split_exponent, two_sum
from klnumba.formulas.primitives import fma
from klnumba.formulas.special import difference_of_products, excess_of_nearly, exp_excess, log_of_products, power_of_two

MOST = 700.0  # exp of it is in the range
EXP_MOST = 1.0142320547350045e304
TINY = 1e-100  # below it log-gamma(x) is -log(x) to all digits
FAR = 1e200  # beyond it one of two numbers counts alone, unless both are this large


def unit_in_range(least: float, a: float, b: float, c: float) -> float:
    """2**-12 where one of a, b and c is so large that sums and small multiples of them may be infinite, else 1.

    Where `least` would lose digits it is 1 too.
    """
    return 0.000244140625 if max(max(abs(a), abs(b)), abs(c)) > 1e300 and least > 1e-290 else 1.0


def in_range(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> tuple[float, float, float, float]:
    """Two locations and two scales, in a larger unit where sums and small multiples of them may be infinite."""
    unit = unit_in_range(min(scale_p, scale_q), loc_p, loc_q, max(scale_p, scale_q))
    return unit * loc_p, unit * scale_p, unit * loc_q, unit * scale_q


def scaled(x: float, k: np.int64) -> float:
    """x*2**k for an x about 1, in two factors, so that nothing but the result can leave the range."""
    half = k // 2
    return x * power_of_two(half) * power_of_two(k - half)


def product(a: float, b: float) -> tuple[float, float, np.int64]:
    """a*b of positive numbers as (m + low)*2**k."""
    ma, ka = split_exponent(a)
    mb, kb = split_exponent(b)
    m = ma * mb
    return m, fma(ma, mb, -m), ka + kb


def ratio_of_products(a: float, b: float, c: float, d: float) -> float:
    """a*b/(c*d) of positive numbers."""
    above, _, k = product(a, b)
    below, _, n = product(c, d)
    return scaled(above / below, k - n)


def difference_over(a: float, b: float, c: float, d: float, unit: float, more: float) -> float:
    """(a*b - c*d)/(unit*more); all but c are positive."""
    if c == 0.0:
        return ratio_of_products(a, b, unit, more)
    ma, ka = split_exponent(a)
    mb, kb = split_exponent(b)
    mc, kc = split_exponent(abs(c))
    md, kd = split_exponent(d)
    below, _, k = product(unit, more)
    top = max(ka + kb, kc + kd)
    sign = -1.0 if c < 0.0 else 1.0
    apart = difference_of_products(ma * power_of_two(ka + kb - top), mb, sign * mc * power_of_two(kc + kd - top), md)
    return scaled(apart / below, top - k)


def gap(x: float, y: float) -> float:
    """x - y of numbers that are not both negative; infinite where both are, for a function that is so at both ends."""
    return math.inf if x == math.inf and y == math.inf else x - y


def times_log(a: float, k: float, x: float) -> tuple[float, float]:
    """a*(k*ln2 + x) as the sum of two numbers, the second a rounding error of the first."""
    whole = k * LN2_HI
    high = a * whole
    total, low = two_sum(high, a * (k * LN2_LO + x))
    return total, low + fma(a, whole, -high)


def times_exp_excess(a: float, v: float, low: float) -> float:
    """a*(exp(w) - 1 - w), w = v + low, for a positive a, also where only exp(w) is out of the range.

    The second part of w counts where the first is some hundreds, and where it is about as large as the first.
    """
    v, low = two_sum(v, low)
    if abs(v) < MOST:
        return a * (exp_excess(v) + low * expm1(v))
    big = exp(v - MOST)  # 0 for a v that is so far below 0
    return a * EXP_MOST * (big + big * low) if 0.0 < big < math.inf else a * exp_excess(v)


def times_excess(w: float, a: float, b: float, c: float, d: float, off: float, shift: np.int64 | int) -> float:
    """w times `excess_of_nearly`, also where only the ratio is out of the range."""
    value = w * excess_of_nearly(a, b, c, d, off, shift)
    if value < math.inf:
        return value
    weight, j = split_exponent(w)
    above, _, k = product(a, b)
    below, _, n = product(c, d)
    return scaled(weight * (above / below), (j + k) - n + shift)


def excess_of_square(a: float, b: float, c: float, d: float) -> float:
    """`excess` of the square of a*b/(c*d), of positive numbers of any size."""
    above, low, k = product(a, b)
    below, lost, n = product(c, d)
    return excess_of_nearly(above, above, below, below, 2.0 * (low / above - lost / below), 2 * (k - n))


def excess_over_square(a: float, c: float, d: float) -> float:
    """`excess` of a/(c*d)**2, of positive numbers of any size."""
    below, lost, n = product(c, d)
    return excess_of_nearly(a, 1.0, below, below, -2.0 * (lost / below), -2 * n)


def excess_of_power(a: float, log_b: float, c: float, d: float) -> float:
    """The same given log(b), whose exponential may be out of the range."""
    if abs(log_b) < MOST:
        return excess_of_square(a, exp(log_b), c, d)
    return exp_excess(2.0 * (log_b + (log(a) - (log(c) + log(d)))))


def distance_over(a: float, log_b: float, c: float, unit: float) -> float:
    """(a*b - c)/unit of positive a and b, given log(b)."""
    if log_b + log(a) >= MOST + 2.0:  # beyond what `in_range` leaves
        return gap(exp(log_b + log_of_products(a, 1.0, unit, 1.0)), c / unit)
    off = (a - c) + a * expm1(log_b) if abs(log_b) <= 0.5 else a * exp(log_b) - c
    return off / unit
