"""The Weibull distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved
from klnumba.distributions.evaluate import evaluate
from klnumba.distributions.gumbel import gumbel_excess
from klnumba.distributions.registry import register_kl
from klnumba.formulas.divergences import sharp_log_ratio
from klnumba.formulas.elementary import log, two_sum
from klnumba.formulas.special import EULER, log_gamma


def gamma_of(x: np.ndarray) -> Any:
    """The gamma function."""
    return np.exp(evaluate(log_gamma, [x], x.shape))


def weibull_entropy(scale: float, concentration: float) -> float:
    """The differential entropy, in nats."""
    return (1.0 - EULER / concentration) + (EULER + (log(scale) - log(concentration)))


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
        return self._full(self.scale * gamma_of(1.0 + 1.0 / np.asarray(self.concentration, float)))

    @property
    def variance(self) -> Any:
        inverse = 1.0 / np.asarray(self.concentration, float)
        first = gamma_of(1.0 + inverse)
        return self._full(np.square(self.scale) * (gamma_of(1.0 + 2.0 * inverse) - first * first))

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.concentration,), 0.0, self.scale

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"scale": scale, "concentration": shapes[0]}


@register_kl(Weibull, Weibull, compiled=True)
def weibull_weibull(scale_p: float, shape_p: float, scale_q: float, shape_q: float) -> float:
    """That of the logarithms, which with the opposite sign are Gumbel distributed."""
    d, low = two_sum(scale_q, -scale_p)
    m = shape_q * sharp_log_ratio(scale_q, scale_p, d, low)
    return gumbel_excess(shape_q, shape_p, m, 0.0)
