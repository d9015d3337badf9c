"""Densities of families that SciPy does not have, as distributions of SciPy's, for what has no closed form.

SciPy is loaded with this, and this by what needs a density.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats

from klnumba.distributions.continuous_bernoulli import ContinuousBernoulli
from klnumba.distributions.count_logs import deviance, raw_binomial, stirling_rest
from klnumba.distributions.distribution import Distribution, scipy_arguments
from klnumba.distributions.kumaraswamy import Kumaraswamy
from klnumba.distributions.lindley import Lindley
from klnumba.distributions.log_normal import LogNormal
from klnumba.distributions.logit_normal import LogitNormal
from klnumba.distributions.uniform import Uniform
from klnumba.duals.number import twofold


class Tilted(stats.rv_continuous):  # type: ignore[misc]
    """exp(eta*x) on 0 to 1, of integral 1."""

    def _argcheck(self, eta: Any) -> Any:
        return np.isfinite(eta)

    def _logpdf(self, x: Any, eta: Any) -> Any:
        size = np.where(eta == 0.0, 1.0, np.abs(eta))
        log_integral = np.where(eta == 0.0, 0.0, np.log(-np.expm1(-size)) - np.log(size))
        return eta * x - np.maximum(eta, 0.0) - log_integral

    def _pdf(self, x: Any, eta: Any) -> Any:
        return np.exp(self._logpdf(x, eta))

    def _cdf(self, x: Any, eta: Any) -> Any:
        size = np.where(eta == 0.0, 1.0, np.abs(eta))
        rising = np.exp(size * (x - 1.0)) * np.expm1(-size * x) / np.expm1(-size)
        falling = np.expm1(-size * x) / np.expm1(-size)
        return np.where(eta == 0.0, x, np.where(eta > 0.0, rising, falling))

    def _sf(self, x: Any, eta: Any) -> Any:
        return self._cdf(1.0 - x, -eta)

    def _ppf(self, u: Any, eta: Any) -> Any:
        size = np.where(eta == 0.0, 1.0, np.abs(eta))
        rising = 1.0 + np.log(u + (1.0 - u) * np.exp(-size)) / size
        falling = -np.log1p(u * np.expm1(-size)) / size
        return np.where(eta == 0.0, u, np.where(eta > 0.0, rising, falling))

    def _isf(self, u: Any, eta: Any) -> Any:
        return 1.0 - self._ppf(u, -eta)


class KumaraswamyDensity(stats.rv_continuous):  # type: ignore[misc]
    """That of `Kumaraswamy`."""

    def _logpdf(self, x: Any, first: Any, second: Any) -> Any:
        size = np.log(first) + np.log(second)
        return size + special.xlogy(first - 1.0, x) + special.xlogy(second - 1.0, -np.expm1(first * np.log(x)))

    def _pdf(self, x: Any, first: Any, second: Any) -> Any:
        return np.exp(self._logpdf(x, first, second))

    def _logsf(self, x: Any, first: Any, second: Any) -> Any:
        return second * np.log(-np.expm1(first * np.log(x)))

    def _sf(self, x: Any, first: Any, second: Any) -> Any:
        return np.exp(self._logsf(x, first, second))

    def _cdf(self, x: Any, first: Any, second: Any) -> Any:
        return -np.expm1(self._logsf(x, first, second))

    def _ppf(self, u: Any, first: Any, second: Any) -> Any:
        return (-np.expm1(np.log1p(-u) / second)) ** (1.0 / first)

    def _isf(self, u: Any, first: Any, second: Any) -> Any:
        return (-np.expm1(np.log(u) / second)) ** (1.0 / first)


class MirroredKumaraswamy(stats.rv_continuous):  # type: ignore[misc]
    """The density of 1 - x."""

    def _logpdf(self, y: Any, first: Any, second: Any) -> Any:
        below = np.log1p(-y)
        size = np.log(first) + np.log(second)
        return size + (first - 1.0) * below + special.xlogy(second - 1.0, -np.expm1(first * below))

    def _pdf(self, y: Any, first: Any, second: Any) -> Any:
        return np.exp(self._logpdf(y, first, second))


class LindleyDensity(stats.rv_continuous):  # type: ignore[misc]
    """That of `Lindley`."""

    def _logpdf(self, x: Any, rate: Any) -> Any:
        return 2.0 * np.log(rate) - np.log1p(rate) + np.log1p(x) - rate * x

    def _pdf(self, x: Any, rate: Any) -> Any:
        return np.exp(self._logpdf(x, rate))

    def _sf(self, x: Any, rate: Any) -> Any:
        return (1.0 + rate * x / (1.0 + rate)) * np.exp(-rate * x)

    def _cdf(self, x: Any, rate: Any) -> Any:
        return -np.expm1(-rate * x) - rate * x / (1.0 + rate) * np.exp(-rate * x)

    def _isf(self, u: Any, rate: Any) -> Any:
        return -1.0 - 1.0 / rate - special.lambertw(-u * (1.0 + rate) * np.exp(-1.0 - rate), -1).real / rate

    def _ppf(self, u: Any, rate: Any) -> Any:
        near = u * (1.0 + rate) / rate**2  # by the density at 0, where 1 - u has lost the digits of u
        return np.where(near < 1e-8, near, self._isf(1.0 - u, rate))


class OfNormal(stats.rv_continuous):  # type: ignore[misc]
    """A function of a normal variable, given that, its inverse and the logarithm of the slope of the inverse."""

    _outer: Any
    _inner: Any
    _log_slope: Any

    def _argcheck(self, middle: Any, spread: Any) -> Any:
        return np.isfinite(middle) & (spread > 0.0)

    def _logpdf(self, x: Any, middle: Any, spread: Any) -> Any:
        return stats.norm.logpdf(self._inner(x), middle, spread) + self._log_slope(x)

    def _pdf(self, x: Any, middle: Any, spread: Any) -> Any:
        return np.exp(self._logpdf(x, middle, spread))

    def _cdf(self, x: Any, middle: Any, spread: Any) -> Any:
        return stats.norm.cdf(self._inner(x), middle, spread)

    def _sf(self, x: Any, middle: Any, spread: Any) -> Any:
        return stats.norm.sf(self._inner(x), middle, spread)

    def _ppf(self, u: Any, middle: Any, spread: Any) -> Any:
        return self._outer(stats.norm.ppf(u, middle, spread))

    def _isf(self, u: Any, middle: Any, spread: Any) -> Any:
        return self._outer(stats.norm.isf(u, middle, spread))


class LogNormalDensity(OfNormal):
    """That of `LogNormal`, also where exp(loc) is no number."""

    _outer, _inner = staticmethod(np.exp), staticmethod(np.log)

    def _log_slope(self, x: Any) -> Any:
        return -np.log(x)


class LogitNormalDensity(OfNormal):
    """That of `LogitNormal`."""

    _outer, _inner = staticmethod(special.expit), staticmethod(special.logit)

    def _log_slope(self, x: Any) -> Any:
        return -np.log(x) - np.log1p(-x)


class LaplaceDensity(type(stats.laplace)):  # type: ignore[misc]
    """SciPy's, with a logarithm that does not underflow."""

    def _logpdf(self, x: Any) -> Any:
        return -math.log(2.0) - np.abs(x)


