"""The Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved
from klnumba.distributions.exponential import Exponential, exponential_normal
from klnumba.distributions.gamma import Gamma
from klnumba.distributions.gumbel import Gumbel
from klnumba.distributions.laplace import Laplace, to_laplace
from klnumba.distributions.log_normal import LogNormal
from klnumba.distributions.normal import Normal
from klnumba.distributions.registry import register_kl
from klnumba.formulas.cumulants import log_pareto_moment
from klnumba.formulas.divergences import log_ratio
from klnumba.formulas.elementary import exp, log, log1p
from klnumba.formulas.logarithms import log_less
from klnumba.formulas.quick import Slopes, with_quick_bends, with_quick_slopes
from klnumba.formulas.ranges import in_range, product, ratio_of_products, times_excess
from klnumba.formulas.slopes_of_pairs import (
    NONE,
    by_normal,
    digamma_sized,
    log_of_ordinary_products,
    log_of_ordinary_ratio,
    sized,
    sized_four,
    sized_three,
    towards_normal,
)
from klnumba.formulas.special import (
    HALF_LOG_2PI,
    excess,
    excess_of_nearly,
    excess_of_products,
    exp_excess,
    log_of_products,
    stirling,
)


def pareto_entropy(scale: float, alpha: float) -> float:
    """The differential entropy, in nats."""
    return (log(scale) - log(alpha)) + (1.0 / alpha + 1.0)


class Pareto(Distribution):
    """The Pareto distribution of the first kind.

    Parameters
    ----------
    scale : array_like
        The least value.
    alpha : array_like
        Shape.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Pareto
    >>> round(float(kl.kl_divergence(Pareto(2.0, 1.0), Pareto(1.0, 2.0))), 6)
    1.693147
    """

    parameters = ("scale", "alpha")
    scale = Parameter(POSITIVE)
    alpha = Parameter(POSITIVE)
    entropy_formula = staticmethod(pareto_entropy)
    scipy_name = "pareto"

    def __init__(self, scale: Any, alpha: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, scale=scale, alpha=alpha)

    @property
    def support(self) -> Support:
        return Support(self._full(self.scale), math.inf)

    @property
    def mean(self) -> Any:
        above = np.maximum(self.alpha - 1.0, 0.0)
        return self._full(self.scale * (self.alpha / above))

    @property
    def variance(self) -> Any:
        a = self.alpha
        found = self.scale / (a - 1.0) * (self.scale / (a - 1.0) * (a / (a - 2.0)))
        return self._full(np.where(a > 2.0, found, math.inf))

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.alpha,), 0.0, self.scale

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"scale": scale, "alpha": shapes[0]}


def pareto_pareto_slopes(scale_p: float, alpha_p: float, scale_q: float, alpha_q: float) -> Slopes:
    """alpha_q over either scale, (alpha_p - alpha_q)/alpha_p**2, and log(scale_p/scale_q) + 1/alpha_p - 1/alpha_q."""
    d = alpha_p - alpha_q
    apart = log_of_ordinary_ratio(scale_p, scale_q, scale_p - scale_q) if scale_p >= scale_q else math.inf
    less = -d / alpha_p / alpha_q
    by_alpha_q = (apart + less, abs(apart) + abs(less))
    return (alpha_q / scale_p, 0.0), (d / alpha_p / alpha_p, 0.0), (-alpha_q / scale_q, 0.0), by_alpha_q


def pareto_pareto_bends(
    scale_p: float, alpha_p: float, scale_q: float, alpha_q: float, move_p: float, more_p: float, move_q: float,
    more_q: float,
) -> Slopes:  # fmt: skip
    """Of alpha_q over either scale, of 1/alpha_p - alpha_q/alpha_p**2, and of the logarithm and what is beside it."""
    u, v, w, z = 1.0 / scale_p, 1.0 / scale_q, 1.0 / alpha_p, 1.0 / alpha_q
    by_scale_p, by_scale_q = (
        sized(more_q * u, -alpha_q * u * (move_p * u)),
        sized(-more_q * v, alpha_q * v * (move_q * v)),
    )
    by_alpha_p = sized_three(2.0 * alpha_q * w * (more_p * w) * w, -more_p * w * w, -more_q * w * w)
    by_alpha_q = sized_four(move_p * u, -move_q * v, -more_p * w * w, more_q * z * z)
    return by_scale_p, by_alpha_p, by_scale_q, by_alpha_q, NONE, NONE, NONE, NONE


@register_kl(Pareto, Pareto, compiled=True)
@with_quick_bends(pareto_pareto_bends)
@with_quick_slopes(pareto_pareto_slopes)
def pareto_pareto(scale_p: float, alpha_p: float, scale_q: float, alpha_q: float) -> float:
    """The excess of alpha_q/alpha_p, and alpha_q*log(scale_p/scale_q); infinite where p reaches below q."""
    if scale_p < scale_q:
        return math.inf
    return excess_of_products(alpha_q, 1.0, alpha_p, 1.0) + alpha_q * log_ratio(scale_p, scale_q, scale_p - scale_q)


def pareto_exponential_slopes(scale: float, alpha: float, rate: float) -> Slopes:
    """By scale rate*m - 1/scale, m = alpha/(alpha - 1); by rate m*scale - 1/rate; nowhere finite without a mean."""
    less = alpha - 1.0 if alpha > 1.0 else 0.0
    mean = scale * (alpha / less)
    by_alpha = sized_three(1.0 / alpha, 1.0 / alpha / alpha, -rate * scale / less / less)
    return sized(rate * (alpha / less), -1.0 / scale), by_alpha, sized(mean, -1.0 / rate)


@register_kl(Pareto, Exponential, compiled=True)
@with_quick_slopes(pareto_exponential_slopes)
def pareto_exponential(scale: float, alpha: float, rate: float) -> float:
    """The excess of the means' ratio, and what is left where they agree; infinite where p has no mean."""
    if alpha <= 1.0:
        return math.inf
    return pareto_gamma(scale, alpha, 1.0, rate)


