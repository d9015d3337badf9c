"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from klnumba.distributions.location_scale import LocationScale
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log, log1p
from klnumba.formulas.primitives import fma
from klnumba.formulas.quick import Slopes, with_quick_bends, with_quick_slopes
from klnumba.formulas.ranges import in_range
from klnumba.formulas.slopes_of_pairs import (
    NONE,
    plus_narrow,
    sized_four,
    sized_three,
    square_of_difference,
    squares_apart,
)

LOG_4 = 1.3862943611198906
LOG_4PI = 2.5310242469692907


def cauchy_entropy(loc: float, scale: float) -> float:
    """The differential entropy, in nats."""
    return LOG_4PI + log(scale)


class Cauchy(LocationScale):
    """The Cauchy distribution: Student's t with one degree of freedom.

    Parameters
    ----------
    loc : array_like
        Median.
    scale : array_like
        Half the distance between the quartiles.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Cauchy
    >>> round(float(kl.kl_divergence(Cauchy(0.0, 1.0), Cauchy(1.0, 2.0))), 6)
    0.223144
    """

    entropy_formula = staticmethod(cauchy_entropy)
    scipy_name = "cauchy"

    @property
    def mean(self) -> Any:
        return self._full(math.nan)

    @property
    def variance(self) -> Any:
        return self._full(math.nan)


def cauchy_cauchy_slopes(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> Slopes:
    """With n = (scale_p + scale_q)**2 + d**2, d the distance: 2*d/n, and differences of squares over n and a scale."""
    d = loc_p - loc_q
    both = scale_p + scale_q
    u = 1.0 / fma(both, both, d * d)
    spread, spread_low = squares_apart(scale_p, scale_q)
    square, square_low = square_of_difference(loc_p, loc_q)
    by_p, few_p = plus_narrow(spread, spread_low, -square, -square_low)
    by_q, few_q = plus_narrow(spread, spread_low, square, square_low)
    of_p, of_q = u / scale_p, u / scale_q
    by_loc = 2.0 * d * u
    return (by_loc, 0.0), (by_p * of_p, few_p * of_p), (-by_loc, 0.0), (-by_q * of_q, few_q * of_q)


def cauchy_cauchy_bends(
    loc_p: float, scale_p: float, loc_q: float, scale_q: float, move_p: float, more_p: float, move_q: float,
    more_q: float,
) -> Slopes:  # fmt: skip
    """Of 2*d/n, and of 2*(scale_p + scale_q)/n less one over a scale: the two parts of n, which its growth is of."""
    d, e = loc_p - loc_q, move_p - move_q
    both, more = scale_p + scale_q, more_p + more_q
    u = 2.0 / fma(both, both, d * d)
    of_scales, of_places = both * more * u, d * e * u
    by_loc, size = sized_three(e * u, -d * u * of_scales, -d * u * of_places)
    grown, narrow, wide = more * u, -both * u * of_scales, -both * u * of_places
    by_p = sized_four(grown, narrow, wide, more_p / scale_p / scale_p)
    by_q = sized_four(grown, narrow, wide, more_q / scale_q / scale_q)
    return (by_loc, size), by_p, (-by_loc, size), by_q, NONE, NONE, NONE, NONE


@register_kl(Cauchy, Cauchy, compiled=True)
@with_quick_bends(cauchy_cauchy_bends)
@with_quick_slopes(cauchy_cauchy_slopes)
def cauchy_cauchy(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """log of [(scale_p + scale_q)**2 + (loc_p - loc_q)**2]/(4*scale_p*scale_q) (Chyzak and Nielsen 2019)."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    narrow = scale_p - scale_q
    apart = loc_p - loc_q
    t = 0.25 * ((narrow / scale_p) * (narrow / scale_q) + (apart / scale_p) * (apart / scale_q))
    if t < 1e300:
        return log1p(t)
    narrow, apart = 0.5 * abs(narrow), abs(0.5 * loc_p - 0.5 * loc_q)
    far = max(narrow, apart)
    small = min(narrow, apart) / far
    return (log(far) - log(scale_p)) + (log(far) - log(scale_q)) + log1p(small * small)
