"""The gamma function's logarithm, its derivatives, and what is left of it beyond first order.

Close to each other, the parameters of two distributions make every term of a closed form of first order, and their sum
of second. So a closed form is written as a sum of non-negative second-order terms, none of which cancels:

- y/x - 1 - log(y/x), the Bregman remainder of -log (`excess`, `excess_of_products`);
- exp(v) - 1 - v, that of exp (`exp_excess`);
- f(b) - f(a) - f'(a)*(b - a) for log-gamma (`log_gamma_bregman`) and for what Stirling's formula leaves of it
  (`stirling_bregman`).

They rest on two sums of positive terms, with c(x) from log-gamma(x) = x*log(x) - x - log(x)/2 + log(2*pi)/2 + c(x):

    c(x) = sum over n >= 0 of (x + n + 1/2)*log(1 + 1/(x + n)) - 1                      (Gudermann 1845)
    log-gamma(b) - log-gamma(a) - digamma(a)*(b - a) = sum over n >= 0 of the excess of b + n over a + n

The first terms are taken from the sums, the rest, from `LARGE` on, from Stirling's series. Arguments are positive. The
largest errors found are recorded in ``docs/_data/special_errors.json``.
"""

from __future__ import annotations

import math

import numpy as np

from klnumba.formulas.divergences import log_ratio, split_ratio
from klnumba.formulas.elementary import LN2_HI, LN2_LO, expm1, log, log1p, split_exponent, two_sum
from klnumba.formulas.log_cells import phi, remainder
from klnumba.formulas.odd_series import series
from klnumba.formulas.primitives import fma

LN2 = 0.6931471805599453
HALF_LOG_2PI = 0.9189385332046728
EULER = 0.5772156649015329
E = 2.718281828459045  # E + E_LOW is e
E_LOW = 1.4456468917292502e-16
FAR = 1e300  # beyond it exp is infinite, or as good as zero
LARGE = 10.0  # where ten terms of Stirling's series give every digit

# B(2k)/(2k*(2k - 1)): c(x) = sum of STIRLING[k-1]/x**(2k-1) (tests/reference/coefficients.py).
STIRLING = (
    0.08333333333333333,
    -0.002777777777777778,
    0.0007936507936507937,
    -0.0005952380952380953,
    0.0008417508417508417,
    -0.0019175269175269176,
    0.00641025641025641,
    -0.029550653594771242,
    0.17964437236883057,
    -1.3924322169059011,
)

# A(z) with atanh(s) = s + s*z*A(z), z = s*s: degree 16, [1/9, 4/9], relative error 2^-53.28.
WIDE = (
    0.3333333337145526,
    0.19999997125229393,
    0.14285814518655998,
    0.11108965680911971,
    0.09122473594044762,
    0.0735368912901843,
    0.09408199163595182,
    -0.11216609867061565,
    0.8835948691873083,
    -3.112460329936675,
    9.427530274581613,
    -21.5231611735879,
    37.69560608202734,
    -48.413066467170374,
    43.49857600090056,
    -24.42647071411001,
    6.626954293573723,
)


def difference_of_products(a: float, b: float, c: float, d: float) -> float:
    """a*b - c*d, right to 2 ulp however much cancels (Kahan)."""
    w = c * d
    return fma(a, b, -w) - fma(c, d, -w)


def power_of_two(k: np.int64) -> float:
    """2**k; 0 and inf beyond the normal numbers."""
    return np.int64((np.int64(1023) + min(max(k, np.int64(-1023)), np.int64(1024))) << np.int64(52)).view(np.float64)


def excess(x: float, y: float, d: float) -> float:
    """y/x - 1 - log(y/x) >= 0 for positive x and y, given d = y - x."""
    t = d / x
    return phi(t) if abs(t) <= 0.5 else t - log_ratio(y, x, d)