def pareto_gamma_slopes(scale: float, alpha: float, shape: float, rate: float) -> Slopes:
    """With m = alpha/(alpha - 1): by scale rate*m - shape/scale, by shape digamma - log(rate*scale) - 1/alpha, etc.

    By alpha (1 + shape/alpha)/alpha - rate*scale/(alpha - 1)**2, by rate m*scale - shape/rate.
    """
    less = alpha - 1.0 if alpha > 1.0 else 0.0
    more = alpha / less
    by_alpha = sized_three(1.0 / alpha, shape / alpha / alpha, -rate * scale / less / less)
    climb, size = digamma_sized(shape)
    by_shape, of_shape = sized_three(climb, -log_of_ordinary_products(rate, scale, 1.0, 1.0), -1.0 / alpha)
    by_scale, by_rate = sized(rate * more, -shape / scale), sized(scale * more, -shape / rate)
    return by_scale, by_alpha, (by_shape, of_shape + size), by_rate


@register_kl(Pareto, Gamma, compiled=True)
@with_quick_slopes(pareto_gamma_slopes)
def pareto_gamma(scale: float, alpha: float, shape: float, rate: float) -> float:
    """The excess of the means' ratio, times the shape, and what is left where they agree."""
    if alpha <= 1.0:
        return math.inf
    unit, low, k = product(rate, scale)
    means = times_excess(shape, unit, alpha, shape, alpha - 1.0, low / unit, k)
    rest = (HALF_LOG_2PI - 0.5 * log(shape)) + (stirling(shape) + (log(alpha) - 1.0))
    return means + (shape * excess(alpha, alpha - 1.0, -1.0) + rest)


