"""The continuous uniform distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.beta import Beta, beta_beta, beta_beta_slopes, log_beta_of
from klnumba.distributions.constraint import REAL
from klnumba.distributions.distribution import Distribution, Parameter, Support
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.gamma import Gamma
from klnumba.distributions.gumbel import Gumbel
from klnumba.distributions.laplace import Laplace, to_laplace
from klnumba.distributions.normal import Normal
from klnumba.distributions.pareto import Pareto
from klnumba.distributions.registry import register_kl
from klnumba.formulas.divergences import generalized_kl, log_ratio
from klnumba.formulas.elementary import exp, log, log1p, split_exponent, two_sum
from klnumba.formulas.odd_series import series
from klnumba.formulas.quick import Slopes, with_quick_slopes
from klnumba.formulas.ranges import FAR, TINY, times_excess, unit_in_range
from klnumba.formulas.slopes_of_pairs import sized, sized_three
from klnumba.formulas.special import (
    HALF_LOG_2PI,
    LN2,
    difference_of_products,
    excess,
    excess_of_nearly,
    excess_of_products,
    exp_excess,
    log_of_products,
    stirling,
)

LEAST = 1e-307  # less is as good as none where other numbers are large
NEGENTROPY = 0.17648520831067259  # 1/2 + log(2*pi)/2 - log(12)/2


def uniform_entropy(low: float, high: float) -> float:
    """The differential entropy, in nats."""
    width = high - low
    return log(width) if width < math.inf else LN2 + log(0.5 * high - 0.5 * low)


def log_width_around_0_to_1(low: float, high: float) -> float:
    """log(high - low) of an interval that has 0 and 1 in it; to the last digits where it ends close to them."""
    more = (high - 1.0) - low
    return log1p(more) if more < math.inf else uniform_entropy(low, high)


def ordered(owner: str, low: Any, high: Any) -> None:
    """Refuse ends of an interval that are not in order."""
    bad = np.asarray(low >= high)
    if bad.any():
        at = np.unravel_index(int(np.argmax(bad)), bad.shape)
        where = f" at [{', '.join(str(int(i)) for i in at)}]" if bad.ndim else ""
        found = f"low is {np.asarray(low)[at]} and high is {np.asarray(high)[at]}"
        raise ValueError(f"{owner}: high must be above low, but{where} {found}")


class Uniform(Distribution):
    """The continuous uniform distribution.

    Parameters
    ----------
    low : array_like
        Lower end.
    high : array_like
        Upper end, above `low`.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Uniform
    >>> round(float(kl.kl_divergence(Uniform(0.0, 1.0), Uniform(0.0, 2.0))), 6)
    0.693147
    """

    parameters = ("low", "high")
    low = Parameter(REAL)
    high = Parameter(REAL)
    entropy_formula = staticmethod(uniform_entropy)
    scipy_name = "uniform"

    def __init__(self, low: Any = 0.0, high: Any = 1.0, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, low=low, high=high)

    def _validate(self) -> None:
        ordered("Uniform", self.low, self.high)

    def _unfit(self) -> Any:
        return np.asarray(self.low >= self.high)

    @property
    def support(self) -> Support:
        return Support(self._full(self.low), self._full(self.high))

    @property
    def mean(self) -> Any:
        return self._full(0.5 * self.low + 0.5 * self.high)

    @property
    def variance(self) -> Any:
        return self._full(np.square(self.high - self.low) / 12.0)

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (), self.low, self.high - self.low

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        return {"low": loc, "high": np.asarray(loc) + np.asarray(scale)}


def uniform_uniform_slopes(low_p: float, high_p: float, low_q: float, high_q: float) -> Slopes:
    """One over the widths; at an end that both have, to the side on which the divergence is finite."""
    inside = (low_p >= low_q) & (high_p <= high_q)
    of_p = 1.0 / (high_p - low_p) if inside else math.inf
    of_q = 1.0 / (high_q - low_q)
    return (of_p, 0.0), (-of_p, 0.0), (-of_q, 0.0), (of_q, 0.0)


@register_kl(Uniform, Uniform, compiled=True)
@with_quick_slopes(uniform_uniform_slopes)
def uniform_uniform(low_p: float, high_p: float, low_q: float, high_q: float) -> float:
    """log of the ratio of widths; infinite where p reaches out of q."""
    if low_p < low_q or high_p > high_q:
        return math.inf
    unit = unit_in_range(high_q - low_q, low_q, high_q, 0.0)
    more = (unit * low_p - unit * low_q) + (unit * high_q - unit * high_p)
    width = unit * high_p - unit * low_p
    return log1p(more / width) if more < FAR * width else (log(more) - log(unit)) - uniform_entropy(low_p, high_p)


def uniform_normal_slopes(low: float, high: float, loc: float, scale: float) -> Slopes:
    """By the ends (2*x + y)/(6*scale**2) + 1/w and (x + 2*y)/(6*scale**2) - 1/w, w the width, x and y from loc.

    By loc -(x + y)/2/scale**2, by the scale 1/scale - (x*x + x*y + y*y)/3/scale**3.
    """
    x, y = low - loc, high - loc
    u, w = 1.0 / scale, 1.0 / (high - low)
    z = u * u
    sixth = z / 6.0
    by_low, by_high = sized_three(2.0 * x * sixth, y * sixth, w), sized_three(x * sixth, 2.0 * y * sixth, -w)
    squares, size = sized_three(x * x, y * y, x * y)
    by_scale, of_scale = u - squares * z * u / 3.0, u + size * z * u / 3.0
    return by_low, by_high, sized(-0.5 * x * z, -0.5 * y * z), (by_scale if low < high else math.inf, of_scale)


@register_kl(Uniform, Normal, compiled=True)
@with_quick_slopes(uniform_normal_slopes)
def uniform_normal(low: float, high: float, loc: float, scale: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    unit = unit_in_range(high - low, max(-low, high), loc, scale)
    low, high, loc, scale = unit * low, unit * high, unit * loc, max(unit * scale, (1.0 - unit) * LEAST)
    width = high - low
    t = (0.5 * (low - loc) + 0.5 * (high - loc)) / scale
    m, k = split_exponent(scale)  # 12 times a scale may be out of the range
    return 0.5 * (excess_of_nearly(width, width, 12.0 * m, scale, 0.0, -k) + t * t) + NEGENTROPY


@register_kl(Uniform, Laplace, compiled=True)
def uniform_laplace(low: float, high: float, loc: float, scale: float) -> float:
    """The excess of E abs(X - loc)/scale, and what is left where that is 1."""
    unit = unit_in_range(high - low, max(-low, high), loc, scale)
    low, high, loc, scale = unit * low, unit * high, unit * loc, max(unit * scale, (1.0 - unit) * LEAST)
    width = high - low
    below = loc - low
    above = high - loc
    inside = below > 0.0 and above > 0.0
    distance = 0.5 * (below * (below / width) + above * (above / width)) if inside else abs(0.5 * above - 0.5 * below)
    return to_laplace(distance / width, width, scale, 0.0, distance)


def uniform_exponential_slopes(low: float, high: float, rate: float) -> Slopes:
    """Half the rate and one over the width, (low + high)/2 - 1/rate; nowhere finite below 0."""
    w = 1.0 / (high - low) if low >= 0.0 else math.inf
    return sized(0.5 * rate, w), sized(0.5 * rate, -w), sized_three(0.5 * low, 0.5 * high, -1.0 / rate)


@register_kl(Uniform, Exponential, compiled=True)
@with_quick_slopes(uniform_exponential_slopes)
def uniform_exponential(low: float, high: float, rate: float) -> float:
    """The excess of half the width over the mean of q, and terms that are positive."""
    if low < 0.0:
        return math.inf
    return excess_of_products(0.5 * (high - low), rate, 1.0, 1.0) + ((1.0 - LN2) + rate * low)


def mean_log_excess(t: float) -> float:
    """-E log(1 + t*U), U uniform from -1 to 1, for 0 <= t <= 1."""
    z = t * t
    if t <= 1.0 / 3.0:
        return -0.5 * log1p(-z) - 0.5 * z * series(z)
    if t == 1.0:
        return 1.0 - LN2
    return 1.0 - ((1.0 + t) * log1p(t) - (1.0 - t) * log1p(-t)) / (2.0 * t)


@register_kl(Uniform, Gamma, compiled=True)
def uniform_gamma(low: float, high: float, shape: float, rate: float) -> float:
    """The excess of the means' ratio, times the shape, and what is left where they agree."""
    if low < 0.0:
        return math.inf
    unit = unit_in_range(high - low, high, 0.0, 0.0)
    low, high, rate = unit * low, unit * high, rate / unit
    width = high - low
    both, less = two_sum(low, high)
    mean = 0.5 * both
    lost = mean_log_excess(min(0.5 * width / mean, 1.0))
    means = times_excess(shape, rate, mean, shape, 1.0, less / both, 0)
    rest = (HALF_LOG_2PI - 0.5 * log(shape)) + (stirling(shape) + (log(mean / width) - lost))
    return means + (shape * lost + rest)


