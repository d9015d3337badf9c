"""The border: the columns of any eager data frame as numbers or as labels.

narwhals knows the frames (pandas, polars, pyarrow, Modin, cuDF); behind this module there are NumPy arrays alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from klnumba.optional import load, type_name
from klnumba.tables import arrow, objects, whole
from klnumba.tables.cells import Array
from klnumba.tables.columns import Column, ColumnError, Labels, Numbers, Unusable
from klnumba.tables.held import HeldRows, in_turn


def frame_columns(frame: Any, name: str, kept: Array | None = None) -> dict[str, Column]:
    """The columns of a frame by name; `name` is the argument's, for the error texts.

    With `kept`, a truth value for each row, the other rows are left out of a column whenever it is read.
    """
    nw = load("narwhals.stable.v2")
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):
        check_differ(frame.columns, f"{name}: ")  # narwhals' own text names no argument
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        found = type_name(frame)
        more = "; klnumba.dask.compare takes those" if found.startswith("dask.") else ""
        raise TypeError(f"{name}: a data frame in memory (pandas, polars, pyarrow), not {found}{more}") from error
    make: Callable[..., Column] = _column
    if type(frame).__module__.partition(".")[0] == "pandas":
        make, held = _pandas_column, {str(one): series for one, series in frame.items()}
    else:
        held = dict(zip(map(str, table.columns), table.iter_columns(), strict=True))
    if kept is None:
        return {one: make(nw, one, series) for one, series in held.items()}
    return {one: _selected(one, partial(_of_rows, make, nw, one, series, kept), kept) for one, series in held.items()}


def _of_rows(make: Callable[..., Column], nw: Any, name: str, series: Any, kept: Array) -> Column:
    """A column of some rows."""
    held = nw.from_native(series, series_only=True, pass_through=True)
    if isinstance(held, nw.Series) and "view" in arrow.type_of(held):
        return _arrow_labels(name, nw.from_native(arrow.of_rows(held, kept), series_only=True))
    values = _uncopied(held)
    if values is not None and values.dtype.kind in "fiu":
        rows: Any = HeldRows(values, kept)
        return Numbers(name, "number", int(rows.before[-1]), lambda: rows, view=True)
    if make is _pandas_column:
        return make(nw, name, series[kept])
    return make(nw, name, series.filter(nw.new_series(name, kept, backend=series.implementation)))


def _read(make: Callable[[], Any], rows: int) -> Array:
    in_turn(rows)
    found: Array = make().read()
    return found


def _uncopied(series: Any) -> Array | None:
    """The numbers of a column as they lie in memory, if they lie there as NumPy's."""
    found: Array | None = None
    with suppress(Exception):  # the libraries' own, where they would have to copy
        native = series.to_native()
        if series.implementation.is_pandas_like():
            found = native.to_numpy() if isinstance(native.dtype, np.dtype) else None
        elif series.implementation.is_polars():
            found = native.to_numpy(allow_copy=False)
        elif native.num_chunks == 1:
            found = native.chunk(0).to_numpy(zero_copy_only=True)
    return found


def _selected(name: str, make: Callable[[], Any], kept: Array) -> Column:
    """A column that is made anew each time it is read, so that no copy of its rows stays."""
    try:
        found: Column = make()
    except Exception as error:  # of other libraries, which cannot take rows of all that they hold
        return Unusable(name, 0, str(error) or type(error).__name__)
    if isinstance(found, Numbers):
        return found if found.view else replace(found, read=lambda: _read(make, kept.size))
    if isinstance(found, Labels):
        return replace(
            found, read=lambda known: make().read(known), count=lambda known: make().count(known),
            gather=lambda table: make().gather(table),
        )  # fmt: skip
    return found


def _pandas_column(nw: Any, name: str, native: Any) -> Column:
    """NumPy's numbers and pandas's categories go without narwhals, which takes a tenth of a millisecond a column."""
    dtype = native.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "fiu":
        return Numbers(name, "number", len(native), native.to_numpy, view=True)
    if type(dtype).__name__ == "CategoricalDtype":
        kept = dtype.categories  # as objects they may be the truth values of a mixed column
        if kept.dtype != object and kept.inferred_type == "boolean":
            return Numbers(name, "boolean", len(native), lambda: native.to_numpy(np.float64, na_value=np.nan))
        return objects.labels(name, native)
    if isinstance(dtype, np.dtype) and dtype.kind == "O":  # narwhals looks at the first hundred rows alone
        return objects.column(name, native)
    return _column(nw, name, nw.from_native(native, series_only=True))


