"""Logarithms and exponentials as plain scalar text that vectorises on any processor.

A call to a mathematical library inside a loop keeps a compiler from vectorising it. The functions here have neither
calls nor branches: they use additions, multiplications, bit operations, selections and at most one division, so a
compiled loop over an array becomes packed instructions, and the same text compiles for CUDA.

Every function is right to within 1 ulp over its whole range, subnormal arguments and results included, and returns what
the IEEE standard asks for at zeros, infinities and NaN. The largest errors found are recorded in
``docs/_data/elementary_errors.json``. The polynomials come from ``tests/reference/coefficients.py``.

Each function has a float64 form and a float32 form (``log`` and ``log_f32``); the latter computes in float32
throughout. The text may be compiled with fused multiply-adds (``contract``) and without regard to the sign of zero
(``nsz``), but not with reassociation: rounding to an integer by adding and subtracting a large number needs the order
as written. Compile the functions to be inlined always: the inliner's own limit is close to their size, and a call that
is left keeps the loop from being vectorised.
"""

from typing import TypeVar

import numpy as np

Real = TypeVar("Real", float, np.float32)

INF = np.inf
NAN = np.nan

# ln2 = LN2_HI + LN2_LO. The last 20 bits of LN2_HI are zero, so that k*LN2_HI is exact for |k| < 2**20.
LN2_HI = 0.6931471803691238
LN2_LO = 1.9082149292705877e-10
LOG2_E = 1.4426950408889634

# float64 as bits: 52 bits of fraction, 11 of exponent.
SMALLEST_NORMAL = 2.0**-1022
FRACTION_MASK = 0x000FFFFFFFFFFFFF
EXPONENT_MASK = 0x7FF
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
ONE_LESS_SQRT_HALF_BITS = 0x3FF0000000000000 - SQRT_HALF_BITS
ROUNDER = 1.5 * 2.0**52  # x + ROUNDER has the integer nearest to x in its last bits
ROUNDER_BITS = 0x4338000000000000
EXP_LARGEST = 710.0  # exp is infinite from here on,
EXP_SMALLEST = -746.0  # and zero from here down
EXPM1_SMALLEST = -60.0  # expm1 is -1 from here down
EXPM1_IS_ARGUMENT = 2.0**-55

# The same for float32: 23 bits of fraction, 8 of exponent; the last 8 bits of LN2_HI_F32 are zero.
ZERO_F32 = np.float32(0.0)
HALF_F32 = np.float32(0.5)
ONE_F32 = np.float32(1.0)
TWO_F32 = np.float32(2.0)
INF_F32 = np.float32(np.inf)
NAN_F32 = np.float32(np.nan)
LN2_HI_F32 = np.float32(0.693145751953125)
LN2_LO_F32 = np.float32(1.4286068203094173e-06)
LOG2_E_F32 = np.float32(1.4426950408889634)
SMALLEST_NORMAL_F32 = np.float32(2.0**-126)
SUBNORMAL_SCALE_F32 = np.float32(2.0**24)
FRACTION_MASK_F32 = 0x007FFFFF
EXPONENT_MASK_F32 = 0xFF
SQRT_HALF_BITS_F32 = 0x3F3504F3
ONE_LESS_SQRT_HALF_BITS_F32 = 0x3F800000 - SQRT_HALF_BITS_F32
ROUNDER_F32 = np.float32(1.5 * 2.0**23)
ROUNDER_BITS_F32 = 0x4B400000
EXP_LARGEST_F32 = np.float32(89.0)
EXP_SMALLEST_F32 = np.float32(-104.0)
EXPM1_SMALLEST_F32 = np.float32(-20.0)
EXPM1_IS_ARGUMENT_F32 = np.float32(2.0**-26)

# log((1+s)/(1-s)) = 2*s + s*z*L(z), z = s*s: degree 6, [0, 0.0294373], relative error 2^-50.96.
L0 = 0.666666666666667
L1 = 0.39999999999899866
L2 = 0.28571428625918277
L3 = 0.22222211137731424
L4 = 0.18182889128344645
L5 = 0.1533171774291762
L6 = 0.14616522937330131

# The same for float32: degree 2, relative error 2^-21.68.
L0_F32 = np.float32(0.6666668653488159)
L1_F32 = np.float32(0.39988183975219727)
L2_F32 = np.float32(0.29606494307518005)

# 1/(2 + 2*f): degree 2, f in [sqrt(1/2) - 1, sqrt(2) - 1], relative error 0.019.
R0 = 0.5015
R1 = -0.5332
R2 = 0.4635
R0_F32 = np.float32(R0)
R1_F32 = np.float32(R1)
R2_F32 = np.float32(R2)

