"""The cells that the evidence looks at, where the reference sample itself has made some of a column's cells.

That a sample has nothing below its least number, above its greatest, or in categories that it happens not to have, is
no news: the next sample of the same law has something there. Fixed cells hold what these cells hold, and more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.tables.cells import Array, Bins, Categories, Cells
from klnumba.tables.counting import Tally
from klnumba.tables.statistics import SPARSE
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


@dataclass
class Told:
    """The counts of one column that the evidence looks at, and which cells are `doubtful` or `sure` (see `Pair`)."""

    reference: Array
    current: Array
    doubtful: Array
    sure: Array


def told(cells: Cells, reference: Side, current: Side) -> Told:
    """The cells of a column for the evidence."""
    found = Told(reference.counts.copy(), current.counts.copy(), np.zeros(cells.size, bool), np.zeros(cells.size, bool))
    if np.isinf(reference.rows) or not reference.rows > 0 or not current.rows > 0:
        return found
    if isinstance(cells, Bins):
        return _bins(cells, found, reference.rows, current.rows)
    if cells.folded or any(side.tally.buckets is not None for side in (reference, current)):
        return _hashed(cells, reference, current)
    return _named(found, reference.rows, current)


def surprise(found: Array, n: float, m: float) -> Any:
    """How likely it is that a certain cell, which has `found` rows of `m`, has none of the `n` others.

    The numbers beyond the greatest of a sample follow the same law. Where `m` is infinite, `found` is a probability.
    """
    return np.power(1.0 - found, n) if np.isinf(m) else np.power(m / (n + m), found)


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
    sure = surprise(found.current[made], n, m) < CHANCE
    moved = [k for k, one in zip(made, sure, strict=True) if not one]
    found.sure[made] = sure
    joined = found.current.copy()
    for k in moved:
        joined[neighbours[k]] += joined[k]
        joined[k] = 0.0
    if ((found.reference > 0) | (joined > 0)).sum() > 1:
        found.current = joined
    else:
        _outside(cells, found, moved)
    return found


def _outside(cells: Bins, found: Told, empty: list[int]) -> None:
    """All of the reference lies in one bin: nothing is left but to ask how much lies outside.

    If two of its numbers made the bin, as many count as outside.
    """
    found.doubtful[empty] = True
    if empty and cells.edges[0] < cells.edges[-1]:
        place = int(found.reference.argmax())
        more = min(2.0, found.reference[place] / 2.0)
        found.reference[place] -= more
        found.reference[empty[0]] += more


def _named(found: Told, n: float, current: Side) -> Told:
    """The cell of other categories holds what happened not to be in the reference.

    A new category is a cell if it is more frequent than chance would make any category that the reference lacks: there
    are no more than (n + m) / count of so many rows.
    """
    found.doubtful[-2] = True
    counts = np.array([*(current.tally.unseen or {}).values()], np.float64) * current.scale
    counts = np.sort(counts[counts > 0])[::-1]
    m = current.rows
    most = (1.0 if np.isinf(m) else n + m) / counts
    counts = counts[surprise(counts, n, m) * most < CHANCE]
    found.current[-2] = max(found.current[-2] - counts.sum(), 0.0)
    nothing = np.zeros(counts.size)
    return Told(
        np.append(found.reference, nothing), np.append(found.current, counts),
        np.append(found.doubtful, nothing > 0), np.append(found.sure, nothing == 0),
    )  # fmt: skip


def _hashed(cells: Categories, reference: Side, current: Side) -> Told:
    """Where there are too many categories to name all, cells that do not depend on any sample: those of
    `klnumba.tables.unseen.buckets_of`.

    Those that have a name happened to be the most frequent ones, and another sample has fewer of them. So many cells
    with few rows each are more than the interval's law bears.
    """
    left, right = (_in_buckets(cells, side) for side in (reference, current))
    n, m = reference.rows, current.rows
    sparse = (right * n if np.isinf(m) else (left + right) * min(n, m) / (n + m)) < SPARSE
    sparse[-1] = True
    return Told(left, right, sparse, np.zeros(left.size, bool))


def _in_buckets(cells: Categories, side: Side) -> Array:
    """The counts of all categories, by bucket; then what is missing, and what could not be told apart."""
    found = (in_buckets(cells.names, side.tally.counts[:-2]) + side.tally.in_buckets()) * side.scale
    missing = side.counts[-1]
    return np.append(found, [missing, max(side.counts[:-1].sum() - found.sum(), 0.0)])
