"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from klnumba.distributions.cauchy import cauchy_cauchy
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.location_scale import PositiveScale
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log
from klnumba.formulas.integrals import cosine_integral_part
from klnumba.formulas.quick import Slopes, with_quick_slopes
from klnumba.formulas.special import EULER, log_of_products

LOG_HALF_PI = 0.4515827052894549
SMALL = 1e-30  # below it the cosine integral is a logarithm
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


@register_kl(Exponential, HalfCauchy, compiled=True)
def exponential_half_cauchy(rate: float, scale: float) -> float:
    """log(pi*z/2) - 1 + 2*g(z), z = rate*scale; g comes of the cosine and the sine integral."""
    z = rate * scale
    log_z = log_of_products(rate, scale, 1.0, 1.0)
    if z < SMALL:
        return (LOG_HALF_PI - 1.0 - 2.0 * EULER) - log_z
    return (LOG_HALF_PI - 1.0 + log_z) + 2.0 * cosine_integral_part(z)


def half_cauchy_half_cauchy_slopes(scale_p: float, scale_q: float) -> Slopes:
    """The difference of the scales over their sum, over either."""
    share = (scale_p - scale_q) / (scale_p + scale_q)
    return (share / scale_p, 0.0), (-share / scale_q, 0.0)


@register_kl(HalfCauchy, HalfCauchy, compiled=True)
@with_quick_slopes(half_cauchy_half_cauchy_slopes)
def half_cauchy_half_cauchy(scale_p: float, scale_q: float) -> float:
    """That of the Cauchy distributions with median 0, which are symmetric."""
    return cauchy_cauchy(0.0, scale_p, 0.0, scale_q)
