"""The binomial distribution."""

from __future__ import annotations

import math
from typing import Any

from klnumba.distributions.bernoulli import Bernoulli
from klnumba.distributions.constraint import COUNT, LOGIT, PROBABILITY
from klnumba.distributions.count_entropies import binomial_entropy_of
from klnumba.distributions.distribution import Parameter, Support, unmoved
from klnumba.distributions.odds import (
    Odds,
    by_form,
    by_form_of_p,
    by_form_of_q,
    cell,
    complement,
    from_logits,
    from_probs,
    odds_arguments,
    sigmoid,
    sigmoid_twofold,
    softplus,
    two_outcomes,
    two_outcomes_bends,
    two_outcomes_logits,
    two_outcomes_logits_bends,
    two_outcomes_logits_slopes,
    two_outcomes_slopes,
)
from klnumba.distributions.poisson import Poisson, nothing_to_logits, nothing_to_probs
from klnumba.distributions.registry import register_kl
from klnumba.formulas.divergences import bregman, generalized_kl, log_ratio
from klnumba.formulas.elementary import exp, log, log1p, two_sum
from klnumba.formulas.integrals import gamma_below
from klnumba.formulas.log_cells import phi
from klnumba.formulas.primitives import fma
from klnumba.formulas.quick import Slopes, with_quick_bends, with_quick_slopes
from klnumba.formulas.slopes_of_pairs import NONE
from klnumba.formulas.special import (
    HALF_LOG_2PI,
    difference_of_products,
    stirling,
    stirling_bregman,
    stirling_slope,
)

FEW = 16.0  # counts up to here are taken one draw after another


def binomial_entropy(n: float, p: float) -> float:
    """The entropy, in nats."""
    return binomial_entropy_of(n, p, 1.0 - p)


def binomial_entropy_logits(n: float, a: float) -> float:
    """`binomial_entropy` from log-odds."""
    return binomial_entropy_of(n, sigmoid(a), sigmoid(-a))


class Binomial(Odds):
    """How many of several draws succeed.

    Parameters
    ----------
    total_count : array_like
        How many draws.
    probs : array_like, optional
        Probability of success.
    logits : array_like, optional
        log(probs/(1 - probs)); exactly one of the two is given.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Binomial
    >>> float(kl.kl_divergence(Binomial(10, 1.0), Binomial(10, 0.5), base=2))
    10.0
    """

    parameters = ("total_count", "probs")
    others = ("total_count",)
    total_count = Parameter(COUNT)
    probs = Parameter(PROBABILITY, from_logits)
    logits = Parameter(LOGIT, from_probs)
    entropy_formula = staticmethod(binomial_entropy)
    entropy_of_logits = staticmethod(binomial_entropy_logits)
    scipy_name = "binom"

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, *, validate_args: bool = True
    ) -> None:
        super().__init__(validate_args, total_count=total_count, **odds_arguments("Binomial", probs, logits))

    @property
    def support(self) -> Support:
        return Support(0, self._full(self.total_count), discrete=True)

    @property
    def mean(self) -> Any:
        return self._full(self.total_count * self.probs)

    @property
    def variance(self) -> Any:
        return self._full(self.total_count * (self.probs * complement(self)))

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.total_count, self.probs), 0, None

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"total_count": shapes[0], "probs": shapes[1]}


ALIKE = 0.5  # a variance of p that is so much of q's lets a sum as wide as p reach q's mass as well


def width_of_sum(n: float, p: float, other: float) -> float:
    """How far from the mean a sum over counts reaches."""
    return 40.0 + 12.0 * math.sqrt(n * min(p, other))


def step_of_sum(n: float, p: float, other: float) -> float:
    """One count in so many is enough for a sum over smooth terms, far from both ends: its error is below exp(-100)."""
    far = n * min(p, other) > 200.0
    return max(math.floor(0.25 * math.sqrt(n * p * other)), 1.0) if far else 1.0


