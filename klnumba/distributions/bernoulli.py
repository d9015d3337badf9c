"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

from klnumba.distributions.constraint import LOGIT, PROBABILITY
from klnumba.distributions.distribution import Parameter, Support, unmoved
from klnumba.distributions.odds import (
    Odds,
    by_form,
    complement,
    from_logits,
    from_probs,
    logits_to_probs_slopes,
    odds_arguments,
    probs_to_logits_slopes,
    sigmoid,
    softplus,
    two_outcomes,
    two_outcomes_logits,
)
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log, log1p


def bernoulli_entropy(p: float) -> float:
    """The entropy, in nats."""
    first = 0.0 if p == 0.0 else -p * log(p)
    return first if p == 1.0 else first - (1.0 - p) * log1p(-p)


def bernoulli_entropy_logits(a: float) -> float:
    """`bernoulli_entropy` from log-odds."""
    less, size = sigmoid(-abs(a)), abs(a)
    return softplus(-size) + (less * size if less > 0.0 else 0.0)


class Bernoulli(Odds):
    """One draw that is 1 with a given probability, else 0.

    Parameters
    ----------
    probs : array_like, optional
        Probability of 1.
    logits : array_like, optional
        log(probs/(1 - probs)); exactly one of the two is given.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Bernoulli
    >>> float(kl.kl_divergence(Bernoulli(0.5), Bernoulli(0.25), base=4)).hex()
    '0x1.a8ff971810a5ep-4'
    >>> float(kl.kl_divergence(Bernoulli(logits=1000.0), Bernoulli(logits=-1000.0)))
    1000.0
    """

    parameters = ("probs",)
    probs = Parameter(PROBABILITY, from_logits)
    logits = Parameter(LOGIT, from_probs)
    entropy_formula = staticmethod(bernoulli_entropy)
    entropy_of_logits = staticmethod(bernoulli_entropy_logits)
    scipy_name = "bernoulli"

    def __init__(self, probs: Any = None, logits: Any = None, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, **odds_arguments("Bernoulli", probs, logits))

    @property
    def total_count(self) -> Any:
        """1: this is a `Binomial` distribution of one draw."""
        return self.dtype.type(1.0)

    @property
    def support(self) -> Support:
        return Support(0, 1, discrete=True)

    @property
    def mean(self) -> Any:
        return self._full(self.probs)

    @property
    def variance(self) -> Any:
        return self._full(self.probs * complement(self))

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.probs,), 0, None

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"probs": shapes[0]}


register_kl(Bernoulli, Bernoulli)(
    by_form(two_outcomes, two_outcomes_logits, mixed_slopes=(probs_to_logits_slopes, logits_to_probs_slopes))
)
