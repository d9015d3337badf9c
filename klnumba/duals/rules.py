"""Rules for the functions whose text works on the bits of numbers, or whose derivative has a better form of its own.

A rule takes what its function takes, plain numbers or duals. The remainders that closed forms are made of (`excess`,
`bregman` and the like) have derivatives of first order where they are of second: these come from the differences
themselves, such as (r - 1)/r for r - 1 - log(r), and not from differences of rounded numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from klnumba.duals import twofold as tf
from klnumba.duals.dual import Dual, chain, value_of, whole
from klnumba.duals.number import Moving, Twofold, exactly, is_moving, move_of, over, scaled, still, times, where
from klnumba.formulas import (
    bessel,
    divergences,
    elementary,
    integrals,
    log_cells,
    logarithms,
    primitives,
    ranges,
    special,
)

EXP_EXCESS = tuple(exactly(Fraction(1, math.factorial(k + 2))) for k in range(20))

ROUNDING = 2.0**-96  # of a sum of slopes, as a share of the largest

RULES: dict[Callable[..., Any], Callable[..., Any]] = {}


def rule(*functions: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: this is what the functions are for duals. Of plain numbers alone, they stay what they are."""

    def register(of_duals: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            RULES[function] = _of_any_numbers(function, of_duals)
        return of_duals

    return register


def _of_any_numbers(function: Callable[..., Any], of_duals: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*numbers: Any) -> Any:
        return (of_duals if any(isinstance(x, Dual) for x in numbers) else function)(*numbers)

    return call


# --- elementary -------------------------------------------------------------------------------------------------------


@rule(elementary.log, math.log)
def log(x: Any) -> Any:
    """`log`, with the derivatives of its arguments carried along."""
    v = value_of(x)
    return chain(tf.log(v), (x, 1.0 / v))


@rule(math.ceil)
def ceil(x: Any) -> float:
    """A number of steps: it does not change with a parameter, and all steps do with their number."""
    return whole(np.ceil(value_of(x).hi))


@rule(logarithms.log_twofold)
def log_twofold(x: Any) -> tuple[Any, float]:
    """The logarithm has digits enough: there is no second part."""
    return log(x), 0.0


@rule(elementary.log1p, math.log1p)
def log1p(x: Any) -> Any:
    """`log1p`, with the derivatives of its arguments carried along."""
    v = value_of(x)
    return chain(tf.log1p(v), (x, 1.0 / (1.0 + v)))


@rule(elementary.exp, math.exp)
def exp(x: Any) -> Any:
    """`exp`, with the derivatives of its arguments carried along."""
    y = tf.exp(value_of(x))
    return chain(y, (x, y))


@rule(elementary.expm1, math.expm1)
def expm1(x: Any) -> Any:
    """`expm1`, with the derivatives of its arguments carried along."""
    y = tf.expm1(value_of(x))
    return chain(y, (x, 1.0 + y))


@rule(math.sqrt)
def sqrt(x: Any) -> Any:
    """`sqrt`, with the derivatives of its arguments carried along."""
    y = tf.sqrt(value_of(x))
    return chain(y, (x, 0.5 / y))


@rule(math.hypot)
def hypot(x: Any, y: Any) -> Any:
    """`hypot`, with the derivatives of its arguments carried along, in a unit whose squares stay in the range."""
    a, b = value_of(x), value_of(y)
    unit = np.ldexp(1.0, np.frexp(np.maximum(np.abs(a.hi), np.abs(b.hi)))[1] - 1)
    a, b = a / unit, b / unit
    length = tf.sqrt(a * a + b * b)
    return chain(length * unit, (x, a / length), (y, b / length))


@rule(math.sin)
def sin(x: Any) -> Any:
    """`sin`, with the derivatives of its arguments carried along."""
    sine, cosine = tf.sin_and_cos(value_of(x))
    return chain(sine, (x, cosine))


@rule(math.cos)
def cos(x: Any) -> Any:
    """`cos`, with the derivatives of its arguments carried along."""
    sine, cosine = tf.sin_and_cos(value_of(x))
    return chain(cosine, (x, -sine))


@rule(math.atan)
def atan(x: Any) -> Any:
    """`atan`, with the derivatives of its arguments carried along."""
    v = value_of(x)
    return chain(tf.angle(v, 1.0), (x, 1.0 / (1.0 + v * v)))


@rule(math.fabs)
def fabs(x: Any) -> Any:
    """`fabs`, with the derivatives of its arguments carried along."""
    return abs(x)


@rule(primitives.fma)
def fma(x: Any, y: Any, z: Any) -> Any:
    """`fma`, with the derivatives of its arguments carried along."""
    return x * y + z


@rule(elementary.two_sum)
def two_sum(a: Any, b: Any) -> tuple[Any, float]:
    """The sum has digits enough: there is no error to carry."""
    return a + b, 0.0


@rule(special.difference_of_products)
def difference_of_products(a: Any, b: Any, c: Any, d: Any) -> Any:
    """`difference_of_products`, with the derivatives of its arguments carried along."""
    return a * b - c * d


@rule(ranges.difference_over)
def difference_over(a: Any, b: Any, c: Any, d: Any, unit: Any, more: Any) -> Any:
    """`difference_over`, with the derivatives of its arguments carried along, also where c is 0."""
    return (a / unit) * (b / more) - (d / unit) * (c / more)


# --- remainders beyond first order ------------------------------------------------------------------------------------


def _phi(t: Twofold) -> Twofold:
    return t - tf.log1p(t)


@rule(log_cells.phi)
def phi(t: Any) -> Any:
    """The derivative of t - log(1 + t) is t/(1 + t)."""
    v = value_of(t)
    return chain(_phi(v), (t, v / (1.0 + v)))


@rule(special.excess)
def excess(x: Any, y: Any, d: Any) -> Any:
    """With r = y/x and r - 1 = d/x: dr = dy/x - r*dx/x, and r - 1 - log(r) changes by (r - 1)/r*dr."""
    a, b, rise = value_of(x), value_of(y), value_of(d)
    t = rise / a
    small = np.abs(t.hi) < 0.5
    value = where(small, _phi(where(small, t, 0.0)), t - tf.log_of_quotient(b, a))
    return chain(value, (y, t / b), (x, -t / a))


@rule(special.excess_of_products)
def excess_of_products(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Of the ratio r = a*b/(c*d): (r - 1)*(da/a + db/b - dc/c - dd/d)."""
    va, vb, vc, vd = value_of(a), value_of(b), value_of(c), value_of(d)
    t = _ratio_less_1(va, vb, vc, vd)
    small = np.abs(t.hi) < 0.5
    logs = (tf.log(va) - tf.log(vc)) + (tf.log(vb) - tf.log(vd))
    value = where(small, _phi(where(small, t, 0.0)), t - logs)
    return chain(value, (a, t / va), (b, t / vb), (c, -t / vc), (d, -t / vd))


def _ratio_less_1(a: Twofold, b: Twofold, c: Twofold, d: Twofold) -> Twofold:
    return _ratio_of_products(a, b, c, d) - 1.0


def _ratio_of_products(a: Twofold, b: Twofold, c: Twofold, d: Twofold) -> Twofold:
    """a*b/(c*d), with the powers of two apart, so that no product leaves the range."""
    (one, k), (two, m), (three, n), (four, o) = (_parts(x) for x in (a, b, c, d))
    return scaled((one * two) / (three * four), k + m - n - o)


def _parts(x: Twofold) -> tuple[Twofold, Any]:
    """x as m*2**k, with m from 0.5 to 1."""
    k = np.frexp(x.hi)[1]
    half = k // 2  # 2**-k may be beyond the range
    return scaled(scaled(x, -half), half - k), k


@rule(special.log_in_parts)
def log_in_parts(a: Any, b: Any, c: Any, d: Any) -> tuple[float, Any]:
    """The logarithm has digits enough: there is no part to keep by itself."""
    va, vb, vc, vd = value_of(a), value_of(b), value_of(c), value_of(d)
    t = _ratio_less_1(va, vb, vc, vd)
    small = np.abs(t.hi) < 0.5
    logs = (tf.log(va) - tf.log(vc)) + (tf.log(vb) - tf.log(vd))
    value = where(small, tf.log1p(where(small, t, 0.0)), logs)
    return 0.0, chain(value, (a, 1.0 / va), (b, 1.0 / vb), (c, -1.0 / vc), (d, -1.0 / vd))


@rule(special.excess_of_nearly)
def excess_of_nearly(a: Any, b: Any, c: Any, d: Any, off: Any, shift: int) -> Any:
    """Products have digits enough: what their rounding loses is nothing here, and no power of two is apart."""
    return excess_of_products(a, b, c, d)


def split_exponent(x: Any) -> tuple[Any, int]:
    """Every number as it is: products have room enough."""
    return x, 0


RULES[elementary.split_exponent] = split_exponent


@rule(special.exp_excess, log_cells.remainder)
def exp_excess(v: Any) -> Any:
    """The derivative of exp(v) - 1 - v is exp(v) - 1."""
    x = value_of(v)
    rise = tf.expm1(x)
    small = np.abs(x.hi) < 0.25
    near = where(small, x, 0.0)
    return chain(where(small, near * near * tf.power_series(near, EXP_EXCESS), rise - x), (v, rise))


def _sum_of_logs(value: Twofold, *terms: tuple[Any, Any]) -> Any:
    """A number whose slopes are those of several, times factors: where all but the last digits cancel, they are 0."""
    whole_sum = chain(value, *terms)
    parts = [argument.slopes * partial for argument, partial in terms if isinstance(argument, Dual)]
    return Dual(value, _without_rest(whole_sum.slopes, parts)) if parts else whole_sum


def _without_rest(total: Twofold, parts: list[Twofold]) -> Twofold:
    """A sum, 0 where it is no more than the rounding of its parts; so also how it moves."""
    largest_part = functools.reduce(np.maximum, (np.abs(part.hi) for part in parts))
    found = where(np.abs(total.hi) <= ROUNDING * largest_part, 0.0, still(total))
    if not isinstance(total, Moving):
        return found
    return Moving(found, _without_rest(total.move, [move_of(part) for part in parts]))


@rule(ranges.times_exp_excess)
def times_exp_excess(a: Any, v: Any, low: Any) -> Any:
    """a*(exp(v) - 1 - v) changes by a*(exp(v) - 1)*(da/a + dv) - v*da, where v may have -log(a) in it."""
    weight, exponent = value_of(a), v + low
    x = value_of(exponent)
    big = x.hi > ranges.MOST
    near = where(big, 0.0, x)
    rise = where(big, weight * tf.exp(Twofold(ranges.MOST)) * tf.exp(x - ranges.MOST), weight * tf.expm1(near))
    value = where(big, rise, weight * value_of(exp_excess(near)))
    if is_moving(weight, x):
        parts = [over(move_of(weight), still(weight)), move_of(x)]
        grown = _without_rest(parts[0] + parts[1], parts)  # of weight*exp(x), whose parts may cancel
        rise = Moving(still(rise), times(grown, still(rise) + still(weight)) - move_of(weight))
    together = _sum_of_logs(x, (a, 1.0 / weight), (exponent, 1.0))
    return chain(value, (together, rise), (a, -x))


@rule(ranges.times_excess)
def times_excess(w: Any, a: Any, b: Any, c: Any, d: Any, off: Any, shift: int) -> Any:
    """With r = a*b/(c*d), w*(r - 1 - log(r)) changes by w*(r - 1)*(dw/w + dr/r) - log(r)*dw; c or d may be w."""
    weight, va, vb, vc, vd = (value_of(x) for x in (w, a, b, c, d))
    t = _ratio_less_1(va, vb, vc, vd)
    small = np.abs(t.hi) < 0.5
    near = where(small, t, 0.0)
    log_of = where(small, tf.log1p(near), (tf.log(va) - tf.log(vc)) + (tf.log(vb) - tf.log(vd)))
    rise = where(np.isfinite(t.hi), weight * t, _ratio_of_products(weight * va, vb, vc, vd))
    value = where(small, weight * _phi(near), rise - weight * log_of)
    logs = ((w, 1.0 / weight), (a, 1.0 / va), (b, 1.0 / vb), (c, -1.0 / vc), (d, -1.0 / vd))
    return chain(value, (_sum_of_logs(log_of, *logs), rise), (w, -log_of))


@rule(divergences.log_ratio)
def log_ratio(p: Any, q: Any, d: Any) -> Any:
    """`log_ratio`, with the derivatives of its arguments carried along."""
    a, b = value_of(p), value_of(q)
    both_zero = (a.hi == 0.0) & (b.hi == 0.0)
    value = where(both_zero, 0.0, tf.log_of_quotient(where(both_zero, 1.0, a), where(both_zero, 1.0, b)))
    return chain(value, (p, 1.0 / a), (q, -1.0 / b))


@rule(divergences.sharp_log_ratio)
def sharp_log_ratio(p: Any, q: Any, d: Any, low: Any) -> Any:
    """`sharp_log_ratio`, with the derivatives of its arguments carried along."""
    return log_ratio(p, q, d)


@rule(divergences.bregman)
def bregman(p: Any, q: Any, d: Any, low: Any) -> Any:
    """p*log(p/q) - p + q changes by log(p/q)*dp + (q - p)/q*dq.

    At p = 0 < q the slope by p is -inf, and at p = q = 0, from where p cannot move, inf; that by q is 1 there too.
    """
    a, b = value_of(p), value_of(q)
    rise = value_of(d) + value_of(low)
    t = rise / b
    small = np.abs(t.hi) < 0.5
    log_of = where(small, tf.log1p(where(small, t, 0.0)), tf.log(a) - tf.log(b))
    nothing = (a.hi == 0.0) & (b.hi == 0.0)
    log_of, t = where(nothing, math.inf, log_of), where(nothing, -1.0, t)
    value = where(a.hi == 0.0, b, a * log_of - rise)
    return chain(value, (p, log_of), (q, -t))


@rule(divergences.generalized_kl)
def generalized_kl(p: Any, q: Any) -> Any:
    """`generalized_kl`, with the derivatives of its arguments carried along."""
    return bregman(p, q, p - q, 0.0)


# --- log-gamma and what is left of it ---------------------------------------------------------------------------------


@rule(special.log_gamma, math.lgamma)
def log_gamma(x: Any) -> Any:
    """`log_gamma`, with the derivatives of its arguments carried along."""
    v = value_of(x)
    return chain(tf.log_gamma(v), (x, tf.digamma(v)))


@rule(special.digamma)
def digamma(x: Any) -> Any:
    """`digamma`, with the derivatives of its arguments carried along."""
    v = value_of(x)
    return chain(tf.digamma(v), (x, tf.trigamma(v)))


@rule(special.trigamma)
def trigamma(x: Any) -> Any:
    """`trigamma`, with the derivatives of its arguments carried along."""
    v = value_of(x)
    return chain(tf.trigamma(v), (x, tf.tetragamma(v)))


@rule(special.stirling)
def stirling(x: Any) -> Any:
    """`stirling`, with the derivatives of its arguments carried along."""
    v = value_of(x)
    return chain(tf.remainder_of_stirling(v), (x, tf.digamma_less_log(v)))


@rule(special.stirling_slope)
def stirling_slope(x: Any) -> Any:
    """`stirling_slope`, with the derivatives of its arguments carried along."""
    v = value_of(x)
    return chain(tf.digamma_less_log(v), (x, tf.trigamma_less_powers(v)))


@rule(special.stirling_bregman, special.stirling_bregman_large)
def stirling_bregman(a: Any, b: Any, d: Any) -> Any:
    """c(b) - c(a) - c'(a)*(b - a) changes by [c'(b) - c'(a)]*db - c''(a)*(b - a)*da."""
    x, y, rise = value_of(a), value_of(b), value_of(d)
    slope = tf.digamma_less_log(x)
    value = (tf.remainder_of_stirling(y) - tf.remainder_of_stirling(x)) - slope * rise
    return chain(value, (b, tf.digamma_less_log(y) - slope), (a, -rise * tf.trigamma_less_powers(x)))


@rule(special.log_gamma_bregman)
def log_gamma_bregman(a: Any, b: Any, d: Any) -> Any:
    """It changes by [digamma(b) - digamma(a)]*db - trigamma(a)*(b - a)*da."""
    x, y, rise = value_of(a), value_of(b), value_of(d)
    slope = tf.digamma_less_log(x)
    rest = (tf.remainder_of_stirling(y) - tf.remainder_of_stirling(x)) - slope * rise
    log_of = tf.log_of_quotient(y, x)
    value = y * (log_of - rise / y) + 0.5 * (rise / x - log_of) + rest
    climb = log_of + 0.5 * rise / (x * y) + (tf.digamma_less_log(y) - slope)
    return chain(value, (b, climb), (a, -rise * tf.trigamma(x)))


@rule(special.digamma_bregman)
def digamma_bregman(a: Any, b: Any, d: Any) -> Any:
    """digamma(a) + trigamma(a)*(b - a) - digamma(b)."""
    x, y, rise = value_of(a), value_of(b), value_of(d)
    curve = tf.trigamma(x)
    fall = tf.log_of_quotient(x, y) - 0.5 * rise / (x * y) + (tf.digamma_less_log(x) - tf.digamma_less_log(y))
    return chain(fall + curve * rise, (b, curve - tf.trigamma(y)), (a, rise * tf.tetragamma(x)))


# --- Bessel functions, and the exponential integral -------------------------------------------------------------------


@rule(bessel.bessel_ratio)
def bessel_ratio(x: Any) -> Any:
    """`bessel_ratio`, with the derivatives of its arguments carried along."""
    value, _, slope = tf.bessel_ratio(value_of(x))
    return chain(value, (x, slope))


@rule(bessel.log_bessel_bregman)
def log_bessel_bregman(a: Any, b: Any, d: Any) -> Any:
    """With A = I1/I0 it changes by [A(b) - A(a)]*db - A'(a)*(b - a)*da."""
    x, y, rise = value_of(a), value_of(b), value_of(d)
    ratio, gap, slope = tf.bessel_ratio(x)
    ratio_b, gap_b, _ = tf.bessel_ratio(y)
    climb = where(x.hi < 1.0, ratio_b - ratio, gap - gap_b)
    value = tf.log_bessel(y) - tf.log_bessel(x) - ratio * rise
    return chain(value, (b, climb), (a, -slope * rise))


@rule(integrals.entire_exponential_integral)
def entire_exponential_integral(z: Any) -> Any:
    """The derivative is (1 - exp(-z))/z."""
    v = value_of(z)
    slope = where(v.hi == 0.0, 1.0, -tf.expm1(-v) / where(v.hi == 0.0, 1.0, v))
    return chain(tf.entire_exponential_integral(v), (z, slope))


@rule(integrals.scaled_exponential_integral)
def scaled_exponential_integral(z: Any) -> Any:
    """The derivative of exp(z)*E1(z) is that itself less 1/z."""
    v = value_of(z)
    y = tf.scaled_exponential_integral(v)
    return chain(y, (z, y - 1.0 / v))


@rule(integrals.scaled_erfc)
def scaled_erfc(x: Any) -> Any:
    """The derivative of exp(x*x)*erfc(x) is 2*x times that, less 2/sqrt(pi)."""
    v = value_of(x)
    y = tf.scaled_erfc(v)
    return chain(y, (x, 2.0 * v * y - tf.TWO_OVER_SQRT_PI))


@rule(math.erf)
def erf(x: Any) -> Any:
    """`erf`, with the derivatives of its arguments carried along."""
    v = value_of(x)
    return chain(tf.erf(v), (x, tf.TWO_OVER_SQRT_PI * tf.exp(-v * v)))
