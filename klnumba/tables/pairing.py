"""The counts of two tables side by side, and which cells say something about a change."""

from __future__ import annotations

import numpy as np

from klnumba.tables.cells import MISSING, Array, Categories, Cells
from klnumba.tables.counting import Tally
from klnumba.tables.profile import Profile
from klnumba.tables.statistics import SPARSE, Pair

FAR = 4.0  # standard deviations from the rarest category that has a name


def pair_of(profile: Profile, tallies: dict[str, Tally], names: list[str], missing: str) -> Pair:
    """The counts of both sides as rows of one length, scaled to the effective numbers of rows."""
    size = max((profile.cells[name].size for name in names), default=1)
    reference, current = np.zeros((len(names), size)), np.zeros((len(names), size))
    groups, doubtful = np.zeros((len(names), size), np.int64), np.zeros((len(names), size), bool)
    n, m = np.zeros(len(names)), np.zeros(len(names))
    new: list[list[int]] = []
    for k, name in enumerate(names):
        one, first, second = profile.cells[name], profile.tallies[name], tallies[name]
        groups[k, : one.size] = one.groups()
        kept = groups[k, : one.size] != MISSING if missing == "drop" else np.ones(one.size, bool)
        n[k] = first.effective(kept)
        m[k] = second.effective(kept)
        reference[k, : one.size] = _scaled(first.counts, kept, n[k])
        current[k, : one.size] = _scaled(second.counts, kept, m[k])
        sampled = isinstance(one, Categories) and name not in profile.known
        if sampled:
            sides = (reference[k, : one.size], n[k], current[k, : one.size], m[k])
            doubtful[k, : one.size] = _chosen(one, *sides)
        new.append(_frequent(one, second) if sampled else [])
    return Pair(reference, n, current, m, groups, doubtful, _rows(new))


def _scaled(counts: Array, kept: Array, n: float) -> Array:
    found = np.where(kept, counts, 0.0).astype(np.float64)
    total = found.sum()
    if total == 0.0 or total == n:
        return found
    scaled: Array = found / total if np.isinf(n) else found * (n / total)
    return scaled


def _chosen(cells: Cells, reference: Array, n: float, current: Array, m: float) -> Array:
    """The cells that are what they are because of the reference sample.

    "other" holds what happened not to be in it. Where there were too many categories, those that have a name happened
    to be the most frequent, and another sample will have fewer of them: all but those that both samples together put
    far above the rarest that has a name.
    """
    found = np.zeros(cells.size, bool)
    found[-2] = True
    if isinstance(cells, Categories) and cells.folded and n > 0:
        least = float(reference[:-2].min())
        share = current[:-2] if np.isinf(m) else (reference[:-2] + current[:-2]) / (n + m)
        expected = share * n
        found[:-2] = expected < least + FAR * np.sqrt(least)
    return found


def _frequent(cells: Cells, current: Tally) -> list[int]:
    """The counts of new categories that are not sparse, the largest first; none where they may not be new."""
    if current.squares is not None or not current.unseen or (isinstance(cells, Categories) and cells.folded):
        return []
    return sorted((count for count in current.unseen.values() if count >= SPARSE), reverse=True)


def _rows(lists: list[list[int]]) -> Array:
    found = np.zeros((len(lists), max(map(len, lists), default=0)))
    for k, one in enumerate(lists):
        found[k, : len(one)] = one
    return found
