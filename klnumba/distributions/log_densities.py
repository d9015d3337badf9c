"""Densities of logarithms: of what may lie beyond the range of numbers, while its logarithm is an ordinary one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats

from klnumba.distributions.densities import (
    BetaDensity,
    Chi2Density,
    ChiDensity,
    GammaDensity,
    InverseGammaDensity,
    KumaraswamyDensity,
    LindleyDensity,
    LogitNormalDensity,
    LogNormalDensity,
    MirroredKumaraswamy,
    ParetoDensity,
)

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


def chi(t: Any, df: Any) -> Any:
    """Of the root of a sum of squares."""
    return (1.0 - 0.5 * df) * math.log(2.0) - special.gammaln(0.5 * df) + df * t - 0.5 * np.exp(2.0 * t)


def inverse_gaussian(t: Any, mean: Any) -> Any:
    """Of shape 1. The last term is (x/mean - 1)**2/x of x = exp(t), also where x or its square is no number."""
    root = 2.0 * np.sinh(0.5 * (t - np.log(mean))) / np.sqrt(mean)
    return -0.5 * (math.log(2.0 * math.pi) + t + np.square(root))


def student_t(t: Any, df: Any) -> Any:
    """Of what is far from 0."""
    constant = special.gammaln(0.5 * df + 0.5) - special.gammaln(0.5 * df) - 0.5 * np.log(math.pi * df)
    return constant + t - 0.5 * (df + 1.0) * np.logaddexp(0.0, 2.0 * t - np.log(df))


# By the density of X > 0 in SciPy's terms: the logarithm of that of log X, with the same shapes.
POSITIVE: dict[type, Function] = {
    BetaDensity: lambda t, a, b: a * t + special.xlog1py(b - 1.0, -np.exp(t)) - special.betaln(a, b),
    ChiDensity: chi,
    Chi2Density: lambda t, df: 0.5 * (df * (t - math.log(2.0)) - np.exp(t)) - special.gammaln(0.5 * df),
    type(stats.expon): lambda t: t - np.exp(t),
    GammaDensity: lambda t, a: a * t - np.exp(t) - special.gammaln(a),
    type(stats.halfcauchy): lambda t: math.log(2.0 / math.pi) + t - np.logaddexp(0.0, 2.0 * t),
    type(stats.halfnorm): lambda t: chi(t, 1.0),
    InverseGammaDensity: lambda t, a: -a * t - np.exp(-t) - special.gammaln(a),
    type(stats.invgauss): inverse_gaussian,
    LogNormalDensity: stats.norm.logpdf,
    type(stats.weibull_min): lambda t, c: np.log(c) + c * t - np.exp(c * t),
    KumaraswamyDensity: lambda t, a, b: np.log(a * b) + a * t + special.xlogy(b - 1.0, -np.expm1(a * t)),
    LindleyDensity: lambda t, r: 2.0 * np.log(r) - np.log1p(r) + np.logaddexp(0.0, t) - r * np.exp(t) + t,
    LogitNormalDensity: lambda t, m, s: stats.norm.logpdf(t, m, s),  # of what is so small that its odds are itself
    MirroredKumaraswamy: lambda t, a, b: np.log(b) + b * (np.log(a) + t),  # likewise
    ParetoDensity: lambda t, alpha: np.where(t < 0.0, -math.inf, np.log(alpha) - alpha * t),
}
# Of those over all numbers: that of log|X|, on one side, far from 0.
FAR: dict[type, Function] = {
    type(stats.cauchy): lambda t: student_t(t, 1.0),
    type(stats.t): student_t,
}


def of_small(dist: Any, shapes: tuple[Any, ...], scale: float) -> Function | None:
    """The logarithm of the density of log X, where X begins at 0; None where it is not known."""
    return _scaled(POSITIVE.get(type(dist)), shapes, scale)


def of_large(dist: Any, shapes: tuple[Any, ...], scale: float, sign: float) -> Function | None:
    """That of log X, or of log(-X) for a negative sign, beyond all numbers."""
    return _scaled(FAR.get(type(dist)) or (POSITIVE.get(type(dist)) if sign > 0.0 else None), shapes, scale)


def _scaled(function: Function | None, shapes: tuple[Any, ...], scale: float) -> Function | None:
    log_scale = math.log(scale)
    return None if function is None else lambda t: np.asarray(function(t - log_scale, *shapes))
