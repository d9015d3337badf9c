"""The beta distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved, unscaled
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.gamma import Gamma
from klnumba.distributions.gumbel import Gumbel
from klnumba.distributions.laplace import Laplace, narrow_to_laplace, to_laplace
from klnumba.distributions.normal import Normal
from klnumba.distributions.registry import register_kl
from klnumba.formulas.bessel import NODES, WEIGHTS
from klnumba.formulas.cumulants import beta_moment
from klnumba.formulas.elementary import log, log1p, split_exponent, two_sum
from klnumba.formulas.exponents import difference_over_twofold, exp_excess_of_difference
from klnumba.formulas.integrals import beta_distance
from klnumba.formulas.kumaraswamy_cells import log_beta
from klnumba.formulas.log_cells import phi
from klnumba.formulas.primitives import fma
from klnumba.formulas.quick import (
    Slopes,
    quick_difference,
    quick_log_gamma_bregman,
    with_quick_bends,
    with_quick_form,
    with_quick_slopes,
)
from klnumba.formulas.ranges import FAR, TINY, difference_over, product, times_excess
from klnumba.formulas.slopes_of_pairs import (
    NONE,
    beta_bends,
    beta_slopes_by_p,
    beta_slopes_by_q,
    by_normal,
    digamma_rise,
    log_of_ordinary_ratio,
    sized,
    sized_three,
    towards_normal,
    trigamma_of,
)
from klnumba.formulas.special import (
    EULER,
    HALF_LOG_2PI,
    LARGE,
    STIRLING,
    difference_of_products,
    digamma,
    digamma_bregman,
    excess,
    excess_of_nearly,
    log_gamma_bregman,
    log_of_products,
    power_of_two,
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
    return 0.5 + HALF_LOG_2PI + 0.5 * (log_of_products(a, b, s, s) - log(s)) - ((first + second) - both)


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
        return self._full(self._shares()[0])

    @property
    def variance(self) -> Any:
        mean, other, total, unit = self._shares()
        return self._full(mean * other / unit / (total + 1.0 / unit))

    def _shares(self) -> tuple[Any, Any, Any, Any]:
        """The mean, what is left to 1, and the sum of the parameters in units in which it is not infinite."""
        a, b = self.concentration1, self.concentration0
        most = np.maximum(a, b)
        total = a / most + b / most
        unit = np.maximum(most, 1.0)
        return a / most / total, b / most / total, most / unit * total, unit

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.concentration1, self.concentration0), 0.0, 1.0

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        unscaled(scale, cls.__name__)
        return {"concentration1": shapes[0], "concentration0": shapes[1]}


def one_small(a: float, b: float, c: float, d: float, first: float, second: float) -> float:
    """`beta_apart` for an `a` that is less than half of b, d and 1/2.

    With G(x, y) the remainder of log-gamma, G(b, d) - G(b + a, d + a) is an integral over that of digamma, and
    G(b + a, d + c) = G(b + a, d + a) + G(d + a, d + c) + (digamma(d + a) - digamma(b + a))*(c - a).
    """
    total = 0.0
    for i in range(12):
        u = a * NODES[i]
        total += WEIGHTS[i] * digamma_bregman(b + u, d + u, second)
    if abs(second) <= 0.5 * b:
        rise = times_trigamma(second, b + a) - digamma_bregman(b + a, d + a, second)
    else:
        rise = digamma(d + a) - digamma(b + a)
    other = log_gamma_bregman(d + a, d + c, first) + rise * first
    return max(a * total + (log_gamma_bregman(a, c, first) - other), 0.0)


def times_trigamma(times: float, x: float) -> float:
    """times*trigamma(x), also where trigamma(x) alone is beyond the numbers."""
    return times / x / x if x < 1e-30 else trigamma(x) * times


def quick_beta_beta(a: float, b: float, c: float, d: float) -> tuple[float, bool]:
    """`beta_beta` of ordinary numbers: the remainders of log-gamma of both exponents, less that of their sum."""
    one, one_serves = quick_log_gamma_bregman(a, c, c - a)
    other, other_serves = quick_log_gamma_bregman(b, d, d - b)
    both, both_serve = quick_log_gamma_bregman(a + b, c + d, (c - a) + (d - b))
    value, serves = quick_difference(one + other, both)
    return value, serves & one_serves & other_serves & both_serve


def larger_unit(most: float) -> float:
    """The power of two that takes exponents, of which this is the largest, to 2**-85 if only their ratios count."""
    if most >= 1e-120:
        return 1.0
    _, k = split_exponent(most)
    return power_of_two(np.int64(-85) - k)


def beta_beta_slopes(a: float, b: float, c: float, d: float) -> Slopes:
    """By a (a - c)*trigamma(a) - (s - t)*trigamma(s), by c digamma(c) - digamma(a) - [digamma(t) - digamma(s)].

    s and t are the sums of the exponents of p and of q; the others by symmetry.
    """
    off = difference_of_products(a, d, c, b)
    first, second = c - a, d - b
    return (
        beta_slopes_by_p(a, b, first, second, off),
        beta_slopes_by_p(b, a, second, first, -off),
        beta_slopes_by_q(a, b, c, d, first, second, off),
        beta_slopes_by_q(b, a, d, c, second, first, -off),
    )


def beta_beta_bends(
    a: float, b: float, c: float, d: float, move_a: float, move_b: float, move_c: float, move_d: float
) -> Slopes:
    """Those by a and c, and by symmetry the others."""
    by_a, by_c = beta_bends(a, b, c, d, b - d, move_a, move_b, move_c, move_d, move_b - move_d)
    by_b, by_d = beta_bends(b, a, d, c, a - c, move_b, move_a, move_d, move_c, move_a - move_c)
    return by_a, by_b, by_c, by_d, NONE, NONE, NONE, NONE


@register_kl(Beta, Beta, compiled=True)
@with_quick_bends(beta_beta_bends)
@with_quick_slopes(beta_beta_slopes)
@with_quick_form(quick_beta_beta)
def beta_beta(a: float, b: float, c: float, d: float) -> float:
    """The remainders of log-gamma of both exponents, less that of their sum, each split by Stirling's formula."""
    larger = larger_unit(max(max(a, b), max(c, d)))
    a, b, c, d = a * larger, b * larger, c * larger, d * larger
    s = a + b
    _, k = split_exponent(s)
    unit = power_of_two(-k)  # keeps the products in range
    off = difference_of_products(a * unit, d, c * unit, b) / (s * unit)
    return beta_apart(a, b, c, d, c - a, d - b, off)


