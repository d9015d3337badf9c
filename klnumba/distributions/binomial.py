"""The binomial distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import COUNT, LOGIT, PROBABILITY
from klnumba.distributions.distribution import Parameter, Support, unmoved
from klnumba.distributions.odds import (
    Odds,
    by_form,
    complement,
    from_logits,
    from_probs,
    odds_arguments,
    softplus,
    two_outcomes,
    two_outcomes_logits,
)
from klnumba.distributions.poisson import Poisson, nothing_to_logits, nothing_to_probs
from klnumba.distributions.registry import over, register_kl
from klnumba.formulas.elementary import exp, log, log1p
from klnumba.formulas.special import log_gamma


def binomial_entropy(n: float, p: float) -> float:
    """The entropy, in nats."""
    if p == 0.0 or p == 1.0 or n == 0.0:
        return 0.0
    reach = 40.0 * (1.0 + math.sqrt(n * p * (1.0 - p)))
    k = float(math.floor(max(n * p - reach, 0.0)))
    total = 0.0
    while k <= min(n, n * p + reach):
        ways = log_gamma(n + 1.0) - log_gamma(k + 1.0) - log_gamma(n - k + 1.0)
        surprise = -(ways + k * log(p) + (n - k) * log1p(-p))
        total += exp(-surprise) * surprise
        k += 1.0
    return max(total, 0.0)


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


def binomial_probs(n: float, p: float, m: float, q: float) -> float:
    """So many times that of one draw; infinite where p may count beyond q."""
    if p == 0.0:
        return 0.0 if m == 0.0 else -m * log1p(-q)
    if n > m:
        return math.inf
    return 0.0 if n == 0.0 else n * two_outcomes(p, q)


def binomial_logits(n: float, a: float, m: float, b: float) -> float:
    """`binomial_probs` from log-odds."""
    if a == -math.inf:
        return 0.0 if m == 0.0 else m * softplus(b)
    if n > m:
        return math.inf
    return 0.0 if n == 0.0 else n * two_outcomes_logits(a, b)


@register_kl(Binomial, Binomial)
def binomial_binomial(p: Binomial, q: Binomial) -> Any:
    """So many times that of one draw; infinite where p may count beyond q."""
    fewer = np.less(p.total_count, q.total_count) & (p.probs > 0)
    if np.any(fewer):
        raise NotImplementedError("KL(Binomial || Binomial) has no closed form where q has the larger total_count")
    return by_form(binomial_probs, binomial_logits)(p, q)


@register_kl(Poisson, Binomial)
def poisson_binomial(p: Poisson, q: Binomial) -> Any:
    """Infinite unless the rate is 0."""
    if "probs" in q._given:
        return over(nothing_to_probs, p, ("rate",), q, q._in("probs"))
    return over(nothing_to_logits, p, ("rate",), q, q._in("logits"))
