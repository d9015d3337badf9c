"""The continuous Bernoulli distribution.

Its density on 0 to 1 is proportional to exp(eta*x), eta the log-odds. The logarithm of its integral is eta/2 + g(eta),

    g(eta) = log(sinh(eta/2)/(eta/2)),

an even function: its slope plus 1/2 is the mean, its curvature the variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.distributions.beta import Beta, beta_beta, beta_exponential
from klnumba.distributions.constraint import OPEN_PROBABILITY, REAL
from klnumba.distributions.distribution import Distribution, Parameter, Support
from klnumba.distributions.evaluate import evaluate
from klnumba.distributions.exponential import Exponential
from klnumba.distributions.laplace import Laplace
from klnumba.distributions.normal import Normal
from klnumba.distributions.odds import Odds, by_form, by_form_of_p, from_logits, from_probs, odds_arguments
from klnumba.distributions.registry import ByForm, Chosen, register_kl
from klnumba.distributions.uniform import Uniform, log_sinhc, log_width_around_0_to_1
from klnumba.formulas.bessel import NODES, WEIGHTS
from klnumba.formulas.divergences import log_ratio
from klnumba.formulas.elementary import exp, expm1, log, log1p
from klnumba.formulas.log_cells import phi
from klnumba.formulas.logarithms import log_twofold
from klnumba.formulas.quick import Slopes, with_quick_slopes
from klnumba.formulas.slopes_of_pairs import next_of_quotient, signed_log1p, sized
from klnumba.formulas.special import HALF_LOG_2PI, excess_of_products, exp_excess

# B(2n)/(2n)! from n = 1 on: the slope of g is the sum of SLOPE[n-1]*eta**(2n-1) (tests/reference/coefficients.py).
SLOPE = (
    0.08333333333333333,
    -0.001388888888888889,
    3.306878306878307e-05,
    -8.267195767195768e-07,
    2.08767569878681e-08,
    -5.284190138687493e-10,
    1.3382536530684679e-11,
    -3.3896802963225827e-13,
    8.586062056277845e-15,
    -2.174868698558062e-16,
    5.5090028283602295e-18,
    -1.3954464685812522e-19,
    3.534707039629467e-21,
    -8.953517427037546e-23,
    2.267952452337683e-24,
)  # the last three are for derivatives of the curvature
SMALL = 1.5  # up to here the series serves
STEEP = 37.0  # exp of it less 1 is the same to all digits
EVEN = 1e-20  # log-odds below it leave the density even to all digits
AT_AN_END = 1e100  # with log-odds beyond it the distribution is an exponential one


def log_odds(probs: float) -> float:
    """log(probs/(1 - probs)), also close to 1/2."""
    return log_ratio(probs, 1.0 - probs, 2.0 * probs - 1.0)


def occupancy(x: float) -> float:
    """1/(exp(x) - 1) for x > 0."""
    return 1.0 / expm1(x)


def energy(x: float) -> float:
    """x/(exp(x) - 1) for x > 0."""
    return x / expm1(x)


def slope(eta: float) -> float:
    """g'(eta): the mean, less 1/2."""
    x = abs(eta)
    if x > SMALL:
        found = 0.5 + (occupancy(x) - 1.0 / x)
        return found if eta > 0.0 else -found
    z = eta * eta
    total = SLOPE[14]
    for k in range(13, -1, -1):
        total = total * z + SLOPE[k]
    return eta * total


def curvature(eta: float) -> float:
    """g''(eta): the variance."""
    x = abs(eta)
    if x > SMALL:
        return scaled_curvature(x) / x / x
    z = eta * eta
    total = 29.0 * SLOPE[14]
    for k in range(13, -1, -1):
        total = total * z + (2.0 * k + 1.0) * SLOPE[k]
    return total


def scaled_curvature(x: float) -> float:
    """x*x*g''(x) for x beyond `SMALL`."""
    return 1.0 - energy(x) * (x / -expm1(-x))


