"""The Weibull distribution."""

from __future__ import annotations

import math
from typing import Any

from klnumba.distributions.chi import Chi
from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.gamma import Gamma
from klnumba.distributions.gamma_powers import SMALL, log_gamma_1p, log_gamma_curve
from klnumba.distributions.gumbel import gumbel_apart, gumbel_excess, normal_to_gumbel
from klnumba.distributions.half_normal import HalfNormal
from klnumba.distributions.laplace import Laplace, narrow_to_laplace
from klnumba.distributions.log_normal import LogNormal
from klnumba.distributions.registry import register_kl
from klnumba.formulas.divergences import log_ratio, sharp_log_ratio
from klnumba.formulas.elementary import LN2_HI, LN2_LO, exp, expm1, log, log1p, two_sum
from klnumba.formulas.exponents import (
    ENOUGH,
    UNBOUNDED,
    log_gamma_1p_twofold,
    log_gamma_rise_twofold,
    log_of_products_twofold,
    log_ratio_twofold,
    shows,
)
from klnumba.formulas.logarithms import log_less, log_twofold
from klnumba.formulas.power_distances import power_distance
from klnumba.formulas.primitives import fma
from klnumba.formulas.quick import Slopes, with_quick_bends, with_quick_slopes
from klnumba.formulas.ranges import FAR, MOST, excess_of_square, times_exp_excess, times_log
from klnumba.formulas.slopes_of_pairs import NONE, gumbel_parts, gumbel_parts_along, sized
from klnumba.formulas.special import (
    EULER,
    HALF_LOG_2PI,
    LARGE,
    digamma,
    excess,
    log_gamma,
    log_gamma_bregman,
    log_in_parts,
    log_of_products,
    stirling,
    stirling_bregman,
    stirling_slope,
)
from klnumba.formulas.twofold import plus, times


def weibull_entropy(scale: float, concentration: float) -> float:
    """The differential entropy, in nats."""
    return (1.0 - EULER / concentration) + (EULER + (log(scale) - log(concentration)))


NEARER = 600.0  # a mean of exp(it) is nothing beside a place beyond the range
FAR_BEYOND = 1e4  # the gamma function of it times any number is infinite


def times_exp(x: float, v: float) -> float:
    """x*exp(v), where exp(v) alone may be infinite."""
    half = exp(0.5 * v)
    return x * exp(v) if v < MOST else x * half * half


def weibull_mean(scale: float, concentration: float) -> float:
    """The expected value."""
    return times_exp(scale, log_gamma(1.0 + 1.0 / concentration))


def weibull_variance(scale: float, concentration: float) -> float:
    """The square of the mean, times what E X*X has beyond it."""
    inverse = 1.0 / concentration
    if inverse > FAR_BEYOND:
        return math.inf
    log_of_mean = log_gamma(1.0 + inverse)
    curve = log_gamma_curve(1.0, inverse)
    if curve > 1.0:
        deviation = times_exp(scale, log_of_mean + 0.5 * (curve + log1p(-exp(-curve))))
        return deviation * deviation
    mean = times_exp(scale, log_of_mean)
    return mean * (mean * expm1(curve))


class Weibull(Distribution):
    """The Weibull distribution.

    Parameters
    ----------
    scale : array_like
        Scale.
    concentration : array_like
        Shape.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Weibull
    >>> round(float(kl.kl_divergence(Weibull(1.0, 2.0), Weibull(2.0, 3.0))), 6)
    1.128752
    """

    parameters = ("scale", "concentration")
    scale = Parameter(POSITIVE)
    concentration = Parameter(POSITIVE)
    entropy_formula = staticmethod(weibull_entropy)
    scipy_name = "weibull_min"

    def __init__(self, scale: Any, concentration: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, scale=scale, concentration=concentration)

    @property
    def support(self) -> Support:
        return Support(0.0, math.inf)

    @property
    def mean(self) -> Any:
        return self._of_formula(weibull_mean)

    @property
    def variance(self) -> Any:
        return self._of_formula(weibull_variance)

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.concentration,), 0.0, self.scale

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"scale": scale, "concentration": shapes[0]}


