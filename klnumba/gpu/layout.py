"""How the cells of an array lie in memory, and how its rows do: shapes and steps, no memory."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

KEPT = 4096  # layouts of which it is remembered what was asked: those of small calls, which come again and again


class Layout(NamedTuple):
    """A shape and the distance in cells between neighbours along each axis. It holds no memory, and may be kept."""

    shape: tuple[int, ...]
    steps: tuple[int, ...]

    @functools.lru_cache(KEPT)  # noqa: B019
    def broadcast(self, shape: tuple[int, ...]) -> Layout:
        """The layout of the array broadcast to `shape`: axes of length one, and new ones, have step 0."""
        lead = len(shape) - len(self.shape)
        steps = [0] * lead
        steps += [0 if n == 1 else step for n, step in zip(self.shape, self.steps, strict=True)]
        return Layout(shape, tuple(steps))

    def transposed(self, order: tuple[int, ...]) -> Layout:
        return Layout(tuple(self.shape[k] for k in order), tuple(self.steps[k] for k in order))

    @functools.lru_cache(KEPT)  # noqa: B019
    def row_step(self, kept: int) -> int | None:
        """The distance between rows whose cells are adjacent, rows being all axes from `kept` on; None if they are not.

        The rows are numbered in the order of the first `kept` axes, and must be at one distance throughout.
        """
        d = math.prod(self.shape[kept:])
        run = 1
        for n, step in zip(reversed(self.shape[kept:]), reversed(self.steps[kept:]), strict=True):
            if n > 1 and step != run:
                return None
            run *= n
        outer = [(n, step) for n, step in zip(self.shape[:kept], self.steps[:kept], strict=True) if n > 1]
        if not outer:
            return d
        distance = outer[-1][1]
        run = distance
        for n, step in reversed(outer):
            if step != run:
                return None
            run *= n
        return distance if distance >= 0 else None

    def is_adjacent(self) -> bool:
        """Whether the cells lie side by side in C order."""
        return math.prod(self.shape) <= 1 or self.row_step(0) is not None

    def least(self) -> int:
        """The offset of the first cell in memory from the cell with all indices 0: not above 0."""
        return sum((n - 1) * step for n, step in zip(self.shape, self.steps, strict=True) if step < 0)

    def extent(self) -> int:
        """Cells of memory from the first to the last."""
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * abs(step) for n, step in zip(self.shape, self.steps, strict=True))


@functools.lru_cache(KEPT)
def adjacent(shape: tuple[int, ...]) -> Layout:
    """The layout of an array whose cells are adjacent, the last axis fastest."""
    steps = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return Layout(shape, tuple(steps))