def ratio_in_parts(a: float, b: float, c: float, d: float, shift: np.int64 | int) -> tuple[np.int64, float, float]:
    """k, m and t: a*b/(c*d)*2**shift of positive numbers is m*2**k, and 1 + t where that is nearly 1, else t is 1."""
    ma, ka = split_exponent(a)
    mb, kb = split_exponent(b)
    mc, kc = split_exponent(c)
    md, kd = split_exponent(d)
    k = (ka + kb) - (kc + kd) + shift
    below = mc * md
    near = np.int64(-3) <= k <= np.int64(3)
    scaled = ma * power_of_two(k) if near else 0.0
    return k, (ma * mb) / below, difference_of_products(scaled, mb, mc, md) / below if near else 1.0


def excess_of_products(a: float, b: float, c: float, d: float) -> float:
    """The same of the ratio a*b/(c*d), the products unrounded and of any size."""
    return excess_of_nearly(a, b, c, d, 0.0, np.int64(0))


def excess_of_nearly(a: float, b: float, c: float, d: float, off: float, shift: np.int64 | int) -> float:
    """The same of a*b*(1 + off)/(c*d)*2**shift, for an `off` that is no more than a rounding error."""
    k, m, t = ratio_in_parts(a, b, c, d, shift)
    if abs(t) <= 0.5:
        return phi(t) + (t + 0.5 * off) * off
    half = k // np.int64(2)  # a power of two that is out of the range does not make the ratio so
    return (m * power_of_two(half) * power_of_two(k - half) - 1.0) - (float(k) * LN2 + log(m))


