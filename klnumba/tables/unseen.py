"""Categories that the cells do not name: counted by name, or by bucket where they are too many."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from klnumba.tables.arrow import MOST_UNSEEN
from klnumba.tables.cells import Array, Label
from klnumba.tables.fitting import mixed

BUCKETS = 1024  # by which categories without a name are counted, where there are too many to remember them

Unseen = tuple[dict[Label, Any] | None, Array | None]  # as a tally has them


def buckets_of(labels: Iterable[Label]) -> Array:
    """The bucket of each category: one of `BUCKETS`, by its text alone. Numbers that are equal share one."""
    found: Array = (_mixed(labels) % np.uint64(BUCKETS)).astype(np.int64)
    return found


def order_of(labels: Iterable[Label]) -> Array:
    """Numbers from 0 to 1 by which categories come in an order that no sample has made."""
    found: Array = _mixed(labels) / 2.0**64
    return found


def _mixed(labels: Iterable[Label]) -> Array:
    return mixed(np.fromiter((zlib.crc32(_text(label)) for label in labels), np.uint64))


def _text(label: Label) -> bytes:
    if not isinstance(label, str):
        whole = isinstance(label, int) or label.is_integer()
        label = f"#{int(label) if whole else label}"
    return label.encode("utf-8", "surrogatepass")


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


def remembered(labels: list[Label], counts: Array) -> Unseen:
    """New categories, by bucket if they are too many."""
    if len(labels) > MOST_UNSEEN:
        return None, in_buckets(labels, counts)
    found: dict[Label, Any] = {}
    for label, count in zip(labels, counts.tolist(), strict=True):
        found[label] = found.get(label, 0) + count
    return found, None
