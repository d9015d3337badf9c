"""Weights of rows: from a column or an array, checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.labels import same
from klnumba.optional import load
from klnumba.tables.border import frame_columns
from klnumba.tables.cells import Array
from klnumba.tables.columns import BLOCK, Column, Numbers, as_float
from klnumba.tables.held import HeldRows

LEAST = 1e-100  # squares of weights are added up, and shall be numbers


def name_or_rows(weights: Any, *tables: Any) -> Any:
    """The argument `weights`, with the name of a column as text.

    Those of a frame may be whole numbers, or tuples, which are taken for names where all these frames have them.
    """
    named = isinstance(weights, (int, np.integer)) and not isinstance(weights, bool)
    if isinstance(weights, tuple):
        named = bool(tables) and all(_has_label(table, weights) for table in tables)
    return str(weights) if named else weights


def _has_label(table: Any, label: tuple[Any, ...]) -> bool:
    try:
        return label in set(getattr(table, "columns", ()))
    except TypeError:  # it holds the weights themselves
        return False


def check_apart(columns: list[str] | None, *weights: Any) -> None:
    """Refuse to compare a column that holds the weights of a side."""
    for one in weights:
        if isinstance(one, str) and one in (columns or ()):
            raise ValueError(f"columns: {one!r} holds the weights of the rows (weights={one!r}), and is not compared")


def split_weights(frame: Any, weights: Any, name: str) -> tuple[dict[str, Column], Array | None]:
    """The columns of a frame that are none of the weights, and the weights; rows of weight 0 are left out of both."""
    found = frame_columns(frame, name)
    if weights is None:
        return found, None
    array: Any = _weights_of(frame, found, weights, name)
    held = array > 0
    if not held.all():
        found = frame_columns(frame, name, held)
    if array.dtype != np.float64 or not held.all():
        array = HeldRows(array, held, np.float64)
    if isinstance(weights, str):
        del found[weights]
    return found, array


def _weights_of(frame: Any, found: dict[str, Column], weights: Any, name: str) -> Array:
    """The weights of all rows."""
    if isinstance(weights, str):
        column = found.get(weights)
        if column is None:
            raise ValueError(f"weights: {weights!r} is not in {name}")
        if not isinstance(column, Numbers) or column.kind not in ("number", "boolean"):
            raise TypeError(f"weights: column {weights!r} of {name} does not hold numbers")
        raw = column.read()
        return _checked(as_float(raw) if raw.dtype.kind == "O" else raw, name)
    if hasattr(weights, "iloc"):  # a Series of pandas
        check_index(weights, frame.index if hasattr(frame, "iloc") else load("pandas").RangeIndex(len(weights)))
    array = np.asarray(weights)
    if array.dtype.kind not in "fiub" or array.ndim != 1:
        raise TypeError("weights: the name of a column, or a number for each row")
    rows = {column.rows for column in found.values()}
    if rows and array.size not in rows:
        raise ValueError(f"weights: {array.size} numbers for the {rows.pop()} rows of {name}")
    return _checked(array, name)


def check_index(weights: Any, index: Any) -> None:
    """Refuse a Series that has other labels than the rows, or the same in another order."""
    if not same(weights.index, index):
        raise ValueError("weights: a Series with the index of the rows")


def _checked(weights: Array, name: str) -> Array:
    return in_range(weights, lambda row: f"row {row} of {name}")


def in_range(weights: Array, named: Callable[[int], str]) -> Array:
    """The weights, refused where one is out of its range, with the name of its row."""
    for start in range(0, weights.size, BLOCK):
        block = as_float(weights[start : start + BLOCK])
        wrong = np.flatnonzero(~((block == 0) | ((block >= LEAST) & (block <= 1.0 / LEAST))))
        if wrong.size:
            row, wrong_one = named(start + int(wrong[0])), block[wrong[0]]
            raise ValueError(f"weights: 0, or from {LEAST:g} to {1.0 / LEAST:g}, but {row} has {wrong_one:g}")
    return weights
