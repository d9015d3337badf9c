"""The categorical distribution, its draws as numbers of categories."""

from __future__ import annotations

import math
from typing import Any

from klnumba.distributions.categories import Categories, category_arguments, of_one_draw
from klnumba.distributions.distribution import Support
from klnumba.distributions.registry import register_kl


class Categorical(Categories):
    """One draw from several categories.

    Parameters
    ----------
    probs : array_like, optional
        Probabilities of the categories along the last axis, or any masses: they are divided by their sum.
    logits : array_like, optional
        Logarithms of such masses; exactly one of the two is given.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Categorical
    >>> float(kl.kl_divergence(Categorical([2, 2, 0]), Categorical([1, 2, 1]), base=2))
    0.5
    """

    parameters = ("probs",)

    def __init__(self, probs: Any = None, logits: Any = None, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, **category_arguments("Categorical", probs, logits))

    @property
    def support(self) -> Support:
        return Support(0, self.count - 1, discrete=True)

    @property
    def mean(self) -> Any:
        """NaN: categories have no order."""
        return self._full(math.nan)

    @property
    def variance(self) -> Any:
        """NaN: categories have no order."""
        return self._full(math.nan)

    def entropy(self) -> Any:
        """The entropy, in nats."""
        return self._full(self._entropy_of_one())


@register_kl(Categorical, Categorical)
def categorical_categorical(p: Categorical, q: Categorical) -> Any:
    """Sum of p*log(p/q) over the categories."""
    return of_one_draw(p, q)
