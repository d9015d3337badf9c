"""Rows of tables: .csv by lines, .parquet by row groups."""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from klnumba.missing import WORDS
from klnumba.scoring.errors import InputError, needs
from klnumba.scoring.source import Array, Stream, file_identity

FLOAT64 = np.dtype(np.float64)
PAGE = 1 << 20  # bytes of a page of Parquet, as most writers make them
BUFFER = 1 << 14  # bytes of a column that are read at a time
FEW = 1024  # rows of lists at most, among which one may tell how long they are
SHOWN = 40  # characters of a field in an error text
MISSING = {word.lower() for word in WORDS}
TRUTH = {"true": "1", "false": "0", '"true"': "1", '"false"': "0"}
NOTATION = re.compile(  # numbers as other programs and languages write them
    r"""[+\-\u2212]?(
        0x[0-9a-f]+ | 0o[0-7]+ | 0b[01]+
        | (\d{1,3}(?P<mark>[.,'\ \u2019\u00a0\u202f])\d{3}((?P=mark)\d{3})*([.,]\d*)? | \d+[.,]?\d* | [.,]\d+)
          ([de][+\-\u2212]?\d+)? \s*%?
    )""",
    re.IGNORECASE | re.VERBOSE,
)


class Csv(Stream):
    """All columns of a CSV file, as float64. How many rows there are shows at its end."""

    copies = 8.0  # the text, its lines, the numbers

    def __init__(self, path: Path, header: bool | None) -> None:
        self.path, self._size = path, path.stat().st_size
        with self._text() as file:
            fields = next(csv.reader(file), [])
            if not fields:
                raise InputError(f"{path}: the first line is empty")
            self.named = _is_header(path, fields) if header is None else header
            if not self.named:
                file.seek(0)
            few = len(list(itertools.islice(filter(str.strip, file), 2)))
        super().__init__(str(path), FLOAT64, (few if few < 2 else None, len(fields)))
        self.columns = tuple(fields) if self.named else None

    @contextmanager
    def _text(self) -> Iterator[IO[str]]:
        """The file, open; what cannot be read as text, wherever it stands, is told in one line."""
        try:
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                yield file
        except UnicodeDecodeError as error:  # its position is that in a buffer, and tells nothing
            raise InputError(f"{self.path}: not text in UTF-8: {error.reason}") from error
        except csv.Error as error:
            raise InputError(f"{self.path}: the first line: {error}") from error

    def _batches(self, start: int) -> Iterator[Array]:
        with self._text() as file:
            if self.named:
                next(csv.reader(file), None)
            lines = filter(str.strip, file)
            for _ in itertools.islice(lines, start):
                pass
            while body := list(itertools.islice(lines, self.batch_rows())):
                yield self._numbers(body, start)
                start += len(body)

    def _numbers(self, body: list[str], first: int) -> Array:
        try:
            return _parse(body, self.row_shape[0])
        except ValueError:
            for k, line in enumerate(body):
                try:
                    _parse([line], self.row_shape[0])
                except ValueError as error:
                    raise InputError(f"{self.path}: row {first + k}: {_of_one_line(error)}") from error
            raise

    @property
    def resident(self) -> int:
        """Of a batch, the text, its lines and the numbers."""
        return self.batch_bytes()

    def most_rows(self) -> float:
        return 1 + self._size / (2 * self.row_shape[0])  # a cell takes a digit and a comma

    def identity(self) -> Any:
        return file_identity(self.path) | {"header": self.named}

    def files(self) -> list[Path]:
        return [self.path]


def _parse(lines: Sequence[str], width: int) -> Array:
    """The numbers of these lines; truth values are 1 and 0, as in files of other formats."""
    try:
        found = _numbers_in(lines)
    except ValueError as error:
        try:
            found = _numbers_in([",".join(map(_digit_of, line.split(","))) for line in lines])
        except ValueError:
            raise error from None  # which shows fields as they are in the file
    if found.shape[1] != width:
        raise ValueError(f"{found.shape[1]} columns, where the first line has {width}")
    return found


def _digit_of(field: str) -> str:
    """1 or 0 for a truth value; any other field as it is."""
    return TRUTH.get(field.strip().lower(), field)


def _numbers_in(lines: Sequence[str]) -> Array:
    return np.loadtxt(lines, delimiter=",", comments=None, quotechar='"', ndmin=2)


def _of_one_line(error: ValueError) -> str:
    return str(error).replace(" at row 0, ", ", ").rstrip(".")


def _is_header(path: Path, fields: Sequence[str]) -> bool:
    """Tell whether the first line of a CSV file holds names.

    What could be either is refused: 0,1,2,..., numbers beside other text or nothing, and fields that are no names by
    themselves. It may as well be a row with a number missing or broken, and would be lost as a header.
    """
    if len(fields) > 1 and [field.strip() for field in fields] == [str(n) for n in range(len(fields))]:
        raise InputError(f"{path}: the first line, 0,1,..., may be names or numbers: say --header or --no-header")
    others = [field for field in fields if not _is_number(field)]
    doubtful = [field for field in others if _may_be_a_value(field)]
    if others and not any(map(_is_text, others)):
        doubtful = others
    if doubtful or 0 < len(others) < len(fields):
        field = (doubtful or others)[0][:SHOWN]
        raise InputError(
            f"{path}: the first line, with {field!r} as one of {len(fields)} fields, may be names or numbers: "
            "say --header or --no-header"
        )
    return bool(others)


def _may_be_a_value(field: str) -> bool:
    """Whether a field that is no number stands for a missing one, a truth value, or a number in another notation."""
    word = field.strip()
    known = word.lower() in MISSING or word.lower() in TRUTH
    return bool(word) and (known or NOTATION.fullmatch(word) is not None)


