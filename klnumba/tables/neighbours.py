"""Distances from the points of one sample to their neighbours in the same sample and in another.

Numbers are sorted; vectors go into SciPy's tree. Both give, for each point x[i],

- the distance to its k-th neighbour in x, itself not counted, and to its k-th neighbour in y;
- how many neighbours lie within a radius, and the distance to the farthest of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from klnumba.optional import load

ROOM = 1 << 22  # distances that are held at a time
SERIAL = 10_000  # points below which a tree is asked by one thread


class Line:
    """A sample of numbers, in their order."""

    def __init__(self, points: np.ndarray) -> None:
        self.points = np.sort(points)

    def kth(self, at: np.ndarray, k: int, own: bool) -> np.ndarray:
        """The distance from each number, in their order, to the k-th neighbour."""
        room = np.full(k, np.inf)
        padded = np.concatenate([-room, self.points, room])
        left = np.arange(at.size) if own else np.searchsorted(self.points, at)
        right = left + (2 * k if own else k + k - 1)  # in `padded`: the k-th to the right
        found = np.full(at.size, np.inf)
        for j in range(k + 1):  # j neighbours to the left, the others to the right
            low = at - padded[left + k - j] if j else np.zeros(at.size)
            high = padded[right - j] - at if j < k else np.zeros(at.size)
            np.minimum(found, np.maximum(low, high), out=found)
        return found

    def within(self, at: np.ndarray, radius: np.ndarray, least: int, own: bool) -> tuple[np.ndarray, np.ndarray]:
        """How many neighbours lie within the radius, and how far the farthest of them is."""
        points = np.concatenate([[-np.inf], self.points, [np.inf]])
        first = np.searchsorted(self.points, at - radius, "left") + 1
        last = np.searchsorted(self.points, at + radius, "right")
        # at - radius and at + radius are rounded, and may be on the wrong side of a few points
        while (wrong := at - points[first - 1] <= radius).any():
            first -= wrong
        while (wrong := at - points[first] > radius).any():
            first += wrong
        while (wrong := points[last + 1] - at <= radius).any():
            last += wrong
        while (wrong := points[last] - at > radius).any():
            last -= wrong
        return last - first + 1 - own, np.maximum(at - points[first], points[last] - at)


class Tree:
    """A sample of vectors."""

    def __init__(self, points: np.ndarray) -> None:
        self.points = points
        self.tree = load("scipy.spatial").cKDTree(points)

    def kth(self, at: np.ndarray, k: int, own: bool) -> np.ndarray:
        """The distance from each vector to the k-th neighbour."""
        return np.asarray(self._ask(at, [k + own])[:, 0])

    def within(self, at: np.ndarray, radius: np.ndarray, least: int, own: bool) -> tuple[np.ndarray, np.ndarray]:
        """How many neighbours lie within the radius (at least `least`), and how far the farthest of them is.

        More and more neighbours are asked for, until one is out of reach.
        """
        count, far = np.zeros(len(at), np.intp), np.zeros(len(at))
        left, size = np.arange(len(at)), 2 * (least + own)
        while left.size:
            size = min(2 * size, self.tree.n)
            more = []
            for start in range(0, left.size, step := max(1, ROOM // size)):
                part = left[start : start + step]
                distance = self._ask(at[part], np.arange(1, size + 1))
                found = (distance <= radius[part, None]).sum(axis=1)
                done = (found < size) | (size == self.tree.n)
                count[part[done]] = found[done] - own
                far[part[done]] = distance[done, found[done] - 1]
                more.append(part[~done])
            left = np.concatenate(more)
        return count, far

    def _ask(self, at: np.ndarray, ranks: Any) -> np.ndarray:
        workers = 1 if len(at) < SERIAL else -1
        return np.asarray(self.tree.query(at, k=ranks, workers=workers)[0])


def sample(points: np.ndarray) -> Line | Tree:
    """A sample, ready to be asked."""
    return Line(points[:, 0]) if points.shape[1] == 1 else Tree(points)