def log_sinhc(x: float) -> float:
    """log(sinh(x)/x) for x > 0."""
    if x < 0.5:
        z = x * x
        high = 1.0 / 362880.0 + z * (1.0 / 39916800.0 + z * (1.0 / 6227020800.0 + z / 1307674368000.0))
        return log1p(z * (1.0 / 6.0 + z * (1.0 / 120.0 + z * (1.0 / 5040.0 + z * high))))
    return x + log1p(-exp(-2.0 * x)) - log(2.0 * x)


def mean_log_and_1(low: float, above: float, width: float) -> float:
    """1 + E log X, X uniform from `low` to 1 - `above`; for a wide range to the last digits at 0 and 1."""
    if width <= 0.5:
        mean = low + 0.5 * width
        return 1.0 + log(mean) - mean_log_excess(min(0.5 * width / mean, 1.0))
    return ((1.0 - above) * log1p(-above) - (0.0 if low == 0.0 else low * log(low))) / width


def mean_log_around(mean: float, other: float, width: float) -> float:
    """E log X, X uniform around `mean`, which is 1 - `other`."""
    middle = log(mean) if mean < 0.5 else log1p(-other)
    return middle - mean_log_excess(min(0.5 * width / mean, 1.0))


@register_kl(Uniform, Beta, compiled=True)
def uniform_beta(low: float, high: float, shape1: float, shape0: float) -> float:
    """Of moderate exponents, from that of the standard uniform distribution; else as for the gamma distribution."""
    if low < 0.0 or high > 1.0:
        return math.inf
    width = high - low
    if max(shape1, shape0) < 20.0:
        first = (shape1 - 1.0) * mean_log_and_1(low, 1.0 - high, width)
        second = (shape0 - 1.0) * mean_log_and_1(1.0 - high, low, width)
        narrow = -log(width) if width <= 0.5 else -log1p(-(low + (1.0 - high)))
        whole = beta_beta(1.0, 1.0, shape1, shape0) + narrow
        return max(whole - (first + second), 0.0)
    mean = low + 0.5 * width
    other = (1.0 - high) + 0.5 * width
    if min(shape1, shape0) < TINY or max(shape1, shape0) > 1.0 / TINY:
        first = (shape1 - 1.0) * mean_log_around(mean, other, width)
        second = (shape0 - 1.0) * mean_log_around(other, mean, width)
        return max(log_beta_of(shape1, shape0) - (log(width) + (first + second)), 0.0)
    lost1 = mean_log_excess(min(0.5 * width / mean, 1.0))
    lost0 = mean_log_excess(min(0.5 * width / other, 1.0))
    total = shape1 + shape0
    middle, lost = two_sum(0.5 * low, 0.5 * high)
    above, left = two_sum(1.0, -middle)
    off = (difference_of_products(middle, shape0, above, shape1) + (lost * total - left * shape1)) / total
    apart = shape1 * excess(shape1 / total, mean, off) + shape0 * excess(shape0 / total, other, -off)
    spread = shape1 * lost1 + shape0 * lost0
    size = HALF_LOG_2PI - 0.5 * (log(shape1 / total) + log(shape0)) + (log(mean) + log(other / width))
    return apart + (spread + ((size - (lost1 + lost0)) + (stirling(shape1) + stirling(shape0) - stirling(total))))


