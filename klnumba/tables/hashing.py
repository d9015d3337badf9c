"""Fixed functions that scatter rows by their place and categories by their text: the same on every machine."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable

import numpy as np

from klnumba.tables.cells import Array, Label
from klnumba.tables.codes import frozen

BUCKETS = 1 << 10  # by which categories without a name are counted, where there are too many to remember them
POLYNOMIAL = 0xEDB88320  # of CRC-32, the bits in the order in which zlib takes them


def mixed(x: Array) -> Array:
    """G. L. Steele, D. Lea and C. H. Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014."""
    x = (x + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = x ^ (x >> np.uint64(31))
    return mixed


def buckets_of(labels: Iterable[Label]) -> Array:
    """The bucket of each category: one of `BUCKETS`, by its text alone. Numbers that are equal share one."""
    return of_checksums(_checksums(labels))


def order_of(labels: Iterable[Label]) -> Array:
    """Numbers from 0 to 1 by which categories come in an order that no sample has made."""
    found: Array = mixed(_checksums(labels)) / 2.0**64
    return found


def _checksums(labels: Iterable[Label]) -> Array:
    return np.fromiter((zlib.crc32(_text(label)) for label in labels), np.uint64)


def of_checksums(sums: Array) -> Array:
    """The bucket of each category from the CRC-32 of its text."""
    found: Array = (mixed(sums) & np.uint64(BUCKETS - 1)).astype(np.int64)
    return found


def _text(label: Label) -> bytes:
    if not isinstance(label, str):
        whole = isinstance(label, int) or label.is_integer()
        label = f"#{int(label) if whole else label}"
    return label.encode("utf-8", "surrogatepass")


@functools.cache
def byte_checksums() -> Array:
    """What each byte adds to a CRC-32."""
    found = np.arange(256, dtype=np.uint64)
    for _ in range(8):
        found = np.where(found & np.uint64(1), (found >> np.uint64(1)) ^ np.uint64(POLYNOMIAL), found >> np.uint64(1))
    return frozen(found)
