"""Counting: all columns of a frame into their cells, in one compiled pass on all threads."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.kernels import cpu, threads
from klnumba.kernels.binning import LANES, cell_count
from klnumba.kernels.tiles import TILE
from klnumba.tables import whole
from klnumba.tables.cells import Array, Categories, Cells, Label
from klnumba.tables.codes import Counted, frozen
from klnumba.tables.columns import (
    BLOCK,
    KINDS,
    Column,
    ColumnError,
    Labels,
    Numbers,
    Unusable,
    as_float,
    label_of,
)
from klnumba.tables.hashing import BUCKETS
from klnumba.tables.unseen import Unseen, in_buckets, remembered, together

Progress = Callable[[int, int], None]


@dataclass
class Tally:
    """What a column holds: counts (int64), or sums of weights with the sums of their squares (float64), of each cell.

    `unseen` has the same of the categories that the cells do not name, or None where there were too many of them; then
    they are counted by `buckets` (see `klnumba.tables.unseen`), which are exact however the rows are split. Where
    neither is there, they were not told apart. Shares (float64) without squares are a distribution that is known: no
    rows were counted, and none can be added.
    """

    counts: Array
    squares: Array | None
    rows: int
    unseen: dict[Label, Any] | None
    buckets: Array | None = None

    @property
    def known(self) -> bool:
        """Whether these are the shares of a distribution, and not counts."""
        return self.squares is None and self.counts.dtype.kind == "f"

    def __add__(self, other: Tally) -> Tally:
        if (self.squares is None) != (other.squares is None):
            raise ValueError("one has weights, the other has none")
        if self.known or other.known:
            raise ValueError("is a known distribution, without counts to which others could be added")
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

    def effective(self, cells: Array | None = None) -> float:
        """The effective number of rows in some cells: (sum of weights)^2 / sum of their squares; of shares, inf."""
        if self.known:
            return math.inf
        counts = self.counts if cells is None else self.counts[cells]
        total = float(counts.sum())
        if self.squares is None:
            return total
        squares = float(self.squares.sum() if cells is None else self.squares[cells].sum())
        return total * total / squares if squares > 0.0 else 0.0


def empty(cells: Cells, weighted: bool) -> Tally:
    """No rows."""
    if weighted:
        return Tally(np.zeros(cells.size), np.zeros(cells.size), 0, {})
    return Tally(np.zeros(cells.size, np.int64), None, 0, {})


def count(
    columns: Sequence[Column], cells: Sequence[Cells], weights: Array | None = None, progress: Progress | None = None
) -> list[Tally | str]:
    """A tally for each column, or why there is none. The result does not depend on the number of threads."""
    found: list[Tally | str] = [""] * len(columns)
    jobs: list[tuple[int, int, int]] = []
    for k, column in enumerate(columns):
        step = BLOCK if isinstance(column, Numbers) and column.view else max(column.rows, 1)
        jobs += [(k, start, min(start + step, column.rows)) for start in range(0, max(column.rows, 1), step)]
    parts: dict[int, list[tuple[int, Tally | str]]] = {k: [] for k in range(len(columns))}
    left = [0] * len(columns)
    for k, _, _ in jobs:
        left[k] += 1
    done = 0
    guard = threading.Lock()

    def work(job: tuple[int, int, int]) -> None:
        nonlocal done
        k, start, stop = job
        part = _part(columns[k], cells[k], weights, start, stop)
        with guard:
            parts[k].append((start, part))
            left[k] -= 1
            if not left[k]:
                found[k] = _joined(parts.pop(k))
                done += 1
                if progress is not None:
                    progress(done, len(columns))

    size = sum(column.rows for column in columns)
    threads.run(work, jobs, threads.choose(None, size))
    return found


def _joined(parts: list[tuple[int, Tally | str]]) -> Tally | str:
    """The parts of a column added in the order of its rows."""
    total: Tally | None = None
    for _, part in sorted(parts, key=lambda pair: pair[0]):
        if isinstance(part, str):
            return part
        total = part if total is None else total + part
    assert total is not None
    return total


def _part(column: Column, cells: Cells, weights: Array | None, start: int, stop: int) -> Tally | str:
    try:
        if isinstance(column, Unusable):
            raise ColumnError(column.reason)
        if column.kind != cells.kind or column.aware != getattr(cells, "aware", False):
            if _open(cells) or all_missing(column):
                return _presence(column, cells, weights, start, stop)
            raise ColumnError(f"holds {_kind(column)}, but the reference {_kind(cells)}")
        if isinstance(column, Labels):
            return _labels(column, cells, weights)
        return _numbers(column, cells, weights, start, stop)
    except Exception as error:  # conversions are other libraries': whatever they raise is the column's status
        return str(error) or type(error).__name__


def _open(cells: Cells) -> bool:
    """Whether the reference had no value, which leaves its type open: an empty column of a file reads as numbers."""
    return not (cells.names or cells.folded) if isinstance(cells, Categories) else not cells.edges.size


def all_missing(column: Numbers | Labels) -> bool:
    """Whether a column has no value, which leaves its type open too."""
    if isinstance(column, Labels):
        return column.count(()).missing == column.rows
    raw = column.read()
    return all(np.isnan(as_float(raw[k : k + BLOCK])).all() for k in range(0, raw.size, BLOCK))


def _presence(column: Numbers | Labels, cells: Cells, weights: Array | None, start: int, stop: int) -> Tally:
    """The rows with a value and those without, where one side has no values and the types may differ."""
    lost = column.read(())[0] < 0 if isinstance(column, Labels) else np.isnan(as_float(column.read()[start:stop]))
    index = np.where(lost, cells.size - 1, cells.size - 2 if isinstance(cells, Categories) else 0)
    unseen: dict[Label, int] | None = {} if lost.all() or not isinstance(cells, Categories) else None
    return _tally(index, cells, None if weights is None else weights[start:stop], unseen)


def _tally(
    index: Array, cells: Cells, weights: Array | None, unseen: dict[Label, Any] | None, buckets: Array | None = None
) -> Tally:
    """The counts of the cells from the cell of each row."""
    if weights is None:
        return Tally(np.bincount(index, minlength=cells.size), None, index.size, unseen, buckets)
    sums, squares = (np.bincount(index, values, cells.size) for values in (weights, weights * weights))
    return Tally(sums, squares, index.size, unseen, buckets)


def _kind(item: Column | Cells) -> str:
    zone = "" if item.kind != "datetime" else " with a zone" if getattr(item, "aware", False) else " without a zone"
    return KINDS[item.kind] + zone


def _numbers(column: Numbers, cells: Cells, weights: Array | None, start: int, stop: int) -> Tally:
    raw = column.read()[start:stop]
    if isinstance(cells, Categories) and (raw.dtype.kind == "O" or whole.beyond(cells.names)):
        return _exact_numbers(raw, cells, None if weights is None else weights[start:stop])
    edges = frozen(cells.search_edges)
    size = cell_count(edges.size)
    index = np.empty(TILE, np.int64)
    counts = np.zeros(LANES * size, np.int64)
    sums, squares = np.zeros(size), np.zeros(size)
    for first in range(0, raw.size, BLOCK):
        block = frozen(as_float(raw[first : first + BLOCK]))
        if weights is None:
            cpu.count_numbers()(block, edges, size, index, counts)
        else:
            part = frozen(weights[start + first : start + first + block.size])
            cpu.weigh_numbers()(block, part, edges, size, index, sums, squares)
    if weights is None:
        folded = cells.fold(counts.reshape(LANES, size).sum(axis=0))
        tally = Tally(folded, None, raw.size, {})
    else:
        tally = Tally(cells.fold(sums), cells.fold(squares), raw.size, {})
    if isinstance(cells, Categories) and tally.counts[-2] > 0:
        tally.unseen, tally.buckets = _new_numbers(raw, cells, None if weights is None else weights[start:stop])
    return tally


def _new_numbers(raw: Array, cells: Categories, weights: Array | None) -> Unseen:
    """The counts of the numbers that are none of the categories."""
    values = as_float(raw)
    new = ~np.isnan(values) & ~np.isin(values, np.array(cells.names, np.float64))
    found, places = np.unique((raw if raw.dtype.kind in "iu" else values)[new], return_inverse=True)
    counts = np.bincount(places, None if weights is None else weights[new], found.size)
    label = bool if cells.kind == "boolean" else whole.plain
    return remembered([label(value) for value in found], counts)


def _exact_numbers(raw: Array, cells: Categories, weights: Array | None) -> Tally:
    """The same as `_numbers` where float64 might take one number for another."""
    held = ~np.isnan(as_float(raw))
    found, where = np.unique(raw[held], return_inverse=True)
    counts = np.bincount(where, None if weights is None else weights[held], found.size)
    labels = [whole.plain(value) for value in found]
    other = cells.size - 2
    places = np.array([cells.place.get(label, other) for label in labels], np.int64)
    index = np.full(raw.size, cells.size - 1)
    index[held] = places[where]
    new = np.flatnonzero(places == other)
    return _tally(index, cells, weights, *remembered([labels[k] for k in new], counts[new]))


def _labels(column: Labels, cells: Cells, weights: Array | None) -> Tally:
    assert isinstance(cells, Categories)
    parts = [column.count(cells.texts)] if weights is None else _weighed(column, cells.texts, weights)
    labels, counts, others = parts[0].labels, parts[0].counts, parts[0].buckets
    where, new = _cells_of(labels, counts, cells)
    totals = np.zeros((len(parts), cells.size), counts.dtype)
    for total, part in zip(totals, parts, strict=True):
        np.add.at(total, where, part.counts)
        total[-2] += 0 if part.buckets is None else part.buckets.sum()
        total[-1] += part.missing
    found = remembered([label_of(labels[k]) for k in new], counts[new], others)
    return Tally(totals[0], None if weights is None else totals[1], column.rows, *found)


def _weighed(column: Labels, known: Sequence[str], weights: Array) -> list[Counted]:
    """The sums of the weights by label, and those of their squares."""
    numbers, labels = column.read(known)
    size, weights = len(labels) + BUCKETS, np.asarray(weights)
    places = np.where(numbers < 0, size, numbers.astype(np.intp, copy=False))
    found = []
    for values in (weights, weights * weights):
        sums = np.bincount(places, values, size + 1)
        buckets = sums[len(labels) : -1]
        found.append(Counted(labels, sums[: len(labels)], sums[-1], buckets if buckets.any() else None))
    return found


def _cells_of(labels: list[Any], counts: Array, cells: Categories) -> tuple[Array, list[int]]:
    """The cell of each label, and which of those that occur have none of their own."""
    where = np.full(len(labels), cells.size - 2)
    first = len(cells.texts) if labels[: len(cells.texts)] == cells.texts else 0  # as tables of words begin
    where[:first] = cells.text_places[:first]
    new: list[int] = []
    for k in (np.flatnonzero(counts[first:]) + first).tolist():
        place = cells.place.get(label_of(labels[k]))
        if place is None:
            new.append(k)
        else:
            where[k] = place
    return where, new
