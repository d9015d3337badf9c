"""Cells of rows of probabilities, fast: of normal numbers and zeros, each with a guard that says whether it is right.

The guard is an integer: at least `SMALLEST_NORMAL_BITS` where the cell is right. See `formulas.divergences` for the
decomposition.
"""

from __future__ import annotations

import numpy as np

from klnumba.formulas.elementary import LN2_HI, LN2_LO, two_sum
from klnumba.formulas.odd_series import (
    EXPONENT,
    EXPONENT_F32,
    LN2_HI_BITS,
    LN2_LO_BITS,
    LN2_REST_F32,
    LN2_SHORT_F32,
    ONE_BITS,
    ONE_BITS_F32,
    SMALLEST_NORMAL_BITS,
    powers,
    powers_f32,
    series,
    series_f32,
    series_in_pairs,
)
from klnumba.formulas.primitives import fma


def kl_cell(p: float, q: float, c: float) -> tuple[float, np.int64]:
    """p*log(p/q) - p + q for float64, and a guard.

    The value is right where the guard is at least `SMALLEST_NORMAL_BITS` and p
    and q are finite: where p > 0, q is a positive normal number, and neither
    is negative. A NaN or an infinity shows in the sums of p and q. `c` is there
    for `kl_cell_scaled`, which runs in the same loops.
    """
    absent = p == 0.0
    x = 1.0 if absent else p  # then the cell is q, whatever comes out; dividing what is left of a zero would be slow
    power, q2 = towards(x, q)
    g = normal_bregman(x, q, q2, x - q2, power)  # in any case: in a branch it would be of p, whatever x is
    return q if absent else g, guard_of(absent, x, q)


def towards(p: float, q: float) -> tuple[np.int64, float]:
    """The power of two between p and q, as a difference of bits, and q times this power."""
    bits_q = np.float64(q).view(np.int64)
    power = powers(np.float64(p).view(np.int64) - bits_q)
    return power, np.int64(bits_q + power).view(np.float64)


def normal_bregman(p: float, q: float, q2: float, d: float, power: np.int64) -> float:
    """p*log(p/q) - p + q, given q2 and the power from `towards`, and d = p - q2."""
    pk = p * float(power)  # times 2**52, which takes one shift less
    s = d / (p + q2)
    z = s * s
    return s * (d + p * (z * series_in_pairs(z))) + (pk * LN2_LO_BITS + (pk * LN2_HI_BITS + (q - q2)))


def guard_of(absent: bool, x: float, q: float) -> np.int64:
    """The guard of a cell, of which x is p or, where p is absent, 1."""
    bits = np.float64(q).view(np.int64)
    return min(bits | EXPONENT if absent else bits, np.float64(x).view(np.int64))


def no_cell(p: float, q: float, c: float) -> tuple[float, np.int64]:
    """Nothing: for the sums of p and q alone."""
    return 0.0, SMALLEST_NORMAL_BITS


def kl_cell_scaled(p: float, q: float, c: float) -> tuple[float, np.int64]:
    """`kl_cell` of p and c*q, the difference of which, where they are close, is that of the unrounded c*q.

    Its rounding and that of the quotient are put right to first order, as in `bregman`.
    """
    absent = p == 0.0
    x = 1.0 if absent else p
    v = 1.0 if absent else q
    whole = c * q
    c = 1.0 if absent else c
    y = c * v
    bits_p = np.float64(x).view(np.int64)
    bits_q = np.float64(y).view(np.int64)
    power = powers(bits_p - bits_q)
    q2 = np.int64(bits_q + power).view(np.float64)
    pk = x * float(power >> np.int64(52))
    near = power == np.int64(0)
    d = fma(-c, v, x) if near else x - q2
    both, lost = two_sum(x, q2)
    s = d / both
    z = s * s
    low = (x - q2) - d - fma(c, v, -q2)  # what the rounding of d lost
    r = fma(-s, both, d) - s * lost + 2.0 * low
    g = s * (d + (x * (z * series(z)) + (r if near else 0.0))) + (pk * LN2_LO + (pk * LN2_HI + (y - q2)))
    guard = np.float64(q).view(np.int64) | EXPONENT if absent else min(bits_q, bits_p)
    return g + (whole if absent else 0.0), guard


