"""The normal distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from klnumba.distributions.location_scale import LocationScale
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log
from klnumba.formulas.primitives import fma
from klnumba.formulas.quick import (
    Slopes,
    excess_of_ordinary_products,
    is_ordinary,
    with_quick_bends,
    with_quick_form,
    with_quick_slopes,
)
from klnumba.formulas.ranges import in_range
from klnumba.formulas.slopes_of_pairs import NONE, plus_narrow, square_of_difference, squares_apart
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


def normal_normal_bends(
    loc_p: float, scale_p: float, loc_q: float, scale_q: float, move_p: float, more_p: float, move_q: float,
    more_q: float,
) -> Slopes:  # fmt: skip
    """In units of scale_q, of which d is the distance, e how it grows, r the scale of p, and f the growth of the unit.

    By loc (e - 2*d*f)/scale_q, by scale_p more_p*(1/scale_q**2 + 1/scale_p**2) - 2*r*f/scale_q, and by scale_q
    [f*(3*(r**2 + d**2) - 1) - 2*d*e - 2*r*more_p/scale_q]/scale_q.
    """
    u = 1.0 / scale_q
    d, e, r, f = (loc_p - loc_q) * u, (move_p - move_q) * u, scale_p * u, more_q * u
    by_loc = (e - 2.0 * d * f) * u
    size = (abs(e) + 2.0 * abs(d * f)) * u
    first, second = more_p / scale_p / scale_p + more_p * u * u, 2.0 * r * f * u
    grown, narrow, wide = 2.0 * (d * e), 2.0 * (r * (more_p * u)), 3.0 * (r * r + d * d)
    by_scale_q = (f * (wide - 1.0) - grown - narrow) * u
    size_q = (abs(f) * (wide + 1.0) + abs(grown) + abs(narrow)) * u
    by_scale_p = first - second, abs(first) + abs(second)
    return (by_loc, size), by_scale_p, (-by_loc, size), (by_scale_q, size_q), NONE, NONE, NONE, NONE


@register_kl(Normal, Normal, compiled=True)
@with_quick_bends(normal_normal_bends)
@with_quick_slopes(normal_normal_slopes)
@with_quick_form(quick_normal_normal)
def normal_normal(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """[excess of the ratio of variances + ((loc_p - loc_q)/scale_q)**2]/2."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    t = (loc_p - loc_q) / scale_q
    return 0.5 * (excess_of_products(scale_p, scale_p, scale_q, scale_q) + t * t)
