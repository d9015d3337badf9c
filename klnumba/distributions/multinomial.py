"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.categories import Categories, category_arguments, of_one_draw
from klnumba.distributions.constraint import COUNT
from klnumba.distributions.distribution import Parameter, Support
from klnumba.distributions.evaluate import evaluate
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import exp, log, log1p
from klnumba.formulas.special import log_gamma


def mean_log_factorial(n: float, p: float) -> float:
    """E log(x!) of a binomial x."""
    if p <= 0.0 or n == 0.0:
        return 0.0
    if p >= 1.0:
        return log_gamma(n + 1.0)
    reach = 40.0 * (1.0 + math.sqrt(n * p * (1.0 - p)))
    k = float(math.floor(max(n * p - reach, 0.0)))
    total = 0.0
    while k <= min(n, n * p + reach):
        ways = log_gamma(n + 1.0) - log_gamma(k + 1.0) - log_gamma(n - k + 1.0)
        total += exp(ways + k * log(p) + (n - k) * log1p(-p)) * log_gamma(k + 1.0)
        k += 1.0
    return total


def _log_factorial(n: float) -> float:
    return log_gamma(n + 1.0)


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
        """The entropy, in nats: that of so many draws, less what their order tells."""
        n = np.asarray(self.total_count)
        shape = self.batch_shape + self.event_shape
        orders = evaluate(mean_log_factorial, [n[..., None], np.asarray(self.probs)], shape).sum(-1)
        order = evaluate(_log_factorial, [n], self.batch_shape)
        return self._full(np.maximum(n * self._entropy_of_one() - order + orders, 0.0))


@register_kl(Multinomial, Multinomial)
def multinomial_multinomial(p: Multinomial, q: Multinomial) -> Any:
    """So many times that of one draw; infinite where the counts differ, since the parts add up to the count."""
    n, m = np.asarray(p.total_count), np.asarray(q.total_count)
    one = of_one_draw(p, q)
    with np.errstate(invalid="ignore", over="ignore"):
        several = np.where(n == 0, 0.0, n * one)
    return np.where(n == m, several, math.inf).astype(one.dtype)
