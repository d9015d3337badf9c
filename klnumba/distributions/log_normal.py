"""The log-normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE, REAL
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.gamma import Gamma
from klnumba.distributions.normal import normal_normal
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log
from klnumba.formulas.special import HALF_LOG_2PI, excess_of_products, exp_excess, stirling


def log_normal_entropy(loc: float, scale: float) -> float:
    """The differential entropy, in nats."""
    return loc + (0.5 + HALF_LOG_2PI + log(scale))


class LogNormal(Distribution):
    """The distribution of exp(X), X normal.

    Parameters
    ----------
    loc, scale : array_like
        Mean and standard deviation of X.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import LogNormal
    >>> float(kl.kl_divergence(LogNormal(1.0, 2.0), LogNormal(0.0, 2.0)))
    0.125
    """

    parameters = ("loc", "scale")
    loc = Parameter(REAL)
    scale = Parameter(POSITIVE)
    entropy_formula = staticmethod(log_normal_entropy)
    scipy_name = "lognorm"

    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, loc=loc, scale=scale)

    @property
    def support(self) -> Support:
        return Support(0.0, math.inf)

    @property
    def mean(self) -> Any:
        return self._full(np.exp(self.loc + 0.5 * np.square(self.scale)))

    @property
    def variance(self) -> Any:
        square = np.square(self.scale)
        return self._full(np.expm1(square) * np.exp(2.0 * self.loc + square))

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.scale,), 0.0, np.exp(self.loc)

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"loc": np.log(scale), "scale": shapes[0]}


register_kl(LogNormal, LogNormal, compiled=True)(normal_normal)


@register_kl(LogNormal, Gamma, compiled=True)
def log_normal_gamma(loc: float, scale: float, shape: float, rate: float) -> float:
    """exp(v) - 1 - v, v the logarithm of the means' ratio, times the shape, and what is left where they agree."""
    v = loc + (0.5 * scale * scale + (log(rate) - log(shape)))
    return shape * exp_excess(v) + (0.5 * excess_of_products(scale * shape, scale, 1.0, 1.0) + stirling(shape))


@register_kl(LogNormal, Exponential, compiled=True)
def log_normal_exponential(loc: float, scale: float, rate: float) -> float:
    """That to the gamma distribution of shape 1."""
    return log_normal_gamma(loc, scale, 1.0, rate)
