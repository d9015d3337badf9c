"""The transforms of `TransformedDistribution`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.constraint import REAL, Constraint
from klnumba.distributions.transform import Monotone, Transform, in_order

NOT_ZERO = Constraint("a finite number, not 0", lambda x: np.isfinite(x) & (x != 0))


class AffineTransform(Monotone):
    """loc + scale*x.

    Parameters
    ----------
    loc, scale : array_like
        The scale is not 0.
    """

    def __init__(self, loc: Any, scale: Any) -> None:
        super().__init__(loc=loc, scale=scale)
        REAL.check("AffineTransform", "loc", self.parameters["loc"])
        NOT_ZERO.check("AffineTransform", "scale", self.parameters["scale"])

    def __call__(self, x: Any) -> Any:
        return self.parameters["loc"] + self.parameters["scale"] * x

    def inverse(self, y: Any, high: Any) -> Any:
        """The number that becomes y."""
        return (y - self.parameters["loc"]) / self.parameters["scale"]


class ExpTransform(Monotone):
    """exp(x)."""

    def __call__(self, x: Any) -> Any:
        with np.errstate(over="ignore", under="ignore"):
            return np.exp(x)

    def inverse(self, y: Any, high: Any) -> Any:
        """The logarithm."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(y)


class PowerTransform(Transform):
    """x to a power.

    Of draws below 0 the exponent has to be an integer, and an odd one for the power to be injective.

    Parameters
    ----------
    exponent : array_like
        Not 0.
    """

    def __init__(self, exponent: Any) -> None:
        super().__init__(exponent=exponent)
        NOT_ZERO.check("PowerTransform", "exponent", self.parameters["exponent"])

    def __call__(self, x: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            return np.power(x, self.parameters["exponent"])

    def inverse(self, y: Any, high: Any) -> Any:
        """The root, of the sign of y where the exponent is odd."""
        exponent = self.parameters["exponent"]
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            root = np.power(np.abs(y), 1.0 / exponent)
        return np.where(
            np.mod(exponent, 2.0) == 1.0, np.copysign(root, y), np.where(np.asarray(high) <= 0.0, -root, root)
        )

    @property
    def branch(self) -> tuple[Any, Any]:
        """All numbers where the exponent is 1, 3, 5 ..., else those from 0 on."""
        exponent = self.parameters["exponent"]
        return np.where((exponent > 0.0) & (np.mod(exponent, 2.0) == 1.0), -math.inf, 0.0)[()], math.inf

    def injective(self, low: Any, high: Any) -> Any:
        """From 0 on, up to 0, or where the exponent is an odd integer."""
        one_side = (np.asarray(low) >= 0.0) | (np.asarray(high) <= 0.0)
        return one_side | (np.mod(self.parameters["exponent"], 2.0) == 1.0)

    def even(self) -> Any:
        """For an even exponent."""
        return np.mod(self.parameters["exponent"], 2.0) == 0.0

    def image(self, low: Any, high: Any) -> tuple[Any, Any]:
        """The least and the largest of the powers."""
        exponent = self.parameters["exponent"]
        inside = (np.asarray(low) < 0.0) & (np.asarray(high) > 0.0)
        ends = in_order(self(low), self(high))
        around_0 = np.where(exponent > 0.0, 0.0, np.inf)  # what numbers next to 0 become
        other_side = np.where(np.mod(exponent, 2.0) == 0.0, around_0, -around_0)
        least = np.where(inside, np.minimum(ends[0], np.minimum(around_0, other_side)), ends[0])
        return least[()], np.where(inside, np.maximum(ends[1], around_0), ends[1])[()]

    def domain(self) -> tuple[Any, Any]:
        """All numbers for an integer, else those from 0 on."""
        exponent = self.parameters["exponent"]
        return np.where(exponent == np.floor(exponent), -math.inf, 0.0)[()], math.inf


class SigmoidTransform(Monotone):
    """1/(1 + exp(-x))."""

    def __call__(self, x: Any) -> Any:
        return 0.5 + 0.5 * np.tanh(0.5 * np.asarray(x))

    def inverse(self, y: Any, high: Any) -> Any:
        """The log-odds."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(y) - np.log1p(-np.asarray(y))


class TanhTransform(Monotone):
    """tanh(x)."""

    def __call__(self, x: Any) -> Any:
        return np.tanh(x)

    def inverse(self, y: Any, high: Any) -> Any:
        """The hyperbolic arc tangent."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.arctanh(y)


class SoftplusTransform(Monotone):
    """log(1 + exp(x))."""

    def __call__(self, x: Any) -> Any:
        return np.logaddexp(0.0, x)

    def inverse(self, y: Any, high: Any) -> Any:
        """log(exp(y) - 1)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return y + np.log(-np.expm1(np.negative(y)))


class StickBreakingTransform(Transform):
    """n real numbers to n + 1 probabilities: each takes its share, a sigmoid, of what those before it left."""

    added = 1

    def injective(self, low: Any, high: Any) -> Any:
        """Always."""
        return True

    def __call__(self, x: Any) -> Any:
        x = np.asarray(x, np.float64)
        left = np.arange(x.shape[-1], 0, -1)
        share = 1.0 / (1.0 + left * np.exp(-x))
        whole = np.ones((*x.shape[:-1], 1))
        rest = np.concatenate([whole, np.cumprod(1.0 - share, -1)], -1)
        return rest * np.concatenate([share, whole], -1)

    def image(self, low: Any, high: Any) -> tuple[Any, Any]:
        """All probabilities."""
        return 0.0, 1.0


class AbsTransform(Transform):
    """The absolute value, injective on one side of 0 only."""

    @property
    def branch(self) -> tuple[Any, Any]:
        """Those from 0 on."""
        return 0.0, math.inf

    def __call__(self, x: Any) -> Any:
        return np.abs(x)

    def inverse(self, y: Any, high: Any) -> Any:
        """On the side of 0 where the numbers lie."""
        return np.where(np.asarray(high) <= 0.0, np.negative(y), y)

    def injective(self, low: Any, high: Any) -> Any:
        """From 0 on, or up to 0."""
        return (np.asarray(low) >= 0.0) | (np.asarray(high) <= 0.0)

    def even(self) -> Any:
        """Always."""
        return True

    def image(self, low: Any, high: Any) -> tuple[Any, Any]:
        """From 0 on, where 0 is inside."""
        inside = (np.asarray(low) < 0.0) & (np.asarray(high) > 0.0)
        first, last = in_order(np.abs(low), np.abs(high))
        return np.where(inside, 0.0, first)[()], last
