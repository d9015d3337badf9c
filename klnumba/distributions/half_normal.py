"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.exponential import Exponential
from klnumba.distributions.location_scale import PositiveScale
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log
from klnumba.formulas.special import HALF_LOG_2PI, LN2, excess_of_products

SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)
HALF_LOG_PI = 0.5723649429247001
HALF_LOG_HALF_PI = 0.22579135264472744


def half_normal_entropy(scale: float) -> float:
    """The differential entropy, in nats."""
    return 0.5 + HALF_LOG_2PI - LN2 + log(scale)


class HalfNormal(PositiveScale):
    """The distribution of abs(X), X normal with mean 0.

    Parameters
    ----------
    scale : array_like
        Standard deviation of X.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import HalfNormal
    >>> round(float(kl.kl_divergence(HalfNormal(1.0), HalfNormal(2.0))), 6)
    0.318147
    """

    entropy_formula = staticmethod(half_normal_entropy)
    scipy_name = "halfnorm"

    @property
    def mean(self) -> Any:
        return self._full(SQRT_2_OVER_PI * self.scale)

    @property
    def variance(self) -> Any:
        return self._full((1.0 - 2.0 / math.pi) * np.square(self.scale))


@register_kl(HalfNormal, HalfNormal, compiled=True)
def half_normal_half_normal(scale_p: float, scale_q: float) -> float:
    """Half the excess of the ratio of variances."""
    return 0.5 * excess_of_products(scale_p, scale_p, scale_q, scale_q)


@register_kl(HalfNormal, Exponential, compiled=True)
def half_normal_exponential(scale: float, rate: float) -> float:
    """The excess of the means' ratio, and what is left where they agree."""
    return excess_of_products(SQRT_2_OVER_PI * scale, rate, 1.0, 1.0) + (0.5 - 2.0 * HALF_LOG_HALF_PI)


@register_kl(Exponential, HalfNormal, compiled=True)
def exponential_half_normal(rate: float, scale: float) -> float:
    """Half the excess of the ratio of mean squares, and what is left where they agree."""
    unit = rate * scale
    return 0.5 * excess_of_products(2.0, 1.0, unit, unit) + (HALF_LOG_PI - 0.5)
