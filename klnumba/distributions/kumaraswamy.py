"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support
from klnumba.distributions.evaluate import evaluate
from klnumba.distributions.registry import over, register_kl
from klnumba.distributions.uniform import Uniform
from klnumba.formulas.elementary import log1p
from klnumba.formulas.special import (
    EULER,
    digamma,
    digamma_bregman,
    excess,
    excess_of_products,
    log_gamma,
)

TRIGAMMA_2 = 0.6449340668482264


def digamma_from_2(b: float) -> float:
    """digamma(b + 1) - digamma(2)."""
    d = b - 1.0
    if abs(d) <= 0.5:
        return TRIGAMMA_2 * d - digamma_bregman(2.0, b + 1.0, d)
    return digamma(b + 1.0) - (1.0 - EULER)


def to_standard_uniform(a: float, b: float) -> float:
    """KL to the uniform distribution on 0 to 1: excesses of the inverses of a and b, and a product of both."""
    first = excess(a, 1.0, 1.0 - a)
    second = excess(b, 1.0, 1.0 - b)
    return max(first + second - (a - 1.0) / a * digamma_from_2(b), 0.0)


def kumaraswamy_entropy(a: float, b: float) -> float:
    """The differential entropy, in nats."""
    return -to_standard_uniform(a, b)


def log_moment(a: float, b: float, n: float) -> float:
    """log E X**n."""
    h = n / a
    return log_gamma(1.0 + h) + log_gamma(1.0 + b) - log_gamma(1.0 + h + b)


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


def same_first(a: float, b: float, c: float, d: float) -> float:
    """The excess of the ratio d/b."""
    return excess_of_products(d, 1.0, b, 1.0)


@register_kl(Kumaraswamy, Kumaraswamy)
def kumaraswamy_kumaraswamy(p: Kumaraswamy, q: Kumaraswamy) -> Any:
    """The excess of the ratio of concentration0; concentration1 must be equal."""
    if np.any(np.not_equal(p.concentration1, q.concentration1)):
        raise NotImplementedError("KL(Kumaraswamy || Kumaraswamy) has no closed form for unequal concentration1")
    return over(same_first, p, p.parameters, q, q.parameters)


@register_kl(Kumaraswamy, Uniform, compiled=True)
def kumaraswamy_uniform(a: float, b: float, low: float, high: float) -> float:
    """That to the standard uniform distribution, and the logarithm of the width; infinite unless 0 and 1 are inside."""
    if low > 0.0 or high < 1.0:
        return math.inf
    return to_standard_uniform(a, b) + log1p((high - 1.0) - low)
