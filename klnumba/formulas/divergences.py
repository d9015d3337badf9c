"""What one cell adds to each divergence, and how the sums of a row are finished.

Everything rests on one decomposition. Take out the power of two between p and
q, rounded towards zero: q2 = q*2**k, with p/q2 in [1, 2) for p >= q and in
(1/2, 1] for p <= q. With s = (p - q2)/(p + q2), |s| < 1/3 has the sign of k, and

    log(p/q)              = k*ln2 + 2*atanh(s)
    p*log(p/q) - p + q    = [p*k*ln2 + q - q2] + s*[(p - q2) + p*s*s*R(s*s)]

where both brackets are >= 0 (p*k*ln2 + q - q2 is p times the same expression
at a ratio of exactly 2**k when p = q2, and only grows from there), so that
nothing cancels: not at p = q, where k = 0 and the first bracket vanishes, and
not far from it. R is the odd series 2*atanh(s) = 2*s + s*z*R(z), z = s*s.

A cell of a divergence is a function of ``(p, q, d)``: two non-negative numbers
on a common scale and their difference p - q, which the caller forms before any
rounding of a scale, so that it is right to its last digit also where p = q to
fifteen digits.
"""

from __future__ import annotations

import math

import numpy as np

from klnumba.formulas.elementary import LN2_HI, LN2_LO, exp, two_sum
from klnumba.formulas.primitives import fma

# Shorter than the pair of `elementary`, with 12 trailing zero bits: the difference of two exponents is larger than one.
LN2_SHORT_F32 = np.float32(float.fromhex("0x1.62e000p-1"))
LN2_REST_F32 = np.float32(float.fromhex("0x1.0bfbe8p-15"))
LN2_HI_BITS, LN2_LO_BITS = LN2_HI * 2.0**-52, LN2_LO * 2.0**-52  # of a difference of exponents in their place

MANTISSA = np.int64((1 << 52) - 1)
HALF_MANTISSA = np.int64((1 << 51) - 1)
EXPONENT = np.int64(0x7FF << 52)
MANTISSA_F32 = np.int32((1 << 23) - 1)
EXPONENT_F32 = np.int32(0xFF << 23)
SMALLEST_NORMAL_BITS = np.int64(1 << 52)
ONE_BITS = np.int64(1023 << 52)
ONE_BITS_F32 = np.int32(127 << 23)
TINY_BITS, HUGE_BITS = np.int64(123 << 52), np.int64(1923 << 52)  # of 2**-900 and 2**900

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

TINY = 2.0**-900
HUGE = 2.0**900
UP = 2.0**128
LEAST = 2.0**-1074
DOWN = 2.0**-128
ALONE = 2.0**-50  # the share of a row below which all but one cell count little
DUST = 2.0**-98  # a relative difference below this is the rounding of the scale


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


# --- one cell of a row of probabilities, fast: normal numbers and zeros -------------------------------------------


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
    return q if absent else normal_bregman(x, q, q2, x - q2, power), guard_of(absent, x, q)


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
    return q if absent else normal_bregman(x, q, q2, gap, power), guard_of(absent, x, q)


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


# --- any two non-negative numbers -----------------------------------------------------------------------------------


def split_ratio(p: float, q: float, d: float) -> tuple[float, float, float, float, float]:
    """(k, s, q*2**k, p - q*2**k, scale) of two positive finite numbers, subnormal or huge ones included.

    The third and fourth are multiplied by `scale`, a power of two.
    """
    up = UP if p < TINY else (DOWN if p > HUGE else 1.0)
    uq = UP if q < TINY else (DOWN if q > HUGE else 1.0)
    x = p * up
    y = q * uq
    # `off` is the exponent that the two scalings put between x/y and p/q. Halved, the bits hold every difference.
    off = (np.int64(128) if uq > 1.0 else (np.int64(-128) if uq < 1.0 else np.int64(0))) - (
        np.int64(128) if up > 1.0 else (np.int64(-128) if up < 1.0 else np.int64(0))
    )
    bits_y = np.float64(y).view(np.int64)
    half = (np.float64(x).view(np.int64) >> np.int64(1)) - (bits_y >> np.int64(1)) + (off << np.int64(51))
    half += (half >> np.int64(63)) & HALF_MANTISSA
    k = half >> np.int64(51)
    q2 = np.int64(bits_y + ((k - off) << np.int64(52))).view(np.float64)
    d2 = d * up if k == 0 else x - q2
    return float(k), d2 / (x + q2), q2, d2, up


def log_ratio(p: float, q: float, d: float) -> float:
    """log(p/q), given d = p - q; the limits at 0 and inf."""
    k, s, _, _, _ = split_ratio(p, q, d)
    return log_of(p, q, k, s)


def sharp_log_ratio(p: float, q: float, d: float, low: float) -> float:
    """log(p/q), given p - q = d + low; s is put right for its own rounding, at the price of a second division."""
    k, s, q2, d2, scale = split_ratio(p, q, d)
    both, lost = two_sum(p * scale, q2)
    rest = low * scale if k == 0.0 else 0.0
    return log_of(p, q, k, s + (fma(-s, both, d2) + (rest - s * lost)) / both)