# expm1(r) = r + r*r*E(r), E(r) = 1/2 + E1*r + ...: degree 10, [-0.346608, 0.346608], relative error 2^-57.19.
E1 = 0.1666666666666667
E2 = 0.041666666666666616
E3 = 0.008333333333326162
E4 = 0.0013888888888918048
E5 = 0.00019841269874742228
E6 = 2.4801587245551823e-05
E7 = 2.755725548749984e-06
E8 = 2.755734978063794e-07
E9 = 2.5105184645248938e-08
E10 = 2.0889327020658197e-09

# The same for float32: degree 5, relative error 2^-26.54.
E1_F32 = np.float32(0.1666666716337204)
E2_F32 = np.float32(0.04166646674275398)
E3_F32 = np.float32(0.008333360776305199)
E4_F32 = np.float32(0.001393360667861998)
E5_F32 = np.float32(0.00019857793813571334)


def two_sum(a: Real, b: Real) -> tuple[Real, Real]:
    """Return the rounded sum and its exact rounding error.

    Parameters
    ----------
    a, b : float
        Two finite numbers of one dtype whose sum does not overflow; either may be the larger.

    Returns
    -------
    s, e : float
        ``s = a + b`` rounded to nearest, and ``e`` with ``s + e == a + b`` exactly.

    Examples
    --------
    >>> two_sum(1.0, 2.0**-60)
    (1.0, 8.673617379884035e-19)
    """
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def sum_of_four(a: Real, b: Real, c: Real, d: Real) -> Real:
    """Add four numbers in pairs."""
    return (a + b) + (c + d)


def split_exponent(x: float) -> tuple[float, np.int64]:
    """Write a positive float64 as ``m * 2**k`` with ``m`` about 1.

    Parameters
    ----------
    x : float
        A positive finite number, normal or subnormal. Anything else gives a meaningless pair, but no error.

    Returns
    -------
    m : float
        In [sqrt(1/2), sqrt(2)).
    k : int64
        The exponent.

    Examples
    --------
    >>> m, k = split_exponent(12.0)
    >>> float(m), int(k)
    (0.75, 4)
    """
    subnormal = x < SMALLEST_NORMAL
    bits = np.float64(x * (2.0**54 if subnormal else 1.0)).view(np.int64) + ONE_LESS_SQRT_HALF_BITS
    k = ((bits >> 52) & EXPONENT_MASK) - (1077 if subnormal else 1023)
    return np.int64((bits & FRACTION_MASK) + SQRT_HALF_BITS).view(np.float64), k


def split_exponent_f32(x: np.float32) -> tuple[np.float32, np.int32]:
    """Write a positive float32 as ``m * 2**k``: `split_exponent` for float32, with ``k`` as an int32."""
    subnormal = x < SMALLEST_NORMAL_F32
    scaled = x * (SUBNORMAL_SCALE_F32 if subnormal else ONE_F32)
    bits = np.int32(np.float32(scaled).view(np.int32) + ONE_LESS_SQRT_HALF_BITS_F32)
    k = np.int32(((bits >> 23) & EXPONENT_MASK_F32) - (151 if subnormal else 127))
    return np.int32((bits & FRACTION_MASK_F32) + SQRT_HALF_BITS_F32).view(np.float32), k


def small_int_to_float(k: np.int64) -> float:
    """Convert an int64 with ``|k| < 2**51`` to float64, by an addition that every vector unit has."""
    return np.int64(k + ROUNDER_BITS).view(np.float64) - ROUNDER


def small_int_to_float_f32(k: np.int32) -> np.float32:
    """Convert an int32 with ``|k| < 2**22`` to float32, by an addition that every vector unit has."""
    return np.int32(k + ROUNDER_BITS_F32).view(np.float32) - ROUNDER_F32


def log_sum(k: float, f: float, low: float) -> float:
    """Return k*ln2 + log(1 + f) + low, for an integer k, 1 + f in [sqrt(1/2), sqrt(2)] and a tiny low."""
    # With s = f/(2+f), log(1+f) = 2s + s*z*L(z) = f - h + s*(h + z*L(z)), h = f*f/2. The sum of the two large terms,
    # k*LN2_HI and f, keeps its rounding error, which leaves little but the rounding of the last addition.
    s = f / (2.0 + f)
    z = s * s
    tail = z * (L0 + z * (L1 + z * (L2 + z * (L3 + z * (L4 + z * (L5 + z * L6))))))
    h = 0.5 * f * f
    a = k * LN2_HI
    y = a + f
    return y + (((a - y) + f) - (h - (s * (h + tail) + (k * LN2_LO + low))))