def kl_cell_f32(p: np.float32, q: np.float32, c: float) -> tuple[np.float32, np.int32]:
    """The same for float32, in float32 arithmetic."""
    absent = p == np.float32(0.0)
    x = np.float32(1.0) if absent else p
    bits_p = np.float32(x).view(np.int32)
    bits_q = np.float32(q).view(np.int32)
    power = powers_f32(np.int32(bits_p - bits_q))
    q2 = np.int32(bits_q + power).view(np.float32)
    pk = x * np.float32(np.int32(power >> np.int32(23)))
    d = x - q2
    s = d / (x + q2)
    z = s * s
    g = s * (d + x * (z * series_f32(z))) + (pk * LN2_REST_F32 + (pk * LN2_SHORT_F32 + (q - q2)))
    guard = min(np.int32(bits_q | EXPONENT_F32) if absent else bits_q, bits_p)
    return q if absent else g, guard


def kl_unfit(p: float, q: float, least: float) -> bool:
    """Whether `kl_cell` does not serve this cell and no sum would show it; `least` is the least normal number."""
    return p < 0.0 or q < 0.0 or (p > 0.0 and (p < least or q < least))


def kl_unfit_scaled(p: float, q: float, c: float, least: float) -> bool:
    """The same of p and c*q."""
    return q < 0.0 or kl_unfit(p, c * q, least)


def js_cells(p: float, q: float, c: float) -> tuple[float, float, np.int64]:
    """`kl_cell` of p and of q against their mean, and the guard of both.

    What the rounding of the mean adds to one it takes from the other, up to its square.
    """
    m = 0.5 * p + 0.5 * q
    first, guard = kl_cell(p, m, c)
    second, other = kl_cell(q, m, c)
    return first, second, min(guard, other)


def js_cells_f32(p: np.float32, q: np.float32, c: float) -> tuple[np.float32, np.float32, np.int32]:
    """The same for float32, in float32 arithmetic."""
    m = np.float32(0.5) * p + np.float32(0.5) * q
    first, guard = kl_cell_f32(p, m, c)
    second, other = kl_cell_f32(q, m, c)
    return first, second, min(guard, other)


def js_unfit(p: float, q: float, least: float) -> bool:
    """The same as `kl_unfit` for `js_cells`."""
    m = 0.5 * p + 0.5 * q
    return kl_unfit(p, m, least) or kl_unfit(q, m, least)


def sides_of(p: float, q: float, c: float) -> tuple[float, float, float]:
    """The number that stays, the one that is scaled, and by what, from the c of `finish.to_larger_mass`."""
    return p if c > 0.0 else q, q if c > 0.0 else p, abs(c)


def js_cells_scaled(p: float, q: float, c: float) -> tuple[float, float, np.int64]:
    """`js_cells` of x and f*y, whose difference is that of the unrounded f*y, with the `sides_of` p and q."""
    x, y, f = sides_of(p, q, c)
    z = f * y
    m = 0.5 * x + 0.5 * z
    half = 0.5 * fma(-f, y, x)
    first, guard = kl_cell_apart(x, m, half)
    second, other = kl_cell_apart(z, m, -half)
    return first, second, min(min(guard, other), np.float64(y).view(np.int64) | EXPONENT)  # f*y may be no less than -0


def js_unfit_scaled(p: float, q: float, c: float, least: float) -> bool:
    """The same as `kl_unfit_scaled` for `js_cells_scaled`."""
    x, y, f = sides_of(p, q, c)
    return y < 0.0 or js_unfit(x, f * y, least)


def kl_cell_apart(p: float, q: float, d: float) -> tuple[float, np.int64]:
    """`kl_cell` where p - q is known to more digits than p and q tell."""
    absent = p == 0.0
    x = 1.0 if absent else p
    power, q2 = towards(x, q)
    gap = d if power == np.int64(0) else x - q2
    g = normal_bregman(x, q, q2, gap, power)
    return q if absent else g, guard_of(absent, x, q)


def jeffreys_cells(p: float, q: float, c: float) -> tuple[float, float, np.int64]:
    """`kl_cell` there and back, and the guard of both."""
    there, guard = kl_cell(p, q, c)
    back, other = kl_cell(q, p, c)
    return there, back, min(guard, other)


