"""Numbers as integers times powers of two: what exact sums are made of.

A float64 is m*2**e with an integer m below 2**53. A fixed-point number is a row of limbs of 32 bits each, kept in
int64 so that many additions fit before a carry; limb k stands for 2**(32*k - BIAS). It reaches from the least bit of
the square of the least float64, times the least weight, to far above the square of the largest. R. M. Neal, "Fast
exact summation using small and large superaccumulators", arXiv:1505.05571, 2015, describes the idea.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LIMBS = 144
BIAS = 2304
LIMB_BITS = 32
LIMB_MASK = (1 << LIMB_BITS) - 1

HALF_BITS = 27
HALF_MASK = (1 << HALF_BITS) - 1
EXPONENT_MASK = 0x7FF
MANTISSA_BITS = 52
MANTISSA_MASK = (1 << MANTISSA_BITS) - 1
HIDDEN_BIT = 1 << MANTISSA_BITS
EXPONENT_SHIFT = 1075


def magnitude(x: Any) -> tuple[Any, Any]:
    """(m, e) with abs(x) = m*2**e, of a finite float64."""
    bits = np.float64(x).view(np.int64)
    biased = (bits >> MANTISSA_BITS) & EXPONENT_MASK
    fraction = bits & MANTISSA_MASK
    if biased > 0:
        return fraction | HIDDEN_BIT, biased - EXPONENT_SHIFT
    return fraction, np.int64(1 - EXPONENT_SHIFT)


def product(m: Any, n: Any) -> tuple[Any, Any]:
    """m*n = low + high*2**54 of integers below 2**55 and 2**53, both parts below 2**55."""
    m_high, m_low = m >> HALF_BITS, m & HALF_MASK
    n_high, n_low = n >> HALF_BITS, n & HALF_MASK
    middle = m_high * n_low + m_low * n_high
    low = m_low * n_low + ((middle & HALF_MASK) << HALF_BITS)
    return low, m_high * n_high + (middle >> HALF_BITS)


def bucket(x: Any, shift: Any) -> Any:
    """Number of the interval that abs(x) lies in: the bits of x without the last `shift`, so that a power of two is cut
    into 2**(52 - shift) intervals of equal length."""
    return (np.float64(x).view(np.int64) & np.int64(0x7FFFFFFFFFFFFFFF)) >> shift
