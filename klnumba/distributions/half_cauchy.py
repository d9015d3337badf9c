"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from klnumba.distributions.cauchy import cauchy_cauchy
from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log

LOG_2PI = 1.8378770664093453


def half_cauchy_entropy(scale: float) -> float:
    """The differential entropy, in nats."""
    return LOG_2PI + log(scale)


class HalfCauchy(Distribution):
    """The distribution of abs(X), X Cauchy with median 0.

    Parameters
    ----------
    scale : array_like
        Scale of X: the median of abs(X).
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import HalfCauchy
    >>> round(float(kl.kl_divergence(HalfCauchy(1.0), HalfCauchy(2.0))), 6)
    0.117783
    """

    parameters = ("scale",)
    scale = Parameter(POSITIVE)
    entropy_formula = staticmethod(half_cauchy_entropy)
    scipy_name = "halfcauchy"

    def __init__(self, scale: Any = 1.0, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, scale=scale)

    @property
    def support(self) -> Support:
        return Support(0.0, math.inf)

    @property
    def mean(self) -> Any:
        return self._full(math.inf)

    @property
    def variance(self) -> Any:
        return self._full(math.inf)

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (), 0.0, self.scale

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"scale": scale}


@register_kl(HalfCauchy, HalfCauchy, compiled=True)
def half_cauchy_half_cauchy(scale_p: float, scale_q: float) -> float:
    """That of the Cauchy distributions with median 0, which are symmetric."""
    return cauchy_cauchy(0.0, scale_p, 0.0, scale_q)
