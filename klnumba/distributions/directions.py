"""What families of directions share: unit vectors around a mean direction."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from klnumba.distributions.constraint import NON_NEGATIVE, REAL, Constraint
from klnumba.distributions.distribution import Parameter, Support
from klnumba.distributions.evaluate import evaluate
from klnumba.distributions.multivariate import Multivariate
from klnumba.formulas.special import LN2, log_gamma

LOG_PI = 1.1447298858494002
NEAR_ONE = 1e-5  # what a length may be off
DIRECTION = Constraint(
    "a vector of length 1", lambda x: np.abs(np.sqrt(np.sum(np.square(x, dtype=float), -1)) - 1.0) < NEAR_ONE, REAL
)

Formula = Callable[[float, float], float]


def log_area(order: float) -> float:
    """The logarithm of the area of the sphere in 2*order + 2 dimensions."""
    return LN2 + (order + 1.0) * LOG_PI - log_gamma(order + 1.0)


def cosine_gap(p: Any, q: Any) -> float:
    """1 - cos of the angle between two vectors, from what is left of q - p beside the direction of p."""
    length = 0.0
    other = 0.0
    along = 0.0
    product = 0.0
    for i in range(p.size):
        length += p[i] * p[i]
        other += q[i] * q[i]
        along += (q[i] - p[i]) * p[i]
        product += p[i] * q[i]
    if product < 0.0:
        return 1.0 - product / math.sqrt(length * other)
    share = along / length
    across = 0.0
    for i in range(p.size):
        off = (q[i] - p[i]) - share * p[i]
        across += off * off
    return across / other / (1.0 + product / math.sqrt(length * other))


class Moments(NamedTuple):
    """Formulas of the order, half the dimension less 1, and the concentration, for the cosine to the mean direction."""

    length: Formula  # its mean
    along: Formula  # its variance
    across: Formula  # the variance in a direction at right angles
    entropy: Formula  # the differential entropy on the sphere


class Directions(Multivariate):
    """A family of unit vectors with a mean direction and a concentration; 0 is the uniform distribution."""

    parameters = ("mean_direction", "concentration")
    mean_direction = Parameter(DIRECTION, event_dims=1)
    concentration = Parameter(NON_NEGATIVE)
    moments: ClassVar[Moments]

    def __init__(self, mean_direction: Any, concentration: Any, *, validate_args: bool = True) -> None:
        super().__init__(validate_args, mean_direction=mean_direction, concentration=concentration)

    def _event_shape(self) -> tuple[int, ...]:
        return self._given["mean_direction"].shape[-1:]

    def _validate(self) -> None:
        if self.event_shape[0] < 2:
            owner = type(self).__name__
            raise ValueError(f"{owner}: mean_direction must have a last axis of 2 or more, not {self.event_shape[0]}")

    @property
    def _order(self) -> np.ndarray:
        """Half the dimension, less 1."""
        return np.array(0.5 * self.event_shape[0] - 1.0)

    @property
    def support(self) -> Support:
        return Support(-1.0, 1.0)

    def _of_order(self, formula: Any) -> Any:
        """A formula of the order and the concentration, with an axis for the numbers of a draw."""
        columns = [self._order, np.asarray(self.concentration, np.float64)[..., None]]
        return evaluate(formula, columns, (*self.batch_shape, 1))

    def _unit(self) -> Any:
        direction = np.asarray(self.mean_direction, np.float64)
        return direction / np.sqrt(np.sum(np.square(direction), -1, keepdims=True))

    @property
    def mean(self) -> Any:
        """The expected value, which is shorter than a unit vector."""
        return self._full(self._of_order(self.moments.length) * self._unit(), self.event_shape)

    @property
    def variance(self) -> Any:
        along = np.square(self._unit())
        across = self._of_order(self.moments.across)
        return self._full(across * (1.0 - along) + self._of_order(self.moments.along) * along, self.event_shape)

    def entropy(self) -> Any:
        """The differential entropy on the sphere, in nats."""
        columns = [self._order, self._column("concentration")]
        return evaluate(self.moments.entropy, columns, self.batch_shape, self.dtype)