def log_of(p: float, q: float, k: float, s: float) -> float:
    """k*ln2 + 2*atanh(s), and the limits of log(p/q)."""
    value = k * LN2_HI + (2.0 * s + (s * (s * s * series(s * s)) + k * LN2_LO))
    if p == 0.0 or q == math.inf:
        value = -math.inf
    if q == 0.0 or p == math.inf:
        value = math.inf
    if p == 0.0 and q == 0.0:
        value = 0.0
    return math.nan if p != p or q != q or (p == math.inf and q == math.inf) else value


def bregman(p: float, q: float, d: float, low: float) -> float:
    """p*log(p/q) - p + q >= 0, given p - q = d + low, `low` the rounding error of d.

    Where p is close to q, s = d/(p + q) is corrected for its own rounding: s*d + s*r is d*d/(p + q) to one rounding.
    """
    k, s, q2, d2, scale = split_ratio(p, q, d)
    x = p * scale
    both, lost = two_sum(x, q2)
    rest = low * scale if k == 0.0 else 0.0  # far from p it would not count, and may overflow
    r = fma(-s, both, d2) + (rest - s * lost) + rest
    near = s * (d2 + (x * (s * s * series(s * s)) + r)) / scale
    far = p * (k * LN2_LO) + (p * (k * LN2_HI) + (q - q2 / scale))
    value = near if k == 0.0 else near + far
    if q == 0.0 or p == math.inf:
        value = math.inf
    if p == 0.0 or q == math.inf:
        value = q
    if p != p or q != q or (p == math.inf and q == math.inf):
        value = math.nan
    return value


# --- cells on a common scale ----------------------------------------------------------------------------------------
# Both rows sum to `mass`; d + low = p - q to twice the digits, above_p = mass - p, above_q = mass - q, however small.
# The divergence of normalised rows is sum(cells)/mass; rows that are taken as they are have the mass 1.


def multipliers(h: float, he: float, p_mass: float, q_mass: float) -> tuple[float, float, float, float]:
    """(u, ue, v, ve): what takes p and q to the larger one of their sums, whose ratio h + he is at least 1."""
    p_stays = p_mass >= q_mass
    u, ue = (1.0, 0.0) if p_stays else (h, he)
    v, ve = (h, he) if p_stays else (1.0, 0.0)
    return u, ue, v, ve


def common_mass(p_mass: float, q_mass: float) -> float:
    """The larger one, to which both rows are taken."""
    return p_mass if p_mass >= q_mass else q_mass


def on_common_mass(
    x: float, y: float, u: float, ue: float, v: float, ve: float, p_mass: float, p_rest: float, q_mass: float,
    q_rest: float,
) -> tuple[float, float, float, float, float, float]:  # fmt: skip
    """(p, q, d, low, above_p, above_q) of u*x and v*y, with the `multipliers` of rows that sum to mass + rest each.

    Each product is kept with its rounding. What a cell lacks of the sum is found before it is multiplied: beside a
    cell that is nearly all of its row the roundings of the multiplier would be more than that.
    """
    p, q = u * x, v * y
    gap, lost = two_sum(p, -q)
    tails = (fma(u, x, -p) + ue * x) - (fma(v, y, -q) + ve * y)
    d, low = two_sum(gap, lost + tails)
    dust = abs(d) < DUST * p
    above_p, above_q = u * ((p_mass - x) + p_rest), v * ((q_mass - y) + q_rest)
    return p, q, 0.0 if dust else d, 0.0 if dust else low, above_p, above_q


def kl(p: float, q: float, d: float, low: float, mass: float, above_p: float, above_q: float, weight: float) -> float:
    return bregman(p, q, d, low)


def jeffreys(
    p: float, q: float, d: float, low: float, mass: float, above_p: float, above_q: float, weight: float
) -> float:
    gap = d if abs(d) == math.inf else d + low
    return 0.0 if d == 0.0 else gap * sharp_log_ratio(p, q, d, low)


def mixture(p: float, q: float, d: float, low: float, weight: float) -> float:
    """w*KL(p||m) + (1 - w)*KL(q||m), m = w*p + (1 - w)*q: the linear parts of the two cells cancel exactly."""
    other = 1.0 - weight
    m = weight * p + other * q
    m = LEAST if m == 0.0 and p + q > 0.0 and 0.0 < weight < 1.0 else m  # half of the least number rounds to zero
    first = 0.0 if weight == 0.0 else weight * bregman(p, m, other * d, other * low)
    second = 0.0 if other == 0.0 else other * bregman(q, m, -weight * d, -weight * low)
    return first + second


def js(p: float, q: float, d: float, low: float, mass: float, above_p: float, above_q: float, weight: float) -> float:
    return mixture(p, q, d, low, weight)


