"""The Lindley distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support
from klnumba.distributions.laplace import Laplace, to_laplace
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import exp, log, log1p
from klnumba.formulas.integrals import SERIES_BELOW, entire_exponential_integral, scaled_exponential_integral
from klnumba.formulas.ranges import FAR
from klnumba.formulas.special import EULER, excess, exp_excess


def lindley_entropy(rate: float) -> float:
    """The differential entropy, in nats."""
    return (1.0 - 2.0 * log(rate)) + (log1p(rate) - scaled_exponential_integral(rate) / (1.0 + rate))


class Lindley(Distribution):
    """The Lindley distribution, with density proportional to (1 + x)*exp(-rate*x); SciPy has no counterpart.

    Parameters
    ----------
    rate : array_like
        Rate at which the density falls in the end.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Lindley
    >>> round(float(kl.kl_divergence(Lindley(1.0), Lindley(2.0))), 6)
    0.519171
    """

    parameters = ("rate",)
    rate = Parameter(POSITIVE)
    entropy_formula = staticmethod(lindley_entropy)

    def __init__(self, rate: Any = 1.0, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, rate=rate)

    @property
    def support(self) -> Support:
        return Support(0.0, math.inf)

    @property
    def mean(self) -> Any:
        return self._full((1.0 + 1.0 / (1.0 + self.rate)) / self.rate)

    @property
    def variance(self) -> Any:
        return self._full(2.0 / np.square(self.rate) - 1.0 / np.square(1.0 + self.rate))


@register_kl(Lindley, Lindley, compiled=True)
def lindley_lindley(rate_p: float, rate_q: float) -> float:
    """Twice the excess of rate_q/rate_p, less that of (1 + rate_q)/(1 + rate_p)."""
    return of_rates(rate_p, rate_q, rate_q - rate_p)


def of_rates(rate_p: float, rate_q: float, d: float) -> float:
    """KL of two Lindley distributions, given d = rate_q - rate_p."""
    twice = excess(rate_p, rate_q, d)
    return twice + max(twice - excess(1.0 + rate_p, 1.0 + rate_q, d), 0.0)


def scaled_entropy(rate: float) -> float:
    """The entropy of rate*X."""
    if rate > SERIES_BELOW:
        return 1.0 + (log1p(1.0 / rate) - scaled_exponential_integral(rate) / (1.0 + rate))
    # Of the integral the logarithm of the rate is apart, so that it does not cancel against that of the density.
    more = exp_excess(rate) / (1.0 + rate)  # exp(rate)/(1 + rate) - 1
    rest = log1p(rate) - (1.0 + more) * entire_exponential_integral(rate)
    return (1.0 + EULER) + (rest + more * (EULER + log(rate)))


@register_kl(Lindley, Laplace, compiled=True)
def lindley_laplace(rate: float, loc: float, scale: float) -> float:
    """The excess of E abs(X - loc)/scale, and what is left where that is 1."""
    y = rate * loc
    mean = 1.0 + 1.0 / (1.0 + rate)
    distance = abs(y - mean)
    if 0.0 < y < FAR:
        distance = (y - mean) + 2.0 * exp(-y) * (mean + y / (1.0 + rate))
    return to_laplace(distance, 1.0 / rate, scale, scaled_entropy(rate), loc)
