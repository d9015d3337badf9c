"""Weights of rows, added up by group and value."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from klnumba.kernels import cpu
from klnumba.tables.cells import Array
from klnumba.tables.codes import frozen
from klnumba.tables.sums import windows_of

BLOCK = 1 << 20  # groups times values whose exact sums are held at a time

# A row of counts for each group, or one for all; how many rows they stand for; the squares of the weights of each cell.
Side = tuple[Array, Array, Array | None]


def sides_of(
    group: Array, value: Array, weights: Array, size: tuple[int, int], place: int | None
) -> tuple[tuple[Side, Side], Array]:
    """The counts of groups and of what each is compared with, which add up to effective numbers of rows; the weights.

    These are all other groups, or the one at `place`.
    """
    totals = next(_sums(group, weights, size[0], 1, place))[1:]
    found = [(np.zeros(size), np.zeros(size[0]), np.zeros(size)) for _ in (totals if place is None else totals[:1])]
    for first, *both in _sums(value * size[0] + group, weights, *size, place):
        for (counts, sizes, squares), one, all_values in zip(found, both, totals, strict=False):
            cpu.scale_groups()(one, all_values, first, sizes, counts, squares)
    if place is not None:
        counts, sizes, squares = found[0]
        found.append((counts[place], sizes[place], squares[place]))
    return (found[0], found[1]), totals[0][:, 0]


def _sums(
    cells: Array, weights: Array, groups: int, values: int, place: int | None
) -> Iterator[tuple[int, Array, Array]]:
    """The first of some values, and the sums of each group and of all others, as `kernels.weight_sums` has them."""
    windows = windows_of(*((weights.min(), weights.max()) if weights.size else (1.0, 1.0)))
    cells = frozen(np.asarray(cells, np.int64))
    stops = np.bincount(cells, minlength=groups * values)
    stops = np.cumsum(stops) - stops
    ordered = np.empty(weights.size)
    cpu.sort_weights()(cells, frozen(weights), stops, ordered)
    step = max(1, BLOCK // max(groups, 1))
    for first in range(0, values, step):
        start = int(stops[first * groups - 1]) if first and groups else 0
        part = frozen(stops[first * groups : (first + step) * groups])
        own, other = np.zeros((part.size, 4)), np.zeros((part.size if place is None else 0, 4))
        if part.size:
            room = np.zeros((3, windows.width), np.int64), np.zeros(4)
            cpu.weigh_groups()(frozen(ordered), start, part, groups, windows.low, *room, own, other)
        yield first, own, other
