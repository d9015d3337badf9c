"""Tables in pieces: files larger than memory, read a piece at a time and as often as needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klnumba.optional import load

ROWS = 1 << 18
SUFFIXES = (".csv", ".csv.gz", ".parquet", ".feather", ".arrow", ".jsonl")

Reader = Callable[[Path, int, list[str] | None], Iterator[Any]]


@dataclass(frozen=True)
class Chunks:
    """A table that comes in pieces, any number of times; `make` begins from the first piece."""

    make: Callable[[], Iterable[Any]]
    title: str = "chunks"
    rows: int | None = None  # how many there are, where that is known beforehand
    _last: Iterator[Any] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.make):
            raise TypeError("make: a function that begins from the first piece, each time it is called")

    def __iter__(self) -> Iterator[Any]:
        made = iter(self.make())
        if made is self._last:
            raise ValueError("make: returns one iterator over and over, which does not begin again")
        object.__setattr__(self, "_last", made)
        return made


def scan(path: str | Path, *, columns: Iterable[Any] | None = None, rows: int = ROWS) -> Chunks:
    """A file as a table in pieces, for `compare`, `Profile.fit` and `Profile.update`.

    Parameters
    ----------
    path : path
        A .csv, .csv.gz, .parquet, .feather, .arrow or .jsonl file.
    columns : sequence of str, optional
        Read these alone.
    rows : int, default 262144
        How many rows a piece has, about.

    Returns
    -------
    Chunks

    Raises
    ------
    ValueError
        If the suffix is none of these.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> from klnumba.tables import Profile, scan
    >>> chunks = scan("before.parquet")  # doctest: +SKIP
    >>> Profile.fit(chunks)  # doctest: +SKIP
    """
    path = Path(path)
    name = path.name.lower()
    suffix = next((one for one in SUFFIXES if name.endswith(one)), None)
    if suffix is None:
        raise ValueError(f"path: {path}: unknown suffix; known are {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: {'not a file' if path.exists() else 'no such file'}")
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise ValueError(f"rows: a positive integer, not {rows!r}")
    wanted = None if columns is None else [str(one) for one in columns]
    reader = READERS[suffix]
    return Chunks(lambda: reader(path, rows, wanted), str(path))


def _csv(path: Path, rows: int, columns: list[str] | None) -> Iterator[Any]:
    with load("pandas").read_csv(path, chunksize=rows, usecols=columns) as reader:
        yield from reader


def _json_lines(path: Path, rows: int, columns: list[str] | None) -> Iterator[Any]:
    with load("pandas").read_json(path, lines=True, chunksize=rows) as reader:
        for chunk in reader:
            yield chunk if columns is None else chunk[columns]


def _parquet(path: Path, rows: int, columns: list[str] | None) -> Iterator[Any]:
    pa, pq = load("pyarrow", "parquet"), load("pyarrow.parquet", "parquet")
    with pq.ParquetFile(path) as file:
        names = _without_index(file.schema_arrow, columns)
        empty = file.schema_arrow.empty_table().select(names)
        yield from _some((pa.Table.from_batches([one]) for one in file.iter_batches(rows, columns=names)), empty)


def _feather(path: Path, rows: int, columns: list[str] | None) -> Iterator[Any]:
    pa = load("pyarrow", "parquet")
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as file:
        names = _without_index(file.schema, columns)
        tables = (pa.Table.from_batches([file.get_batch(k)]).select(names) for k in range(file.num_record_batches))
        yield from _some(tables, file.schema.empty_table().select(names))


def _some(tables: Iterator[Any], empty: Any) -> Iterator[Any]:
    """The tables, or an empty one where there are none: its columns count."""
    yield next(tables, empty)
    yield from tables


def _without_index(schema: Any, columns: list[str] | None) -> list[str]:
    """The columns to read, but for an index that pandas wrote."""
    if columns is not None:
        return columns
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name not in [one for one in index if isinstance(one, str)]]


READERS: dict[str, Reader] = {
    ".csv": _csv,
    ".csv.gz": _csv,
    ".parquet": _parquet,
    ".feather": _feather,
    ".arrow": _feather,
    ".jsonl": _json_lines,
}
