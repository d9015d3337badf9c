"""What a number may be turned into: what the transforms of `TransformedDistribution` share, and inverses."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from klnumba.distributions.constraint import shown
from klnumba.distributions.given import memory_array
from klnumba.tensors import untrace


class Transform:
    """A function of a number. Two are equal if they are of one class and their parameters are equal.

    Parameters that broadcast to the same arrays are equal. A transform does not change.

    A subclass of your own defines ``__call__``, and ``injective(self, low, high)``: whether different numbers from
    `low` to `high` stay different. Without this no divergence is taken. Its parameters go to ``super().__init__``.

    Attributes
    ----------
    added : int
        How many numbers it adds to a vector.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Normal, Transform, TransformedDistribution
    >>> class Cube(Transform):
    ...     def __call__(self, x):
    ...         return x**3
    ...
    ...     def injective(self, low, high):
    ...         return True
    >>> p, q = (TransformedDistribution(Normal(loc, 1.0), Cube()) for loc in (-1.0, 1.0))
    >>> float(kl.kl_divergence(p, q))
    2.0
    """

    added: ClassVar[int] = 0
    _given: Mapping[str, np.ndarray] = MappingProxyType({})

    def __init_subclass__(cls, **options: Any) -> None:
        """PyTorch's compiler does not follow how one is made."""
        super().__init_subclass__(**options)
        untrace(cls, "__init__")

    def __init__(self, **parameters: Any) -> None:
        owner = type(self).__name__
        given = {name: memory_array(owner, name, value).astype(np.float64) for name, value in parameters.items()}
        for value in given.values():
            value.flags.writeable = False
        self.__dict__["_given"] = given

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """By name; neither they nor their numbers can be changed."""
        return MappingProxyType({name: np.broadcast_to(x, x.shape) for name, x in self._given.items()})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{type(self).__name__}.{name}: a transform does not change; what it depends on goes to super().__init__"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name}: a transform does not change")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        assert isinstance(other, Transform)
        return self._given.keys() == other._given.keys() and all(
            _alike(value, other._given[name]) for name, value in self._given.items()
        )

    def __hash__(self) -> int:
        return hash((type(self), *(frozenset(value.flat) for value in self._given.values())))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={shown(x)}' for name, x in self._given.items())})"

    def one(self, at: tuple[int, ...], shape: tuple[int, ...]) -> Self:
        """The transform of what is at one place of an array of `shape`."""
        found = copy.copy(self)
        found.__dict__["_given"] = {name: np.broadcast_to(x, shape)[at] for name, x in self._given.items()}
        return found

    def with_axes(self, behind: int, count: int) -> Self:
        """The same with `count` more axes of length 1 before the last `behind` ones of the parameters."""
        found = copy.copy(self)
        cuts = {name: x.ndim - behind for name, x in self._given.items()}
        found.__dict__["_given"] = {
            name: x if cuts[name] < 0 else x.reshape(x.shape[: cuts[name]] + (1,) * count + x.shape[cuts[name] :])
            for name, x in self._given.items()
        }
        return found

    @property
    def branch(self) -> tuple[Any, Any]:
        """The numbers among which `inverse` finds one."""
        return -math.inf, math.inf

    @property
    def inv(self) -> Transform:
        """The inverse, of numbers that the transform makes of those of its `branch`."""
        return InverseTransform(self)

    def __call__(self, x: Any) -> Any:
        """The function."""
        raise NotImplementedError

    def inverse(self, y: Any, high: Any) -> Any:
        """The number up to `high` that becomes y; anything where there is none."""
        raise NotImplementedError(f"{type(self).__name__}: it has no inverse here")

    def injective(self, low: Any, high: Any) -> Any:
        """Whether different numbers from `low` to `high` stay different."""
        raise NotImplementedError(
            f"{self!r} does not say whether different numbers stay different: define injective(self, low, high) in "
            "its class, and let it return True where all numbers from low to high do"
        )

    def even(self) -> Any:
        """Whether a number and its negative become the same, and no others do."""
        return False

    def domain(self) -> tuple[Any, Any]:
        """The least and the largest of the numbers that become numbers."""
        return -math.inf, math.inf

    def image(self, low: Any, high: Any) -> tuple[Any, Any]:
        """The least and the largest of what the numbers from `low` to `high` become."""
        if not np.all(self.injective(low, high)):
            raise NotImplementedError(f"{self!r}: what it makes of numbers from {low} to {high} is not known")
        return in_order(self(low), self(high))


class Monotone(Transform):
    """A transform that always rises, or always falls."""

    def injective(self, low: Any, high: Any) -> Any:
        """Always."""
        return True


class InverseTransform(Monotone):
    """The inverse of a transform, as its attribute `inv` makes it.

    Parameters
    ----------
    transform : Transform
        What is taken back; of a power on the positive numbers, of one like a cube on all.
    """

    _of: Transform

    def __init__(self, transform: Transform) -> None:
        if not isinstance(transform, Transform):
            raise TypeError(f"InverseTransform: transform must be a Transform, not {type(transform).__name__}")
        if type(transform).inverse is Transform.inverse:
            raise NotImplementedError(f"InverseTransform: {transform!r} has no inverse here")
        super().__init__(**transform.parameters)
        self.__dict__["_of"] = transform

    @property
    def inv(self) -> Transform:
        """What is taken back."""
        return self._of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InverseTransform) and self.inv == other.inv

    def __hash__(self) -> int:
        return hash((type(self), self.inv))

    def __repr__(self) -> str:
        return f"{self.inv!r}.inv"

    def one(self, at: tuple[int, ...], shape: tuple[int, ...]) -> Self:
        """The transform of what is at one place of an array of `shape`."""
        return type(self)(self.inv.one(at, shape))

    def with_axes(self, behind: int, count: int) -> Self:
        """The same with `count` more axes of length 1 before the last `behind` ones of the parameters."""
        return type(self)(self.inv.with_axes(behind, count))

    def __call__(self, x: Any) -> Any:
        return self.inv.inverse(x, self.inv.branch[1])

    def inverse(self, y: Any, high: Any) -> Any:
        """What the transform makes of y."""
        return self.inv(y)

    def domain(self) -> tuple[Any, Any]:
        """What the transform makes of its branch."""
        return self.inv.image(*self.inv.branch)


def in_order(x: Any, y: Any) -> tuple[Any, Any]:
    """The lesser and the larger one."""
    return np.minimum(x, y), np.maximum(x, y)


def _alike(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two arrays broadcast to the same."""
    try:
        return bool(np.all(x == y))
    except ValueError:
        return False
