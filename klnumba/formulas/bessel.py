"""Modified Bessel functions of orders 0 and 1: their ratio, and the logarithm of the first beyond first order.

Below `LARGE` they are taken from sums and fractions of positive terms, none of which cancels:

    I1(x)/I0(x) = x/(2 + x**2/(4 + x**2/(6 + ...)))                                           (Gauss)
    I0(x) = sum of (x**2/4)**k/k!**2
    I0(x)**2 times the slope of I1/I0 = sum of (x**2/4)**k*(2*k)!/k!**4/(2*(k + 1)**2),

the last from the products of two power series, where I0(x)**2 is the same sum without the last factor, and 1 - I1/I0
from Kummer's form of I0 and I1, in `gap_small`. From `LARGE` on,
log I0(x) = x - log(2*pi*x)/2 + h(x), h(x) = sum of HANKEL[k-1]/x**k, and all its derivatives follow from this series.
The largest errors found are recorded in ``docs/_data/special_errors.json``.
"""

from __future__ import annotations

from klnumba.formulas.elementary import log, log1p, two_sum
from klnumba.formulas.primitives import fma
from klnumba.formulas.special import HALF_LOG_2PI, excess

LARGE = 25.0  # where 24 terms of the asymptotic series give every digit

# h(x) = sum of HANKEL[k-1]/x**k, the logarithm of Hankel's asymptotic series (tests/reference/coefficients.py).
HANKEL = (
    0.125,
    0.0625,
    0.06510416666666667,
    0.1015625,
    0.2095703125,
    0.5364583333333334,
    1.6380658830915178,
    5.809814453125,
    23.475127749972874,
    106.467822265625,
    535.640519510616,
    2960.739786783854,
    17837.279688947478,
    116339.24666050503,
    816737.8421910767,
    6140798.86346674,
    49232732.339998595,
    419272864.964833,
    3779795380.667541,
    35961831603.669014,
    360101552365.56555,
    3785651810447.53,
    41687986318546.49,
    479892615938701.0,
)

# Nodes and weights of Gauss and Legendre on 0 to 1 (tests/reference/coefficients.py).
NODES = (
    0.009219682876640375,
    0.04794137181476257,
    0.11504866290284765,
    0.2063410228566913,
    0.3160842505009099,
    0.43738329574426554,
    0.5626167042557345,
    0.6839157494990901,
    0.7936589771433087,
    0.8849513370971523,
    0.9520586281852375,
    0.9907803171233597,
)
WEIGHTS = (
    0.023587668193255914,
    0.05346966299765921,
    0.08003916427167311,
    0.10158371336153296,
    0.1167462682691774,
    0.12457352290670139,
    0.12457352290670139,
    0.1167462682691774,
    0.10158371336153296,
    0.08003916427167311,
    0.05346966299765921,
    0.023587668193255914,
)


def bessel_ratio(x: float) -> float:
    """I1(x)/I0(x), the mean resultant length of the von Mises distribution.

    Parameters
    ----------
    x : float
        Zero or a positive number.

    Returns
    -------
    float
        From 0 to 1, right to a few ulp.

    Examples
    --------
    >>> round(float(bessel_ratio(2.0)), 12)
    0.697774657964
    """
    return 1.0 - gap_large(x) if x >= LARGE else ratio_small(x)


def bessel_gap(x: float) -> float:
    """1 - I1(x)/I0(x), about 1/(2*x) for a large x."""
    return gap_large(x) if x >= LARGE else gap_small(0.0, x)


def ratio_small(x: float) -> float:
    """I1(x)/I0(x) for x below `LARGE`."""
    n = float(int(x)) + 20.0
    ratio = 0.0
    while n > 0.0:
        ratio = x / (2.0 * n + x * ratio)
        n -= 1.0
    return ratio


def gap_large(x: float) -> float:
    """`bessel_gap` from `LARGE` on."""
    y = 1.0 / x
    tail = 24.0 * HANKEL[23]
    for k in range(22, -1, -1):
        tail = tail * y + (k + 1.0) * HANKEL[k]
    return y * (0.5 + y * tail)


def bessel_ratio_slope(x: float) -> float:
    """The derivative of I1(x)/I0(x) for x >= 0, the variance of the cosine of a von Mises variable.

    Examples
    --------
    >>> float(bessel_ratio_slope(0.0))
    0.5
    """
    if x >= LARGE:
        y = 1.0 / x
        tail = 600.0 * HANKEL[23]
        for k in range(22, -1, -1):
            tail = tail * y + (k + 1.0) * (k + 2.0) * HANKEL[k]
        return y * y * (0.5 + y * tail)
    return slope_small(0.0, x)


def next_term(term: float, low: float, z: float, z_low: float, over: float, under: float) -> tuple[float, float]:
    """(term + low)*(z + z_low)*over/under, and what it loses to rounding."""
    c = over / under
    c_low = fma(-c, under, over) / under
    step = z * c
    step_low = fma(z, c, -step) + (z * c_low + z_low * c)
    moved = term * step
    return moved, fma(term, step, -moved) + (term * step_low + low * step)


