"""The way back of a transform, and the logarithm of its slope, for densities of what it makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from scipy import special

from klnumba.distributions import transforms
from klnumba.distributions.transform import InverseTransform, Transform

Function = Callable[..., Any]

# By transform: x from y, and log|dy/dx| at x; both take the parameters in their order after it.
BACK: dict[type[Transform], tuple[Function, Function]] = {
    transforms.AffineTransform: (
        lambda y, loc, scale: (y - loc) / scale,
        lambda x, loc, scale: np.log(np.abs(scale)) + 0.0 * x,
    ),
    transforms.ExpTransform: (np.log, lambda x: x),
    transforms.PowerTransform: (
        lambda y, exponent: np.power(y, 1.0 / exponent),
        lambda x, exponent: np.log(np.abs(exponent)) + (exponent - 1.0) * np.log(x),
    ),
    transforms.SigmoidTransform: (special.logit, lambda x: -np.abs(x) - 2.0 * np.log1p(np.exp(-np.abs(x)))),
    transforms.SoftplusTransform: (
        lambda y: y + np.log(-np.expm1(-y)),
        lambda x: -np.logaddexp(0.0, -x),
    ),
    transforms.TanhTransform: (
        np.arctanh,
        lambda x: 2.0 * (np.log(2.0) - np.abs(x) - np.log1p(np.exp(-2.0 * np.abs(x)))),
    ),
}

# The same of a power like a cube, of numbers on both sides of 0.
ODD_POWER: tuple[Function, Function] = (
    lambda y, exponent: np.copysign(np.power(np.abs(y), 1.0 / exponent), y),
    lambda x, exponent: np.log(exponent) + (exponent - 1.0) * np.log(np.abs(x)),
)

# Close to an end of what a transform makes: x from the distance of y from that end.
NEAR: dict[tuple[type[Transform], float], Function] = {
    (transforms.SigmoidTransform, 1.0): lambda d: -special.logit(d),
    (transforms.TanhTransform, 1.0): lambda d: 0.5 * (np.log(2.0 - d) - np.log(d)),
    (transforms.TanhTransform, -1.0): lambda d: 0.5 * (np.log(d) - np.log(2.0 - d)),
}


class Change:
    """A transform that can be taken back."""

    def __init__(self, transform: Transform, low: float) -> None:
        name = type(transform).__name__
        self.transform = transform
        self.kinks: list[float] = []  # what becomes a place where the density has a kink, or none at all
        if isinstance(transform, InverseTransform):
            forth = Change(transform.inv, min(low, 0.0))  # a power that has an inverse keeps signs
            self.kinks = forth.kinks
            self.back, self.numbers = cast(Function, forth), []
            self.slope: Function = lambda x: -forth.log_slope(forth.inverse(x))
            return
        if type(transform) not in BACK:
            raise NotImplementedError(f"{name}: no density, its inverse is not known or not one number")
        self.back, self.slope = BACK[type(transform)]
        if isinstance(transform, transforms.PowerTransform) and low < 0.0:
            if transform.branch[0] == 0.0:
                raise NotImplementedError(f"{name}: no density, the numbers that it is applied to may be negative")
            self.back, self.slope = ODD_POWER
            self.kinks = [0.0]
        self.numbers = [float(x) for x in transform.parameters.values()]

    def __call__(self, x: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(self.transform(np.asarray(x, np.float64)))

    def inverse(self, y: Any) -> np.ndarray:
        """The place that comes to y."""
        with np.errstate(all="ignore"):
            return np.asarray(self.back(np.asarray(y, np.float64), *self.numbers))

    def inverse_from(self, origin: float, offset: Any) -> np.ndarray:
        """The place that comes to origin + offset."""
        near = NEAR.get((type(self.transform), origin))
        return self.inverse(origin + offset) if near is None else np.asarray(near(np.abs(offset)))

    def log_slope(self, x: Any) -> np.ndarray:
        """log|dy/dx| at x."""
        with np.errstate(all="ignore"):
            return np.asarray(self.slope(np.asarray(x, np.float64), *self.numbers))

    @property
    def falling(self) -> bool:
        """Whether larger numbers become smaller ones."""
        one, other = self(np.array([0.25, 0.75]))
        return bool(other < one)
