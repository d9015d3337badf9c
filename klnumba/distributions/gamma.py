"""The gamma distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.gumbel import Gumbel
from klnumba.distributions.laplace import Laplace, narrow_to_laplace
from klnumba.distributions.normal import Normal
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import expm1, log, log1p
from klnumba.formulas.exponents import UNBOUNDED, shows
from klnumba.formulas.integrals import gamma_distance
from klnumba.formulas.log_cells import phi
from klnumba.formulas.logarithms import log_of_move
from klnumba.formulas.primitives import fma
from klnumba.formulas.quick import (
    Slopes,
    excess_of_ordinary_products,
    is_ordinary,
    quick_beyond_means,
    with_quick_bends,
    with_quick_form,
    with_quick_slopes,
)
from klnumba.formulas.ranges import (
    FAR,
    TINY,
    difference_over,
    excess_over_square,
    gap,
    ratio_of_products,
    times_excess,
    times_exp_excess,
)
from klnumba.formulas.slopes_of_pairs import (
    NONE,
    by_normal_along,
    digamma_rise,
    log_of_moved,
    sized,
    sized_five,
    sized_four,
    sized_three,
    tetragamma_of,
    trigamma_beyond,
    trigamma_of,
)
from klnumba.formulas.special import (
    HALF_LOG_2PI,
    difference_of_products,
    excess,
    log_of_products,
    stirling,
    stirling_bregman,
    stirling_slope,
)
from klnumba.formulas.twofold import over, plus, times


def gamma_entropy(concentration: float, rate: float) -> float:
    """The differential entropy, in nats."""
    rest = stirling(concentration) + (1.0 - concentration) * stirling_slope(concentration)
    return (HALF_LOG_2PI + 0.5 + 0.5 * log(concentration) - log(rate)) + (rest - 0.5 / concentration)


class Gamma(Distribution):
    """The gamma distribution.

    Parameters
    ----------
    concentration : array_like
        Shape.
    rate : array_like
        One over the scale.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Gamma
    >>> round(float(kl.kl_divergence(Gamma(2.0, 1.0), Gamma(3.0, 1.0))), 6)
    0.270363
    """

    parameters: ClassVar[tuple[str, ...]] = ("concentration", "rate")
    concentration = Parameter(POSITIVE)
    rate = Parameter(POSITIVE)
    entropy_formula: ClassVar[Callable[..., float]] = staticmethod(gamma_entropy)
    scipy_name = "gamma"

    def __init__(self, concentration: Any, rate: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, concentration=concentration, rate=rate)

    @property
    def support(self) -> Support:
        return Support(0.0, math.inf)

    @property
    def mean(self) -> Any:
        return self._full(self.concentration / self.rate)

    @property
    def variance(self) -> Any:
        return self._full(self.concentration / self.rate / self.rate)

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.concentration,), 0.0, 1.0 / self.rate

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"concentration": shapes[0], "rate": 1.0 / np.asarray(scale)}


def quick_gamma_gamma(shape_p: float, rate_p: float, shape_q: float, rate_q: float) -> tuple[float, bool]:
    """`gamma_gamma` of ordinary numbers."""
    rest, serves = quick_beyond_means(shape_p, shape_q, shape_q - shape_p)
    means = excess_of_ordinary_products(shape_p, rate_q, shape_q, rate_p)
    return fma(shape_q, means, rest), serves & is_ordinary(rate_p) & is_ordinary(rate_q)


def gamma_gamma_slopes(a: float, b: float, c: float, e: float) -> Slopes:
    """By a (a - c)*trigamma(a) + (e - b)/b, by c digamma(c) - digamma(a) + log(b/e), a and c the shapes.

    What both have of the ratio of the means is taken together.
    """
    d = c - a
    off = difference_of_products(a, e, c, b)
    of_means = off / (a * b)
    beyond = -d * trigamma_beyond(a)
    up, rest = digamma_rise(a, c, d)
    log_means = log_of_moved(c, b, a, e, up)
    by_a = (of_means + beyond, abs(of_means) + abs(beyond))
    by_c = (log_means + rest, abs(log_means) + abs(rest))
    return by_a, (-off / b / b, 0.0), by_c, (off / (b * e), 0.0)


def gamma_gamma_bends(
    a: float, b: float, c: float, e: float, move_a: float, move_b: float, move_c: float, move_e: float
) -> Slopes:
    """By a and b of p, shape and rate, (a - c)*trigamma(a) + e/b - 1 and c/b - a*e/b**2 change, and those of q."""
    u, v = 1.0 / b, 1.0 / e
    slope, other_slope, way_b, way_e = trigamma_of(a), trigamma_of(c), move_b * u, move_e * v
    ratio = e * u
    by_a = sized_five(
        slope * move_a, (a - c) * tetragamma_of(a) * move_a, -slope * move_c, -ratio * way_b, ratio * way_e
    )
    by_b = sized_five(
        2.0 * a * ratio * way_b * u, -c * way_b * u, -ratio * move_a * u, move_c * u, -a * ratio * way_e * u
    )
    by_c = sized_four(other_slope * move_c, -slope * move_a, way_b, -way_e)
    by_e = sized_four(c * way_e * v, move_a * u, -a * u * way_b, -move_c * v)
    return by_a, by_b, by_c, by_e, NONE, NONE, NONE, NONE


@register_kl(Gamma, Gamma, compiled=True)
@with_quick_bends(gamma_gamma_bends)
@with_quick_slopes(gamma_gamma_slopes)
@with_quick_form(quick_gamma_gamma)
def gamma_gamma(shape_p: float, rate_p: float, shape_q: float, rate_q: float) -> float:
    """The excess of the means' ratio, times the shape of q, and what Stirling's formula leaves of log-gamma."""
    means = times_excess(shape_q, shape_p, rate_q, shape_q, rate_p, 0.0, 0)
    return means + of_equal_mean(shape_p, shape_q, shape_q - shape_p)


def of_equal_mean(a: float, c: float, d: float) -> float:
    """KL of gamma distributions of shapes a and c = a + d with the same mean."""
    if a < TINY:
        return excess(a, c, d)
    if c < TINY:
        return -log(c) + (0.5 * log(a) - (0.5 + HALF_LOG_2PI)) + (a * stirling_slope(a) - stirling(a))
    if a < 1.0 and c / a > 1e300:
        return c * (0.5 / a - stirling_slope(a))
    return 0.5 * excess(a, c, d) + stirling_bregman(a, c, d)


def gamma_exponential_slopes(shape: float, rate_p: float, rate_q: float) -> Slopes:
    """Those of gamma distributions."""
    by_shape, by_rate_p, _, by_rate_q = gamma_gamma_slopes(shape, rate_p, 1.0, rate_q)
    return by_shape, by_rate_p, by_rate_q


def gamma_exponential_bends(
    shape: float, rate_p: float, rate_q: float, move: float, move_p: float, move_q: float
) -> Slopes:
    """Those of gamma distributions."""
    by_shape, by_p, _, by_q, _, _, _, _ = gamma_gamma_bends(shape, rate_p, 1.0, rate_q, move, move_p, 0.0, move_q)
    return by_shape, by_p, by_q, NONE, NONE, NONE


@register_kl(Gamma, Exponential, compiled=True)
@with_quick_bends(gamma_exponential_bends)
@with_quick_slopes(gamma_exponential_slopes)
def gamma_exponential(shape: float, rate_p: float, rate_q: float) -> float:
    """That of gamma distributions, q of shape 1."""
    return gamma_gamma(shape, rate_p, 1.0, rate_q)


def exponential_gamma_slopes(rate_p: float, shape: float, rate_q: float) -> Slopes:
    """Those of gamma distributions."""
    _, by_rate_p, by_shape, by_rate_q = gamma_gamma_slopes(1.0, rate_p, shape, rate_q)
    return by_rate_p, by_shape, by_rate_q


def exponential_gamma_bends(
    rate_p: float, shape: float, rate_q: float, move_p: float, move: float, move_q: float
) -> Slopes:
    """Those of gamma distributions."""
    _, by_p, by_shape, by_q, _, _, _, _ = gamma_gamma_bends(1.0, rate_p, shape, rate_q, 0.0, move_p, move, move_q)
    return by_p, by_shape, by_q, NONE, NONE, NONE


@register_kl(Exponential, Gamma, compiled=True)
@with_quick_bends(exponential_gamma_bends)
@with_quick_slopes(exponential_gamma_slopes)
def exponential_gamma(rate_p: float, shape: float, rate_q: float) -> float:
    """That of gamma distributions, p of shape 1."""
    return gamma_gamma(1.0, rate_p, shape, rate_q)


def negentropy(shape: float) -> float:
    """KL to the normal distribution of the same mean and variance."""
    return 0.5 / shape + ((shape - 1.0) * stirling_slope(shape) - stirling(shape))


def gamma_normal_slopes(shape: float, rate: float, loc: float, scale: float) -> Slopes:
    """With t = shape/rate - loc the distance of the means: t/scale**2 by loc, and the others by the chain rule."""
    u, w = 1.0 / scale, 1.0 / rate
    z = u * u
    t = difference_of_products(shape, 1.0, rate, loc) * w
    square = shape * w * w
    beyond = (shape - 1.0) * trigamma_beyond(shape) - 1.0 / shape
    by_shape = sized_three(beyond, 0.5 * z * w * w, t * w * z)
    loss = abs(shape - 1.0) * trigamma_beyond(shape) + 1.0 / shape
    by_rate = sized_three(w, -square * w * z, -t * shape * w * w * z)
    return (by_shape[0], by_shape[1] + loss), by_rate, (-t * z, 0.0), sized_three(u, -square * z * u, -t * t * z * u)


def gamma_normal_bends(
    shape: float, rate: float, loc: float, scale: float, move_p: float, more_p: float, move_q: float, more_q: float
) -> Slopes:
    """With w = 1/rate, which changes by g, of the parts by shape and rate, and as to any normal distribution."""
    u, w = 1.0 / scale, 1.0 / rate
    z, f, g = u * u, more_q * u, -more_p * w * w
    t, square = difference_of_products(shape, 1.0, rate, loc) * w, shape * w * w
    grown = sized(move_p * w * w, 2.0 * shape * w * g)
    by_loc, by_scale = by_normal_along(square, (t, abs(t)), u, grown, sized_three(move_p * w, shape * g, -move_q), f)
    own, lost = sized(trigamma_of(shape) * move_p, (shape - 1.0) * tetragamma_of(shape) * move_p)
    by_shape, size = sized_three(z * w * g, -z * w * w * f, t * g * z)
    by_shape, size = own + by_shape - by_loc[0] * w, lost + size + by_loc[1] * w
    by_rate, rest = sized_four(g, -3.0 * square * g * z, 2.0 * square * w * z * f, -move_p * w * w * w * z)
    by_rate, rest = by_rate - t * grown[0] * z + by_loc[0] * square, rest + abs(t) * grown[1] * z + by_loc[1] * square
    return (by_shape, size), (by_rate, rest), by_loc, by_scale, NONE, NONE, NONE, NONE


@register_kl(Gamma, Normal, compiled=True)
@with_quick_bends(gamma_normal_bends)
@with_quick_slopes(gamma_normal_slopes)
def gamma_normal(shape: float, rate: float, loc: float, scale: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    t = difference_over(shape, 1.0, loc, rate, rate, scale)
    return 0.5 * (excess_over_square(shape, rate, scale) + t * t) + negentropy(shape)


def gamma_gumbel_slopes(shape: float, rate: float, loc: float, scale: float) -> Slopes:
    """By loc (e - 1)/scale, by the shape (shape - 1)*trigamma(shape) - 1 + y - e*log(1 + y), by the others from c.

    With y = 1/(rate*scale), m = loc/scale and e = exp(m)/(1 + y)**shape, c = 1 + shape*(e*y/(1 + y) - y): by the rate
    c/rate, by the scale (c - m*(e - 1))/scale.
    """
    y = 1.0 / rate / scale
    more = log1p(y)
    m, fall = loc / scale, shape * more
    rise = expm1(m - fall)
    whole = rise + 1.0
    size = whole * (abs(m) + fall)
    beyond = trigamma_beyond(shape)
    by_shape, of_shape = sized_three((shape - 1.0) * beyond - 1.0 / shape, y - more, -rise * more)
    of_shape += (abs(shape - 1.0) * beyond + 1.0 / shape) + (y + more * (1.0 + size))
    share = y / (1.0 + y)
    common, of_common = sized_three(1.0, -shape * y * share, shape * share * rise)
    of_common += shape * share * size
    moved, of_moved = m * rise, abs(m) * (abs(rise) + size)
    by_rate, by_loc = (common / rate, of_common / rate), (rise / scale, size / scale)
    return (by_shape, of_shape), by_rate, by_loc, ((common - moved) / scale, (of_common + of_moved) / scale)


@register_kl(Gamma, Gumbel, compiled=True)
@with_quick_slopes(gamma_gumbel_slopes)
def gamma_gumbel(shape: float, rate: float, loc: float, scale: float) -> float:
    """exp(v) - 1 - v, v = loc/scale - shape*log(1 + y), y = 1/(rate*scale), and terms that are positive together."""
    y = ratio_of_products(1.0, 1.0, rate, scale)
    log_y = log_of_products(1.0, 1.0, rate, scale)
    more = log1p(y) if y < FAR else log_y
    spread = shape * phi(y) if y < FAR else ratio_of_products(shape, 1.0, rate, scale) - shape * more
    rest = spread - 0.5 * (log(shape) + 2.0 * log_y)
    if y < 1.0:  # nothing of the size of both places
        v = shape * phi(y) - difference_over(shape, 1.0, loc, rate, rate, scale)
    else:
        v = gap(loc / scale, shape * more)
    low = 0.0
    if y < FAR and abs(loc / scale) < UNBOUNDED and (shows(shape * phi(y)) or shows(loc / scale)):
        v, low = gumbel_exponent(shape, rate, loc, scale)
    return times_exp_excess(1.0, v, low) + (rest + (negentropy(shape) + (0.5 - HALF_LOG_2PI)))


def gumbel_exponent(shape: float, rate: float, loc: float, scale: float) -> tuple[float, float]:
    """loc/scale - shape*log(1 + y) as the sum of two numbers, y = 1/(rate*scale)."""
    if rate * scale == math.inf:
        y, y_low = ratio_of_products(1.0, 1.0, rate, scale), 0.0
    else:
        y, y_low = over(1.0, 0.0, *times(rate, 0.0, scale, 0.0))
    log_more, lost = log_of_move(1.0, 0.0, y)
    fall, fall_low = times(shape, 0.0, log_more, lost + y_low / (1.0 + y))
    place, place_low = over(loc, 0.0, scale, 0.0)
    return plus(place, place_low, -fall, -fall_low)


@register_kl(Gamma, Laplace, compiled=True)
def gamma_laplace(shape: float, rate: float, loc: float, scale: float) -> float:
    """The excess of E abs(X - loc)/scale, and what is left where that is 1."""
    y = rate * loc
    off = difference_of_products(shape, 1.0, rate, loc)
    distance = gamma_distance(shape, y, off) if abs(y) < math.inf else math.inf
    entropy = (0.5 + HALF_LOG_2PI) - negentropy(shape)
    from_loc = difference_over(shape, 1.0, loc, rate, rate, 1.0)
    return narrow_to_laplace(distance, 1.0 / rate, 1.0 / math.sqrt(shape), scale, entropy, from_loc)