class MoyalDensity(type(stats.moyal)):  # type: ignore[misc]
    """SciPy's, with a logarithm that does not underflow."""

    def _logpdf(self, x: Any) -> Any:
        return -0.5 * (x + np.exp(-x)) - 0.5 * math.log(2.0 * math.pi)


class SkewTDensity(type(stats.jf_skew_t)):  # type: ignore[misc]
    """SciPy's, with tails: SciPy takes 1 - x/s of an s next to x."""

    def _logpdf(self, x: Any, a: Any, b: Any) -> Any:
        whole, size = a + b, np.abs(x)
        s = np.hypot(np.sqrt(whole), size)
        near, far = np.log1p(size / s), np.log(whole) - np.log(s) - np.log(s + size)
        above, below = np.where(x < 0.0, far, near), np.where(x < 0.0, near, far)
        constant = (1.0 - whole) * math.log(2.0) - special.betaln(a, b) - 0.5 * np.log(whole)
        return constant + (a + 0.5) * above + (b + 0.5) * below


class Pearson3Density(type(stats.pearson3)):  # type: ignore[misc]
    """SciPy's, with the end that its support has."""

    def _get_support(self, skew: Any) -> tuple[Any, Any]:
        with np.errstate(divide="ignore"):
            end = -2.0 / np.asarray(skew, np.float64)
        return np.where(skew > 0.0, end, -np.inf)[()], np.where(skew < 0.0, end, np.inf)[()]


