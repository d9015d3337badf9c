"""Functions of numbers in twice the digits of float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np

from klnumba.duals.number import (
    Moving,
    Number,
    Twofold,
    carried,
    exactly,
    product_plus,
    still,
    times,
    twofold,
    where,
)

ONE = Twofold(1.0)
LN2 = Twofold(0.6931471805599453, 2.3190468138462996e-17)
HALF_LOG_2PI = Twofold(0.9189385332046728, -3.878294158067242e-17)
EULER = Twofold(0.5772156649015329, -4.942915152430645e-18)
PI_SQUARED_BY_6 = Twofold(1.6449340668482264, 3.040672350398476e-17)
TWO_OVER_SQRT_PI = Twofold(1.1283791670955126, 1.533545961316588e-17)
HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)  # in three parts


# --- elementary functions ---------------------------------------------------------------------------------------------


@cache
def _inverse(n: int) -> Twofold:
    return exactly(Fraction(1, n))


def _small_expm1(r: Twofold) -> Twofold:
    """Of numbers up to 0.35: Taylor's series of r/256, then exp(2*r) - 1 = m*(m + 2) eight times."""
    r = r * 2.0**-8
    tail = Twofold(1.0)
    for n in range(12, 1, -1):
        tail = product_plus(r * tail, _inverse(n), ONE)
    m = r * tail
    for _ in range(8):
        m = m * (2.0 + m)
    return m


@carried(lambda x, y: y)
def exp(x: Number) -> Twofold:
    """e**x."""
    x = twofold(x)
    inside = np.abs(x.hi) < 745.0
    safe = where(inside, x, 0.0)
    k = np.round(safe.hi / LN2.hi)
    y = 1.0 + _small_expm1(safe - LN2 * k)
    # In two steps, as 2**k may be beyond the range where the result is not.
    half = np.floor(0.5 * k).astype(int)
    rest = k.astype(int) - half
    y = Twofold(np.ldexp(np.ldexp(y.hi, half), rest), np.ldexp(np.ldexp(y.lo, half), rest))
    beyond = np.where(x.hi > 0.0, math.inf, np.where(x.hi == x.hi, 0.0, math.nan))
    return where(inside, y, beyond)


@carried(lambda x, y: exp(x))
def expm1(x: Number) -> Twofold:
    """e**x - 1."""
    x = twofold(x)
    small = np.abs(x.hi) < 0.34
    return where(small, _small_expm1(where(small, x, 0.0)), exp(x) - 1.0)


@carried(lambda x, y: 1.0 / (1.0 + x))
def log1p(x: Number) -> Twofold:
    """log(1 + x): NumPy's, and a step of Newton's method."""
    x = twofold(x)
    y = np.log1p(x.hi)
    e = expm1(y)
    return where(np.isfinite(y) & np.isfinite(e.hi), y - (e - x) / (1.0 + e), y)


