"""The Poisson distribution."""

from __future__ import annotations

import math
from typing import Any

from klnumba.distributions.bernoulli import Bernoulli
from klnumba.distributions.constraint import NON_NEGATIVE
from klnumba.distributions.count_entropies import poisson_entropy
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved
from klnumba.distributions.odds import by_form_of_p, sigmoid, sigmoid_twofold, softplus
from klnumba.distributions.registry import register_kl
from klnumba.formulas.divergences import bregman, generalized_kl
from klnumba.formulas.elementary import log, log1p, two_sum
from klnumba.formulas.primitives import fma
from klnumba.formulas.quick import Slopes, with_quick_bends, with_quick_slopes
from klnumba.formulas.slopes_of_pairs import (
    NONE,
    log_of_ordinary_ratio,
    sized,
    unless_lost,
)


class Poisson(Distribution):
    """The Poisson distribution.

    Parameters
    ----------
    rate : array_like
        Mean, zero or positive.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Poisson
    >>> float(kl.kl_divergence(Poisson(0.0), Poisson(3.0)))
    3.0
    """

    parameters = ("rate",)
    rate = Parameter(NON_NEGATIVE)
    entropy_formula = staticmethod(poisson_entropy)
    scipy_name = "poisson"

    def __init__(self, rate: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, rate=rate)

    @property
    def support(self) -> Support:
        return Support(0, math.inf, discrete=True)

    @property
    def mean(self) -> Any:
        return self._full(self.rate)

    @property
    def variance(self) -> Any:
        return self._full(self.rate)

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.rate,), 0, None

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"rate": shapes[0]}


def poisson_slopes(p: float, q: float) -> Slopes:
    """log(p/q) and (q - p)/q; not of a rate of 0."""
    d = p - q
    by_p = log_of_ordinary_ratio(p, q, d) if (p > 0.0) & (q > 0.0) else math.inf
    return (by_p, 0.0), (-d / q, 0.0)


def poisson_bends(p: float, q: float, move_p: float, move_q: float) -> Slopes:
    """move_p/p - move_q/q, and (p*move_q/q - move_p)/q; nowhere finite at a rate of 0."""
    u = 1.0 / q
    return sized(move_p / p, -move_q * u), sized(p * u * (move_q * u), -move_p * u), NONE, NONE


register_kl(Poisson, Poisson, compiled=True)(
    with_quick_bends(poisson_bends)(with_quick_slopes(poisson_slopes)(generalized_kl))
)


def bernoulli_poisson_probs_slopes(p: float, rate: float) -> Slopes:
    """log(p/(rate*(1 - p))) and (rate - p)/rate; nowhere finite at a probability of 0 or 1, or a rate of 0."""
    other, lost = two_sum(1.0, -p)
    below = rate * other
    by_p = log_of_ordinary_ratio(p, below, fma(-rate, other, p) - rate * lost)
    return (by_p if (p > 0.0) & (below > 0.0) else math.inf, 0.0), ((rate - p) / rate, 0.0)


@with_quick_slopes(bernoulli_poisson_probs_slopes)
def bernoulli_poisson_probs(p: float, rate: float) -> float:
    """The cell of 1, and (1 - p)*log(1 - p) + p."""
    return generalized_kl(p, rate) + bregman(1.0 - p, 1.0, -p, 0.0)


def bernoulli_poisson_logits_slopes(a: float, rate: float) -> Slopes:
    """The same, times p*(1 - p): a - log(rate)."""
    p, other = sigmoid(a), sigmoid(-a)
    spread = p * other
    by_a, size = sized(a * spread, -log(rate) * spread)
    by_rate = sized(1.0, -p / rate)
    return (unless_lost(by_a, spread), size), by_rate


@with_quick_slopes(bernoulli_poisson_logits_slopes)
def bernoulli_poisson_logits(a: float, rate: float) -> float:
    """`bernoulli_poisson_probs` from log-odds."""
    if rate == 0.0 and a > -math.inf:
        return math.inf
    p, more = sigmoid_twofold(a)
    d, low = two_sum(p, -rate)
    d, low = two_sum(d, low + more)
    return bregman(p, rate, d, low) + bregman(sigmoid(-a), 1.0, -p, -more)


register_kl(Bernoulli, Poisson)(by_form_of_p(bernoulli_poisson_probs, bernoulli_poisson_logits, Poisson))


def nothing_to_probs(rate: float, count: float, probs: float) -> float:
    """Infinite, but for rate 0 the divergence of "always 0" from so many draws."""
    if rate > 0.0:
        return math.inf
    return 0.0 if count == 0.0 else -count * log1p(-probs)


def nothing_to_logits(rate: float, count: float, logits: float, low: float = 0.0) -> float:
    """`nothing_to_probs` from log-odds."""
    if rate > 0.0:
        return math.inf
    return 0.0 if count == 0.0 else count * softplus(logits, low)