def weibull_weibull_slopes(scale_p: float, shape_p: float, scale_q: float, shape_q: float) -> Slopes:
    """Those of Gumbel distributions, of the scales 1/shape and minus the logarithms of the scales as modes."""
    apart, low = log_ratio_twofold(scale_q, scale_p)
    rise, size, by_r, extent, _ = gumbel_parts(shape_q, shape_p, *times(shape_q, 0.0, apart, low))
    u = 1.0 / shape_p
    times_p, times_q = shape_q / scale_p, shape_q / scale_q
    moved = rise * apart
    by_shape_q = (fma(by_r, u, -moved), extent * u + abs(apart) * size + abs(moved))
    by_scale_p, by_scale_q = (times_p * rise, times_p * size), (-times_q * rise, times_q * size)
    return by_scale_p, (-by_r * (shape_q * u) * u, extent * (shape_q * u) * u), by_scale_q, by_shape_q


def weibull_weibull_bends(
    scale_p: float, shape_p: float, scale_q: float, shape_q: float, move_p: float, more_p: float, move_q: float,
    more_q: float,
) -> Slopes:  # fmt: skip
    """By the chain rule, m = shape_q*log(scale_q/scale_p) and r = shape_q/shape_p."""
    apart, low = log_ratio_twofold(scale_q, scale_p)
    rise, lost, by_r, extent, whole = gumbel_parts(shape_q, shape_p, *times(shape_q, 0.0, apart, low))
    u = 1.0 / shape_p
    r, f = shape_q * u, more_p * u
    way_p, way_q = move_p / scale_p, move_q / scale_q
    wider, of_wider = sized(way_q, -way_p)
    m_grown, of_m = more_q * apart + shape_q * wider, abs(more_q * apart) + shape_q * of_wider
    r_grown, of_r = sized(more_q * u, -r * f)
    grown, of_grown, bent, of_bent = gumbel_parts_along(r, whole, lost, r_grown, of_r, m_grown, of_m)
    of_rise, of_by_r = abs(rise) + lost, abs(by_r) + extent
    by_scale_p = (rise * (more_q - shape_q * way_p) + shape_q * grown) / scale_p
    by_scale_q = -(rise * (more_q - shape_q * way_q) + shape_q * grown) / scale_q
    size_p = (of_rise * (abs(more_q) + shape_q * abs(way_p)) + shape_q * of_grown) / scale_p
    size_q = (of_rise * (abs(more_q) + shape_q * abs(way_q)) + shape_q * of_grown) / scale_q
    by_shape_p = -(bent * r + by_r * (r_grown - r * f)) * u
    by_shape_q = (bent - by_r * f) * u - (grown * apart + rise * wider)
    of_shape_p = (of_bent * r + of_by_r * (of_r + r * abs(f))) * u
    of_shape_q = (of_bent + of_by_r * abs(f)) * u + of_grown * abs(apart) + of_rise * of_wider
    by_p, by_q = (by_shape_p, of_shape_p), (by_shape_q, of_shape_q)
    return (by_scale_p, size_p), by_p, (by_scale_q, size_q), by_q, NONE, NONE, NONE, NONE


@register_kl(Weibull, Weibull, compiled=True)
@with_quick_bends(weibull_weibull_bends)
@with_quick_slopes(weibull_weibull_slopes)
def weibull_weibull(scale_p: float, shape_p: float, scale_q: float, shape_q: float) -> float:
    """That of the logarithms, which with the opposite sign are Gumbel distributed."""
    d, low = two_sum(scale_q, -scale_p)
    m = shape_q * sharp_log_ratio(scale_q, scale_p, d, low)
    if shows(m):
        return gumbel_excess(shape_q, shape_p, *times(shape_q, 0.0, *log_ratio_twofold(scale_q, scale_p)))
    return gumbel_excess(shape_q, shape_p, m, 0.0)


def log_mean(inverse: float, d: float) -> float:
    """The logarithm of the mean of a Weibull distribution of scale 1 and shape 1/inverse, given d = inverse - 1."""
    if abs(d) <= 0.5:
        return (1.0 - EULER) * d + log_gamma_bregman(2.0, 1.0 + inverse, d)
    return log_gamma_bregman(1.0, 1.0 + inverse, inverse) - EULER * inverse


def least_to_gamma(inverse: float, d: float, shape: float) -> float:
    """The divergence of that Weibull distribution from the gamma distribution of the same mean."""
    e = shape - 1.0
    if abs(d) <= 0.5 and abs(e) <= 0.5:
        curves = shape * log_gamma_bregman(2.0, 1.0 + inverse, d) + stirling_bregman(1.0, shape, e)
        return max(excess(1.0, inverse, d) + d * e + (curves + 0.5 * excess(1.0, shape, e)), 0.0)
    curve = shape * log_gamma_bregman(1.0, 1.0 + inverse, inverse)
    return (curve - log(inverse)) + ((HALF_LOG_2PI - 0.5 * log(shape)) + (stirling(shape) - EULER - 1.0))


