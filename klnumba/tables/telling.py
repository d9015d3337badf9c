"""The cells that the evidence looks at, where the reference sample itself has made some of a column's cells.

That a sample has nothing below its least number, above its greatest, or in categories that it happens not to have, is
no news: the next sample of the same law has something there. Fixed cells hold what these cells hold, and more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.tables.cells import Array, Bins, Categories, Cells, Label
from klnumba.tables.hashing import order_of
from klnumba.tables.pooling import ROUNDING, Pair, Squares, fewer
from klnumba.tables.statistics import RARE, SPARSE
from klnumba.tables.tally import Tally
from klnumba.tables.unseen import in_buckets

CHANCE = 1e-4  # what chance does more seldom than this is told apart


@dataclass(frozen=True)
class Side:
    """One of two samples of a column: its tally, and its counts scaled to `rows` effective rows."""

    tally: Tally
    counts: Array
    rows: float

    @property
    def scale(self) -> float:
        """The effective rows that a row (or a unit of weight) of the tally is."""
        held, counts = float(self.tally.counts[self.counts > 0].sum()), float(self.counts.sum())
        return counts / held if held > 0.0 else 1.0

    @property
    def squares(self) -> Array:
        """The squares of the weights in each cell, in the unit of the counts; of rows of one weight, the counts."""
        if self.tally.squares is None:
            return self.counts.copy()
        found: Array = np.where(self.counts > 0, self.tally.squares, 0.0) * self.scale**2
        return self.counts.copy() if np.allclose(found, self.counts, ROUNDING, 0.0) else found


@dataclass
class Told:
    """The counts of one column that the evidence looks at; which cells are `doubtful` or `sure`, and the `order`.

    See `Pair`.
    """

    reference: Array
    current: Array
    squares: Squares
    doubtful: Array
    sure: Array
    order: Array


def told(cells: Cells, reference: Side, current: Side) -> Told:
    """The cells of a column for the evidence."""
    none = np.zeros(cells.size, bool)
    squares = reference.squares, current.squares
    found = Told(reference.counts.copy(), current.counts.copy(), squares, none, none.copy(), np.zeros(cells.size))
    if np.isinf(reference.rows) or not reference.rows > 0 or not current.rows > 0:
        return found
    if isinstance(cells, Bins):
        return _bins(cells, found, reference.rows, current.rows)
    if cells.folded or any(side.tally.buckets is not None for side in (reference, current)):
        return _hashed(cells, reference, current)
    return _named(cells, found, reference, current)


def surprise(found: Array, n: float, m: float) -> Any:
    """How likely it is that a certain cell, which has `found` rows of `m`, has none of the `n` others.

    The numbers beyond the greatest of a sample follow the same law. Where `m` is infinite, `found` is a probability.
    """
    return np.power(1.0 - found, n) if np.isinf(m) else np.power(m / (n + m), found)


def _rows(counts: Array, squares: Array) -> Array:
    """As many rows as counts stand for: no more than those that have the weight effectively."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = np.minimum(counts, np.where(squares > 0, counts * counts / squares, 0.0))
    return found


def _bins(cells: Bins, found: Told, n: float, m: float) -> Told:
    """Cells that are empty because of where the edges are belong to their neighbours.

    These are the cells below and above, and what follows a number that has a bin of its own. If there is more in one
    than chance would bring there, it is a cell.
    """
    bins = cells.edges.size - 1
    if not cells.fitted or bins < 1:
        return found
    neighbours = {0: 1, bins + 1: bins}
    neighbours |= {int(k) + 2: int(k) + 3 for k in np.flatnonzero(cells.alone[:-1]) if k + 3 <= bins}
    made = [k for k in neighbours if found.reference[k] == 0 and found.current[k] > 0]
    current, squares = found.current, found.squares[1]
    rows = current if np.isinf(m) else _rows(current, squares)
    sure = surprise(rows[made], n, m) < CHANCE
    moved = [k for k, one in zip(made, sure, strict=True) if not one]
    found.sure[made] = sure
    joined = current.copy(), squares.copy()
    for k in moved:
        for side in joined:
            side[neighbours[k]] += side[k]
            side[k] = 0.0
    if ((found.reference > 0) | (joined[0] > 0)).sum() > 1:
        found.current, found.squares = joined[0], (found.squares[0], joined[1])
    else:
        _outside(cells, found, moved)
    return found


def _outside(cells: Bins, found: Told, empty: list[int]) -> None:
    """All of the reference lies in one bin: nothing is left but to ask how much lies outside.

    If two of its numbers made the bin, as many count as outside. A bin that one row made says nothing at all.
    """
    found.doubtful[empty] = True
    place = int(found.reference.argmax())
    if empty and cells.edges[0] == cells.edges[-1]:
        found.doubtful[place] = fewer(found.reference[place], 2.0)
    elif empty:
        part = min(2.0 / found.reference[place], 0.5)
        for side in (found.reference, found.squares[0]):
            more = part * side[place]
            side[place] -= more
            side[empty[0]] += more


