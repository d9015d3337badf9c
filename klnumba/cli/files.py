"""Rows in files: .npy, .npz, .csv and .parquet, read into arrays and written back."""

from __future__ import annotations

import csv
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from klnumba.cli.errors import InputError, needs

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Rows:
    """An array of rows, and the names of its columns where the file has them."""

    array: Array
    names: tuple[str, ...] | None = None


def read_rows(source: str, *, header: bool | None = None) -> Rows:
    """Read the rows of a file; ``archive.npz:name`` means one array of an archive."""
    path, member = _split_member(source)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path}: unknown suffix {path.suffix!r}; known are {', '.join(READERS)}")
    if not path.is_file():
        raise InputError(f"{path}: {'not a file' if path.exists() else 'no such file'}")
    try:
        return reader(path, member, header)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: {error}") from error


def _split_member(source: str) -> tuple[Path, str | None]:
    before, mark, member = source.rpartition(".npz:")
    if mark and not Path(source).exists():
        return Path(before + ".npz"), member
    return Path(source), None


def _read_npy(path: Path, member: str | None, header: bool | None) -> Rows:
    return Rows(np.lib.format.open_memmap(path, mode="r"))


def _read_npz(path: Path, member: str | None, header: bool | None) -> Rows:
    with path.open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise InputError(f"{path}: is not in the .npz format")
        names = list(archive)
        if member is None and len(names) != 1:
            raise InputError(f"{path}: holds {len(names)} arrays, say which: {path}:NAME with NAME of {names}")
        name = names[0] if member is None else member
        if name not in names:
            raise InputError(f"{path}: holds no array {name!r}, but {names}")
        return Rows(archive[name])


def _read_csv(path: Path, member: str | None, header: bool | None) -> Rows:
    with path.open(encoding="utf-8-sig", newline="") as file:
        fields = next(csv.reader(file), [])
        if not fields:
            raise InputError(f"{path}: the first line is empty")
        named = _is_header(path, fields) if header is None else header
        if not named:
            file.seek(0)
        body = [line for line in file if line.strip()]
    names = tuple(fields) if named else None
    if not body:
        return Rows(np.empty((0, len(fields))), names)
    return Rows(np.loadtxt(body, delimiter=",", comments=None, quotechar='"', ndmin=2), names)


def _is_header(path: Path, fields: Sequence[str]) -> bool:
    """Tell whether the first line of a CSV file holds names; 0,1,2,... could be either, and is refused."""
    if len(fields) > 1 and [field.strip() for field in fields] == [str(n) for n in range(len(fields))]:
        raise InputError(f"{path}: the first line, 0,1,..., may be names or numbers: say --header or --no-header")
    try:
        np.array(fields, dtype=np.float64)
    except ValueError:
        return True
    return False


def _read_parquet(path: Path, member: str | None, header: bool | None) -> Rows:
    with needs("parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        table = pq.read_table(path)
    except pa.ArrowException as error:
        raise InputError(f"{path}: {error}") from error
    metadata = table.schema.pandas_metadata or {}
    index = [name for name in metadata.get("index_columns", []) if isinstance(name, str)]
    table = table.drop_columns([name for name in index if name in table.column_names])
    for field in table.schema:
        if not (pa.types.is_floating(field.type) or pa.types.is_integer(field.type) or pa.types.is_boolean(field.type)):
            raise InputError(f"{path}: column {field.name!r} holds {field.type}, not numbers")
    columns = [column.to_numpy() for column in table.columns]
    if not columns:
        raise InputError(f"{path}: holds no columns")
    return Rows(np.stack(columns, axis=-1), tuple(table.column_names))


def check_same_columns(p: Rows, q: Rows) -> None:
    """Refuse two files whose named columns do not match, place by place."""
    if p.names is None or q.names is None or len(p.names) != len(q.names):
        return
    for place, (left, right) in enumerate(zip(p.names, q.names, strict=True)):
        if left != right:
            raise InputError(f"the columns differ: column {place} is {left!r} in P and {right!r} in Q")


def check_output(path: Path, sources: Sequence[str] = ()) -> None:
    """Refuse, before any work is done, an output that cannot be written or would replace an input."""
    if path.suffix.lower() not in WRITERS:
        raise InputError(f"{path}: unknown suffix {path.suffix!r}; an output is one of {', '.join(WRITERS)}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: no such folder: {path.parent}")
    if path.is_dir():
        raise InputError(f"{path}: is a folder")
    if path.suffix.lower() == ".parquet":
        with needs("parquet"):
            import pyarrow  # noqa: F401
    for source in sources:
        other = _split_member(source)[0]
        if path.exists() and other.exists() and path.samefile(other):
            raise InputError(f"{path}: is an input, and would be replaced")


def write_values(path: Path, values: Array, names: Sequence[str]) -> None:
    """Write one line a row; the file is complete or, when the work is interrupted, as it was before."""
    with _replacing(path) as file:
        WRITERS[path.suffix.lower()](file, values, names)


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    target = path.resolve()
    umask = os.umask(0)
    os.umask(umask)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _as_columns(values: Array, names: Sequence[str]) -> Array:
    return np.ascontiguousarray(values).reshape(-1, len(names))


def _write_npy(file: IO[bytes], values: Array, names: Sequence[str]) -> None:
    np.save(file, values, allow_pickle=False)


def _write_csv(file: IO[bytes], values: Array, names: Sequence[str]) -> None:
    digits = {4: 9}.get(values.dtype.itemsize, 17)
    np.savetxt(file, _as_columns(values, names), fmt=f"%.{digits}g", delimiter=",", header=",".join(names), comments="")


def _write_parquet(file: IO[bytes], values: Array, names: Sequence[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = _as_columns(values, names).T
    pq.write_table(pa.table({name: pa.array(column) for name, column in zip(names, columns, strict=True)}), file)


READERS: dict[str, Callable[[Path, str | None, bool | None], Rows]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}
WRITERS: dict[str, Callable[[IO[bytes], Array, Sequence[str]], None]] = {
    ".npy": _write_npy,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