def log_sum_f32(k: np.float32, f: np.float32, low: np.float32) -> np.float32:
    """Return `log_sum` in float32."""
    s = f / (TWO_F32 + f)
    z = s * s
    tail = z * (L0_F32 + z * (L1_F32 + z * L2_F32))
    h = HALF_F32 * f * f
    a = k * LN2_HI_F32
    y = a + f
    return y + (((a - y) + f) - (h - (s * (h + tail) + (k * LN2_LO_F32 + low))))


def log(x: float) -> float:
    """Return the natural logarithm of a float64.

    Parameters
    ----------
    x : float
        Any number.

    Returns
    -------
    float
        log(x), within 1 ulp; -inf at 0, NaN below 0, +inf at +inf.

    Examples
    --------
    >>> float(log(2.0))
    0.6931471805599453
    """
    m, k = split_exponent(x)
    y = log_sum(small_int_to_float(k), m - 1.0, 0.0)
    y = y if x < INF else x
    y = -INF if x == 0.0 else y
    return NAN if x < 0.0 else y


def log_f32(x: np.float32) -> np.float32:
    """Return the natural logarithm of a float32: `log` in float32."""
    m, k = split_exponent_f32(x)
    y = log_sum_f32(small_int_to_float_f32(k), m - ONE_F32, ZERO_F32)
    y = y if x < INF_F32 else x
    y = -INF_F32 if x == ZERO_F32 else y
    return NAN_F32 if x < ZERO_F32 else y


def log1p(x: float) -> float:
    """Return log(1 + x) of a float64, accurate also for tiny x.

    Parameters
    ----------
    x : float
        Any number.

    Returns
    -------
    float
        log(1 + x), within 1 ulp; -inf at -1, NaN below -1, +inf at +inf.

    Examples
    --------
    >>> float(log1p(1e-20))
    1e-20
    """
    # u + c = 1 + x exactly. Where u is about 1, x itself is the f of log_sum. Elsewhere log(u + c) = log(u) + c/u to
    # within rounding, and 1/u to within 2 percent will do.
    u, c = two_sum(1.0, x)
    bits = np.float64(u).view(np.int64) + ONE_LESS_SQRT_HALF_BITS
    exponent = (bits >> 52) & EXPONENT_MASK
    k = small_int_to_float(exponent - 1023)
    near = k == 0.0
    f = x if near else np.int64((bits & FRACTION_MASK) + SQRT_HALF_BITS).view(np.float64) - 1.0
    twice_scale = np.int64((EXPONENT_MASK - exponent) << 52).view(np.float64)  # 2**(1 - k), and 0 for the largest u
    correction = c * twice_scale * (R0 + f * (R1 + f * R2))
    y = log_sum(k, f, 0.0 if near else correction)
    y = y if abs(x) > 0.0 else x
    y = y if x < INF else x
    y = -INF if x == -1.0 else y
    return NAN if x < -1.0 else y


def log1p_f32(x: np.float32) -> np.float32:
    """Return log(1 + x) of a float32, accurate also for tiny x: `log1p` in float32."""
    u, c = two_sum(ONE_F32, x)
    bits = np.int32(np.float32(u).view(np.int32) + ONE_LESS_SQRT_HALF_BITS_F32)
    exponent = np.int32((bits >> 23) & EXPONENT_MASK_F32)
    k = small_int_to_float_f32(np.int32(exponent - 127))
    near = k == ZERO_F32
    m = np.int32((bits & FRACTION_MASK_F32) + SQRT_HALF_BITS_F32).view(np.float32)
    f = x if near else m - ONE_F32
    twice_scale = np.int32((EXPONENT_MASK_F32 - exponent) << 23).view(np.float32)
    correction = c * twice_scale * (R0_F32 + f * (R1_F32 + f * R2_F32))
    y = log_sum_f32(k, f, ZERO_F32 if near else correction)
    y = y if abs(x) > ZERO_F32 else x
    y = y if x < INF_F32 else x
    y = -INF_F32 if x == -ONE_F32 else y
    return NAN_F32 if x < -ONE_F32 else y


def exp_rest(r: float) -> float:
    """Return T(r) with expm1(r) = r + r*r/2 + r*r*r*T(r), for ``|r|`` up to ln2/2."""
    high = E5 + r * (E6 + r * (E7 + r * (E8 + r * (E9 + r * E10))))
    return E1 + r * (E2 + r * (E3 + r * (E4 + r * high)))


