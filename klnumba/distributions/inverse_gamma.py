"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.gamma import Gamma, gamma_gamma
from klnumba.distributions.gamma_powers import inverse_square_to_gamma, inverse_to_gamma
from klnumba.distributions.half_normal import HalfNormal
from klnumba.distributions.laplace import Laplace, narrow_to_laplace, to_laplace
from klnumba.distributions.log_normal import LogNormal, gamma_log_normal, log_normal_gamma
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log, two_sum
from klnumba.formulas.power_distances import power_distance
from klnumba.formulas.ranges import FAR, difference_over, product, times_excess
from klnumba.formulas.special import (
    HALF_LOG_2PI,
    excess_of_nearly,
    stirling,
    stirling_slope,
)


def inverse_gamma_entropy(concentration: float, rate: float) -> float:
    """The differential entropy, in nats."""
    return (log(rate) - 1.5 * log(concentration)) + standard_entropy(concentration)


def standard_entropy(concentration: float) -> float:
    """That of a rate of concentration**(3/2), for which large concentrations have a deviation of 1."""
    rest = stirling(concentration) - (1.0 + concentration) * stirling_slope(concentration)
    return (HALF_LOG_2PI + 0.5) + (rest + 0.5 / concentration)


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
        return self._full(self.rate / above)

    @property
    def variance(self) -> Any:
        a = self.concentration
        mean = self.rate / (a - 1.0)
        found = mean * (mean / (a - 2.0))
        return self._full(np.where(a > 2.0, found, math.inf))

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.concentration,), 0.0, self.rate

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"concentration": shapes[0], "rate": scale}


register_kl(InverseGamma, InverseGamma, compiled=True)(gamma_gamma)


@register_kl(InverseGamma, Laplace, compiled=True)
def inverse_gamma_laplace(shape: float, rate: float, loc: float, scale: float) -> float:
    """The excess of E abs(X - loc)/scale, and what is left where that is 1; infinite where p has no mean."""
    if shape <= 1.0:
        return math.inf
    more, low = two_sum(shape, -1.0)
    place = loc / rate
    off = difference_over(rate, 1.0, loc, more, more, rate)
    from_loc = difference_over(rate, 1.0, loc, more, more, 1.0)
    distance = abs(off)
    if 0.0 < place <= FAR:
        above = difference_over(shape, loc, rate, 1.0, 1.0, loc)
        distance = power_distance(shape, -1.0, rate / loc, place, off - low / more * place, above)
    if shape > FAR:
        return to_laplace(distance, rate, scale, inverse_gamma_entropy(shape, 1.0), from_loc)
    return narrow_to_laplace(distance, rate, shape * math.sqrt(shape), scale, standard_entropy(shape), from_loc)


@register_kl(InverseGamma, Gamma, compiled=True)
def inverse_gamma_gamma(shape_p: float, rate_p: float, shape_q: float, rate_q: float) -> float:
    """The excess of the means' ratio, times the shape, and what is left where they agree; infinite without a mean."""
    if shape_p <= 1.0:
        return math.inf
    less, lost = two_sum(shape_p, -1.0)
    means = times_excess(shape_q, rate_p, rate_q, less, shape_q, -lost / less, 0)
    return means + inverse_to_gamma(shape_p, shape_q)


register_kl(Gamma, InverseGamma, compiled=True)(inverse_gamma_gamma)  # of the inverses


@register_kl(InverseGamma, Exponential, compiled=True)
def inverse_gamma_exponential(shape: float, rate_p: float, rate_q: float) -> float:
    """That to the gamma distribution of shape 1."""
    return inverse_gamma_gamma(shape, rate_p, 1.0, rate_q)


@register_kl(InverseGamma, HalfNormal, compiled=True)
def inverse_gamma_half_normal(shape: float, rate: float, scale: float) -> float:
    """Half the excess of the ratio of mean squares, and what is left where they agree; infinite without a variance."""
    if shape <= 2.0:
        return math.inf
    above, _, k = product(rate, 1.0)
    below, _, n = product(scale, 1.0)
    unit = above / below
    less, lost = two_sum(shape, -1.0)
    least, left = two_sum(shape, -2.0)
    mean = excess_of_nearly(unit, unit, less, least, -(lost / less + left / least), 2 * (k - n))
    return 0.5 * mean + inverse_square_to_gamma(shape, 0.5)


@register_kl(InverseGamma, LogNormal, compiled=True)
def inverse_gamma_log_normal(shape: float, rate: float, loc: float, scale: float) -> float:
    """That of the inverses."""
    return gamma_log_normal(shape, rate, -loc, scale)


@register_kl(LogNormal, InverseGamma, compiled=True)
def log_normal_inverse_gamma(loc: float, scale: float, shape: float, rate: float) -> float:
    """That of the inverses."""
    return log_normal_gamma(-loc, scale, shape, rate)
