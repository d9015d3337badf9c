"""Pairs of two different families over counts, with negative binomial and geometric distributions.

A negative binomial probability is the Poisson probability of the same mean times a factor that is near 1 where few
draws succeed; so is a binomial one, with the opposite sign.
"""

from __future__ import annotations

import math

import numpy as np

from klnumba.distributions.bernoulli import Bernoulli
from klnumba.distributions.binomial import (
    ALIKE,
    FEW,
    Binomial,
    cell_of,
    over_poisson,
    poisson_log_mass,
    step_of_sum,
    width_of_sum,
)
from klnumba.distributions.geometric import Geometric
from klnumba.distributions.negative_binomial import NegativeBinomial
from klnumba.distributions.odds import Odds, by_form, cell, per_success_logits, sigmoid, sigmoid_twofold, softplus
from klnumba.distributions.poisson import nothing_to_logits, nothing_to_probs
from klnumba.distributions.registry import ByForm, Chosen, looked_at, register_kl
from klnumba.formulas.divergences import bregman, log_ratio
from klnumba.formulas.elementary import exp, expm1, log, log1p, two_sum
from klnumba.formulas.log_cells import phi
from klnumba.formulas.primitives import fma
from klnumba.formulas.special import HALF_LOG_2PI, difference_of_products, excess, stirling

NARROW = 0.35  # up to this chance of success a negative binomial count is not much wider than a Poisson count
SMALL = 2.0**-10  # means up to here are of counts that are hardly ever more than one


# --- counts without end, from counts with one -------------------------------------------------------------------------


def geometric_binomial_probs(p: float, m: float, q: float) -> float:
    """Infinite, but for probs 1 of p, which is always 0, minus the logarithm of q's probability of 0."""
    return nothing_to_probs(1.0 - p, m, q)


def geometric_binomial_logits(a: float, m: float, b: float, a_low: float = 0.0, b_low: float = 0.0) -> float:
    """`geometric_binomial_probs` from log-odds."""
    return nothing_to_logits(0.0 if a == math.inf else 1.0, m, b, b_low)


def negative_binomial_binomial_probs(r: float, p: float, m: float, q: float) -> float:
    """Infinite, but for probs 0 of p, which is always 0, minus the logarithm of q's probability of 0."""
    return nothing_to_probs(p, m, q)


def negative_binomial_binomial_logits(
    r: float, a: float, m: float, b: float, a_low: float = 0.0, b_low: float = 0.0
) -> float:
    """`negative_binomial_binomial_probs` from log-odds."""
    return nothing_to_logits(0.0 if a == -math.inf else 1.0, m, b, b_low)


register_kl(Geometric, Binomial)(by_form(geometric_binomial_probs, geometric_binomial_logits))
register_kl(Geometric, Bernoulli)(by_form(geometric_binomial_probs, geometric_binomial_logits, q_as=Binomial))
register_kl(NegativeBinomial, Binomial)(by_form(negative_binomial_binomial_probs, negative_binomial_binomial_logits))
register_kl(NegativeBinomial, Bernoulli)(
    by_form(negative_binomial_binomial_probs, negative_binomial_binomial_logits, q_as=Binomial)
)


# --- one draw ---------------------------------------------------------------------------------------------------------


def one_to_negative_binomial(
    p: float, other: float, log_other: float, count: float, q: float, log_q: float, log_rest: float, low: float
) -> float:
    """KL of one draw with probabilities p = 1 - other: the cells of 0 and 1, and what q has elsewhere.

    `low` is to be added to p - count*q, for more digits of p and q.
    """
    none = count * log_rest
    if p == 0.0:
        return -none
    if log_q == -math.inf or none == -math.inf:
        return math.inf
    one = count * q
    d = difference_of_products(p, 1.0, count, q) + low
    close = abs(d) <= 0.5 * p and one > 1e-290
    whole = q <= 0.5 and one > 1e-305  # which has all its digits: its logarithm may be many times that of the ratio
    shift = log_ratio(p, one, d) if close or whole else log(p) - (log(count) + log_q)
    first = cell(p, one * exp(none), shift - none)
    beyond = phi(-q) if q <= 0.5 else -q - log_rest
    if p > 0.5 or q > 0.5 or one > 0.5:
        second = cell(other, exp(none), log_other - none) if other > 0.0 else exp(none)
    else:
        second = cell(other, exp(none), (count * beyond - phi(-p)) - d)
    return first + (second - expm1(-(count * beyond + phi(one))))


def bernoulli_negative_binomial_probs(p: float, count: float, q: float) -> float:
    """The cells of 0 and 1, and what q has elsewhere."""
    log_q = log(q) if q > 0.0 else -math.inf
    return one_to_negative_binomial(p, 1.0 - p, log1p(-p), count, q, log_q, log1p(-q), 0.0)