def entropy_of(eta: float) -> float:
    """The differential entropy, in nats, from the log-odds."""
    x = abs(eta)
    if x <= SMALL:
        return log_sinhc(0.5 * x) - eta * slope(eta)
    return (1.0 - log(x)) + (log1p(-exp(-x)) - energy(x))


def mean_of(eta: float) -> float:
    """The mean, from the log-odds; small where that is far below 0."""
    return 0.5 + slope(eta) if eta >= -SMALL else -1.0 / eta - occupancy(-eta)


class ContinuousBernoulli(Odds):
    """The exponential family on 0 to 1 with density proportional to probs**x*(1 - probs)**(1 - x).

    SciPy has no counterpart.

    Parameters
    ----------
    probs : array_like, optional
        A number between 0 and 1; not the mean.
    logits : array_like, optional
        log(probs/(1 - probs)); exactly one of the two is given.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import ContinuousBernoulli, Uniform
    >>> round(float(kl.kl_divergence(ContinuousBernoulli(0.9), Uniform(0.0, 1.0))), 6)
    0.179631
    """

    parameters = ("probs",)
    probs = Parameter(OPEN_PROBABILITY, from_logits)
    logits = Parameter(REAL, from_probs)

    def __init__(self, probs: Any = None, logits: Any = None, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, **odds_arguments("ContinuousBernoulli", probs, logits))

    @property
    def support(self) -> Support:
        return Support(0.0, 1.0)

    @property
    def mean(self) -> Any:
        return self._of_natural(mean_of)

    @property
    def variance(self) -> Any:
        return self._of_natural(curvature)

    def entropy(self) -> Any:
        return self._of_natural(entropy_of)

    def _of_natural(self, formula: Callable[[float], float]) -> Any:
        return evaluate(formula, [self._column("logits")], self.batch_shape, self.dtype)

    def _column(self, name: str) -> np.ndarray:
        """Log-odds from probabilities keep their digits close to 1/2."""
        if name != "logits" or "logits" in self._given:
            return super()._column(name)
        probs = super()._column("probs")
        return np.asarray(evaluate(log_odds, [probs], probs.shape))


def of_log_odds(formula: Callable[..., float]) -> ByForm:
    """A rule for pairs with another family, from a formula of the log-odds."""

    def of_p(probs: float, *others: float) -> float:
        return formula(log_odds(probs), *others)

    def of_q(first: float, second: float, probs: float) -> float:
        return formula(first, second, log_odds(probs))

    def choose(p: Distribution, q: Distribution) -> Chosen:
        ours, theirs = (p, q.parameters) if isinstance(p, ContinuousBernoulli) else (q, p.parameters)
        form, chosen = ("logits", formula) if "logits" in ours._given else ("probs", of_p if ours is p else of_q)
        return (chosen, (form,), theirs) if ours is p else (chosen, theirs, (form,))

    return ByForm(choose, formula.__doc__)


def tilted(x: float) -> float:
    """g(x) - x/2: a linear part that cancels is left out for x > 0."""
    if abs(x) <= 1.0:
        return log_sinhc(0.5 * abs(x)) - 0.5 * x
    return max(-x, 0.0) + (log1p(-exp(-abs(x))) - log(abs(x)))


def from_to(a: float, b: float, d: float) -> float:
    """g(b) - g(a) - g'(a)*(b - a) >= 0, given d = b - a: KL of the log-odds a and b."""
    if abs(d) <= 0.5 * abs(a) and abs(a) > AT_AN_END:
        return phi(d / a)
    if abs(d) <= 0.5 * max(1.0, abs(a)):
        total = 0.0
        for i in range(12):
            total += WEIGHTS[i] * (1.0 - NODES[i]) * curvature(a + d * NODES[i])
        return d * d * total
    sign = 1.0 if a >= 0.0 else -1.0
    x = sign * a  # abs(a), with a slope at 0
    fall = slope(x) - 0.5 if x <= SMALL else occupancy(x) - 1.0 / x
    linear = fall * (sign * d) if abs(d) < math.inf else fall * (sign * b) - fall * x
    return tilted(sign * b) - (tilted(x) + linear)


