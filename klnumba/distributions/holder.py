"""Distributions that are made of other distributions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from klnumba.distributions.distribution import Distribution


class Holder(Distribution):
    """A distribution whose parts are attributes: other distributions, and what is done to them."""

    _held: dict[str, Any]

    def __init__(self, batch_shape: tuple[int, ...], event_shape: tuple[int, ...], **held: Any) -> None:
        self.__dict__.update(held, _held=held, _given={}, batch_shape=batch_shape, event_shape=event_shape)
        if any(part._unchecked for part in self._parts()):
            self.__dict__["_unchecked"] = True
        if any(part._in_graph for part in self._parts()):
            self.__dict__["_in_graph"] = True
        if any(part._is_mapped for part in self._parts()):
            self.__dict__["_is_mapped"] = True

    def _parts(self) -> list[Distribution]:
        """The distributions that it is made of."""
        values = (x if isinstance(x, tuple) else (x,) for x in self._held.values())
        return [x for value in values for x in value if isinstance(x, Distribution)]

    def _broken(self) -> Any:
        """Where that is so of a part."""
        return np.any([np.broadcast_to(part._broken(), self.batch_shape) for part in self._parts()], 0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._held.items())})"

    def spread(self, count: int) -> Self:
        """The same batch with `count` more axes of length 1 at its end."""
        return self.with_axes(len(self.batch_shape), count)

    def with_axes(self, place: int, count: int) -> Self:
        """The same, where no axis is added."""
        return self if count == 0 else self._refuse()

    def _refuse(self) -> Any:
        name = type(self).__name__
        raise NotImplementedError(f"{name}: a batch of these is not taken apart; give single ones in a list")

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the distributions it is made of."""
        return np.result_type(*(part.dtype for part in self._parts()))


def distribution(owner: str, name: str, value: Any, family: type[Distribution] = Distribution) -> Any:
    """The value, which must be a distribution of this family."""
    if not isinstance(value, family):
        raise TypeError(f"{owner}: {name} must be a {family.__name__}, not {type(value).__name__}")
    return value