def weibull_of_mean(a: float, b: float, c: float, d: float, shape_p: float, power: float, shape_q: float) -> float:
    """KL of a power of a Weibull variable from a gamma distribution of mean 1, its scale a*b/(c*d)."""
    inverse = power / shape_p
    if inverse > FAR:  # no logarithm of the ratio makes up for that of the moment
        return math.inf
    more = (power - shape_p) / shape_p
    if shows(inverse):
        v, low = plus(*log_gamma_1p_twofold(power, shape_p), *log_of_products_twofold(a, b, c, d))
    else:
        k, x = log_in_parts(a, b, c, d)
        v, low = two_sum(k * LN2_HI, k * LN2_LO + (x + log_mean(inverse, more)))
    return times_exp_excess(shape_q, v, low) + least_to_gamma(inverse, more, shape_q)


@register_kl(Weibull, Gamma, compiled=True)
def weibull_gamma(scale: float, shape_p: float, shape_q: float, rate: float) -> float:
    """exp(v) - 1 - v, v the logarithm of the means' ratio, times the shape of q, and what is left where they agree."""
    return weibull_of_mean(scale, rate, shape_q, 1.0, shape_p, 1.0, shape_q)


@register_kl(Weibull, Exponential, compiled=True)
def weibull_exponential(scale: float, shape: float, rate: float) -> float:
    """That to the Weibull distribution of shape 1."""
    if shows(1.0 / shape):
        high, low = log_of_products_twofold(scale, rate, 1.0, 1.0)
        return gumbel_excess(1.0, shape, -high, -low)
    return gumbel_excess(1.0, shape, -log_of_products(scale, rate, 1.0, 1.0), 0.0)


@register_kl(Exponential, Weibull, compiled=True)
def exponential_weibull(rate: float, scale: float, shape: float) -> float:
    """That of the Weibull distribution of shape 1."""
    m, low = times_log(shape, *log_in_parts(scale, rate, 1.0, 1.0))
    if shows(m):
        m, low = times(shape, 0.0, *log_of_products_twofold(scale, rate, 1.0, 1.0))
    return gumbel_excess(shape, 1.0, m, low)


def least_to_weibull(a: float, k: float) -> float:
    """The divergence of a gamma distribution of shape a from the best Weibull distribution of shape k."""
    if a < SMALL:  # log-gamma(x) = log-gamma(1 + x) - log(x)
        r = k / a
        rest = (a - k) * digamma(1.0 + a) - a + (log_gamma_1p(a + k) - 2.0 * log_gamma_1p(a))
        return (r - log_of_products(k, k + a, a, a)) + rest
    f = a - 1.0
    e = k - 1.0
    linear = excess(1.0, k, e) - e * f / a if abs(e) <= 0.5 else e / a - log(k)
    curves = log_gamma_bregman(a + 1.0, a + k, e) + stirling_bregman(a, 1.0, -f)
    return max(linear + (0.5 * excess(a, 1.0, -f) + curves), 0.0)


@register_kl(Gamma, Weibull, compiled=True)
def gamma_weibull(shape_p: float, rate: float, scale: float, shape_q: float) -> float:
    """exp(v) - 1 - v, v the logarithm of E (X/scale)**shape_q, and what is left where that is 0."""
    return gamma_of_mean(shape_p, shape_p, 1.0, scale, rate, shape_q, shape_q - 1.0)


def gamma_of_mean(a: float, m: float, n: float, c: float, d: float, shape_q: float, e: float) -> float:
    """KL of a gamma distribution of mean m*n/(c*d) from a Weibull distribution of scale 1, given e = shape_q - 1."""
    k, x = log_in_parts(m, n, c, d)
    log_mean = k * LN2_LO + x
    if abs(e) <= 0.5 and abs(a - 1.0) <= 0.5:
        curve = log_gamma_bregman(a + 1.0, a + shape_q, e)
        rest = shape_q * log_mean + (e * (0.5 / a + stirling_slope(a)) + curve)
    elif a < SMALL:
        log_share = -log_of_products(a + shape_q, 1.0, a, 1.0)
        rest = log_share + (log_gamma_1p(a + shape_q) - log_gamma_1p(a)) - shape_q * (log(a) - log_mean)
    elif a < LARGE:
        rest = log_gamma(a + shape_q) - log_gamma(a) - shape_q * (log(a) - log_mean)
    else:
        mean_log = log_mean - (0.5 / a - stirling_slope(a))
        rest = log_gamma_bregman(a, a + shape_q, shape_q) + shape_q * mean_log
    whole = shape_q * (k * LN2_HI)
    v, low = two_sum(whole, rest)
    low += fma(shape_q, k * LN2_HI, -whole) if abs(whole) < UNBOUNDED else 0.0
    if shows(whole) or shows(shape_q):
        v, low = plus(*moment_beyond_mean(a, shape_q), *times(shape_q, 0.0, *log_of_products_twofold(m, n, c, d)))
    return times_exp_excess(1.0, v, low) + least_to_weibull(a, shape_q)


