"""What a column holds: how many rows, or which sums of weights, each of its cells has."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from klnumba.fixed_point import ratio
from klnumba.formulas.exact_integers import BIAS
from klnumba.tables import sums
from klnumba.tables.cells import Array, Cells, Label
from klnumba.tables.unseen import in_buckets, together

EVERY = slice(None)


@dataclass
class Tally:
    """What a column holds: counts (int64), or sums of weights with the sums of their squares (float64), of each cell.

    `unseen` has the same of the categories that the cells do not name, or None where there were too many of them; then
    they are counted by `buckets` (see `klnumba.tables.unseen`), which are exact however the rows are split. Where
    neither is there, they were not told apart. Shares (float64) without squares are a distribution that is known: no
    rows were counted, and none can be added. Sums of weights are rounded once, from those that `exact` has as integers
    (see `klnumba.tables.sums`).
    """

    counts: Array
    squares: Array | None
    rows: int
    unseen: dict[Label, Any] | None
    buckets: Array | None = None
    exact: Tally | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.squares is not None and self.exact is None and self.counts.dtype != object:
            self.exact = self._mapped(lambda values: sums.listed(map(sums.of_float, values.tolist())))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Of a pickle that an earlier version wrote, `exact` has to be made."""
        self.__dict__.update(state)
        self.__post_init__()

    def _mapped(self, change: Callable[[Array], Array], exact: Tally | None = None) -> Tally:
        """The same with other numbers."""
        squares, buckets = (None if one is None else change(one) for one in (self.squares, self.buckets))
        unseen = self.unseen
        if unseen:
            unseen = dict(zip(unseen, change(np.array([*unseen.values()], self.counts.dtype)).tolist(), strict=True))
        return Tally(change(self.counts), squares, self.rows, unseen, buckets, exact)

    def rounded(self) -> Tally:
        """Sums of weights from integers."""
        return self._mapped(sums.rounded, self)

    @property
    def known(self) -> bool:
        """Whether these are the shares of a distribution, and not counts."""
        return self.squares is None and self.counts.dtype.kind == "f"

    def __add__(self, other: Tally) -> Tally:
        if (self.squares is None) != (other.squares is None):
            raise ValueError("one has weights, the other has none")
        if self.known or other.known:
            raise ValueError("is a known distribution, without counts to which others could be added")
        if self.exact is not None and other.exact is not None:
            return (self.exact + other.exact).rounded()
        squares = None if self.squares is None or other.squares is None else self.squares + other.squares
        counts, unseen, buckets = self.counts + other.counts, together(self.unseen, other.unseen), None
        if unseen is None and not any(one.unseen is None and one.buckets is None for one in (self, other)):
            buckets = self.in_buckets() + other.in_buckets()
        return Tally(counts, squares, self.rows + other.rows, unseen, buckets)

    def in_buckets(self) -> Array:
        """The categories that the cells do not name, by bucket."""
        if self.buckets is not None:
            return self.buckets
        unseen = self.unseen or {}
        return in_buckets(unseen, np.array([*unseen.values()], self.counts.dtype))

    def effective(self, cells: Array | slice = EVERY) -> float:
        """The effective number of rows in some cells: (sum of weights)^2 / sum of their squares; of shares, inf."""
        if self.known:
            return math.inf
        if self.exact is None:
            return float(self.counts[cells].sum())
        total, squares = self.exact._totals(cells)
        return ratio(total * total, squares << BIAS) if squares else 0.0

    def scaled(self, cells: Array) -> Array:
        """The counts of some cells, which add up to their effective number of rows, and 0 in the others; or shares."""
        counts: Array = np.where(cells, self.counts, 0).astype(np.float64)
        if self.exact is None:
            return counts / (counts.sum() or 1.0) if self.known else counts
        total, squares = self.exact._totals(cells)
        if squares:  # rounded once: of rows of one weight these are their numbers
            held = self.exact.counts[cells].tolist()
            counts[cells] = [ratio(one * total, squares << BIAS) for one in held]
        return counts

    def _totals(self, cells: Array | slice) -> tuple[int, int]:
        """The sum of weights in some cells, and that of squares, of integers."""
        assert self.squares is not None
        return sum(self.counts[cells].tolist()), sum(self.squares[cells].tolist())


def empty(cells: Cells, weighted: bool) -> Tally:
    """No rows."""
    if weighted:
        return Tally(np.zeros(cells.size), np.zeros(cells.size), 0, {})
    return Tally(np.zeros(cells.size, np.int64), None, 0, {})
