"""The few floating-point primitives that every back end supplies itself.

The Python text here is the definition; `klnumba.kernels.compiler` puts the
machine instruction in its place.
"""

from __future__ import annotations

from fractions import Fraction


def fma(x: float, y: float, z: float) -> float:
    """x*y + z with a single rounding."""
    return float(Fraction(x) * Fraction(y) + Fraction(z))
