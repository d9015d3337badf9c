"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.laplace import Laplace, to_laplace
from klnumba.distributions.location_scale import LocationScale
from klnumba.distributions.normal import Normal
from klnumba.distributions.registry import register_kl
from klnumba.formulas.divergences import log_ratio
from klnumba.formulas.elementary import exp, expm1, log, log1p
from klnumba.formulas.exponents import (
    UNBOUNDED,
    difference_over_twofold,
    exp_excess_of_difference,
    log_gamma_1p_twofold,
    shows,
)
from klnumba.formulas.integrals import entire_exponential_integral, scaled_exponential_integral
from klnumba.formulas.primitives import fma
from klnumba.formulas.quick import Slopes, with_quick_bends, with_quick_slopes
from klnumba.formulas.ranges import TINY, in_range
from klnumba.formulas.slopes_of_pairs import (
    NARROW,
    NONE,
    by_normal_along,
    gumbel_parts,
    gumbel_parts_along,
    sized,
    sized_three,
    squares_apart,
)
from klnumba.formulas.special import (
    EULER,
    HALF_LOG_2PI,
    LN2,
    excess_of_products,
    exp_excess,
    log_gamma_bregman,
    log_of_products,
)
from klnumba.formulas.twofold import over, plus, times

PI_SQUARED_6 = 1.6449340668482264
NEGENTROPY = 0.09057301953851255  # log(pi**3/3)/2 - 1/2 - EULER


def gumbel_entropy(loc: float, scale: float) -> float:
    """The differential entropy, in nats."""
    return 1.0 + EULER + log(scale)


class Gumbel(LocationScale):
    """The Gumbel distribution of largest values.

    Parameters
    ----------
    loc : array_like
        Mode.
    scale : array_like
        Scale.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Gumbel
    >>> round(float(kl.kl_divergence(Gumbel(0.0, 1.0), Gumbel(1.0, 2.0))), 6)
    0.365681
    """

    entropy_formula = staticmethod(gumbel_entropy)
    scipy_name = "gumbel_r"

    @property
    def mean(self) -> Any:
        return self._full(self.loc + EULER * self.scale)

    @property
    def variance(self) -> Any:
        return self._full(PI_SQUARED_6 * np.square(self.scale))


def gumbel_excess(above: float, below: float, m: float, low: float) -> float:
    """KL of two Gumbel distributions with scales in the ratio r = above/below, and modes m + low scales of q apart.

    It is exp(v) - 1 - v, v = log-gamma(1 + r) - m, and the Bregman remainder of log-gamma from 1 to r.
    """
    d = (above - below) / below
    r = above / below
    if r == math.inf:
        return r
    remainder = log_gamma_bregman(1.0, r, d) if r > TINY else (log(below) - log(above)) - EULER
    if r < 0.5:
        log_gamma_1p = log_gamma_bregman(1.0, 1.0 + r, r) - EULER * r
    else:
        log_gamma_1p = log_ratio(above, below, above - below) + (remainder - EULER * d)
    lost = 0.0
    if shows(r):
        log_gamma_1p, lost = log_gamma_1p_twofold(above, below)
    return exp_excess_of_difference(log_gamma_1p, lost, m, low) + remainder


