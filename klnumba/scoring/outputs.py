"""One value a row, into .npy, .csv or .parquet: in numbered parts first, then as one file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from klnumba.files import replacing, special
from klnumba.scoring.errors import InputError, needs
from klnumba.scoring.source import Array

SUFFIXES = (".npy", ".csv", ".parquet")
GROUP = 1 << 20  # rows in a row group of Parquet
AGAIN = "remove the folder to begin again"


def check_output(path: Path, inputs: Sequence[Path] = ()) -> None:
    """Refuse, before any work is done, an output that cannot be written or would replace an input."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: unknown suffix {path.suffix!r}; an output is one of {', '.join(SUFFIXES)}")
    check_place(path, inputs)
    if path.suffix.lower() == ".parquet":
        with needs("parquet"):
            import pyarrow  # noqa: F401


def check_suffix(path: Path, name: str, *suffixes: str) -> None:
    """Refuse a file that would not be what its suffix says."""
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{name}: a {' or '.join(suffixes)} file, not {path}")


def check_place(path: Path, inputs: Sequence[Path] = ()) -> None:
    """Refuse a file that has no folder, is one, or is an input or a part of one."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: no such folder: {path.parent}")
    if path.is_dir():
        raise InputError(f"{path}: is a folder")
    if special(path):
        raise InputError(f"{path}: is a device or a pipe, and no file")
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise InputError(f"{path}: is an input, and would be replaced")
        if source.is_dir() and source.resolve() in path.resolve().parents:
            raise InputError(f"{path}: would lie in {source}, which is an input")


def write_columns(path: Path, columns: dict[str, Array]) -> None:
    """Write columns of one length; the file is complete or, when the work is interrupted, as it was before."""
    with replacing(path.resolve()) as file:
        _write(file, path.suffix.lower(), columns)


def _write(file: IO[bytes], suffix: str, columns: dict[str, Array]) -> None:
    if suffix == ".npy":
        array = packed(columns)
        _write_header(file, array.dtype, array.shape)
        file.write(array.tobytes())  # of a full disk, `numpy.save` would not say so
    elif suffix == ".csv":
        _write_lines(file, columns)
    else:
        import pyarrow.parquet as pq

        pq.write_table(_table(columns), file, row_group_size=GROUP)


def _write_header(file: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    about = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, about)


def packed(columns: dict[str, Array]) -> Array:
    """The columns as one array: numbers where there is one, records with named fields where there are more."""
    if len(columns) == 1:
        return next(iter(columns.values()))
    records = np.empty(next(iter(columns.values())).shape, [(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        records[name] = column
    return records


def _write_lines(file: IO[bytes], columns: dict[str, Array]) -> None:
    formats = [f"%.{9 if column.dtype == np.float32 else 17}g" for column in columns.values()]
    rows = np.column_stack([column.astype(np.float64) for column in columns.values()])
    np.savetxt(file, rows, fmt=formats, delimiter=",", header=",".join(columns), comments="")


def _table(columns: dict[str, Array]) -> Any:
    import pyarrow as pa

    return pa.table({name: pa.array(column) for name, column in columns.items()})


def join(path: Path, parts: Sequence[Path], shape: tuple[int, ...]) -> None:
    """Put parts, which `write_columns` wrote, together in one file."""
    joiner = {".npy": _join_arrays, ".csv": _join_lines, ".parquet": _join_tables}[path.suffix.lower()]
    with replacing(path.resolve()) as file:
        found, wanted = joiner(file, parts, shape), math.prod(shape)
        if found != wanted:
            raise InputError(f"{parts[0].parent}: its parts hold {found:,} of {wanted:,} values; {AGAIN}")


@contextmanager
def _reading(part: Path) -> Iterator[None]:
    """Tell of a part that was damaged after it had been written: no run can go on with it."""
    try:
        yield
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"{part}: {error}; {AGAIN}") from error


def _join_arrays(file: IO[bytes], parts: Sequence[Path], shape: tuple[int, ...]) -> int:
    found = 0
    for k, part in enumerate(parts):
        with _reading(part):
            array = np.load(part, allow_pickle=False)
        if k == 0:
            _write_header(file, array.dtype, shape)
        file.write(array.tobytes())
        found += array.size
    return found


def _join_lines(file: IO[bytes], parts: Sequence[Path], shape: tuple[int, ...]) -> int:
    found = 0
    for k, part in enumerate(parts):
        with part.open("rb") as lines:
            names = lines.readline()
            if k == 0:
                file.write(names)
            while piece := lines.read(1 << 20):
                file.write(piece)
                found += piece.count(b"\n")
    return found


def _join_tables(file: IO[bytes], parts: Sequence[Path], shape: tuple[int, ...]) -> int:
    import pyarrow.parquet as pq

    found = 0
    with _reading(parts[0]):
        schema = pq.read_schema(parts[0])
    with pq.ParquetWriter(file, schema) as writer:
        for table in _groups(parts):
            writer.write_table(table, row_group_size=GROUP)
            found += table.num_rows
    return found


def _groups(parts: Sequence[Path]) -> Iterator[Any]:
    """The rows of all parts, `GROUP` at a time: the file does not show where the parts ended."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rest = None
    for part in parts:
        with _reading(part):
            table = pq.read_table(part)
        rest = table if rest is None else pa.concat_tables([rest, table])
        while rest.num_rows >= GROUP:
            yield rest.slice(0, GROUP).combine_chunks()
            rest = rest.slice(GROUP)
    if rest is not None and rest.num_rows:
        yield rest.combine_chunks()
