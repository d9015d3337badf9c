"""Categories that the cells do not name: counted by name, or by bucket where they are too many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from klnumba.tables.arrow import MOST_UNSEEN
from klnumba.tables.cells import Array, Label
from klnumba.tables.hashing import BUCKETS, buckets_of

Unseen = tuple[dict[Label, Any] | None, Array | None]  # as a tally has them


def in_buckets(labels: Iterable[Label], counts: Array) -> Array:
    """Counts of categories by bucket."""
    found = np.zeros(BUCKETS, counts.dtype)
    np.add.at(found, buckets_of(labels), counts)
    return found


def together(first: dict[Label, Any] | None, second: dict[Label, Any] | None) -> dict[Label, Any] | None:
    """What two parts remember; None where one has forgotten, or both are too many."""
    if first is None or second is None:
        return None
    both = dict(first)
    for label, count in second.items():
        both[label] = both.get(label, 0) + count
    return both if len(both) <= MOST_UNSEEN else None


def remembered(labels: list[Label], counts: Array, others: Array | None = None) -> Unseen:
    """New categories, by bucket if they are too many; `others` has those that were counted by bucket already."""
    if others is not None or len(labels) > MOST_UNSEEN:
        buckets = in_buckets(labels, counts)
        return None, buckets if others is None else buckets + others
    found: dict[Label, Any] = {}
    for label, count in zip(labels, counts.tolist(), strict=True):
        found[label] = found.get(label, 0) + count
    return found, None
