"""Derivatives of formulas that belong to one family, by hand, for `gradient`."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from klnumba.distributions import beta, binomial, continuous_bernoulli, gumbel, odds, uniform
from klnumba.duals import twofold as tf
from klnumba.duals.dual import chain, value_of
from klnumba.duals.rules import rule
from klnumba.duals.twin import rebuilt
from klnumba.duals.twofold import Twofold, exactly, where


def _fractions(of: Callable[[int], Fraction], start: int) -> list[Twofold]:
    return [exactly(of(k)) for k in range(start, start + 18)]


MEAN_LOG = _fractions(lambda k: Fraction(1, 2 * k * (2 * k + 1)), 1)
MEAN_LOG_SLOPE = _fractions(lambda k: Fraction(1, 2 * k + 1), 1)
SINHC = _fractions(lambda k: Fraction(1, math.factorial(2 * k + 1)), 1)
SINHC_SLOPE = _fractions(lambda k: Fraction(2 * k, math.factorial(2 * k + 1)), 1)


@rule(uniform.mean_log_excess)
def mean_log_excess(t: Any) -> Any:
    """-E log(1 + t*U) has the derivative (atanh(t)/t - 1)/t, infinite at 1."""
    x = value_of(t)
    small = x.hi < 0.1
    near, far = where(small, x, 0.0), where(small, 0.5, x)
    z = near * near
    up, down = tf.log1p(far), tf.log1p(-far)
    left = where(far.hi == 1.0, 0.0, (1.0 - far) * down)
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
    value = (v - tf.EULER) + 2.0 * tf.entire_exponential_integral(z)
    return chain(value, (y, 2.0 * tf.exp(-z) - 1.0))


def _climb(x: Twofold, y: Twofold) -> Twofold:
    """digamma(y) - digamma(x)."""
    rest = tf.digamma_less_log(y) - tf.digamma_less_log(x)
    return tf.log_of_quotient(y, x) + (0.5 * (y - x) / (x * y) + rest)


def _beyond_first_order(x: Twofold, y: Twofold) -> Twofold:
    """log-gamma(y) - log-gamma(x) - digamma(x)*(y - x)."""
    return (tf.log_gamma(y) - tf.log_gamma(x)) - tf.digamma(x) * (y - x)


@rule(odds.sigmoid)
def sigmoid(a: Any) -> Any:
    """The derivative of 1/(1 + exp(-a)) is that itself times 1/(1 + exp(a))."""
    p, rest = _odds(value_of(a))
    return chain(p, (a, p * rest))


@rule(odds.softplus)
def softplus(x: Any) -> Any:
    """The derivative of log(1 + exp(x)) is 1/(1 + exp(-x))."""
    v = value_of(x)
    value = where(v.hi > 0.0, v, 0.0) + tf.log1p(tf.exp(where(v.hi > 0.0, -v, v)))
    return chain(value, (x, _odds(v)[0]))


def _odds(a: Twofold) -> tuple[Twofold, Twofold]:
    """1/(1 + exp(-a)) and 1/(1 + exp(a))."""
    small = tf.exp(where(a.hi > 0.0, -a, a))
    large, other = 1.0 / (1.0 + small), small / (1.0 + small)
    return where(a.hi > 0.0, large, other), where(a.hi > 0.0, other, large)


@rule(binomial.fewer_of_more)
def fewer_of_more(n: Any, p: Any, other: Any, m: Any, q: Any, *rest: Any) -> Any:
    """By p: n times the mean, over n - 1 draws, of what one success more adds to the log-ratio of the probabilities."""
    v, w = value_of(p), value_of(q)
    counts, more = value_of(n), value_of(m)
    odds = (tf.log(v) - tf.log(1.0 - v)) - (tf.log(w) - tf.log(1.0 - w))
    ways = _mean_over(counts, v, more, lambda k, n, m: tf.log(Twofold(n - k) / (m - k)))
    of_q = (more * w - counts * v) / (w * (1.0 - w))
    value = _each(binomial.fewer_of_more, n, p, other, m, q, *rest)
    return chain(value, (p, counts * (ways + odds)), (q, of_q))


@rule(binomial.binomial_poisson)
def binomial_poisson(n: Any, p: Any, other: Any, rate: Any) -> Any:
    """The same; by the rate: 1 - n*p/rate."""
    v, w, counts = value_of(p), value_of(rate), value_of(n)
    ways = _mean_over(counts, v, counts, lambda k, n, _: tf.log(n - k))
    slope = counts * (ways + (tf.log(v) - tf.log(1.0 - v)) - tf.log(w))
    value = _each(binomial.binomial_poisson, n, p, other, rate)
    return chain(value, (p, where(counts.hi == 0.0, 0.0, slope)), (rate, 1.0 - counts * v / w))


def _each(formula: Callable[..., float], *numbers: Any) -> Twofold:
    """The formula of plain numbers, cell by cell."""
    columns = np.broadcast_arrays(*(value_of(x).hi for x in numbers))
    return Twofold(np.array([formula(*row) for row in np.stack(columns, -1).reshape(-1, len(columns))]))


def _mean_over(counts: Twofold, p: Twofold, more: Twofold, of: Callable[..., Twofold]) -> Twofold:
    """E of(K, n, m) over K successes of n - 1 draws, cell by cell."""
    found = []
    for n, m, hi, lo in zip(*np.broadcast_arrays(counts.hi, more.hi, p.hi, p.lo), strict=True):
        if n < 1.0:
            found.append((0.0, 0.0))
            continue
        x, last = Twofold(hi, lo), n - 1.0
        reach = binomial.width_of_sum(last, float(hi), 1.0 - float(hi))
        k = np.arange(max(math.floor(last * hi - reach), 0.0), min(last, math.ceil(last * hi + reach)) + 1.0)
        ways = tf.log_gamma(last + 1.0) - tf.log_gamma(k + 1.0) - tf.log_gamma(last - k + 1.0)
        logs = ways + where(k == 0.0, 0.0, k * tf.log(x)) + where(k == last, 0.0, (last - k) * tf.log(1.0 - x))
        terms = tf.exp(logs) * of(k, n, m)
        high = math.fsum(terms.hi)
        found.append((high, math.fsum([*terms.hi, -high, *terms.lo])))
    return Twofold(*np.array(found).reshape(-1, 2).T)
