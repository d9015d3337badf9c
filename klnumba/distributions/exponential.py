"""The exponential distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved
from klnumba.distributions.gumbel import Gumbel
from klnumba.distributions.laplace import Laplace, to_laplace
from klnumba.distributions.normal import Normal
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import exp, expm1, log, log1p
from klnumba.formulas.primitives import fma
from klnumba.formulas.quick import Slopes, with_quick_bends, with_quick_slopes
from klnumba.formulas.ranges import FAR, difference_over, excess_over_square, ratio_of_products
from klnumba.formulas.slopes_of_pairs import NONE, by_normal_along, sized, sized_four, sized_three
from klnumba.formulas.special import HALF_LOG_2PI, excess_of_products, exp_excess, log_of_products


def exponential_entropy(rate: float) -> float:
    """The differential entropy, in nats."""
    return 1.0 - log(rate)


class Exponential(Distribution):
    """The exponential distribution.

    Parameters
    ----------
    rate : array_like
        One over the mean.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Exponential
    >>> round(float(kl.kl_divergence(Exponential(1.0), Exponential(2.0))), 6)
    0.306853
    """

    parameters = ("rate",)
    rate = Parameter(POSITIVE)
    entropy_formula = staticmethod(exponential_entropy)
    scipy_name = "expon"

    def __init__(self, rate: Any = 1.0, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, rate=rate)

    @property
    def support(self) -> Support:
        return Support(0.0, math.inf)

    @property
    def mean(self) -> Any:
        return self._full(1.0 / self.rate)

    @property
    def variance(self) -> Any:
        return self._full(1.0 / np.square(self.rate))

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (), 0.0, 1.0 / self.rate

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"rate": 1.0 / np.asarray(scale)}


def exponential_exponential_slopes(rate_p: float, rate_q: float) -> Slopes:
    """The difference d of the rates over rate_p**2, and -d/(rate_p*rate_q)."""
    d = rate_p - rate_q
    return (d / rate_p / rate_p, 0.0), (-d / rate_p / rate_q, 0.0)


def exponential_exponential_bends(rate_p: float, rate_q: float, move_p: float, move_q: float) -> Slopes:
    """By rate_p move_p*(2*rate_q/rate_p - 1)/rate_p**2 - move_q/rate_p**2, by rate_q the like of 1/rate_q**2."""
    u, v = 1.0 / rate_p, 1.0 / rate_q
    grown, other, own = move_p * u * u, move_q * u * u, move_q * v * v
    return sized_three(2.0 * (rate_q * u) * grown, -grown, -other), sized(own, -grown), NONE, NONE


@register_kl(Exponential, Exponential, compiled=True)
@with_quick_bends(exponential_exponential_bends)
@with_quick_slopes(exponential_exponential_slopes)
def exponential_exponential(rate_p: float, rate_q: float) -> float:
    """The excess of the ratio rate_q/rate_p."""
    return excess_of_products(rate_q, 1.0, rate_p, 1.0)


def exponential_normal_slopes(rate: float, loc: float, scale: float) -> Slopes:
    """With t = 1/rate - loc the distance of the means: t/scale**2 by loc, and the others by the chain rule."""
    u, w = 1.0 / scale, 1.0 / rate
    z = u * u
    t = fma(-rate, loc, 1.0) * w
    by_rate = sized_three(w, -w * w * w * z, -t * w * w * z)
    return by_rate, (-t * z, 0.0), sized_three(u, -w * w * z * u, -t * t * z * u)


def exponential_normal_bends(
    rate: float, loc: float, scale: float, move_p: float, move_q: float, more_q: float
) -> Slopes:
    """With w = 1/rate, which changes by g, of w - w**3/scale**2 - t*(w/scale)**2, and as to any normal distribution."""
    u, w = 1.0 / scale, 1.0 / rate
    z, f, t, g = u * u, more_q * u, fma(-rate, loc, 1.0) * w, -move_p * w * w
    grown = 2.0 * w * g
    by_loc, by_scale = by_normal_along(w * w, (t, abs(t)), u, (grown, abs(grown)), sized(g, -move_q), f)
    by_rate, size = sized_four(g, -3.0 * w * w * g * z, 2.0 * w * w * w * z * f, -t * grown * z)
    return (by_rate + by_loc[0] * w * w, size + by_loc[1] * w * w), by_loc, by_scale, NONE, NONE, NONE


@register_kl(Exponential, Normal, compiled=True)
@with_quick_bends(exponential_normal_bends)
@with_quick_slopes(exponential_normal_slopes)
def exponential_normal(rate: float, loc: float, scale: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    t = difference_over(1.0, 1.0, loc, rate, rate, scale)
    return 0.5 * (excess_over_square(1.0, rate, scale) + t * t) + (HALF_LOG_2PI - 0.5)


def exponential_gumbel_slopes(rate: float, loc: float, scale: float) -> Slopes:
    """By loc (e - 1)/scale, by the rate c/rate, by the scale (c - m*(e - 1))/scale.

    With y = 1/(rate*scale), m = loc/scale and e = exp(m)/(1 + y), c = 1 - y + e*y/(1 + y).
    """
    y = 1.0 / rate / scale
    more = log1p(y)
    m = loc / scale
    rise = expm1(m - more)
    size = (rise + 1.0) * (abs(m) + more)
    share = y / (1.0 + y)
    common, of_common = sized_three(1.0, -y * share, share * rise)
    of_common += share * size
    moved, of_moved = m * rise, abs(m) * (abs(rise) + size)
    by_scale = ((common - moved) / scale, (of_common + of_moved) / scale)
    return (common / rate, of_common / rate), (rise / scale, size / scale), by_scale


@register_kl(Exponential, Gumbel, compiled=True)
@with_quick_slopes(exponential_gumbel_slopes)
def exponential_gumbel(rate: float, loc: float, scale: float) -> float:
    """exp(v) - 1 - v, v = loc/scale - log(1 + y), and y - log(y*(1 + y)), y = 1/(rate*scale)."""
    y = ratio_of_products(1.0, 1.0, rate, scale)
    more = log1p(y) if y < FAR else log_of_products(1.0, 1.0, rate, scale)
    return exp_excess(loc / scale - more) + (excess_of_products(1.0, 1.0, rate, scale) + (1.0 - more))


@register_kl(Exponential, Laplace, compiled=True)
def exponential_laplace(rate: float, loc: float, scale: float) -> float:
    """The excess of E abs(X - loc)/scale, and what is left where that is 1."""
    x = rate * loc
    distance = 1.0 - x if x <= 0.0 else x - 1.0 + 2.0 * exp(-x)
    return to_laplace(distance, 1.0 / rate, scale, 1.0, loc)
