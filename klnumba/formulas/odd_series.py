"""2*atanh(s) = 2*s + s*z*R(z), z = s*s, of which all logarithms of ratios are made, and the powers of two beside it."""

from __future__ import annotations

import numpy as np

from klnumba.formulas.elementary import LN2_HI, LN2_LO

# Shorter than the pair of `elementary`, with 12 trailing zero bits: the difference of two exponents is larger than one.
LN2_SHORT_F32 = np.float32(float.fromhex("0x1.62e000p-1"))
LN2_REST_F32 = np.float32(float.fromhex("0x1.0bfbe8p-15"))
LN2_HI_BITS, LN2_LO_BITS = LN2_HI * 2.0**-52, LN2_LO * 2.0**-52  # of a difference of exponents in their place

MANTISSA = np.int64((1 << 52) - 1)
EXPONENT = np.int64(0x7FF << 52)
MANTISSA_F32 = np.int32((1 << 23) - 1)
EXPONENT_F32 = np.int32(0xFF << 23)
SMALLEST_NORMAL_BITS = np.int64(1 << 52)
ONE_BITS = np.int64(1023 << 52)
ONE_BITS_F32 = np.int32(127 << 23)

# R(z) = 2/3 + 2z/5 + 2z**2/7 + ..., minimax on 0 <= z <= 1/9 (tests/reference/coefficients.py).
# float64: degree 9, relative error 1.9e-16; it carries at most 1/9 of a cell.
R0, R1, R2, R3, R4, R5, R6, R7, R8, R9 = (
    0.6666666666666666,
    0.40000000000012248,
    0.28571428567260348,
    0.22222222726209354,
    0.18181788285314688,
    0.1538561453664602,
    0.1331329437151748,
    0.1200980256584478,
    0.08754609019764831,
    0.16262513591225298,
)
# float32: degree 4, relative error 3e-8.
S0, S1, S2, S3, S4 = (
    np.float32(2 * 0.3333333432674408),
    np.float32(2 * 0.19999636709690094),
    np.float32(2 * 0.14306782186031342),
    np.float32(2 * 0.10690819472074509),
    np.float32(2 * 0.12378323823213577),
)


def series(z: float) -> float:
    """R(z) in float64."""
    r = R9
    r = r * z + R8
    r = r * z + R7
    r = r * z + R6
    r = r * z + R5
    r = r * z + R4
    r = r * z + R3
    r = r * z + R2
    r = r * z + R1
    return r * z + R0


def series_f32(z: np.float32) -> np.float32:
    """R(z) in float32."""
    r = S4
    r = r * z + S3
    r = r * z + S2
    r = r * z + S1
    return r * z + S0


def series_in_pairs(z: float) -> float:
    """The same with fewer operations that wait for each other, and two more."""
    w = z * z
    high = (R7 * z + R6) * w + (R5 * z + R4)
    low = (R3 * z + R2) * w + (R1 * z + R0)
    v = w * w
    return ((R9 * z + R8) * v + high) * v + low


def powers(shift: np.int64) -> np.int64:
    """A difference of the bits of two numbers, rounded towards zero to one of their exponents.

    What makes a negative one round up is shifted out of its sign: a selection is made of masks, which take longer.
    """
    return (shift + np.int64(np.uint64(shift >> np.int64(63)) >> np.uint64(12))) & ~MANTISSA


def powers_f32(shift: np.int32) -> np.int32:
    """The same of float32 numbers."""
    below = np.int32(np.uint32(np.int32(shift >> np.int32(31))) >> np.uint32(9))
    return np.int32(np.int32(shift + below) & ~MANTISSA_F32)