def jeffreys_cells_f32(p: np.float32, q: np.float32, c: float) -> tuple[np.float32, np.float32, np.int32]:
    """The same for float32, in float32 arithmetic."""
    there, guard = kl_cell_f32(p, q, c)
    back, other = kl_cell_f32(q, p, c)
    return there, back, min(guard, other)


def jeffreys_unfit(p: float, q: float, least: float) -> bool:
    """The same as `kl_unfit` for `jeffreys_cells`."""
    return kl_unfit(p, q, least) or kl_unfit(q, p, least)


def jeffreys_cells_scaled(p: float, q: float, c: float) -> tuple[float, float, np.int64]:
    """`jeffreys_cells` of x and f*y, whose difference is that of the unrounded f*y, with the `sides_of` p and q."""
    x, y, f = sides_of(p, q, c)
    z = f * y
    gap = fma(-f, y, x)
    there, guard = kl_cell_apart(x, z, gap)
    back, other = kl_cell_apart(z, x, -gap)
    return there, back, min(min(guard, other), np.float64(y).view(np.int64) | EXPONENT)  # as of `js_cells_scaled`


def jeffreys_unfit_scaled(p: float, q: float, c: float, least: float) -> bool:
    """The same as `kl_unfit_scaled` for `jeffreys_cells_scaled`."""
    x, y, f = sides_of(p, q, c)
    return y < 0.0 or jeffreys_unfit(x, f * y, least)


def power_below(q: float) -> tuple[np.int64, float]:
    """The power of two that is nearest to q on the side of 1, and its exponent times 2**52."""
    shift = powers(np.float64(q).view(np.int64) - ONE_BITS)
    return shift, np.int64(ONE_BITS + shift).view(np.float64)


def surprise(d: float, both: float, shift: np.int64) -> float:
    """-log(q), from q less its `power_below`, and their sum: of terms of one sign."""
    s = d / both
    z = s * s
    k = float(shift)
    return -(k * LN2_HI_BITS + (2.0 * s + (s * (z * series_in_pairs(z)) + k * LN2_LO_BITS)))


def cross_entropy_cells(p: float, q: float, c: float) -> tuple[float, float, np.int64]:
    """-p*log(q), q or, from 1/2 to 2, q - 1, and a guard as that of `kl_cell`.

    The sum of the second lacks the number of those cells of the sum of q: what a row that one cell nearly fills lacks
    of 1 is not lost in a rounding.
    """
    absent = p == 0.0
    shift, power = power_below(q)
    value = p * surprise(q - power, q + power, shift)
    guard = guard_of(absent, 1.0 if absent else p, q)
    return 0.0 if absent else value, q - 1.0 if shift == np.int64(0) else q, guard


def less_one(p: float) -> float:
    """p or, from 1/2 to 2, p - 1: what `cross_entropy_cells` has of q."""
    return p - 1.0 if 0.5 < p < 2.0 else p


def cross_entropy_cells_scaled(p: float, q: float, c: float) -> tuple[float, float, np.int64]:
    """The same of p and c*q; near 1 it is the unrounded c*q of which 1 is taken."""
    absent = p == 0.0
    y = c * q
    shift, power = power_below(y)
    near = shift == np.int64(0)
    above = fma(c, q, -1.0)
    value = p * surprise(above if near else y - power, y + power, shift)
    guard = guard_of(absent, 1.0 if absent else p, min(q, y))
    return 0.0 if absent else value, above if near else y, guard


def cross_entropy_cells_f32(p: np.float32, q: np.float32, c: float) -> tuple[np.float32, np.float32, np.int32]:
    """`cross_entropy_cells` for float32, in float32 arithmetic."""
    absent = p == np.float32(0.0)
    bits = np.float32(q).view(np.int32)
    shift = powers_f32(np.int32(bits - ONE_BITS_F32))
    power = np.int32(ONE_BITS_F32 + shift).view(np.float32)
    s = (q - power) / (q + power)
    z = s * s
    k = np.float32(np.int32(shift >> np.int32(23)))
    value = -p * (k * LN2_SHORT_F32 + (np.float32(2.0) * s + (s * (z * series_f32(z)) + k * LN2_REST_F32)))
    guard = min(
        np.int32(bits | EXPONENT_F32) if absent else bits, np.float32(np.float32(1.0) if absent else p).view(np.int32)
    )
    return np.float32(0.0) if absent else value, q - np.float32(1.0) if shift == np.int32(0) else q, guard
