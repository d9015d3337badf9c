"""Draws of which the logarithm is known, also where they are smaller than all numbers, or closer than that to 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from klnumba.distributions.densities import (
    BetaDensity,
    Chi2Density,
    ChiDensity,
    GammaDensity,
    InverseGammaDensity,
    KumaraswamyDensity,
    LogitNormalDensity,
    LogNormalDensity,
    ParetoDensity,
)

Array = np.ndarray[Any, Any]
Logs = Callable[..., Any]


def gamma(rng: np.random.Generator, size: Any, a: Any) -> Array:
    """Of a gamma variable: one of a + 1 times a uniform variable to the power of 1/a (Marsaglia and Tsang 2000)."""
    return np.asarray(np.log(rng.standard_gamma(a + 1.0, size)) - rng.standard_exponential(size) / a)


def beta(rng: np.random.Generator, size: int, a: float, b: float) -> tuple[Array, Array]:
    """Of a beta variable and of what it leaves to 1."""
    first, second = gamma(rng, size, a), gamma(rng, size, b)
    whole = np.logaddexp(first, second)
    return first - whole, second - whole


def dirichlet(rng: np.random.Generator, size: int, concentration: Array) -> Array:
    """Of the shares of gamma variables in their sum."""
    logs = gamma(rng, (size, len(concentration)), concentration)
    return np.asarray(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))


def logit_normal(rng: np.random.Generator, size: int, middle: float, spread: float) -> tuple[Array, Array]:
    """Of 1/(1 + exp(-y)) and of 1/(1 + exp(y)), y normal."""
    y = rng.normal(middle, spread, size)
    return -np.logaddexp(0.0, -y), -np.logaddexp(0.0, y)


def kumaraswamy(rng: np.random.Generator, size: int, first: float, second: float) -> tuple[Array, Array]:
    """Of x and 1 - x, where 1 - x**first is a uniform variable to the power of 1/second."""
    rest = -rng.standard_exponential(size) / second  # the logarithm of 1 - x**first
    log = np.where(rest < -1.0, np.log1p(-np.exp(rest)), np.log(-np.expm1(rest))) / first
    near = rest < -700.0  # there 1 - x is (1 - x**first)/first
    return log, np.where(near, rest - math.log(first), np.log(-np.expm1(log)))


# By the density of X > 0 in SciPy's terms: the logarithm of a draw.
FROM_0: dict[type, Logs] = {
    ChiDensity: lambda rng, size, df: 0.5 * (math.log(2.0) + gamma(rng, size, 0.5 * df)),
    Chi2Density: lambda rng, size, df: math.log(2.0) + gamma(rng, size, 0.5 * df),
    GammaDensity: gamma,
    InverseGammaDensity: lambda rng, size, a: -gamma(rng, size, a),
    LogNormalDensity: lambda rng, size, middle, spread: rng.normal(middle, spread, size),
    ParetoDensity: lambda rng, size, alpha: rng.standard_exponential(size) / alpha,
    type(stats.weibull_min): lambda rng, size, c: np.log(rng.standard_exponential(size)) / c,
}
# The same of X from 0 to 1: the logarithms of X and of 1 - X.
FROM_0_TO_1: dict[type, Logs] = {
    BetaDensity: beta,
    KumaraswamyDensity: kumaraswamy,
    LogitNormalDensity: logit_normal,
}