def check_differ(names: Iterable[Any], where: str = "") -> None:
    """Refuse names of which one stands there twice; `where` begins the text."""
    twice = sorted(name for name, count in Counter(map(str, names)).items() if count > 1)
    if twice:
        raise ValueError(f"{where}column names must differ, but {', '.join(map(repr, twice))} stand there twice")


def _column(nw: Any, name: str, series: Any) -> Column:
    rows = len(series)
    try:
        dtype = series.dtype
    except ValueError:  # of decimals with a negative scale, which narwhals refuses
        return _of_arrow(name, series)
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
            return objects.labels(name, series.to_native())
        return _arrow_labels(name, series)
    if dtype in (nw.Binary, nw.Time):
        return _arrow_labels(name, series)
    native = series.to_native()
    kind = type(getattr(native, "dtype", None)).__name__
    if kind == "DatetimeTZDtype":  # with a zone that narwhals cannot name
        return Numbers(name, "datetime", rows, lambda: objects.times(native), aware=True)
    if kind == "PeriodDtype":
        return Numbers(name, "datetime", rows, lambda: objects.times(native.dt.to_timestamp()))
    if kind == "SparseDtype":
        return _sparse(nw, name, native)
    if kind == "IntervalDtype":
        return objects.labels(name, native)
    if dtype == nw.Object:
        return objects.column(name, native if series.implementation.is_pandas_like() else series.to_list())
    if series.null_count() == rows:
        return Numbers(name, "number", rows, lambda: np.full(rows, np.nan))
    return _of_arrow(name, series)


def _sparse(nw: Any, name: str, native: Any) -> Column:
    """A column that keeps what is not its most frequent value."""
    kind = native.dtype.subtype.kind
    if kind in "fiub":
        kept = "boolean" if kind == "b" else "number"
        return Numbers(name, kept, len(native), lambda: native.sparse.to_dense().to_numpy())
    return _column(nw, name, nw.from_native(native.sparse.to_dense(), series_only=True))


def _of_arrow(name: str, series: Any) -> Column:
    """A column of one of Arrow's types that narwhals does not know, or of a type that has no cells."""
    kind, rows = arrow.type_of(series), len(series)
    if kind.startswith("decimal"):
        return Numbers(name, "number", rows, lambda: arrow.decimals(series))
    if kind.startswith("date64"):
        return Numbers(name, "datetime", rows, lambda: _naive(arrow.times(series)))
    if "binary" in kind:
        return _arrow_labels(name, series)
    held = getattr(series.to_native(), "dtype", None) or kind or series.dtype
    return Unusable(name, rows, f"holds {held}, which has no cells")


def _arrow_labels(name: str, series: Any) -> Labels:
    return Labels(
        name, len(series), lambda known: arrow.coded(series, known), lambda known: arrow.counted(series, known),
        lambda table: arrow.gathered(series, table),
    )  # fmt: skip


def _in_utc(series: Any) -> Any:
    return series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)


def _naive(values: Array) -> Array:
    if values.dtype.kind not in "mM":
        raise ColumnError(f"holds times as {values.dtype}, which cannot be read")
    return values


def _numeric(nw: Any, name: str, series: Any) -> Column:
    rows = len(series)
    if series.dtype.is_decimal() or series.dtype in (nw.Int128, nw.UInt128):  # of which NumPy has none
        return Numbers(
            name, "number", rows, lambda: whole.kept(series.cast(nw.Float64).to_numpy(), lambda: series.to_list())
        )
    return Numbers(name, "number", rows, lambda: _real(series))


def _real(series: Any) -> Array:
    values: Array = series.to_numpy()
    if values.dtype.kind == "O" and series.implementation.is_pandas_like():  # where pandas tells NaN and NA apart
        values = series.to_native().to_numpy(np.float64, na_value=np.nan)
    elif values.dtype.kind == "O":
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
