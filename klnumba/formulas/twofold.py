"""Sums, products and quotients of numbers of twice the digits: pairs of a number and what its rounding lost."""

from __future__ import annotations

from klnumba.formulas.elementary import two_sum
from klnumba.formulas.primitives import fma


def plus(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """a + b; where they cancel, to the digits of the larger.

    Examples
    --------
    >>> plus(1.0, 0.0, 1e-20, 0.0)
    (1.0, 1e-20)
    """
    total, lost = two_sum(a, b)
    return two_sum(total, lost + (a_low + b_low))


def times(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """a*b; below 1e-290 to fewer digits.

    Examples
    --------
    >>> times(1.0, 2.0**-60, 3.0, 0.0) == (3.0, 3 * 2.0**-60)
    True
    """
    product = a * b
    return two_sum(product, fma(a, b, -product) + (a * b_low + a_low * b))


def over(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """a/b; below 1e-290 to fewer digits.

    Examples
    --------
    >>> high, low = over(1.0, 0.0, 3.0, 0.0)
    >>> print(f"{high} {low:.6e}")
    0.3333333333333333 1.850372e-17
    """
    quotient = a / b
    return two_sum(quotient, (fma(-quotient, b, a) + (a_low - quotient * b_low)) / b)
