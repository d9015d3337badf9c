"""The few floating-point primitives that every back end supplies itself.

The Python text here is the definition; `klnumba.kernels.compiler` puts the
machine instruction in its place.
"""

from __future__ import annotations

from fractions import Fraction
from typing import SupportsFloat


def fma(x: SupportsFloat, y: SupportsFloat, z: SupportsFloat) -> float:
    """x*y + z with a single rounding."""
    return float(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)))
