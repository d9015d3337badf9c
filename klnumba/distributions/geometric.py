"""The geometric distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from klnumba.distributions.bernoulli import Bernoulli
from klnumba.distributions.constraint import POSITIVE_PROBABILITY, POSITIVE_PROBABILITY_LOGIT
from klnumba.distributions.count_entropies import success_per_failure
from klnumba.distributions.distribution import Parameter, Support
from klnumba.distributions.odds import (
    Odds,
    by_form,
    cell,
    complement,
    from_logits,
    from_probs,
    log_of_ratio,
    odds_arguments,
    per_success,
    per_success_logits,
    sigmoid,
    softplus,
)
from klnumba.distributions.registry import register_kl
from klnumba.formulas.divergences import bregman
from klnumba.formulas.elementary import log, log1p, two_sum
from klnumba.formulas.primitives import fma


def geometric_entropy(p: float) -> float:
    """The entropy, in nats."""
    return 0.0 if p == 1.0 else -log(p) - (1.0 - p) * (log1p(-p) / p)


def geometric_entropy_logits(a: float) -> float:
    """`geometric_entropy` from log-odds."""
    return softplus(-a) + success_per_failure(a)


class Geometric(Odds):
    """How many draws fail before the first success.

    Parameters
    ----------
    probs : array_like, optional
        Probability of success, above 0.
    logits : array_like, optional
        log(probs/(1 - probs)); exactly one of the two is given.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Geometric
    >>> round(float(kl.kl_divergence(Geometric(0.5), Geometric(0.25))), 6)
    0.287682
    """

    parameters = ("probs",)
    probs = Parameter(POSITIVE_PROBABILITY, from_logits)
    logits = Parameter(POSITIVE_PROBABILITY_LOGIT, from_probs)
    entropy_formula = staticmethod(geometric_entropy)
    entropy_of_logits = staticmethod(geometric_entropy_logits)
    scipy_name = "geom"

    def __init__(self, probs: Any = None, logits: Any = None, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, **odds_arguments("Geometric", probs, logits))

    @property
    def support(self) -> Support:
        return Support(0, np.inf, discrete=True)

    @property
    def mean(self) -> Any:
        return self._full(complement(self) / self.probs)

    @property
    def variance(self) -> Any:
        return self._full(complement(self) / self.probs / self.probs)

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.probs,), -1, None

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        if np.any(np.asarray(loc) != -1):
            raise ValueError(
                "frozen: Geometric counts from 0, and SciPy's geom from 1: what has a counterpart is geom(p, loc=-1), "
                f"but loc is {loc}"
            )
        return {"probs": shapes[0]}


register_kl(Geometric, Geometric)(by_form(per_success, per_success_logits))


def bernoulli_geometric_probs(p: float, q: float) -> float:
    """The cells of 0 and 1, and what q has elsewhere."""
    other = 1.0 - q
    none, low = two_sum(1.0, -p)
    d, low = two_sum(none - q, low)
    first = bregman(none, q, d, low)
    return first + (bregman(p, q * other, fma(-q, other, p), 0.0) + other * other)


def bernoulli_geometric_logits(a: float, b: float, a_low: float = 0.0, b_low: float = 0.0) -> float:
    """`bernoulli_geometric_probs` from log-odds."""
    q, other = sigmoid(b, b_low), sigmoid(-b, -b_low)
    first = cell(sigmoid(-a, -a_low), q, log_of_ratio(-a, b, -a_low, b_low))
    one = log_of_ratio(a, -b, a_low, -b_low) + softplus(-b, -b_low)
    return first + (cell(sigmoid(a, a_low), q * other, one) + other * other)


register_kl(Bernoulli, Geometric)(by_form(bernoulli_geometric_probs, bernoulli_geometric_logits))
