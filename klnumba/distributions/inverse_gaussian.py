"""The inverse Gaussian distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import POSITIVE
from klnumba.distributions.distribution import Distribution, Parameter, Support, unmoved
from klnumba.distributions.laplace import Laplace, to_laplace
from klnumba.distributions.registry import register_kl
from klnumba.formulas.elementary import exp, log
from klnumba.formulas.integrals import scaled_erfc, scaled_exponential_integral
from klnumba.formulas.quick import Slopes, with_quick_slopes
from klnumba.formulas.ranges import FAR, product, scaled, unit_in_range
from klnumba.formulas.special import EULER, HALF_LOG_2PI, LN2, excess_of_products, log_of_products

LEAST = 1e-290  # up to here the exponential integral is its logarithm


def mean_log(loc: float, concentration: float) -> float:
    """E log(X/loc), negative."""
    unit = 2.0 * (concentration / loc)
    if unit > LEAST:
        return -scaled_exponential_integral(unit)
    return (LN2 + EULER) + log_of_products(concentration, 1.0, loc, 1.0)


def scaled_entropy(loc: float, concentration: float) -> float:
    """The entropy of X/loc."""
    log_shape = log_of_products(concentration, 1.0, loc, 1.0)
    return 0.5 + HALF_LOG_2PI + (1.5 * mean_log(loc, concentration) - 0.5 * log_shape)


def inverse_gaussian_entropy(loc: float, concentration: float) -> float:
    """The differential entropy, in nats."""
    mean = log(loc) + mean_log(loc, concentration)
    return 0.5 + HALF_LOG_2PI + 1.5 * mean - 0.5 * log(concentration)


class InverseGaussian(Distribution):
    """The inverse Gaussian or Wald distribution: when a drifting Brownian motion first reaches a given level.

    Parameters
    ----------
    loc : array_like
        Mean.
    concentration : array_like
        Shape: the cube of the mean over the variance.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import InverseGaussian
    >>> float(kl.kl_divergence(InverseGaussian(1.0, 4.0), InverseGaussian(2.0, 4.0)))
    0.5
    """

    parameters = ("loc", "concentration")
    loc = Parameter(POSITIVE)
    concentration = Parameter(POSITIVE)
    entropy_formula = staticmethod(inverse_gaussian_entropy)
    scipy_name = "invgauss"

    def __init__(self, loc: Any, concentration: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, loc=loc, concentration=concentration)

    @property
    def support(self) -> Support:
        return Support(0.0, math.inf)

    @property
    def mean(self) -> Any:
        return self._full(self.loc)

    @property
    def variance(self) -> Any:
        return self._full(self.loc * (self.loc * (self.loc / self.concentration)))

    def _scipy_arguments(self) -> tuple[tuple[Any, ...], Any, Any]:
        return (self.loc / self.concentration,), 0.0, self.concentration

    @classmethod
    def _from_scipy_arguments(cls, shapes: tuple[Any, ...], loc: Any, scale: Any) -> dict[str, Any]:
        unmoved(loc, cls.__name__)
        return {"loc": np.multiply(shapes[0], scale), "concentration": scale}


def in_larger_unit(loc_p: float, shape: float, loc_q: float, scale: float) -> tuple[float, float, float, float]:
    """`in_range` of p, of which both parameters are as a scale, and of a place and a scale of q."""
    unit = unit_in_range(min(min(loc_p, shape), scale), loc_q, max(loc_p, shape), scale)
    return unit * loc_p, unit * shape, unit * loc_q, unit * scale


def inverse_gaussian_inverse_gaussian_slopes(loc_p: float, shape_p: float, loc_q: float, shape_q: float) -> Slopes:
    """With d the difference of the means m and n: d*(m + n)/(m*n)**2*shape_q/2, -d*shape_q/n**3, and by the shapes."""
    d = loc_p - loc_q
    u, v = 1.0 / loc_p, 1.0 / loc_q
    by_loc_p = 0.5 * (d * u * v * shape_q) * (u + v)
    gap = shape_p - shape_q
    less, apart = 0.5 * gap / shape_p / shape_q, 0.5 * (d * v) * (d * v) * u
    by_shape_p = 0.5 * gap / shape_p / shape_p
    return (by_loc_p, 0.0), (by_shape_p, 0.0), (-d * v * v * v * shape_q, 0.0), (apart - less, apart + abs(less))


@register_kl(InverseGaussian, InverseGaussian, compiled=True)
@with_quick_slopes(inverse_gaussian_inverse_gaussian_slopes)
def inverse_gaussian_inverse_gaussian(loc_p: float, shape_p: float, loc_q: float, shape_q: float) -> float:
    """Half the excess of the concentrations' ratio r, and half of shape_q/loc_p*((loc_p - loc_q)/loc_q)**2."""
    d = abs(loc_p - loc_q)
    above, _, k = product(d, d)
    below, _, n = product(loc_q, loc_q)
    of_q, _, i = product(shape_q, 1.0)
    of_p, _, j = product(loc_p, 1.0)
    apart = scaled(0.5 * (above / below) * (of_q / of_p), (k - n) + (i - j)) if d > 0.0 else 0.0
    return 0.5 * excess_of_products(shape_q, 1.0, shape_p, 1.0) + apart


@register_kl(InverseGaussian, Laplace, compiled=True)
def inverse_gaussian_laplace(loc_p: float, shape: float, loc_q: float, scale: float) -> float:
    """The excess of E abs(X - loc_q)/scale, and what is left where that is 1."""
    loc_p, shape, loc_q, scale = in_larger_unit(loc_p, shape, loc_q, scale)
    off = (loc_q - loc_p) / loc_p
    distance = abs(off)
    if loc_q > FAR * loc_p:
        distance = math.inf
    elif loc_q > 0.0:
        place = loc_q / loc_p
        root = math.sqrt(0.5 * (shape / loc_q))
        u = root * distance if distance > 0.0 else 0.0
        tail = exp(-u * u) * scaled_erfc(root * (place + 1.0)) if u < 30.0 else 0.0
        distance = distance * math.erf(u) + (place + 1.0) * tail
    return to_laplace(distance, loc_p, scale, scaled_entropy(loc_p, shape), loc_q)
