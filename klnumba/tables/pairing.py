"""The counts of two tables side by side: those of the cells, and those that the evidence looks at."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from klnumba.tables import telling
from klnumba.tables.cells import MISSING, Cells
from klnumba.tables.pooling import Pair, Squares
from klnumba.tables.profile import Profile
from klnumba.tables.tally import Tally


@dataclass
class Column:
    """The counts of one column on both sides, scaled to the effective numbers of rows; `place` is its among others."""

    place: int
    cells: Cells
    reference: telling.Side
    current: telling.Side
    told: telling.Told

    @property
    def kind(self) -> tuple[int, int, bool]:
        """How many cells it has, how many the evidence looks at, and whether rows have weights."""
        weighted = any(side.tally.squares is not None for side in (self.reference, self.current))
        return self.reference.counts.size, self.told.reference.size, weighted


def pairs_of(
    profile: Profile, tallies: dict[str, Tally], names: list[str], missing: str
) -> Iterator[tuple[list[int], Pair]]:
    """The counts of both sides, of columns with as many cells together, and the places of these among the names.

    The order of a sum depends on its length: padded to the length of another column, a column would not have the bits
    that it has alone.
    """
    columns = [
        _column(k, profile.cells[name], profile.tallies[name], tallies[name], missing) for k, name in enumerate(names)
    ]
    for _, alike in itertools.groupby(sorted(columns, key=lambda one: one.kind), lambda one: one.kind):
        held = [*alike]
        yield [one.place for one in held], _pair(held)


def _column(place: int, cells: Cells, first: Tally, second: Tally, missing: str) -> Column:
    kept = cells.groups() != MISSING if missing == "drop" else np.ones(cells.size, bool)
    left, right = (telling.Side(one, one.scaled(kept), one.effective(kept)) for one in (first, second))
    return Column(place, cells, left, right, telling.told(cells, left, right))


def _pair(columns: list[Column]) -> Pair:
    told = [one.told for one in columns]
    n, m = (np.array([one.rows for one in side]) for side in _sides(columns))
    evidence = Pair(
        np.stack([one.reference for one in told]), n, np.stack([one.current for one in told]), m,
        np.zeros((len(told), told[0].reference.size), np.int64),
        np.stack([one.doubtful for one in told]), np.stack([one.sure for one in told]),
        _squares(told) if columns[0].kind[-1] else None, order=np.stack([one.order for one in told]),
    )  # fmt: skip
    left, right = (np.stack([one.counts for one in side]) for side in _sides(columns))
    return Pair(left, n, right, m, np.stack([one.cells.groups() for one in columns]), told=evidence)


def _sides(columns: list[Column]) -> tuple[list[telling.Side], list[telling.Side]]:
    return [one.reference for one in columns], [one.current for one in columns]


def _squares(told: list[telling.Told]) -> Squares:
    return np.stack([one.squares[0] for one in told]), np.stack([one.squares[1] for one in told])