def exp_rest_f32(r: np.float32) -> np.float32:
    """Return `exp_rest` in float32."""
    return E1_F32 + r * (E2_F32 + r * (E3_F32 + r * (E4_F32 + r * E5_F32)))


def exp(x: float) -> float:
    """Return e**x of a float64.

    Parameters
    ----------
    x : float
        Any number.

    Returns
    -------
    float
        exp(x), within 1 ulp, also where the result is subnormal; 0 at -inf, +inf at +inf.

    Examples
    --------
    >>> float(exp(-1.0))
    0.36787944117144233
    """
    a = x if x < EXP_LARGEST else EXP_LARGEST
    a = a if a > EXP_SMALLEST else EXP_SMALLEST
    t = a * LOG2_E + ROUNDER
    n = t - ROUNDER
    high = a - n * LN2_HI
    low = n * LN2_LO
    r = high - low
    y = 1.0 + (high + (r * r * (0.5 + r * exp_rest(r)) - low))
    # 2**n in two factors, so that neither leaves the normal range: n = (half - 1024) + (n - (half - 1024)). The shifts
    # to the left drop all of t but the last bits, which hold n.
    bits = np.float64(t).view(np.int64)
    half = ((bits + 2048) & 0xFFF) >> 1
    y = y * np.int64((half - 1) << 52).view(np.float64) * np.int64((bits - half + 2047) << 52).view(np.float64)
    return y if x == x else x


def exp_f32(x: np.float32) -> np.float32:
    """Return e**x of a float32: `exp` in float32."""
    a = x if x < EXP_LARGEST_F32 else EXP_LARGEST_F32
    a = a if a > EXP_SMALLEST_F32 else EXP_SMALLEST_F32
    t = a * LOG2_E_F32 + ROUNDER_F32
    n = t - ROUNDER_F32
    high = a - n * LN2_HI_F32
    low = n * LN2_LO_F32
    r = high - low
    y = ONE_F32 + (high + (r * r * (HALF_F32 + r * exp_rest_f32(r)) - low))
    bits = np.float32(t).view(np.int32)
    half = np.int32(((bits + 256) & 0x1FF) >> 1)
    y = y * np.int32((half - 1) << 23).view(np.float32) * np.int32((bits - half + 255) << 23).view(np.float32)
    return y if x == x else x


def expm1(x: float) -> float:
    """Return e**x - 1 of a float64, accurate also for tiny x.

    Parameters
    ----------
    x : float
        Any number.

    Returns
    -------
    float
        exp(x) - 1, within 1 ulp; -1 at -inf, +inf at +inf.

    Examples
    --------
    >>> float(expm1(1e-20))
    1e-20
    """
    a = x if x < EXP_LARGEST else EXP_LARGEST
    a = a if a > EXPM1_SMALLEST else EXPM1_SMALLEST
    t = a * LOG2_E + ROUNDER
    n = t - ROUNDER
    high = a - n * LN2_HI
    low = n * LN2_LO
    r = high - low
    rest = (high - r) - low
    z = r * r
    tail = 0.5 * z + (r * z * exp_rest(r) + (rest + rest * r))
    # Half the result, as 2**1024 does not fit, is h*(1 + r + tail) - 1/2 with h = 2**(n-1), largest terms first.
    h = np.int64((np.float64(t).view(np.int64) + 1022) << 52).view(np.float64)
    b, b_low = two_sum(h, -0.5)
    y = b + h * r
    y = 2.0 * (y + (((b - y) + h * r) + (b_low + h * tail)))
    return y if abs(x) > EXPM1_IS_ARGUMENT else x


def expm1_f32(x: np.float32) -> np.float32:
    """Return e**x - 1 of a float32, accurate also for tiny x: `expm1` in float32."""
    a = x if x < EXP_LARGEST_F32 else EXP_LARGEST_F32
    a = a if a > EXPM1_SMALLEST_F32 else EXPM1_SMALLEST_F32
    t = a * LOG2_E_F32 + ROUNDER_F32
    n = t - ROUNDER_F32
    high = a - n * LN2_HI_F32
    low = n * LN2_LO_F32
    r = high - low
    rest = (high - r) - low
    z = r * r
    tail = HALF_F32 * z + (r * z * exp_rest_f32(r) + (rest + rest * r))
    h = np.int32((np.float32(t).view(np.int32) + 126) << 23).view(np.float32)
    b, b_low = two_sum(h, -HALF_F32)
    y = b + h * r
    y = TWO_F32 * (y + (((b - y) + h * r) + (b_low + h * tail)))
    return y if abs(x) > EXPM1_IS_ARGUMENT_F32 else x