def beta_uniform_slopes(shape1: float, shape0: float, low: float, high: float) -> Slopes:
    """Those to the standard uniform distribution, and one over the width; nowhere finite unless 0 and 1 are inside."""
    by_shape1, by_shape0, _, _ = beta_beta_slopes(shape1, shape0, 1.0, 1.0)
    w = 1.0 / (high - low) if (low <= 0.0) & (high >= 1.0) else math.inf
    return by_shape1, by_shape0, (-w, 0.0), (w, 0.0)


@register_kl(Beta, Uniform, compiled=True)
@with_quick_slopes(beta_uniform_slopes)
def beta_uniform(shape1: float, shape0: float, low: float, high: float) -> float:
    """That to the standard uniform distribution, and the logarithm of the width; infinite unless 0 and 1 are inside."""
    if low > 0.0 or high < 1.0:
        return math.inf
    return beta_beta(shape1, shape0, 1.0, 1.0) + log_width_around_0_to_1(low, high)


@register_kl(Uniform, Gumbel, compiled=True)
def uniform_gumbel(low: float, high: float, loc: float, scale: float) -> float:
    """exp(v) - 1 - v, v the logarithm of E exp((loc - X)/scale), and what is left where that is 0."""
    unit = unit_in_range(high - low, max(-low, high), loc, scale)
    low, high, loc, scale = unit * low, unit * high, unit * loc, max(unit * scale, (1.0 - unit) * LEAST)
    width = (high - low) / scale
    if width == math.inf:
        return width
    curve = log_sinhc(0.5 * width)
    if width < 1.0:
        v = curve - (0.5 * (low - loc) + 0.5 * (high - loc)) / scale
    else:
        v = (loc - low) / scale - (log(width) - log1p(-exp(-width)))
    return exp_excess(v) + (1.0 + (curve - log_of_products(high - low, 1.0, scale, 1.0)))


def mean_log_above(low: float, high: float) -> float:
    """E log(X/low), X uniform from `low` > 0 to `high`."""
    if high > 1e300 and low < 1.0:
        return log_of_products(high, 1.0, low, 1.0) - 1.0
    unit = unit_in_range(low, high, 0.0, 0.0)
    return generalized_kl(unit * high, unit * low) / (unit * high - unit * low)


@register_kl(Uniform, Pareto, compiled=True)
def uniform_pareto(low: float, high: float, scale: float, alpha: float) -> float:
    """The excess of alpha*E log(X/scale), and what is left where that is 1."""
    if low < scale:
        return math.inf
    width = high - low
    mean_log = log_ratio(low, scale, low - scale) + mean_log_above(low, high)
    return excess_of_products(alpha, mean_log, 1.0, 1.0) + (
        1.0 + mean_log + log_of_products(mean_log, scale, width, 1.0)
    )
