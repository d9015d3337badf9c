"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any

from klnumba.distributions.beta import Beta, beta_apart, beta_beta
from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support
from klnumba.distributions.laplace import Laplace, narrow_to_laplace, to_laplace
from klnumba.distributions.registry import may_decline, register_kl
from klnumba.distributions.uniform import Uniform, log_sinhc, log_width_around_0_to_1
from klnumba.formulas.bessel import NODES, WEIGHTS
from klnumba.formulas.divergences import log_ratio
from klnumba.formulas.elementary import exp, expm1, log, log1p
from klnumba.formulas.kumaraswamy_cells import (
    digamma_from_2,
    divergence,
    harmonic,
    log_beta,
    log_beta_beyond,
    shortfall,
    surplus,
)
from klnumba.formulas.ranges import MOST
from klnumba.formulas.special import (
    EULER,
    LARGE,
    LN2,
    STIRLING,
    difference_of_products,
    excess,
    excess_of_products,
    log_gamma_bregman,
    log_of_products,
    stirling_slope,
    trigamma,
)


def to_power(a: float, b: float, c: float) -> float:
    """KL to the distribution of density c*x**(c - 1): excesses of c/a and of 1/b, and a product of both."""
    second = excess(b, 1.0, 1.0 - b)
    if a < 0.5 * c:
        return second + (log_of_products(a, 1.0, c, 1.0) + (c - a) / a * harmonic(b))
    first = excess(a, c, c - a)
    return max(first + second - (a - c) / a * digamma_from_2(b), 0.0)


def to_standard_uniform(a: float, b: float) -> float:
    """KL to the uniform distribution on 0 to 1."""
    return to_power(a, b, 1.0)


def kumaraswamy_entropy(a: float, b: float) -> float:
    """The differential entropy, in nats."""
    return -to_standard_uniform(a, b)


def log_choose(x: float, y: float) -> float:
    """log(gamma(1 + x)*gamma(1 + y)/gamma(1 + x + y)), right to the last digits for x <= y."""
    return log_gamma_bregman(1.0, 1.0 + x, x) - log_gamma_bregman(1.0 + y, 1.0 + y + x, x) - x * harmonic(y)


def log_moment(a: float, b: float, n: float) -> float:
    """log E X**n."""
    h = n / a
    return log_choose(h, b) if h <= b else log_choose(b, h)


def moment(a: float, b: float, n: float) -> float:
    """E X**n; 0 where both 1/a and b are so large that it is next to nothing, and its logarithm may be infinite."""
    return 0.0 if min(1.0 / a, b) > 1e4 else exp(log_moment(a, b, n))


def kumaraswamy_mean(a: float, b: float) -> float:
    """The expected value."""
    return moment(a, b, 1.0)


def kumaraswamy_variance(a: float, b: float) -> float:
    """The square of the mean, times what E X*X has beyond it; E X*X alone where that is nearly all."""
    h, mean = 1.0 / a, moment(a, b, 1.0)
    if mean == 0.0:
        return 0.0
    if h > 1.0:
        beyond = log_spread(h, b)
        return mean * mean * expm1(beyond) if beyond < LN2 else moment(a, b, 2.0) - mean * mean
    deviation = mean * h * exp(log_spread_over(h, b))
    return deviation * deviation


def log_moment_beyond(h: float, b: float) -> float:
    """log E X of h = 1/a, and E log X, which is -h*harmonic(b), left out."""
    if h <= max(b, 1.0):
        return log_gamma_bregman(1.0, 1.0 + h, h) - log_gamma_bregman(1.0 + b, 1.0 + b + h, h)
    return log_choose(b, h) + h * harmonic(b)


def trigamma_fall(x: float, b: float) -> float:
    """trigamma(x) - trigamma(x + b)."""
    if b >= 0.5:
        return trigamma(x) - trigamma(x + b)
    total = 0.0
    while x < LARGE:
        total += b / (x * x) * ((2.0 * x + b) / ((x + b) * (x + b)))
        x += 1.0
    y = 1.0 / x
    shift = -log1p(b * y)
    total -= y * (expm1(shift) + 0.5 * y * expm1(2.0 * shift))
    power = y
    for k in range(10):
        power *= y * y
        m = 2.0 * k + 3.0
        total -= (m - 1.0) * (m - 2.0) * STIRLING[k] * power * expm1(m * shift)
    return total


def log_spread_over(h: float, b: float) -> float:
    """Half the logarithm of the variance of X over the squares of the mean and of h = 1/a.

    log E X**2 - 2*log E X is an integral over the second derivative of log E X**n by n, for h up to 1.
    """
    if h <= 1.0:
        curve = 0.0
        for i in range(12):
            u = h * NODES[i]
            curve += WEIGHTS[i] * NODES[i] * (trigamma_fall(1.0 + u, b) + trigamma_fall(1.0 + (2.0 * h - u), b))
        spread = h * h * curve
        return 0.5 * (log(curve) + 0.5 * spread + log_sinhc(0.5 * spread))
    spread = log_spread(h, b)
    return 0.5 * (log(expm1(spread)) if spread < MOST else spread) - log(h)


