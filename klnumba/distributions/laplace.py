"""The Laplace distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.location_scale import LocationScale
from klnumba.distributions.normal import Normal
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import exp, expm1, log, log1p
from klnumba.formulas.exponents import difference_over_twofold
from klnumba.formulas.log_cells import remainder
from klnumba.formulas.primitives import fma
from klnumba.formulas.quick import Slopes, with_quick_bends, with_quick_slopes
from klnumba.formulas.ranges import FAR, in_range
from klnumba.formulas.slopes_of_pairs import (
    FULL,
    NONE,
    WIDE,
    by_normal_along,
    exp_excess_below,
    gamma_share,
    plus_narrow,
    products_apart,
    sized,
    sized_four,
    sized_three,
    square_of_difference,
)
from klnumba.formulas.special import HALF_LOG_2PI, LN2, excess_of_products

HALF_LOG_PI = 0.5723649429247001
SQRT_2_OVER_PI = 0.7978845608028654
SQRT_HALF = 0.7071067811865476
NORMAL_REST = 0.048417294710545136  # 1/2 + log(2/pi): of a normal distribution around loc, and with that distance
LEAST = 1e-290  # below it numbers lose digits


def laplace_entropy(loc: float, scale: float) -> float:
    """The differential entropy, in nats."""
    return 1.0 + LN2 + log(scale)


class Laplace(LocationScale):
    """The Laplace distribution, two exponential tails back to back.

    Parameters
    ----------
    loc : array_like
        Where the density has its peak.
    scale : array_like
        Mean distance from it.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Laplace
    >>> round(float(kl.kl_divergence(Laplace(0.0, 1.0), Laplace(1.0, 2.0))), 6)
    0.377087
    """

    entropy_formula = staticmethod(laplace_entropy)
    scipy_name = "laplace"

    @property
    def mean(self) -> Any:
        return self._full(self.loc)

    @property
    def variance(self) -> Any:
        return self._full(2.0 * np.square(self.scale))


def to_laplace(distance: float, unit: float, scale: float, entropy: float, off: float) -> float:
    """KL to a Laplace distribution: `distance` is E abs(X - loc) in units of which p has the entropy.

    From afar, where it may leave the range, it is that of loc from p's place, `off`, but where loc is the mean of a p
    that is all far out.
    """
    far = abs(off)
    if far < 0.5 * distance * unit < math.inf:
        far = distance * unit
    if distance > FAR and 0.0 < far < math.inf:
        return excess_of_products(far, 1.0, scale, 1.0) + (1.0 + LN2 + (log(far) - log(unit)) - entropy)
    if distance == math.inf:
        return distance
    if distance == 0.0:  # which underflowed
        return max(LN2 + (log(scale) - log(unit)) - entropy, 0.0)
    return excess_of_products(distance, unit, scale, 1.0) + (1.0 + LN2 + log(distance) - entropy)


def narrow_to_laplace(distance: float, unit: float, narrow: float, scale: float, entropy: float, off: float) -> float:
    """The same where p's deviation is about unit/narrow, in units of which it has the entropy.

    In those of the distance, the logarithms of both would be large and cancel.
    """
    deviation = unit / narrow
    if deviation < LEAST or deviation == math.inf:
        return to_laplace(distance, unit, scale, entropy - log(narrow), off)
    return to_laplace(distance * narrow, deviation, scale, entropy, off)


def laplace_laplace_slopes(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> Slopes:
    """With u the distance over scale_p: by loc_p +-(1 - exp(-u))/scale_q, by the scales two parts of one sign each.

    By that of p there are two such forms, of which that with the smaller parts is taken.
    """
    place, low = difference_over_twofold(loc_p, loc_q, scale_p)
    u = abs(place)
    by_loc = -math.copysign(1.0, place) * expm1(-u) / scale_q
    wider = (scale_p - scale_q) / scale_q
    first, moved = wider / scale_p, gamma_share(u) / scale_q
    second, apart = wider / scale_q, scale_p * exp_excess_below(u) / scale_q / scale_q
    found, size = sized(first, -moved)
    beside = exp(-min(u, WIDE)) * (1.0 - math.copysign(low, place * low)) * (1.0 + u) / scale_q if u < WIDE else 0.0
    rest = 1.0 / scale_p
    by_scale_p = (beside - rest, beside + rest) if beside + rest < size else (found, size)
    return (by_loc, 0.0), by_scale_p, (-by_loc, 0.0), (-(second + apart), abs(second) + apart)


def laplace_laplace_bends(
    loc_p: float, scale_p: float, loc_q: float, scale_q: float, move_p: float, more_p: float, move_q: float,
    more_q: float,
) -> Slopes:  # fmt: skip
    """Of a = abs(loc_p - loc_q), which grows by e; r = a/scale_p, s = exp(-r), and u = 1/scale_q.

    By a u*[s*(e - r*more_p)/scale_p - (1 - s)*u*more_q], by scale_p u*s*r*(r*more_p - e)/scale_p + more_p/scale_p**2
    - (1 + r)*s*u**2*more_q, and by scale_q u**2*[(2*u*(a + scale_p*s) - 1)*more_q - (1 - s)*e - (1 + r)*s*more_p].
    """
    u, v, d = 1.0 / scale_q, 1.0 / scale_p, loc_p - loc_q
    a, e = abs(d), math.copysign(1.0, d) * (move_p - move_q)
    r = a * v
    s = exp(-min(r, FULL)) if r < FULL else math.nan  # beyond, the rounding of r shows
    near, narrow, less = s * u * (e * v), s * u * r * (more_p * v), expm1(-r) * u * u
    wide, own = (1.0 + r) * s * u * u, more_q * u * u
    by_loc, size = sized_three(near, -narrow, less * more_q)
    by_scale_p = sized_four(r * narrow, -r * near, more_p * v * v, -wide * more_q)
    by_scale_q, size_q = sized_four(2.0 * (u * (a + scale_p * s)) * own, -own, less * e, -wide * more_p)
    by_loc = math.copysign(1.0, d) * by_loc
    return (by_loc, size), by_scale_p, (-by_loc, size), (by_scale_q, size_q), NONE, NONE, NONE, NONE


@register_kl(Laplace, Laplace, compiled=True)
@with_quick_bends(laplace_laplace_bends)
@with_quick_slopes(laplace_laplace_slopes)
def laplace_laplace(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """excess of r + r*(a + exp(-a) - 1) for r = scale_p/scale_q, a = abs(loc_p - loc_q)/scale_p."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    d = abs(loc_p - loc_q)
    a = d / scale_p
    r = scale_p / scale_q
    if r == math.inf:
        return r
    moved = r * remainder(-a) if a <= LN2 else d / scale_q + r * expm1(-a)
    return excess_of_products(scale_p, 1.0, scale_q, 1.0) + moved