def cross_entropy(
    p: float, q: float, d: float, low: float, mass: float, above_p: float, above_q: float, weight: float
) -> float:
    """-p*log(q/mass)."""
    return 0.0 if p == 0.0 and q == q else p * log_ratio(mass, q, above_q)


def entropy(
    p: float, q: float, d: float, low: float, mass: float, above_p: float, above_q: float, weight: float
) -> float:
    """-p*log(p/mass)."""
    return 0.0 if p == 0.0 else p * log_ratio(mass, p, above_p)


# --- pointwise ------------------------------------------------------------------------------------------------------


def rel_entr(p: float, q: float) -> float:
    """p*log(p/q) with the edge values of scipy.special.rel_entr."""
    finite = p > 0.0 and q > 0.0 and p < math.inf and q < math.inf
    x = p if finite else 1.0
    y = q if finite else 1.0
    value = x * log_ratio(x, y, x - y)
    if not finite:
        if p != p or q != q or (p == math.inf and q == math.inf):
            value = math.nan
        elif p == 0.0 and q >= 0.0:
            value = 0.0
        elif q == math.inf and p > 0.0:
            value = -math.inf
        else:
            value = math.inf
    return value


def plain(p: float, q: float) -> bool:
    """Whether p and q lie between 2**-900 and 2**900, or p is zero."""
    bits_p = np.float64(p).view(np.int64)
    bits_q = np.float64(q).view(np.int64)
    lowest = bits_q if p == 0.0 else min(bits_p, bits_q)
    return bool((lowest >= TINY_BITS) & (max(bits_p, bits_q) < HUGE_BITS))


def rel_entr_plain(p: float, q: float) -> tuple[float, bool]:
    """`rel_entr` of `plain` numbers, and whether these are such."""
    x = q if p == 0.0 else p
    bits_p = np.float64(x).view(np.int64)
    bits_q = np.float64(q).view(np.int64)
    power = powers(bits_p - bits_q)
    q2 = np.int64(bits_q + power).view(np.float64)
    s = (x - q2) / (x + q2)
    z = s * s
    pk = x * float(power >> np.int64(52))
    value = pk * LN2_HI + (x * (2.0 * s + s * (z * series(z))) + pk * LN2_LO)
    return 0.0 if p == 0.0 else value, plain(p, q)


def generalized_kl_plain(p: float, q: float) -> tuple[float, bool]:
    """`generalized_kl` of the same numbers."""
    return kl_cell(p, q, 1.0)[0], plain(p, q)


def generalized_kl(p: float, q: float) -> float:
    """p*log(p/q) - p + q with the edge values of scipy.special.kl_div, (1, inf) and (inf, 1) being inf."""
    finite = p > 0.0 and q > 0.0 and p < math.inf and q < math.inf
    x = p if finite else 1.0
    y = q if finite else 1.0
    d, low = two_sum(x, -y)
    value = bregman(x, y, d, low)
    if not finite:
        if p != p or q != q or (p == math.inf and q == math.inf):
            value = math.nan
        elif p == 0.0 and q >= 0.0:
            value = q
        else:
            value = math.inf
    return value


def kl_div(log_q: float, p: float) -> float:
    """p*(log p - log_q): PyTorch's loss from a log-probability and a target."""
    finite = p > 0.0 and p < math.inf
    x = p if finite else 1.0
    value = x * (log_ratio(x, 1.0, x - 1.0) - log_q)
    if not finite:
        if p == 0.0 and log_q == log_q:
            value = 0.0
        elif p == math.inf and log_q < math.inf:
            value = math.inf
        else:
            value = math.nan
    return value


def kl_div_plain(log_q: float, p: float) -> tuple[float, bool]:
    """`kl_div` of a `plain` target."""
    x = 1.0 if p == 0.0 else p
    shift, power = power_below(x)
    s = (x - power) / (x + power)
    z = s * s
    k = float(shift >> np.int64(52))
    value = x * ((k * LN2_HI - log_q) + (2.0 * s + (s * (z * series(z)) + k * LN2_LO)))
    return 0.0 if p == 0.0 else value, bool(plain(p, 1.0) & (log_q == log_q))


def kl_div_log_target(log_q: float, log_p: float) -> float:
    """exp(log_p)*(log_p - log_q)."""
    value = exp(log_p) * (log_p - log_q)
    return 0.0 if log_p == -math.inf and log_q == log_q else value


def rel_entr_cell(
    p: float, q: float, d: float, low: float, mass: float, above_p: float, above_q: float, weight: float
) -> float:
    """p*log(p/q), with every edge value: the cell of rows that are taken as they are."""
    return rel_entr(p, q)


def log_ratio_cell(
    p: float, q: float, d: float, low: float, mass: float, above_p: float, above_q: float, weight: float
) -> float:
    """log(p/q), and -inf where p = 0: its largest value is the order-infinity Renyi divergence."""
    alone = abs(above_p) + abs(above_q) < ALONE * mass  # then d may be less than its roundings
    return -math.inf if p == 0.0 else log_ratio(p, q, above_q - above_p if alone else d)
