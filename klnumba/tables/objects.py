"""Columns of pandas that hold Python's objects or pandas' own types: what they are, and their values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from numbers import Number, Real
from typing import Any

import numpy as np

from klnumba.optional import load
from klnumba.tables import codes, gathering, whole
from klnumba.tables.cells import Array
from klnumba.tables.codes import Coded
from klnumba.tables.columns import Column, ColumnError, Labels, Numbers, Unusable, label_of


def labels(name: str, native: Any) -> Labels:
    """A column of categories."""
    return Labels(
        name, len(native), lambda _: coded(native), lambda _: codes.counted(*coded(native)),
        lambda table: gathering.gathered(coded(native), table),
    )  # fmt: skip


def coded(native: Any) -> Coded:
    """The codes and the values of a column of categories, truth values apart from the numbers 0 and 1."""
    if hasattr(native, "cat") and hasattr(native.dtype, "categories"):
        kept = native.array.categories
        found = kept.to_numpy(object).tolist()
        return native.array.codes, [*map(_typed, found)] if kept.dtype == object else found
    try:
        numbers, found = factorized(native)
    except TypeError as error:
        raise ColumnError(f"holds values that cannot be told apart: {error}") from error
    return numbers, [_typed(value) for value in found] if native.dtype == object else list(found)


def factorized(native: Any, *, use_na_sentinel: bool = True) -> tuple[Array, Any]:
    """The codes and the values that pandas finds, but truth values apart from the numbers 0 and 1."""
    numbers, found = load("pandas").factorize(native, use_na_sentinel=use_na_sentinel)
    if native.dtype == object and any(isinstance(one, (Number, np.bool_)) and one in (0, 1) for one in found):
        numbers, found = load("pandas").factorize(_apart(native), use_na_sentinel=use_na_sentinel)
    if not use_na_sentinel and (numbers < 0).any():  # pandas before 3 never counts the gaps of Arrow's dictionaries
        numbers = np.where(numbers < 0, len(found), numbers)
        found = found.append(load("pandas").Index([None], dtype=found.dtype))
    return numbers, found


def _typed(value: Any) -> Any:
    """What has a text that another value of the column may be, such as a date or a tuple, with its type."""
    return f"{value} ({type(value).__name__})" if isinstance(value, (date, timedelta, tuple, Decimal)) else value


def _apart(native: Any) -> Array:
    """Values among which truth values are no longer equal to the numbers 0 and 1."""
    values: Array = native.to_numpy(object).copy()
    for k, value in enumerate(values):
        if isinstance(value, (bool, np.bool_)):
            values[k] = label_of(value)
    return values


BEYOND = "holds a number that has no float64: one of more than 308 digits, or a signaling NaN"
_NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal"}
_TIMES = {"datetime64": "datetime", "datetime": "datetime", "date": "datetime", "timedelta64": "timedelta",
          "timedelta": "timedelta"}  # fmt: skip


def column(name: str, values: Any) -> Column:
    """A column of Python objects, by what they are."""
    pd, rows = load("pandas"), len(values)
    native = values if isinstance(values, pd.Series) else pd.Series(values, dtype=object)
    found = pd.api.types.infer_dtype(native, skipna=True)
    if found == "complex":
        return Unusable(name, rows, "holds complex numbers, which have no order")
    if found in _NUMBERS or (found.startswith("mixed") and _all_numbers(native)):
        return Numbers(
            name, "number", rows, lambda: whole.kept(_converted(pd, native, float), lambda: native.to_numpy(object))
        )
    if found == "boolean":
        return Numbers(name, "boolean", rows, lambda: _converted(pd, native, float))
    if found in _TIMES:
        kind = _TIMES[found]
        zones = {getattr(value, "tzinfo", None) is not None for value in native.dropna()}
        if len(zones) > 1:
            return Unusable(name, rows, "holds times with a zone and times without one")
        aware = zones == {True}
        convert = pd.to_datetime if kind == "datetime" else pd.to_timedelta
        options = {"utc": True} if aware else {}
        return Numbers(name, kind, rows, lambda: times(convert(native, **options)), aware=aware)
    return labels(name, native)


def _all_numbers(native: Any) -> bool:
    """Whether the values are numbers of several types, such as whole ones among Decimals."""
    found = native.dropna()
    return len(found) > 0 and all(isinstance(one, (Real, Decimal)) and not isinstance(one, bool) for one in found)


def _converted(pd: Any, native: Any, convert: Callable[[Any], float]) -> Array:
    found = np.full(len(native), np.nan)
    try:
        held = ~pd.isna(native).to_numpy()
        values = native.to_numpy()[held]
        found[held] = [convert(value) for value in values]
    except ArithmeticError as error:  # of whole numbers, and of Decimal's signaling NaN
        raise ColumnError(BEYOND) from error
    if any(isinstance(value, Decimal) and value.is_finite() for value in values[np.isinf(found[held])]):
        raise ColumnError(BEYOND)
    return found


def times(native: Any) -> Array:
    """Times and durations as NumPy has them; those with a zone as they are in UTC."""
    if getattr(native.dt, "tz", None) is not None:
        native = native.dt.tz_convert(None)
    found: Array = native.to_numpy()
    return found
