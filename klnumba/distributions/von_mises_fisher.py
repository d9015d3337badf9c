"""The von Mises-Fisher distribution, and the uniform distribution on a sphere."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np

from klnumba.distributions.directions import Directions, Moments, cosine_gap, log_area
from klnumba.distributions.evaluate import evaluate_rows
from klnumba.distributions.registry import register_kl
from klnumba.formulas.bessel_orders import (
    gap_of_orders,
    log_above,
    log_bregman,
    ratio_of_orders,
    ratio_over_x,
    slope_of_orders,
)


def fisher_entropy(order: float, concentration: float) -> float:
    """The differential entropy on the sphere in 2*order + 2 dimensions, in nats."""
    area = log_area(order)
    if concentration < order + 2.0:
        return area + (log_above(order, concentration, 0.0) - concentration * ratio_of_orders(order, concentration))
    return area + (log_above(order, concentration, 1.0) + concentration * gap_of_orders(order, concentration))


class VonMisesFisher(Directions):
    """The von Mises-Fisher distribution: directions, as unit vectors, around a mean direction.

    The density on the unit sphere is proportional to ``exp(concentration * (mean_direction @ x))``.

    Parameters
    ----------
    mean_direction : array_like
        Unit vectors along the last axis, of 2 numbers or more; what counts is the direction, not the rounded length.
    concentration : array_like
        Concentration, zero or positive; 0 is the uniform distribution on the sphere.
    validate_args : bool, default True
        Check the parameters.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import VonMisesFisher
    >>> north, east = [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]
    >>> round(float(kl.kl_divergence(VonMisesFisher(north, 1.0), VonMisesFisher(east, 2.0))), 6)
    0.746816
    """

    moments = Moments(ratio_of_orders, slope_of_orders, ratio_over_x, fisher_entropy)
    scipy_name = "vonmises_fisher"
    scipy_keywords = {"mean_direction": "mu", "concentration": "kappa"}  # noqa: RUF012


class SphericalUniform(VonMisesFisher):
    """The uniform distribution on the unit sphere: a von Mises-Fisher distribution of concentration 0.

    Parameters
    ----------
    dimension : int
        How many numbers a point has, 2 or more.
    validate_args : bool, default True
        Check the parameter.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import SphericalUniform, VonMisesFisher
    >>> round(float(kl.kl_divergence(VonMisesFisher([0.6, 0.8], 1.5), SphericalUniform(2))), 6)
    0.395412
    """

    scipy_name = "uniform_direction"
    scipy_keywords = {"dimension": "dim"}  # noqa: RUF012

    def __init__(self, dimension: int, *, validate_args: bool = True) -> None:
        if isinstance(dimension, bool) or not isinstance(dimension, int | np.integer) or dimension < 2:
            raise ValueError(f"SphericalUniform: dimension must be an integer >= 2, but is {dimension!r}")
        super().__init__(np.eye(1, int(dimension))[0], 0.0, validate_args=validate_args)

    @property
    def dimension(self) -> int:
        """How many numbers a point has."""
        return self.event_shape[0]

    def _rebuilt(self, given: dict[str, np.ndarray]) -> Self:
        # a batch, which this family does not have
        return cast(Self, VonMisesFisher(**given, validate_args=not self._unchecked))

    def __repr__(self) -> str:
        return f"SphericalUniform(dimension={self.dimension})"


def fisher_fisher(room: Any, p: Any, a: Any, q: Any, b: Any) -> float:
    """That of the concentrations for one direction, and what the angle between the directions adds."""
    order = 0.5 * p.size - 1.0
    turn = 0.0 if a[0] == 0.0 or b[0] == 0.0 else b[0] * ratio_of_orders(order, a[0]) * cosine_gap(p, q)
    return log_bregman(order, a[0], b[0], b[0] - a[0]) + turn


@register_kl(VonMisesFisher, VonMisesFisher)
def von_mises_fisher_von_mises_fisher(p: VonMisesFisher, q: VonMisesFisher) -> Any:
    """log(I(n)/c**n) beyond first order from p's concentration c to q's, and q's times |mean of p|*(1 - cos(angle))."""
    columns = [d._given[name] for d in (p, q) for name in VonMisesFisher.parameters]
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    return evaluate_rows(fisher_fisher, columns, [1, 0, 1, 0], shape, np.result_type(p.dtype, q.dtype))
