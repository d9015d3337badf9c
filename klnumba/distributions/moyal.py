"""The Moyal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.laplace import Laplace, to_laplace
from klnumba.distributions.location_scale import LocationScale
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import exp, log, two_sum
from klnumba.formulas.power_distances import power_distance
from klnumba.formulas.primitives import fma
from klnumba.formulas.ranges import MOST
from klnumba.formulas.special import EULER, HALF_LOG_2PI, LN2, excess, exp_excess, log_gamma_bregman

HALF_PI_SQUARED = 4.934802200544679


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
    apart, apart_low = two_sum(loc_p, -loc_q)
    m = apart / scale_q
    m_low = (fma(-m, scale_q, apart) + apart_low) / scale_q if abs(m) < MOST else 0.0
    d = (scale_p - scale_q) / scale_q
    r = scale_p / scale_q
    if r == math.inf:
        return r
    curve = log_gamma_bregman(1.5, r + 0.5, d)
    v = log_gamma_bregman(0.5, r + 0.5, r) - (EULER + LN2) * r if r < 0.5 else curve + (2.0 - EULER - LN2) * d
    return 0.5 * (exp_excess((v - m) - m_low) + curve) + excess(scale_q, scale_p, scale_p - scale_q)


@register_kl(Moyal, Laplace, compiled=True)
def moyal_laplace(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The excess of E abs(X - loc_q)/scale_q, and what is left where that is 1: (loc_p - X)/scale_p = log(2*G)."""
    u = (loc_p - loc_q) / scale_p
    y = 0.5 * exp(u)
    distance = power_distance(0.5, 0.0, y, 1.0, -(u + (EULER + LN2)), 0.5 - y)
    return to_laplace(distance, scale_p, scale_q, moyal_entropy(0.0, 1.0), loc_p - loc_q)
