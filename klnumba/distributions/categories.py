"""Families with the probabilities of several categories, which may be given as logits: what they share.

The numbers are kept as they were given. A divergence divides rows by their sums itself, so that no rounding of this
division stands between p and a q that is close to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import klnumba.divergence
from klnumba.distributions.constraint import LOGIT_BELOW_INF, NON_NEGATIVE, Constraint, Interval
from klnumba.distributions.distribution import Parameter, exactly_one
from klnumba.distributions.multivariate import Multivariate

MASSES = Constraint(
    "not 0 everywhere along the last axis", lambda x: (x > 0).any(-1), NON_NEGATIVE, enough=Interval(0.0)
)
LOGITS = Constraint(
    "not -inf everywhere along the last axis", lambda x: (x > -np.inf).any(-1), LOGIT_BELOW_INF, enough=Interval()
)


class Normalised(Parameter):
    """A parameter that reads as rows that add up to 1, or whose exponentials do."""

    def __init__(self, constraint: Constraint, derive: Callable[[Any], Any], scale: Callable[[Any], Any]) -> None:
        super().__init__(constraint, derive, 1)
        self.scale = scale

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        found = super().__get__(instance, owner)
        return found if instance is None else _locked(self.scale(found))


def of_sum_one(masses: Any) -> Any:
    """The masses over their sum."""
    with np.errstate(divide="ignore", invalid="ignore"):  # of masses that were not checked
        parts = masses / np.max(masses, -1, keepdims=True)
        return parts / np.sum(parts, -1, keepdims=True)


def of_exponentials_of_sum_one(logits: Any) -> Any:
    """The logits less the logarithm of the sum of their exponentials."""
    with np.errstate(over="ignore"):  # of logits further apart than the range
        below = logits - np.max(logits, -1, keepdims=True)
    return below - np.log(np.sum(np.exp(below), -1, keepdims=True))


def _locked(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _from_logits(distribution: Any) -> Any:
    return np.exp(distribution.logits)


def _from_probs(distribution: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(distribution.probs)


class Categories(Multivariate):
    """A family one parameter of which is `probs` or, in its place, `logits`: a number a category."""

    probs = Normalised(MASSES, _from_logits, of_sum_one)
    logits = Normalised(LOGITS, _from_probs, of_exponentials_of_sum_one)

    @property
    def count(self) -> int:
        """How many categories there are."""
        return int(next(self._given[name] for name in ("probs", "logits") if name in self._given).shape[-1])

    def _row(self, form: str) -> np.ndarray:
        """The numbers as they were given, or as this form has them."""
        found = self._given.get(form)
        return np.asarray(getattr(self, form)) if found is None else found

    def _entropy_of_one(self) -> Any:
        """The entropy of one draw, in nats."""
        if "probs" in self._given:
            return klnumba.divergence.entropy(self._given["probs"])
        return klnumba.divergence.entropy(self._given["logits"], kind="logit")


def category_arguments(owner: str, probs: Any, logits: Any) -> dict[str, Any]:
    """The one of the two that was given."""
    return exactly_one(owner, probs=probs, logits=logits)


def of_one_draw(p: Categories, q: Categories) -> Any:
    """The row's divergence: sum of p*log(p/q) over the categories."""
    if p.count != q.count:
        raise ValueError(f"p, q: {p.count} categories and {q.count}")
    if "probs" in p._given and "probs" in q._given:
        return klnumba.divergence.kl_divergence(p._row("probs"), q._row("probs"))
    return klnumba.divergence.kl_divergence(p._row("logits"), q._row("logits"), kind="logit")
