"""Readers of files, a piece at a time; a column has one type for the whole file, wherever the pieces end."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from klnumba.optional import load
from klnumba.tables import objects, whole
from klnumba.tables.border import check_differ, frame_columns
from klnumba.tables.columns import Column, ColumnError, Unusable
from klnumba.tables.counting import all_missing

BUFFER = 1 << 20  # bytes of a column that are read at a time
VALUES = 1 << 18  # of a piece
LEAST_ROWS = 1 << 12  # of a piece


def rows_of(rows: int | None, columns: int) -> int:
    """How many rows a piece has: so many, or about as many as hold `VALUES`."""
    return max(VALUES // max(columns, 1), LEAST_ROWS) if rows is None else rows


class Reader(Protocol):
    """A file that can be read any number of times."""

    narrow: bool  # whether columns that nobody wants need not be read

    def names(self) -> list[str]:
        """The columns."""

    def pieces(self, columns: list[str] | None) -> Iterator[Any]:
        """The rows, some at a time, with these columns alone."""


@dataclass
class Parquet:
    """A .parquet file; an index that pandas wrote is no column."""

    path: Path
    rows: int | None
    narrow = True

    def names(self) -> list[str]:
        """The columns."""
        with load("pyarrow.parquet", "parquet").ParquetFile(self.path) as file:
            return _columns_of(file.schema_arrow)

    def pieces(self, columns: list[str] | None) -> Iterator[Any]:
        """The rows."""
        pa = load("pyarrow", "parquet")
        streamed = {"pre_buffer": False, "buffer_size": BUFFER}  # else all that was read stays until the file is closed
        with load("pyarrow.parquet", "parquet").ParquetFile(self.path, **streamed) as file:
            names = _columns_of(file.schema_arrow) if columns is None else columns
            batches = file.iter_batches(rows_of(self.rows, len(names)), columns=names)
            tables = (pa.Table.from_batches([one]).select(names) for one in batches)
            yield from _some(tables, file.schema_arrow.empty_table().select(names))


@dataclass
class Feather:
    """A .feather or .arrow file; its pieces are those in which it was written."""

    path: Path
    rows: int | None
    narrow = True

    def names(self) -> list[str]:
        """The columns."""
        pa = load("pyarrow", "parquet")
        with pa.memory_map(str(self.path)) as source, pa.ipc.open_file(source) as file:
            return _columns_of(file.schema)

    def pieces(self, columns: list[str] | None) -> Iterator[Any]:
        """The rows."""
        pa = load("pyarrow", "parquet")
        with pa.memory_map(str(self.path)) as source:
            with pa.ipc.open_file(source) as file:
                schema = file.schema
            names = _columns_of(schema) if columns is None else columns
            options = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in names])
            with pa.ipc.open_file(source, options=options) as file:
                batches = (file.get_batch(k) for k in range(file.num_record_batches))
                tables = (pa.Table.from_batches([one]).select(names) for one in batches)
                yield from _some(tables, schema.empty_table().select(names))


def _some(tables: Iterator[Any], empty: Any) -> Iterator[Any]:
    """The tables, or an empty one where there are none: its columns count."""
    yield next(tables, empty)
    yield from tables


def _columns_of(schema: Any) -> list[str]:
    """The columns of a file of Arrow's, but for an index that pandas wrote."""
    check_differ(schema.names)
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name not in [one for one in index if isinstance(one, str)]]


class Survey(NamedTuple):
    """What is known of a file that has been read once."""

    names: list[str]
    mixed: set[str]  # columns of one kind in one piece and of another in the next
    rounded: set[str]  # columns whose numbers may have lost digits


@dataclass
class Untyped(ABC):
    """A file of text: its types are guessed from the values, and so from all of them before the first is counted."""

    path: Path
    rows: int | None
    surveys: dict[tuple[str, ...] | None, Survey] = field(default_factory=dict, init=False, repr=False)

    @abstractmethod
    def frames(self, columns: list[str] | None, survey: Survey | None) -> Iterator[Any]:
        """The pieces, each with the types that it has by itself, but for what the survey found mixed."""

    def pieces(self, columns: list[str] | None) -> Iterator[Any]:
        """The rows; a file of one piece is read once, a longer one first to see its types."""
        survey = self._survey_of(columns)
        if survey is None:
            frames = self.frames(columns, None)
            start = [*islice(frames, 2)]
            if len(start) < 2 and not any(map(self.rounded, start)):
                yield from start
                return
            survey = self._surveyed(chain(start, frames))
            self.surveys[None if columns is None else tuple(columns)] = survey
        yield from self.frames(columns, survey)

    def _survey_of(self, columns: list[str] | None) -> Survey | None:
        """What is known of these columns, perhaps from a survey of more of them."""
        for held, survey in self.surveys.items():
            if held is None or (columns is not None and set(columns) <= set(held)):
                kept = {*(survey.names if columns is None else columns)}
                return Survey(survey.names, survey.mixed & kept, survey.rounded & kept)
        return None

    def rounded(self, frame: Any) -> set[str]:
        """The columns of a piece whose numbers may not be those of the file."""
        return set()

    def _surveyed(self, frames: Iterable[Any]) -> Survey:
        kinds: dict[str, set[str]] = {}
        rounded: set[str] = set()
        for frame in frames:
            rounded |= self.rounded(frame)
            for name, column in frame_columns(frame, "file").items():
                held = kinds.setdefault(name, set())
                if column.kind not in held and _has_values(column):
                    held.add(column.kind)
        mixed = {name for name, held in kinds.items() if len(held) > 1}
        return Survey([*kinds], mixed, rounded - mixed)


