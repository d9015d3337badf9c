"""Categories as codes: integers that say which label each row has, and how often each occurs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.kernels import cpu
from klnumba.kernels.binning import LANES
from klnumba.tables.cells import Array

# The code of each row, -1 where it is missing, and the labels they stand for; codes beyond are those of buckets.
Coded = tuple[Array, list[Any]]


@dataclass(frozen=True)
class Counted:
    """How often each label occurs, and how many rows are missing; a label may stand there several times.

    `buckets` has the words that no label stands for (see `klnumba.tables.hashing`), where there are any.
    """

    labels: list[Any]
    counts: Array
    missing: int
    buckets: Array | None = None


def frozen(array: Array) -> Array:
    """The array, contiguous and read-only, as compiled loops want it."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def counted(codes: Array, labels: list[Any]) -> Counted:
    """How often each label occurs."""
    if codes.dtype.name not in ("int8", "int16", "int32", "int64"):
        codes = codes.astype(np.int64)
    size = len(labels) + 1
    counts = np.zeros(LANES * size, np.int64)
    cpu.count_codes(codes.dtype.name)(frozen(codes), size, counts)
    total = counts.reshape(LANES, size).sum(axis=0)
    return Counted(labels, total[1:], int(total[0]))