def slope_small(n: float, x: float) -> float:
    """The derivative of I(n+1, x)/I(n, x) for an x that is not large: a ratio of two sums with the same terms.

    The terms, and the sums, carry what they lose to rounding, which would add up along the way.
    """
    half = 0.5 * x
    z = half * half
    z_low = fma(half, half, -z)
    term, low = 1.0, 0.0
    above, above_low = 0.5 / (n + 1.0), 0.0
    below, below_low = 1.0, 0.0
    k = 0.0
    while term > 1e-18 * below:
        k += 1.0
        term, low = next_term(term, low, z, z_low, 2.0 * (2.0 * n + 2.0 * k - 1.0), k * (2.0 * n + k) * (n + k))
        share = (2.0 * n + 1.0) / ((2.0 * n + k + 1.0) * (2.0 * n + 2.0 * k + 2.0))
        above, lost = two_sum(above, term * share)
        above_low += lost + low * share
        below, lost = two_sum(below, term)
        below_low += lost + low
    return (above + above_low) / (below + below_low)


def gap_small(n: float, x: float) -> float:
    """1 - I(n+1, x)/I(n, x) for an x that is not large, in the same way.

    exp(x)*I(n, x) is Kummer's series M(n + 1/2, 2*n + 1, 2*x) times a power, exp(x)*(I(n, x) - I(n+1, x)) that of
    M(n + 1/2, 2*n + 2, 2*x): every term of the first times (2*n + 1)/(2*n + 1 + k).
    """
    term, low = 1.0, 0.0
    above, above_low = 1.0, 0.0
    below, below_low = 1.0, 0.0
    k = 0.0
    while term > 1e-18 * below:
        k += 1.0
        term, low = next_term(term, low, x, 0.0, 2.0 * n + 2.0 * k - 1.0, k * (2.0 * n + k))
        share = (2.0 * n + 1.0) / (2.0 * n + 1.0 + k)
        above, lost = two_sum(above, term * share)
        above_low += lost + low * share
        below, lost = two_sum(below, term)
        below_low += lost + low
    return (above + above_low) / (below + below_low)


def log_bessel(x: float) -> float:
    """log(I0(x)) - x for x >= 0."""
    if x >= LARGE:
        return log_bessel_rest(x) - (HALF_LOG_2PI + 0.5 * log(x))
    return log_bessel_small(x) - x


def log_bessel_small(x: float) -> float:
    """log(I0(x)) for x below `LARGE`."""
    z = 0.25 * x * x
    term = z
    total = z
    m = 1.0
    while term > 1e-18 * total:
        m += 1.0
        term *= z / (m * m)
        total += term
    return log1p(total)


def log_bessel_rest(x: float) -> float:
    """h(x)."""
    y = 1.0 / x
    tail = HANKEL[23]
    for k in range(22, -1, -1):
        tail = tail * y + HANKEL[k]
    return y * tail


def log_bessel_bregman(a: float, b: float, d: float) -> float:
    """log(I0(b)) - log(I0(a)) - (b - a)*I1(a)/I0(a) >= 0, given d = b - a.

    Parameters
    ----------
    a, b : float
        Zero or positive numbers.
    d : float
        Their difference b - a.

    Returns
    -------
    float
        The remainder, to a few tens of ulp.

    Examples
    --------
    >>> print(f"{log_bessel_bregman(1.0, 1.0 + 1e-9, 1e-9):.6e}")
    1.771730e-19
    """
    if abs(d) <= 0.5 * a:
        return log_bessel_bregman_close(a, b, d)
    if a < LARGE and b < LARGE:
        return log_bessel_small(b) - (log_bessel_small(a) + bessel_ratio(a) * d)
    if a < LARGE or b < LARGE:
        return (log_bessel(b) - log_bessel(a)) + bessel_gap(a) * d
    rest = log_bessel_rest(b) - log_bessel_rest(a)
    return 0.5 * excess(a, b, d) + (rest + (bessel_gap(a) - 0.5 / a) * d)


def log_bessel_bregman_close(a: float, b: float, d: float) -> float:
    """The same for b no farther than a/2 from a."""
    if a < LARGE or b < LARGE:
        total = 0.0
        for i in range(12):
            total += WEIGHTS[i] * (1.0 - NODES[i]) * bessel_ratio_slope(a + d * NODES[i])
        return d * d * total
    # For x**-m it is d*d/(a*b) * a**-m * sum of (m - i)*r**i, r = a/b, i from 0 to m - 1.
    r = a / b
    y = 1.0 / a
    powers = 0.0
    last = 1.0
    inner = 0.0
    scale = 1.0
    total = 0.0
    for k in range(24):
        powers += last
        last *= r
        inner += powers
        scale *= y
        total += HANKEL[k] * scale * inner
    return 0.5 * excess(a, b, d) + (d / a) * (d / b) * total
