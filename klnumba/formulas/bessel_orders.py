"""Modified Bessel functions of any order n >= 0: the ratio I(n+1)/I(n), its slope, and log(I(n)/x**n) beyond order 1.

F(x) = log(I(n, x)/x**n) has the derivative I(n+1)/I(n). With s = sqrt(n**2 + x**2), everything comes

- for s below `LARGE` from sums and fractions of positive terms, none of which cancels:

    I(n+1)/I(n) = x/(2*(n+1) + x**2/(2*(n+2) + ...))                                          (Gauss)
    F(x) - F(0) = log of the sum of (x**2/4)**k/(k!*(n+1)*(n+2)*...*(n+k))
    I(n)**2 times the slope of I(n+1)/I(n) = the sum for I(n)**2, its terms times (2*n+1)/((2*n+k+1)*(2*n+2*k+2));

- from there on from Debye's expansion, which holds for all n and x alike where s is large:

    F(x) = s - n*log(n + s) - log(2*pi*s)/2 + R,  R = sum over k of s**-k times a polynomial of n**2/s**2,

  whose coefficients are in `DEBYE`, those of s**-1 first (tests/reference/coefficients.py).

The same of order 0, for the circle, is in `bessel`. The largest errors found are recorded in
``docs/_data/special_errors.json``.
"""

from __future__ import annotations

import math

from klnumba.formulas.bessel import NODES, WEIGHTS, gap_small, slope_small
from klnumba.formulas.elementary import exp, log, log1p
from klnumba.formulas.primitives import fma
from klnumba.formulas.special import HALF_LOG_2PI, excess, stirling

LARGE = 64.0  # where 12 terms of Debye's series give every digit
TERMS = 12

DEBYE = (
    0.125,
    -0.20833333333333334,
    0.0625,
    -0.375,
    0.3125,
    0.06510416666666667,
    -0.8296875,
    1.7265625,
    -0.9592013888888888,
    0.1015625,
    -2.21875,
    8.296875,
    -10.59375,
    4.4140625,
    0.2095703125,
    -6.982282366071429,
    40.542751736111114,
    -87.693359375,
    80.8837890625,
    -26.961263020833332,
    0.5364583333333334,
    -25.3125,
    209.625,
    -673.625,
    1021.640625,
    -737.8125,
    204.94791666666666,
    1.6380658830915178,
    -103.97592163085938,
    1160.8294372558594,
    -5140.211273193359,
    11304.659503173829,
    -13184.767364501953,
    7824.899444580078,
    -1863.07129632859,
    5.809814453125,
    -477.615234375,
    6904.2763671875,
    -40090.447265625,
    119071.95263671875,
    -198321.806640625,
    187801.9013671875,
    -94603.037109375,
    19708.966064453125,
    23.475127749972874,
    -2427.2885336442428,
    44069.78581237793,
    -323875.5657704671,
    1240124.8821487427,
    -2752869.211418152,
    3683609.1391855874,
    -2935198.3014678955,
    1284393.7849998474,
    -237850.70092589766,
    106.467822265625,
    -13526.99560546875,
    301187.0236816406,
    -2727462.591796875,
    13026405.797363281,
    -36852414.786914065,
    65112147.795410156,
    -72748886.00585938,
    50027742.52075195,
    -19350359.06982422,
    3225059.844970703,
    535.640519510616,
    -82046.56579866775,
    2197624.750671816,
    -24011994.284158945,
    139535179.1724906,
    -487422412.2709402,
    1088470361.2907014,
    -1594676024.676859,
    1528592829.647338,
    -924445055.3424871,
    320384038.82623315,
    -48543036.1857929,
    2960.739786783854,
    -538164.052734375,
    17067704.537109375,
    -221216118.06429037,
    1533944655.227417,
    -6461280179.630859,
    17683879971.17871,
    -32540336002.749023,
    40681628863.23303,
    -34134822577.796875,
    18421426618.901367,
    -5782944462.414551,
    803186730.8909098,
)


def debye(n: float, x: float, s: float, derivative: int) -> float:
    """R(x), its first derivative times s*s/x, or its second times s*s."""
    p = n / s
    w = p * p
    v = (x / s) * (x / s)
    y = 1.0 / s
    total = 0.0
    for k in range(TERMS, 0, -1):
        start = (k - 1) * (k + 2) // 2
        inner = 0.0
        for j in range(k, -1, -1):
            c = DEBYE[start + j]
            m = float(k + 2 * j)
            if derivative == 1:
                c *= -m
            elif derivative == 2:
                c *= m * ((m + 2.0) * v - 1.0)
            inner = inner * w + c
        total = (total + inner) * y
    return total


