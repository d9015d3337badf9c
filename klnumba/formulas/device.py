"""Cells of KL for CUDA devices, where it is the number of instructions that keeps a loop from the speed of memory.

They say what `row_cells.kl_cell_f32` and `logit_cells` say, in about half the instructions: divisions and powers of
float32 are made of quick instructions of a device, zeros are not told apart but raised to the least normal number, and
no cell of logits where p and q are close needs q.

The text of an instruction here is what the CPU runs in the simulator: results as far off as NVIDIA's manual of the PTX
instructions allows, above the truth or below as the bits of the argument have it. On a device `kernels.cuda.target`
puts the instruction in its place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.elementary import (
    INF,
    LN2_HI,
    LN2_LO,
    LOG2_E,
    LOG2_E_F32,
    ROUNDER,
    exp,
    exp_rest,
    log,
    two_sum,
)
from klnumba.formulas.finish import kl_finish
from klnumba.formulas.log_cells import phi
from klnumba.formulas.logit_cells import NEAR, psi_f32
from klnumba.formulas.odd_series import MANTISSA, MANTISSA_F32, series
from klnumba.formulas.primitives import fma

ERROR = 2.0**-22  # of a power of two
LEAST, LEAST_F32 = 2.0**-1022, np.float32(2.0**-126)  # the least normal numbers
LEAST_WORD, LEAST_BITS_F32 = np.int32(1 << 20), np.int32(1 << 23)  # the upper half of the bits of one, the bits
EXPONENT_MASK, EXPONENT_MASK_F32 = np.int64(~MANTISSA), np.int32(~MANTISSA_F32)
HALF_F32 = np.int32(1 << 22)  # of a power of two, in the bits
LN2 = 0.6931471805599453
LN2_OF_BITS = np.float32(LN2 * 2.0**-23)  # the logarithm of 2**k over the bits of k
LOWEST = -(2.0**100)  # logits below count as that, and
HIGHEST = 2.0**9  # a log-ratio above tells of one, where p may have mass and q has none

# Of float64 the upper 32 bits: of 704, the farthest logarithm of a power, and of the |delta| from which on t and
# |delta|*(1 + t) cancel less than their sum and |delta|*t do.
FARTHEST = np.int32(np.float64(704.0).view(np.int64) >> 32)
NEAR_F64 = np.int32(np.float64(1.0).view(np.int64) >> 32)
SIGN, LOWER_HALF = np.int32(-(1 << 31)), np.int64((1 << 32) - 1)

# (expm1(r) - r)/r**2 for |r| <= 1.25: degree 7, relative error 2**-23.8, for cells of 16 bits
# (tests/reference/coefficients.py, psi_short_f32).
NEAR_SHORT = 1.25
P0, P1, P2, P3, P4, P5, P6, P7 = (
    np.float32(0.5),
    np.float32(0.1666666865348816),
    np.float32(0.04166692495346069),
    np.float32(0.008333245292305946),
    np.float32(0.0013880509650334716),
    np.float32(0.0001984803966479376),
    np.float32(2.5667857698863372e-05),
    np.float32(2.78148650068033e-06),
)

# (t - log1p(t))/t**2 for |t| <= 1/2: degree 10, relative error 2**-22.4; it takes at most a fifth of a sum away
# (tests/reference/coefficients.py, bend_f32).
B0, B1, B2, B3, B4, B5, B6, B7, B8, B9, B10 = (
    np.float32(0.5),
    np.float32(-0.33333495259284973),
    np.float32(0.2500036358833313),
    np.float32(-0.19987323880195618),
    np.float32(0.16647981107234955),
    np.float32(-0.14559084177017212),
    np.float32(0.1283213496208191),
    np.float32(-0.08767932653427124),
    np.float32(0.0746077448129654),
    np.float32(-0.17313243448734283),
    np.float32(0.1656506359577179),
)
# 2*(atanh(s) - s)/s**3 of z = s*s, for 0 <= z <= 1/25: degree 2, relative error 2**-20.4; it carries at most 1/15 of
# a cell (tests/reference/coefficients.py, atanh_quarter_f32).
T0, T1, T2 = np.float32(0.6666671633720398), np.float32(0.39978155493736267), np.float32(0.29983577132225037)


# --- instructions -----------------------------------------------------------------------------------------------------


def larger(x: Any, least: Any) -> Any:
    """The larger of the two; `least` where x is NaN."""
    return x if x > least else least


def held(x: Any, least: Any) -> Any:
    """The larger of the two, or NaN."""
    return least if x < least else x


def two_to(t: float, x: np.float32) -> np.float32:
    """2**t, off by 2**-22 as the bits of x have it; zero where that is no normal number."""
    bits = np.float32(x).view(np.int32)
    up = np.int32((bits >> np.int32(13) ^ bits >> np.int32(16)) & np.int32(1))  # the last bits of cells of 16 bits
    exact = exp(t * LN2)
    found = np.float32(exact + (exact if up else -exact) * ERROR)
    return np.float32(0.0) if found < LEAST_F32 else found


def power(x: np.float32, inverse: np.float32) -> np.float32:
    """e**(x*inverse), off by 2**-22; zero where that is no normal number. `inverse` is a power of two."""
    return two_to(np.float64(x) * np.float64(inverse) * LOG2_E, x)


def power_short(x: np.float32, inverse: np.float32) -> np.float32:
    """`power` of a bfloat16, whose product with the first digits of log2(e) is exact."""
    return power(x, inverse)


def reciprocal(x: np.float32) -> np.float32:
    """1/x, off by an ulp."""
    bits = np.float32(np.float32(1.0) / x).view(np.int32)
    up = np.int32(np.float32(x).view(np.int32) & np.int32(1))
    return np.int32(bits + (np.int32(1) if up else np.int32(-1))).view(np.float32)


def rough_reciprocal(x: float) -> float:
    """1/x to 20 bits."""
    return np.float64(1.0 / x) * (1.0 + 2.0**-20)


def rough_power(x: np.float32, inverse: np.float32) -> np.float32:
    """`power` of a rounded product, which is off by another |x*inverse|*2**-24."""
    return two_to(np.float64(np.float32(x * (LOG2_E_F32 * inverse))), x)


def rough_log(x: float) -> float:
    """log(x) to 20 bits, of a normal number of float32."""
    return log(x) * (1.0 + 2.0**-20)


# --- probabilities ----------------------------------------------------------------------------------------------------


def quotient(a: float, b: float) -> float:
    """a/b rounded as well as a division does but for few cases, where 1/b is a normal number."""
    r = rough_reciprocal(b)
    r = fma(fma(-b, r, 1.0), r, r)
    r = fma(fma(-b, r, 1.0), r, r)
    s = a * r
    return fma(fma(-s, b, a), r, s)


def finish_f32(g: float, p: float, q: float, floor: float, large: float) -> float:
    """`finish.kl_finish` to the digits of a float32; -1 also where nothing is left of the cells.

    Where the answer stands phi(t) is less than |t|/16 of it, |t| <= 2**-5, and three terms are plenty.
    """
    over = rough_reciprocal(p)
    over = fma(fma(-p, over, 1.0), over, over)
    t = (q - p) * over
    r = g * over - t * t * (0.5 - t * (1.0 / 3.0 - t * 0.25))
    small = (abs(t) <= 2.0**-5) & (r >= 8.0 * abs(t) + floor) & (p < large) & (q < large) & (p > 1.0 / large)
    return r if small else -1.0


def finish(g: float, p: float, q: float, floor: float, large: float) -> float:
    """`finish.kl_finish`; -1 also where nothing is left of the cells: a zero p counted as the least normal number."""
    r = kl_finish(g, p, q, floor, large)
    return r if r > 0.0 else -1.0


def psi_short(r: np.float32) -> np.float32:
    """(expm1(r) - r)/r**2 for |r| <= 1.25."""
    return P0 + r * (P1 + r * (P2 + r * (P3 + r * (P4 + r * (P5 + r * (P6 + r * P7))))))


def kl_cell(p: float, q: float) -> tuple[float, np.int32]:
    """p*log(p/q) - p + q, and bits that are negative where that does not hold, though the sums of p and q are finite.

    It does not where p or q is negative (or -0), and where p is none of the least numbers and q is none that is normal.
    A zero p counts as the least normal number, a q beside it that is less, too.
    """
    x, y = larger(p, LEAST), larger(q, LEAST)
    bits_x = np.float64(x).view(np.int64)
    bits_y = np.float64(y).view(np.int64)
    shift = bits_x - bits_y
    shift += (shift >> np.int64(63)) & MANTISSA
    q2 = np.int64(bits_y + (shift & EXPONENT_MASK)).view(np.float64)
    pk = x * np.float64(np.int32(shift >> np.int64(52)))
    d = x - q2
    s = quotient(d, x + q2)
    z = s * s
    g = s * (d + x * (z * series(z))) + (pk * LN2_LO + (pk * LN2_HI + (y - q2)))
    bits_p, bits_q = np.float64(p).view(np.int64), np.float64(q).view(np.int64)
    upper = np.int32(bits_q >> np.int64(32))
    none = np.int32(np.int64(bits_p - np.int64(1)) >> np.int64(32))  # negative where p is zero
    return g, np.int32(np.int32(bits_p >> np.int64(32)) | upper | np.int32(upper - LEAST_WORD) & ~none)


def kl_cell_f32(p: np.float32, q: np.float32) -> tuple[np.float32, np.int32]:
    """The same for float32."""
    bits_p, bits_q = np.float32(p).view(np.int32), np.float32(q).view(np.int32)
    lacks = np.int32(bits_q - LEAST_BITS_F32) & ~np.int32(bits_p - np.int32(1))
    return positive_cell_f32(larger(p, LEAST_F32), larger(q, LEAST_F32)), np.int32(bits_p | bits_q | lacks)


def positive_cell_f32(x: np.float32, y: np.float32) -> np.float32:
    """x*log(x/y) - x + y of two positive normal numbers.

    The power of two between them is the nearest one, which leaves x/(y*2**k) between 2/3 and 3/2; so where x/y is about
    4/3 the two terms cancel by two bits.
    """
    bits_x, bits_y = np.float32(x).view(np.int32), np.float32(y).view(np.int32)
    power = np.int32(np.int32(np.int32(bits_x - bits_y) + HALF_F32) & EXPONENT_MASK_F32)
    q2 = np.int32(bits_y + power).view(np.float32)
    d = x - q2
    s = d * reciprocal(x + q2)
    z = s * s
    return s * (d + x * (z * (T0 + z * (T1 + z * T2)))) + ((x * np.float32(power)) * LN2_OF_BITS + (y - q2))


# --- logits -----------------------------------------------------------------------------------------------------------


def bend(t: float) -> float:
    """t - log1p(t); infinite where 1 + t, of which t has lost digits, is below 1/2."""
    return phi(t) if t >= -0.5 else INF


def bend_f32(t: float) -> float:
    """The same to the digits of a float32; infinite where t is above 1/2 in size."""
    r = np.float32(t)
    high = B5 + r * (B6 + r * (B7 + r * (B8 + r * (B9 + r * B10))))
    ratio = B0 + r * (B1 + r * (B2 + r * (B3 + r * (B4 + r * high))))
    return t * (t * np.float64(ratio)) if abs(t) <= 0.5 else INF


def within(x: float, limit: np.int32) -> float:
    """The x of a size up to a limit, whose upper 32 bits are given, with its sign; for a larger x, or NaN, about that.

    Whole numbers do that: comparisons of float64 would keep the unit that the loop waits for.
    """
    bits = np.float64(x).view(np.int64)
    upper = np.int32(bits >> np.int64(32))
    sign, size = np.int32(upper & SIGN), np.int32(upper & ~SIGN)
    size = limit if limit < size else size
    return np.int64((np.int64(sign | size) << np.int64(32)) | (bits & LOWER_HALF)).view(np.float64)


def power_f64(x: float, inverse: float) -> float:
    """e**(x*inverse) within 1 ulp: from about e**-704 to e**704, also for an x beyond, or NaN."""
    a = within(x * inverse, FARTHEST)
    t = a * LOG2_E + ROUNDER
    n = t - ROUNDER
    r = (a - n * LN2_HI) - n * LN2_LO
    y = 1.0 + r * (1.0 + r * (0.5 + r * exp_rest(r)))
    return np.int64(np.float64(y).view(np.int64) + (np.float64(t).view(np.int64) << np.int64(52))).view(np.float64)


def gap(x: Any, y: Any, inverse: Any, shift: Any) -> Any:
    """(x - y)*inverse - shift, rounded after the subtraction of the shift."""
    between, lost = two_sum(x, -y)
    return fma(lost, inverse, fma(between, inverse, -shift))


def quick_gap(x: Any, y: Any, inverse: Any, shift: Any) -> Any:
    """The same with x - y rounded: a delta that is far less than the shift has lost digits."""
    return fma(x - y, inverse, -shift)


def plain_gap(x: Any, y: Any, inverse: Any, shift: Any) -> Any:
    """The same where the inverse is 1 and the shift 0."""
    return x - y


Gap = Callable[[Any, Any, Any, Any], Any]


def no_bound(x: Any, least: Any) -> Any:
    """The number itself, which is known not to be below `least`."""
    return x


def logit_cell_f32(
    power: Callable[..., Any], psi: Callable[..., Any], near: float, gap: Gap, held: Callable[..., Any] = held
) -> Callable[..., Any]:
    """The cell of two logits in float32; `held` sees to it that none is below `LOWEST`.

    With p = e**x and q = e**y, both over the temperature, and delta = x - y - shift, the cell's G = p*(delta +
    expm1(-delta)) and H = p*delta; E = G - H is q*ratio - p, where ratio = e**shift. Where delta is small G comes from
    a polynomial, elsewhere from q. So the sum of E, which tells how far off the shift is, is as accurate as that of G,
    and of a row with small deltas no q counts.
    """
    bound, lowest = np.float32(near), np.float32(LOWEST)

    def cell(x: Any, y: Any, inverse: Any, shift: Any, ratio: Any) -> tuple[Any, Any, Any, Any]:
        """(G, p, H, delta); they do not hold where delta is above `HIGHEST`."""
        u, v = held(x, lowest), held(y, lowest)
        p, q = power(u, inverse), power(v, inverse)
        delta = gap(u, v, inverse, shift)
        h = p * delta
        g = h * (delta * psi(-delta))
        return (g if abs(delta) < bound else h + fma(q, ratio, -p)), p, h, delta

    return cell


def logit_cell_f64(gap: Gap, held: Callable[..., Any] = held) -> Callable[..., Any]:
    """The same in float64, of one exponential less and without a second polynomial.

    The larger of p and q*ratio, and t = expm1(-|delta|), which is the other one over it, less 1, give all: where p is
    the larger one G = p*(|delta| + t), else G = -q*ratio*(t + |delta|*(1 + t)).
    With |delta| = -(n*log(2) + r) no term is larger than what it adds to by far, and where n is 0 only r**2 is left.
    """

    def cell(x: float, y: float, inverse: float, shift: float, ratio: float) -> tuple[float, float, float, float]:
        u, v = held(x, LOWEST), held(y, LOWEST)
        delta = gap(u, v, inverse, shift)
        p_is_less = np.float64(delta).view(np.int64) < 0
        larger = power_f64(v if p_is_less else u, inverse) * (ratio if p_is_less else 1.0)
        d = abs(delta)
        a = -within(d, FARTHEST)
        m = a * LOG2_E + ROUNDER
        n = m - ROUNDER
        r = (a - n * LN2_HI) - n * LN2_LO
        rest = (r * r) * (0.5 + r * exp_rest(r))
        scale = np.int64((np.float64(m).view(np.int64) + np.int64(1023)) << np.int64(52)).view(np.float64)
        less = scale - 1.0
        t = fma(scale, r + rest, less)
        lesser = fma(scale, r + rest, scale)
        both = fma(scale, rest, fma(less, r, fma(-n, LN2_HI, less) - n * LN2_LO))  # |delta| + t
        is_near = np.int32(np.float64(d).view(np.int64) >> np.int64(32)) < NEAR_F64
        factor = (t if is_near else lesser) if p_is_less else 0.0
        g = fma(factor, d, t if p_is_less and not is_near else both)
        p = larger * (lesser if p_is_less else 1.0)
        return (-larger if p_is_less else larger) * g, p, p * delta, delta

    return cell


LOGIT_CELLS: dict[str, Callable[..., Callable[..., Any]]] = {
    "float64": logit_cell_f64,
    "float32": functools.partial(logit_cell_f32, power, psi_f32, NEAR),
    "float16": functools.partial(logit_cell_f32, power, psi_short, NEAR_SHORT),
    "bfloat16": functools.partial(logit_cell_f32, power_short, psi_short, NEAR_SHORT),
}
BENDS = {"float64": bend, "float32": bend_f32}
FINISHES = {"float64": finish, "float32": finish_f32}
KL_CELLS = {"float64": kl_cell, "float32": kl_cell_f32}
