"""Two samples of some columns side by side, and which of their cells are taken together for the evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from klnumba.tables.cells import Array

ROUNDING = 1e-9  # of weights that are equal
PRIOR = 10.0  # rows that speak for a cell's weights being like those of others

Squares = tuple[Array, Array]  # of both samples: the squares of the weights in each cell, in the unit of the counts


@dataclass(frozen=True)
class Pair:
    """Two samples of some columns: counts scaled to the effective numbers of rows, and the part each cell belongs to.

    Where the number of rows is infinite, the distribution is known, and the counts are its probabilities. The evidence
    looks at the cells of `told`, if there are others for it. It takes those that are `doubtful`, since the reference
    sample itself made them, together with the sparse ones, and those that are `sure` for what they are. Of cells that
    are as full, the one with the largest number in `order` comes first, which no sample has made. Where rows have
    weights, `squares` are the sums of theirs, of a row without one 1.
    """

    reference: Array
    n: Array
    current: Array
    m: Array
    groups: Array
    doubtful: Array | None = None
    sure: Array | None = None
    squares: Squares | None = None
    told: Pair | None = None
    order: Array | None = None

    @property
    def used(self) -> Array:
        """The cells that either sample has."""
        found: Array = (self.reference > 0) | (self.current > 0)
        return found

    def select(self, columns: Array) -> Pair:
        """Some of the columns."""
        sides = (self.reference, self.n, self.current, self.m, self.groups, self.doubtful, self.sure)
        squares = None if self.squares is None else tuple(side[columns] for side in self.squares)
        told = None if self.told is None else self.told.select(columns)
        order = None if self.order is None else self.order[columns]
        found: Any = (*(None if side is None else side[columns] for side in sides), squares, told, order)
        return Pair(*found)

    def turned(self, columns: Array) -> Pair:
        """The two sides of some columns exchanged."""
        first, second = _exchanged(columns[:, None], self.reference, self.current)
        n, m = _exchanged(columns, self.n, self.m)
        squares = None if self.squares is None else _exchanged(columns[:, None], *self.squares)
        return replace(self, reference=first, n=n, current=second, m=m, squares=squares)

    def cut(self, inside: Array) -> Pair:
        """Two cells a column: some cells together, and all others together."""
        sides = self.reference, self.current, *(self.squares or ())
        halves = [np.stack([np.where(here, side, 0.0).sum(axis=1) for here in (inside, ~inside)], 1) for side in sides]
        squares = None if self.squares is None else (halves[2], halves[3])
        return Pair(halves[0], self.n, halves[1], self.m, np.zeros_like(halves[0], np.int64), squares=squares)

    def shares(self) -> Array:
        """The probability of each cell if nothing has changed: the known one, or that of both samples together."""
        n, m = self.n[:, None], self.m[:, None]
        with np.errstate(invalid="ignore"):
            both = (self.reference + self.current) / (n + m)
        found: Array = np.where(np.isinf(n), self.reference, np.where(np.isinf(m), self.current, both))
        return found

    def expected(self) -> Array:
        """How many rows each cell lets expect in the smaller sample, if nothing has changed.

        A cell whose weight comes from a few rows lets expect no more than a share of as many as these are effectively:
        (sum of weights)^2 / sum of their squares. One heavy row makes no cell full.
        """
        least = np.minimum(self.n, self.m)[:, None]
        found: Array = self.shares() * least
        if self.squares is None:
            return found
        both, squares = self.reference + self.current, self.squares[0] + self.squares[1]
        total = (self.n + self.m)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            own = np.where(squares > 0, both * both / squares, 0.0) / total * least
        least_of_both: Array = np.where(np.isinf(total), found, np.minimum(found, own))
        return least_of_both

    def fullest(self) -> Array:
        """The place of the fullest cell of each column that is not doubtful."""
        rows = self.expected()
        if self.doubtful is not None:
            rows = np.where(self.doubtful, -1.0, rows)
        found: Array = rows.argmax(axis=1)
        if self.order is not None:
            full = ~fewer(rows, rows.max(axis=1, keepdims=True))
            found = np.where(full, self.order, -1.0).argmax(axis=1)
        return found

    def informed(self) -> Pair:
        """The counts scaled to as many rows as know what these cells hold, where weights go with the values.

        The effective number of rows supposes that they do not. In general the share p of a cell, of rows with the
        weights w, has the variance v = (sum of w^2 in the cell (1 - 2 p) + p^2 sum of all w^2) / (sum of w)^2, and as
        many rows of one weight as give the mean of v/p over the cells less one are (cells - 1) / sum of v/p
        (J. N. K. Rao and A. J. Scott, Journal of the American Statistical Association 76, pp. 221-230, 1981).
        """
        if self.squares is None:
            return self
        n, m = (
            _informed(size, side, squares)
            for size, side, squares in zip((self.n, self.m), (self.reference, self.current), self.squares, strict=True)
        )
        reference, current = self.reference * (n / self.n)[:, None], self.current * (m / self.m)[:, None]
        return replace(self, reference=reference, n=n, current=current, m=m, squares=None)


def fewer(rows: Array, limit: float | Array) -> Array:
    """Whether these are fewer rows, and not as many but for the rounding of weights."""
    found: Array = rows < limit * (1.0 - ROUNDING)
    return found


def pooled(pair: Pair, limit: float) -> Pair:
    """The sparse cells, which let expect fewer than `limit` rows, in one more cell; with the least one if need be."""
    sparse = fewer(pair.expected(), limit)
    sparse = sparse if pair.doubtful is None else sparse | pair.doubtful
    sparse = pair.used & (sparse if pair.sure is None else sparse & ~pair.sure)
    sides = pair.reference, pair.current, *(pair.squares or ())
    together = [np.where(sparse, 0.0, side) for side in sides]
    rest = [np.where(sparse, side, 0.0).sum(axis=1, keepdims=True) for side in sides]
    expected = _of(pair, rest).expected()[:, 0]
    kept = np.where((together[0] + together[1]) > 0, pair.shares(), np.inf)
    smallest = kept.argmin(axis=1)
    alone = ~fewer(expected, limit) | ~np.isfinite(kept).any(axis=1)
    rows = np.flatnonzero(~alone)
    for side, more in zip(together, rest, strict=True):
        side[rows, smallest[rows]] += more[rows, 0]
    extra = [np.where(alone[:, None], more, 0.0) for more in rest]
    return _of(pair, [np.hstack(both) for both in zip(together, extra, strict=True)])


def _of(pair: Pair, sides: list[Array]) -> Pair:
    """The same samples in other cells."""
    squares = None if pair.squares is None else (sides[2], sides[3])
    return Pair(sides[0], pair.n, sides[1], pair.m, np.zeros_like(sides[0], np.int64), squares=squares)


def _exchanged(here: Array, first: Array, second: Array) -> tuple[Array, Array]:
    return np.where(here, second, first), np.where(here, first, second)


def _informed(n: Array, counts: Array, squares: Array) -> Array:
    """How many rows of one weight are as certain as these about the cells, if there are two or more.

    The mean weight of a cell, of a row of it by weight, is 1 where weights do not depend on values. In a cell of few
    rows it comes out too small, since the heaviest are not among them: there it is drawn towards 1 by `PRIOR` rows.
    """
    same = (counts == squares).all(axis=1) | np.isinf(n)
    cells = (counts > 0).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = (counts + PRIOR) * squares / (counts * counts + PRIOR * squares)
        spread = np.where(counts > 0, np.maximum(squares / counts, drawn), 0.0).sum(axis=1) - 1.0
        found: Array = np.where(same | (cells < 2), n, n * (cells - 1) / spread)
    return found
