"""Columns in Arrow's layout: text, bytes and times of day, counted or as codes; numbers that narwhals does not know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from klnumba.optional import load
from klnumba.tables import codes, gathering, whole
from klnumba.tables.cells import Array
from klnumba.tables.codes import Coded, Counted, frozen
from klnumba.tables.layout import NOTHING, Words
from klnumba.tables.words import Vocabulary

MOST_UNSEEN = 1000  # new categories that are remembered by name
OFFSETS: dict[str, Any] = {"string": np.int32, "large_string": np.int64}


def holds(series: Any) -> bool:
    """Whether a column of text is stored in Arrow's layout, or in one that comes to it quickly."""
    return not series.implementation.is_pandas_like() or getattr(series.to_native().dtype, "storage", "") == "pyarrow"


def type_of(series: Any) -> str:
    """The name of Arrow's type of a column, if it has one."""
    native = series.to_native()
    held = native.type if series.implementation.is_pyarrow() else getattr(native.dtype, "pyarrow_dtype", "")
    return str(held)


def decimals(series: Any) -> Array:
    """Decimal numbers of any width."""
    chunks = _chunks(series)
    floats = [chunk.cast("float64").to_numpy(zero_copy_only=False) for chunk in chunks]
    return whole.kept(np.concatenate([np.empty(0), *floats]), lambda: [one for x in chunks for one in x.to_pylist()])


def times(series: Any) -> Array:
    """Dates in milliseconds."""
    chunks = [one.cast("timestamp[ms]").to_numpy(zero_copy_only=False) for one in _chunks(series)]
    return np.concatenate([np.empty(0, "M8[ms]"), *chunks])


def of_rows(series: Any, kept: Array) -> Any:
    """Some rows of a column of views, of which Arrow can only take the codes apart."""
    return _in_arrow(series).dictionary_encode().filter(load("pyarrow", "parquet").array(kept))


def _in_arrow(series: Any) -> Any:
    """A column as an array of Arrow's, or as several."""
    native = series.to_native()
    load("pyarrow", "parquet")  # where polars has no Arrow to hand its words to, the error names the line to type
    if series.implementation.is_pandas_like():
        return native.array.__arrow_array__()
    return native if series.implementation.is_pyarrow() else series.to_arrow()


def _chunks(series: Any) -> list[Any]:
    """The Arrow arrays of a column; bytes and times of day become codes, for Python's objects are slow."""
    native = _in_arrow(series)
    kind = str(native.type)
    if kind.startswith(("time", "large_binary", "binary", "fixed_size_binary")):
        native = native.dictionary_encode()
    elif kind.startswith("dictionary") and hasattr(native, "unify_dictionaries"):
        native = native.unify_dictionaries()
    return list(native.chunks) if hasattr(native, "chunks") else [native]


def counted(series: Any, known: Sequence[str] | None) -> Counted:
    """How often each word occurs; against a list of `known` words, only some of the others are told apart."""
    chunks = _chunks(series)
    if _encoded(chunks):
        return _joined([codes.counted(*_dictionary(chunk)) for chunk in chunks])
    table = Vocabulary((), len(series)) if known is None else Vocabulary(known, MOST_UNSEEN)
    for chunk in chunks:
        table.count(_words(chunk))
    totals = table.totals()
    counts, buckets = np.split(totals[1:], [table.size])
    return Counted(table.texts(), counts, int(totals[0]), buckets if buckets.any() else None)


def gathered(series: Any, table: Vocabulary) -> dict[Any, int]:
    """Count words into a table; returns how often what is no text occurs."""
    chunks = _chunks(series)
    rest: Counter[Any] = Counter()
    for chunk in chunks:
        if _encoded(chunks):
            rest.update(gathering.gathered(_dictionary(chunk), table))
        else:
            table.count(_words(chunk))
    return rest


def coded(series: Any, known: Sequence[str]) -> Coded:
    """The numbers of all words, of which only the `known` ones and some others are told apart."""
    chunks = _chunks(series)
    if _encoded(chunks):
        labels: list[Any] = []
        parts = []
        for chunk in chunks:
            found, more = _dictionary(chunk)
            parts.append(np.where(found < 0, -1, found.astype(np.int64) + len(labels)))
            labels += more
        return np.concatenate(parts), labels
    table = Vocabulary(known, MOST_UNSEEN)
    numbers = np.concatenate([np.empty(0, np.int32), *(table.codes(_words(chunk)) for chunk in chunks)])
    return table.told_apart(numbers) - 1, table.texts()


def _encoded(chunks: list[Any]) -> bool:
    return any(hasattr(chunk, "dictionary") for chunk in chunks)


def _joined(found: list[Counted]) -> Counted:
    labels = [label for one in found for label in one.labels]
    return Counted(labels, np.concatenate([one.counts for one in found]), sum(one.missing for one in found))


def _dictionary(chunk: Any) -> Coded:
    """The codes of an encoded column; its list of words may have gaps, which are missing too."""
    indices = chunk.indices
    if indices.null_count:
        indices = indices.cast("int64").fill_null(-1)
    found, labels = indices.to_numpy(zero_copy_only=False), chunk.dictionary.to_pylist()
    gaps = [k for k, label in enumerate(labels) if label is None]
    return (np.where(np.isin(found, gaps), -1, found.astype(np.int64)) if gaps else found), labels


def _words(chunk: Any) -> Words:
    """The buffers of an array of text."""
    if str(chunk.type) not in OFFSETS:
        chunk = chunk.cast("large_string")
    if not len(chunk):
        return Words(frozen(np.zeros(1, np.int64)), NOTHING, NOTHING)
    valid, offsets, data = chunk.buffers()
    kind = OFFSETS[str(chunk.type)]
    found = np.frombuffer(offsets, kind, len(chunk) + 1, chunk.offset * np.dtype(kind).itemsize)
    bits = _bytes(valid) if chunk.null_count else NOTHING
    return Words(frozen(found), _bytes(data), bits, chunk.offset)


def _bytes(buffer: Any) -> Array:
    return NOTHING if buffer is None or not buffer.size else frozen(np.frombuffer(buffer, np.uint8))
