"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.exponential import Exponential
from klnumba.distributions.gamma import Gamma
from klnumba.distributions.gamma_powers import gamma_root, root_to_gamma
from klnumba.distributions.laplace import Laplace, mean_distance, to_laplace
from klnumba.distributions.location_scale import PositiveScale
from klnumba.distributions.log_normal import LogNormal, log_gamma_normal, to_gamma
from klnumba.distributions.normal import normal_normal_bends
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log
from klnumba.formulas.exponents import plus_half_square
from klnumba.formulas.logarithms import log_less, log_ratio_beyond
from klnumba.formulas.quick import Slopes, with_quick_bends, with_quick_slopes
from klnumba.formulas.ranges import product, times_excess
from klnumba.formulas.slopes_of_pairs import NONE, squares_apart
from klnumba.formulas.special import EULER, HALF_LOG_2PI, LN2, excess_of_nearly, excess_of_products

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


def half_normal_half_normal_slopes(scale_p: float, scale_q: float) -> Slopes:
    """The difference of squares over scale_p*scale_q**2, and its opposite over scale_q**3."""
    spread, _ = squares_apart(scale_p, scale_q)
    u = 1.0 / scale_q
    return (spread / scale_p * u * u, 0.0), (-spread * u * u * u, 0.0)


def half_normal_half_normal_bends(scale_p: float, scale_q: float, move_p: float, move_q: float) -> Slopes:
    """Those of normal distributions of one place."""
    _, by_p, _, by_q, _, _, _, _ = normal_normal_bends(0.0, scale_p, 0.0, scale_q, 0.0, move_p, 0.0, move_q)
    return by_p, by_q, NONE, NONE


@register_kl(HalfNormal, HalfNormal, compiled=True)
@with_quick_bends(half_normal_half_normal_bends)
@with_quick_slopes(half_normal_half_normal_slopes)
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
    unit, low, k = product(rate, scale)
    return 0.5 * excess_of_nearly(2.0, 1.0, unit, unit, -2.0 * (low / unit), -2 * k) + (HALF_LOG_PI - 0.5)


@register_kl(HalfNormal, Laplace, compiled=True)
def half_normal_laplace(scale_p: float, loc: float, scale_q: float) -> float:
    """The excess of E abs(X - loc)/scale_q, and what is left where that is 1."""
    y = loc / scale_p
    distance = abs(y - SQRT_2_OVER_PI)
    if 0.0 < y < 9.0:
        distance = 2.0 * mean_distance(y) - (y + SQRT_2_OVER_PI)
    return to_laplace(distance, scale_p, scale_q, half_normal_entropy(1.0), loc)


@register_kl(HalfNormal, LogNormal, compiled=True)
def half_normal_log_normal(scale_p: float, loc: float, scale_q: float) -> float:
    """That of the logarithms, for scale_p = 1 half that of a gamma variable of shape 1/2 and rate 1/2."""
    t = (log_less(scale_p, 0.0, loc) - 0.5 * (EULER + LN2)) / scale_q
    return log_gamma_normal(0.5, 0.5, t, scale_q)


@register_kl(LogNormal, HalfNormal, compiled=True)
def log_normal_half_normal(loc: float, scale_p: float, scale_q: float) -> float:
    """That of the squares: of the gamma distribution of shape 1/2."""
    apart, low = log_ratio_beyond(1.0, scale_q, -loc)
    return to_gamma(*plus_half_square(2.0 * apart, 2.0 * low, 2.0 * scale_p), 2.0 * scale_p, 0.5)


@register_kl(HalfNormal, Gamma, compiled=True)
def half_normal_gamma(scale: float, shape: float, rate: float) -> float:
    """The excess of the means' ratio, times the shape, and what is left where they agree."""
    means = times_excess(shape, SQRT_2_OVER_PI * scale, rate, shape, 1.0, 0.0, 0)
    return means + root_to_gamma(0.5, shape)


@register_kl(Gamma, HalfNormal, compiled=True)
def gamma_half_normal(shape: float, rate: float, scale: float) -> float:
    """Half the excess of the ratio of mean squares, and what is left where they agree."""
    return gamma_root(shape, rate, 0.5, scale)
