"""The normal distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from klnumba.distributions.location_scale import LocationScale
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log
from klnumba.formulas.primitives import fma
from klnumba.formulas.quick import Slopes, excess_of_ordinary_products, is_ordinary, with_quick_form, with_quick_slopes
from klnumba.formulas.ranges import in_range
from klnumba.formulas.slopes_of_pairs import plus_narrow, square_of_difference, squares_apart
from klnumba.formulas.special import HALF_LOG_2PI, excess_of_products


def normal_entropy(loc: float, scale: float) -> float:
    """The differential entropy, in nats."""
    return 0.5 + HALF_LOG_2PI + log(scale)


class Normal(LocationScale):
    """The normal distribution.

    Parameters
    ----------
    loc, scale : array_like
        Mean and standard deviation.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Normal
    >>> float(kl.kl_divergence(Normal(1.0, 2.0), Normal(0.0, 2.0)))
    0.125
    """

    entropy_formula = staticmethod(normal_entropy)
    scipy_name = "norm"

    @property
    def mean(self) -> Any:
        return self._full(self.loc)

    @property
    def variance(self) -> Any:
        return self._full(np.square(self.scale))


def quick_normal_normal(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> tuple[float, bool]:
    """`normal_normal` of ordinary scales."""
    t = (loc_p - loc_q) / scale_q
    variances = excess_of_ordinary_products(scale_p, scale_p, scale_q, scale_q)
    return 0.5 * fma(t, t, variances), is_ordinary(scale_p) & is_ordinary(scale_q)


def normal_normal_slopes(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> Slopes:
    """By loc d/scale_q**2, d the difference; by scale of q the sum of d**2 and the difference of squares, twofold."""
    u = 1.0 / scale_q
    by_loc = (loc_p - loc_q) * u * u
    spread, spread_low = squares_apart(scale_p, scale_q)
    by_scale_p = spread / scale_p * u * u
    total, few = plus_narrow(spread, spread_low, *square_of_difference(loc_p, loc_q))
    return (by_loc, 0.0), (by_scale_p, 0.0), (-by_loc, 0.0), (-total * u * u * u, few * u * u * u)


@register_kl(Normal, Normal, compiled=True)
@with_quick_slopes(normal_normal_slopes)
@with_quick_form(quick_normal_normal)
def normal_normal(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """[excess of the ratio of variances + ((loc_p - loc_q)/scale_q)**2]/2."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    t = (loc_p - loc_q) / scale_q
    return 0.5 * (excess_of_products(scale_p, scale_p, scale_q, scale_q) + t * t)
