"""Places that were drawn, as a density wants them: each number an origin and how far it is from there.

A number far from 0 has its neighbours as far from it as its last digit tells, which may be farther than a distribution
is wide: its distance from where the distribution lies has digits left. And of a distance that is smaller than all
numbers, or larger, the logarithm is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

NUDGE = 2.0 * float(np.finfo(np.float64).eps)  # relative: as far as a number may be from the one that was meant
WHOLE = 2.0**53  # integers from here on are not all numbers
ORDINARY = 250.0  # logarithms of distances that need no logarithm


class Draws(NamedTuple):
    """The places origin + offset, the draws along the first axis.

    `log` is that of the offset, where it is needed, and else -inf; the offset then has the sign.
    """

    origin: Array
    offset: Array
    log: Array

    @classmethod
    def around(cls, origin: Any, offset: Any) -> Draws:
        """An origin for all of them, and how far each is from it."""
        offset = np.asarray(offset, np.float64)
        origin = np.broadcast_to(np.asarray(origin, np.float64), offset.shape)
        return cls(origin, offset, np.full(offset.shape, -np.inf))

    @classmethod
    def by_logs(cls, origin: Any, sign: Any, scale: float, log: Array) -> Draws:
        """How many times the scale each is from its origin, by the logarithm of that."""
        whole = log + np.log(scale)
        offset = np.copysign(scale * np.exp(log), sign)
        needed = np.where(np.abs(whole) > ORDINARY, whole, -np.inf)
        return cls(np.broadcast_to(np.asarray(origin, np.float64), offset.shape), offset, needed)

    @classmethod
    def joined(cls, found: Sequence[Draws]) -> Draws:
        """One after the other."""
        return cls(*(np.concatenate(columns) for columns in zip(*found, strict=True)))

    @classmethod
    def beside(cls, found: Sequence[Draws]) -> Draws:
        """Several of each draw, along a second axis."""
        return cls(*(np.stack(columns, 1) for columns in zip(*found, strict=True)))

    def each(self, function: Callable[[Array], Array]) -> Draws:
        """The same done to all three arrays."""
        return Draws(*map(function, self))

    def beyond(self, loc: Any) -> Array:
        """How far they are from a location: the difference of origins first, which loses nothing that shows."""
        return np.asarray((self.origin - loc) + self.offset)

    def numbers(self) -> Array:
        """The places, rounded."""
        return self.beyond(0.0)

    def logs(self) -> Array:
        """The logarithms of the places, which are positive."""
        return np.where(self.log > -np.inf, self.log, np.log(self.numbers()))

    def charts(self) -> Iterator[tuple[float, float, Array]]:
        """Of numbers that need a logarithm: each origin and sign, and which of them have it."""
        away = np.flatnonzero(self.log > -np.inf)
        for origin in np.unique(self.origin[away]):
            for sign in (-1.0, 1.0):
                chosen = away[(self.origin[away] == origin) & (np.signbit(self.offset[away]) == (sign < 0.0))]
                if chosen.size:
                    yield float(origin), sign, chosen

    def volume(self) -> Array:
        """The logarithm of how much of the space is a unit of each `log`, by which a density is multiplied."""
        inner = tuple(range(1, self.log.ndim))
        return np.asarray(np.where(self.log > -np.inf, self.log, 0.0).sum(inner))

    def nudged(self, by: float, *, discrete: bool) -> Draws:
        """As far from there as rounding may have moved them; integers stay where all of them are numbers."""
        moved = self.offset * (1.0 + by * NUDGE)
        offset = np.where(np.abs(self.offset) < WHOLE, self.offset, moved) if discrete else moved
        return Draws(self.origin, offset, self.log + by * NUDGE * np.maximum(np.abs(self.log), 1.0))


def log_density(f: Any, draws: Draws) -> Array:
    """That of a density over numbers, per unit of the logarithm where the draws have one."""
    found = np.array(f.at(draws.origin, draws.offset), np.float64)
    for origin, sign, chosen in draws.charts():
        found[chosen] = f.logs(origin, sign, draws.log[chosen])
    return found
