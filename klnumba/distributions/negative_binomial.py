"""The negative binomial distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import LOGIT_BELOW_INF, POSITIVE, Constraint, Interval
from klnumba.distributions.count_entropies import negative_binomial_entropy, negative_binomial_entropy_logits
from klnumba.distributions.distribution import Parameter, Support, unmoved
from klnumba.distributions.odds import (
    Odds,
    by_form,
    complement,
    from_logits,
    from_probs,
    odds_arguments,
    per_failure,
    per_success_logits_slopes,
    sigmoid,
    softplus,
    times_per_success_logits,
)
from klnumba.distributions.registry import ByForm, Chosen, differs, register_kl
from klnumba.formulas.elementary import log1p
from klnumba.formulas.quick import Slopes, with_quick_slopes
from klnumba.formulas.slopes_of_pairs import expm1_of_difference, signed_log1p, unless_lost

PROBABILITY_BELOW_1 = Constraint("a number >= 0 and < 1", Interval(0.0, 1.0, with_low=True))


class NegativeBinomial(Odds):
    """How many draws succeed before a given number have failed.

    Parameters
    ----------
    total_count : array_like
        How many failures end the count; any positive number.
    probs : array_like, optional
        Probability of success, below 1.
    logits : array_like, optional
        log(probs/(1 - probs)); exactly one of the two is given.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import NegativeBinomial
    >>> round(float(kl.kl_divergence(NegativeBinomial(2, 0.5), NegativeBinomial(2, 0.75))), 6)
    0.575364
    """

    parameters = ("total_count", "probs")
    others = ("total_count",)
    total_count = Parameter(POSITIVE)
    probs = Parameter(PROBABILITY_BELOW_1, from_logits)
    logits = Parameter(LOGIT_BELOW_INF, from_probs)
    entropy_formula = staticmethod(negative_binomial_entropy)
    entropy_of_logits = staticmethod(negative_binomial_entropy_logits)
    scipy_name = "nbinom"

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, total_count=total_count, **odds_arguments("NegativeBinomial", probs, logits))

    @property
    def support(self) -> Support:
        return Support(0, np.inf, discrete=True)

    @property
    def mean(self) -> Any:
        return self._full(self.total_count * self.probs / complement(self))

    @property
    def variance(self) -> Any:
        other = complement(self)
        return self._full(self.total_count * self.probs / other / other)

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.total_count, complement(self)), 0, None

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"total_count": shapes[0], "probs": 1.0 - np.asarray(shapes[1])}


def negative_binomial_probs_slopes(r: float, p: float, s: float, q: float) -> Slopes:
    """r*log(p/q)/(1 - p)**2 and r*(q - p)/((1 - p)*q*(1 - q)), for equal counts, which may move apart.

    By these E(X)/r*log(p/q), as E X = r*p/(1 - p), and log((1 - p)/(1 - q)).
    """
    d = p - q
    log_ratio = signed_log1p(d, q, p)
    other = 1.0 - p
    by_p = r * (log_ratio / other / other)
    by_q = r * (-d / (q * (1.0 - q)) / other)
    by_r = p / other * log_ratio
    same = 1.0 if (r == s) & (p > 0.0) else 0.0
    return (unless_lost(by_r, same), 0.0), (by_p, 0.0), (-signed_log1p(d, other, 1.0 - q), 0.0), (by_q, 0.0)


@with_quick_slopes(negative_binomial_probs_slopes)
def negative_binomial_probs(r: float, p: float, s: float, q: float) -> float:
    """So many times that of a geometric distribution."""
    return -s * log1p(-q) if p == 0.0 else r * per_failure(p, q)


def negative_binomial_logits_slopes(r: float, a: float, s: float, b: float) -> Slopes:
    """The same: with s(x) = log(1 + exp(x)), by the counts exp(a)*(s(-b) - s(-a)) and s(b) - s(a)."""
    (by_a, _), (by_b, _) = per_success_logits_slopes(-a, -b)
    up = a >= b
    log_ratio = log1p(sigmoid(b if up else a) * (expm1_of_difference(a, b) if up else expm1_of_difference(b, a)))
    by_s = -log_ratio if up else log_ratio
    return (unless_lost(-by_a, 1.0 if r == s else 0.0), 0.0), (-r * by_a, 0.0), (by_s, 0.0), (-r * by_b, 0.0)


@with_quick_slopes(negative_binomial_logits_slopes)
def negative_binomial_logits(r: float, a: float, s: float, b: float, a_low: float = 0.0, b_low: float = 0.0) -> float:
    """`negative_binomial_probs` from log-odds."""
    return s * softplus(b, b_low) if a == -math.inf else times_per_success_logits(r, -a, -b, -a_low, -b_low)


OF_EQUAL_COUNTS = by_form(negative_binomial_probs, negative_binomial_logits)


def _is_none(p: NegativeBinomial) -> Any:
    """Where it is always 0."""
    return p.probs == 0.0 if "probs" in p._given else p.logits == -np.inf


def of_equal_counts(p: NegativeBinomial, q: NegativeBinomial) -> Chosen:
    """The formula, which serves equal counts, and those of a p that is always 0."""
    unequal = differs(p, q, "total_count")
    if np.any(unequal) and np.any(unequal & ~np.asarray(_is_none(p))):
        raise NotImplementedError(
            "KL(NegativeBinomial || NegativeBinomial) has no closed form for unequal total_count; method='sum' adds up"
        )
    return OF_EQUAL_COUNTS.choose(p, q)


register_kl(NegativeBinomial, NegativeBinomial)(
    ByForm(of_equal_counts, "So many times that of a geometric distribution; the counts must be equal, or p always 0.")
)