def over_poisson_few(k: float, n: float, p: float) -> float:
    """`over_poisson` for a small k and p: of k draws none is drawn twice, and of the rest none succeeds."""
    total = 0.0
    j = k - 1.0
    while j > 0.0:
        total += log1p(-j / n)
        j -= 1.0
    return total + (k * p - (n - k) * phi(-p))


def log_of_rest(k: float, n: float) -> float:
    """log(1 - k/n) for k < n."""
    return log1p(-k / n) if k + k < n else log((n - k) / n)


def over_poisson(k: float, n: float, p: float, other: float, above: float) -> float:
    """log of the ratio of the binomial probability of k and the Poisson probability of the same mean.

    `above` is n*p - k, to the last digits, of which a rounded mean has few.
    """
    if k <= FEW and p < 0.5:
        return over_poisson_few(k, n, p)
    left = n - k
    if left == 0.0:
        return (HALF_LOG_2PI + 0.5 * log(n) + stirling(n)) - n * other
    apart = bregman(left, n * other, above, 0.0)
    return (stirling(n) - stirling(left) - 0.5 * log_of_rest(k, n)) - apart


def poisson_log_mass(k: float, rate: float) -> float:
    """log of the Poisson probability of k."""
    if k == 0.0:
        return -rate
    return -(generalized_kl(k, rate) + (HALF_LOG_2PI + 0.5 * log(k) + stirling(k)))


def to_poisson_of_same_mean(n: float, p: float, other: float) -> float:
    """KL of a binomial distribution, other = 1 - p, from the Poisson distribution of the same mean; about p*p/4.

    For p up to 1/2 a sum of cells, none negative, and what the Poisson distribution has beyond n.
    """
    if other == 0.0:
        return -poisson_log_mass(n, n)
    mean = n * p
    mean_low = fma(n, p, -mean)
    step = step_of_sum(n, p, other)
    reach = width_of_sum(n, p, other)
    k = max(math.floor(mean - reach), 0.0)
    last = min(mean + reach, n)
    total = 0.0
    while k <= last:
        above = over_poisson(k, n, p, other, (mean - k) + mean_low)
        log_mass = poisson_log_mass(k, mean)
        mass = exp(log_mass + above)
        if p <= 0.5:
            total += cell(mass, exp(log_mass), above)
        elif mass > 0.0:
            total += mass * above
        k += step
    return total * step + (gamma_below(n + 1.0, mean) if p <= 0.5 else 0.0)


def binomial_poisson(n: float, p: float, other: float, rate: float, more: float) -> float:
    """The cell of the means, and the divergence from the Poisson distribution of the same mean; `more` is p's rest."""
    if n == 0.0 or p == 0.0:
        return rate
    if rate == 0.0:
        return math.inf
    mean = n * p
    d, low = two_sum(mean, -rate)
    d, low = two_sum(d, low + (fma(n, p, -mean) + n * more))
    cells = bregman(mean, rate, d, low)
    return cells + to_poisson_of_same_mean(n, p, other)


def binomial_poisson_probs(n: float, p: float, rate: float) -> float:
    """The cell of the means, and a sum for the divergence from the Poisson distribution of the same mean."""
    return binomial_poisson(n, p, 1.0 - p, rate, 0.0)


def binomial_poisson_logits(n: float, a: float, rate: float) -> float:
    """`binomial_poisson_probs` from log-odds."""
    if rate == 0.0 and n > 0.0 and a > -math.inf:
        return math.inf
    p, more = sigmoid_twofold(a)
    return binomial_poisson(n, p, sigmoid(-a), rate, more)


register_kl(Binomial, Poisson)(by_form_of_p(binomial_poisson_probs, binomial_poisson_logits, Poisson))


def cell_of(x: float, count: float, prob: float, log_prob: float, d: float) -> float:
    """x*log(x/y) - x + y of y = count*prob, which may underflow, given d = x - y."""
    if prob > 1e-305:
        return bregman(x, count * prob, d, 0.0)
    return x * ((log(x) - log(count)) - log_prob) - (x - count * prob)


