"""Readers of files, a piece at a time: what each can do, and those of Arrow's files, which say the types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from klnumba.optional import load
from klnumba.tables.border import check_differ

BUFFER = 1 << 16  # bytes of a column that are read at a time
WIDTH = 8  # columns that are read at a time: of each that is open, Parquet holds a dictionary, which takes megabytes
VALUES = 1 << 18  # of a piece
LEAST_ROWS = 1 << 12  # of a piece


def rows_of(rows: int | None, columns: int) -> int:
    """How many rows a piece has: so many, or about as many as hold `VALUES`."""
    return max(VALUES // max(columns, 1), LEAST_ROWS) if rows is None else rows


class Reader(Protocol):
    """A file that can be read any number of times."""

    narrow: bool  # whether columns that nobody wants need not be read

    @property
    def width(self) -> int | None:
        """How many columns should be read at a time, where each lies by itself."""

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
    width = WIDTH

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
            size = rows_of(self.rows, len(names))
            batches = file.iter_batches(size, columns=names, use_threads=False)  # each thread keeps memory of its own
            tables = (pa.Table.from_batches([one]).select(names) for one in batches)
            for table in _some(tables, file.schema_arrow.empty_table().select(names)):
                yield table
                pa.default_memory_pool().release_unused()  # else what was freed stays, as much again


@dataclass
class Feather:
    """A .feather or .arrow file; its pieces are those in which it was written."""

    path: Path
    rows: int | None
    narrow = True
    width = WIDTH

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
