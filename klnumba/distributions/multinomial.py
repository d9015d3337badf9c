"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.categories import Categories, category_arguments, of_one_draw
from klnumba.distributions.constraint import COUNT
from klnumba.distributions.count_entropies import surprise_of_category
from klnumba.distributions.distribution import Parameter, Support
from klnumba.distributions.evaluate import evaluate
from klnumba.distributions.registry import register_kl


class Multinomial(Categories):
    """How many of several draws fall into each category.

    Parameters
    ----------
    total_count : array_like, default 1
        How many draws.
    probs : array_like, optional
        Probabilities of the categories along the last axis, or any masses: they are divided by their sum.
    logits : array_like, optional
        Logarithms of such masses; exactly one of the two is given.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Multinomial
    >>> float(kl.kl_divergence(Multinomial(10, [0.5, 0.5, 0.0]), Multinomial(10, [0.25, 0.5, 0.25]), base=2))
    5.0
    """

    parameters = ("total_count", "probs")
    total_count = Parameter(COUNT)
    scipy_name = "multinomial"
    scipy_keywords = {"total_count": "n", "probs": "p"}  # noqa: RUF012

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, *, validate_args: bool = True
    ) -> None:
        given = category_arguments("Multinomial", probs, logits)
        super().__init__(validate_args, total_count=total_count, **given)

    def _event_shape(self) -> tuple[int, ...]:
        return (self.count,)

    @property
    def support(self) -> Support:
        return Support(0, self._full(self.total_count), discrete=True)

    @property
    def mean(self) -> Any:
        return self._full(np.asarray(self.total_count)[..., None] * self.probs, self.event_shape)

    @property
    def variance(self) -> Any:
        n = np.asarray(self.total_count)[..., None]
        return self._full(n * (self.probs * (1.0 - self.probs)), self.event_shape)

    def entropy(self) -> Any:
        """The entropy, in nats: the sum of what the categories add, none of which is large."""
        probs = np.asarray(self.probs, np.float64)
        most = probs.argmax(-1)[..., None] == np.arange(self.count)
        rest = np.where(most, 0.0, probs).sum(-1, keepdims=True)
        columns = [np.asarray(self.total_count)[..., None], probs, np.where(most, rest, 1.0 - probs), most * 1.0]
        parts = evaluate(surprise_of_category, columns, self.batch_shape + self.event_shape)
        return self.nan_where_broken(self._full(np.maximum(parts.sum(-1), 0.0)))


@register_kl(Multinomial, Multinomial)
def multinomial_multinomial(p: Multinomial, q: Multinomial) -> Any:
    """So many times that of one draw; infinite where the counts differ, since the parts add up to the count."""
    n, m = np.asarray(p.total_count), np.asarray(q.total_count)
    one = of_one_draw(p, q)
    with np.errstate(invalid="ignore", over="ignore"):
        several = np.where(n == 0, 0.0, n * one)
    return np.where(n == m, several, math.inf).astype(one.dtype)