def few_of_same_mean(k: float, n: float, p: float, other: float, m: float) -> float:
    """log of the ratio of the probabilities of a small k in n and in m draws of the mean n*p, p below 1/2.

    The draws of the k are taken one after another, so that nothing large is left to cancel.
    """
    more = m - n
    total = 0.0
    j = k - 1.0
    while j > 0.0:
        total += log1p(-j * more / (n * (m - j)))
        j -= 1.0
    w = p / other * (more / m)  # so much more than 1 is the ratio of the probabilities of a failure
    q = n * p / m
    return total + (k * w - more * (q * p / other)) + (more * phi(-q) + (n - k) * phi(w))


def stirling_drop(a: float, d: float) -> float:
    """c(a) - c(a + d) >= 0, c the remainder of Stirling's formula."""
    if d > 0.5 * a:
        return stirling(a) - stirling(a + d)
    return -(stirling_slope(a) * d + stirling_bregman(a, a + d, d))


def log_of_masses(
    k: float, above: float, n: float, p: float, other: float, m: float, d: float, remainders: float
) -> float:
    """log of the ratio of the probabilities of k < n in n draws, of the mean k + above, and in m, of one less by d.

    Each part is of the size of the whole: first what the means would leave if they were equal, from the counts of
    draws, then what d adds. `remainders` is `stirling_drop` from n to m.
    """
    more, left = m - n, n - k
    mean, failures = n * p, n * other + more  # of m draws, if the means were equal
    moved = k * phi(-d / mean) + (m - k) * phi(d / failures) - d * (m / failures) * (above / mean)
    if k <= FEW and p < 0.5:
        return few_of_same_mean(k, n, p, other, m) + moved
    u = above / failures
    of_counts = 0.5 * log1p(k * more / (left * m)) + (remainders - stirling_drop(left, more))
    return (of_counts - (more * phi(u) + left * phi(-more * (u / left)))) + moved


def fewer_of_more(
    n: float, p: float, p_low: float, other: float,
    m: float, q: float, q_low: float, log_q: float, rest: float, log_rest: float,
) -> float:  # fmt: skip
    """KL of n draws from m > n > 0 draws with probabilities p = 1 - other and q = 1 - rest: a sum over the counts.

    p and q have more digits in `p_low` and `q_low`.

    Where the means are close and the variances alike it is of the cells of all counts, which are of second order, else
    the cell of the means, and the mean of what the two have beyond Poisson distributions of these means.
    """
    mean = n * p
    mean_low = fma(n, p, -mean) + n * p_low
    d = difference_of_products(n, p, m, q) + (n * p_low - m * q_low)
    close = abs(d) <= min(0.5 * mean, math.sqrt(mean * other)) and other >= ALIKE * rest
    shift = log_ratio(mean, m * q, d) if close else 0.0
    remainders = stirling_drop(n, m - n)
    step = step_of_sum(n, p, other)
    reach = width_of_sum(n, p, other)
    k = max(math.floor(mean - reach), 0.0)
    last = min(mean + reach, m if close else n)
    total = 0.0
    while k <= last:
        poisson = poisson_log_mass(k, mean)
        above = (mean - k) + mean_low
        above_p = over_poisson(k, n, p, other, above) if k <= n else -math.inf
        mass = exp(poisson + above_p)
        if close and k < n:
            delta = log_of_masses(k, above, n, p, other, m, d, remainders)
            total += cell(mass, mass * exp(-delta), delta)
        elif close or mass > 0.0:
            left = m - k
            if left > 0.0 and not (k <= FEW and q < 0.5):
                apart = cell_of(left, m, rest, log_rest, (mean - k) + (mean_low - d))
                above_q = (stirling(m) - stirling(left) - 0.5 * log_of_rest(k, m)) - apart
            else:
                above_q = over_poisson(k, m, q, rest, above - d)
            if close:
                moved = d - k * shift
                total += cell(mass, exp(poisson + (above_q + moved)), above_p - (above_q + moved))
            else:
                total += mass * (above_p - above_q)
        k += step
    return total * step if close else max(cell_of(mean, m, q, log_q, d) + total * step, 0.0)


