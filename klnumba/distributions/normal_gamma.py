"""The normal-gamma distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE, REAL
from klnumba.distributions.distribution import Distribution, Parameter, Support
from klnumba.distributions.gamma import gamma_entropy, gamma_gamma
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log
from klnumba.formulas.special import HALF_LOG_2PI, digamma, excess


def normal_gamma_entropy(loc: float, mean_precision: float, concentration: float, rate: float) -> float:
    """The differential entropy, in nats."""
    of_mean = 0.5 + HALF_LOG_2PI - 0.5 * (log(mean_precision) + (digamma(concentration) - log(rate)))
    return gamma_entropy(concentration, rate) + of_mean


class NormalGamma(Distribution):
    """A mean and a precision: the conjugate prior of a normal distribution.

    The precision t is of the gamma distribution; the mean, given t, is normal, of variance 1/(mean_precision*t).

    Parameters
    ----------
    loc : array_like
        Mean of the mean.
    mean_precision : array_like
        How many times the precision of a draw that of the mean is.
    concentration, rate : array_like
        Of the gamma distribution of the precision.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import NormalGamma
    >>> p = NormalGamma(1.0, 2.0, 3.0, 4.0)
    >>> float(kl.kl_divergence(p, NormalGamma(0.0, 2.0, 3.0, 4.0)))
    0.75
    """

    parameters = ("loc", "mean_precision", "concentration", "rate")
    loc = Parameter(REAL)
    mean_precision = Parameter(POSITIVE)
    concentration = Parameter(POSITIVE)
    rate = Parameter(POSITIVE)
    entropy_formula = staticmethod(normal_gamma_entropy)

    def __init__(
        self, loc: Any, mean_precision: Any, concentration: Any, rate: Any, *, validate_args: bool = True
    ) -> None:
        super().__init__(validate_args, loc=loc, mean_precision=mean_precision, concentration=concentration, rate=rate)

    def _event_shape(self) -> tuple[int, ...]:
        return (2,)

    @property
    def support(self) -> Support:
        """Of the mean and of the precision."""
        return Support(np.array([-math.inf, 0.0]), np.array([math.inf, math.inf]))

    def _pair(self, first: Any, second: Any) -> Any:
        return self._full(np.stack(np.broadcast_arrays(first, second), -1), (2,))

    @property
    def mean(self) -> Any:
        """Of the mean and of the precision."""
        first = np.where(self.concentration > 0.5, self.loc, math.nan)
        return self._pair(first, self.concentration / self.rate)

    @property
    def variance(self) -> Any:
        """Of the mean and of the precision."""
        more = self.concentration - 1.0
        with np.errstate(divide="ignore"):
            first = np.where(more > 0.0, self.rate / (self.mean_precision * np.abs(more)), math.inf)
        first = np.where(self.concentration > 0.5, first, math.nan)
        return self._pair(first, self.concentration / np.square(self.rate))


@register_kl(NormalGamma, NormalGamma, compiled=True)
def normal_gammas(m: float, s: float, a: float, b: float, n: float, t: float, c: float, d: float) -> float:
    """That of the gamma distributions, and the mean of that of the normal ones."""
    off = m - n
    apart = 0.0 if off == 0.0 else (t * (a / b)) * off * off
    return gamma_gamma(a, b, c, d) + 0.5 * (excess(s, t, t - s) + apart)
