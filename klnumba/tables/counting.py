"""Counting: all columns of a frame into their cells, in one compiled pass on all threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from klnumba.kernels import cpu, threads
from klnumba.kernels.binning import LANES, cell_count
from klnumba.kernels.tiles import TILE
from klnumba.tables import codes
from klnumba.tables.arrow import MOST_UNSEEN
from klnumba.tables.cells import Array, Categories, Cells, Label
from klnumba.tables.codes import Counted, frozen
from klnumba.tables.columns import (
    BLOCK,
    Column,
    ColumnError,
    Labels,
    Numbers,
    Unusable,
    as_float,
    label_of,
)
from klnumba.tables.fitting import plain

Progress = Callable[[int, int], None]


@dataclass
class Tally:
    """What a column holds: counts (int64), or sums of weights with the sums of their squares (float64), of each cell.

    `unseen` has the counts of the categories that the cells do not name, or None where there were too many.
    """

    counts: Array
    squares: Array | None
    rows: int
    unseen: dict[Label, int] | None

    def __add__(self, other: Tally) -> Tally:
        if (self.squares is None) != (other.squares is None):
            raise ValueError("one has weights, the other has none")
        squares = None if self.squares is None or other.squares is None else self.squares + other.squares
        return Tally(self.counts + other.counts, squares, self.rows + other.rows, _together(self.unseen, other.unseen))

    def effective(self, cells: Array | None = None) -> float:
        """The effective number of rows in some cells: (sum of weights)^2 / sum of their squares."""
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


def _together(first: dict[Label, int] | None, second: dict[Label, int] | None) -> dict[Label, int] | None:
    if first is None or second is None:
        return None
    both = dict(first)
    for label, count in second.items():
        both[label] = both.get(label, 0) + count
    return both if len(both) <= MOST_UNSEEN else None


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
            if all_missing(column):
                return _missing(cells, stop - start, None if weights is None else weights[start:stop])
            raise ColumnError(f"holds {_kind(column)}, but the reference {_kind(cells)}")
        if isinstance(column, Labels):
            return _labels(column, cells, weights)
        return _numbers(column, cells, weights, start, stop)
    except Exception as error:  # conversions are other libraries': whatever they raise is the column's status
        return str(error) or type(error).__name__


def all_missing(column: Numbers | Labels) -> bool:
    """Whether a column has no value, which leaves its type open: an empty column of a file reads as numbers."""
    if isinstance(column, Labels):
        return column.count(()).missing == column.rows
    return bool(np.isnan(column.values()).all())


def _missing(cells: Cells, rows: int, weights: Array | None) -> Tally:
    tally = empty(cells, weights is not None)
    tally.rows = rows
    if weights is None or tally.squares is None:
        tally.counts[-1] = rows
    else:
        tally.counts[-1], tally.squares[-1] = weights.sum(), (weights * weights).sum()
    return tally


def _kind(item: Column | Cells) -> str:
    names = {"number": "numbers", "boolean": "truth values", "datetime": "times", "timedelta": "durations",
             "category": "categories"}  # fmt: skip
    zone = "" if item.kind != "datetime" else " with a zone" if getattr(item, "aware", False) else " without a zone"
    return names[item.kind] + zone


def _numbers(column: Numbers, cells: Cells, weights: Array | None, start: int, stop: int) -> Tally:
    raw = column.read()[start:stop]
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
        tally.unseen = _new_numbers(raw, cells)
    return tally


def _new_numbers(raw: Array, cells: Categories) -> dict[Label, int] | None:
    """The counts of the numbers that are none of the categories."""
    values = as_float(raw)
    values = values[~np.isnan(values) & ~np.isin(values, np.array(cells.names, np.float64))]
    found, counts = np.unique(values, return_counts=True)
    if found.size > MOST_UNSEEN:
        return None
    return {plain(value): int(number) for value, number in zip(found, counts, strict=True)}


def _labels(column: Labels, cells: Cells, weights: Array | None) -> Tally:
    assert isinstance(cells, Categories)
    known = [name for name in cells.names if isinstance(name, str)]
    if weights is None:
        found = column.count(known)
        where, unseen = _cells_of(found, cells)
        counts = np.zeros(cells.size, np.int64)
        np.add.at(counts, where, found.counts)
        counts[-1] += found.missing
        return Tally(counts, None, column.rows, unseen)
    numbers, labels = column.read(known)
    where, unseen = _cells_of(codes.counted(numbers, labels), cells)
    places = np.append(where, cells.size - 1)[numbers]  # a code of -1 takes the last, which is the cell for missing
    sums = np.bincount(places, weights, cells.size)
    return Tally(sums, np.bincount(places, weights * weights, cells.size), column.rows, unseen)


def _cells_of(found: Counted, cells: Cells) -> tuple[Array, dict[Label, int] | None]:
    """The cell of each label, and the counts of those that have none of their own."""
    assert isinstance(cells, Categories)
    where = np.full(len(found.labels), cells.size - 2)
    unseen: dict[Label, int] = {}
    nameless = False
    for k in map(int, np.flatnonzero(found.counts)):
        if found.labels[k] is None:
            nameless = True
            continue
        label = label_of(found.labels[k])
        place = cells.place.get(label)
        if place is not None:
            where[k] = place
        else:
            unseen[label] = unseen.get(label, 0) + int(found.counts[k])
    return where, None if nameless or len(unseen) > MOST_UNSEEN else unseen
