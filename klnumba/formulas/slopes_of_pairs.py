"""What the quick slopes of several pairs share (`klnumba.formulas.quick`), all of ordinary numbers.

A difference that is of first order where p is close to q is formed from the parameters, before any rounding: those of
digamma are that of a logarithm and a rest of the same sign, the tangent of which is 1/(2*x*x) for large x.
"""

from __future__ import annotations

import math

from klnumba.formulas.elementary import exp, expm1, log1p, two_sum
from klnumba.formulas.log_cells import LN2, remainder
from klnumba.formulas.primitives import fma
from klnumba.formulas.quick import FROM, SERIES, atanh_series, log_of_split, quick_log_gamma_bregman, split
from klnumba.formulas.special import EULER, difference_of_products
from klnumba.formulas.twofold import over, plus, times

NARROW = 2.0**-40  # of what is worked out in twice the digits, so much may cancel
WIDE = 600.0  # exp of it and of its opposite are in the range, and so are their products with ordinary numbers
DIGAMMA_2, DIGAMMA_2_LOW = 0.42278433509846713, 4.942915152430645e-18
KNOWN = 2.0**40  # a sum of such terms is right to 2**-12, and its exponential in proportion
FULL = 45.0  # exp of its opposite adds nothing to 1


def unless_lost(x: float, factor: float) -> float:
    """x, or NaN where a factor of it has left the normal numbers, so that more digits or other forms serve."""
    return x if factor > 1e-290 else math.nan


# --- logarithms -----------------------------------------------------------------------------------------------------


def log_of_ordinary_ratio(x: float, y: float, gap: float) -> float:
    """log(x/y), given gap = x - y."""
    k, s = split(x, y, gap)
    z = s * s
    return log_of_split(k, s, z * atanh_series(z))


def log_of_ordinary_products(a: float, b: float, c: float, d: float) -> float:
    """log(a*b/(c*d)), the products unrounded."""
    return log_of_ordinary_ratio(a * b, c * d, difference_of_products(a, b, c, d))


def signed_log1p(d: float, below_if_up: float, below_if_down: float) -> float:
    """log(1 + d/x) for d >= 0, and -log(1 - d/y) for d < 0: neither argument is near -1."""
    up = d >= 0.0
    value = log1p(abs(d) / (below_if_up if up else below_if_down))
    return value if up else -value


# --- exponentials ---------------------------------------------------------------------------------------------------


def expm1_of_difference(x: float, y: float) -> float:
    """exp(x - y) - 1, the difference unrounded."""
    d, low = two_sum(x, -y)
    rise = expm1(d)
    return fma(rise + 1.0, low, rise)


def exp_excess_below(u: float) -> float:
    """exp(-u) - 1 + u for u >= 0."""
    return remainder(-u) if u <= LN2 else u + expm1(-u)


def gamma_share(u: float) -> float:
    """1 - exp(-u)*(1 + u) for u >= 0."""
    near = min(u, FULL)
    rest = remainder(near) if u <= LN2 else expm1(near) - near
    return exp(-near) * rest if u < FULL else 1.0


# --- sums of products -----------------------------------------------------------------------------------------------


def squares_apart(x: float, y: float) -> tuple[float, float]:
    """x*x - y*y as the sum of two numbers."""
    gap, gap_low = two_sum(x, -y)
    both, both_low = two_sum(x, y)
    high = gap * both
    return high, fma(gap, both, -high) + (gap * both_low + gap_low * both)


def square_of_difference(x: float, y: float) -> tuple[float, float]:
    """(x - y)**2 as the sum of two numbers."""
    d, low = two_sum(x, -y)
    high = d * d
    return high, fma(d, d, -high) + 2.0 * d * low


def plus_narrow(x: float, x_low: float, y: float, y_low: float) -> tuple[float, float]:
    """The sum of two such, and how much of it may be lost."""
    total, lost = two_sum(x, y)
    return total + (lost + (x_low + y_low)), NARROW * (abs(x) + abs(y))