def bernoulli_negative_binomial_logits(
    a: float, count: float, b: float, a_low: float = 0.0, b_low: float = 0.0
) -> float:
    """`bernoulli_negative_binomial_probs` from log-odds."""
    if a > -math.inf and b == -math.inf:
        return math.inf
    (p, p_more), other, log_other = sigmoid_twofold(a, a_low), sigmoid(-a, -a_low), -softplus(a, a_low)
    (q, q_more), log_q, log_rest = sigmoid_twofold(b, b_low), -softplus(-b, -b_low), -softplus(b, b_low)
    return one_to_negative_binomial(p, other, log_other, count, q, log_q, log_rest, p_more - count * q_more)


register_kl(Bernoulli, NegativeBinomial)(by_form(bernoulli_negative_binomial_probs, bernoulli_negative_binomial_logits))


# --- several draws ----------------------------------------------------------------------------------------------------


def over_poisson_of_mean(k: float, count: float, q: float, rest: float, above: float) -> float:
    """log of the ratio of the negative binomial probability of k and the Poisson probability of the same mean.

    `above` is k less the mean, to the last digits.
    """
    if k > FEW:
        sizes = stirling(count + k) - stirling(count) - 0.5 * log1p(k / count)
        return sizes + bregman(count + k, count / rest, above, 0.0)
    total = 0.0
    j = k - 1.0
    while j > 0.0:
        total += log1p(j / count)
        j -= 1.0
    return total + (count * (q * (q / rest) - phi(-q)) - k * (q + phi(-q)))


def log_mass(k: float, count: float, q: float, rest: float, log_q: float, log_rest: float) -> float:
    """log of the negative binomial probability of k."""
    if k == 0.0:
        return count * log_rest
    e = difference_of_products(k, rest, count, q)
    draws = count + k
    apart = cell_of(k, draws, q, log_q, e) + cell_of(count, draws, rest, log_rest, -e)
    sizes = (stirling(draws) - stirling(count)) - (stirling(k) + 0.5 * (log1p(k / count) + log(k)) + HALF_LOG_2PI)
    return sizes - apart


def distance_of_means(n: float, p: float, count: float, q: float, rest: float) -> float:
    """n*p - count*q/rest, its roundings put right."""
    first, product = n * p, count * q
    second = product / rest
    lost = (fma(-second, rest, product) + fma(count, q, -product) - second * ((1.0 - rest) - q)) / rest
    return (first - second) + (fma(n, p, -first) - lost)


def power_of_few(mean: float, k: float) -> float:
    """mean**k/k! for k up to 2."""
    return 1.0 if k == 0.0 else mean if k == 1.0 else 0.5 * mean * mean


def to_negative_binomial(
    n: float, p: float, other: float, count: float, q: float, rest: float, log_q: float, log_rest: float, low: float
) -> float:
    """KL of n draws with probabilities p = 1 - other: a sum over the counts; `low` is to be added to n*p - E_q(K).

    Where the means are close, the variances alike, and few draws of q succeed, it is of the cells of all counts, else
    of the log-ratios. Where both means are small, the logarithms of the masses of 1 and 2 are many times their
    difference: these are taken of the mean itself, and the log-ratios of the ratio of the means.
    """
    if n == 0.0 or p == 0.0:
        return -count * log_rest
    if log_q == -math.inf or log_rest == -math.inf:
        return math.inf
    if other == 0.0:
        return -log_mass(n, count, q, rest, log_q, log_rest)
    mean = n * p
    mean_low = fma(n, p, -mean)
    close = False
    small = False
    d = 0.0
    shift = 0.0
    if q <= NARROW:
        d = distance_of_means(n, p, count, q, rest) + low
        close = abs(d) <= min(0.5 * mean, math.sqrt(mean)) and other * rest >= ALIKE
        mean_q = mean - d if close else count * q / rest
        small = max(mean, mean_q) < SMALL and mean_q > 0.0
        shift = log_ratio(mean, mean_q, d) if close or small else 0.0
    step = step_of_sum(n, p, other)
    reach = width_of_sum(n, p, other)
    k = max(math.floor(mean - reach), 0.0)
    last = mean + reach if close else min(mean + reach, n)
    total = 0.0
    while k <= last:
        few = small and k <= 2.0
        power = power_of_few(mean, k) if few else 1.0
        poisson = -mean if few else poisson_log_mass(k, mean)
        left = (mean - k) + mean_low
        above = over_poisson(k, n, p, other, left) if k <= n else -math.inf
        mass = power * exp(poisson + above)
        above_q = 0.0
        if close or small:
            above_q = over_poisson_of_mean(k, count, q, rest, d - left) + (d - k * shift)
        if close:
            total += cell(mass, power * exp(poisson + above_q), above - above_q)
        elif mass > 0.0 and small:
            total += mass * (above - above_q)
        elif mass > 0.0:
            total += mass * ((poisson + above) - log_mass(k, count, q, rest, log_q, log_rest))
        k += step
    return max(total * step, 0.0)


