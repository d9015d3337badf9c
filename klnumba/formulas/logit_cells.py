"""Cells of rows of logits, fast: float32 in float32 arithmetic, float64 in float64.

With p = e**x and q = e**y, of rows whose exponentials neither overflow nor all but vanish, and `shift`, which is
the logarithm of the ratio of their sums or a guess of it, delta = x - y - shift is the log-ratio of a cell, and what
it adds to KL, times the sum of p,

    p * (delta + expm1(-delta)) = p * delta**2 * psi(-delta)      where delta is small
                                = p * (delta - 1) + q * e**shift  elsewhere

No logarithm is left, where delta is small q is not needed, and nothing cancels: the differences in delta keep their
rounding errors. Logarithms below -`LOWEST` count as that: their exponentials are zero, and a row in which q has one
where p does not is left to another loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.elementary import (
    HALF_F32,
    INF,
    LN2_HI,
    LN2_HI_F32,
    LN2_LO,
    LN2_LO_F32,
    LOG2_E,
    LOG2_E_F32,
    ONE_F32,
    ROUNDER,
    ROUNDER_F32,
    exp_rest,
    exp_rest_f32,
    two_sum,
)
from klnumba.formulas.primitives import fma

LOWEST = 2.0**17
# The sums that a row may have: no exponential is near overflow, and those that are zero would add nothing.
SMALLEST, LARGEST = 2.0**-40, 2.0**80
NEAR = 1.375  # |delta| from which on the polynomial does not serve
BIASED_F32 = ROUNDER_F32 + np.float32(127.0)
SIGNED_F32 = ROUNDER_F32 + np.float32(256.0)
SIGNED_BITS = np.int32(SIGNED_F32.view(np.int32) >> 9 << 9)  # the last nine hold the exponent
SIXTH_F32 = np.float32(1.0 / 6.0)
LN2_F32 = np.float32(0.6931471805599453)  # n of it are wrong by n*2**-28.9

# (expm1(r) - r)/r**2 for |r| <= 1.375: degree 14, relative error 2**-53.1, and degree 8, 2**-27.2
# (tests/reference/coefficients.py, psi_near).
N0, N1, N2, N3, N4, N5, N6, N7 = (
    0.5,
    0.16666666666666688,
    0.04166666666666628,
    0.008333333333329173,
    0.0013888888888920195,
    0.00019841269843691605,
    2.4801587292177985e-05,
    2.7557318604952056e-06,
)
N8, N9, N10, N11, N12, N13, N14 = (
    2.755732051607701e-07,
    2.505218934439898e-08,
    2.0876674350626626e-09,
    1.6053390418573443e-10,
    1.1472537378307122e-11,
    7.847463647138043e-13,
    4.815875843526572e-14,
)
M0, M1, M2, M3, M4, M5, M6, M7, M8 = (
    np.float32(0.5),
    np.float32(0.1666666567325592),
    np.float32(0.041666675359010696),
    np.float32(0.008333411067724228),
    np.float32(0.0013888688990846276),
    np.float32(0.00019826203060802072),
    np.float32(2.481166120560374e-05),
    np.float32(2.8630147426156327e-06),
    np.float32(2.7848335548696923e-07),
)


# (expm1(r) - r)/r**2 for |r| <= ln(2)/2: degree 4, relative error 2**-22.8, so that of e**r is 2**-26.9
# (tests/reference/coefficients.py, exp_quick_f32).
Q1, Q2, Q3, Q4 = (
    np.float32(0.16666577756404877),
    np.float32(0.04166685417294502),
    np.float32(0.008363146334886551),
    np.float32(0.0013901288621127605),
)


def psi(r: float) -> float:
    """(expm1(r) - r)/r**2 for |r| <= 1.375."""
    high = N8 + r * (N9 + r * (N10 + r * (N11 + r * (N12 + r * (N13 + r * N14)))))
    return N0 + r * (N1 + r * (N2 + r * (N3 + r * (N4 + r * (N5 + r * (N6 + r * (N7 + r * high)))))))


def psi_f32(r: np.float32) -> np.float32:
    """`psi` in float32."""
    return M0 + r * (M1 + r * (M2 + r * (M3 + r * (M4 + r * (M5 + r * (M6 + r * (M7 + r * M8)))))))


def power(x: float) -> float:
    """e**x; zero where that is no normal number, and infinite above 700."""
    a = -709.0 if x < -709.0 else x
    t = a * LOG2_E + ROUNDER
    n = t - ROUNDER
    high = a - n * LN2_HI
    low = n * LN2_LO
    r = high - low
    y = 1.0 + (high + (r * r * (0.5 + r * exp_rest(r)) - low))
    scale = np.int64((np.float64(t).view(np.int64) + np.int64(1023)) << np.int64(52)).view(np.float64)
    return INF if x > 700.0 else y * scale


def power_f32(x: np.float32) -> np.float32:
    """e**x in float32, within 1 ulp; zero where that is no normal number, and that of 88 above 88."""
    a = np.float32(88.0) if x > np.float32(88.0) else x
    a = np.float32(-88.0) if a < np.float32(-88.0) else a
    t = a * LOG2_E_F32 + BIASED_F32  # its last bits are the exponent of 2**n
    n = t - BIASED_F32
    r = (a - n * LN2_HI_F32) - n * LN2_LO_F32
    y = ONE_F32 + r * (ONE_F32 + r * (HALF_F32 + r * exp_rest_f32(r)))
    return y * np.int32(np.float32(t).view(np.int32) << np.int32(23)).view(np.float32)


def rough_power(x: np.float32) -> np.float32:
    """e**x to 1e-3 from -87 to 88; below, what it is there; above, nothing that counts."""
    a = x if x > np.float32(-87.0) else np.float32(-87.0)
    t = a * LOG2_E_F32 + BIASED_F32
    r = a - (t - BIASED_F32) * LN2_F32
    y = ONE_F32 + r * (ONE_F32 + r * (HALF_F32 + r * SIXTH_F32))
    return y * np.int32(np.float32(t).view(np.int32) << np.int32(23)).view(np.float32)


def quick_numbers(unit: float) -> tuple[np.float32, ...]:
    """What `quick_power` computes with, for a unit between -2 and -1 that has few bits."""
    half, q1, q2, q3, q4 = 0.5 * unit, Q1 * unit, Q2 * unit, Q3 * unit, Q4 * unit
    return np.float32(unit), np.float32(half), np.float32(q1), np.float32(q2), np.float32(q3), np.float32(q4)


def quick_power(x: np.float32, numbers: tuple[np.float32, ...]) -> tuple[np.float32, np.int32]:
    """(e**x times -unit, bits), with `quick_numbers`; where x is within +-177, no bit but the last nine is set.

    The exponent is added to the bits, which takes no multiplication; the 256 in it turn the sign of the unit. What
    float32 does not hold is negative or not finite there, and what is denormal is another number as small.
    """
    unit, half, q1, q2, q3, q4 = numbers
    t = x * LOG2_E_F32 + SIGNED_F32
    r = np.float32(fma(SIGNED_F32 - t, LN2_F32, x))
    y = unit + r * (unit + r * (half + r * (q1 + r * (q2 + r * (q3 + r * q4)))))
    bits = np.float32(t).view(np.int32)
    power = np.int32(np.float32(y).view(np.int32)) + np.int32(bits << np.int32(23))
    return np.int32(power).view(np.float32), np.int32(bits ^ SIGNED_BITS)


def slight_gap(x: np.float32, y: np.float32, shift: np.float32) -> np.float32:
    """x - y - shift, where the shift is no larger than that is on the whole: nor is then the rounding of x - y."""
    return (x - y) - shift


def any_gap(x: np.float32, y: np.float32, shift: np.float32) -> np.float32:
    """x - y - shift."""
    gap, e = two_sum(x, -y)
    return (gap - shift) + e


def logit_cells(power: Callable[..., Any], psi: Callable[..., Any], real: Any) -> tuple[Any, Any]:
    """((p, q), the cell), in the arithmetic of `real`.

    1/temperature, `inverse`, is a power of two.
    """
    one, near, lowest, infinite = real(1.0), real(NEAR), real(-LOWEST), real(np.inf)

    def held(x: Any) -> Any:
        return lowest if x < lowest else x

    def powers(x: Any, y: Any, inverse: Any) -> tuple[Any, Any]:
        """(p, q)."""
        return power(x * inverse), power(y * inverse)

    def kl(x: Any, y: Any, p: Any, q: Any, inverse: Any, shift: Any, rest: Any, ratio: Any) -> Any:
        """The cell; infinite where q is a zero and p is none, or a lesser one. ratio = e**(shift + rest)."""
        u, v = held(x * inverse), held(y * inverse)
        gap, e = two_sum(u, -v)
        s, f = two_sum(gap, -shift)
        low = (e + f) - rest
        delta = s + low
        low -= delta - s  # delta + low is right to twice the digits
        small = p * ((delta * delta + (delta + delta) * low) * psi(-delta))
        large = p * ((delta - one) + low) + q * ratio
        return infinite if v == lowest and x > y else (small if abs(delta) < near else large)

    return powers, kl


def near_cell(power: Callable[..., Any], psi: Callable[..., Any]) -> Callable[..., Any]:
    """The cell where |delta| is below `NEAR`; elsewhere it means nothing, and of two zeros delta is NaN."""

    def near(x: Any, y: Any, shift: Any, ratio: Any) -> tuple[Any, Any, Any]:
        """(p, delta, the cell); `ratio` is what `any_cell` needs."""
        p = power(x)
        gap, e = two_sum(x, -y)
        delta = (gap - shift) + e
        return p, delta, ((p * delta) * delta) * psi(-delta)

    return near


def any_cell(kind: str) -> Callable[..., Any]:
    """The cell for every delta."""
    powers, kl = LOGIT_CELLS[kind]
    real = np.dtype(kind).type
    one, zero, lowest = real(1.0), real(0.0), real(-LOWEST)

    def cell(x: Any, y: Any, shift: Any, ratio: Any) -> tuple[Any, Any, Any]:
        """(p, delta, the cell)."""
        p, q = powers(x, y, one)
        u = lowest if x < lowest else x
        v = lowest if y < lowest else y
        gap, e = two_sum(u, -v)
        return p, (gap - shift) + e, kl(x, y, p, q, one, shift, zero, ratio)

    return cell


LOGIT_CELLS = {
    "float64": logit_cells(power, psi, np.float64),
    "float32": logit_cells(power_f32, psi_f32, np.float32),
}
NEAR_CELLS = {"float64": near_cell(power, psi), "float32": near_cell(power_f32, psi_f32)}
