"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from klnumba.distributions.cauchy import cauchy_cauchy
from klnumba.distributions.location_scale import PositiveScale
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log

LOG_2PI = 1.8378770664093453


def half_cauchy_entropy(scale: float) -> float:
    """The differential entropy, in nats."""
    return LOG_2PI + log(scale)


class HalfCauchy(PositiveScale):
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

    entropy_formula = staticmethod(half_cauchy_entropy)
    scipy_name = "halfcauchy"

    @property
    def mean(self) -> Any:
        return self._full(math.inf)

    @property
    def variance(self) -> Any:
        return self._full(math.inf)


@register_kl(HalfCauchy, HalfCauchy, compiled=True)
def half_cauchy_half_cauchy(scale_p: float, scale_q: float) -> float:
    """That of the Cauchy distributions with median 0, which are symmetric."""
    return cauchy_cauchy(0.0, scale_p, 0.0, scale_q)
