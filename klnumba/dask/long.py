"""Rows longer than `CHUNK` over Dask arrays: no task holds one.

The pieces of a row that `klnumba.long_rows` works on are `CHUNK` cells from its start on, so that blocks are cut at
multiples of it: only the cells between the border of a block and the multiple before it move. Of every piece a state of
a few numbers travels to one task, which adds them up in their order, and asks for the blocks again where the plan of a
row says so. For that it starts tasks of its own.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.base import compute, optimize
from dask.core import get_dependencies
from dask.delayed import Delayed, delayed
from dask.highlevelgraph import HighLevelGraph

from klnumba import arrays, diagnosis, long_rows
from klnumba.engine import AGREE, Task
from klnumba.kernels import threads
from klnumba.kernels.tiles import CHUNK

Spans = tuple[int, ...]


class How(NamedTuple):
    """What to compute of a row: which divergence of which sides, in what, in which unit, and whether NaN raises."""

    task: Task
    order: str
    dtype: np.dtype[Any]
    unit: float
    strict: bool


def values(how: How, taken: list[Any], masks: list[Any], reduced: Spans) -> Any:
    """The values of all rows, lazily, in float64; the shape is that of the arrays without the reduced axes."""
    spread = da.broadcast_arrays(*taken, *masks)
    outer = tuple(n for k, n in enumerate(spread[0].shape) if k not in reduced)
    if 0 in outer:
        return da.zeros(outer, chunks=outer)
    flat = [_matrix(x, reduced) for x in spread]
    rows, columns = _cut(flat[0].chunks)
    flat = [x.rechunk((rows, columns), method="tasks") for x in flat]
    found, first = [], 0
    for strip in _strips(flat, bool(masks)):
        found.append(da.from_delayed(_values(strip, how, first, outer), (strip.rows,), np.float64))
        first += strip.rows
    return da.concatenate(found).reshape(outer)


def _matrix(x: Any, reduced: Spans) -> Any:
    """Rows by cells."""
    kept = tuple(k for k in range(x.ndim) if k not in reduced)
    ordered = x.transpose(kept + reduced)
    return ordered.reshape((math.prod(x.shape[k] for k in kept), math.prod(x.shape[k] for k in reduced)))


def _cut(chunks: tuple[Spans, Spans]) -> tuple[Spans, Spans]:
    """Blocks that end where pieces end, with no more cells than the largest had, or than a piece has."""
    ends = [*accumulate(chunks[1])]
    borders = sorted({0, *(end // CHUNK * CHUNK for end in ends[:-1]), ends[-1]})
    columns = tuple(b - a for a, b in pairwise(borders))
    most = max(1, max(chunks[0]) * max(chunks[1]) // max(columns))
    rows = tuple(min(most, n - start) for n in chunks[0] for start in range(0, n, most))
    return rows, columns


class Strip:
    """Some whole rows in their blocks, of which none is computed yet; Dask does not look inside."""

    def __init__(self, graph: dict[Any, Any], keys: list[list[Any]], rows: int, widths: Spans, masked: bool) -> None:
        self.graph, self.keys, self.rows, self.widths, self.masked = graph, keys, rows, widths, masked
        self.threads = 1

    def __dask_tokenize__(self) -> Any:
        return self.keys, self.masked

    def each(self, function: Callable[..., Any]) -> list[Any]:
        """What a function makes of the blocks of p, q and the mask that lie together, for each of them in turn.

        It gets them behind one another, and each task sees one such set.
        """
        layer = f"blocks-{uuid.uuid4().hex}"
        graph = HighLevelGraph.from_collections(layer, self.graph, dependencies=())
        work = delayed(function, pure=False)
        sets = [work(*(Delayed(key, graph, layer=layer) for key in span)) for span in self.keys]
        found: list[Any] = list(compute(*sets, num_workers=self.threads))
        return found


def _strips(flat: list[Any], masked: bool) -> list[Strip]:
    # what workers keep already is not among the tasks once they are optimized, and has to be held until it is read
    graph = {key: task for x in (*flat, *optimize(*flat)) for key, task in dict(x.__dask_graph__()).items()}
    rows, widths = flat[0].chunks
    strips = []
    for k, count in enumerate(rows):
        keys = [[(x.name, k, span) for x in flat] for span in range(len(widths))]
        strips.append(Strip(_needed(graph, [key for span in keys for key in span]), keys, count, widths, masked))
        strips[-1].threads = max(1, threads.available() // len(rows))
    return strips


def _needed(graph: dict[Any, Any], keys: list[Any]) -> dict[Any, Any]:
    """The tasks behind some keys."""
    found: dict[Any, Any] = {}
    while keys:
        key = keys.pop()
        if key not in found:
            found[key] = graph[key]
            keys += get_dependencies(graph, key)
    return found


# --- the task that looks after a strip --------------------------------------------------------------------------------


@delayed(pure=True)
def _values(strip: Strip, how: How, first: int, outer: Spans) -> np.ndarray:
    """The values of the rows of a strip: reads of its blocks, until every row has one."""
    found = np.empty(strip.rows)
    plans = [long_rows.plan(how.task, sum(strip.widths), how.dtype) for _ in range(strip.rows)]
    reads = {row: next(plan) for row, plan in enumerate(plans)}
    while reads:
        parts = strip.each(partial(_states, reads, how, strip.masked))
        asked, reads = reads, {}
        for row in asked:
            try:
                reads[row] = plans[row].send(np.concatenate([part[row] for part in parts]))
            except StopIteration as end:
                found[row] = end.value
    bad = np.flatnonzero(np.isnan(found))
    if how.strict and bad.size:
        raise ValueError(_diagnosis(strip, how, int(bad[0]), first, outer))
    return found if how.task.name == AGREE else found / how.unit


def _rows(how: How, masked: bool, blocks: tuple[Any, ...]) -> arrays.Rows:
    """Blocks that lie together."""
    sides, mask = (blocks[:-1], blocks[-1]) if masked else (blocks, None)
    zero = -math.inf if how.task.logs else 0.0
    return arrays.Rows(sides[0], sides[-1], (1,), mask, zero, wide=how.dtype == arrays.FLOAT64)


def _states(reads: dict[int, long_rows.Read], how: How, masked: bool, *blocks: Any) -> dict[int, np.ndarray]:
    """What each row's read leaves of its pieces in a block."""
    rows = _rows(how, masked, blocks)
    spans = [(start, min(start + CHUNK, rows.d)) for start in long_rows.starts(rows.d)]
    return {
        row: np.array([
            long_rows.state_of(read, rows.piece(row, a, b).ordered(how.order), b - a, how.dtype) for a, b in spans
        ])
        for row, read in reads.items()
    }  # fmt: skip


def _diagnosis(strip: Strip, how: How, row: int, first: int, outer: Spans) -> str:
    """What is wrong with a row of a strip."""
    sides = list(zip(*strip.each(partial(_faults, row, how, strip.masked)), strict=True))
    starts = [0, *accumulate(strip.widths)]
    p, q = (diagnosis.joined([part.after(a) for part, a in zip(side, starts, strict=False)]) for side in sides)
    return diagnosis.told(p, q, tuple(map(int, np.unravel_index(first + row, outer))) if outer else ())


def _faults(row: int, how: How, masked: bool, *blocks: Any) -> tuple[diagnosis.Side, diagnosis.Side]:
    return diagnosis.sides_of(_rows(how, masked, blocks), (row,), how.task.logs)