def probs_slopes(p: float, q: float) -> Slopes:
    """Those by the log-odds, over p*(1 - p) and q*(1 - q)."""
    d = signed_log1p(q - p, p * (1.0 - q), q * (1.0 - p))
    (by_p, of_p), (by_q, of_q) = slopes_from_to(log_odds(p), log_odds(q), d)
    u, v = 1.0 / (p * (1.0 - p)), 1.0 / (q * (1.0 - q))
    return (by_p * u, of_p * u), (by_q * v, of_q * v)


@with_quick_slopes(probs_slopes)
def by_probs(p: float, q: float) -> float:
    """That which the logarithm of the integral of exp(eta*x) has beyond first order in the log-odds eta."""
    d = log_ratio(q, p, q - p) + log_ratio(1.0 - p, 1.0 - q, q - p)
    return from_to(log_odds(p), log_odds(q), d)


def logits_slopes(a: float, b: float) -> Slopes:
    """-g''(a)*(b - a) and g'(b) - g'(a)."""
    return slopes_from_to(a, b, b - a)


def slopes_from_to(a: float, b: float, d: float) -> Slopes:
    """The same, given d = b - a."""
    x, y = abs(a), abs(b)
    spread = curvature(a)
    more = 0.0 if x <= SMALL else 2.0 / x / x
    by_a = (-spread * d, more * abs(d))
    if x <= SMALL and y <= SMALL:
        return by_a, (d * slope_between(a, b), 0.0)
    if x > SMALL and y > SMALL and (a > 0.0) == (b > 0.0):
        gap, least, most = abs(d), min(x, y), max(x, y)
        flatter = -expm1(-gap) * occupancy(least) / -expm1(-most)
        rise, size = sized(gap / least / most, -flatter)
        return by_a, (rise if d > 0.0 else -rise, size)
    return by_a, sized(slope(b), -slope(a))


def slope_between(a: float, b: float) -> float:
    """(g'(b) - g'(a))/(b - a) of small log-odds: with g'(x) = x*f(x*x), f(b*b) + a*(a + b) times f's rise."""
    x, y = a * a, b * b
    value, rise = SLOPE[14], 0.0
    for k in range(13, -1, -1):
        value, rise = next_of_quotient(x, y, value, rise, SLOPE[k])
    return value + a * (a + b) * rise


@with_quick_slopes(logits_slopes)
def by_logits(a: float, b: float, a_low: float = 0.0, b_low: float = 0.0) -> float:
    """`by_probs` from log-odds."""
    return from_to(a, b, (b - a) + (b_low - a_low))


register_kl(ContinuousBernoulli, ContinuousBernoulli)(by_form(by_probs, by_logits))


@register_kl(ContinuousBernoulli, Uniform)
@of_log_odds
def continuous_bernoulli_uniform(eta: float, low: float, high: float) -> float:
    """That to the standard uniform distribution, and the logarithm of the width; infinite unless 0 and 1 are inside."""
    if low > 0.0 or high < 1.0:
        return math.inf
    return from_to(eta, 0.0, -eta) + log_width_around_0_to_1(low, high)


def to_exponential(eta: float, rate: float, d: float) -> float:
    """KL of log-odds of -rate - d to an exponential distribution, which may be much less than a rounding of these."""
    beyond = log1p(-exp(-rate)) if rate > 1.0 else log(-expm1(-rate))
    return from_to(eta, -rate, d) - beyond


