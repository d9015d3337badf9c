"""Series and DataFrames in the place of arrays: rows and cells are matched by their labels.

pandas is never imported here: where an argument is one of its objects, it is loaded already.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba import arrays
from klnumba.arrays import take
from klnumba.labels import listed, match, numbers, only, places, same

ALONE = "entropy"  # has one argument, whose labels are not matched


def present(p: Any, q: Any) -> bool:
    """Whether one of two arguments is a Series or a DataFrame."""
    if type(p) is np.ndarray and type(q) is np.ndarray:
        return False
    return "pandas" in sys.modules and (is_labelled(p) or is_labelled(q))


def is_labelled(x: Any) -> bool:
    """Whether an argument is a Series or a DataFrame."""
    return type(x).__module__ != "builtins" and isinstance(x, _kinds())


def _kinds() -> tuple[type, ...]:
    pandas = sys.modules.get("pandas")
    found = (getattr(pandas, "Series", None), getattr(pandas, "DataFrame", None))
    return tuple(kind for kind in found if kind is not None)


@dataclass
class Table:
    """An argument as an array of one axis, or of rows and cells, with the labels of its axes, if it has any."""

    cells: np.ndarray
    labels: tuple[Any, ...] = ()

    def over(self, axis: int) -> Any:
        """The labels of an axis that is counted from the end; None where there are none."""
        return self.labels[axis] if -axis <= len(self.labels) else None

    def move(self, where: np.ndarray | None, axis: int, zero: float) -> None:
        """Put the cells of an axis where they belong, and `zero` at the places -1."""
        if where is None:
            return
        cells, absent = self.cells, where < 0
        if zero != 0.0 and cells.dtype.kind != "f":
            cells = cells.astype(np.float64)
        shape = list(cells.shape)
        shape[axis] = where.size
        if not cells.shape[axis]:
            self.cells = np.full(shape, zero, cells.dtype)
            return
        cells = cells.take(where, axis)
        if absent.any():
            np.moveaxis(cells, axis, 0)[absent] = zero
        self.cells = cells


@dataclass
class Named:
    """The way back from an array to a scalar, Series or DataFrame, and the labels for error texts."""

    rows: Any = None
    columns: Any = None
    name: Any = None
    whole: bool = False

    def __call__(self, result: np.ndarray) -> Any:
        pandas = sys.modules["pandas"]
        if not result.ndim:
            return result[()]
        if result.ndim == 2 and result.shape == self._shape():
            return pandas.DataFrame(result, index=self.rows, columns=self.columns)
        if result.ndim == 1 and self.rows is not None and len(self.rows) == result.size:
            return pandas.Series(result, index=self.rows, name=self.name)
        return result

    def _shape(self) -> tuple[int, ...]:
        return () if self.rows is None or self.columns is None else (len(self.rows), len(self.columns))

    def row(self, at: int) -> Any:
        """The label of a row, or its number."""
        return at if self.rows is None or at >= len(self.rows) else only(self.rows, at)

    def cell(self, at: int) -> Any:
        """The label of a cell, or its number; of a whole table, the labels of its row and column."""
        if self.columns is None:
            return at
        if self.whole:
            return self.row(at // len(self.columns)), only(self.columns, at % len(self.columns))
        return only(self.columns, at) if at < len(self.columns) else at


# --- what the functions call -----------------------------------------------------------------------------------------


def of_rows(
    p: Any, q: Any, axis: Any, where: Any, align: str, zero: float, name: str | None
) -> tuple[np.ndarray, np.ndarray, Any, Any, Named]:
    """The arrays of a function of rows, with rows along the last axis: p, q, the reduced axes, where, the way back.

    Rows are those of p; one that q lacks has no mass in q. Cells are those of both.
    """
    turned, whole = _direction(p, q, axis)
    first = table(p, "p", turned)
    second = first if q is p else table(q, "q", turned)
    if name == ALONE:
        second = Table(first.cells)
    elif whole and len(first.labels) != len(second.labels):
        raise ValueError("axis: one axis, since a Series beside a DataFrame is one row")
    columns, moved = join(first, second, -1, "cell", align, zero)
    rows, rows_moved = join(first, second, -2, "row", align, zero, keep=not whole)
    named = Named(rows, columns, name, whole)
    where = _mask(where, named, turned, moved or rows_moved)
    return first.cells, second.cells, None if whole else -1, where, named


def check_rows(p: Any, q: Any, axis: Any, **columns: Any) -> None:
    """Refuse a Series that goes with the rows, where its labels are others or in another order."""
    turned, whole = _direction(p, q, axis)
    frame = p if is_labelled(p) else q
    if whole or frame.ndim != 2:
        return
    labels = frame.columns if turned else frame.index
    for name, column in columns.items():
        if is_labelled(column) and not same(column.index, labels):
            raise ValueError(f"{name}: with the labels of the rows of p, in their order, or as an array")


def check_places(**tables: Any) -> None:
    """Refuse tables with other labels, or in another order, where rows and cells go by their places."""
    named = [(name, x) for name, x in tables.items() if is_labelled(x)]
    for (name, x), (other, y) in itertools.combinations(named, 2):
        for ours, theirs in zip(reversed(x.axes), reversed(y.axes), strict=False):
            if len(ours) == len(theirs) and not same(ours, theirs):
                raise ValueError(
                    f"{name} and {other}: their labels differ, or are in another order; rows and cells go by their "
                    "places here: give both in one order, or as arrays"
                )


def of_cells(p: Any, q: Any, where: Any, align: str) -> tuple[np.ndarray, np.ndarray, Any, Named]:
    """The arrays of a function of single cells: p, q, where, the way back. Rows and cells are those of both."""
    first = table(p, "p", False)
    second = first if q is p else table(q, "q", False)
    columns, moved = join(first, second, -1, "cell", align)
    rows, rows_moved = join(first, second, -2, "row", align)
    names = {getattr(x, "name", None) for x in (p, q) if isinstance(x, _kinds()[:1])}
    one = max(len(first.labels), len(second.labels)) == 1
    named = Named(columns, None, names.pop() if len(names) == 1 else None) if one else Named(rows, columns)
    mask = _mask(where, Named(rows, columns), False, moved or rows_moved)
    return first.cells, second.cells, mask, named


def _direction(p: Any, q: Any, axis: Any) -> tuple[bool, bool]:
    """Whether the rows are the columns of a DataFrame, and whether the whole table is one row."""
    tables = [x for x in (p, q) if isinstance(x, _kinds()[1:])]
    reduced = arrays.axes(axis, 2 if tables else 1)
    if not reduced:
        raise ValueError("axis: at least one axis of a Series or DataFrame")
    return bool(tables) and reduced == (0,), len(reduced) == 2


def cells_of(x: Any, name: str) -> np.ndarray:
    """The numbers of an argument, without its labels if it has any."""
    return numbers(x, name) if is_labelled(x) else take(x, name)[0]


def table(x: Any, name: str, turned: bool) -> Table:
    """An argument with its labels; with `turned`, its columns as rows."""
    cells = cells_of(x, name)
    if not is_labelled(x):
        if cells.ndim > 2:
            raise ValueError(f"{name}: an array beside a Series or DataFrame has at most 2 axes, not {cells.ndim}")
        return Table(cells.T if turned else cells)
    if cells.ndim == 1:
        return Table(cells, (x.index,))
    if turned:
        return Table(cells.T, (x.columns, x.index))
    return Table(cells, (x.index, x.columns))


def join(
    first: Table, second: Table, axis: int, what: str, align: str, zero: float = 0.0, keep: bool = False
) -> tuple[Any, bool]:
    """Match the labels of an axis and move the cells to their places: the labels, and whether any cell moved."""
    ours, theirs = first.over(axis), second.over(axis)
    if ours is None or theirs is None:
        return theirs if ours is None else ours, False
    labels, *takes = match(ours, theirs, what, align, keep)
    for side, where in zip((first, second), takes, strict=True):
        side.move(where, axis, zero)
    return labels, any(where is not None for where in takes)


def _mask(where: Any, named: Named, turned: bool, moved: bool) -> Any:
    """The mask as an array: one with labels goes by these, another by place, where that is clear."""
    if where is None or where is True:
        return where
    if not is_labelled(where):
        if moved:
            raise ValueError("where: with labels, as a Series or DataFrame, since p and q have theirs in other orders")
        array = arrays.truth(where)
        return array.T if turned else array
    frame = where.T if turned and where.ndim == 2 else where
    for dtype in {where.dtype} if where.ndim == 1 else set(where.dtypes):
        if getattr(dtype, "kind", "O") != "b":
            raise TypeError(f"where: boolean, not {dtype}")
    missing = np.argwhere(where.isna().to_numpy())
    if missing.size:
        names = zip(("row", "column") if where.ndim == 2 else ("cell",), where.axes, missing[0], strict=True)
        place = ", ".join(f"{what} {only(labels, at)!r}" for what, labels, at in names)
        raise TypeError(f"where: {place} is missing, and neither true nor false")
    array = np.asarray(frame.to_numpy(bool))
    wanted = [(-1, named.columns, frame.index if frame.ndim == 1 else frame.columns)]
    if frame.ndim == 2:
        wanted.append((-2, named.rows, frame.index))
    for axis, labels, given in wanted:
        if labels is None:
            raise ValueError("where: a DataFrame has an axis more than p and q")
        found = places(given, labels, "where")
        if (found < 0).any():
            raise ValueError(f"where: lacks {listed(labels[found < 0])}")
        array = array.take(found, axis)
    return array
