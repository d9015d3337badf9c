"""The counts of two tables side by side: those of the cells, and those that the evidence looks at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from klnumba.tables import telling
from klnumba.tables.cells import MISSING, Array
from klnumba.tables.pooling import Pair, Squares
from klnumba.tables.profile import Profile
from klnumba.tables.tally import Tally


def pair_of(profile: Profile, tallies: dict[str, Tally], names: list[str], missing: str) -> Pair:
    """The counts of both sides as rows of one length, scaled to the effective numbers of rows."""
    n, m = np.zeros(len(names)), np.zeros(len(names))
    left: list[Array] = []
    right: list[Array] = []
    groups: list[Array] = []
    told: list[telling.Told] = []
    tables = profile.tallies, tallies
    for k, name in enumerate(names):
        one, first, second = profile.cells[name], profile.tallies[name], tallies[name]
        groups.append(one.groups())
        kept = groups[k] != MISSING if missing == "drop" else np.ones(one.size, bool)
        n[k] = first.effective(kept)
        m[k] = second.effective(kept)
        left.append(first.scaled(kept))
        right.append(second.scaled(kept))
        told.append(telling.told(one, telling.Side(first, left[k], n[k]), telling.Side(second, right[k], m[k])))
    evidence = Pair(
        _rows([one.reference for one in told]), n, _rows([one.current for one in told]), m,
        _rows([np.zeros(one.reference.size) for one in told], np.int64),
        _rows([one.doubtful for one in told], bool), _rows([one.sure for one in told], bool),
        _squares(told) if any(table[name].squares is not None for table in tables for name in names) else None,
        order=_rows([one.order for one in told]),
    )  # fmt: skip
    return Pair(_rows(left), n, _rows(right), m, _rows(groups, np.int64), told=evidence)


def _squares(told: list[telling.Told]) -> Squares:
    return _rows([one.squares[0] for one in told]), _rows([one.squares[1] for one in told])


def _rows(lists: Sequence[Array], kind: type = np.float64) -> Array:
    """Rows of one length, padded with zeros."""
    found: Array = np.zeros((len(lists), max((one.size for one in lists), default=1)), kind)
    for k, one in enumerate(lists):
        found[k, : one.size] = one
    return found
