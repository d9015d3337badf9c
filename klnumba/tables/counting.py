"""Counting: all columns of a frame into their cells, in one compiled pass on all threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from klnumba.kernels import cpu, threads
from klnumba.kernels.binning import LANES, cell_count
from klnumba.kernels.tiles import TILE
from klnumba.tables import sums, whole
from klnumba.tables.arrow import MOST_UNSEEN
from klnumba.tables.cells import Array, Categories, Cells, Label
from klnumba.tables.codes import frozen
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
from klnumba.tables.hashing import BUCKETS, buckets_of
from klnumba.tables.tally import Tally
from klnumba.tables.unseen import Unseen, remembered

Progress = Callable[[int, int], None]


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
    """The parts of a column added in the order of its rows; sums of weights are integers, and are rounded here."""
    total: Tally | None = None
    for _, part in sorted(parts, key=lambda pair: pair[0]):
        if isinstance(part, str):
            return part
        total = part if total is None else total + part
    assert total is not None
    return total if total.squares is None else total.rounded()


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
    return Tally(*sums.of_places(index, weights, cells.size), index.size, unseen, buckets)


def _kind(item: Column | Cells) -> str:
    zone = "" if item.kind != "datetime" else " with a zone" if getattr(item, "aware", False) else " without a zone"
    return KINDS[item.kind] + zone


def _numbers(column: Numbers, cells: Cells, weights: Array | None, start: int, stop: int) -> Tally:
    raw = column.read()[start:stop]
    part = None if weights is None else weights[start:stop]
    if isinstance(cells, Categories) and (raw.dtype.kind == "O" or whole.beyond(cells.names)):
        return _exact_numbers(raw, cells, part)
    counts, squares = _counted(raw, frozen(cells.search_edges)) if part is None else _weighed(raw, part, cells)
    tally = Tally(cells.fold(counts), None if squares is None else cells.fold(squares), raw.size, {})
    if isinstance(cells, Categories) and tally.counts[-2] > 0:
        tally.unseen, tally.buckets = _new_numbers(raw, cells, part)
    return tally


def _counted(raw: Array, edges: Array) -> tuple[Array, None]:
    """How many numbers lie between edges."""
    size = cell_count(edges.size)
    index = np.empty(TILE, np.int64)
    counts = np.zeros(LANES * size, np.int64)
    for first in range(0, raw.size, BLOCK):
        cpu.count_numbers()(frozen(as_float(raw[first : first + BLOCK])), edges, size, index, counts)
    return counts.reshape(LANES, size).sum(axis=0), None


def _weighed(raw: Array, weights: Array, cells: Cells) -> tuple[Array, Array]:
    """The sums of their weights, and of the squares of these."""
    edges = frozen(cells.search_edges)
    weigher = sums.Weigher(cell_count(edges.size))
    for first in range(0, raw.size, BLOCK):
        block = frozen(as_float(raw[first : first + BLOCK]))
        weigher.numbers(block, frozen(as_float(weights[first : first + BLOCK])), edges)
    return weigher.totals()


def _new_numbers(raw: Array, cells: Categories, weights: Array | None) -> Unseen:
    """The counts of the numbers that are none of the categories."""
    values = as_float(raw)
    new = ~np.isnan(values) & ~np.isin(values, np.array(cells.names, np.float64))
    found, places = np.unique((raw if raw.dtype.kind in "iu" else values)[new], return_inverse=True)
    label = bool if cells.kind == "boolean" else whole.plain
    return _remembered([label(value) for value in found], places, None if weights is None else weights[new])


def _remembered(labels: list[Label], places: Array, weights: Array | None) -> Unseen:
    """New categories from the place that each row's has among them."""
    if weights is None:
        return remembered(labels, np.bincount(places, minlength=len(labels)))
    if len(labels) > MOST_UNSEEN:
        return None, sums.of_places(buckets_of(labels)[places], weights, BUCKETS)[0]
    return remembered(labels, sums.of_places(places, weights, len(labels))[0])


def _exact_numbers(raw: Array, cells: Categories, weights: Array | None) -> Tally:
    """The same as `_numbers` where float64 might take one number for another."""
    held = ~np.isnan(as_float(raw))
    found, where = np.unique(raw[held], return_inverse=True)
    labels = [whole.plain(value) for value in found]
    other = cells.size - 2
    places = np.array([cells.place.get(label, other) for label in labels], np.int64)
    index = np.full(raw.size, cells.size - 1)
    index[held] = places[where]
    new = np.flatnonzero(places == other)
    order = np.zeros(places.size, np.int64)
    order[new] = np.arange(new.size)
    lost = index == other
    rows = order[where[lost[held]]]
    unseen = _remembered([labels[k] for k in new], rows, None if weights is None else weights[lost])
    return _tally(index, cells, weights, *unseen)


def _labels(column: Labels, cells: Cells, weights: Array | None) -> Tally:
    assert isinstance(cells, Categories)
    if weights is not None:
        return _weighed_labels(column, cells, weights)
    held = column.count(cells.texts)
    where, new = _cells_of(held.labels, held.counts, cells)
    total = np.zeros(cells.size, held.counts.dtype)
    np.add.at(total, where, held.counts)
    total[-2] += 0 if held.buckets is None else held.buckets.sum()
    total[-1] += held.missing
    found = remembered([label_of(held.labels[k]) for k in new], held.counts[new], held.buckets)
    return Tally(total, None, column.rows, *found)


def _weighed_labels(column: Labels, cells: Categories, weights: Array) -> Tally:
    """Behind the cells of the column, new categories have places of their own, or those of their buckets."""
    numbers, labels = column.read(cells.texts)
    size = len(labels) + BUCKETS
    numbers = np.where(numbers < 0, size, numbers.astype(np.intp, copy=False))
    rows = np.bincount(numbers, minlength=size + 1)
    where, new = _cells_of(labels, rows[: len(labels)], cells)
    names = [label_of(labels[k]) for k in new]
    many = len(new) > MOST_UNSEEN or rows[len(labels) : -1].any()
    places = np.concatenate([where, np.arange(cells.size, cells.size + BUCKETS), [cells.size - 1]])
    places[new] = cells.size + (buckets_of(names) if many else np.arange(len(new)))
    found = sums.of_places(places[numbers], weights, cells.size + (BUCKETS if many else len(new)))
    (counts, others), (squares, more) = (np.split(one, [cells.size]) for one in found)
    counts[-2] += others.sum()
    squares[-2] += more.sum()
    unseen = (None, others) if many else remembered(names, others)
    return Tally(counts, squares, column.rows, *unseen)


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
