"""The log-uniform distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved
from klnumba.distributions.registry import register_kl
from klnumba.distributions.uniform import ordered
from klnumba.formulas.divergences import sharp_log_ratio
from klnumba.formulas.elementary import log, log1p, two_sum


def log_width(low: float, high: float) -> float:
    """log(high/low)."""
    d, rest = two_sum(high, -low)
    return sharp_log_ratio(high, low, d, rest)


def log_uniform_entropy(low: float, high: float) -> float:
    """The differential entropy, in nats."""
    return log(log_width(low, high)) + 0.5 * (log(low) + log(high))


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

    @property
    def support(self) -> Support:
        return Support(self._full(self.low), self._full(self.high))

    @property
    def mean(self) -> Any:
        return self._full((self.high - self.low) / np.log(self.high / self.low))

    @property
    def variance(self) -> Any:
        width = np.log(self.high / self.low)
        square = 0.5 * (self.high - self.low) * (self.high + self.low) / width
        return self._full(square - np.square((self.high - self.low) / width))

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.low, self.high), 0.0, 1.0

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"low": np.multiply(shapes[0], scale), "high": np.multiply(shapes[1], scale)}


@register_kl(LogUniform, LogUniform, compiled=True)
def log_uniform_log_uniform(low_p: float, high_p: float, low_q: float, high_q: float) -> float:
    """log of the ratio of the logarithms' widths; infinite where p reaches out of q."""
    if low_p < low_q or high_p > high_q:
        return math.inf
    return log1p((log_width(low_q, low_p) + log_width(high_p, high_q)) / log_width(low_p, high_p))