@carried(lambda x, y: 1.0 / x)
def log(x: Number) -> Twofold:
    """The logarithm of a positive number; -inf of zero."""
    x = twofold(x)
    inside = (x.hi > 0.0) & np.isfinite(x.hi)
    safe = where(inside, x, 1.0)
    m, k = np.frexp(safe.hi)
    k = np.where(m < math.sqrt(0.5), k - 1, k)
    shift = -(k // 2), -(k - k // 2)
    m_hi = np.ldexp(np.ldexp(safe.hi, shift[0]), shift[1])
    m_lo = np.ldexp(np.ldexp(safe.lo, shift[0]), shift[1])
    y = LN2 * k.astype(float) + log1p(Twofold(m_hi, m_lo) - 1.0)
    return where(inside, y, np.log(x.hi))


@carried(lambda x, y: 0.5 / y)
def sqrt(x: Number) -> Twofold:
    """The square root of a non-negative number."""
    x = twofold(x)
    y = np.sqrt(x.hi)
    return where((y > 0.0) & np.isfinite(y), y + 0.5 * ((x - Twofold(y) * y) / np.where(y > 0.0, y, 1.0)), y)


@carried(lambda x, y, value: 1.0 / x, lambda x, y, value: -1.0 / y)
def log_of_quotient(x: Number, y: Number) -> Twofold:
    """log(x/y), to all digits also where the two are close and where the quotient is beyond the range."""
    x, y = twofold(x), twofold(y)
    t = (x - y) / y
    return where(np.abs(t.hi) < 0.5, log1p(where(np.abs(t.hi) < 0.5, t, 0.0)), log(x) - log(y))


@cache
def _circular(first: int) -> tuple[Twofold, ...]:
    """Taylor's coefficients of the sine (first = 1) or cosine (0) in powers of x**2."""
    return tuple(exactly(Fraction((-1) ** k, math.factorial(2 * k + first))) for k in range(15))


def power_series(z: Twofold, coefficients: Sequence[Twofold]) -> Twofold:
    """The sum of coefficients[k]*z**k."""
    total = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = product_plus(total, z, c)
    return total


def sin_and_cos(x: Number) -> tuple[Twofold, Twofold]:
    """The sine and the cosine, of numbers up to some 1e15."""
    if isinstance(x, Moving):
        sine, cosine = sin_and_cos(still(x))
        return Moving(sine, times(x.move, cosine)), Moving(cosine, times(x.move, -sine))
    x = twofold(x)
    k = np.round(x.hi / HALF_PI[0])
    r = x
    for part in HALF_PI:
        r = r - Twofold(part) * k
    z = r * r
    s, c = r * power_series(z, _circular(1)), power_series(z, _circular(0))
    odd = k % 2.0 == 1.0
    sine, cosine = where(odd, c, s), where(odd, s, c)
    return where(k % 4.0 >= 2.0, -sine, sine), where((k + 1.0) % 4.0 >= 2.0, -cosine, cosine)


@carried(lambda y, x, value: x / (x * x + y * y), lambda y, x, value: -y / (x * x + y * y))
def angle(y: Number, x: Number) -> Twofold:
    """That of the point (x, y), as atan2; one step from the angle of float64."""
    x, y = twofold(x), twofold(y)
    near = Twofold(np.arctan2(y.hi, x.hi))
    sine, cosine = sin_and_cos(near)
    return near + (y * cosine - x * sine) / (x * cosine + y * sine)


# --- modified Bessel functions, and the exponential integral ----------------------------------------------------------

BESSEL_FAR = 60.0  # from here on, so many terms of the asymptotic series give all digits
BESSEL_TERMS = 40


@cache
def _ratio_series(order: int) -> tuple[Twofold, ...]:
    """Those of A = I1/I0 in powers of 1/x without the leading 1 (0), of A' without 1/x (1), of log(I0)'s rest (-1).

    From A' = 1 - A/x - A*A; the last is log(I0) - x + log(2*pi*x)/2.
    """
    a = [Fraction(1)]
    for k in range(BESSEL_TERMS):
        inner = sum((a[i] * a[k + 1 - i] for i in range(1, k + 1)), Fraction(0))
        a.append(((k - 1) * a[k] - inner) / 2)
    if order == -1:
        return tuple(exactly(-c / k) for k, c in enumerate(a[2:], 1))
    return tuple(exactly(-k * c if order else c) for k, c in enumerate(a[1:], 1))


def bessel_ratio(x: Number) -> tuple[Twofold, Twofold, Twofold]:
    """A = I1/I0 of x >= 0, 1 - A, and the derivative of A, 1 - A/x - A*A; all three to all digits."""
    if isinstance(x, Moving):
        plain = still(x)
        ratio, gap, slope = bessel_ratio(plain)
        rise = times(x.move, slope)
        next_to_0 = plain.hi < 1e-4
        divisor = where(next_to_0, 1.0, plain)
        bend = where(next_to_0, _small_bend(plain), (ratio / divisor - slope) / divisor - 2.0 * ratio * slope)
        return Moving(ratio, rise), Moving(gap, -rise), Moving(slope, times(x.move, bend))
    x = twofold(x)
    far = x.hi >= BESSEL_FAR
    y = 1.0 / where(far, x, BESSEL_FAR)
    gap = -(y * power_series(y, _ratio_series(0)))
    near = where(far, 1.0, x)
    ratio = twofold(np.zeros_like(x.hi))  # x/(2 + x**2/(4 + ...)), divided by x
    z = near * near
    for n in range(120, 0, -1):
        ratio = 1.0 / (2.0 * n + z * ratio)
    slope = where(far, y * y * power_series(y, _ratio_series(1)), 1.0 - ratio - z * ratio * ratio)
    ratio = near * ratio
    return where(far, 1.0 - gap, ratio), where(far, gap, 1.0 - ratio), slope


def _small_bend(x: Twofold) -> Twofold:
    """The second derivative of A = x/2 - x**3/16 + x**5/96 - 11*x**7/6144 + ..., of numbers up to 1e-4."""
    z = x * x
    return x * (z * (exactly(Fraction(5, 24)) - z * exactly(Fraction(77, 1024))) - 0.375)


@carried(lambda x, y: bessel_ratio(x)[0])
def log_bessel(x: Number) -> Twofold:
    """log(I0(x)) for x >= 0."""
    x = twofold(x)
    far = x.hi >= BESSEL_FAR
    large = where(far, x, BESSEL_FAR)
    y = 1.0 / large
    beyond = large - (HALF_LOG_2PI + 0.5 * log(large)) + y * power_series(y, _ratio_series(-1))
    near = where(far, 1.0, x)
    z = 0.25 * near * near
    total = twofold(np.zeros_like(x.hi))
    for n in range(150, 0, -1):
        total = z * _inverse(n * n) * (1.0 + total)
    return where(far, beyond, log1p(total))


@carried(lambda x, y: _mean_decay(x))
def entire_exponential_integral(x: Number) -> Twofold:
    """The integral of (1 - exp(-t))/t from 0 to x >= 0: exp(-x) times the sum of x**k/k!*(1 + 1/2 + ... + 1/k)."""
    x = twofold(x)
    far = x.hi > 80.0  # what is left out beyond is below 1e-36
    near = where(far, 1.0, x)
    term, harmonic, total = near, Twofold(1.0), near
    for k in range(2, 400):
        term = term * near * _inverse(k)
        harmonic = harmonic + _inverse(k)
        total = total + term * harmonic
        if (term.hi * harmonic.hi <= 1e-34 * total.hi).all():
            break
    return where(far, log(where(far, x, 1.0)) + EULER, exp(-near) * total)


def _mean_decay(x: Twofold) -> Twofold:
    """(1 - exp(-x))/x, 1 at 0."""
    return where(x.hi == 0.0, 1.0, -expm1(-x) / where(x.hi == 0.0, 1.0, x))


TERMS_OF_FRACTIONS = 260


@carried(lambda z, y: y - 1.0 / z)
def scaled_exponential_integral(z: Number) -> Twofold:
    """exp(z)*E1(z) for z > 0."""
    z = twofold(z)
    small = z.hi <= 2.0
    near, far = where(small, z, 1.0), where(small, 2.0, z)
    rest = far
    for n in range(TERMS_OF_FRACTIONS, 0, -1):
        rest = far + n / (1.0 + n / rest)
    return where(small, exp(near) * (entire_exponential_integral(near) - (log(near) + EULER)), 1.0 / rest)


@carried(lambda x, y: TWO_OVER_SQRT_PI * exp(-x * x))
def erf(x: Number) -> Twofold:
    """The error function."""
    x = twofold(x)
    y = x * np.where(x.hi < 0.0, -1.0, 1.0)
    small = y.hi < 2.0
    beyond = 1.0 - exp(-y * y) * scaled_erfc(where(small, 2.0, y))
    return where(small, _small_erf(where(small, y, 0.0)), beyond) * np.where(x.hi < 0.0, -1.0, 1.0)


@carried(lambda x, y: 2.0 * x * y - TWO_OVER_SQRT_PI)
def scaled_erfc(x: Number) -> Twofold:
    """exp(x*x)*erfc(x) for x >= 0."""
    x = twofold(x)
    small = x.hi < 2.0
    near, far = where(small, x, 0.0), where(small, 2.0, x)
    rest = far
    for n in range(TERMS_OF_FRACTIONS, 0, -1):
        rest = far + 0.5 * n / rest
    return where(small, exp(near * near) * (1.0 - _small_erf(near)), 0.5 * TWO_OVER_SQRT_PI / rest)


def _small_erf(x: Twofold) -> Twofold:
    """2/sqrt(pi)*exp(-x*x) times the sum of x*(2*x*x)**k/(1*3*5*...*(2*k + 1)), of numbers up to 2."""
    term = total = x
    square = 2.0 * x * x
    for k in range(1, 60):
        term = term * square * _inverse(2 * k + 1)
        total = total + term
    return TWO_OVER_SQRT_PI * exp(-x * x) * total


# --- log-gamma and its derivatives ------------------------------------------------------------------------------------

FAR = 16.0  # from here on, so many terms of Stirling's series give all digits
TERMS = 24


@cache
def stirling_series() -> tuple[Fraction, ...]:
    """B(2k)/(2k*(2k - 1)) for k from 1 on."""
    numbers = [Fraction(1)]
    for n in range(1, 2 * TERMS + 1):
        numbers.append(-sum((math.comb(n + 1, i) * numbers[i] for i in range(n)), Fraction(0)) / (n + 1))
    return tuple(numbers[2 * k] / (2 * k * (2 * k - 1)) for k in range(1, TERMS + 1))


@cache
def _coefficients(order: int) -> tuple[Twofold, ...]:
    """Those of the derivative of this order, of x**-(2*k - 1 + order)."""
    found = []
    for k, c in enumerate(stirling_series(), 1):
        for i in range(order):
            c *= -(2 * k - 1 + i)
        found.append(exactly(c))
    return tuple(found)


def _series(x: Twofold, order: int) -> Twofold:
    """A derivative of c(x), what Stirling's formula leaves of log-gamma, for large x."""
    y = 1.0 / x
    z = y * y
    terms = _coefficients(order)
    total = power_series(z, terms) * y
    for _ in range(order):
        total = total * y
    return total


def _raised(x: Twofold, power: int) -> tuple[Twofold, Twofold]:
    """(x + n >= FAR, and of x, x + 1, ..., x + n - 1 the sum of 1/x**power, or for power 0 the product)."""
    total = twofold(np.ones_like(x.hi) if power == 0 else np.zeros_like(x.hi))
    while True:
        low = x.hi < FAR
        if not low.any():
            return x, total
        total = where(low, total * x if power == 0 else total + _inverse_power(x, power), total)
        x = where(low, x + 1.0, x)


def _inverse_power(x: Twofold, n: int) -> Twofold:
    inverse = 1.0 / x
    result = inverse
    for _ in range(n - 1):
        result = result * inverse
    return result


@carried(lambda x, y: digamma_less_log(x))
def remainder_of_stirling(x: Number) -> Twofold:
    """c(x) = log-gamma(x) - [(x - 1/2)*log(x) - x + log(2*pi)/2]."""
    x = twofold(x)
    y, product = _raised(x, 0)
    moved = (y - 0.5) * log(y) - (x - 0.5) * log(x) - (y - x) - log(product)
    return _series(y, 0) + where(x.hi < FAR, moved, 0.0)


@carried(lambda x, y: digamma(x))
def log_gamma(x: Number) -> Twofold:
    """log(gamma(x))."""
    x = twofold(x)
    return ((x - 0.5) * log(x) - x) + (HALF_LOG_2PI + remainder_of_stirling(x))


@carried(lambda x, y: trigamma_less_powers(x))
def digamma_less_log(x: Number) -> Twofold:
    """digamma(x) - log(x) + 1/(2*x), which is c'(x)."""
    x = twofold(x)
    y, total = _raised(x, 1)
    moved = (log(y) - log(x)) - (0.5 / y - 0.5 / x) - total
    return _series(y, 1) + where(x.hi < FAR, moved, 0.0)


@carried(lambda x, y: trigamma(x))
def digamma(x: Number) -> Twofold:
    """The derivative of log-gamma."""
    x = twofold(x)
    return log(x) - 0.5 / x + digamma_less_log(x)


@carried(lambda x, y: tetragamma(x))
def trigamma(x: Number) -> Twofold:
    """The second derivative of log-gamma."""
    y, total = _raised(twofold(x), 2)
    return total + (1.0 / y + 0.5 / (y * y) + _series(y, 2))


@carried(lambda x, y: tetragamma(x) + 1.0 / (x * x) + 1.0 / (x * x * x))
def trigamma_less_powers(x: Number) -> Twofold:
    """trigamma(x) - 1/x - 1/(2*x*x), which is c''(x)."""
    x = twofold(x)
    y, total = _raised(x, 2)
    moved = (1.0 / y + 0.5 / (y * y)) - (1.0 / x + 0.5 / (x * x)) + total
    return _series(y, 2) + where(x.hi < FAR, moved, 0.0)


@carried(lambda x, y: pentagamma(x))
def tetragamma(x: Number) -> Twofold:
    """The third derivative of log-gamma."""
    y, total = _raised(twofold(x), 3)
    return _series(y, 3) - (1.0 / (y * y) + 1.0 / (y * y * y)) - 2.0 * total


def pentagamma(x: Number) -> Twofold:
    """The fourth derivative of log-gamma, of a number that does not move."""
    y, total = _raised(twofold(x), 4)
    z = 1.0 / (y * y)
    return _series(y, 4) + (2.0 * z / y + 3.0 * z * z) + 6.0 * total
