"""Arithmetic of numbers in twice the digits of float64, whatever they are: infinite ones and NaN as those of float64.

Each is a pair (high, low), high the sum of both rounded. What overflows has no low part, and a product below 1e-290
keeps the 16 digits of float64. `klnumba.formulas.twofold` has shorter ones, for formulas of finite numbers.
"""

from __future__ import annotations

import math

from klnumba.formulas.elementary import two_sum
from klnumba.formulas.primitives import fma


def finite(x: float) -> float:
    """x, or 0 where that is no finite number."""
    return x if abs(x) < math.inf else 0.0


def fast_two_sum(a: float, b: float) -> tuple[float, float]:
    """a + b rounded, and what that loses, abs(a) >= abs(b)."""
    s = a + b
    return s, b - (s - a)


def normal(high: float, low: float) -> tuple[float, float]:
    """The pair of a number and of what is left of it."""
    s, e = fast_two_sum(high, finite(low))
    return s, finite(e)


def total(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """a + b, also where they cancel."""
    high, error = two_sum(a, b)
    low, error_of_low = two_sum(a_low, b_low)
    high, error = fast_two_sum(high, finite(error + low))
    return normal(high, error + error_of_low)


def difference(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """a - b, also where they cancel."""
    return total(a, a_low, -b, -b_low)


def product(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """a*b."""
    high = a * b
    return normal(high, fma(a, b, -high) + (a * b_low + a_low * b))


def quotient(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """a/b, by long division: three digits, of which each takes its product with b from the rest."""
    first = a / b
    high, low = product(b, b_low, first, 0.0)
    rest, rest_low = difference(a, a_low, high, low)
    second = finite(rest / b)
    high, low = product(b, b_low, second, 0.0)
    rest, _ = difference(rest, rest_low, high, low)
    first, second = fast_two_sum(first, second)
    return total(first, second, finite(rest / b), 0.0)


def unless_zero(a: float, a_low: float, high: float, low: float) -> tuple[float, float]:
    """The second number; 0 where the first is."""
    none = (a == 0.0) & (a_low == 0.0)
    return 0.0 if none else high, 0.0 if none else low


def product_unless_zero(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """a*b, 0 where a is, whatever b is."""
    high, low = product(a, a_low, b, b_low)
    return unless_zero(a, a_low, high, low)


def quotient_unless_zero(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """a/b, 0 where a is, whatever b is."""
    high, low = quotient(a, a_low, b, b_low)
    return unless_zero(a, a_low, high, low)


def product_plus(a: float, a_low: float, b: float, b_low: float, c: float, c_low: float) -> tuple[float, float]:
    """a*b + c, as a step of a series takes it."""
    high, low = product(a, a_low, b, b_low)
    return total(high, low, c, c_low)
