"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE, REAL
from klnumba.distributions.distribution import Distribution, Parameter, Support
from klnumba.distributions.laplace import Laplace, to_laplace
from klnumba.distributions.normal import Normal
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import exp, log, log1p, two_sum
from klnumba.formulas.ranges import in_range, product
from klnumba.formulas.special import (
    HALF_LOG_2PI,
    excess,
    excess_of_nearly,
    stirling,
    stirling_bregman,
    stirling_slope,
)

NORMAL = 1e300  # of so many degrees of freedom it is a normal distribution
LEAST = 1e-300  # below it df*log(1/df) is nothing
LARGEST = 1e60  # of this many degrees of freedom the first term of a series is all


def student_t_entropy(df: float, loc: float, scale: float) -> float:
    """The differential entropy, in nats: (x + 1/2)*(digamma(x + 1/2) - digamma(x)) and log-gamma, for x = df/2."""
    x = 0.5 * df
    y = x + 0.5
    rise = log1p(0.5 / x)
    slopes = rise + 0.25 / (x * y) + (stirling_slope(y) - stirling_slope(x))
    size = 0.5 - x * rise + (stirling(x) - stirling(y))
    return log(scale) + (HALF_LOG_2PI + size + y * slopes)


class StudentT(Distribution):
    """Student's t distribution, moved and scaled.

    Parameters
    ----------
    df : array_like
        Degrees of freedom; any positive number.
    loc : array_like
        Median.
    scale : array_like
        Scale.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Normal, StudentT
    >>> round(float(kl.kl_divergence(StudentT(5.0), Normal())), 6)
    0.124769
    """

    parameters = ("df", "loc", "scale")
    df = Parameter(POSITIVE)
    loc = Parameter(REAL)
    scale = Parameter(POSITIVE)
    entropy_formula = staticmethod(student_t_entropy)
    scipy_name = "t"

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, df=df, loc=loc, scale=scale)

    @property
    def support(self) -> Support:
        return Support(-math.inf, math.inf)

    @property
    def mean(self) -> Any:
        return self._full(np.where(self.df > 1.0, self.loc, math.nan))

    @property
    def variance(self) -> Any:
        above = np.maximum(self.df - 2.0, 0.0)
        found = self.scale * (self.scale * (self.df / above))
        return self._full(np.where(self.df > 1.0, found, math.nan))

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.df,), self.loc, self.scale

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        return {"df": shapes[0], "loc": loc, "scale": scale}


def student_t_negentropy(df: float) -> float:
    """KL to the normal distribution of the same mean and variance, about 3/4/df**2, for more than 2 degrees of freedom.

    The parts of Stirling's formula that are of first order in 1/df cancel exactly; what is left of log-gamma from
    x = df/2 to x + 1/2 and back is of second.
    """
    if df > LARGEST:
        return 0.75 / df / df
    x = 0.5 * df
    there = stirling_bregman(x, x + 0.5, 0.5)
    back = stirling_bregman(x + 0.5, x, -0.5)
    parts = 0.5 * excess(df, df - 2.0, -2.0) + 0.125 / (x * (x + 0.5)) + 0.5 * stirling_slope(x)
    return parts - (0.5 * excess(x + 0.5, x, -0.5) + back + df * (there + back))


@register_kl(StudentT, Normal, compiled=True)
def student_t_normal(df: float, loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The variances' excess, the distance of the means, and what is left where both agree; infinite up to df = 2."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    if df <= 2.0:
        return math.inf
    t = (loc_p - loc_q) / scale_q
    less, low = two_sum(df, -2.0)
    above, low_above, k = product(df, scale_p)
    below, low_below, n = product(less, scale_q)
    off = (low_above / above - low_below / below) - low / less
    return 0.5 * (excess_of_nearly(above, scale_p, below, scale_q, off, k - n) + t * t) + student_t_negentropy(df)


def log_density(df: float, y: float) -> float:
    """log of the density at y, of loc 0 and scale 1."""
    x = 0.5 * df
    rise = x * log1p(0.5 / x) if df > LEAST else 0.0
    middle = stirling(x + 0.5) - stirling(x) + (rise - 0.5)
    return (middle - HALF_LOG_2PI) - (x + 0.5) * log1p(y * (y / df))


def mean_distance(df: float, y: float) -> float:
    """E abs(X - y) of loc 0 and scale 1, for y >= 0 and more than 1 degree of freedom.

    It is 2*(df + y*y)/(df - 1) times the density at y, and y times the probability of -y to y, which is a sum; that of
    the rest is one where y is large.
    """
    df = min(df, NORMAL)
    if y > 1e100:
        return y
    log_here = log_density(df, y)
    far = y * y >= df
    if log_here < -60.0 and not far:
        return y
    half = 0.5 * df
    here = exp(log_here)
    share = y * (y / (df + y * y))
    z = df / (df + y * y) if far else share
    first, second = (half, 0.5) if far else (0.5, half)
    term = 1.0
    total = 1.0
    n = 0.0
    while term > 1e-18 * total:
        term *= z * ((first + second + n) / (first + 1.0 + n))
        total += term
        n += 1.0
    beyond = 2.0 * (df + y * y) / (df - 1.0) * here
    if far:
        return beyond + y * (1.0 - 2.0 * (y / df) * here * total)
    return beyond + 2.0 * y * y * here * total


@register_kl(StudentT, Laplace, compiled=True)
def student_t_laplace(df: float, loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The excess of E abs(X - loc_q)/scale_q, and what is left where that is 1; infinite up to df = 1."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    if df <= 1.0:
        return math.inf
    distance = mean_distance(df, abs(loc_p - loc_q) / scale_p)
    return to_laplace(distance, scale_p, scale_q, student_t_entropy(df, 0.0, 1.0), loc_p - loc_q)