def probs_to_exponential(probs: float, rate: float) -> float:
    """That of the log-odds from -rate, and -log of the probability that q is below 1."""
    high, low = log_twofold(probs)
    return to_exponential(log_odds(probs), rate, -((rate + high) + (low - log1p(-probs))))


def logits_to_exponential(eta: float, rate: float) -> float:
    """`probs_to_exponential` from log-odds."""
    return to_exponential(eta, rate, -rate - eta)


register_kl(ContinuousBernoulli, Exponential)(by_form_of_p(probs_to_exponential, logits_to_exponential, Exponential))


@register_kl(ContinuousBernoulli, Normal)
@of_log_odds
def continuous_bernoulli_normal(eta: float, loc: float, scale: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    t = ((0.5 - loc) + slope(eta)) / scale
    x = abs(eta)
    if x <= SMALL:
        variance = curvature(eta)
        rest = 0.5 * log(variance) - entropy_of(eta)
        variances = excess_of_products(variance, 1.0, scale, scale)
    else:
        variance = scaled_curvature(x)
        rest = 0.5 * log(variance) - (1.0 + (log1p(-exp(-x)) - energy(x)))
        variances = excess_of_products(variance, 1.0, x * scale, x * scale)
    return 0.5 * (variances + t * t) + (rest + (HALF_LOG_2PI + 0.5))


def shortfall(eta: float, m: float) -> float:
    """E max(m - X, 0) for m from 0 to 1."""
    x = eta * m
    if abs(eta) < EVEN:
        return 0.5 * m * m
    if eta < STEEP:
        return exp_excess(x) / expm1(eta) / eta
    if x < 600.0:
        return exp_excess(x) * exp(-eta) / eta
    return exp(eta * (m - 1.0)) / eta


def distance_from(eta: float, m: float) -> float:
    """E abs(X - m)."""
    off = mean_of(eta) - m if m < 0.5 else (1.0 - m) - mean_of(-eta)
    if m <= 0.0 or m >= 1.0:
        return abs(off)
    return off + 2.0 * shortfall(eta, m) if off >= 0.0 else 2.0 * shortfall(-eta, 1.0 - m) - off


@register_kl(ContinuousBernoulli, Laplace)
@of_log_odds
def continuous_bernoulli_laplace(eta: float, loc: float, scale: float) -> float:
    """The excess of E abs(X - loc)/scale, and what is left where that is 1."""
    distance = distance_from(eta, loc)
    return excess_of_products(distance, 1.0, scale, 1.0) + (1.0 + log(2.0 * distance) - entropy_of(eta))


@register_kl(Uniform, ContinuousBernoulli)
@of_log_odds
def uniform_continuous_bernoulli(low: float, high: float, eta: float) -> float:
    """-log(width), the logarithm of the integral of exp(eta*x), less eta times the mean; infinite outside of 0 to 1."""
    if low < 0.0 or high > 1.0:
        return math.inf
    width = high - low
    narrow = -log(width) if width <= 0.5 else -log1p(-(low + (1.0 - high)))
    x = abs(eta)
    if x <= 1.0:
        return narrow + (log_sinhc(0.5 * x) + 0.5 * eta * ((1.0 - high) - low))
    beyond = 1.0 - high if eta > 0.0 else low
    return x * (beyond + 0.5 * width) + (narrow + (log1p(-exp(-x)) - log(x)))


@register_kl(Beta, ContinuousBernoulli)
@of_log_odds
def beta_continuous_bernoulli(a: float, b: float, eta: float) -> float:
    """That to the standard uniform, or to an exponential distribution, and the logarithm of an integral."""
    x = abs(eta)
    if x <= 1.0:
        return max(beta_beta(a, b, 1.0, 1.0) + (log_sinhc(0.5 * x) + 0.5 * eta * ((b - a) / (a + b))), 0.0)
    whole = beta_exponential(b, a, x) if eta > 0.0 else beta_exponential(a, b, x)
    return max(whole + log1p(-exp(-x)), 0.0)
