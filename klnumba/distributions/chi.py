"""The chi distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved, unscaled
from klnumba.distributions.evaluate import evaluate
from klnumba.distributions.gamma import gamma_gamma
from klnumba.distributions.registry import register_kl
from klnumba.formulas.log_cells import phi
from klnumba.formulas.special import HALF_LOG_2PI, LN2, stirling, stirling_bregman, stirling_slope


def chi_entropy(df: float) -> float:
    """The differential entropy, in nats."""
    half = 0.5 * df
    rest = stirling(half) - (half - 0.5) * stirling_slope(half)
    return (HALF_LOG_2PI + 0.5 - 0.5 * LN2) + (rest - 0.25 / half)


def log_mean(df: float) -> float:
    """The logarithm of the mean over the square root of `df`."""
    half = 0.5 * df
    rise = stirling_bregman(half, half + 0.5, 0.5) + 0.5 * stirling_slope(half)
    return rise - half * phi(0.5 / half)


class Chi(Distribution):
    """The distribution of the length of a vector of `df` standard normal variables.

    Parameters
    ----------
    df : array_like
        Degrees of freedom; any positive number.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Chi
    >>> round(float(kl.kl_divergence(Chi(2.0), Chi(4.0))), 6)
    0.577216
    """

    parameters = ("df",)
    df = Parameter(POSITIVE)
    entropy_formula = staticmethod(chi_entropy)
    scipy_name = "chi"

    def __init__(self, df: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, df=df)

    @property
    def support(self) -> Support:
        return Support(0.0, math.inf)

    @property
    def mean(self) -> Any:
        df = np.asarray(self.df, float)
        return self._full(np.sqrt(df) * np.exp(evaluate(log_mean, [df], df.shape)))

    @property
    def variance(self) -> Any:
        df = np.asarray(self.df, float)
        return self._full(-df * np.expm1(2.0 * evaluate(log_mean, [df], df.shape)))

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.df,), 0.0, 1.0

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        unscaled(scale, cls.__name__)
        return {"df": shapes[0]}


@register_kl(Chi, Chi, compiled=True)
def chi_chi(df_p: float, df_q: float) -> float:
    """That of the squares, which have a gamma distribution."""
    return gamma_gamma(0.5 * df_p, 0.5, 0.5 * df_q, 0.5)