def moment_beyond_mean(a: float, q: float) -> tuple[float, float]:
    """log E G**q - q*log E G as the sum of two numbers, G a gamma variable of shape a."""
    if a >= LARGE and q * q < ENOUGH * a:
        return log_gamma_bregman(a, a + q, q) - q * (0.5 / a - stirling_slope(a)), 0.0
    high, low = log_twofold(a)
    return plus(*log_gamma_rise_twofold(a, q), *times(-q, 0.0, high, low))


@register_kl(Weibull, Laplace, compiled=True)
def weibull_laplace(scale_p: float, shape: float, loc: float, scale_q: float) -> float:
    """The excess of E abs(X - loc)/scale_q, and what is left where that is 1."""
    inverse = 1.0 / shape
    first = log_mean(inverse, (1.0 - shape) / shape)
    place = loc / scale_p
    if exp(first) == math.inf or (place == math.inf and first < NEARER):
        distance = math.inf
    elif place <= 0.0 or log_ratio(loc, scale_p, loc - scale_p) > first + MOST:
        distance = abs(exp(first) - place)
    else:
        log_place = log_ratio(loc, scale_p, loc - scale_p)
        ratio = first - log_place
        off = place * expm1(ratio) if abs(ratio) <= 1.0 else exp(first) - place
        y = exp(shape * log_place)
        distance = power_distance(1.0, inverse, y, place, off, 1.0 - y)
    off = exp(first + log(scale_p)) - loc
    return narrow_to_laplace(distance, scale_p, shape, scale_q, (1.0 + EULER) - EULER / shape, off)


@register_kl(Weibull, HalfNormal, compiled=True)
def weibull_half_normal(scale_p: float, shape: float, scale_q: float) -> float:
    """That of the squares, to the gamma distribution of shape 1/2."""
    return weibull_of_mean(scale_p, scale_p, scale_q, scale_q, shape, 2.0, 0.5)


@register_kl(HalfNormal, Weibull, compiled=True)
def half_normal_weibull(scale_p: float, scale_q: float, shape: float) -> float:
    """That of the squares, of the gamma distribution of shape 1/2."""
    half = 0.5 * shape
    return gamma_of_mean(0.5, scale_p, scale_p, scale_q, scale_q, half, half - 1.0)


@register_kl(Weibull, Chi, compiled=True)
def weibull_chi(scale: float, shape: float, df: float) -> float:
    """That of the squares, to the gamma distribution of shape df/2."""
    return weibull_of_mean(scale, scale, df, 1.0, shape, 2.0, 0.5 * df)


@register_kl(Chi, Weibull, compiled=True)
def chi_weibull(df: float, scale: float, shape: float) -> float:
    """That of the squares, of the gamma distribution of shape df/2."""
    half = 0.5 * shape
    return gamma_of_mean(0.5 * df, df, 1.0, scale, scale, half, half - 1.0)


@register_kl(Weibull, LogNormal, compiled=True)
def weibull_log_normal(scale_p: float, shape: float, loc: float, scale_q: float) -> float:
    """That of minus the logarithms, Gumbel and normal."""
    return gumbel_apart(-log_less(scale_p, 0.0, loc), 1.0 / shape, scale_q)


@register_kl(LogNormal, Weibull, compiled=True)
def log_normal_weibull(loc: float, scale_p: float, scale_q: float, shape: float) -> float:
    """That of minus the logarithms, normal and Gumbel."""
    spread = 0.5 * excess_of_square(scale_p, shape, 1.0, 1.0) + (1.0 - HALF_LOG_2PI)
    apart, low = plus(*log_twofold(scale_q), -loc, 0.0)
    m, lost = shape * apart, 0.0
    if abs(m) < UNBOUNDED:
        m, lost = times(shape, 0.0, apart, low)
    r = scale_p * shape
    return normal_to_gumbel(m, lost, r, fma(scale_p, shape, -r) if r < UNBOUNDED else 0.0) + spread
