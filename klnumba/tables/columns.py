"""The border: the columns of any eager data frame as numbers or as labels, each read when it is needed.

narwhals knows the frames (pandas, polars, pyarrow, Modin, cuDF); behind this module there are NumPy arrays alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.optional import load
from klnumba.tables import arrow, codes, whole
from klnumba.tables.cells import Array, Label
from klnumba.tables.codes import Coded, Counted

BLOCK = 1 << 17  # numbers that are converted and counted at a time
KINDS = {"number": "numbers", "boolean": "truth values", "datetime": "times", "timedelta": "durations",
         "category": "categories"}  # fmt: skip
MICROSECONDS = {"ms": 10**3, "s": 10**6, "m": 6 * 10**7, "h": 36 * 10**8, "D": 864 * 10**8, "W": 6048 * 10**8}


class ColumnError(ValueError):
    """A column that cannot be compared; the text says why, and becomes its status."""


@dataclass(frozen=True)
class Numbers:
    """A column of numbers, or of times in microseconds; NaN, NaT and None are missing."""

    name: str
    kind: str  # "number", "boolean", "datetime" or "timedelta"
    rows: int
    read: Callable[[], Array]  # of a real dtype, datetime64, timedelta64 or, by `whole.kept`, of numbers as objects
    aware: bool = False
    view: bool = False  # reading takes no memory

    def values(self) -> Array:
        """All values as float64."""
        return as_float(self.read())


@dataclass(frozen=True)
class Labels:
    """A column of categories.

    Both functions take the words that have a place of their own: others may then share the label None.
    """

    name: str
    rows: int
    read: Callable[[Sequence[str]], Coded]
    count: Callable[[Sequence[str] | None], Counted]
    kind: str = "category"
    aware: bool = False


@dataclass(frozen=True)
class Unusable:
    """A column of a type that has no cells."""

    name: str
    rows: int
    reason: str
    kind: str = "unknown"


Column = Numbers | Labels | Unusable


def as_float(values: Array) -> Array:
    """Values as contiguous float64; times in microseconds since 1970, rounded down."""
    if values.dtype.kind in "mM":
        missing = np.isnat(values)
        unit = "M8[us]" if values.dtype.kind == "M" else "m8[us]"
        _check_range(values[~missing])
        found = values.astype(unit).view(np.int64).astype(np.float64)
        found[missing] = np.nan
        return found
    return np.ascontiguousarray(values, np.float64)


def _check_range(values: Array) -> None:
    """NumPy would wrap round where microseconds do not fit."""
    unit, count = np.datetime_data(values.dtype)
    limit = np.iinfo(np.int64).max // (count * MICROSECONDS.get(unit, 1))
    whole_units = values.view(np.int64)
    if values.size and (whole_units.max() > limit or whole_units.min() < -limit):
        raise ColumnError("holds times that do not fit into microseconds")


def frame_columns(frame: Any, name: str) -> dict[str, Column]:
    """The columns of a frame by name; `name` is the argument's, for the error texts."""
    nw = load("narwhals.stable.v2")
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):
        _check_names(frame.columns, name)  # narwhals' own text names no argument
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        found = type(frame).__name__
        raise TypeError(f"{name}: a data frame in memory (pandas, polars, pyarrow), not {found}") from error
    if type(frame).__module__.partition(".")[0] == "pandas":
        return {str(one): _pandas_column(nw, str(one), series) for one, series in frame.items()}
    names = [*map(str, table.columns)]
    return {one: _column(nw, one, series) for one, series in zip(names, table.iter_columns(), strict=True)}


def _pandas_column(nw: Any, name: str, native: Any) -> Column:
    """NumPy's numbers and pandas's categories go without narwhals, which takes a tenth of a millisecond a column."""
    dtype = native.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "fiu":
        return Numbers(name, "number", len(native), native.to_numpy, view=True)
    if type(dtype).__name__ == "CategoricalDtype":
        kept = dtype.categories  # as objects they may be the truth values of a mixed column
        if kept.dtype != object and kept.inferred_type == "boolean":
            return Numbers(name, "boolean", len(native), lambda: native.to_numpy(np.float64, na_value=np.nan))
        return _pandas_labels(name, native)
    return _column(nw, name, nw.from_native(native, series_only=True))


def _check_names(names: Iterable[Any], name: str) -> None:
    found = [*map(str, names)]
    if len(set(found)) < len(found):
        twice = sorted({one for one in found if found.count(one) > 1})
        raise ValueError(f"{name}: column names must differ, but {', '.join(map(repr, twice))} stand there twice")