def pareto_normal_slopes(scale_p: float, alpha: float, loc: float, scale_q: float) -> Slopes:
    """By the chain rule, from the slopes of the entropy, the mean and the variance; nowhere finite without the last."""
    less, least = alpha - 1.0, alpha - 2.0 if alpha > 2.0 else 0.0
    u, v = 1.0 / scale_q, scale_p / less
    mean, variance = alpha * v, alpha * (v * v) / least
    t, of_t = sized(mean, -loc)
    half = 0.5 * variance
    var_alpha = sized_three(half / alpha, -variance / less, -half / least)
    alone = 1.0 / scale_p
    by_scale = towards_normal((-alone, alone), (variance * alone, variance * alone), alpha / less, t, of_t, u * u)
    by_alpha = towards_normal(sized(1.0 / alpha, 1.0 / alpha / alpha), var_alpha, -v / less, t, of_t, u * u)
    by_loc, by_scale_q = by_normal(variance, t, of_t, u)
    return by_scale, by_alpha, by_loc, by_scale_q


@register_kl(Pareto, Normal, compiled=True)
@with_quick_slopes(pareto_normal_slopes)
def pareto_normal(scale_p: float, alpha: float, loc: float, scale_q: float) -> float:
    """The variances' excess, the distance of the means, and what is left where both agree."""
    _, scale_p, loc, scale_q = in_range(0.0, scale_p, loc, scale_q)
    if alpha <= 2.0:
        return math.inf
    t = ((scale_p - loc) + scale_p / (alpha - 1.0)) / scale_q
    below, _, k = product(alpha - 1.0, scale_q)
    above, _, n = product(scale_p, 1.0)
    width = above / below
    variances = excess_of_nearly(width * (alpha / (alpha - 2.0)), width, 1.0, 1.0, 0.0, 2 * (n - k))
    rest = excess(alpha, alpha - 1.0, -1.0) - 0.5 * log_ratio(alpha - 2.0, alpha, -2.0)
    return 0.5 * (variances + t * t) + (rest + (HALF_LOG_2PI - 0.5))


def pareto_distance(alpha: float, y: float) -> float:
    """The expected distance, in units of the scale, of X from its scale times 1 + y."""
    beyond = 1.0 / (alpha - 1.0)
    if y <= 0.0:
        return beyond - y
    u = log1p(y)
    if y >= beyond:
        return (y - beyond) + 2.0 * beyond * exp(-(alpha - 1.0) * u)
    return (beyond - y) + 2.0 * (exp_excess(u) + beyond * exp_excess(-(alpha - 1.0) * u))


@register_kl(Pareto, Laplace, compiled=True)
def pareto_laplace(scale_p: float, alpha: float, loc: float, scale_q: float) -> float:
    """The excess of E abs(X - loc)/scale_q, and what is left where that is 1; infinite where p has no mean."""
    _, scale_p, loc, scale_q = in_range(0.0, scale_p, loc, scale_q)
    if alpha <= 1.0:
        return math.inf
    off = loc - scale_p
    return to_laplace(pareto_distance(alpha, off / scale_p), scale_p, scale_q, pareto_entropy(1.0, alpha), off)


@register_kl(Pareto, LogNormal, compiled=True)
def pareto_log_normal(scale_p: float, alpha: float, loc: float, scale_q: float) -> float:
    """That of the logarithms, shifted exponential and normal."""
    return exponential_normal(alpha, -log_less(scale_p, 0.0, loc), scale_q)


@register_kl(Pareto, Gumbel, compiled=True)
def pareto_gumbel(scale_p: float, alpha: float, loc: float, scale_q: float) -> float:
    """exp(v) - 1 - v, v the logarithm of E exp((loc - X)/scale_q), an exponential integral, and the rest."""
    _, scale_p, loc, scale_q = in_range(0.0, scale_p, loc, scale_q)
    if alpha <= 1.0:
        return math.inf
    z = scale_p / scale_q
    units = log_of_products(scale_q, 1.0, scale_p, 1.0)
    more = log_pareto_moment(alpha, z) if z < math.inf else log(alpha) + units
    beyond = z / (alpha - 1.0) if z < math.inf else ratio_of_products(scale_p, 1.0, scale_q, alpha - 1.0)
    rest = (log(alpha) - 1.0 / alpha) + units
    return exp_excess((loc - scale_p) / scale_q + more) + (rest + (more + beyond))
