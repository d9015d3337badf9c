"""What a number may be turned into: the transforms of `TransformedDistribution`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from klnumba.distributions.constraint import REAL, Constraint, shown

NOT_ZERO = Constraint("a finite number, not 0", lambda x: np.isfinite(x) & (x != 0))


class Transform:
    """A function of a number. Two are equal if they are of one class and their parameters are equal.

    Attributes
    ----------
    injective : bool
        Whether different numbers stay different.
    added : int
        How many numbers it adds to a vector.
    parameters : dict of str to numpy.ndarray
        By name.
    """

    injective: ClassVar[bool] = True
    added: ClassVar[int] = 0
    parameters: dict[str, np.ndarray]

    def __init__(self, **parameters: Any) -> None:
        self.parameters = {name: np.array(value, np.float64) for name, value in parameters.items()}
        for value in self.parameters.values():
            value.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        assert isinstance(other, Transform)
        return all(np.array_equal(value, other.parameters[name]) for name, value in self.parameters.items())

    def __hash__(self) -> int:
        return hash((type(self), *(value.tobytes() for value in self.parameters.values())))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={shown(x)}' for name, x in self.parameters.items())})"

    def __call__(self, x: Any) -> Any:
        """The function."""
        raise NotImplementedError


class AffineTransform(Transform):
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


class ExpTransform(Transform):
    """exp(x)."""

    def __call__(self, x: Any) -> Any:
        return np.exp(x)


class PowerTransform(Transform):
    """x to a power, of positive numbers.

    Parameters
    ----------
    exponent : array_like
        Not 0.
    """

    def __init__(self, exponent: Any) -> None:
        super().__init__(exponent=exponent)
        NOT_ZERO.check("PowerTransform", "exponent", self.parameters["exponent"])

    def __call__(self, x: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.power(x, self.parameters["exponent"])


class SigmoidTransform(Transform):
    """1/(1 + exp(-x))."""

    def __call__(self, x: Any) -> Any:
        return 0.5 + 0.5 * np.tanh(0.5 * np.asarray(x))


class TanhTransform(Transform):
    """tanh(x)."""

    def __call__(self, x: Any) -> Any:
        return np.tanh(x)


class StickBreakingTransform(Transform):
    """n real numbers to n + 1 probabilities: each takes its share, a sigmoid, of what those before it left."""

    added = 1

    def __call__(self, x: Any) -> Any:
        x = np.asarray(x, np.float64)
        left = np.arange(x.shape[-1], 0, -1)
        share = 1.0 / (1.0 + left * np.exp(-x))
        whole = np.ones((*x.shape[:-1], 1))
        rest = np.concatenate([whole, np.cumprod(1.0 - share, -1)], -1)
        return rest * np.concatenate([share, whole], -1)


class AbsTransform(Transform):
    """The absolute value, which is not injective."""

    injective = False

    def __call__(self, x: Any) -> Any:
        return np.abs(x)
