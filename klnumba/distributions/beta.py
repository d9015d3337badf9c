"""The beta distribution."""

from __future__ import annotations

from typing import Any

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved, unscaled
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import log
from klnumba.formulas.special import (
    HALF_LOG_2PI,
    difference_of_products,
    digamma,
    digamma_bregman,
    excess,
    log_gamma_bregman,
    stirling,
    stirling_bregman,
    stirling_slope,
    trigamma,
)


def beta_entropy(a: float, b: float) -> float:
    """The differential entropy, in nats."""
    s = a + b
    first = (0.5 / a + (a - 1.0) * stirling_slope(a)) - stirling(a)
    second = (0.5 / b + (b - 1.0) * stirling_slope(b)) - stirling(b)
    both = (1.0 / s + (s - 2.0) * stirling_slope(s)) - stirling(s)
    return 0.5 + HALF_LOG_2PI + 0.5 * (log(a / s) + log(b / s) - log(s)) - ((first + second) - both)


class Beta(Distribution):
    """The beta distribution.

    Parameters
    ----------
    concentration1, concentration0 : array_like
        The exponents of x and of 1 - x in the density, each plus one.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Beta
    >>> round(float(kl.kl_divergence(Beta(2.0, 3.0), Beta(1.0, 1.0))), 6)
    0.234907
    """

    parameters = ("concentration1", "concentration0")
    concentration1 = Parameter(POSITIVE)
    concentration0 = Parameter(POSITIVE)
    entropy_formula = staticmethod(beta_entropy)
    scipy_name = "beta"

    def __init__(self, concentration1: Any, concentration0: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, concentration1=concentration1, concentration0=concentration0)

    @property
    def support(self) -> Support:
        return Support(0.0, 1.0)

    @property
    def mean(self) -> Any:
        return self._full(self.concentration1 / (self.concentration1 + self.concentration0))

    @property
    def variance(self) -> Any:
        a, b = self.concentration1, self.concentration0
        s = a + b
        return self._full((a / s) * (b / s) / (s + 1.0))

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.concentration1, self.concentration0), 0.0, 1.0

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        unscaled(scale, cls.__name__)
        return {"concentration1": shapes[0], "concentration0": shapes[1]}


# Nodes and weights of Gauss and Legendre on 0 to 1.
NODES = (0.046910077030668004, 0.23076534494715845, 0.5, 0.7692346550528415, 0.953089922969332)
WEIGHTS = (0.11846344252809454, 0.23931433524968324, 0.28444444444444444, 0.23931433524968324, 0.11846344252809454)


def one_small(a: float, b: float, c: float, d: float, first: float, second: float) -> float:
    """`beta_apart` for an `a` that is smaller than b, d and 1 by 10 or more.

    With G(x, y) the remainder of log-gamma, G(b, d) - G(b + a, d + a) is an integral over that of digamma, and
    G(b + a, d + c) = G(b + a, d + a) + G(d + a, d + c) + (digamma(d + a) - digamma(b + a))*(c - a).
    """
    total = 0.0
    for i in range(5):
        u = a * NODES[i]
        total += WEIGHTS[i] * digamma_bregman(b + u, d + u, second)
    if abs(second) <= 0.5 * b:
        rise = trigamma(b + a) * second - digamma_bregman(b + a, d + a, second)
    else:
        rise = digamma(d + a) - digamma(b + a)
    other = log_gamma_bregman(d + a, d + c, first) + rise * first
    return max(a * total + (log_gamma_bregman(a, c, first) - other), 0.0)


@register_kl(Beta, Beta, compiled=True)
def beta_beta(a: float, b: float, c: float, d: float) -> float:
    """The remainders of log-gamma of both exponents, less that of their sum, each split by Stirling's formula."""
    return beta_apart(a, b, c, d, c - a, d - b, difference_of_products(a, d, c, b) / (a + b))


def beta_apart(a: float, b: float, c: float, d: float, first: float, second: float, off: float) -> float:
    """`beta_beta`, given first = c - a, second = d - b and off = (a*d - c*b)/(a + b).

    Of the first parts of Stirling's formula two excesses are left, those of the means a/(a + b) and b/(a + b) over
    those of q.
    """
    if a < 0.1 * min(1.0, b, d):
        return one_small(a, b, c, d, first, second)
    if b < 0.1 * min(1.0, a, c):
        return one_small(b, a, d, c, second, first)
    s = a + b
    t = c + d
    both = first + second
    means = c * excess(c, a * (t / s), off) + d * excess(d, b * (t / s), -off)
    halves = excess(a, c, first) + excess(b, d, second) - excess(s, t, both)
    rest = stirling_bregman(a, c, first) + stirling_bregman(b, d, second) - stirling_bregman(s, t, both)
    return max(means + (0.5 * halves + rest), 0.0)
