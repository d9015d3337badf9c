"""Pairs with a Moyal distribution: for every family with a pair to Gumbel, as both need E X and E exp(-X/scale).

With z = (X - loc)/scale, minus the logarithm of a Gumbel density is z + exp(-z) + log(scale), that of a Moyal density
(z + exp(-z))/2 + log(scale) + log(2*pi)/2: so the second divergence is half the first, and half of what the entropy
leaves of log(scale) + log(2*pi).
"""

from __future__ import annotations

import math

from klnumba.distributions.beta import Beta, beta_gumbel, entropy_in_units
from klnumba.distributions.exponential import Exponential, exponential_entropy, exponential_gumbel
from klnumba.distributions.gamma import Gamma, gamma_entropy, gamma_gumbel
from klnumba.distributions.gumbel import Gumbel, gumbel_entropy, gumbel_gumbel, laplace_gumbel, normal_gumbel
from klnumba.distributions.laplace import Laplace, laplace_entropy
from klnumba.distributions.logistic import Logistic, logistic_entropy, logistic_gumbel
from klnumba.distributions.moyal import Moyal, moyal_exponent
from klnumba.distributions.normal import Normal, normal_entropy
from klnumba.distributions.pareto import Pareto, pareto_entropy, pareto_gumbel
from klnumba.distributions.registry import register_kl
from klnumba.distributions.uniform import Uniform, uniform_gumbel
from klnumba.formulas.exponents import difference_over_twofold
from klnumba.formulas.ranges import in_range
from klnumba.formulas.special import EULER, LN2, log_gamma_bregman, log_of_products

LOG_2PI = 1.8378770664093456
LARGEST = 1e306  # its log-gamma is infinite
OF_GUMBEL = -1.0541199559354117  # 1 - log(2*pi)/2 - (1 + EULER + log(2))/2


def from_gumbel(gumbel: float, entropy: float, log_scale: float) -> float:
    """From the divergence to the Gumbel distribution of the same loc and scale.

    The entropy and the scale's logarithm are those in units of p, where neither is large.
    """
    return 0.5 * max(gumbel + ((log_scale - entropy) + LOG_2PI), 0.0)


@register_kl(Normal, Moyal, compiled=True)
def normal_moyal(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """Half that to the Gumbel distribution of q's parameters, and half of log(2*pi*scale_q) less the entropy."""
    return from_gumbel(
        normal_gumbel(loc_p, scale_p, loc_q, scale_q),
        normal_entropy(0.0, 1.0),
        log_of_products(scale_q, 1.0, scale_p, 1.0),
    )


@register_kl(Laplace, Moyal, compiled=True)
def laplace_moyal(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The same; infinite unless scale_p < scale_q."""
    return from_gumbel(
        laplace_gumbel(loc_p, scale_p, loc_q, scale_q),
        laplace_entropy(0.0, 1.0),
        log_of_products(scale_q, 1.0, scale_p, 1.0),
    )


@register_kl(Logistic, Moyal, compiled=True)
def logistic_moyal(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The same; infinite unless scale_p < scale_q."""
    return from_gumbel(
        logistic_gumbel(loc_p, scale_p, loc_q, scale_q),
        logistic_entropy(0.0, 1.0),
        log_of_products(scale_q, 1.0, scale_p, 1.0),
    )


@register_kl(Gumbel, Moyal, compiled=True)
def gumbel_moyal(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """Half that to the Gumbel distribution of q's parameters, and half of log(2*pi*scale_q) less the entropy."""
    return from_gumbel(
        gumbel_gumbel(loc_p, scale_p, loc_q, scale_q),
        gumbel_entropy(0.0, 1.0),
        log_of_products(scale_q, 1.0, scale_p, 1.0),
    )


@register_kl(Exponential, Moyal, compiled=True)
def exponential_moyal(rate: float, loc: float, scale: float) -> float:
    """Half that to the Gumbel distribution of q's parameters, and half of log(2*pi*scale) less the entropy."""
    return from_gumbel(
        exponential_gumbel(rate, loc, scale), exponential_entropy(1.0), log_of_products(scale, rate, 1.0, 1.0)
    )


@register_kl(Gamma, Moyal, compiled=True)
def gamma_moyal(shape: float, rate: float, loc: float, scale: float) -> float:
    """Half that to the Gumbel distribution of q's parameters, and half of log(2*pi*scale) less the entropy."""
    return from_gumbel(
        gamma_gumbel(shape, rate, loc, scale), gamma_entropy(shape, 1.0), log_of_products(scale, rate, 1.0, 1.0)
    )


@register_kl(Uniform, Moyal, compiled=True)
def uniform_moyal(low: float, high: float, loc: float, scale: float) -> float:
    """Half that to the Gumbel distribution of q's parameters, and half of log(2*pi*scale) less the entropy."""
    return from_gumbel(
        uniform_gumbel(low, high, loc, scale), 0.0, log_of_products(0.5, scale, 0.5 * high - 0.5 * low, 1.0)
    )


@register_kl(Beta, Moyal, compiled=True)
def beta_moyal(a: float, b: float, loc: float, scale: float) -> float:
    """Half that to the Gumbel distribution of q's parameters, and half of log(2*pi*scale) less the entropy."""
    return from_gumbel(beta_gumbel(a, b, loc, scale), entropy_in_units(a, b, scale), 0.0)


@register_kl(Pareto, Moyal, compiled=True)
def pareto_moyal(scale_p: float, alpha: float, loc: float, scale_q: float) -> float:
    """The same; infinite where p has no mean."""
    return from_gumbel(
        pareto_gumbel(scale_p, alpha, loc, scale_q),
        pareto_entropy(1.0, alpha),
        log_of_products(scale_q, 1.0, scale_p, 1.0),
    )


@register_kl(Moyal, Gumbel, compiled=True)
def moyal_gumbel(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """exp(v) - 1 - v, v the logarithm of E exp((loc_q - X)/scale_q), and what is left where that is 0."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    r = scale_p / scale_q
    if r > LARGEST:
        return math.inf
    curve = log_gamma_bregman(0.5, r + 0.5, r)
    m, low = difference_over_twofold(loc_p, loc_q, scale_q)
    far = moyal_exponent(curve - (EULER + LN2) * r, r, scale_p, scale_q, m, low)
    return far + max(OF_GUMBEL + (curve - log_of_products(scale_p, 1.0, scale_q, 1.0)), 0.0)
