"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import NON_NEGATIVE, REAL
from klnumba.distributions.distribution import Distribution, Parameter, Support, unscaled
from klnumba.distributions.evaluate import evaluate
from klnumba.distributions.registry import register_kl
from klnumba.formulas.bessel import bessel_gap, bessel_ratio, log_bessel, log_bessel_bregman
from klnumba.formulas.elementary import two_sum

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


@register_kl(VonMises, VonMises, compiled=True)
def von_mises_von_mises(loc_p: float, conc_p: float, loc_q: float, conc_q: float) -> float:
    """log(I0) beyond first order from one concentration to the other, and 2*conc_q*I1/I0*sin((loc_p - loc_q)/2)**2."""
    d, low = two_sum(loc_p, -loc_q)
    half = math.sin(0.5 * d) * math.cos(0.5 * low) + math.cos(0.5 * d) * math.sin(0.5 * low)
    return log_bessel_bregman(conc_p, conc_q, conc_q - conc_p) + 2.0 * conc_q * bessel_ratio(conc_p) * half * half
