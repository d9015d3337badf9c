"""Derivatives by hand of the formulas of families with a probability, for `gradient`.

By log-odds the derivative of a divergence has the factor p*(1 - p), which may be 1e-300 where the cells of the formula
are of ordinary size. With s(x) = log(1 + exp(x)) the divergence of one draw of log-odds a from one of b is
p*(a - b) + s(b) - s(a), whose derivatives are p*(1 - p)*(a - b) and the difference of the probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.distributions import binomial, count_means, count_pairs, geometric, mixed_odds, negative_binomial, odds
from klnumba.distributions.continuous_bernoulli import log_odds
from klnumba.distributions.evaluate import evaluate
from klnumba.duals import twofold as tf
from klnumba.duals.dual import Choice, chain, value_of
from klnumba.duals.number import Twofold, is_moving, must_rest, where
from klnumba.duals.rules import rule
from klnumba.duals.twin import rebuilt, twin


@rule(mixed_odds.log_odds_twofold)
def log_odds_twofold(p: Any) -> tuple[Any, float]:
    """The log-odds have digits enough: there is no second part, and the arguments for it below are 0."""
    return twin(log_odds)(p), 0.0


@rule(odds.sigmoid)
def sigmoid(a: Any, low: Any = 0.0) -> Any:
    """The derivative of 1/(1 + exp(-a)) is that itself times 1/(1 + exp(a))."""
    p, rest = _odds(value_of(a))
    return chain(p, (a, p * rest))


@rule(odds.sigmoid_twofold)
def sigmoid_twofold(a: Any, low: Any = 0.0) -> tuple[Any, float]:
    """The probability has digits enough: there is no second part."""
    return sigmoid(a), 0.0


@rule(odds.softplus)
def softplus(x: Any, low: Any = 0.0) -> Any:
    """The derivative of log(1 + exp(x)) is 1/(1 + exp(-x))."""
    v = value_of(x)
    return chain(_softplus(v), (x, _odds(v)[0]))


@rule(odds.log_of_ratio)
def log_of_ratio(a: Any, b: Any, *lows: Any) -> Any:
    """log(sigmoid(a)/sigmoid(b)): 1/(1 + exp(a)) and -1/(1 + exp(b))."""
    v, w = value_of(a), value_of(b)
    return chain(_softplus(-w) - _softplus(-v), (a, _odds(v)[1]), (b, -_odds(w)[1]))


def _odds(a: Twofold) -> tuple[Twofold, Twofold]:
    """1/(1 + exp(-a)) and 1/(1 + exp(a))."""
    small = tf.exp(where(a.hi > 0.0, -a, a))
    large, other = 1.0 / (1.0 + small), small / (1.0 + small)
    return where(a.hi > 0.0, large, other), where(a.hi > 0.0, other, large)


def _softplus(x: Twofold) -> Twofold:
    return where(x.hi > 0.0, x, 0.0) + tf.log1p(tf.exp(where(x.hi > 0.0, -x, x)))


# --- one draw ---------------------------------------------------------------------------------------------------------


@rule(odds.two_outcomes_logits)
def two_outcomes_logits(a: Any, b: Any, *lows: Any) -> Any:
    """p*(1 - p)*(a - b), and q - p."""
    v, w = value_of(a), value_of(b)
    p, rest = _odds(v)
    value = _times(p, _softplus(-w) - _softplus(-v)) + _times(rest, _softplus(w) - _softplus(v))
    return chain(value, (a, _times(p * rest, v - w)), (b, _rise(v, w)))


def _times(x: Twofold, y: Twofold) -> Twofold:
    """x*y, 0 where x is 0, for infinite log-odds."""
    return where(x.hi == 0.0, 0.0, x * y)


def _rise(a: Twofold, b: Twofold) -> Twofold:
    """sigmoid(b) - sigmoid(a) = sigmoid(b)*sigmoid(-a)*(1 - exp(a - b)), the exponent negative."""
    up = b.hi > a.hi
    low, high = where(up, a, b), where(up, b, a)
    same = (low.hi == high.hi) & ~np.isfinite(low.hi)  # of infinite numbers the difference is none
    gap = where(same, 0.0, low - high)
    size = _odds(high)[0] * _odds(low)[1] * -tf.expm1(gap)
    return where(up, size, -size)


@rule(odds.per_success_logits)
def per_success_logits(a: Any, b: Any, *lows: Any) -> Any:
    """With f = a - b + (1 + exp(-a))*(s(b) - s(a)): exp(-a)*(s(a) - s(b)), and q/p - 1."""
    v, w = value_of(a), value_of(b)
    slope = _per_success(v, w)
    return chain(_softplus(-w) - _softplus(-v) - slope, (a, slope), (b, _odds_rise(v, w)))


def _odds_rise(a: Twofold, b: Twofold) -> Twofold:
    """sigmoid(b)/sigmoid(a) - 1."""
    q, rest = _odds(b)
    far = (b.hi > 0.0) & (b.hi - a.hi > 1.0)
    return where(far, q * tf.exp(-a) - rest, rest * tf.expm1(where(far, 0.0, b - a)))


def _per_success(a: Twofold, b: Twofold) -> Twofold:
    """exp(-a)*(s(a) - s(b)); with exp(-x)*s(x), which is near 1, where both are below 0."""
    far = (a.hi > 0.0) | (b.hi > 0.0)
    near_a, near_b = where(far, 0.0, a), where(far, 0.0, b)
    near = _scaled_softplus(near_a) - _times(tf.exp(near_b - near_a), _scaled_softplus(near_b))
    return where(far, _times(tf.exp(-a), _softplus(a) - _softplus(b)), near)


def _scaled_softplus(x: Twofold) -> Twofold:
    """exp(-x)*log(1 + exp(x)) for x <= 0."""
    small = x.hi < -80.0
    near = where(small, 0.0, x)
    return where(small, 1.0 - 0.5 * tf.exp(x), tf.exp(-near) * tf.log1p(tf.exp(near)))


# --- negative binomial distributions ----------------------------------------------------------------------------------


@rule(negative_binomial.negative_binomial_probs)
def negative_binomial_probs(r: Any, p: Any, s: Any, q: Any) -> Any:
    """By the counts, where they are equal: E(X)/r*log(p/q), as E X = r*p/(1 - p), and log((1 - p)/(1 - q))."""
    must_rest("total_count", value_of(r), value_of(s))
    v, w = value_of(p), value_of(q)
    nothing = v.hi == 0.0
    logs = tf.log_of_quotient(where(nothing, 1.0, v), where(nothing, 1.0, w))
    of_r = where(nothing, 0.0, v / (1.0 - v) * logs)
    of_s = tf.log_of_quotient(1.0 - v, 1.0 - w)
    return twin(odds.per_failure)(p, q) * value_of(r) + chain(Twofold(0.0), (r, of_r), (s, of_s))


@rule(negative_binomial.negative_binomial_logits)
def negative_binomial_logits(r: Any, a: Any, s: Any, b: Any, *lows: Any) -> Any:
    """The same: exp(a)*(s(-b) - s(-a)), and s(b) - s(a)."""
    must_rest("total_count", value_of(r), value_of(s))
    v, w = value_of(a), value_of(b)
    of_s = where((v.hi == w.hi) & ~np.isfinite(v.hi), 0.0, _softplus(w) - _softplus(v))
    of_counts = chain(Twofold(0.0), (r, -_per_success(-v, -w)), (s, of_s))
    return per_success_logits(-a, -b) * value_of(r) + of_counts


# --- binomial distributions -------------------------------------------------------------------------------------------


@rule(binomial.binomial_probs)
def binomial_probs(n: Any, p: Any, m: Any, q: Any) -> Any:
    """By p: n times the mean, over n - 1 draws, of what one success more adds to the log-ratio of the probabilities."""
    v, w, counts, more = (value_of(x) for x in (p, q, n, m))
    if is_moving(v, w) and Choice(counts.hi == more.hi):
        return twin(odds.two_outcomes)(p, q) * counts
    moves = (v.hi > 0.0) & (v.hi < 1.0)
    same = (counts.hi == more.hi) & (v.hi == w.hi) & moves
    logs = tf.log_of_quotient(v, w) - tf.log_of_quotient(1.0 - v, 1.0 - w)
    of_p = counts * (_more_ways(counts, v, 1.0 - v, more) + logs)
    sure = (v.hi == 1.0) & (counts.hi == more.hi)
    shift = where(counts.hi == more.hi, counts * (w - v), more * w - counts * v)
    nothing = (v.hi == 0.0) | (counts.hi == 0.0)
    of_q = where(nothing, more / (1.0 - w), where(sure, -counts / w, shift / (w * (1.0 - w))))
    value = _each(binomial.binomial_probs, n, p, m, q)
    of_p = where(moves, of_p, math.inf)
    return chain(value, (p, where(same | (counts.hi == 0.0), 0.0, of_p)), (q, where(same, 0.0, of_q)))


@rule(binomial.binomial_logits)
def binomial_logits(n: Any, a: Any, m: Any, b: Any, *lows: Any) -> Any:
    """The same times p*(1 - p), and m*q - n*p, from their distances to m and n where these are near."""
    v, w, counts, more = (value_of(x) for x in (a, b, n, m))
    if is_moving(v, w) and Choice(counts.hi == more.hi):
        return two_outcomes_logits(a, b) * counts
    (p, rest_p), (q, rest_q) = _odds(v), _odds(w)
    of_p = _times(counts * (p * rest_p), _more_ways(counts, p, rest_p, more) + (v - w))
    high = (v.hi > 0.0) & (w.hi > 0.0)
    shift = where(high, (more - counts) + (counts * rest_p - more * rest_q), more * q - counts * p)
    of_q = where(counts.hi == more.hi, counts * _rise(v, w), shift)
    return chain(_each(binomial.binomial_logits, n, a, m, b), (a, of_p), (b, of_q))


@rule(binomial.binomial_poisson_probs)
def binomial_poisson_probs(n: Any, p: Any, rate: Any) -> Any:
    """The same of p, and 1 - n*p/rate."""
    v, w, counts = (value_of(x) for x in (p, rate, n))
    slope, of_rate = _to_poisson(counts, v, 1.0 - v, w)
    return chain(_each(binomial.binomial_poisson_probs, n, p, rate), (p, slope), (rate, of_rate))


@rule(binomial.binomial_poisson_logits)
def binomial_poisson_logits(n: Any, a: Any, rate: Any) -> Any:
    """The first of these times p*(1 - p)."""
    w, counts = value_of(rate), value_of(n)
    p, rest = _odds(value_of(a))
    slope, of_rate = _to_poisson(counts, p, rest, w)
    value = _each(binomial.binomial_poisson_logits, n, a, rate)
    return chain(value, (a, _times(p * rest, slope)), (rate, of_rate))


def _to_poisson(counts: Twofold, p: Twofold, other: Twofold, rate: Twofold) -> tuple[Twofold, Twofold]:
    ways = count_means.mean_log(counts, p, other)
    slope = counts * (ways + (tf.log(p) - tf.log(other)) - tf.log(rate))
    return where(counts.hi == 0.0, 0.0, slope), where(counts.hi * p.hi == 0.0, 1.0, 1.0 - counts * p / rate)


@rule(count_pairs.one_to_negative_binomial)
def one_to_negative_binomial(p: Any, other: Any, *others: Any) -> Any:
    """Its text, and what that leaves out: at 0 the slope of p*log(p) is -inf, and at 1 that of the other cell."""
    found = rebuilt(count_pairs.one_to_negative_binomial)(p, other, *others)
    return found + chain(Twofold(0.0), (p, Twofold(math.inf))) if p == 0.0 or other == 0.0 else found


@rule(count_pairs.to_negative_binomial)
def to_negative_binomial(n: Any, p: Any, other: Any, count: Any, q: Any, rest: Any, *logs: Any) -> Any:
    """By p as of binomial distributions, by q r/(1 - q) - n*p/q, by r E(digamma(r) - digamma(r + K)) - log(1 - q)."""
    value = _each(count_pairs.to_negative_binomial, n, p, other, count, q, rest, *logs)
    counts, r, v, w = (value_of(x) for x in (n, count, p, q))
    log_odds, log_q, log_rest = tf.log(v) - tf.log(1.0 - v), tf.log(w), tf.log(1.0 - w)
    of_p, of_r = _to_negative_binomial(counts, v, 1.0 - v, r, log_odds - log_q, log_rest)
    return chain(value, (p, of_p), (count, of_r), (q, r / (1.0 - w) - _over(counts * v, w)))


@rule(count_pairs.binomial_negative_binomial_logits)
def binomial_negative_binomial_logits(n: Any, a: Any, count: Any, b: Any, *lows: Any) -> Any:
    """The same times p*(1 - p), and times q*(1 - q)."""
    counts, r, v, w = (value_of(x) for x in (n, count, a, b))
    (p, rest_p), (q, rest_q) = _odds(v), _odds(w)
    of_p, of_r = _to_negative_binomial(counts, p, rest_p, r, v + _softplus(-w), -_softplus(w))
    value = _each(count_pairs.binomial_negative_binomial_logits, n, a, count, b)
    return chain(value, (a, _times(p * rest_p, of_p)), (count, of_r), (b, r * q - counts * p * rest_q))


def _to_negative_binomial(
    n: Twofold, p: Twofold, other: Twofold, r: Twofold, log_ratio: Twofold, log_rest: Twofold
) -> tuple[Twofold, Twofold]:
    """By p, and by r; `log_ratio` is log(p/(1 - p)/q), and `log_rest` log(1 - q)."""
    ways = count_means.mean_log_ratio(n, p, other, r, 1.0)
    climb = count_means.mean_climb(n, p, other, r)
    return where(n.hi == 0.0, 0.0, n * (ways + log_ratio)), -(climb + log_rest)


def _over(x: Twofold, y: Twofold) -> Twofold:
    """x/y, 0 where x is 0."""
    return where(x.hi == 0.0, 0.0, x / where(x.hi == 0.0, 1.0, y))


def _each(formula: Callable[..., float], *numbers: Any) -> Twofold:
    """The formula of plain numbers, as it is compiled for the divergence itself."""
    columns = np.broadcast_arrays(*(value_of(x).hi for x in numbers))
    return Twofold(evaluate(formula, columns, columns[0].shape))


def _more_ways(n: Twofold, p: Twofold, other: Twofold, m: Twofold) -> Twofold:
    """E log((n - K)/(m - K)) over K successes of n - 1 draws, n < m; else 0."""
    return count_means.mean_log_ratio(where(n.hi < m.hi, n, 0.0), p, other, m, -1.0)


# --- geometric distributions, and negative binomial ones of one failure -----------------------------------------------


@rule(geometric.bernoulli_geometric_logits)
def bernoulli_geometric_logits(a: Any, b: Any, *lows: Any) -> Any:
    """p*(1 - p)*(a + s(b)), and p*q - (1 - q)."""
    v, w = value_of(a), value_of(b)
    (p, rest), (q, other) = _odds(v), _odds(w)
    value = _each(geometric.bernoulli_geometric_logits, a, b)
    return chain(value, (a, _times(p * rest, v + _softplus(w))), (b, p * q - other))


@rule(count_pairs.geometric_first_failure_probs)
def geometric_first_failure_probs(p: Any, count: Any, q: Any) -> Any:
    """By the count, as E digamma(1 + X) - digamma(1) = -log(p): log(p/(1 - q))."""
    must_rest("total_count", value_of(count))
    of_count = tf.log_of_quotient(value_of(p), 1.0 - value_of(q))
    found = rebuilt(count_pairs.geometric_first_failure_probs)(p, count, q)
    return found + chain(Twofold(0.0), (count, of_count))


@rule(count_pairs.geometric_first_failure_logits)
def geometric_first_failure_logits(a: Any, count: Any, b: Any, *lows: Any) -> Any:
    """The same: s(b) - s(-a)."""
    must_rest("total_count", value_of(count))
    of_count = _softplus(value_of(b)) - _softplus(-value_of(a))
    return per_success_logits(a, -b) + chain(Twofold(0.0), (count, of_count))


@rule(count_pairs.first_failure_geometric_probs)
def first_failure_geometric_probs(count: Any, p: Any, q: Any) -> Any:
    """By the count, as the log-ratio of the probabilities is linear in X: E(X)*log(p/(1 - q))."""
    must_rest("total_count", value_of(count))
    v = value_of(p)
    nothing = v.hi == 0.0
    of_count = v / (1.0 - v) * tf.log_of_quotient(where(nothing, 1.0, v), 1.0 - value_of(q))
    found = rebuilt(count_pairs.first_failure_geometric_probs)(count, p, q)
    return found + chain(Twofold(0.0), (count, where(nothing, 0.0, of_count)))


@rule(count_pairs.first_failure_geometric_logits)
def first_failure_geometric_logits(count: Any, a: Any, b: Any, *lows: Any) -> Any:
    """The same: exp(a)*(s(b) - s(-a))."""
    must_rest("total_count", value_of(count))
    of_count = -_per_success(-value_of(a), value_of(b))
    return per_success_logits(-a, b) + chain(Twofold(0.0), (count, of_count))
