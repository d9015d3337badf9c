"""Normal, log-normal and half-normal distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE, REAL
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log
from klnumba.formulas.special import HALF_LOG_2PI, LN2, excess_of_products

SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)


def normal_entropy(loc: float, scale: float) -> float:
    return 0.5 + HALF_LOG_2PI + log(scale)


class Normal(Distribution):
    """The normal distribution.

    Parameters
    ----------
    loc, scale : array_like
        Mean and standard deviation.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Normal
    >>> float(kl.kl_divergence(Normal(1.0, 2.0), Normal(0.0, 2.0)))
    0.125
    """

    parameters = ("loc", "scale")
    loc = Parameter(REAL)
    scale = Parameter(POSITIVE)
    entropy_formula = staticmethod(normal_entropy)
    scipy_name = "norm"

    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, loc=loc, scale=scale)

    @property
    def support(self) -> Support:
        return Support(-math.inf, math.inf)

    @property
    def mean(self) -> Any:
        return self._full(self.loc)

    @property
    def variance(self) -> Any:
        return self._full(np.square(self.scale))

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (), self.loc, self.scale

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        return {"loc": loc, "scale": scale}


def log_normal_entropy(loc: float, scale: float) -> float:
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


def half_normal_entropy(scale: float) -> float:
    return 0.5 + HALF_LOG_2PI - LN2 + log(scale)


class HalfNormal(Distribution):
    """The distribution of abs(X), X normal with mean 0.

    Parameters
    ----------
    scale : array_like
        Standard deviation of X.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import HalfNormal
    >>> round(float(kl.kl_divergence(HalfNormal(1.0), HalfNormal(2.0))), 6)
    0.318147
    """

    parameters = ("scale",)
    scale = Parameter(POSITIVE)
    entropy_formula = staticmethod(half_normal_entropy)
    scipy_name = "halfnorm"

    def __init__(self, scale: Any = 1.0, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, scale=scale)

    @property
    def support(self) -> Support:
        return Support(0.0, math.inf)

    @property
    def mean(self) -> Any:
        return self._full(SQRT_2_OVER_PI * self.scale)

    @property
    def variance(self) -> Any:
        return self._full((1.0 - 2.0 / math.pi) * np.square(self.scale))

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (), 0.0, self.scale

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"scale": scale}


@register_kl(LogNormal, LogNormal, compiled=True)
@register_kl(Normal, Normal, compiled=True)
def normal_normal(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """[excess of the variances' ratio + ((loc_p - loc_q)/scale_q)**2]/2."""
    t = (loc_p - loc_q) / scale_q
    return 0.5 * (excess_of_products(scale_p, scale_p, scale_q, scale_q) + t * t)


@register_kl(HalfNormal, HalfNormal, compiled=True)
def half_normal_half_normal(scale_p: float, scale_q: float) -> float:
    return 0.5 * excess_of_products(scale_p, scale_p, scale_q, scale_q)