def products_apart(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """a*b - c*d as the sum of two numbers."""
    x, y = a * b, c * d
    high, lost = two_sum(x, -y)
    return high, lost + (fma(a, b, -x) - fma(c, d, -y))


def sized(x: float, y: float) -> tuple[float, float]:
    """The sum, and that of the absolute values."""
    return x + y, abs(x) + abs(y)


def sized_three(x: float, y: float, z: float) -> tuple[float, float]:
    """The same of three terms."""
    return (x + y) + z, (abs(x) + abs(y)) + abs(z)


def sized_four(w: float, x: float, y: float, z: float) -> tuple[float, float]:
    """The same of four terms."""
    return (w + x) + (y + z), (abs(w) + abs(x)) + (abs(y) + abs(z))


def sized_five(v: float, w: float, x: float, y: float, z: float) -> tuple[float, float]:
    """The same of five terms."""
    return ((v + w) + (x + y)) + z, ((abs(v) + abs(w)) + (abs(x) + abs(y))) + abs(z)


NONE = (0.0, 0.0)  # in the places of what nobody wants, as of moves among quick bends


# --- digamma and trigamma -------------------------------------------------------------------------------------------


def trigamma_beyond(x: float) -> float:
    """trigamma(x) - 1/x > 0: with 1/((x + n)**2*(x + n + 1)) for each step up."""
    small = x < FROM
    start = x if small else 1.0
    one, two, three = start + 1.0, start + 2.0, start + 3.0
    u, v, w = 1.0 / start, 1.0 / one, 1.0 / two
    steps = (u * u) * v + ((v * v) * w + (w * w) / three)
    y = 1.0 / (three if small else x)
    z = y * y
    tail = 650.0 * SERIES[12]
    tail = fma(tail, z, 552.0 * SERIES[11])
    tail = fma(tail, z, 462.0 * SERIES[10])
    tail = fma(tail, z, 380.0 * SERIES[9])
    tail = fma(tail, z, 306.0 * SERIES[8])
    tail = fma(tail, z, 240.0 * SERIES[7])
    tail = fma(tail, z, 182.0 * SERIES[6])
    tail = fma(tail, z, 132.0 * SERIES[5])
    tail = fma(tail, z, 90.0 * SERIES[4])
    tail = fma(tail, z, 56.0 * SERIES[3])
    tail = fma(tail, z, 30.0 * SERIES[2])
    tail = fma(tail, z, 12.0 * SERIES[1])
    tail = fma(tail, z, 2.0 * SERIES[0])
    beyond = z * fma(y, tail, 0.5)
    return steps + beyond if small else beyond


def trigamma_of(x: float) -> float:
    """The second derivative of log-gamma."""
    return 1.0 / x + trigamma_beyond(x)


def tetragamma_of(x: float) -> float:
    """The third derivative of log-gamma: with -2/(x + n)**3 for each step up, from 4 on, where the series has it."""
    small = x < FROM + 1.0
    start = x if small else 1.0
    u, v, w = 1.0 / start, 1.0 / (start + 1.0), 1.0 / (start + 2.0)
    steps = 2.0 * (u * u * u + (v * v * v + w * w * w))
    y = 1.0 / (start + 3.0 if small else x)
    z = y * y
    tail = 17550.0 * SERIES[12]
    tail = fma(tail, z, 13800.0 * SERIES[11])
    tail = fma(tail, z, 10626.0 * SERIES[10])
    tail = fma(tail, z, 7980.0 * SERIES[9])
    tail = fma(tail, z, 5814.0 * SERIES[8])
    tail = fma(tail, z, 4080.0 * SERIES[7])
    tail = fma(tail, z, 2730.0 * SERIES[6])
    tail = fma(tail, z, 1716.0 * SERIES[5])
    tail = fma(tail, z, 990.0 * SERIES[4])
    tail = fma(tail, z, 504.0 * SERIES[3])
    tail = fma(tail, z, 210.0 * SERIES[2])
    tail = fma(tail, z, 60.0 * SERIES[1])
    tail = fma(tail, z, 6.0 * SERIES[0])
    beyond = z * fma(z, tail, 1.0 + y)
    return -(beyond + steps) if small else -beyond


def next_of_quotient(upper: float, lower: float, value: float, slope: float, term: float) -> tuple[float, float]:
    """A step of Horner's scheme for a polynomial at `lower` and its divided difference from there to `upper`."""
    return fma(value, lower, term), fma(slope, upper, value)


def digamma_rise(a: float, c: float, d: float) -> tuple[float, float]:
    """(up, rest): digamma(c) - digamma(a) = log((c + up)/(a + up)) + rest, both of the sign of d = c - a."""
    small = (a < FROM) | (c < FROM)
    x, y = (a if small else 1.0), (c if small else 1.0)
    steps = 1.0 / (x * y) + (1.0 / ((x + 1.0) * (y + 1.0)) + 1.0 / ((x + 2.0) * (y + 2.0)))
    up = FROM if small else 0.0
    both = 1.0 / ((a + up) * (c + up))
    u, v = (c + up) * both, (a + up) * both
    upper, lower = u * u, v * v
    value, slope = 25.0 * SERIES[12], 0.0
    value, slope = next_of_quotient(upper, lower, value, slope, 23.0 * SERIES[11])
    value, slope = next_of_quotient(upper, lower, value, slope, 21.0 * SERIES[10])
    value, slope = next_of_quotient(upper, lower, value, slope, 19.0 * SERIES[9])
    value, slope = next_of_quotient(upper, lower, value, slope, 17.0 * SERIES[8])
    value, slope = next_of_quotient(upper, lower, value, slope, 15.0 * SERIES[7])
    value, slope = next_of_quotient(upper, lower, value, slope, 13.0 * SERIES[6])
    value, slope = next_of_quotient(upper, lower, value, slope, 11.0 * SERIES[5])
    value, slope = next_of_quotient(upper, lower, value, slope, 9.0 * SERIES[4])
    value, slope = next_of_quotient(upper, lower, value, slope, 7.0 * SERIES[3])
    value, slope = next_of_quotient(upper, lower, value, slope, 5.0 * SERIES[2])
    value, slope = next_of_quotient(upper, lower, value, slope, 3.0 * SERIES[1])
    value, slope = next_of_quotient(upper, lower, value, slope, SERIES[0])
    slope = fma(slope, upper, value)  # of z*(SERIES[0] + 3*SERIES[1]*z + ...)
    rest = (d * both) * fma(u + v, slope, 0.5)
    return up, fma(d, steps, rest) if small else rest


def log_of_moved(c: float, b: float, a: float, e: float, up: float) -> float:
    """log((c + up)*b/((a + up)*e)), the products unrounded."""
    x, x_low = two_sum(c, up)
    y, y_low = two_sum(a, up)
    gap = difference_of_products(x, b, y, e) + (x_low * b - y_low * e)
    return log_of_ordinary_ratio(x * b, y * e, gap)


# --- Gumbel and Weibull distributions -------------------------------------------------------------------------------


def gumbel_parts(above: float, below: float, m: float, low: float) -> tuple[float, float, float, float, float]:
    """Of r = above/below and the distance m + low of the modes: exp(v) - 1 and the derivative by r, each with its size.

    And exp(v), to the last digits also where it is small. Where v is too large a sum to be known, no size is enough.

    v = log-gamma(1 + r) - m. The derivative of exp(v) - 1 - v + [log-gamma beyond first order from 1 to r] by r is
    (exp(v) - 1)*digamma(1 + r) + digamma(r) - digamma(1), that by m is 1 - exp(v).
    """
    d, d_low = over(*two_sum(above, -below), below, 0.0)
    r = above / below
    curve, _ = quick_log_gamma_bregman(2.0, 2.0 + d, d)
    first, first_low = times(DIGAMMA_2, DIGAMMA_2_LOW, d, d_low)
    v, v_low = plus(*plus(first, first_low, -m, -low), curve, 0.0)
    rise, whole = expm1(v), exp(v)
    rise = fma(whole, v_low, rise)
    size = whole * fma(NARROW, abs(first) + abs(m), 2.0 * curve) if curve < KNOWN else math.inf
    up, rest = digamma_rise(2.0, 2.0 + d, d)
    climb = log_of_ordinary_ratio(2.0 + d + up, 2.0 + up, d) + rest
    slope = DIGAMMA_2 + climb
    up, rest = digamma_rise(1.0, r, d)
    other = log_of_ordinary_ratio(r + up, 1.0 + up, d) + rest
    extent = DIGAMMA_2 + abs(climb)
    of_slope = (abs(rise) + size) * extent + abs(other)
    return rise, size, fma(rise, slope, other), of_slope, fma(whole, v_low, whole)


def gumbel_parts_along(
    r: float, whole: float, size: float, r_grown: float, of_r: float, m_grown: float, of_m: float
) -> tuple[float, float, float, float]:
    """What exp(v) and the derivative by r change by as r and m grow by sums of these sizes.

    By v' = digamma(1 + r)*r' - m' they are exp(v)*v' and exp(v)*(digamma(1 + r)*v' + trigamma(1 + r)*r') + r'/r**2.
    """
    slope, bend = digamma_sized(1.0 + r), trigamma_of(1.0 + r)
    v_grown, of_v = slope[0] * r_grown - m_grown, slope[1] * of_r + of_m
    grown = whole * (slope[0] * v_grown + bend * r_grown) + r_grown / r / r
    extent = (whole + size) * (slope[1] * of_v + bend * of_r) + of_r / r / r
    return whole * v_grown, (whole + size) * of_v, grown, extent


# --- beta distributions ---------------------------------------------------------------------------------------------


def beta_slopes_by_p(a: float, b: float, rise: float, other: float, off: float) -> tuple[float, float]:
    """By a, where q has a + rise and b + other: `off` = a*other - rise*b over a*s, s = a + b, and the rest of trigamma.

    That is what it has at a and at s beyond one over these.
    """
    s = a + b
    means = off / a / s
    one, both = -rise * trigamma_beyond(a), -(rise + other) * trigamma_beyond(s)
    return means + (one - both), abs(means) + (abs(one) + abs(both))


def beta_bends(
    a: float, b: float, c: float, d: float, gap: float, move: float, rest: float, other_move: float,
    other_rest: float, climb: float,
) -> tuple[tuple[float, float], tuple[float, float]]:  # fmt: skip
    """What the slopes by a of p and c of q change by as a, b, c and d move; gap = b - d, climb = rest - other_rest.

    These are (a - c)*trigamma(a) - (s - t)*trigamma(s), s = a + b, t = c + d, and digamma(c) - digamma(a) less the same
    of t and s.
    """
    s, wide, rise, off = a + b, move + rest, move - other_move, a - c
    one, both, bent = trigamma_of(a), trigamma_of(s), tetragamma_of(s) * wide
    near, size = sized_three(one * rise, off * tetragamma_of(a) * move, -both * rise)
    far, more = sized_three(-both * climb, -off * bent, -gap * bent)
    own, of_sums = trigamma_of(c) * other_move, trigamma_of(c + d) * (other_move + other_rest)
    return (near + far, size + more), sized_four(own, -one * move, both * wide, -of_sums)


def beta_slopes_by_q(
    a: float, b: float, c: float, d: float, rise: float, other: float, off: float
) -> tuple[float, float]:
    """By c = a + rise: the rise of digamma from a to c less that from a + b to c + d, d = b + other."""
    s, t, both = a + b, c + d, rise + other
    up, rest = digamma_rise(a, c, rise)
    up_of_sum, rest_of_sum = digamma_rise(s, t, both)
    large = up == 0.0
    of_one = log_of_ordinary_ratio(c * s if large else c + up, a * t if large else a + up, -off if large else rise)
    of_sum = log_of_ordinary_ratio(t + up_of_sum, s + up_of_sum, both)
    of_sum = 0.0 if large else of_sum
    sizes = (abs(of_one) + abs(of_sum)) + (abs(rest) + abs(rest_of_sum))
    return (of_one - of_sum) + (rest - rest_of_sum), sizes


# --- normal distributions of q --------------------------------------------------------------------------------------


def towards_normal(
    entropy: tuple[float, float], variance: tuple[float, float], mean: float, t: float, of_t: float, z: float
) -> tuple[float, float]:
    """By a parameter of p, from its slopes of minus the entropy, of half the variance and of the mean, z = 1/scale**2.

    t is the distance of the means, `of_t` the size of its terms.
    """
    value = entropy[0] + (variance[0] + t * mean) * z
    return value, entropy[1] + (variance[1] + of_t * abs(mean)) * z


def by_normal(variance: float, t: float, of_t: float, u: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """By loc and by scale of q, u = 1/scale."""
    by_loc = (-t * u * u, of_t * u * u)
    by_scale, size = sized_three(u, -variance * u * u * u, -t * t * u * u * u)
    return by_loc, (by_scale, size + 2.0 * abs(t) * of_t * u * u * u)


def by_normal_along(
    variance: float, t: tuple[float, float], u: float, grown: tuple[float, float], e: tuple[float, float], f: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """What these change by as the variance grows by `grown`, t by e, each with its size, and the scale by f/u."""
    z = u * u
    by_loc, size = (2.0 * t[0] * f - e[0]) * z, (2.0 * t[1] * abs(f) + e[1]) * z
    by_scale = ((3.0 * f * (variance + t[0] * t[0]) - grown[0] - 2.0 * t[0] * e[0]) * z - f) * u
    terms = 3.0 * abs(f) * (variance + t[1] * t[1]) + grown[1] + 2.0 * t[1] * e[1]
    return (by_loc, size), (by_scale, (terms * z + abs(f)) * u)


def digamma_sized(x: float) -> tuple[float, float]:
    """digamma(x), from 1 on."""
    up, rest = digamma_rise(1.0, x, x - 1.0)
    return sized(log_of_ordinary_ratio(x + up, 1.0 + up, x - 1.0) + rest, -EULER)