def log_in_parts(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """log(a*b/(c*d)) of positive numbers, the products unrounded and of any size: k and x of k*ln2 + x."""
    k, m, t = ratio_in_parts(a, b, c, d, np.int64(0))
    return (0.0, log1p(t)) if abs(t) <= 0.5 else (float(k), log(m))


def log_of_products(a: float, b: float, c: float, d: float) -> float:
    """The same as one number."""
    k, x = log_in_parts(a, b, c, d)
    return k * LN2 + x


def exp_excess(v: float) -> float:
    """exp(v) - 1 - v >= 0."""
    return remainder(v) if abs(v) <= LN2 else expm1(v) - min(v, FAR)


def atanh_rest(z: float) -> float:
    """A(z) with atanh(s) = s + s*z*A(z), z = s*s up to 4/9."""
    if z <= 1.0 / 9.0:
        return 0.5 * series(z)
    value = WIDE[16]
    for k in range(15, -1, -1):
        value = value * z + WIDE[k]
    return value


def log_of_next(x: float) -> tuple[float, float]:
    """log((x + 1)/x) as the sum of two numbers, for x < 1/4."""
    more, low = two_sum(1.0, x)
    k, s, x2, d, _ = split_ratio(more, x, 1.0)
    both, lost = two_sum(more, x2)
    rest = (fma(-s, both, d) + (low - s * (lost + low))) / both  # s is put right for its roundings
    high, e = two_sum(k * LN2_HI, 2.0 * s)
    return high, e + (2.0 * rest + (s * (s * s * series(s * s)) + k * LN2_LO))


def gudermann(x: float) -> float:
    """c(x) - c(x + 1) = (x + 1/2)*log(1 + 1/x) - 1, which is atanh(s)/s - 1 for s = 1/(2*x + 1)."""
    if x < 0.25:
        high, low = log_of_next(x)
        half, lost = two_sum(0.5, x)
        return fma(half, high, -1.0) + (half * low + lost * high)
    z = 1.0 / fma(4.0 * x, x + 1.0, 1.0)
    return z * atanh_rest(z)


def gudermann_slope(x: float) -> float:
    """The derivative of `gudermann`."""
    if x < 0.25:
        high, low = log_of_next(x)
        half, lost = two_sum(0.5, x)
        below = fma(x, x, x)
        quotient = half / below
        if quotient > FAR:
            return -quotient
        rest = (fma(-quotient, below, half) + (lost - quotient * fma(x, x, x - below))) / below
        value, e = two_sum(high, -quotient)
        return value + (e + (low - rest))
    v = 4.0 * x * (x + 1.0)
    w = fma(4.0 * x, x + 1.0, 1.0)
    return 2.0 * ((atanh_rest(1.0 / w) - 1.0) - 1.0 / v) / (fma(2.0, x, 1.0) * w)


def steps_to_large(x: float) -> float:
    """How many units x is below `LARGE`, rounded up. Sums go down from there, the smallest terms first."""
    return float(math.ceil(LARGE - x)) if x < LARGE else 0.0


def stirling(x: float) -> float:
    """c(x), the remainder of Stirling's formula: log-gamma(x) - [(x - 1/2)*log(x) - x + log(2*pi)/2].

    Parameters
    ----------
    x : float
        A positive number.

    Returns
    -------
    float
        c(x) > 0; about 1/(12*x).

    Examples
    --------
    >>> round(float(stirling(1.0)), 15)
    0.081061466795327
    """
    n = steps_to_large(x)
    y = 1.0 / (x + n)
    z = y * y
    tail = STIRLING[9]
    for k in range(8, -1, -1):
        tail = tail * z + STIRLING[k]
    total, low = y * tail, 0.0
    while n > 0.0:
        n -= 1.0
        total, lost = two_sum(total, gudermann(x + n))
        low += lost
    return total + low


def stirling_slope(x: float) -> float:
    """c'(x), so that digamma(x) = log(x) - 1/(2*x) + c'(x).

    Parameters
    ----------
    x : float
        A positive number.

    Returns
    -------
    float
        c'(x) < 0; about -1/(12*x*x).

    Examples
    --------
    >>> round(float(stirling_slope(1.0)), 15)
    -0.077215664901533
    """
    n = steps_to_large(x)
    y = 1.0 / (x + n)
    z = y * y
    tail = 19.0 * STIRLING[9]
    for k in range(8, -1, -1):
        tail = tail * z + (2.0 * k + 1.0) * STIRLING[k]
    total, low = -z * tail, 0.0
    while n > 0.0:
        n -= 1.0
        total, lost = two_sum(total, gudermann_slope(x + n))
        low += lost
    return total + low if total > -math.inf else total


def log_gamma(x: float) -> float:
    """log(gamma(x)).

    Parameters
    ----------
    x : float
        A positive number.

    Returns
    -------
    float
        Right to a few ulp away from the roots at 1 and 2, and there to a few units of 1e-16.

    Examples
    --------
    >>> round(float(log_gamma(10.0)), 12)
    12.801827480081
    """
    near = 1.5 < x < 4.5
    over_e = log1p(((x - E) - E_LOW) / E) if near else log(x) - 1.0
    return (x - 0.5) * over_e + ((HALF_LOG_2PI - 0.5) + stirling(x))


def digamma(x: float) -> float:
    """The derivative of log-gamma.

    Parameters
    ----------
    x : float
        A positive number.

    Returns
    -------
    float
        Right to a few ulp away from the root at 1.4616, and there to a few units of 1e-16.

    Examples
    --------
    >>> round(float(digamma(1.0)), 15)
    -0.577215664901533
    """
    return log(x) - (0.5 / x - stirling_slope(x))


def trigamma(x: float) -> float:
    """The second derivative of log-gamma.

    Parameters
    ----------
    x : float
        A positive number.

    Returns
    -------
    float
        Positive, right to a few ulp.

    Examples
    --------
    >>> round(float(trigamma(1.0)), 14)
    1.64493406684823
    """
    n = steps_to_large(x)
    y = 1.0 / (x + n)
    z = y * y
    tail = 380.0 * STIRLING[9]
    for k in range(8, -1, -1):
        tail = tail * z + (2.0 * k + 1.0) * (2.0 * k + 2.0) * STIRLING[k]
    total = y + (0.5 * z + z * y * tail)
    while n > 0.0:
        n -= 1.0
        total += 1.0 / ((x + n) * (x + n))
    return total


def stirling_bregman_large(a: float, b: float, d: float) -> float:
    """c(b) - c(a) - c'(a)*(b - a) for a and b from `LARGE` on, d = b - a."""
    if abs(d) > 0.5 * a:
        return stirling(b) - (stirling(a) + stirling_slope(a) * d)
    # For x**-m it is d*d/(a*b) * a**-m * sum of (m - i)*r**i, r = a/b, i from 0 to m - 1.
    r = a / b
    y = 1.0 / a
    powers = 1.0  # 1 + r + ... + r**(m - 1)
    last = 1.0
    inner = 1.0
    scale = y
    total = STIRLING[0] * scale
    for k in range(1, 10):
        for _ in range(2):
            last *= r
            powers += last
            inner += powers
        scale *= y * y
        total += STIRLING[k] * scale * inner
    return (d / a) * (d / b) * total


def digamma_bregman(a: float, b: float, d: float) -> float:
    """digamma(a) + trigamma(a)*(b - a) - digamma(b) >= 0, given d = b - a: the sum of d*d/((a + n)**2*(b + n)).

    Right to a few ulp for ``|d| <= a/2``, and to a few ulp of `digamma` otherwise.
    """
    total = 0.0
    while a < LARGE or b < LARGE:
        total += (d / a) * ((d / a) / b)
        a += 1.0
        b += 1.0
    r = a / b
    y = 1.0 / a
    first = 0.5 * (d / a) * ((d / a) / b)
    if abs(d) > 0.5 * a:
        slope = stirling_slope(b) - stirling_slope(a)
        curve = trigamma(a) - (y + 0.5 * y * y)
        return total + (excess(a, b, d) + (first + (curve * d - slope)))
    # As in `stirling_bregman_large`, with even powers.
    powers = 1.0 + r
    last = r
    inner = 2.0 + r
    scale = y * y
    tail = STIRLING[0] * scale * inner
    for k in range(1, 10):
        for _ in range(2):
            last *= r
            powers += last
            inner += powers
        scale *= y * y
        tail += (2.0 * k + 1.0) * STIRLING[k] * scale * inner
    return total + (excess(a, b, d) + (first + (d / a) * (d / b) * tail))


def log_gamma_bregman(a: float, b: float, d: float) -> float:
    """log-gamma(b) - log-gamma(a) - digamma(a)*(b - a) >= 0, given d = b - a.

    Parameters
    ----------
    a, b : float
        Positive numbers.
    d : float
        Their difference b - a; where it is known better than the two, it carries the result.

    Returns
    -------
    float
        The remainder, to a few ulp.

    Examples
    --------
    >>> print(f"{log_gamma_bregman(1.0, 1.0 + 1e-9, 1e-9):.9e}")
    8.224670330e-19
    """
    total = 0.0
    while a < LARGE or b < LARGE:
        total += excess(a, b, d)
        a += 1.0
        b += 1.0
    return total + (b * excess(b, a, -d) + (0.5 * excess(a, b, d) + stirling_bregman_large(a, b, d)))


def gudermann_bregman(a: float, b: float, d: float) -> float:
    """How far `gudermann` is at b from its tangent at a, given d = b - a of up to a/2.

    With log((1 + 1/b)/(1 + 1/a)) = -2*atanh(s) the terms of first order in s leave d*d alone.
    """
    s = d / (2.0 * a * b + a + b)
    return 0.5 * (d / a) * s / (a + 1.0) - (b + 0.5) * (s * s * s * series(s * s))


def stirling_bregman(a: float, b: float, d: float) -> float:
    """c(b) - c(a) - c'(a)*(b - a) >= 0, given d = b - a.

    Right to a few ulp for ``|d| <= a/2``. For an `a` below 1 and a b that is far from it, it is right to a few ulp of
    `log_gamma_bregman`, of which the terms that a divergence adds to it are no small part.
    """
    if abs(d) > 0.5 * a and a >= 1.0:
        return stirling(b) - (stirling(a) + stirling_slope(a) * d)
    if abs(d) > 0.5 * a:
        return max(log_gamma_bregman(a, b, d) - (b * excess(b, a, -d) + 0.5 * excess(a, b, d)), 0.0)
    total = 0.0
    while a < LARGE or b < LARGE:
        total += gudermann_bregman(a, b, d)
        a += 1.0
        b += 1.0
    return total + stirling_bregman_large(a, b, d)