def _is_text(field: str) -> bool:
    """Whether there is a letter or a digit, and not only signs that stand for nothing, such as -."""
    return any(map(str.isalnum, field))


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


class Parquet(Stream):
    """The columns of a Parquet file as cells, or its only column, of lists of one length, as rows."""

    copies = 4.0  # Arrow's columns, decoded and not, and the rows made of them

    def __init__(self, path: Path) -> None:
        with needs("parquet"):
            import pyarrow as pa
            import pyarrow.parquet as pq
        self.path, self._arrow, self._parquet = path, pa, pq
        with self._file() as file:
            schema = file.schema_arrow
            rows = file.metadata.num_rows
            groups = [file.metadata.row_group(k) for k in range(file.num_row_groups)]
            self.groups = [group.num_rows for group in groups]
            sizes = [group.total_byte_size for group in groups]
            self._group, self._bytes = max(sizes, default=0), sum(sizes)
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        self.fields = [field for field in schema if field.name not in index]
        if not self.fields:
            raise InputError(f"{path}: holds no columns")
        kind = self.fields[0].type
        self.lists = len(self.fields) == 1 and any(
            check(kind) for check in (pa.types.is_fixed_size_list, pa.types.is_list, pa.types.is_large_list)
        )
        kinds = [self.fields[0].type.value_type] if self.lists else [field.type for field in self.fields]
        for field, kind in zip(self.fields, kinds, strict=True):
            if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
                raise InputError(f"{path}: column {field.name!r} holds {field.type}, not numbers")
        width = self._width() if self.lists else len(self.fields)
        self.columns = None if self.lists else tuple(field.name for field in self.fields)
        dtype = np.result_type(*{self._dtype(kind) for kind in kinds})
        super().__init__(str(path), dtype, (rows, width))

    def _width(self) -> int:
        """The length of the lists; of those that may differ, that of the first one."""
        if self._arrow.types.is_fixed_size_list(self.fields[0].type):
            return int(self.fields[0].type.list_size)
        few = max(1, min(FEW, PAGE * sum(self.groups) // max(self._bytes, 1)))
        for batch in self._stored(few, list(range(len(self.groups)))):
            there = batch.column(0).drop_null()
            if len(there):
                return len(there[0])
        raise InputError(f"{self.path}: column {self.fields[0].name!r} holds lists, and no row tells how long they are")

    def _stored(self, size: int, groups: list[int]) -> Iterator[Any]:
        """The columns of some row groups, so many rows at a time."""
        names = [field.name for field in self.fields]
        try:
            with self._file() as file:
                yield from file.iter_batches(size, groups, names, use_threads=False)
        except (self._arrow.ArrowException, OSError) as error:
            raise InputError(f"{self.path}: {error}") from error

    def _dtype(self, kind: Any) -> np.dtype[Any]:
        """Integers and truth values become float64, which also holds what is missing."""
        return np.dtype(kind.to_pandas_dtype()) if self._arrow.types.is_floating(kind) else FLOAT64

    @property
    def resident(self) -> int:
        """Of each column a page, stored and decoded, unless the row group is smaller, and a batch of rows."""
        return 4 * min(PAGE * len(self.fields), self._group) + self.batch_bytes()

    def _file(self) -> Any:
        try:
            return self._parquet.ParquetFile(self.path, memory_map=False, pre_buffer=False, buffer_size=BUFFER)
        except (self._arrow.ArrowException, OSError) as error:
            raise InputError(f"{self.path}: {error}") from error

    def _batches(self, start: int) -> Iterator[Array]:
        group = 0
        while group < len(self.groups) and start >= self.groups[group]:
            start -= self.groups[group]
            group += 1
        first = sum(self.groups[:group])
        for batch in self._stored(self.batch_rows(), list(range(group, len(self.groups)))):
            rows = self._rows(batch, first)
            first += len(rows)
            if start < len(rows):
                yield rows[start:]
            start = max(0, start - len(rows))

    def _rows(self, batch: Any, first: int) -> Array:
        if self.lists:
            return self._from_lists(batch.column(0), first)
        rows = np.empty((batch.num_rows, len(self.fields)), self.dtype)
        for place, column in enumerate(batch.columns):
            rows[:, place] = self._cells(column)
        return rows

    def _from_lists(self, column: Any, first: int) -> Array:
        """Rows of lists; a list that is missing is a row of NaN."""
        width, there = self.row_shape[0], column.is_valid().to_numpy(zero_copy_only=False)
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        if (wrong := np.flatnonzero(there & (lengths != width))).size:
            row = int(wrong[0])
            raise InputError(
                f"{self.path}: row {first + row}: a list of {int(lengths[row])}, where the first one has {width}"
            )
        cells = self._cells(column.flatten()).astype(self.dtype, copy=False).reshape(int(there.sum()), width)
        if there.all():
            return cells
        rows = np.full((len(column), width), math.nan, self.dtype)
        rows[there] = cells
        return rows

    def _cells(self, column: Any) -> Array:
        """One column; what is missing is a NaN."""
        if column.null_count and not self._arrow.types.is_floating(column.type):
            kind = column.type
            column = column.cast(self._arrow.int8()) if self._arrow.types.is_boolean(kind) else column
            column = column.cast(self._arrow.float64(), safe=False)
        found: Array = column.to_numpy(zero_copy_only=False)
        return found

    def identity(self) -> Any:
        return file_identity(self.path)

    def files(self) -> list[Path]:
        return [self.path]
