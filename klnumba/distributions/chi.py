"""The chi distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved, unscaled
from klnumba.distributions.evaluate import evaluate
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.gamma import Gamma, gamma_gamma
from klnumba.distributions.gamma_powers import gamma_root, inverse_square_to_gamma, root_to_gamma
from klnumba.distributions.half_normal import HalfNormal
from klnumba.distributions.inverse_gamma import InverseGamma
from klnumba.distributions.laplace import Laplace, to_laplace
from klnumba.distributions.log_normal import LogNormal, log_gamma_normal, to_gamma
from klnumba.distributions.registry import register_kl
from klnumba.formulas.divergences import LEAST
from klnumba.formulas.elementary import exp, expm1, log, two_sum
from klnumba.formulas.exponents import plus_half_square
from klnumba.formulas.log_cells import phi
from klnumba.formulas.logarithms import log_ratio_beyond, log_twofold
from klnumba.formulas.power_distances import power_distance
from klnumba.formulas.primitives import fma
from klnumba.formulas.ranges import product, times_excess, times_exp_excess
from klnumba.formulas.special import (
    HALF_LOG_2PI,
    LN2,
    excess,
    excess_of_products,
    log_gamma,
    stirling,
    stirling_bregman,
    stirling_slope,
)


def chi_entropy(df: float) -> float:
    """The differential entropy, in nats."""
    half = 0.5 * df
    rest = stirling(half) - (half - 0.5) * stirling_slope(half)
    return (HALF_LOG_2PI + 0.5 - 0.5 * LN2) + (rest - 0.25 / half)


def log_mean(df: float) -> float:
    """The logarithm of the mean over the square root of `df`."""
    half = 0.5 * df
    if half < 1.0:
        return log_gamma(half + 0.5) - log_gamma(half) - 0.5 * log(half)
    rise = stirling_bregman(half, half + 0.5, 0.5) + 0.5 * stirling_slope(half)
    return rise - half * phi(0.5 / half)


def mean_less(df: float, loc: float) -> float:
    """The mean less loc, right to the last digits of the deviation, of which the mean may be any multiple."""
    root = math.sqrt(df)
    if df < 1.0:  # the mean is far below
        return root * exp(log_mean(df)) - loc
    off = root - loc
    if 0.5 * root < loc < 2.0 * root:
        off = fma(-loc, loc, df) / (root + loc)  # of the squares, which are not rounded
    return off + root * expm1(log_mean(df))


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


@register_kl(Chi, Laplace, compiled=True)
def chi_laplace(df: float, loc: float, scale: float) -> float:
    """The excess of E abs(X - loc)/scale, and what is left where that is 1."""
    off = mean_less(df, loc)
    distance = off
    if loc > 0.0:
        distance = power_distance(0.5 * df, 0.5, max(0.5 * loc * loc, LEAST), loc, off, 0.5 * fma(-loc, loc, df))
    return to_laplace(distance, 1.0, scale, chi_entropy(df), off)


@register_kl(Chi, HalfNormal, compiled=True)
def chi_half_normal(df: float, scale: float) -> float:
    """That of the squares, which have a gamma distribution, q of shape 1/2."""
    half = 0.5 * df
    d = 0.5 - half
    means = 0.5 * excess_of_products(df, 1.0, scale, scale)
    return means + (0.5 * excess(half, 0.5, d) + stirling_bregman(half, 0.5, d))


@register_kl(HalfNormal, Chi, compiled=True)
def half_normal_chi(scale: float, df: float) -> float:
    """That of the squares, which have a gamma distribution, p of shape 1/2."""
    half = 0.5 * df
    d = half - 0.5
    means = times_excess(half, scale, scale, df, 1.0, 0.0, 0)
    return means + (0.5 * excess(0.5, half, d) + stirling_bregman(0.5, half, d))


@register_kl(Chi, Gamma, compiled=True)
def chi_gamma(df: float, shape: float, rate: float) -> float:
    """The excess of the means' ratio, times the shape, and what is left where they agree."""
    high, low = log_twofold(df)
    apart, rest = log_ratio_beyond(rate, shape, -0.5 * high)
    v, more = two_sum(apart, log_mean(df))
    return times_exp_excess(shape, v, rest + (more + 0.5 * low)) + root_to_gamma(0.5 * df, shape)


@register_kl(Chi, Exponential, compiled=True)
def chi_exponential(df: float, rate: float) -> float:
    """That to the gamma distribution of shape 1."""
    return chi_gamma(df, 1.0, rate)


@register_kl(Gamma, Chi, compiled=True)
def gamma_chi(shape: float, rate: float, df: float) -> float:
    """The excess of the ratio of mean squares, times df/2, and what is left where they agree."""
    return gamma_root(shape, rate, 0.5 * df, 1.0)


@register_kl(Exponential, Chi, compiled=True)
def exponential_chi(rate: float, df: float) -> float:
    """That of the gamma distribution of shape 1."""
    return gamma_chi(1.0, rate, df)


@register_kl(InverseGamma, Chi, compiled=True)
def inverse_gamma_chi(shape: float, rate: float, df: float) -> float:
    """The excess of the ratio of mean squares, times df/2, and what is left where they agree."""
    if shape <= 2.0:
        return math.inf
    above, low, k = product(rate, rate)
    below, low_below, n = product(df, shape - 1.0)
    off = low / above - low_below / below
    means = times_excess(0.5 * df, above, 1.0, below, shape - 2.0, off, k - n)
    return means + inverse_square_to_gamma(shape, 0.5 * df)


@register_kl(Chi, LogNormal, compiled=True)
def chi_log_normal(df: float, loc: float, scale: float) -> float:
    """That of the logarithms, half that of a gamma variable of shape df/2 and rate 1/2."""
    half = 0.5 * df
    apart, low = log_ratio_beyond(df, 1.0, 2.0 * loc)
    t = 0.5 * (apart + (low - (0.5 / half - stirling_slope(half)))) / scale
    return log_gamma_normal(half, 0.5, t, scale)


@register_kl(LogNormal, Chi, compiled=True)
def log_normal_chi(loc: float, scale: float, df: float) -> float:
    """That of the squares: of the gamma distribution of shape df/2."""
    apart, low = log_ratio_beyond(1.0, df, -2.0 * loc)
    return to_gamma(*plus_half_square(apart, low, 2.0 * scale), 2.0 * scale, 0.5 * df)