def ratio_of_orders(n: float, x: float) -> float:
    """I(n+1, x)/I(n, x) for n >= 0 and x >= 0, the mean resultant length on the sphere in 2*n + 2 dimensions.

    Examples
    --------
    >>> round(float(ratio_of_orders(0.5, 2.0)), 12)
    0.537314720728
    """
    return x * ratio_over_x(n, x)


def ratio_over_x(n: float, x: float) -> float:
    """I(n+1, x)/(x*I(n, x))."""
    s = math.hypot(n, x)
    if s >= LARGE:
        return 1.0 / (n + s) + (debye(n, x, s, 1) - 0.5) / s / s
    k = float(int(x)) + 30.0
    found = 0.0
    while k > 0.0:
        found = 1.0 / (2.0 * (n + k) + x * x * found)
        k -= 1.0
    return found


def gap_of_orders(n: float, x: float) -> float:
    """1 - I(n+1, x)/I(n, x)."""
    s = math.hypot(n, x)
    if s >= LARGE:
        return (n + n * n / (s + x)) / (n + s) - (debye(n, x, s, 1) - 0.5) * (x / s) / s
    return gap_small(n, x)


def slope_of_orders(n: float, x: float) -> float:
    """The derivative of I(n+1, x)/I(n, x) by x.

    Examples
    --------
    >>> round(float(slope_of_orders(0.5, 0.0)), 12)
    0.333333333333
    """
    s = math.hypot(n, x)
    if s >= LARGE:
        square = fma(n, n, x * x)
        main = n * (s / (n + s))
        return (main + (0.5 * ((x - n) / s) * ((x + n) / s) + debye(n, x, s, 2))) / square
    return slope_small(n, x)


def log_above(n: float, x: float, linear: float) -> float:
    """F(x) - F(0) - linear*x, where `linear` is 0 or 1."""
    s = math.hypot(n, x)
    if s >= LARGE:
        rest = debye(n, x, s, 0)
        if n == 0.0:
            return (1.0 - linear) * x + (rest - (HALF_LOG_2PI + 0.5 * log(s)))
        over = x * (x / (n + s))  # s - n
        main = over if linear == 0.0 else -n * (2.0 * x / (s + x + n))
        return (main - n * log1p(over / (2.0 * n))) + ((rest - 0.5 * log(s / n)) + (stirling(n)))
    z = 0.25 * x * x
    term = 1.0
    total = 0.0
    k = 0.0
    while term > 1e-18 * total:
        k += 1.0
        term *= z / (k * (n + k))
        total += term
    return log1p(total) if linear == 0.0 else log((1.0 + total) * exp(-x))


def log_bregman(n: float, a: float, b: float, d: float) -> float:
    """F(b) - F(a) - (b - a)*I(n+1, a)/I(n, a) >= 0, given d = b - a.

    Parameters
    ----------
    n : float
        The order, zero or positive.
    a, b : float
        Zero or positive numbers.
    d : float
        Their difference b - a.

    Returns
    -------
    float
        The remainder, to some tens of ulp.

    Examples
    --------
    >>> print(f"{log_bregman(0.5, 1.0, 1.0 + 1e-9, 1e-9):.6e}")
    1.379692e-19
    """
    s = math.hypot(n, a)
    if s >= LARGE and math.hypot(n, b) >= LARGE:
        return bregman_large(n, a, b, d, s)
    if abs(d) <= 0.5 * a:
        total = 0.0
        for i in range(12):
            total += WEIGHTS[i] * (1.0 - NODES[i]) * slope_of_orders(n, a + d * NODES[i])
        return d * d * total
    if max(a, b) < n + 2.0:
        return (log_above(n, b, 0.0) - log_above(n, a, 0.0)) - d * ratio_of_orders(n, a)
    return (log_above(n, b, 1.0) - log_above(n, a, 1.0)) + d * gap_of_orders(n, a)


def bregman_large(n: float, a: float, b: float, d: float, s: float) -> float:
    """The same where Debye's expansion holds at both ends; s = sqrt(n**2 + a**2).

    The terms of F before R have remainders in closed form, sums of squares and of `excess`.
    """
    t = math.hypot(n, b)
    rise = d * ((a + b) / (s + t))  # t - s
    square = n * (n * (d / s) * (d / t) / (1.0 + (n / s) * (n / t) + (a / s) * (b / t)))
    if abs(d) <= 0.5 * s:
        rest = 0.0
        for i in range(12):
            x = a + d * NODES[i]
            r = math.hypot(n, x)
            rest += WEIGHTS[i] * (1.0 - NODES[i]) * (debye(n, x, r, 2) / r / r)
        rest *= d * d
    else:
        rest = (debye(n, b, t, 0) - debye(n, a, s, 0)) - (d / s) * (a / s) * debye(n, a, s, 1)
    sure = n * excess(n + s, n + t, rise) + 0.5 * excess(s, t, rise)
    return (sure + square * (1.0 / (n + s) - 0.5 / s / s)) + rest