def mean_log(times: float, a: float, b: float) -> float:
    """So many times E log X of a beta variable."""
    s = a + b
    if s < 1e-30:
        return -(times * (b / s)) / a
    if b < a:
        return times * (digamma_bregman(a, s, b) - trigamma(a) * b)
    if a < 1.0:
        return times * (digamma(a) - digamma(s))
    return times * (log_of_products(a, 1.0, s, 1.0) + ((0.5 / s - stirling_slope(s)) - (0.5 / a - stirling_slope(a))))


def log_beta_of(a: float, b: float) -> float:
    """The logarithm of the beta function, of any exponents."""
    if max(a, b) < TINY:
        return log1p(min(a, b) / max(a, b)) - log(min(a, b))
    return log_beta(a, b)


def beta_extreme(a: float, b: float, c: float, d: float) -> float:
    """`beta_beta` where terms of the other form leave the range of numbers; of fewer digits where it is small."""
    if a == c and b == d:
        return 0.0
    if min(a, b) >= 1.0:
        found = (log_beta_of(c, d) - beta_entropy(a, b)) - (mean_log(c - 1.0, a, b) + mean_log(d - 1.0, b, a))
    else:
        found = (log_beta_of(c, d) - log_beta_of(a, b)) + (mean_log(a - c, a, b) + mean_log(b - d, b, a))
    return max(found, 0.0) if found == found else math.inf


def beta_apart(a: float, b: float, c: float, d: float, first: float, second: float, off: float) -> float:
    """`beta_beta`, given first = c - a, second = d - b and off = (a*d - c*b)/(a + b).

    Of the first parts of Stirling's formula two excesses are left, those of the means a/(a + b) and b/(a + b) over
    those of q.
    """
    if a < 0.5 * min(0.5, b, d):
        found = one_small(a, b, c, d, first, second)
    elif b < 0.5 * min(0.5, a, c):
        found = one_small(b, a, d, c, second, first)
    else:
        found = by_means(a, b, c, d, first, second, off)
    return found if found < math.inf else beta_extreme(a, b, c, d)


def by_means(a: float, b: float, c: float, d: float, first: float, second: float, off: float) -> float:
    """`beta_apart` for an a and a b that are not that small."""
    s = a + b
    t = c + d
    both = first + second
    means = c * excess(c, a * (t / s), off) + d * excess(d, b * (t / s), -off)
    halves = excess(a, c, first) + excess(b, d, second) - excess(s, t, both)
    rest = stirling_bregman(a, c, first) + stirling_bregman(b, d, second) - stirling_bregman(s, t, both)
    return max(means + (0.5 * halves + rest), 0.0)


def beta_beyond_gamma(a: float, b: float) -> float:
    """KL(Beta(a, b) || Gamma(a, a + b)), about a*(a + 1)/(4*b*b) for a large b, less that of the variances.

    The variances' part is half the excess of b/(a + b).
    """
    least = min(TINY, 1e-50 * b)  # below it, it is proportional to a
    times = a / least if a < least else 1.0
    a = max(a, least)
    s = a + b
    there = stirling_bregman(s, b, -a)
    slopes = -(there + stirling_bregman(b, s, a)) / a if a <= b else stirling_slope(b) - stirling_slope(s)
    return times * (0.5 * (a / b) / s + (a * stirling_slope(s) + ((b - 1.0) * slopes - there)))


