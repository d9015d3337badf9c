"""Rows as logarithms in float64: of whatever kind they are, normalised, or with all but a few cells in one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from klnumba.kernels import threads
from klnumba.scoring.source import Array

Result = TypeVar("Result")
CELLS = 1 << 20  # that are worked on at a time at most
LEAST_CELLS = 1 << 13  # and at least, but for rows that are longer
BYTES = 40  # that a cell takes meanwhile: five numbers
SHARE = 16  # of a limit on memory one part is for that


def cells_within(limit: int) -> int:
    """How many cells are worked on at a time, where no more than `limit` bytes of memory are left for all."""
    return min(CELLS, max(LEAST_CELLS, limit // (SHARE * BYTES)))


def working(cells: int, shape: tuple[int | None, ...]) -> int:
    """Bytes that `spread` takes for rows of a shape, so many cells of them at a time."""
    row = math.prod(n or 0 for n in shape[1:])
    most = max(cells, row)
    return BYTES * (most if shape[0] is None else min(most, shape[0] * row))


def spread(rows: Array, work: Callable[[slice], Result], count: int | None, cells: int = CELLS) -> Iterator[Result]:
    """What `work` makes of every slice of some rows, in their order, on so many threads.

    Together the threads have so many cells in hand, or one entry of the first axis.
    """
    count = threads.choose(count, rows.size)
    whole = max(1, cells // max(math.prod(rows.shape[1:]), 1))
    for first in range(0, len(rows), whole):
        last = min(first + whole, len(rows))
        step = -(-(last - first) // count)
        parts = [slice(start, min(start + step, last)) for start in range(first, last, step)]
        found: list[Any] = [None] * len(parts)

        def one(k: int, parts: list[slice] = parts, found: list[Any] = found) -> None:
            found[k] = work(parts[k])

        threads.run(one, range(len(parts)), count)
        yield from found


def logarithms(rows: Array, kind: str, temperature: float) -> Array:
    """Logarithms of the cells, up to a constant of each row."""
    cells = rows.astype(np.float64)
    if kind == "prob":
        with np.errstate(divide="ignore", invalid="ignore"):
            np.log(cells, out=cells)
    elif temperature != 1.0:
        cells /= temperature
    return cells


def masses(cells: Array) -> tuple[Array, Array]:
    """exp(cells - largest) of each row, and the largest; a row without a finite largest cell becomes NaN."""
    largest = cells.max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.exp(cells - largest), largest


def normalised(cells: Array) -> Array:
    """Logarithms less that of their mass: log_softmax."""
    mass, largest = masses(cells)
    total = np.log(mass.sum(axis=-1, keepdims=True))
    with np.errstate(invalid="ignore"):
        found: Array = cells - largest - total
    return found


def largest_cells(cells: Array, count: int) -> Array:
    """The places of the largest cells of each row, the largest first, and of equal ones the first."""
    first = cells.shape[-1] - count
    least = np.partition(cells, first, axis=-1)[:, first : first + 1].copy()
    chosen = ~(cells < least)  # and all of a row of NaN
    many = np.flatnonzero(chosen.sum(axis=-1) > count)
    if many.size:  # equal cells, of which some are too many
        above = cells[many] > least[many]
        equal = chosen[many] & ~above
        equal &= equal.cumsum(axis=-1) <= count - above.sum(axis=-1, keepdims=True)
        chosen[many] = above | equal
    places = chosen.nonzero()[1].reshape(len(cells), count)
    order = np.argsort(-np.take_along_axis(cells, places, axis=-1), axis=-1, kind="stable")
    return np.take_along_axis(places, order, axis=-1)


def coarsened(cells: Array, places: Array) -> Array:
    """The cells at `places`, and behind them the logarithm of what the others hold together."""
    kept, others = np.take_along_axis(cells, places, axis=-1), cells.copy()
    np.put_along_axis(others, places, -np.inf, axis=-1)
    mass, largest = masses(others)  # beside the cells that are kept all of them may vanish
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.log(mass.sum(axis=-1, keepdims=True)) + largest
    rest[largest == -np.inf] = -np.inf
    return np.concatenate([kept, rest], axis=-1)
