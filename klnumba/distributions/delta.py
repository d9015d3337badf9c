"""A distribution that is all in one place."""

from __future__ import annotations

import math
from typing import Any

from klnumba.distributions.bernoulli import Bernoulli
from klnumba.distributions.binomial import Binomial
from klnumba.distributions.constraint import REAL
from klnumba.distributions.distribution import Distribution, Parameter, Support
from klnumba.distributions.geometric import Geometric
from klnumba.distributions.negative_binomial import NegativeBinomial
from klnumba.distributions.odds import by_form_of_q, of_two, of_two_far, sigmoid, softplus
from klnumba.distributions.poisson import Poisson
from klnumba.distributions.registry import register_kl
from klnumba.formulas.divergences import generalized_kl
from klnumba.formulas.elementary import log, log1p
from klnumba.formulas.special import HALF_LOG_2PI, log_of_products, stirling


def delta_entropy(v: float) -> float:
    """The entropy, in nats."""
    return 0.0


class Delta(Distribution):
    """The distribution of a variable that is always `v`; SciPy has no counterpart.

    It is a discrete distribution, of entropy 0. Its divergence from a discrete q is -log of the probability of `v`
    under q. A continuous q gives no place a probability, so the divergence from it is infinite, whatever its density.
    A vector or an array that is always the same is an `Independent` of these.

    Parameters
    ----------
    v : array_like
        The value.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Delta, Independent, Multinomial, Normal, Poisson
    >>> float(kl.kl_divergence(Delta(0.0), Poisson(3.0)))
    3.0
    >>> float(kl.kl_divergence(Delta(0.0), Normal(0.0, 1.0)))
    inf
    >>> counts = Independent(Delta([2.0, 1.0, 1.0]), 1)
    >>> round(float(kl.kl_divergence(counts, Multinomial(4, [0.5, 0.25, 0.25]), base=2)), 6)
    2.415037
    """

    parameters = ("v",)
    v = Parameter(REAL)
    entropy_formula = staticmethod(delta_entropy)

    def __init__(self, v: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, v=v)

    @property
    def support(self) -> Support:
        return Support(self._full(self.v), self._full(self.v), discrete=True)

    @property
    def mean(self) -> Any:
        return self._full(self.v)

    @property
    def variance(self) -> Any:
        return self._full(0.0)


@register_kl(Delta, Delta, compiled=True)
def delta_delta(v: float, w: float) -> float:
    """0 where both are in one place, else infinite."""
    return 0.0 if v == w else math.inf


# --- formulas: minus the logarithm of a probability -------------------------------------------------------------------


def no_count(v: float) -> bool:
    """Whether v is no integer from 0 on."""
    return v < 0.0 or v != math.floor(v)


def times(n: float, x: float) -> float:
    """n*x, 0 for n = 0."""
    return 0.0 if n == 0.0 else n * x


@register_kl(Delta, Poisson, compiled=True)
def delta_poisson(v: float, rate: float) -> float:
    """-log of the probability of v."""
    if no_count(v):
        return math.inf
    if v == 0.0:
        return rate
    return generalized_kl(v, rate) + (HALF_LOG_2PI + 0.5 * log(v) + stirling(v))


def binomial_probs(v: float, n: float, p: float) -> float:
    """-log of the probability of v."""
    if no_count(v) or v > n:
        return math.inf
    if v == 0.0:
        return times(n, -log1p(-p))
    return -n * log(p) if v == n else of_two(v, n - v, p, 1.0 - p)


def binomial_logits(v: float, n: float, a: float) -> float:
    """`binomial_probs` from log-odds."""
    if no_count(v) or v > n:
        return math.inf
    if 0.0 < v < n:
        near = abs(a) < 30.0
        return of_two(v, n - v, sigmoid(a), sigmoid(-a)) if near else of_two_far(v, n - v, softplus(-a), softplus(a))
    return times(v, softplus(-a)) + times(n - v, softplus(a))


def geometric_probs(v: float, p: float) -> float:
    """-log of the probability of v."""
    return math.inf if no_count(v) else times(v, -log1p(-p)) - log(p)


def geometric_logits(v: float, a: float) -> float:
    """`geometric_probs` from log-odds."""
    return math.inf if no_count(v) else times(v, softplus(a)) + softplus(-a)


def negative_binomial_probs(v: float, r: float, p: float) -> float:
    """-log of the probability of v."""
    if no_count(v):
        return math.inf
    if v == 0.0:
        return times(r, -log1p(-p))
    return of_two(v, r, p, 1.0 - p) + log_of_products(v + r, 1.0, r, 1.0)


def negative_binomial_logits(v: float, r: float, a: float) -> float:
    """`negative_binomial_probs` from log-odds."""
    if no_count(v):
        return math.inf
    if v == 0.0:
        return times(r, softplus(a))
    near = abs(a) < 30.0
    found = of_two(v, r, sigmoid(a), sigmoid(-a)) if near else of_two_far(v, r, softplus(-a), softplus(a))
    return found + log_of_products(v + r, 1.0, r, 1.0)


register_kl(Delta, Bernoulli)(by_form_of_q(binomial_probs, binomial_logits, Delta, Binomial))
register_kl(Delta, Binomial)(by_form_of_q(binomial_probs, binomial_logits, Delta))
register_kl(Delta, Geometric)(by_form_of_q(geometric_probs, geometric_logits, Delta))
register_kl(Delta, NegativeBinomial)(by_form_of_q(negative_binomial_probs, negative_binomial_logits, Delta))