def _named(cells: Categories, found: Told, reference: Side, current: Side) -> Told:
    """The cell of other categories holds what happened not to be in the sample that made the cells.

    A category without a name is a cell where it would be one if it had a name, since otherwise the cells would be
    chosen by what the reference has. It is one for `sure` if the reference lacks it and it is more frequent than chance
    would make any that the reference lacks: there are no more than (n + m) / count of so many rows. Where all are too
    sparse, the fullest one is a cell, of those that are as full the first in an order that does not know which of them
    the reference has. Where a side does not tell the others apart, all of them stay one cell.
    """
    n, m = reference.rows, current.rows
    found.doubtful[-2] = found.reference[-2] == 0.0
    if not (_tells(reference) and _tells(current)):
        return found
    found.doubtful[-2] = True
    labels, order = _others(reference, current)
    sides = [_unseen(side, labels) for side in (reference, current)]
    rows, kept, sure = _full(sides, n, m)
    if (found.doubtful | _sparse(found, n, m)).all():
        found.order[:-2] = order_of(cells.names)
        kept[_first(rows, order)] = True
    named = [tuple(one[kept] for one in side) for side in sides]
    for side, part in zip((found.reference, found.current), named, strict=True):
        side[-2] = max(side[-2] - part[0].sum(), 0.0)
    for side, part in zip(found.squares, named, strict=True):
        side[-2] = max(side[-2] - part[1].sum(), 0.0)
    (first, first_squares), (second, second_squares) = named
    return Told(
        np.append(found.reference, first), np.append(found.current, second),
        (np.append(found.squares[0], first_squares), np.append(found.squares[1], second_squares)),
        np.append(found.doubtful, np.zeros(first.size, bool)), np.append(found.sure, sure[kept]),
        np.append(found.order, order[kept]),
    )  # fmt: skip


def _full(sides: list[Squares], n: float, m: float) -> tuple[Array, Array, Array]:
    """Of categories that have no cell: the rows in both samples, which have enough of them, and which have for sure."""
    (first, first_squares), (second, second_squares) = sides
    rows = second if np.isinf(m) else _rows(first + second, first_squares + second_squares)
    with np.errstate(divide="ignore"):
        most = (1.0 if np.isinf(m) else n + m) / rows
    sure = (first == 0.0) & (surprise(rows, n, m) * most < CHANCE)
    return rows, sure | ~fewer(rows * n if np.isinf(m) else rows * min(n, m) / (n + m), RARE), sure


def _tells(side: Side) -> bool:
    """Whether the tally has the names of all that the cell of other categories holds."""
    named = math.fsum((side.tally.unseen or {}).values())
    return named >= float(side.tally.counts[-2]) * (1.0 - ROUNDING)


def _others(*sides: Side) -> tuple[list[Label], Array]:
    """The categories that have no cell of their own, in an order that depends on nothing but them, and that order."""
    labels = [*{label: None for side in sides for label, count in (side.tally.unseen or {}).items() if count > 0}]
    order = order_of(labels)
    first = sorted(range(len(labels)), key=lambda k: (order[k], str(labels[k])))
    return [labels[k] for k in first], order[first]


def _first(rows: Array, order: Array) -> Array:
    """The place of the fullest of these cells, if there are any."""
    full = np.flatnonzero(~fewer(rows, rows.max(initial=0.0)))
    first = order[full] == order[full].max(initial=0.0)
    found: Array = full[first][:1]
    return found


def _sparse(found: Told, n: float, m: float) -> Array:
    """The cells that let expect few rows."""
    none = np.zeros((1, found.reference.size), np.int64)
    first, second = found.squares
    squares = first[None], second[None]
    pair = Pair(found.reference[None], np.array([n]), found.current[None], np.array([m]), none, squares=squares)
    return fewer(pair.expected()[0], SPARSE)


def _unseen(side: Side, labels: list[Label]) -> Squares:
    """The counts of categories that have no cell of their own, and the squares of the weights in each.

    Of these the tally has the sum alone. Dealt out by the squares of the counts, it is right where each is one row: a
    heavy row among them has the square of its weight, and makes no full cell.
    """
    held = side.tally.unseen or {}
    counts = np.array([held.get(label, 0) for label in labels], np.float64) * side.scale
    return counts, _dealt(counts, side)


def _dealt(counts: Array, side: Side) -> Array:
    """The squares of the weights of the cell of other categories, by the squares of counts, of which none has more."""
    if (side.squares == side.counts).all():
        return counts
    squares, total = counts * counts, float(side.squares[-2])
    found: Array = squares * min(1.0, total / squares.sum()) if squares.any() else squares
    return found


def _hashed(cells: Categories, reference: Side, current: Side) -> Told:
    """Where there are too many categories to name all, cells that do not depend on any sample: those of
    `klnumba.tables.hashing.buckets_of`.

    Those that have a name happened to be the most frequent ones, and another sample has fewer of them. So many cells
    with few rows each are more than the interval's law bears.
    """
    (left, first), (right, second) = (_in_buckets(cells, side) for side in (reference, current))
    nothing = np.zeros(left.size, bool)
    found = Told(left, right, (first, second), nothing, nothing, np.zeros(left.size))
    found.doubtful = _sparse(found, reference.rows, current.rows)
    found.doubtful[-1] = True
    return found


def _in_buckets(cells: Categories, side: Side) -> Squares:
    """The counts of all categories, by bucket, and of what is missing or could not be told apart; their squares."""
    others = side.tally.in_buckets() * side.scale
    found = in_buckets(cells.names, side.counts[:-2]) + others
    counts = np.append(found, [side.counts[-1], max(side.counts[:-1].sum() - found.sum(), 0.0)])
    squares = side.squares
    if (squares == side.counts).all():
        return counts, counts
    known = _dealt(others, side)
    rest = [squares[-1], max(squares[-2] - known.sum(), 0.0)]
    return counts, np.append(in_buckets(cells.names, squares[:-2]) + known, rest)
