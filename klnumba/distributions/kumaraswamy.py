"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.beta import Beta
from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support
from klnumba.distributions.evaluate import evaluate
from klnumba.distributions.laplace import Laplace, to_laplace
from klnumba.distributions.registry import register_kl
from klnumba.distributions.uniform import Uniform
from klnumba.formulas.divergences import log_ratio
from klnumba.formulas.elementary import exp, expm1, log, log1p
from klnumba.formulas.kumaraswamy_cells import (
    digamma_from_2,
    divergence,
    log_beta,
    log_beta_beyond,
    shortfall,
    surplus,
)
from klnumba.formulas.special import digamma_bregman, excess, excess_of_products, log_gamma_bregman

PI_SQUARED_6 = 1.6449340668482264


def to_standard_uniform(a: float, b: float) -> float:
    """KL to the uniform distribution on 0 to 1: excesses of the inverses of a and b, and a product of both."""
    second = excess(b, 1.0, 1.0 - b)
    if a < 0.5:  # the harmonic number of b
        harmonic = PI_SQUARED_6 * b - digamma_bregman(1.0, 1.0 + b, b) if b < 0.5 else digamma_from_2(b) + 1.0
        return second + (log(a) + (1.0 - a) / a * harmonic)
    first = excess(a, 1.0, 1.0 - a)
    return max(first + second - (a - 1.0) / a * digamma_from_2(b), 0.0)


def kumaraswamy_entropy(a: float, b: float) -> float:
    """The differential entropy, in nats."""
    return -to_standard_uniform(a, b)


def log_moment(a: float, b: float, n: float) -> float:
    """log E X**n."""
    h = n / a
    curves = log_gamma_bregman(1.0, 1.0 + h, h) - log_gamma_bregman(1.0 + b, 1.0 + b + h, h)
    return curves - h * (1.0 + digamma_from_2(b))


class Kumaraswamy(Distribution):
    """The Kumaraswamy distribution: of X = (1 - U**(1/b))**(1/a), U uniform; SciPy has no counterpart.

    Parameters
    ----------
    concentration1, concentration0 : array_like
        The exponents a and b; 1 - (1 - x**a)**b is the distribution function.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Kumaraswamy, Uniform
    >>> round(float(kl.kl_divergence(Kumaraswamy(2.0, 3.0), Uniform(0.0, 1.0))), 6)
    0.208426
    """

    parameters = ("concentration1", "concentration0")
    concentration1 = Parameter(POSITIVE)
    concentration0 = Parameter(POSITIVE)
    entropy_formula = staticmethod(kumaraswamy_entropy)

    def __init__(self, concentration1: Any, concentration0: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, concentration1=concentration1, concentration0=concentration0)

    @property
    def support(self) -> Support:
        return Support(0.0, 1.0)

    @property
    def mean(self) -> Any:
        return self._full(self._moment(1.0))

    @property
    def variance(self) -> Any:
        return self._full(self._moment(2.0) - np.square(self._moment(1.0)))

    def _moment(self, n: float) -> Any:
        columns = [self._column("concentration1"), self._column("concentration0"), np.array(n)]
        return np.exp(evaluate(log_moment, columns, self.batch_shape))


def by_integral(a: float, b: float, c: float, d: float) -> float:
    """KL of any two, an integral over the odds of X**a."""
    more = (c - a) / a
    shift = log_ratio(b, d, b - d) - log_ratio(c, a, c - a)
    return divergence(b, shift, more, b - d, d - 1.0, c / a, more)


@register_kl(Kumaraswamy, Kumaraswamy, compiled=True)
def kumaraswamy_kumaraswamy(a: float, b: float, c: float, d: float) -> float:
    """The excess of d/b for equal a and c; else an integral over the odds of X**a, for E log(1 - X**c)."""
    return excess_of_products(d, 1.0, b, 1.0) if a == c else by_integral(a, b, c, d)


@register_kl(Kumaraswamy, Beta, compiled=True)
def kumaraswamy_beta(a: float, b: float, c: float, d: float) -> float:
    """An integral over the odds of X**a, for E log(1 - X)."""
    if abs(d - 1.0) <= min(abs(c - 1.0), 0.5):
        shift = log_ratio(a, c, a - c) + log(b) + log_beta_beyond(c, d)
    elif abs(c - 1.0) <= 0.5:
        shift = log_ratio(b, d, b - d) + log(a) + log_beta_beyond(d, c)
    else:
        shift = log(a) + log(b) + log_beta(c, d)
    return divergence(b, shift, (c - a) / a, b - d, d - 1.0, 1.0 / a, (1.0 - a) / a)


@register_kl(Kumaraswamy, Uniform, compiled=True)
def kumaraswamy_uniform(a: float, b: float, low: float, high: float) -> float:
    """That to the standard uniform distribution, and the logarithm of the width; infinite unless 0 and 1 are inside."""
    if low > 0.0 or high < 1.0:
        return math.inf
    return to_standard_uniform(a, b) + log1p((high - 1.0) - low)


@register_kl(Kumaraswamy, Laplace, compiled=True)
def kumaraswamy_laplace(a: float, b: float, loc: float, scale: float) -> float:
    """The excess of E abs(X - loc)/scale, and what is left where that is 1."""
    log_mean = log_moment(a, b, 1.0)
    if loc <= 0.0 or loc >= 1.0:
        distance = abs(exp(log_mean) - loc)
    else:
        log_loc = log1p(loc - 1.0)
        ratio = log_mean - log_loc
        off = loc * expm1(ratio) if abs(ratio) <= 1.0 else exp(log_mean) - loc
        y = exp(a * log_loc)
        if y * (1.0 + (1.0 + b) * a) <= 1.0 + a:
            distance = off + 2.0 * shortfall(a, b, loc, y)
        else:
            distance = 2.0 * surplus(a, b, loc, y, -expm1(a * log_loc)) - off
    return to_laplace(distance, 1.0, scale, kumaraswamy_entropy(a, b), distance)
