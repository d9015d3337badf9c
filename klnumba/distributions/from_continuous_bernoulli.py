"""KL of a continuous Bernoulli distribution from families with a mean square or E exp(-X/scale), from its log-odds."""

from __future__ import annotations

import math

from klnumba.distributions.continuous_bernoulli import (
    SMALL,
    ContinuousBernoulli,
    curvature,
    energy,
    entropy_of,
    from_to,
    mean_of,
    of_log_odds,
    scaled_curvature,
    tilted,
)
from klnumba.distributions.gumbel import Gumbel
from klnumba.distributions.half_normal import HalfNormal
from klnumba.distributions.moyal import Moyal
from klnumba.distributions.registry import register_kl
from klnumba.distributions.to_half_line import OF_HALF_LINE
from klnumba.distributions.to_moyal import from_gumbel
from klnumba.formulas.elementary import exp, log, log1p
from klnumba.formulas.ranges import excess_of_square
from klnumba.formulas.special import exp_excess, log_of_products


def entropy_in_parts(eta: float) -> tuple[float, float]:
    """The entropy of size*X, and the size: abs(eta) where the distribution is as narrow as that makes it."""
    x = abs(eta)
    return (entropy_of(eta), 1.0) if x <= SMALL else (1.0 + (log1p(-exp(-x)) - energy(x)), x)


@register_kl(ContinuousBernoulli, HalfNormal)
@of_log_odds
def continuous_bernoulli_half_normal(eta: float, scale: float) -> float:
    """Half the excess of the ratio of mean squares, and what is left where they agree."""
    entropy, size = entropy_in_parts(eta)
    if eta < -SMALL:
        mean = 1.0 - energy(size)
        root = math.sqrt(scaled_curvature(size) + mean * mean)
        squares = excess_of_square(root, 1.0, scale, size)
        rest = log(root) - entropy
    else:
        mean = mean_of(eta)
        root = math.sqrt(curvature(eta) + mean * mean)
        squares = excess_of_square(root, 1.0, scale, 1.0)
        rest = log_of_products(root, size, 1.0, 1.0) - entropy
    return 0.5 * squares + (OF_HALF_LINE + rest)


def to_gumbel(eta: float, loc: float, scale: float) -> float:
    """exp(v) - 1 - v, v the logarithm of E exp((loc - X)/scale), and what is left where that is 0.

    The integral of exp(x*t), t from 0 to 1, is exp(x) times that of -x: the one of both is taken whose mean is small.
    """
    rate = 1.0 / scale
    other = eta - rate
    if other > 0.0:
        v = (loc - 1.0) / scale + (tilted(other) - tilted(eta))
    else:
        v = loc / scale + (tilted(-other) - tilted(-eta))
    entropy, size = entropy_in_parts(eta)
    beyond = from_to(eta, other, -rate)
    return exp_excess(v) + (1.0 + (beyond + (log_of_products(scale, size, 1.0, 1.0) - entropy)))


register_kl(ContinuousBernoulli, Gumbel)(of_log_odds(to_gumbel))


@register_kl(ContinuousBernoulli, Moyal)
@of_log_odds
def continuous_bernoulli_moyal(eta: float, loc: float, scale: float) -> float:
    """Half that to the Gumbel distribution of q's parameters, and half of log(2*pi*scale) less the entropy."""
    return from_gumbel(to_gumbel(eta, loc, scale), entropy_of(eta), log(scale))
