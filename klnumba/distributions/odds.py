"""Families with a probability, which may be given as its log-odds: what they share, and their formulas.

From probabilities, the two cells p*log(p/q) - p + q of an outcome and of its opposite have differences that are known
exactly. From log-odds a and b, p = 1/(1 + exp(-a)) and

    p/q = 1 + (1 - p)*expm1(a - b),

so that log(p/q), and with it each cell, keeps its digits at a close to b and where p underflows. Where one side is
given by its probability and the other by its log-odds, those of the first are the sum of two numbers, as a and a_low.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from klnumba.distributions.distribution import Distribution, exactly_one
from klnumba.distributions.evaluate import evaluate
from klnumba.distributions.mixed_odds import MIXED, log_odds_twofold
from klnumba.distributions.registry import ByForm, Chosen
from klnumba.formulas.divergences import bregman, generalized_kl
from klnumba.formulas.elementary import exp, expm1, log, log1p, two_sum
from klnumba.formulas.primitives import fma
from klnumba.formulas.quick import Slopes, with_quick_bends, with_quick_form, with_quick_slopes
from klnumba.formulas.slopes_of_pairs import (
    NONE,
    WIDE,
    expm1_of_difference,
    signed_log1p,
    sized,
    sized_three,
    unless_lost,
)
from klnumba.formulas.special import HALF_LOG_2PI, LN2, excess, exp_excess, log_of_products, stirling
from klnumba.formulas.twofold import plus


class Odds(Distribution):
    """A family one parameter of which is `probs` or, in its place, `logits`."""

    others: ClassVar[tuple[str, ...]] = ()  # the parameters before it
    entropy_of_logits: ClassVar[Callable[..., float]]  # as `entropy_formula`, from log-odds

    @property
    def _form(self) -> str:
        """The form in which the probability was given."""
        return "probs" if "probs" in self._given else "logits"

    def entropy(self) -> Any:
        """The entropy, in nats; of a continuous distribution the differential entropy."""
        family = type(self)
        formula = family.entropy_formula if self._form == "probs" else family.entropy_of_logits
        columns = [self._column(name) for name in (*self.others, self._form)]
        return self.nan_where_broken(evaluate(formula, columns, self.batch_shape, self.dtype))


def odds_arguments(owner: str, probs: Any, logits: Any) -> dict[str, Any]:
    """The one of the two that was given."""
    return exactly_one(owner, probs=probs, logits=logits)


def from_logits(distribution: Any) -> np.ndarray:
    """The probabilities."""
    logits = np.asarray(distribution.logits)
    small = np.exp(-np.abs(logits))
    return np.asarray(np.where(logits >= 0, 1.0, small) / (1.0 + small), logits.dtype)


def from_probs(distribution: Any) -> np.ndarray:
    """The log-odds."""
    probs = np.asarray(distribution.probs)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probs) - np.log1p(-probs))


def complement(distribution: Any) -> np.ndarray:
    """1 - probs, also where that is tiny."""
    if "probs" in distribution._given:
        return np.asarray(1.0 - distribution.probs)
    logits = np.asarray(distribution.logits)
    small = np.exp(-np.abs(logits))
    return np.asarray(np.where(logits <= 0, 1.0, small) / (1.0 + small), logits.dtype)


def by_form(
    by_probs: Callable[..., Any],
    by_logits: Callable[..., Any],
    p_as: type[Odds] | None = None,
    q_as: type[Odds] | None = None,
    mixed_slopes: tuple[Callable[..., Slopes], ...] = (),
) -> ByForm:
    """A rule that takes the formula of probabilities if both distributions have been given these, else of log-odds.

    The formula of log-odds takes as its last two arguments what is to be added to those of p, and to those of q. With
    `p_as` or `q_as` the formulas take the parameters of that family, which p or q derives from its own. The two where
    one form differs from the other may have quick slopes.
    """
    formulas = {("probs", "probs"): by_probs, ("logits", "logits"): by_logits}

    def choose(p: Odds, q: Odds) -> Chosen:
        first, second = p._form, q._form
        of_p, of_q = (p_as or type(p)).others, (q_as or type(q)).others
        if (first, second) not in formulas:
            mixed = MIXED[len(of_p), len(of_q)](by_logits)
            for slopes, formula in zip(mixed_slopes, mixed, strict=False):
                with_quick_slopes(slopes)(formula)
            formulas["probs", "logits"], formulas["logits", "probs"] = mixed
        return formulas[first, second], (*of_p, first), (*of_q, second)

    return ByForm(choose, by_probs.__doc__, (by_probs, by_logits))


def by_form_of_p(by_probs: Callable[..., Any], by_logits: Callable[..., Any], q_as: type[Distribution]) -> ByForm:
    """The same by the form of p alone, where q has no probability: it is given by the parameters of `q_as`."""

    def choose(p: Odds, q: Distribution) -> Chosen:
        return (by_probs if p._form == "probs" else by_logits), (*p.others, p._form), q_as.parameters

    return ByForm(choose, by_probs.__doc__, (by_probs, by_logits))


def by_form_of_q(
    by_probs: Callable[..., Any],
    by_logits: Callable[..., Any],
    p_as: type[Distribution],
    q_as: type[Odds] | None = None,
) -> ByForm:
    """The same by the form of q alone, where p has no probability: it is given by the parameters of `p_as`."""

    def choose(p: Distribution, q: Odds) -> Chosen:
        return (by_probs if q._form == "probs" else by_logits), p_as.parameters, (*(q_as or type(q)).others, q._form)

    return ByForm(choose, by_probs.__doc__, (by_probs, by_logits))


# --- formulas: the divergence of one draw with two outcomes, and the same per success ---------------------------------


def two_outcomes_slopes(p: float, q: float) -> Slopes:
    """The logarithm of the ratio of the odds, and (q - p)/(q*(1 - q)); nowhere finite at a probability of 0 or 1."""
    d = p - q
    return (signed_log1p(d, q * (1.0 - p), p * (1.0 - q)), 0.0), (-d / (q * (1.0 - q)), 0.0)


def two_outcomes_bends(p: float, q: float, move_p: float, move_q: float) -> Slopes:
    """move_p/(p*(1 - p)) - move_q/(q*(1 - q)), and move_q*[p/q**2 + (1 - p)/(1 - q)**2] - move_p/(q*(1 - q))."""
    rest_p, rest_q = 1.0 - p, 1.0 - q
    u, v = 1.0 / q, 1.0 / rest_q
    by_q = sized_three(p * u * (move_q * u), rest_p * v * (move_q * v), -move_p * u * v)
    return sized(move_p / p / rest_p, -move_q * u * v), by_q, NONE, NONE


@with_quick_bends(two_outcomes_bends)
@with_quick_slopes(two_outcomes_slopes)
def two_outcomes(p: float, q: float) -> float:
    """p*log(p/q) + (1 - p)*log((1 - p)/(1 - q))."""
    d, low = two_sum(p, -q)
    return bregman(p, q, d, low) + bregman(1.0 - p, 1.0 - q, -d, -low)


def per_success_slopes(p: float, q: float) -> Slopes:
    """log((1 - q)/(1 - p))/p**2 and (q - p)/(p*q*(1 - q)); nowhere finite at a probability of 0 or 1."""
    d = p - q
    return (signed_log1p(d, 1.0 - p, 1.0 - q) / p / p, 0.0), (-d / (q * (1.0 - q)) / p, 0.0)


def per_success_bends(p: float, q: float, move_p: float, move_q: float) -> Slopes:
    """Of log((1 - q)/(1 - p))/p**2, and of 1/(p*(1 - q)) - 1/(q*(1 - q))."""
    rest_p, rest_q, u = 1.0 - p, 1.0 - q, 1.0 / p
    log_ratio = signed_log1p(p - q, rest_p, rest_q)
    by_p = sized_three(move_p / rest_p * u * u, -move_q / rest_q * u * u, -2.0 * log_ratio * u * (move_p * u) * u)
    by_q = sized_three(-move_p * u * u / rest_q, move_q / q / q, move_q * rest_p * u / rest_q / rest_q)
    return by_p, by_q, NONE, NONE


@with_quick_bends(per_success_bends)
@with_quick_slopes(per_success_slopes)
def per_success(p: float, q: float) -> float:
    """[p*log(p/q) + (1 - p)*log((1 - p)/(1 - q))]/p."""
    d, low = two_sum(p, -q)
    return excess(p, q, -d) + bregman(1.0 - p, 1.0 - q, -d, -low) / p


def per_failure(p: float, q: float) -> float:
    """[p*log(p/q) + (1 - p)*log((1 - p)/(1 - q))]/(1 - p)."""
    d, low = two_sum(p, -q)
    return bregman(p, q, d, low) / (1.0 - p) + excess(1.0 - p, 1.0 - q, d)


def sigmoid(a: float, low: float = 0.0) -> float:
    """1/(1 + exp(-a - low))."""
    small = exp(-abs(a))
    both = 1.0 + small
    large, small = 1.0 / both, small / both
    return large * (1.0 + small * low) if a >= 0.0 else small * (1.0 + large * low)


def sigmoid_twofold(a: float, low: float = 0.0) -> tuple[float, float]:
    """1/(1 + exp(-a - low)), where that is below 1/2 as the sum of two numbers."""
    p = sigmoid(a, low)
    if a > 0.0 or p < 1e-290:
        return p, 0.0
    found, more = log_odds_twofold(p)
    return p, p * sigmoid(-a) * (((a - found) - more) + low)


def softplus(x: float, low: float = 0.0) -> float:
    """log(1 + exp(x + low))."""
    return (max(x, 0.0) + log1p(exp(-abs(x)))) + sigmoid(x) * low


def log_of_ratio(a: float, b: float, a_low: float = 0.0, b_low: float = 0.0) -> float:
    """log(sigmoid(a)/sigmoid(b))."""
    low = a_low - b_low
    if a == b:
        return sigmoid(-a) * low
    t = (a - b) + low
    if abs(t) > 700.0:
        return softplus(-b, -b_low) - softplus(-a, -a_low)
    return log1p(sigmoid(-a, -a_low) * expm1(t)) if t > 0.0 else -log1p(sigmoid(-b, -b_low) * expm1(-t))


def cell(p: float, q: float, delta: float) -> float:
    """p*delta - p + q >= 0, given delta = log(p/q)."""
    if abs(delta) <= LN2:
        return p * exp_excess(-delta)
    if p == 0.0 and delta < math.inf:
        return q
    return math.inf if p == 0.0 else p * delta + (q - p)  # a p that underflows is no zero


def two_outcomes_logits_slopes(a: float, b: float) -> Slopes:
    """p*(1 - p)*(a - b), and q - p as a product."""
    d = a - b
    spread = sigmoid(a) * sigmoid(-a)
    up = d < 0.0
    size = sigmoid(b if up else a) * sigmoid(-a if up else -b)
    gap = size * expm1(-abs(d))
    return (unless_lost(d * spread, spread), 0.0), (unless_lost(-gap if up else gap, size), 0.0)


def two_outcomes_logits_bends(a: float, b: float, move_a: float, move_b: float) -> Slopes:
    """With v = p*(1 - p): v*[move_a*(1 + (1 - 2*p)*(a - b)) - move_b], and q*(1 - q)*move_b - v*move_a."""
    p, rest = sigmoid(a), sigmoid(-a)
    v, w = p * rest, sigmoid(b) * sigmoid(-b)
    near, other, own = unless_lost(v * move_a, v), v * move_b, unless_lost(w * move_b, w)
    lean = (a - b) * near
    by_a, size = near + (rest - p) * lean - other, abs(near) + abs(lean) + abs(other)
    return (by_a, size), sized(own, -near), NONE, NONE


def quick_two_outcomes_logits(a: float, b: float) -> tuple[float, bool]:
    """`two_outcomes_logits` of ordinary log-odds: that of the probabilities, whose difference is a product."""
    d = a - b
    p, q, rest_p, rest_q = sigmoid(a), sigmoid(b), sigmoid(-a), sigmoid(-b)
    size = (q * rest_p if d < 0.0 else p * rest_q) * -expm1(-abs(d))
    gap = -size if d < 0.0 else size
    return bregman(p, q, gap, 0.0) + bregman(rest_p, rest_q, -gap, 0.0), (abs(a) <= WIDE) & (abs(b) <= WIDE)


@with_quick_bends(two_outcomes_logits_bends)
@with_quick_slopes(two_outcomes_logits_slopes)
@with_quick_form(quick_two_outcomes_logits)
def two_outcomes_logits(a: float, b: float, a_low: float = 0.0, b_low: float = 0.0) -> float:
    """`two_outcomes` from log-odds."""
    first = cell(sigmoid(a, a_low), sigmoid(b, b_low), log_of_ratio(a, b, a_low, b_low))
    return first + cell(sigmoid(-a, -a_low), sigmoid(-b, -b_low), log_of_ratio(-a, -b, -a_low, -b_low))


def probs_to_logits_slopes(p: float, b: float) -> Slopes:
    """The distance of the log-odds, and q - p as a product."""
    a, low = log_odds_twofold(p)
    d, low = plus(a, low, -b, 0.0)
    up = d < 0.0
    size = sigmoid(b) * (1.0 - p) if up else p * sigmoid(-b)
    gap = size * expm1_of_size(d, low)
    return (d, 0.0), (unless_lost(-gap if up else gap, size), 0.0)


def logits_to_probs_slopes(a: float, q: float) -> Slopes:
    """p*(1 - p) times that, and (q - p)/(q*(1 - q)) from the product."""
    b, low = log_odds_twofold(q)
    d, low = plus(a, 0.0, -b, -low)
    spread = sigmoid(a) * sigmoid(-a)
    up = d < 0.0
    over_q = sigmoid(-a) / (1.0 - q) if up else sigmoid(a) / q
    gap = over_q * expm1_of_size(d, low)
    return (unless_lost(d * spread, spread), 0.0), (unless_lost(-gap if up else gap, spread), 0.0)


def expm1_of_size(d: float, low: float) -> float:
    """exp(-abs(d + low)) - 1, `low` a rounding error of d."""
    fall = expm1(-abs(d))
    return fma(fall + 1.0, low if d < 0.0 else -low, fall)


def per_success_logits_slopes(a: float, b: float) -> Slopes:
    """exp(-a)*log((1 + exp(a))/(1 + exp(b))), and q/p - 1 = (1 - q)*(exp(b - a) - 1)."""
    up = a >= b
    more = expm1_of_difference(a, b) if up else expm1_of_difference(b, a)
    log_ratio_of_odds = log1p(sigmoid(b if up else a) * more)
    rest = sigmoid(-b)
    by_b = rest * (expm1_of_difference(b, a) if up else more)
    by_a = exp(-a) * (log_ratio_of_odds if up else -log_ratio_of_odds)
    inside = 1.0 if (abs(a) <= WIDE) & (abs(b) <= WIDE) else 0.0
    return (unless_lost(by_a, inside), 0.0), (unless_lost(by_b, inside), 0.0)


def per_success_logits_bends(a: float, b: float, move_a: float, move_b: float) -> Slopes:
    """Of exp(-a)*log((1 + exp(a))/(1 + exp(b))), and of q/p - 1."""
    (by_a, _), _ = per_success_logits_slopes(a, b)
    p, q, rest_p, rest_q = sigmoid(a), sigmoid(b), sigmoid(-a), sigmoid(-b)
    ratio = unless_lost(q / p, min(p, q))
    by_p = sized_three(-move_a * by_a, rest_p * move_a, -rest_p * ratio * move_b)
    return by_p, sized(ratio * rest_q * move_b, -ratio * rest_p * move_a), NONE, NONE


@with_quick_bends(per_success_logits_bends)
@with_quick_slopes(per_success_logits_slopes)
def per_success_logits(a: float, b: float, a_low: float = 0.0, b_low: float = 0.0) -> float:
    """`per_success` from log-odds."""
    return times_per_success_logits(1.0, a, b, a_low, b_low)


def times_per_success_logits(count: float, a: float, b: float, a_low: float = 0.0, b_low: float = 0.0) -> float:
    """So many times that, which for one may be infinite."""
    p = sigmoid(a, a_low)
    other = log_of_ratio(-a, -b, -a_low, -b_low)
    first = exp_excess(-log_of_ratio(a, b, a_low, b_low))
    if p > 1e-290:
        return count * (first + cell(sigmoid(-a, -a_low), sigmoid(-b, -b_low), other) / p)
    second = exp_excess(-other)
    half = exp(-0.5 * a)
    return count * first if second == 0.0 else count * first + (second * half * count) * half


def of_two(v: float, w: float, p: float, q: float) -> float:
    """-log of gamma(n + 1)/(gamma(v + 1)*gamma(w + 1))*p**v*q**w for positive v and w, n = v + w and p + q = 1.

    The divergence of v/n from p times n, and what Stirling's formula leaves (Loader 2000).
    """
    n = v + w
    return (generalized_kl(v, n * p) + generalized_kl(w, n * q)) + size_of_two(v, w)


def size_of_two(v: float, w: float) -> float:
    """What Stirling's formula leaves."""
    n = v + w
    return HALF_LOG_2PI + 0.5 * (log(v) + log_of_products(w, 1.0, n, 1.0)) + (stirling(v) + stirling(w) - stirling(n))


def of_two_far(v: float, w: float, minus_log_p: float, minus_log_q: float) -> float:
    """`of_two` where p or q is next to nothing, from their logarithms."""
    n = v + w
    log_v = -log1p(w / v) if w < v else log_of_products(v, 1.0, n, 1.0)
    log_w = -log1p(v / w) if v < w else log_of_products(w, 1.0, n, 1.0)
    return v * (minus_log_p + log_v) + w * (minus_log_q + log_w) + size_of_two(v, w)
