"""KL to a Lindley distribution, of which E log(1 + X) is needed."""

from __future__ import annotations

import math

from klnumba.distributions.exponential import Exponential
from klnumba.distributions.from_lindley import CLOSE, LARGE_RATE, from_close
from klnumba.distributions.lindley import Lindley
from klnumba.distributions.registry import register_kl
from klnumba.distributions.uniform import Uniform, mean_log_excess, uniform_exponential
from klnumba.formulas.elementary import expm1, log, log1p, two_sum
from klnumba.formulas.integrals import SERIES_BELOW, entire_exponential_integral, scaled_exponential_integral
from klnumba.formulas.primitives import fma
from klnumba.formulas.special import EULER, excess_of_products, log_of_products


@register_kl(Uniform, Lindley, compiled=True)
def uniform_lindley(low: float, high: float, rate: float) -> float:
    """That to the exponential distribution, and log(1 + 1/rate) less E log(1 + X); infinite below 0."""
    if low < 0.0:
        return math.inf
    mean = 1.0 + (0.5 * low + 0.5 * high)
    lost = mean_log_excess(min(0.5 * (high - low) / mean, 1.0))
    return uniform_exponential(low, high, rate) + (log_of_products(1.0 + rate, 1.0, rate, mean) + lost)


def mean_log_beyond(rate_p: float, rate_q: float) -> float:
    """log(1 + 1/rate_q) - E log(1 + X) of an exponential variable, whose mean is a scaled exponential integral."""
    if rate_p > SERIES_BELOW:
        return log1p(1.0 / rate_q) - scaled_exponential_integral(rate_p)
    rise = expm1(rate_p)
    rest = (1.0 + rise) * (entire_exponential_integral(rate_p) - EULER) - rise * log(rate_p)
    return log_of_products(1.0 + rate_q, rate_p, rate_q, 1.0) - rest


def to_lindley(rate_p: float, rate_q: float) -> float:
    """The excess of rate_q/rate_p, and log(1 + 1/rate_q) less E log(1 + X)."""
    return excess_of_products(rate_q, 1.0, rate_p, 1.0) + mean_log_beyond(rate_p, rate_q)


@register_kl(Exponential, Lindley, compiled=True)
def exponential_lindley(rate_p: float, rate_q: float) -> float:
    """The excess of rate_q/rate_p, and log(1 + 1/rate_q) less E log(1 + X); an integral where that cancels."""
    found = to_lindley(rate_p, rate_q)
    if found > CLOSE:
        return found
    more, low = two_sum(1.0, rate_p)
    d = rate_q - rate_p
    u = 1.0 / more
    slope = (fma(d, more, -rate_p) + d * low) / more / rate_p if rate_p < LARGE_RATE else d / rate_p - u
    return from_close(0.0, 1.0, slope, 0.0, 0.0, 0.0, u)
