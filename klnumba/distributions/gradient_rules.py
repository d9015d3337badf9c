"""Derivatives of formulas that belong to one family, by hand, for `gradient`."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from klnumba.distributions import (
    beta,
    continuous_bernoulli,
    from_lindley,
    gumbel,
    kumaraswamy,
    laplace,
    logistic,
    to_lindley,
    uniform,
)
from klnumba.duals import twofold as tf
from klnumba.duals.dual import chain, value_of
from klnumba.duals.nodes import over_nodes
from klnumba.duals.number import Twofold, exactly, must_rest, where
from klnumba.duals.rules import exp_excess, rule
from klnumba.duals.twin import rebuilt, twin
from klnumba.formulas import cumulants, kumaraswamy_cells
from klnumba.formulas.ranges import in_range
from klnumba.formulas.special import HALF_LOG_2PI


def _fractions(of: Callable[[int], Fraction], start: int) -> list[Twofold]:
    return [exactly(of(k)) for k in range(start, start + 18)]


MEAN_LOG = _fractions(lambda k: Fraction(1, 2 * k * (2 * k + 1)), 1)
MEAN_LOG_SLOPE = _fractions(lambda k: Fraction(1, 2 * k + 1), 1)
SINHC = _fractions(lambda k: Fraction(1, math.factorial(2 * k + 1)), 1)
SINHC_SLOPE = _fractions(lambda k: Fraction(2 * k, math.factorial(2 * k + 1)), 1)

NO_DENSITY = 40.0  # deviations from a normal variable's mean where the density is no number but 0
ALMOST_UNIFORM = 1e-16  # log-odds below which a derivative is that at 0


@rule(uniform.mean_log_excess)
def mean_log_excess(t: Any) -> Any:
    """-E log(1 + t*U) has the derivative (atanh(t)/t - 1)/t, infinite at 1."""
    x = value_of(t)
    small = x.hi < 0.1
    near, far = where(small, x, 0.0), where(small, 0.5, x)
    z = near * near
    up, down = tf.log1p(far), tf.log(1.0 - far)
    left = where((1.0 - far).hi == 0.0, 0.0, (1.0 - far) * down)
    value = where(small, z * tf.power_series(z, MEAN_LOG), 1.0 - ((1.0 + far) * up - left) / (2.0 * far))
    slope = where(small, near * tf.power_series(z, MEAN_LOG_SLOPE), (0.5 * (up - down) / far - 1.0) / far)
    return chain(value, (t, slope))


@rule(uniform.log_sinhc)
def log_sinhc(x: Any) -> Any:
    """The derivative of log(sinh(x)/x) is coth(x) - 1/x."""
    v = value_of(x)
    small = v.hi < 0.5
    near, far = where(small, v, 0.0), where(small, 1.0, v)
    z = near * near
    more = z * tf.power_series(z, SINHC)
    value = where(small, tf.log1p(more), far + tf.log1p(-tf.exp(-2.0 * far)) - tf.log(2.0 * far))
    slope_near = near * tf.power_series(z, SINHC_SLOPE) / (1.0 + more)
    slope = where(small, slope_near, 1.0 + 2.0 / tf.expm1(2.0 * far) - 1.0 / far)
    return chain(value, (x, slope))


@rule(continuous_bernoulli.occupancy)
def occupancy(x: Any) -> Any:
    """The derivative of n = 1/(exp(x) - 1) is -n*(1 + n); exp(-x) does not overflow."""
    n = _occupancy(value_of(x))
    return chain(n, (x, -n * (1.0 + n)))


@rule(continuous_bernoulli.energy)
def energy(x: Any) -> Any:
    """x*n, with the same n."""
    v = value_of(x)
    n = _occupancy(v)
    return chain(v * n, (x, n - v * n * (1.0 + n)))


def _occupancy(x: Twofold) -> Twofold:
    return tf.exp(-x) / -tf.expm1(-x)


@rule(uniform.mean_log_and_1)
def mean_log_and_1(low: Any, above: Any, width: Any) -> Any:
    """Its text, and at 0 what that leaves out: there the slope of low*log(low) is -inf."""
    found = rebuilt(uniform.mean_log_and_1)(low, above, width)
    return found + chain(Twofold(0.0), (low, Twofold(math.inf))) if low == 0.0 else found


@rule(beta.larger_unit)
def larger_unit(most: Any) -> float:
    """None: slopes are beyond the range where the numbers are far within it."""
    return 1.0


@rule(beta.one_small)
def one_small(a: Any, b: Any, c: Any, d: Any, first: Any, second: Any) -> Any:
    """Its text rearranges the textbook form for the digits of float64; with twice as many, that form will do."""
    w, x, y, z = value_of(a), value_of(b), value_of(c), value_of(d)
    s, t = w + x, y + z
    climb, of_sum = _climb(s, t), tf.trigamma(s) * (t - s)
    value = (_beyond_first_order(w, y) + _beyond_first_order(x, z)) - _beyond_first_order(s, t)
    return chain(
        value,
        (a, of_sum - tf.trigamma(w) * (y - w)),
        (b, of_sum - tf.trigamma(x) * (z - x)),
        (c, _climb(w, y) - climb),
        (d, _climb(x, z) - climb),
    )


@rule(gumbel.gumbel_distance)
def gumbel_distance(y: Any) -> Any:
    """y - EULER and twice the entire exponential integral of exp(-y); the slope is 2*exp(-exp(-y)) - 1."""
    v = value_of(y)
    z = tf.exp(-v)
    far = v.hi < -40.0  # there the integral is EULER - y
    more = tf.entire_exponential_integral(where(far, 1.0, z))
    value = where(far, tf.EULER - v, (v - tf.EULER) + 2.0 * more)
    return chain(value, (y, 2.0 * tf.exp(-z) - 1.0))


def _climb(x: Twofold, y: Twofold) -> Twofold:
    """digamma(y) - digamma(x)."""
    rest = tf.digamma_less_log(y) - tf.digamma_less_log(x)
    return tf.log_of_quotient(y, x) + (0.5 * (y - x) / (x * y) + rest)


def _beyond_first_order(x: Twofold, y: Twofold) -> Twofold:
    """log-gamma(y) - log-gamma(x) - digamma(x)*(y - x)."""
    return (tf.log_gamma(y) - tf.log_gamma(x)) - tf.digamma(x) * (y - x)


@rule(logistic.same_scale)
def same_scale(loc_p: Any, scale_p: Any, loc_q: Any, scale_q: Any) -> Any:
    """Those of the divergence for any scales, where these are equal to s.

    With y half the distance in units of s, and w = y/sinh(y): by the locations (coth(y) - y/sinh(y)**2)/s and its
    opposite, by the scale of p (w*w - 1)/s, by that of q (1 + w*w - 2*y*coth(y))/s. They are means of Z*tanh(y + Z/2)
    and of tanh(y + Z/2), Z a standard logistic variable, and E tanh(y + Z/2) is half the slope of 2*y*coth(y) by y.
    """
    must_rest("scale", value_of(scale_p), value_of(scale_q))
    s = value_of(scale_p)
    y = 0.5 * (value_of(loc_p) - value_of(loc_q)) / s
    sign = np.where(y.hi < 0.0, -1.0, 1.0)
    size = y * sign
    less, more = _coth_parts(size)
    pull = (more + less) * sign / s
    less, more = less * size, more * size
    of_scale_q = -(less + 2.0 * more) / s
    return chain(2.0 * more, (loc_p, pull), (loc_q, -pull), (scale_p, -less / s), (scale_q, of_scale_q))


def _coth_parts(y: Twofold) -> tuple[Twofold, Twofold]:
    """1 - (y/sinh(y))**2 and y*coth(y) - 1, both divided by y >= 0; 0 at 0."""
    small = y.hi < 0.5
    near, far = where(small, y, 0.0), where(small, 1.0, y)
    z = near * near
    slope = near * tf.power_series(z, SINHC)
    above = near * slope  # sinh(y)/y - 1
    less_near = slope * (2.0 + above) / ((1.0 + above) * (1.0 + above))
    more_near = near * tf.power_series(z, SINHC_SLOPE) / (1.0 + above)
    fall = tf.exp(-2.0 * far)
    rest = -tf.expm1(-2.0 * far)
    less_far = 1.0 / far - 4.0 * far * fall / (rest * rest)
    more_far = (1.0 + fall) / rest - 1.0 / far
    return where(small, less_near, less_far), where(small, more_near, more_far)


@rule(math.floor)
def floor(x: Any) -> Any:
    """It does not change but where it jumps."""
    return Twofold(np.floor(value_of(x).hi))


@rule(laplace.mean_distance)
def mean_distance(y: Any) -> Any:
    """sqrt(2/pi)*exp(-y**2/2) + y*erf(y/sqrt(2)), with the derivative erf(y/sqrt(2))."""
    v = value_of(y)
    half = tf.sqrt(0.5)
    slope = tf.erf(half * v)
    return chain(half * tf.TWO_OVER_SQRT_PI * tf.exp(-0.5 * v * v) + v * slope, (y, slope))


@rule(laplace.to_laplace)
def to_laplace(distance: Any, unit: Any, scale: Any, entropy: Any, off: Any) -> Any:
    """With d*u the distance, to which `off` adds nothing: d*u/s + log(2*s/u) less the entropy."""
    d, u, s, h = (value_of(x) for x in (distance, unit, scale, entropy))
    value = d * u / s + (tf.log(s) - tf.log(u)) + tf.log(2.0) - h
    of_scale = (1.0 - d * u / s) / s
    return chain(value, (distance, u / s), (unit, d / s - 1.0 / u), (scale, of_scale), (entropy, Twofold(-1.0)))


@rule(laplace.normal_laplace)
def normal_laplace(loc_p: Any, scale_p: Any, loc_q: Any, scale_q: Any) -> Any:
    """With y the distance over scale_p: erf(y/sqrt(2))/scale_q by loc_p, twice the density over scale_q by scale_p.

    In the text this density is a difference of two terms that may be larger than all there is by any factor.
    """
    given = twin(in_range)(loc_p, scale_p, loc_q, scale_q)
    m, u, n, s = map(value_of, given)
    off, half = m - n, tf.sqrt(0.5)
    far = (off / u).hi
    y = where(np.abs(far) < NO_DENSITY, off / u, np.where(far < 0.0, -NO_DENSITY, NO_DENSITY))
    density, inside = half * tf.TWO_OVER_SQRT_PI * tf.exp(-0.5 * y * y), tf.erf(half * y)
    distance = (u * density + off * inside) / s
    value = distance + (tf.log(s) - tf.log(u)) + (tf.log(2.0) - (0.5 + HALF_LOG_2PI))
    slopes = inside / s, density / s - 1.0 / u, -inside / s, (1.0 - distance) / s
    return chain(value, *zip(given, slopes, strict=True))


@rule(kumaraswamy.kumaraswamy_kumaraswamy)
def kumaraswamy_kumaraswamy(a: Any, b: Any, c: Any, d: Any) -> Any:
    """The integral also for equal a and c, where the text has a closed form: that does not say what happens beside."""
    return twin(kumaraswamy.by_integral)(a, b, c, d)


@rule(kumaraswamy.kumaraswamy_beta)
def kumaraswamy_beta(a: Any, b: Any, c: Any, d: Any) -> Any:
    """The same, for what a, b or d of 1 leave out."""
    return twin(kumaraswamy.beta_by_integral)(a, b, c, d)


def _kumaraswamy_nodes(sign: float, nodes: np.ndarray, numbers: tuple[Any, ...]) -> tuple[Any, ...]:
    node = twin(kumaraswamy_cells.node)
    return over_nodes(lambda t, *x: node(t, sign, *x), nodes, *numbers)


@rule(kumaraswamy_cells.sums)
def kumaraswamy_sums(step: float, off: float, *numbers: Any) -> tuple[Any, ...]:
    """All nodes at once."""
    nodes = np.arange(kumaraswamy_cells.FIRST + off, kumaraswamy_cells.LAST + 0.25 * step, step)
    above, below = (_kumaraswamy_nodes(sign, nodes, numbers) for sign in (1.0, -1.0))
    return tuple(x + y for x, y in zip(above, below, strict=True))


@rule(kumaraswamy_cells.sum_beyond)
def kumaraswamy_sum_beyond(step: float, off: float, b: Any, log_b: Any, low: Any, high: Any, *others: Any) -> Any:
    """All nodes at once, up to the last that one of the batch needs."""
    total = 0.0
    for sign in (1.0, -1.0):
        last = value_of(twin(kumaraswamy_cells.last_of_q)(sign, b, low, high)).hi.max()
        nodes = np.arange(kumaraswamy_cells.LAST + (off or step), last, step)
        if nodes.size:
            total = total + _kumaraswamy_nodes(sign, nodes, (b, log_b, low, high, *others))[0]
    return total


@rule(kumaraswamy_cells.log_blend_excess)
def log_blend_excess(y: Any, rest: Any, v: Any) -> Any:
    """With w = 1 - exp(-v) and l = 1 - rest*w: by y, which takes from the rest, (w - v*l)/l, and by v y*rest*w/l."""
    value = value_of(rebuilt(kumaraswamy_cells.log_blend_excess)(y, rest, v))
    a, b, x = value_of(y), value_of(rest), value_of(v)
    fall = -tf.expm1(-x)
    left = a + b * tf.exp(-x)
    of_y = (b * (x * fall) - value_of(exp_excess(-v))) / left
    return chain(value, (y, of_y), (v, a * (b * fall) / left))


@rule(cumulants.sum_beside)
def sum_beside(step: float, *numbers: Any) -> Any:
    """All nodes at once."""
    node = twin(cumulants.beside)
    (total,) = over_nodes(lambda t, *x: (node(t, *x),), np.arange(cumulants.FIRST, cumulants.LAST, step), *numbers)
    return total


@rule(from_lindley.lindley_gamma)
def lindley_gamma(rate_p: Any, shape: Any, rate_q: Any) -> Any:
    """The closed form also where its terms cancel: there are digits enough."""
    return twin(from_lindley.to_gamma)(rate_p, shape, rate_q)


@rule(from_lindley.lindley_weibull)
def lindley_weibull(rate: Any, scale: Any, shape: Any) -> Any:
    """The same."""
    return twin(from_lindley.to_weibull)(rate, scale, shape)


@rule(to_lindley.exponential_lindley)
def exponential_lindley(rate_p: Any, rate_q: Any) -> Any:
    """The same."""
    return twin(to_lindley.to_lindley)(rate_p, rate_q)


@rule(continuous_bernoulli.shortfall)
def shortfall(eta: Any, m: Any) -> Any:
    """Its text, but next to 0, where that has a branch of its own, the covariance of X and of what it falls short."""
    if not (abs(eta) < ALMOST_UNIFORM):
        return rebuilt(continuous_bernoulli.shortfall)(eta, m)
    must_rest("probs next to 1/2", value_of(eta))
    v = value_of(m)
    return chain(0.5 * v * v, (eta, v * v * (2.0 * v - 3.0) / 12.0), (m, v))