def binomial_probs_slopes(n: float, p: float, m: float, q: float) -> Slopes:
    """n times those of one draw, for equal counts; by these there are none."""
    (by_p, _), (by_q, _) = two_outcomes_slopes(p, q)
    times = n if (n == m) & (n > 0.0) else math.inf
    return (0.0, 0.0), (times * by_p, 0.0), (0.0, 0.0), (times * by_q, 0.0)


def binomial_probs_bends(
    n: float, p: float, m: float, q: float, move_n: float, move_p: float, move_m: float, move_q: float
) -> Slopes:
    """So many times those of one draw, of equal counts that stay."""
    return _of_draws(n, m, move_n, move_m, two_outcomes_bends(p, q, move_p, move_q))


def _of_draws(n: float, m: float, move_n: float, move_m: float, bends: Slopes) -> Slopes:
    """The bends of one draw, times a count that both have and keep; NaN if they do not."""
    times = n if (n == m) & (n > 0.0) & (move_n == 0.0) & (move_m == 0.0) else math.nan
    (by_p, size_p), (by_q, size_q), _, _ = bends
    return NONE, (times * by_p, times * size_p), NONE, (times * by_q, times * size_q), NONE, NONE, NONE, NONE


@with_quick_bends(binomial_probs_bends)
@with_quick_slopes(binomial_probs_slopes)
def binomial_probs(n: float, p: float, m: float, q: float) -> float:
    """So many times that of one draw; infinite where p may count beyond q; else a sum over the counts of p."""
    if p == 0.0 or n == 0.0:
        return 0.0 if m == 0.0 else -m * log1p(-q)
    if n > m:
        return math.inf
    if n == m:
        return n * two_outcomes(p, q)
    if q == 0.0 or q == 1.0:
        return math.inf
    return fewer_of_more(n, p, 0.0, 1.0 - p, m, q, 0.0, log(q), 1.0 - q, log1p(-q))


def binomial_logits_slopes(n: float, a: float, m: float, b: float) -> Slopes:
    """The same from log-odds."""
    (by_a, _), (by_b, _) = two_outcomes_logits_slopes(a, b)
    times = n if (n == m) & (n > 0.0) else math.inf
    return (0.0, 0.0), (times * by_a, 0.0), (0.0, 0.0), (times * by_b, 0.0)


def binomial_logits_bends(
    n: float, a: float, m: float, b: float, move_n: float, move_a: float, move_m: float, move_b: float
) -> Slopes:
    """The same from log-odds."""
    return _of_draws(n, m, move_n, move_m, two_outcomes_logits_bends(a, b, move_a, move_b))


@with_quick_bends(binomial_logits_bends)
@with_quick_slopes(binomial_logits_slopes)
def binomial_logits(n: float, a: float, m: float, b: float, a_low: float = 0.0, b_low: float = 0.0) -> float:
    """`binomial_probs` from log-odds."""
    if a == -math.inf or n == 0.0:
        return 0.0 if m == 0.0 else m * softplus(b, b_low)
    if n > m:
        return math.inf
    if n == m:
        return n * two_outcomes_logits(a, b, a_low, b_low)
    if abs(b) == math.inf:
        return math.inf
    p, p_more = sigmoid_twofold(a, a_low)
    if p == 0.0:
        return m * softplus(b, b_low)
    (q, q_more), rest = sigmoid_twofold(b, b_low), sigmoid(-b, -b_low)
    log_q, log_rest = -softplus(-b, -b_low), -softplus(b, b_low)
    return fewer_of_more(n, p, p_more, sigmoid(-a, -a_low), m, q, q_more, log_q, rest, log_rest)


register_kl(Binomial, Binomial)(by_form(binomial_probs, binomial_logits))


register_kl(Bernoulli, Binomial)(by_form(binomial_probs, binomial_logits, p_as=Binomial))
register_kl(Binomial, Bernoulli)(by_form(binomial_probs, binomial_logits, q_as=Binomial))
register_kl(Poisson, Binomial)(by_form_of_q(nothing_to_probs, nothing_to_logits, Poisson))
register_kl(Poisson, Bernoulli)(by_form_of_q(nothing_to_probs, nothing_to_logits, Poisson, Binomial))
