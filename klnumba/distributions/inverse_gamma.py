"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved
from klnumba.distributions.gamma import gamma_gamma
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log
from klnumba.formulas.special import HALF_LOG_2PI, stirling, stirling_slope


def inverse_gamma_entropy(concentration: float, rate: float) -> float:
    """The differential entropy, in nats."""
    rest = stirling(concentration) - (1.0 + concentration) * stirling_slope(concentration)
    return (HALF_LOG_2PI + 0.5 - 1.5 * log(concentration) + log(rate)) + (rest + 0.5 / concentration)


class InverseGamma(Distribution):
    """The distribution of 1/X, X gamma distributed.

    Parameters
    ----------
    concentration : array_like
        Shape of X.
    rate : array_like
        Rate of X: the scale of 1/X.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import InverseGamma
    >>> round(float(kl.kl_divergence(InverseGamma(2.0, 1.0), InverseGamma(3.0, 1.0))), 6)
    0.270363
    """

    parameters = ("concentration", "rate")
    concentration = Parameter(POSITIVE)
    rate = Parameter(POSITIVE)
    entropy_formula = staticmethod(inverse_gamma_entropy)
    scipy_name = "invgamma"

    def __init__(self, concentration: Any, rate: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, concentration=concentration, rate=rate)

    @property
    def support(self) -> Support:
        return Support(0.0, math.inf)

    @property
    def mean(self) -> Any:
        above = np.maximum(self.concentration - 1.0, 0.0)
        with np.errstate(divide="ignore"):
            return self._full(self.rate / above)

    @property
    def variance(self) -> Any:
        a = self.concentration
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.square(self.rate / (a - 1.0)) / (a - 2.0)
        return self._full(np.where(a > 2.0, found, math.inf))

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.concentration,), 0.0, self.rate

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"concentration": shapes[0], "rate": scale}


register_kl(InverseGamma, InverseGamma, compiled=True)(gamma_gamma)
