"""The categorical distribution, its draws as vectors with a single 1."""

from __future__ import annotations

from typing import Any

from klnumba.distributions.categorical import Categorical
from klnumba.distributions.categories import Categories, category_arguments, of_one_draw
from klnumba.distributions.distribution import Support
from klnumba.distributions.registry import register_kl


class OneHotCategorical(Categories):
    """One draw from several categories, as a vector that is 1 in the place of the category and 0 elsewhere.

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
    >>> from klnumba.distributions import Categorical, OneHotCategorical
    >>> p = OneHotCategorical([0.5, 0.5, 0.0])
    >>> p.event_shape
    (3,)
    >>> float(kl.kl_divergence(p, Categorical([0.25, 0.5, 0.25]), base=2))
    0.5
    """

    parameters = ("probs",)

    def __init__(self, probs: Any = None, logits: Any = None, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, **category_arguments("OneHotCategorical", probs, logits))

    def _event_shape(self) -> tuple[int, ...]:
        return (self.count,)

    @property
    def support(self) -> Support:
        return Support(0, 1, discrete=True)

    @property
    def mean(self) -> Any:
        return self._full(self.probs, self.event_shape)

    @property
    def variance(self) -> Any:
        return self._full(self.probs * (1.0 - self.probs), self.event_shape)

    def entropy(self) -> Any:
        """The entropy, in nats."""
        return self._full(self._entropy_of_one())


@register_kl(Categorical, OneHotCategorical)
@register_kl(OneHotCategorical, Categorical)
@register_kl(OneHotCategorical, OneHotCategorical)
def one_hot(p: Categories, q: Categories) -> Any:
    """Sum of p*log(p/q) over the categories, of which the vectors are another name."""
    return of_one_draw(p, q)