FEW = 16.0  # how many times smaller an exponent is that hardly moves the mean


def beta_gamma_slopes(a: float, b: float, shape: float, rate: float) -> Slopes:
    """By a (a - shape)*trigamma(a) - (s - shape - 1)*trigamma(s) + rate*b/s**2, s = a + b, and by b the like.

    By the shape digamma(shape) - digamma(a) + digamma(s) - log(rate), by the rate a/s - shape/rate.
    """
    s = a + b
    u = 1.0 / s
    one, other, both = trigamma_of(a), trigamma_of(b), trigamma_of(s)
    less = ((a - shape) + (b - 1.0)) * both
    loss = (abs(a - shape) + abs(b - 1.0)) * both
    by_a, of_a = sized_three((a - shape) * one, -less, rate * b * u * u)
    by_b, of_b = sized_three((b - 1.0) * other, -less, -rate * a * u * u)
    up, rest = digamma_rise(a, shape, shape - a)
    first = log_of_ordinary_ratio(shape + up, a + up, shape - a) + rest
    up, rest = digamma_rise(1.0, s, s - 1.0)
    second = log_of_ordinary_ratio(s + up, 1.0 + up, s - 1.0) + rest
    by_shape, of_shape = sized_three(first, second - EULER, -log(rate))
    of_shape += abs(second) + EULER
    return (by_a, of_a + loss), (by_b, of_b + loss), (by_shape, of_shape), sized(a * u, -shape / rate)


@register_kl(Beta, Gamma, compiled=True)
@with_quick_slopes(beta_gamma_slopes)
def beta_gamma(a: float, b: float, shape: float, rate: float) -> float:
    """The excesses of the means' and the variances' ratios, and what is left where both agree."""
    s, low = two_sum(a, b)
    d = shape - a
    means = times_excess(shape, a, rate, shape, s, -low / s, 0)
    if FEW * b < a and FEW * s < shape and a * b < 0.1:  # of the slopes at a and s only the difference counts
        slopes = -(mean_log(1.0, a, b) + log1p(b / a))
        variances = 0.5 * excess(s, b, -a) - 0.5 * log(shape / a)
        beyond = (stirling(shape) - stirling(a)) + d * slopes
    else:
        variances = 0.5 * excess_of_nearly(b, shape, a, s, -low / s, 0)
        beyond = stirling_bregman(a, shape, d) + d * stirling_slope(s)
    found = means + (variances + (beta_beyond_gamma(a, b) + beyond))
    return found if abs(found) < math.inf else means + beta_gamma_extreme(a, b, shape)


def beta_gamma_extreme(a: float, b: float, shape: float) -> float:
    """KL to the gamma distribution of this shape and the same mean, for any exponents; of fewer digits where small."""
    s = a + b
    size = (HALF_LOG_2PI - 0.5 * log(shape)) + stirling(shape)
    rest = mean_log(a - shape, a, b) + mean_log(b - 1.0, b, a)
    found = size - shape * log_of_products(s, 1.0, a, 1.0) + (rest - log_beta_of(a, b))
    return max(found, 0.0) if found == found else math.inf


def beta_exponential_slopes(a: float, b: float, rate: float) -> Slopes:
    """Those to the gamma distribution of shape 1."""
    by_a, by_b, _, by_rate = beta_gamma_slopes(a, b, 1.0, rate)
    return by_a, by_b, by_rate


@register_kl(Beta, Exponential, compiled=True)
@with_quick_slopes(beta_exponential_slopes)
def beta_exponential(a: float, b: float, rate: float) -> float:
    """That to the gamma distribution of shape 1."""
    return beta_gamma(a, b, 1.0, rate)


def stirling_tail(x: float, m: float) -> float:
    """(x - m)*e'(x) - e(x) for x from `LARGE` on, e(x) = c(x) - 1/(12*x)."""
    y = 1.0 / x
    z = y * y
    value = 0.0
    slope = 0.0
    for k in range(9, 0, -1):
        value = value * z + STIRLING[k]
        slope = slope * z + (2.0 * k + 1.0) * STIRLING[k]
    return -(y * z * value + (x - m) * (z * z * slope))


def negentropy_of_one(x: float, m: float) -> float:
    """1/(2*x) + (x - m)*c'(x) - c(x)."""
    return 0.5 / x + ((x - m) * stirling_slope(x) - stirling(x))


