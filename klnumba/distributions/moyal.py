"""The Moyal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.laplace import Laplace, to_laplace
from klnumba.distributions.location_scale import LocationScale
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import exp, log
from klnumba.formulas.exponents import difference_over_twofold, exp_excess_of_difference, log_gamma_twofold, shows
from klnumba.formulas.logarithms import log_twofold
from klnumba.formulas.power_distances import power_distance
from klnumba.formulas.ranges import in_range
from klnumba.formulas.special import EULER, HALF_LOG_2PI, LN2, excess, log_gamma_bregman
from klnumba.formulas.twofold import over, plus, times

HALF_PI_SQUARED = 4.934802200544679
HALF_LOG_PI = 0.5723649429247001


def moyal_entropy(loc: float, scale: float) -> float:
    """The differential entropy, in nats."""
    return log(scale) + (HALF_LOG_2PI + 0.5 * (1.0 + EULER + LN2))


class Moyal(LocationScale):
    """The Moyal distribution: of -log(Z*Z), Z standard normal, scaled and moved.

    Parameters
    ----------
    loc : array_like
        Mode.
    scale : array_like
        Scale.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Moyal
    >>> round(float(kl.kl_divergence(Moyal(0.0, 1.0), Moyal(1.0, 1.0))), 6)
    0.359141
    """

    entropy_formula = staticmethod(moyal_entropy)
    scipy_name = "moyal"

    @property
    def mean(self) -> Any:
        return self._full(self.loc + (EULER + LN2) * self.scale)

    @property
    def variance(self) -> Any:
        return self._full(HALF_PI_SQUARED * np.square(self.scale))


@register_kl(Moyal, Moyal, compiled=True)
def moyal_moyal(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """[exp(v) - 1 - v + log-gamma beyond first order from 3/2 to r + 1/2]/2 and the excess of r = scale_p/scale_q.

    v = r*log(2) + log-gamma(r + 1/2) - log-gamma(1/2) - (loc_p - loc_q)/scale_q.
    """
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    m, m_low = difference_over_twofold(loc_p, loc_q, scale_q)
    d = (scale_p - scale_q) / scale_q
    r = scale_p / scale_q
    if r == math.inf:
        return r
    curve = log_gamma_bregman(1.5, r + 0.5, d)
    v = log_gamma_bregman(0.5, r + 0.5, r) - (EULER + LN2) * r if r < 0.5 else curve + (2.0 - EULER - LN2) * d
    far = moyal_exponent(v, r, scale_p, scale_q, m, m_low)
    return 0.5 * (far + curve) + excess(scale_q, scale_p, scale_p - scale_q)


def moyal_exponent(v: float, r: float, above: float, below: float, m: float, low: float) -> float:
    """exp(w) - 1 - w, w = v - m - low, where v is the logarithm of E exp(-r*Z) of a Moyal variable, r = above/below."""
    lost = 0.0
    if shows(r):
        v, lost = moyal_moment_twofold(above, below)
    return exp_excess_of_difference(v, lost, m, low)


def moyal_moment_twofold(above: float, below: float) -> tuple[float, float]:
    """r*log(2) + log-gamma(r + 1/2) - log-gamma(1/2) as the sum of two numbers, r = above/below."""
    r, r_low = over(above, 0.0, below, 0.0)
    high, low = log_gamma_twofold(*plus(r, r_low, 0.5, 0.0))
    powers, powers_low = times(r, r_low, *log_twofold(2.0))
    high, low = plus(high, low, powers, powers_low)
    return plus(high, low, -HALF_LOG_PI, 0.0)


@register_kl(Moyal, Laplace, compiled=True)
def moyal_laplace(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The excess of E abs(X - loc_q)/scale_q, and what is left where that is 1: (loc_p - X)/scale_p = log(2*G)."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    u = (loc_p - loc_q) / scale_p
    y = 0.5 * exp(u)
    distance = power_distance(0.5, 0.0, y, 1.0, -(u + (EULER + LN2)), 0.5 - y)
    return to_laplace(distance, scale_p, scale_q, moyal_entropy(0.0, 1.0), loc_p - loc_q)