def laplace_normal_slopes(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> Slopes:
    """By loc d/scale_q**2, by scale_p 2*scale_p**2 - scale_q**2 over scale_p*scale_q**2; that and d**2 by scale_q."""
    u = 1.0 / scale_q
    by_loc = (loc_p - loc_q) * u * u
    spread, low = products_apart(2.0 * scale_p, scale_p, scale_q, scale_q)
    total, few = plus_narrow(spread, low, *square_of_difference(loc_p, loc_q))
    by_scale_p = (spread + low) / scale_p * u * u
    return (by_loc, 0.0), (by_scale_p, 0.0), (-by_loc, 0.0), (-total * u * u * u, few * u * u * u)


def laplace_normal_bends(
    loc_p: float, scale_p: float, loc_q: float, scale_q: float, move_p: float, more_p: float, move_q: float,
    more_q: float,
) -> Slopes:  # fmt: skip
    """Of 2*scale_p/scale_q**2 - 1/scale_p, and those of any distribution to a normal one."""
    u = 1.0 / scale_q
    t, e, f, spread = loc_p - loc_q, move_p - move_q, more_q * u, 2.0 * scale_p
    grown = 2.0 * spread * more_p
    by_loc, by_scale_q = by_normal_along(spread * scale_p, (t, abs(t)), u, (grown, abs(grown)), (e, abs(e)), f)
    by_scale_p = sized_three(2.0 * more_p * u * u, -2.0 * spread * u * u * f, more_p / scale_p / scale_p)
    return (-by_loc[0], by_loc[1]), by_scale_p, by_loc, by_scale_q, NONE, NONE, NONE, NONE


@register_kl(Laplace, Normal, compiled=True)
@with_quick_bends(laplace_normal_bends)
@with_quick_slopes(laplace_normal_slopes)
def laplace_normal(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    t = (loc_p - loc_q) / scale_q
    return 0.5 * (excess_of_products(2.0 * scale_p, scale_p, scale_q, scale_q) + t * t) + (HALF_LOG_PI - 0.5)


def mean_distance(y: float) -> float:
    """The expected distance of a standard normal variable from y >= 0."""
    return SQRT_2_OVER_PI * exp(-0.5 * y * y) + y * math.erf(SQRT_HALF * y)


NO_DENSITY = 1e-260  # what is taken for 0 is below


def _place_and_density(loc_p: float, loc_q: float, scale_p: float) -> tuple[float, float]:
    """The distance in units of scale_p, and twice the standard normal density there."""
    y, low = difference_over_twofold(loc_p, loc_q, scale_p)
    half = 0.5 * y * y
    density = SQRT_2_OVER_PI * exp(-half) * (1.0 - (fma(0.5 * y, y, -half) + y * low))
    return y, density if half < WIDE else 0.0


def normal_laplace_slopes(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> Slopes:
    """With y the distance over scale_p: erf(y/sqrt(2)) and 2*normal density(y) over scale_q, and 1/scale_q etc."""
    y, density = _place_and_density(loc_p, loc_q, scale_p)
    u, inside = 1.0 / scale_q, math.erf(SQRT_HALF * y)
    by_loc = inside * u
    by_scale_p, size = sized(density * u, -1.0 / scale_p)
    distance = scale_p * (density + y * inside) * u * u
    return (by_loc, 0.0), (by_scale_p, 0.5 * size), (-by_loc, 0.0), (u - distance, 0.5 * u + distance)


def normal_laplace_bends(
    loc_p: float, scale_p: float, loc_q: float, scale_q: float, move_p: float, more_p: float, move_q: float,
    more_q: float,
) -> Slopes:  # fmt: skip
    """With y the distance over scale_p, which changes by e/scale_p - y*more_p/scale_p, and the density at y."""
    y, density = _place_and_density(loc_p, loc_q, scale_p)
    u, w = 1.0 / scale_q, 1.0 / scale_p
    e, f, inside = move_p - move_q, more_q * u, math.erf(SQRT_HALF * y)
    near, wide = e * w * u, -y * (more_p * w) * u
    unknown = NO_DENSITY * (abs(near) + abs(wide)) if density == 0.0 else 0.0
    by_loc, size = sized_three(density * near, density * wide, -inside * u * f)
    by_scale_p, size_p = sized_four(-y * density * near, -y * density * wide, -density * u * f, more_p * w * w)
    distance = 2.0 * scale_p * (density + y * inside) * u * u * f
    by_scale_q = sized_four(-f * u, -inside * e * u * u, -density * more_p * u * u, distance)
    of_loc, of_scale_p = size + unknown, size_p + abs(y) * unknown
    return (by_loc, of_loc), (by_scale_p, of_scale_p), (-by_loc, of_loc), by_scale_q, NONE, NONE, NONE, NONE


@register_kl(Normal, Laplace, compiled=True)
@with_quick_bends(normal_laplace_bends)
@with_quick_slopes(normal_laplace_slopes)
def normal_laplace(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The excess of E abs(X - loc_q)/scale_q, and what is left where that is 1."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    off = loc_p - loc_q
    y = abs(off) / scale_p
    if y > 9.0:
        return to_laplace(y, scale_p, scale_q, 0.5 + HALF_LOG_2PI, off)
    wider = expm1(-0.5 * y * y) + y / SQRT_2_OVER_PI * math.erf(SQRT_HALF * y)  # by this part, than around loc_q
    return excess_of_products(mean_distance(y), scale_p, scale_q, 1.0) + (NORMAL_REST + log1p(wider))