class ParetoDensity(type(stats.pareto)):  # type: ignore[misc]
    """SciPy's, with a logarithm that does not underflow."""

    def _logpdf(self, x: Any, alpha: Any) -> Any:
        return np.log(alpha) - (alpha + 1.0) * np.log(x)


LARGE = 1.0  # shapes from which on logarithms of densities are our own: SciPy's become differences of large numbers


def gamma_log(x: Any, a: Any) -> Any:
    """The logarithm of x**(a - 1)*exp(-x)/Gamma(a), with its digits where a is large."""
    with np.errstate(all="ignore"):
        own = np.log(a / x) - stirling_rest(a) - deviance(a, twofold(x)) - 0.5 * np.log(2.0 * math.pi * a)
        return np.where((a < LARGE) | (x <= 0.0), stats.gamma.logpdf(x, a), own)


class GammaDensity(type(stats.gamma)):  # type: ignore[misc]
    """SciPy's, for large shapes too."""

    def _logpdf(self, x: Any, a: Any) -> Any:
        return gamma_log(x, a)


class InverseGammaDensity(type(stats.invgamma)):  # type: ignore[misc]
    """SciPy's, for large shapes too."""

    def _logpdf(self, x: Any, a: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.where(a < LARGE, super()._logpdf(x, a), gamma_log(1.0 / x, a) - 2.0 * np.log(x))


class Chi2Density(type(stats.chi2)):  # type: ignore[misc]
    """SciPy's, for many degrees of freedom too."""

    def _logpdf(self, x: Any, df: Any) -> Any:
        return np.where(df < LARGE, super()._logpdf(x, df), gamma_log(0.5 * x, 0.5 * df) - math.log(2.0))


class ChiDensity(type(stats.chi)):  # type: ignore[misc]
    """SciPy's, for many degrees of freedom too."""

    def _logpdf(self, x: Any, df: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.where(df < LARGE, super()._logpdf(x, df), gamma_log(0.5 * x * x, 0.5 * df) + np.log(x))


class BetaDensity(type(stats.beta)):  # type: ignore[misc]
    """SciPy's, for large concentrations too."""

    def _logpdf(self, x: Any, a: Any, b: Any) -> Any:
        with np.errstate(all="ignore"):
            odds = np.log(a / x) + np.log(b / (1.0 - x)) - np.log(a + b)
            return np.where(np.minimum(a, b) < LARGE, super()._logpdf(x, a, b), raw_binomial(a, b, x) + odds)


# The density of a family, and the parameters that it takes, in the order of its arguments.
FAMILIES: dict[type, tuple[Any, tuple[str, ...]]] = {
    ContinuousBernoulli: (Tilted(a=0.0, b=1.0, shapes="eta"), ("logits",)),
    Kumaraswamy: (KumaraswamyDensity(a=0.0, b=1.0, shapes="first, second"), ("concentration1", "concentration0")),
    LogNormal: (LogNormalDensity(a=0.0, shapes="middle, spread"), ("loc", "scale")),
    Lindley: (LindleyDensity(a=0.0, shapes="rate"), ("rate",)),
    LogitNormal: (LogitNormalDensity(a=0.0, b=1.0, shapes="middle, spread"), ("loc", "scale")),
}
# Those of SciPy whose logarithm of a density is that of a number that underflows, or a difference of large ones, or
# whose support is not where they have mass.
EXACT: dict[type, Any] = {
    type(stats.beta): BetaDensity(a=0.0, b=1.0, name="beta"),
    type(stats.chi): ChiDensity(a=0.0, name="chi"),
    type(stats.chi2): Chi2Density(a=0.0, name="chi2"),
    type(stats.gamma): GammaDensity(a=0.0, name="gamma"),
    type(stats.invgamma): InverseGammaDensity(a=0.0, name="invgamma"),
    type(stats.jf_skew_t): SkewTDensity(name="jf_skew_t"),
    type(stats.laplace): LaplaceDensity(name="laplace"),
    type(stats.moyal): MoyalDensity(name="moyal"),
    type(stats.pareto): ParetoDensity(a=1.0, name="pareto"),
    type(stats.pearson3): Pearson3Density(name="pearson3"),
}
# With poles at 1: the density of 1 - x, and its shapes.
MIRRORED: dict[type, tuple[Any, Callable[..., tuple[Any, ...]]]] = {
    BetaDensity: (EXACT[type(stats.beta)], lambda a, b: (b, a)),
    KumaraswamyDensity: (MirroredKumaraswamy(a=0.0, b=1.0, shapes="first, second"), lambda a, b: (a, b)),
    LogitNormalDensity: (LogitNormalDensity(a=0.0, b=1.0, shapes="middle, spread"), lambda m, s: (-m, s)),
}


def frozen(one: Distribution, exponent: int = 0) -> Any:
    """A single distribution, in a unit of 2**exponent, frozen, as SciPy has them."""
    if exponent and isinstance(one, Uniform):  # the width may be too large for a number
        return Uniform(*(math.ldexp(float(x), -exponent) for x in (one.low, one.high))).to_scipy()
    if exponent and isinstance(one, LogNormal):
        return frozen(LogNormal(float(one.loc) - exponent * math.log(2.0), float(one.scale)))
    if type(one) not in FAMILIES:
        with np.errstate(over="ignore"):  # a scale that is infinite is refused by who takes it
            found = exact(one.to_scipy())
    else:
        density, names = FAMILIES[type(one)]
        found = density(*(np.asarray(one._column(name), np.float64) for name in names))
    if not exponent:
        return found
    shapes, loc, scale = scipy_arguments(found)
    return found.dist(*shapes, loc=math.ldexp(float(loc), -exponent), scale=math.ldexp(float(scale), -exponent))


def exponents(one: Distribution) -> list[int]:
    """The binary ones of its location and scale, where these are not 0."""
    if isinstance(one, LogNormal):
        return [round(float(one.loc) / math.log(2.0))]
    sizes = (one.low, one.high) if isinstance(one, Uniform) else scipy_arguments(frozen(one))[1:]
    return [math.frexp(float(x))[1] for x in sizes if 0.0 < abs(x) < math.inf]


def exact(found: Any) -> Any:
    """The same, with a logarithm of the density that keeps its digits."""
    if type(found.dist) not in EXACT:
        return found
    return EXACT[type(found.dist)](*found.args, **found.kwds)


def mirrored(dist: Any, shapes: tuple[Any, ...]) -> Any:
    """The distribution of 1 - x, frozen, where the one of x may have a pole at 1."""
    if type(dist) not in MIRRORED:
        return None
    other, turned = MIRRORED[type(dist)]
    return other(*turned(*shapes))
