"""The logistic distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.continuous_bernoulli import slope
from klnumba.distributions.gumbel import Gumbel
from klnumba.distributions.laplace import Laplace, to_laplace
from klnumba.distributions.location_scale import LocationScale
from klnumba.distributions.normal import Normal
from klnumba.distributions.odds import softplus
from klnumba.distributions.registry import ByForm, Chosen, differs, register_kl
from klnumba.formulas.elementary import log
from klnumba.formulas.ranges import in_range
from klnumba.formulas.special import excess_of_products, exp_excess, log_gamma_bregman, log_of_products

PI_SQUARED_3 = 3.289868133696453
NEGENTROPY = 0.01436227472001807  # log(2*pi*e*pi**2/3)/2 - 2


def logistic_entropy(loc: float, scale: float) -> float:
    """The differential entropy, in nats."""
    return 2.0 + log(scale)


class Logistic(LocationScale):
    """The logistic distribution.

    Parameters
    ----------
    loc : array_like
        Mean.
    scale : array_like
        Scale.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Logistic, Normal
    >>> round(float(kl.kl_divergence(Logistic(0.0, 1.0), Normal(0.0, 2.0))), 6)
    0.023319
    """

    entropy_formula = staticmethod(logistic_entropy)
    scipy_name = "logistic"

    @property
    def mean(self) -> Any:
        return self._full(self.loc)

    @property
    def variance(self) -> Any:
        return self._full(PI_SQUARED_3 * np.square(self.scale))


def same_scale(loc_p: float, scale: float, loc_q: float, scale_q: float) -> float:
    """x*coth(x/2) - 2, x the distance in units of the scale."""
    loc_p, scale, loc_q, _ = in_range(loc_p, scale, loc_q, scale)
    x = (loc_p - loc_q) / scale
    return 2.0 * x * slope(x)


def of_equal_scales(p: Logistic, q: Logistic) -> Chosen:
    """The formula, which serves equal scales."""
    if np.any(differs(p, q, "scale")):
        raise NotImplementedError(
            "KL(Logistic || Logistic) has no closed form for unequal scale; method='quadrature' integrates"
        )
    return same_scale, p.parameters, q.parameters


register_kl(Logistic, Logistic)(
    ByForm(of_equal_scales, "x*coth(x/2) - 2, x the distance in units of the scale; the scales must be equal.")
)


@register_kl(Logistic, Normal, compiled=True)
def logistic_normal(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The variances' excess, the distance of the means, and the divergence that is left where both agree."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    t = (loc_p - loc_q) / scale_q
    return 0.5 * (excess_of_products(PI_SQUARED_3 * scale_p, scale_p, scale_q, scale_q) + t * t) + NEGENTROPY


@register_kl(Logistic, Laplace, compiled=True)
def logistic_laplace(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """The excess of E abs(X - loc_q)/scale_q, and what is left where that is 1."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    off = loc_p - loc_q
    y = abs(off) / scale_p
    return to_laplace(softplus(y) + softplus(-y), scale_p, scale_q, 2.0, off)


@register_kl(Logistic, Gumbel, compiled=True)
def logistic_gumbel(loc_p: float, scale_p: float, loc_q: float, scale_q: float) -> float:
    """exp(v) - 1 - v, v = s - (loc_p - loc_q)/scale_q, and s - log(r) - 1; s = log(pi*r/sin(pi*r)), r of scales."""
    loc_p, scale_p, loc_q, scale_q = in_range(loc_p, scale_p, loc_q, scale_q)
    if scale_p >= scale_q:
        return math.inf
    r = scale_p / scale_q
    if r < 0.5:
        more = log_gamma_bregman(1.0, 1.0 + r, r) + log_gamma_bregman(1.0, 1.0 - r, -r)
    else:
        more = -log(math.sin(math.pi * ((scale_q - scale_p) / scale_q)) / (math.pi * r))
    return exp_excess(more - (loc_p - loc_q) / scale_q) + (more - 1.0 + log_of_products(scale_q, 1.0, scale_p, 1.0))