def log_spread(h: float, b: float) -> float:
    """log E X**2 - 2*log E X, for an h = 1/a above 1."""
    if b < h:
        twice = b * (2.0 * harmonic(h) - harmonic(2.0 * h)) - log_gamma_bregman(1.0, 1.0 + b, b)
        second = log_gamma_bregman(1.0 + 2.0 * h, 1.0 + 2.0 * h + b, b)
        return twice + (2.0 * log_gamma_bregman(1.0 + h, 1.0 + h + b, b) - second)
    of_1 = log_gamma_bregman(1.0, 1.0 + 2.0 * h, 2.0 * h) - 2.0 * log_gamma_bregman(1.0, 1.0 + h, h)
    more = 1.0 + b
    second = log_gamma_bregman(more, more + 2.0 * h, 2.0 * h)
    return of_1 - (second - 2.0 * log_gamma_bregman(more, more + h, h))


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
        return self._of_formula(kumaraswamy_mean)

    @property
    def variance(self) -> Any:
        return self._of_formula(kumaraswamy_variance)


FAR = 1e150  # the product of two numbers below it is in the range


def served(x: float) -> bool:
    """Whether the nodes of the integrals are enough; some exponents further out ask for more."""
    return 1e-30 <= x <= 1e30


def by_integral(a: float, b: float, c: float, d: float) -> float:
    """KL of any two, an integral over the odds of X**a."""
    if not (served(b) and served(d) and 1e-60 <= c / a <= 1e60):
        return math.nan
    more = (c - a) / a
    shift = log_ratio(b, d, b - d) - log_ratio(c, a, c - a)
    return divergence(b, c / a, d, shift, more, d - 1.0, c / a, more)


@may_decline
@register_kl(Kumaraswamy, Kumaraswamy, compiled=True)
def kumaraswamy_kumaraswamy(a: float, b: float, c: float, d: float) -> float:
    """An integral over the odds of X**a, for E log(1 - X**c); closed forms for equal a and c, and where d or b is 1."""
    if a == c:
        return excess_of_products(d, 1.0, b, 1.0)
    if d == 1.0:
        return to_power(a, b, c)
    if b == 1.0 and max(a, c, d) < FAR and min(a, c) > 1.0 / FAR:  # X**c is a beta variable
        return beta_apart(a / c, b, b, d, (c - a) / c, d - b, difference_of_products(a, d, c, b) / (a + c))
    return by_integral(a, b, c, d)


@may_decline
@register_kl(Kumaraswamy, Beta, compiled=True)
def kumaraswamy_beta(a: float, b: float, c: float, d: float) -> float:
    """An integral over the odds of X**a, for E log(1 - X); closed forms where a, b or d is 1."""
    if a == 1.0 or b == 1.0:
        return beta_beta(a, b, c, d)
    return to_power(a, b, c) if d == 1.0 else beta_by_integral(a, b, c, d)


def beta_by_integral(a: float, b: float, c: float, d: float) -> float:
    """KL of any two, an integral over the odds of X**a."""
    if not (served(a) and served(b) and served(c) and served(d)):
        return math.nan
    if abs(d - 1.0) <= min(abs(c - 1.0), 0.5):
        shift = log_ratio(a, c, a - c) + log(b) + log_beta_beyond(c, d)
    elif abs(c - 1.0) <= 0.5:
        shift = log_ratio(b, d, b - d) + log(a) + log_beta_beyond(d, c)
    else:
        shift = log(a) + log(b) + log_beta(c, d)
    return divergence(b, c / a, d, shift, (c - a) / a, d - 1.0, 1.0 / a, (1.0 - a) / a)


@register_kl(Kumaraswamy, Uniform, compiled=True)
def kumaraswamy_uniform(a: float, b: float, low: float, high: float) -> float:
    """That to the standard uniform distribution, and the logarithm of the width; infinite unless 0 and 1 are inside."""
    if low > 0.0 or high < 1.0:
        return math.inf
    return to_standard_uniform(a, b) + log_width_around_0_to_1(low, high)


@register_kl(Kumaraswamy, Laplace, compiled=True)
@may_decline
def kumaraswamy_laplace(a: float, b: float, loc: float, scale: float) -> float:
    """The excess of E abs(X - loc)/scale, and what is left where that is 1."""
    log_mean = log_moment(a, b, 1.0)
    if loc <= 0.0 or loc >= 1.0:
        distance = abs((1.0 - loc) + expm1(log_mean) if log_mean > -0.5 else exp(log_mean) - loc)
    else:
        log_loc = log(loc) if loc < 0.5 else log1p(loc - 1.0)
        ratio = log_mean - log_loc
        off = loc * expm1(ratio) if abs(ratio) <= 1.0 else exp(log_mean) - loc
        y = exp(a * log_loc)
        if y * (1.0 + (1.0 + b) * a) <= 1.0 + a:
            distance = off + 2.0 * shortfall(a, b, loc, a * log_loc)
        else:
            distance = 2.0 * surplus(a, b, loc, y, -expm1(a * log_loc)) - off
    if a < 1.0 or b < 1.0:
        return to_laplace(distance, 1.0, scale, kumaraswamy_entropy(a, b), distance)
    # In units of the mean over a.
    entropy = (1.0 + EULER) + (stirling_slope(b) - 0.5 / b - log_moment_beyond(1.0 / a, b))
    return narrow_to_laplace(distance, 1.0, a * exp(-log_mean), scale, entropy, distance)