def gumbel_gumbel_slopes(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> Slopes:
    """With v as below and r the ratio of scales: by loc_p (1 - exp(v))/scale_q, the rest by the chain rule."""
    m, low = difference_over_twofold(loc_p, loc_q, scale_q)
    rise, size, by_r, extent, _ = gumbel_parts(scale_p, scale_q, m, low)
    r = scale_p / scale_q
    u = 1.0 / scale_q
    by_scale_q = (fma(m, rise, -r * by_r) * u, (abs(m) * (abs(rise) + size) + r * extent) * u)
    return (-rise * u, size * u), (by_r * u, extent * u), (rise * u, size * u), by_scale_q


def gumbel_gumbel_bends(
    loc_p: float, scale_p: float, loc_q: float, scale_q: float, move_p: float, more_p: float, move_q: float,
    more_q: float,
) -> Slopes:  # fmt: skip
    """By the chain rule: m changes by (move_p - move_q)/scale_q - m*f and r by more_p/scale_q - r*f, f as scale_q."""
    m, low = difference_over_twofold(loc_p, loc_q, scale_q)
    rise, lost, by_r, extent, whole = gumbel_parts(scale_p, scale_q, m, low)
    u = 1.0 / scale_q
    r, f = scale_p * u, more_q * u
    m_grown, of_m = sized((move_p - move_q) * u, -m * f)
    r_grown, of_r = sized(more_p * u, -r * f)
    grown, of_grown, bent, of_bent = gumbel_parts_along(r, whole, lost, r_grown, of_r, m_grown, of_m)
    of_rise, of_by_r = abs(rise) + lost, abs(by_r) + extent
    by_loc, size = (rise * f - grown) * u, (of_rise * abs(f) + of_grown) * u
    by_scale_p = (bent - by_r * f) * u, (of_bent + of_by_r * abs(f)) * u
    by_scale_q = (m_grown * rise + m * grown) - (r_grown * by_r + r * bent) - (m * rise - r * by_r) * f
    of_moves = (of_m + abs(m * f)) * of_rise + (of_r + abs(r * f)) * of_by_r
    terms = (by_scale_q * u, (of_moves + abs(m) * of_grown + r * of_bent) * u)
    return (by_loc, size), by_scale_p, (-by_loc, size), terms, NONE, NONE, NONE, NONE


@register_kl(Gumbel, Gumbel, compiled=True)
@with_quick_bends(gumbel_gumbel_bends)
@with_quick_slopes(gumbel_gumbel_slopes)
def gumbel_gumbel(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """exp(v) - 1 - v, v = log-gamma(1 + r) - (loc_p - loc_q)/scale_q, and log-gamma beyond first order from 1 to r."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    return gumbel_excess(scale_p, scale_q, *difference_over_twofold(loc_p, loc_q, scale_q))


def gumbel_normal_slopes(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> Slopes:
    """With t the distance of the means: t/scale_q**2 by loc_p, and by the scales those of the mean square."""
    d = loc_p - loc_q
    u = 1.0 / scale_q
    t, size = sized(d, EULER * scale_p)
    by_loc, of_loc = t * u * u, size * u * u
    square = PI_SQUARED_6 * scale_p * u * u
    by_scale_p, of_scale_p = sized_three(square, EULER * by_loc, -1.0 / scale_p)
    of_scale_p += EULER * of_loc
    by_scale_q, of_scale_q = sized_three(u, -square * scale_p * u, -t * t * u * u * u)
    return (
        (by_loc, of_loc),
        (by_scale_p, of_scale_p),
        (-by_loc, of_loc),
        (by_scale_q, of_scale_q + 2.0 * abs(t) * size * u * u * u),
    )


def gumbel_normal_bends(
    loc_p: float, scale_p: float, loc_q: float, scale_q: float, move_p: float, more_p: float, move_q: float,
    more_q: float,
) -> Slopes:  # fmt: skip
    """Of the parts by scale_p, and those of any distribution to a normal one."""
    u = 1.0 / scale_q
    t, e = sized(loc_p - loc_q, EULER * scale_p), sized(move_p - move_q, EULER * more_p)
    f, spread = more_q * u, PI_SQUARED_6 * scale_p
    grown = 2.0 * spread * more_p
    by_loc, by_scale_q = by_normal_along(spread * scale_p, t, u, (grown, abs(grown)), e, f)
    by_scale_p, size = sized_three(PI_SQUARED_6 * more_p * u * u, -2.0 * spread * u * u * f, more_p / scale_p / scale_p)
    by_scale_p, size = by_scale_p - EULER * by_loc[0], size + EULER * by_loc[1]
    return (-by_loc[0], by_loc[1]), (by_scale_p, size), by_loc, by_scale_q, NONE, NONE, NONE, NONE


@register_kl(Gumbel, Normal, compiled=True)
@with_quick_bends(gumbel_normal_bends)
@with_quick_slopes(gumbel_normal_slopes)
def gumbel_normal(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    return gumbel_apart(loc_p - loc_q, scale_p, scale_q)


def gumbel_apart(apart: float, scale_p: float, scale_q: float) -> float:
    """That of places so far apart."""
    t = (apart + EULER * scale_p) / scale_q
    return 0.5 * (excess_of_products(PI_SQUARED_6 * scale_p, scale_p, scale_q, scale_q) + t * t) + NEGENTROPY


def normal_gumbel_slopes(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> Slopes:
    """By loc_p (1 - e)/scale_q, by scale_p e*r/scale_q - 1/scale_p, by scale_q (1 - m + e*(m - r*r))/scale_q.

    m is the distance of the places over scale_q, r the ratio of scales, and e = exp(r*r/2 - m); 1 is taken from e.
    """
    m, low = difference_over_twofold(loc_p, loc_q, scale_q)
    r, r_low = over(scale_p, 0.0, scale_q, 0.0)
    half, half_low = times(0.5 * r, 0.5 * r_low, r, r_low)
    v, v_low = plus(half, half_low, -m, -low)
    rise = expm1(v)
    whole = rise + 1.0
    rise = fma(whole, v_low, rise)
    size = NARROW * (half + abs(m)) * whole
    u = 1.0 / scale_q
    narrower, _ = squares_apart(scale_q, scale_p)
    by_scale_p, of_scale_p = sized(rise * r * u, -narrower / scale_p * u * u)
    by_scale_q, of_scale_q = sized_three(narrower * u * u * u, m * rise * u, -r * r * rise * u)
    more = size * (r * r + abs(m)) * u
    return (
        (-rise * u, size * u),
        (by_scale_p, of_scale_p + size * r * u),
        (rise * u, size * u),
        (by_scale_q, of_scale_q + more),
    )


@register_kl(Normal, Gumbel, compiled=True)
@with_quick_slopes(normal_gumbel_slopes)
def normal_gumbel(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """exp(v) - 1 - v, v = r*r/2 - (loc_p - loc_q)/scale_q, and the excess of r*r, r = scale_p/scale_q."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    m, low = difference_over_twofold(loc_p, loc_q, scale_q)
    spread = 0.5 * excess_of_products(scale_p, scale_p, scale_q, scale_q) + (1.0 - HALF_LOG_2PI)
    return normal_to_gumbel(m, low, *difference_over_twofold(scale_p, 0.0, scale_q)) + spread


def normal_to_gumbel(m: float, low: float, r: float, r_low: float) -> float:
    """exp(v) - 1 - v, v = r*r/2 - m, the ratio r and the distance m of the modes in twice the digits."""
    square, lost = 0.5 * r * r, 0.0
    if square < UNBOUNDED:
        square, lost = times(0.5 * r, 0.5 * r_low, r, r_low)
    return exp_excess_of_difference(square, lost, m, low)


@register_kl(Laplace, Gumbel, compiled=True)
def laplace_gumbel(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """exp(v) - 1 - v, v = -log(1 - r*r) - (loc_p - loc_q)/scale_q, and -log(2*r*(1 - r*r)), r = scale_p/scale_q < 1."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    if scale_p >= scale_q:
        return math.inf
    more = log((scale_q - scale_p) / scale_q) + log1p(scale_p / scale_q)
    rest = LN2 + log_of_products(scale_p, 1.0, scale_q, 1.0) + more
    return exp_excess(-more - (loc_p - loc_q) / scale_q) - rest


def gumbel_distance(y: float) -> float:
    """The expected distance of a standard Gumbel variable from y."""
    if y >= EULER:
        return (y - EULER) + 2.0 * entire_exponential_integral(exp(-y))
    if y < -7.0:  # the rest is below exp(-1000)
        return EULER - y
    z = exp(-y)
    return (EULER - y) + 2.0 * exp(-z) * scaled_exponential_integral(z)


@register_kl(Gumbel, Laplace, compiled=True)
def gumbel_laplace(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The excess of E abs(X - loc_q)/scale_q, and what is left where that is 1."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    off = loc_q - loc_p
    return to_laplace(gumbel_distance(off / scale_p), scale_p, scale_q, 1.0 + EULER, off)