def beta_negentropy(a: float, b: float) -> float:
    """KL to the normal distribution of the same mean and variance.

    For large exponents all that is of first order in their inverses is (a - b)**2/(3*a*b*(a + b)).
    """
    s = a + b
    if a < LARGE or b < LARGE:
        both = 1.0 / s + ((s - 2.0) * stirling_slope(s) - stirling(s))
        return (negentropy_of_one(a, 1.0) + negentropy_of_one(b, 1.0)) - (both + 0.5 * log1p(1.0 / s))
    skew = (a - b) / a * ((a - b) / b) / (3.0 * s)
    squares = (b / s / a * (1.0 / a + 1.0 / s) + a / s / b * (1.0 / b + 1.0 / s)) / 12.0
    rest = stirling_tail(a, 1.0) + stirling_tail(b, 1.0) - stirling_tail(s, 2.0)
    return skew + (0.5 * phi(1.0 / s) + squares + rest)


def beta_normal_slopes(a: float, b: float, loc: float, scale: float) -> Slopes:
    """By the chain rule, from the slopes of the entropy, the mean a/s and the variance a*b/(s*s*(s + 1)), s = a + b."""
    s = a + b
    u, v, w = 1.0 / scale, 1.0 / s, 1.0 / (s + 1.0)
    t, of_t = sized(a * v, -loc)
    variance = a * v * (b * v) * w
    both, size = (s - 2.0) * trigamma_of(s), (s + 2.0) * trigamma_of(s)
    one, other = trigamma_of(a), trigamma_of(b)
    by_a = ((a - 1.0) * one - both, abs(a - 1.0) * one + size)
    by_b = ((b - 1.0) * other - both, abs(b - 1.0) * other + size)
    half = 0.5 * variance
    var_a, var_b = sized_three(half / a, -2.0 * half * v, -half * w), sized_three(half / b, -2.0 * half * v, -half * w)
    first = towards_normal(by_a, var_a, b * v * v, t, of_t, u * u)
    second = towards_normal(by_b, var_b, -a * v * v, t, of_t, u * u)
    by_loc, by_scale = by_normal(variance, t, of_t, u)
    return first, second, by_loc, by_scale


@register_kl(Beta, Normal, compiled=True)
@with_quick_slopes(beta_normal_slopes)
def beta_normal(a: float, b: float, loc: float, scale: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    s, low = two_sum(a, b)
    t = difference_over(a, 1.0, loc, s, s, scale)
    t -= loc * (low / s) / scale if abs(t) < FAR else 0.0
    over, low_over, k_over = product(a, b)
    unit, low_unit, k = product(s, scale)
    one_more, low_more = two_sum(s, 1.0)
    below, low_below, k_below = product(unit, one_more)
    off_unit = low_unit / unit + low / s
    off = low_over / over - (2.0 * off_unit + (low_below / below + (low + low_more) / one_more))
    variances = excess_of_nearly(over, 1.0, unit, below, off, k_over - (2 * k + k_below))
    return 0.5 * (variances + t * t) + beta_negentropy(a, b)


@register_kl(Beta, Laplace, compiled=True)
def beta_laplace(a: float, b: float, loc: float, scale: float) -> float:
    """The excess of E abs(X - loc)/scale, and what is left where that is 1."""
    s = a + b
    distance = beta_distance(a, b, loc)
    narrow = math.sqrt(s / a) * math.sqrt(s / b) * math.sqrt(1.0 + s)
    entropy = (0.5 + HALF_LOG_2PI) - beta_negentropy(a, b)
    if narrow < FAR:
        return narrow_to_laplace(distance, 1.0, narrow, scale, entropy, distance)
    deviation = 0.5 * (log_of_products(a, b, s, s) - log1p(s))
    return to_laplace(distance, 1.0, scale, entropy + deviation, distance)


def entropy_in_units(a: float, b: float, unit: float) -> float:
    """That of X/unit, from its standard deviation, of which no logarithms of both cancel."""
    s = a + b
    deviation = math.sqrt(a / s) * math.sqrt(b / s) / math.sqrt(1.0 + s) / unit
    if not 1e-250 < deviation < 1e250:
        return beta_entropy(a, b) - log(unit)
    return log(deviation) + ((0.5 + HALF_LOG_2PI) - beta_negentropy(a, b))


@register_kl(Beta, Gumbel, compiled=True)
def beta_gumbel(a: float, b: float, loc: float, scale: float) -> float:
    """exp(v) - 1 - v, v the logarithm of E exp((loc - X)/scale), a confluent hypergeometric function, and the rest."""
    z = 1.0 / scale
    peak, low, size, mean = beta_moment(a, b, z, fma(-z, scale, 1.0) / scale)
    off, rest = difference_over_twofold(loc, peak, scale)
    if abs(off + size) == math.inf:
        return math.inf
    rise = exp_excess_of_difference(size, 0.0, -off, low / scale - rest)
    return rise + ((1.0 - entropy_in_units(a, b, scale)) + (size + mean))
