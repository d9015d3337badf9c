"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import NON_NEGATIVE, REAL
from klnumba.distributions.distribution import Distribution, Parameter, Support, unscaled
from klnumba.distributions.evaluate import evaluate
from klnumba.distributions.registry import register_kl
from klnumba.formulas.bessel import (
    NODES,
    WEIGHTS,
    bessel_gap,
    bessel_ratio,
    bessel_ratio_slope,
    log_bessel,
    log_bessel_bregman,
)
from klnumba.formulas.elementary import two_sum
from klnumba.formulas.primitives import fma
from klnumba.formulas.quick import Slopes, with_quick_slopes

LOG_2PI = 1.8378770664093453


def von_mises_entropy(loc: float, concentration: float) -> float:
    """The differential entropy, in nats."""
    return LOG_2PI + (log_bessel(concentration) + concentration * bessel_gap(concentration))


class VonMises(Distribution):
    """The von Mises distribution on the circle.

    The support is given from loc - pi to loc + pi, but a divergence takes angles modulo 2*pi.

    Parameters
    ----------
    loc : array_like
        Mean direction, an angle in radians.
    concentration : array_like
        Concentration, zero or positive; 0 is the uniform distribution on the circle.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import VonMises
    >>> round(float(kl.kl_divergence(VonMises(0.0, 1.0), VonMises(1.0, 2.0))), 6)
    0.552098
    """

    parameters = ("loc", "concentration")
    loc = Parameter(REAL)
    concentration = Parameter(NON_NEGATIVE)
    entropy_formula = staticmethod(von_mises_entropy)
    scipy_name = "vonmises"
    circular = True

    def __init__(self, loc: Any, concentration: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, loc=loc, concentration=concentration)

    @property
    def support(self) -> Support:
        return Support(self._full(self.loc - math.pi), self._full(self.loc + math.pi))

    @property
    def mean(self) -> Any:
        """The mean direction."""
        return self._full(self.loc)

    @property
    def variance(self) -> Any:
        """The circular variance, 1 - E cos(X - loc)."""
        return evaluate(bessel_gap, [self._column("concentration")], self.batch_shape, self.dtype)

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.concentration,), self.loc, 1.0

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unscaled(scale, cls.__name__)
        return {"loc": loc, "concentration": np.asarray(shapes[0])}


def von_mises_von_mises_slopes(loc_p: float, conc_p: float, loc_q: float, conc_q: float) -> Slopes:
    """By loc_p conc_q*r*sin(d), by conc_p r'*(conc_p - conc_q + conc_q*h), by conc_q the rise of I1/I0 and r*h.

    r is I1/I0 at conc_p, d the distance of the directions and h = 2*sin(d/2)**2.
    """
    d, low = two_sum(loc_p, -loc_q)
    sine, cosine = math.sin(0.5 * d), math.cos(0.5 * d)
    sine, cosine = fma(0.5 * cosine, low, sine), fma(-0.5 * sine, low, cosine)
    ratio = bessel_ratio(conc_p)
    by_loc = 2.0 * conc_q * ratio * sine * cosine
    share = 2.0 * sine * sine
    gap, turned = conc_p - conc_q, conc_q * share
    slope = bessel_ratio_slope(conc_p)
    rise, apart = bessel_ratio_rise(conc_p, conc_q, ratio, slope), ratio * share
    by_conc_p = (slope * (gap + turned), slope * (abs(gap) + turned))
    return (by_loc, 0.0), by_conc_p, (-by_loc, 0.0), (rise + apart, abs(rise) + apart)


def bessel_ratio_rise(a: float, b: float, ratio: float, slope: float) -> float:
    """I1/I0 at b less that at a, given that and its slope at a."""
    d = b - a
    if abs(d) > 0.25 * max(a, 1.0):
        return bessel_gap(a) - bessel_gap(b) if min(a, b) > 1.0 else bessel_ratio(b) - ratio
    total = 0.0
    for i in range(12):
        total += WEIGHTS[i] * bessel_ratio_slope(a + d * NODES[i])
    return d * total


@register_kl(VonMises, VonMises, compiled=True)
@with_quick_slopes(von_mises_von_mises_slopes)
def von_mises_von_mises(loc_p: float, conc_p: float, loc_q: float, conc_q: float) -> float:
    """log(I0) beyond first order from one concentration to the other, and 2*conc_q*I1/I0*sin((loc_p - loc_q)/2)**2."""
    d, low = two_sum(loc_p, -loc_q)
    half = math.sin(0.5 * d) * math.cos(0.5 * low) + math.cos(0.5 * d) * math.sin(0.5 * low)
    return log_bessel_bregman(conc_p, conc_q, conc_q - conc_p) + 2.0 * conc_q * bessel_ratio(conc_p) * half * half