def binomial_negative_binomial_probs(n: float, p: float, count: float, q: float) -> float:
    """A sum over the counts: of the cells of all of them where the means are close, else of the log-ratios of p's."""
    return to_negative_binomial(n, p, 1.0 - p, count, q, 1.0 - q, log(q) if q > 0.0 else -math.inf, log1p(-q), 0.0)


def binomial_negative_binomial_logits(
    n: float, a: float, count: float, b: float, a_low: float = 0.0, b_low: float = 0.0
) -> float:
    """`binomial_negative_binomial_probs` from log-odds."""
    if n > 0.0 and a > -math.inf and b == -math.inf:
        return math.inf
    (p, p_more), other = sigmoid_twofold(a, a_low), sigmoid(-a, -a_low)
    (q, q_more), rest = sigmoid_twofold(b, b_low), sigmoid(-b, -b_low)
    log_q, log_rest, low = -softplus(-b, -b_low), -softplus(b, b_low), n * p_more - count * q_more / rest / rest
    return to_negative_binomial(n, p, other, count, q, rest, log_q, log_rest, low)


def binomial_geometric_probs(n: float, p: float, q: float) -> float:
    """That to the negative binomial distribution of count 1."""
    log_rest = log1p(-q) if q < 1.0 else -math.inf
    return to_negative_binomial(n, p, 1.0 - p, 1.0, 1.0 - q, q, log_rest, log(q), 0.0)


def binomial_geometric_logits(n: float, a: float, b: float, a_low: float = 0.0, b_low: float = 0.0) -> float:
    """`binomial_geometric_probs` from log-odds."""
    return binomial_negative_binomial_logits(n, a, 1.0, -b, a_low, -b_low)


register_kl(Binomial, NegativeBinomial)(by_form(binomial_negative_binomial_probs, binomial_negative_binomial_logits))
register_kl(Binomial, Geometric)(by_form(binomial_geometric_probs, binomial_geometric_logits))


# --- geometric and negative binomial of count 1 -----------------------------------------------------------------------


def geometric_first_failure_probs(p: float, count: float, q: float) -> float:
    """That of the chances of success, q's 1 - probs; `total_count` must be 1."""
    total, low = two_sum(p, q)
    d = (1.0 - total) - low
    return excess(p, 1.0 - q, d) + bregman(1.0 - p, q, d, 0.0) / p


def geometric_first_failure_logits(a: float, count: float, b: float, a_low: float = 0.0, b_low: float = 0.0) -> float:
    """`geometric_first_failure_probs` from log-odds."""
    return per_success_logits(a, -b, a_low, -b_low)


def first_failure_geometric_probs(count: float, p: float, q: float) -> float:
    """That of the chances of success, p's 1 - probs; `total_count` must be 1."""
    total, low = two_sum(p, q)
    d = (total - 1.0) + low
    return excess(1.0 - p, q, d) + bregman(p, 1.0 - q, d, 0.0) / (1.0 - p)


def first_failure_geometric_logits(count: float, a: float, b: float, a_low: float = 0.0, b_low: float = 0.0) -> float:
    """`first_failure_geometric_probs` from log-odds."""
    return per_success_logits(-a, b, -a_low, b_low)


TO_ONE_FAILURE = by_form(geometric_first_failure_probs, geometric_first_failure_logits)
FROM_ONE_FAILURE = by_form(first_failure_geometric_probs, first_failure_geometric_logits)


def _one_count(p: Odds, q: Odds) -> None:
    """Refuse another total_count than 1."""
    if any(np.any(np.not_equal(count, 1.0) & ~np.isnan(count)) for count in looked_at(p, q, "total_count")):
        names = f"{type(p).__name__} || {type(q).__name__}"
        raise NotImplementedError(f"KL({names}) has a closed form for a total_count of 1; method='sum' adds up")


def geometric_negative_binomial(p: Geometric, q: NegativeBinomial) -> Chosen:
    """The formula, which serves a count of 1."""
    _one_count(p, q)
    return TO_ONE_FAILURE.choose(p, q)


def negative_binomial_geometric(p: NegativeBinomial, q: Geometric) -> Chosen:
    """The formula, which serves a count of 1."""
    _one_count(p, q)
    return FROM_ONE_FAILURE.choose(p, q)


register_kl(Geometric, NegativeBinomial)(ByForm(geometric_negative_binomial, geometric_first_failure_probs.__doc__))
register_kl(NegativeBinomial, Geometric)(ByForm(negative_binomial_geometric, first_failure_geometric_probs.__doc__))