def _has_values(column: Column) -> bool:
    """Whether the kind of a column means anything; what cannot be read says so where it is counted."""
    with suppress(Exception):
        return isinstance(column, Unusable) or not all_missing(column)
    return True


class Csv(Untyped):
    """A .csv or .csv.gz file: a column that is not all numbers or all truth values is text as it stands."""

    narrow = True

    def names(self) -> list[str]:
        """The columns."""
        self._check()
        return [*load("pandas").read_csv(self.path, nrows=0).columns]

    def _check(self) -> int:
        """How many columns there are. pandas gives a name that stands there twice another one, without a word."""
        head = load("pandas").read_csv(self.path, nrows=1, header=None, dtype=str, keep_default_na=False)
        check_differ(filter(None, head.to_numpy().reshape(-1)))
        return int(head.size)

    def frames(self, columns: list[str] | None, survey: Survey | None) -> Iterator[Any]:
        """The pieces."""
        rows = rows_of(self.rows, self._check())  # with those that are not wanted, which are taken apart too
        rounded = survey.rounded if survey is not None else set()
        text = dict.fromkeys(rounded | survey.mixed if survey is not None else (), str)
        options: dict[str, Any] = {"usecols": columns, "dtype": text, "low_memory": False}
        with load("pandas").read_csv(self.path, chunksize=rows, **options) as reader:
            for frame in reader:
                exact = {name: _numbers(frame[name]) for name in frame if name in rounded}
                yield (frame if columns is None else frame[columns]).assign(**exact)

    def rounded(self, frame: Any) -> set[str]:
        """Where a value is missing, pandas reads whole numbers as float64."""
        floats = frame.select_dtypes("float64")
        large = (floats.abs() >= whole.LIMIT) & np.isfinite(floats)
        return {name for name in floats if large[name].any()}


def _numbers(texts: Any) -> Any:
    """Numbers as they are written: whole ones as integers of Python's."""
    found = [None if isinstance(text, float) else _number(text) for text in texts]
    whole_ones = any(isinstance(one, int) for one in found)
    return load("pandas").Series(found, index=texts.index, dtype=object if whole_ones else float)


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


class JsonLines(Untyped):
    """A .jsonl file: values have the types that JSON gives them, and a key that a line lacks is missing there."""

    narrow = False  # a line is read whole

    def names(self) -> list[str]:
        """The columns: every key of any line."""
        return _keys(record for records in self._records() for record in records)

    def frames(self, columns: list[str] | None, survey: Survey | None) -> Iterator[Any]:
        """The pieces."""
        mixed = survey.mixed if survey is not None else ()
        for records in self._records():
            names = columns or (survey.names if survey is not None else _keys(records))
            held = {name: _series([one.get(name) for one in records], name in mixed) for name in names}
            yield load("pandas").DataFrame(held)

    def _records(self) -> Iterator[list[dict[str, Any]]]:
        with self.path.open(encoding="utf-8-sig") as file:
            lines = ((number, text) for number, line in enumerate(file, 1) if (text := line.strip()))
            piece: list[dict[str, Any]] = []
            values = 0
            for one in lines:
                piece.append(_record(*one))
                values += len(piece[-1])
                if len(piece) >= rows_of(self.rows, values // len(piece)):
                    yield piece
                    piece, values = [], 0
            if piece:
                yield piece


def _keys(records: Iterable[Collection[str]]) -> list[str]:
    return [*dict.fromkeys(chain.from_iterable(records))]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; of a key that stands there twice, Python's own keeps the last without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        check_differ(key for key, _ in pairs)
    return found


DECODER = json.JSONDecoder(object_pairs_hook=_object)


def _record(number: int, line: str) -> dict[str, Any]:
    try:
        found, end = DECODER.raw_decode(line)
    except json.JSONDecodeError as error:  # its own text counts this as line 1
        raise ValueError(f"line {number}: {error.msg}, at character {error.pos + 1}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"line {number}: {error}") from error
    if not isinstance(found, dict) or end < len(line):
        raise ValueError(f"line {number}: not one object")
    return found


def _series(values: list[Any], mixed: bool) -> Any:
    """A column; of a mixed one the values are categories also in a piece that has numbers alone."""
    pd = load("pandas")
    if mixed:
        with suppress(ColumnError):  # lists and objects cannot be told apart; the column's status will say so
            codes, found = objects.coded(pd.Series(values, dtype=object))
            return pd.Series(pd.Categorical.from_codes(codes, categories=pd.Index(found, dtype=object)))
    if any(type(one) is int and abs(one) >= whole.LIMIT for one in values):
        return pd.Series(values, dtype=object)  # beside a missing value pandas would make them float64
    return pd.Series(values, dtype=None if any(one is not None for one in values) else float)
