"""The cell of every number of a column, and how many numbers each cell has.

Edges e[0] <= ... <= e[k] make these cells, in this order: below e[0]; k bins, each with its lower edge and the last
with both; above e[k]; -inf; +inf; NaN. Without edges every finite number is "below".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.kernels.compiler import helper
from klnumba.kernels.tiles import TILE

LANES = 4  # tables of counts that take turns, so that an addition need not wait for the one before
LINEAR = 64  # with more edges than this a search by halves is quicker than comparing with each
OUTER = 5  # cells besides the bins


def cell_count(edges: int) -> int:
    """How many cells so many edges make."""
    return max(edges - 1, 0) + OUTER


@helper
def _compare_with_each(x: Any, edges: Any, index: Any) -> None:
    """index[k] = how many edges lie at or below x[k]; of the last edge, below.

    Edges go in fives, so that an index is read and written less often: 20 bins have 21 edges.
    """
    last = edges.size - 1
    for k in range(x.size):
        index[k] = np.int64(x[k] > edges[last])
    whole = last // 5 * 5
    for j in range(0, whole, 5):
        a, b, c, d, e = edges[j], edges[j + 1], edges[j + 2], edges[j + 3], edges[j + 4]
        for k in range(x.size):
            few = np.int64(x[k] >= a) + np.int64(x[k] >= b) + np.int64(x[k] >= c)
            index[k] += few + np.int64(x[k] >= d) + np.int64(x[k] >= e)
    for j in range(whole, last):
        a = edges[j]
        for k in range(x.size):
            index[k] += np.int64(x[k] >= a)


@helper
def _halve(x: Any, edges: Any, index: Any) -> None:
    """The same by halves, without branches."""
    last = edges.size - 1
    for k in range(x.size):
        base, count = np.int64(0), np.int64(last)
        while count > 1:
            half = count // 2
            base += half * np.int64(x[k] >= edges[base + half - 1])
            count -= half
        index[k] = base + np.int64(x[k] >= edges[base]) + np.int64(x[k] > edges[last])


@helper
def place(x: Any, edges: Any, size: Any, index: Any) -> None:
    """index[k] = the cell of x[k], of `size` cells."""
    if edges.size == 0:
        for k in range(x.size):
            index[k] = 0
    elif edges.size <= LINEAR:
        _compare_with_each(x, edges, index)
    else:
        _halve(x, edges, index)
    finite = np.int64(0)
    for k in range(x.size):
        finite += np.int64(abs(x[k]) < np.inf)
    if finite < x.size:
        for k in range(x.size):
            cell = index[k]
            cell = size - 3 if x[k] == -np.inf else cell
            cell = size - 2 if x[k] == np.inf else cell
            index[k] = size - 1 if x[k] != x[k] else cell


def counting() -> Callable[..., None]:
    """Add to `counts` how many numbers of x each cell has: `LANES` tables of `size` cells, one after the other."""

    def count(x: Any, edges: Any, size: Any, index: Any, counts: Any) -> None:
        for start in range(0, x.size, TILE):
            part = x[start : start + TILE]
            place(part, edges, size, index)
            whole = part.size // LANES * LANES
            for k in range(0, whole, LANES):
                counts[np.uint64(index[k])] += 1
                counts[np.uint64(size + index[k + 1])] += 1
                counts[np.uint64(2 * size + index[k + 2])] += 1
                counts[np.uint64(3 * size + index[k + 3])] += 1
            for k in range(whole, part.size):
                counts[np.uint64(index[k])] += 1

    return count


def counting_codes() -> Callable[..., None]:
    """Add to `counts` how often each code occurs, -1 first: `LANES` tables of `size`, one after the other."""

    def count(codes: Any, size: Any, counts: Any) -> None:
        whole = codes.size // LANES * LANES
        for k in range(0, whole, LANES):
            counts[np.uint64(np.int64(codes[k]) + 1)] += 1
            counts[np.uint64(size + np.int64(codes[k + 1]) + 1)] += 1
            counts[np.uint64(2 * size + np.int64(codes[k + 2]) + 1)] += 1
            counts[np.uint64(3 * size + np.int64(codes[k + 3]) + 1)] += 1
        for k in range(whole, codes.size):
            counts[np.uint64(np.int64(codes[k]) + 1)] += 1

    return count
