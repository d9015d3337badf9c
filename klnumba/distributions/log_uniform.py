"""The log-uniform distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.continuous_bernoulli import slope
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved
from klnumba.distributions.laplace import Laplace, to_laplace
from klnumba.distributions.log_normal import LogNormal
from klnumba.distributions.pareto import Pareto
from klnumba.distributions.registry import register_kl
from klnumba.distributions.uniform import LEAST, NEGENTROPY, Uniform, log_sinhc, ordered, uniform_uniform
from klnumba.formulas.divergences import generalized_kl, sharp_log_ratio
from klnumba.formulas.elementary import log, log1p, two_sum
from klnumba.formulas.exponents import log_ratio_twofold
from klnumba.formulas.logarithms import log_less
from klnumba.formulas.quick import Slopes, with_quick_slopes
from klnumba.formulas.ranges import unit_in_range
from klnumba.formulas.slopes_of_pairs import log_of_ordinary_ratio
from klnumba.formulas.special import excess_of_products
from klnumba.formulas.twofold import over


def log_width(low: float, high: float) -> float:
    """log(high/low)."""
    d, rest = two_sum(high, -low)
    return sharp_log_ratio(high, low, d, rest)


def log_uniform_entropy(low: float, high: float) -> float:
    """The differential entropy, in nats."""
    return log(log_width(low, high)) + 0.5 * (log(low) + log(high))


def log_uniform_mean(low: float, high: float) -> float:
    """The expected value."""
    return (high - low) / log_width(low, high)


def log_uniform_variance(low: float, high: float) -> float:
    """The square of the mean, times x*coth(x) - 1 with x = log(high/low)/2."""
    width, mean = log_width(low, high), log_uniform_mean(low, high)
    return mean * (mean * (width * slope(width)))


class LogUniform(Distribution):
    """The distribution of exp(X), X uniform: the reciprocal distribution.

    Parameters
    ----------
    low : array_like
        Lower end, positive.
    high : array_like
        Upper end, above `low`.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import LogUniform
    >>> round(float(kl.kl_divergence(LogUniform(1.0, 10.0), LogUniform(1.0, 100.0))), 6)
    0.693147
    """

    parameters = ("low", "high")
    low = Parameter(POSITIVE)
    high = Parameter(POSITIVE)
    entropy_formula = staticmethod(log_uniform_entropy)
    scipy_name = "loguniform"

    def __init__(self, low: Any, high: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, low=low, high=high)

    def _validate(self) -> None:
        ordered("LogUniform", self.low, self.high)

    def _unfit(self) -> Any:
        return np.asarray(self.low >= self.high)

    @property
    def support(self) -> Support:
        return Support(self._full(self.low), self._full(self.high))

    @property
    def mean(self) -> Any:
        return self._of_formula(log_uniform_mean)

    @property
    def variance(self) -> Any:
        return self._of_formula(log_uniform_variance)

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.low, self.high), 0.0, 1.0

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"low": np.multiply(shapes[0], scale), "high": np.multiply(shapes[1], scale)}


def log_uniform_log_uniform_slopes(low_p: float, high_p: float, low_q: float, high_q: float) -> Slopes:
    """One over the widths of the logarithms, and over the end."""
    inside = (low_p >= low_q) & (high_p <= high_q)
    of_p = 1.0 / log_of_ordinary_ratio(high_p, low_p, high_p - low_p) if inside else math.inf
    of_q = 1.0 / log_of_ordinary_ratio(high_q, low_q, high_q - low_q)
    return (of_p / low_p, 0.0), (-of_p / high_p, 0.0), (-of_q / low_q, 0.0), (of_q / high_q, 0.0)


@register_kl(LogUniform, LogUniform, compiled=True)
@with_quick_slopes(log_uniform_log_uniform_slopes)
def log_uniform_log_uniform(low_p: float, high_p: float, low_q: float, high_q: float) -> float:
    """log of the ratio of the logarithms' widths; infinite where p reaches out of q."""
    if low_p < low_q or high_p > high_q:
        return math.inf
    return log1p((log_width(low_q, low_p) + log_width(high_p, high_q)) / log_width(low_p, high_p))


@register_kl(LogUniform, Laplace, compiled=True)
def log_uniform_laplace(low: float, high: float, loc: float, scale: float) -> float:
    """The excess of E abs(X - loc)/scale, and what is left where that is 1."""
    unit = unit_in_range(low, high, loc, scale)
    low, high, loc, scale = unit * low, unit * high, unit * loc, max(unit * scale, (1.0 - unit) * LEAST)
    width = log_width(low, high)
    if low < loc < high:
        distance = (generalized_kl(loc, low) + generalized_kl(loc, high)) / width
    else:
        mean, lost = over(*two_sum(high, -low), *log_ratio_twofold(high, low))
        distance = abs((mean - loc) + lost)
    return to_laplace(distance / high, high, scale, log(width) - 0.5 * width, distance)


@register_kl(LogUniform, Pareto, compiled=True)
def log_uniform_pareto(low: float, high: float, scale: float, alpha: float) -> float:
    """That of the logarithms, uniform and shifted exponential; infinite where p reaches below q."""
    if low < scale:
        return math.inf
    width = log_width(low, high)
    return alpha * (log_width(scale, low) + 0.5 * width) - (log(alpha) + log(width))


@register_kl(LogUniform, Uniform, compiled=True)
def log_uniform_uniform(low_p: float, high_p: float, low_q: float, high_q: float) -> float:
    """That of the uniform distribution on p's interval, and log(sinh(x)/x), x = log(high_p/low_p)/2."""
    return uniform_uniform(low_p, high_p, low_q, high_q) + log_sinhc(0.5 * log_width(low_p, high_p))


@register_kl(Uniform, LogUniform, compiled=True)
def uniform_log_uniform(low_p: float, high_p: float, low_q: float, high_q: float) -> float:
    """That of the log-uniform distribution on p's interval, and x*coth(x) - 1 - log(sinh(x)/x), x = log(high/low)/2."""
    if low_p < low_q or high_p > high_q:
        return math.inf
    width = log_width(low_p, high_p)
    return log_uniform_log_uniform(low_p, high_p, low_q, high_q) + (width * slope(width) - log_sinhc(0.5 * width))


@register_kl(LogUniform, LogNormal, compiled=True)
def log_uniform_log_normal(low: float, high: float, loc: float, scale: float) -> float:
    """That of the logarithms, uniform and normal."""
    width = log_width(low, high)
    t = (log_less(low, 0.0, loc) + 0.5 * width) / scale
    return 0.5 * (excess_of_products(width, width, 12.0 * scale, scale) + t * t) + NEGENTROPY