def _column(nw: Any, name: str, series: Any) -> Column:
    dtype, rows = series.dtype, len(series)
    if dtype.is_numeric():
        return _numeric(nw, name, series)
    if dtype == nw.Boolean:
        return Numbers(name, "boolean", rows, lambda: _flags(nw, series))
    if dtype == nw.Date:
        return Numbers(name, "datetime", rows, lambda: _naive(series.cast(nw.Datetime("us")).to_numpy()))
    if dtype == nw.Datetime:
        if dtype.time_zone is None:
            return Numbers(name, "datetime", rows, lambda: _naive(series.to_numpy()))
        return Numbers(name, "datetime", rows, lambda: _naive(_in_utc(series).to_numpy()), aware=True)
    if dtype == nw.Duration:
        return Numbers(name, "timedelta", rows, lambda: _naive(series.to_numpy()))
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        if not arrow.holds(series):
            return _pandas_labels(name, series.to_native())
        return Labels(name, rows, lambda known: arrow.coded(series, known), lambda known: arrow.counted(series, known))
    native = series.to_native()
    kind = type(getattr(native, "dtype", None)).__name__
    if kind == "DatetimeTZDtype":  # with a zone that narwhals cannot name
        return Numbers(name, "datetime", rows, lambda: _times(native), aware=True)
    if kind == "PeriodDtype":
        return Numbers(name, "datetime", rows, lambda: _times(native.dt.to_timestamp()))
    if kind == "SparseDtype":
        return Numbers(name, "number", rows, lambda: native.sparse.to_dense().to_numpy())
    if dtype == nw.Object:
        return _object(name, series)
    if series.null_count() == rows:
        return Numbers(name, "number", rows, lambda: np.full(rows, np.nan))
    return Unusable(name, rows, f"holds {getattr(native, 'dtype', dtype)}, which has no cells")


def _in_utc(series: Any) -> Any:
    return series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)


def _naive(values: Array) -> Array:
    if values.dtype.kind not in "mM":
        raise ColumnError(f"holds times as {values.dtype}, which cannot be read")
    return values


def _numeric(nw: Any, name: str, series: Any) -> Column:
    rows = len(series)
    if series.dtype.is_decimal():
        return Numbers(
            name, "number", rows, lambda: whole.kept(series.cast(nw.Float64).to_numpy(), lambda: series.to_list())
        )
    return Numbers(name, "number", rows, lambda: _real(series))


def _real(series: Any) -> Array:
    values: Array = series.to_numpy()
    if values.dtype.kind == "O":
        values = values.astype(np.float64)
    if values.dtype.kind not in "fiub":
        raise ColumnError(f"holds {values.dtype}, not real numbers")
    if values.dtype.kind == "f" and series.dtype.is_integer():  # because some are missing
        return whole.kept(values, lambda: series.to_list())
    return values


def _flags(nw: Any, series: Any) -> Array:
    values: Array = series.to_numpy()
    if values.dtype == bool:
        return values
    missing = series.is_null().to_numpy()
    found: Array = series.fill_null(False).cast(nw.Float64).to_numpy().astype(np.float64)
    found[missing] = np.nan
    return found


def _pandas_labels(name: str, native: Any) -> Labels:
    return Labels(name, len(native), lambda _: _pandas_codes(native), lambda _: codes.counted(*_pandas_codes(native)))


def _pandas_codes(native: Any) -> Coded:
    if hasattr(native, "cat") and hasattr(native.dtype, "categories"):
        return native.array.codes, native.array.categories.to_numpy(object).tolist()
    try:
        numbers, found = load("pandas").factorize(native, use_na_sentinel=True)
        if native.dtype == object and any(not isinstance(one, str) and one in (0, 1) for one in found):
            numbers, found = load("pandas").factorize(_apart(native), use_na_sentinel=True)
    except TypeError as error:
        raise ColumnError(f"holds values that cannot be told apart: {error}") from error
    return numbers, list(found)


def _apart(native: Any) -> Array:
    """Values among which truth values are no longer equal to the numbers 0 and 1."""
    values: Array = native.to_numpy(object).copy()
    for k, value in enumerate(values):
        if isinstance(value, (bool, np.bool_)):
            values[k] = label_of(value)
    return values


_NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal"}
_TIMES = {"datetime64": "datetime", "datetime": "datetime", "date": "datetime", "timedelta64": "timedelta",
          "timedelta": "timedelta"}  # fmt: skip


def _object(name: str, series: Any) -> Column:
    """A column of Python objects, by what they are."""
    pd, native, rows = load("pandas"), series.to_native(), len(series)
    found = pd.api.types.infer_dtype(native, skipna=True)
    if found == "complex":
        return Unusable(name, rows, "holds complex numbers, which have no order")
    if found in _NUMBERS:
        return Numbers(
            name, "number", rows, lambda: whole.kept(_converted(pd, native, float), lambda: native.to_numpy(object))
        )
    if found == "boolean":
        return Numbers(name, "boolean", rows, lambda: _converted(pd, native, float))
    if found in _TIMES:
        kind = _TIMES[found]
        aware = any(getattr(value, "tzinfo", None) is not None for value in native.dropna().head(1))
        convert = pd.to_datetime if kind == "datetime" else pd.to_timedelta
        options = {"utc": True} if aware else {}
        return Numbers(name, kind, rows, lambda: _times(convert(native, **options)), aware=aware)
    return _pandas_labels(name, native)


def _converted(pd: Any, native: Any, convert: Callable[[Any], float]) -> Array:
    missing = pd.isna(native).to_numpy()
    found = np.full(len(native), np.nan)
    found[~missing] = [convert(value) for value in native.to_numpy()[~missing]]
    return found


def _times(native: Any) -> Array:
    if getattr(native.dt, "tz", None) is not None:
        native = native.dt.tz_convert(None)
    values: Array = native.to_numpy()
    return _naive(values)


def label_of(value: Any) -> Label:
    """A category as text or finite number, which JSON can hold.

    Truth values and what is not finite carry their type: True equals 1, and "inf" is a text.
    """
    if isinstance(value, np.generic):
        return label_of(value.item())
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        return f"{value} ({type(value).__name__})"
    return value if isinstance(value, (str, int, float)) else str(value)
