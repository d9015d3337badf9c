"""Tables in pieces: files larger than memory, read a piece at a time and as often as needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klnumba.files import lacking
from klnumba.tables.json_lines import JsonLines
from klnumba.tables.readers import Feather, Parquet, Reader
from klnumba.tables.text_files import Csv

READERS: dict[str, Callable[[Path, int | None], Reader]] = {
    ".csv": Csv,
    ".csv.gz": Csv,
    ".parquet": Parquet,
    ".feather": Feather,
    ".arrow": Feather,
    ".jsonl": JsonLines,
}


@dataclass(frozen=True)
class Chunks:
    """A table that comes in pieces, any number of times; `make` begins from the first piece.

    Every piece has the same columns. `known` names them where that takes no piece; `select` gives the table with some
    of them alone where the others then need not be read; where these take memory all the same, `width` says how many
    to read at a time.
    """

    make: Callable[[], Iterable[Any]]
    title: str = "chunks"
    rows: int | None = None  # how many there are, where that is known beforehand
    known: Callable[[], list[str]] | None = None
    select: Callable[[list[str]], Chunks] | None = None
    width: int | None = None
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

    def names(self) -> list[str]:
        """The names of the columns.

        Returns
        -------
        list of str
        """
        return names_of(next(iter(self), None)) if self.known is None else self.known()

    def only(self, columns: Iterable[str]) -> Chunks:
        """The same without the columns that are not among these, where that saves reading them.

        Parameters
        ----------
        columns : iterable of str
            Those that the table lacks are left out.

        Returns
        -------
        Chunks
        """
        if self.select is None:
            return self
        held = set(self.names())
        kept = [name for name in columns if name in held]
        return self.select(kept) if kept else self


def names_of(table: Any) -> list[str]:
    """The names of the columns of a frame or of a table in pieces; none of anything else."""
    if isinstance(table, Chunks):
        return table.names()
    names = getattr(table, "column_names", None)  # pyarrow's; its `columns` are the data
    return [*map(str, getattr(table, "columns", ()) if names is None else names)]


def wanted_names(columns: Iterable[Any] | None) -> list[str] | None:
    """The argument `columns` as a list of different texts."""
    if columns is None:
        return None
    if isinstance(columns, str):
        raise TypeError(f"columns: a sequence of names, not the text {columns!r}")
    if not isinstance(columns, Iterable):
        raise TypeError(f"columns: a sequence of names, not {columns!r}")
    wanted = [str(one) for one in columns]
    for one in wanted:
        if wanted.count(one) > 1:
            raise ValueError(f"columns: {one!r} stands there twice")
    return wanted


def scan(path: str | Path, *, columns: Iterable[Any] | None = None, rows: int | None = None) -> Chunks:
    """A file as a table in pieces, for `compare`, `Profile.fit` and `Profile.update`.

    Parameters
    ----------
    path : path
        A .csv, .csv.gz, .parquet, .feather, .arrow or .jsonl file.
    columns : sequence of str, optional
        Read these alone.
    rows : int, optional
        How many rows a piece has, about; by default as many as hold 262,144 values (of .jsonl 65,536), but at least
        4,096.

    Returns
    -------
    Chunks

    Raises
    ------
    ValueError
        If the suffix is none of these, or a name stands twice in `columns`; while the file is read, if it lacks a
        column, has two of one name, or is damaged; of CSV also if a line has more fields than the head, or
        if these are parted by semicolons, tabs or bars.
    FileNotFoundError
        If there is no such file.

    Notes
    -----
    A column has one type for the whole file, wherever the pieces end; a .csv or .jsonl file of more than one piece is
    therefore read once more than it is counted, and so is a shorter .csv file where it is not plain what is missing.
    Of CSV, a column is numbers or truth values if all of its values are, and else text as it stands in the file. An
    empty field is missing, as is an empty line where there is one column; NA, N/A, n/a, NaN, nan, -NaN, -nan, None,
    NULL, null, <NA>, #N/A, #N/A N/A, #NA, 1.#IND, -1.#IND, 1.#QNAN and -1.#QNAN are missing in a column of numbers or
    truth values, and text in any other, also in one that holds nothing else. Of JSON lines, values keep the types that
    they have there (text is never taken for a number or a date), and a key that a line lacks is missing there.

    Of .parquet, .feather and .arrow files, `Profile.fit`, `Profile.update` and `compare` read eight columns at a time.
    While cells are fitted, the different names of a column are held, and where there is no room for those of all
    columns, the file is read again for the rest of them.

    Examples
    --------
    >>> from klnumba.tables import Profile, scan
    >>> chunks = scan("before.parquet")  # doctest: +SKIP
    >>> Profile.fit(chunks)  # doctest: +SKIP
    """
    path = Path(path)
    name = path.name.lower()
    suffix = next((one for one in READERS if name.endswith(one)), None)
    if suffix is None:
        raise ValueError(f"path: {path}: unknown suffix; known are {', '.join(READERS)}")
    if not path.is_file():
        raise FileNotFoundError(lacking(path))
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
        raise ValueError(f"rows: a positive integer, not {rows!r}")
    return _of(READERS[suffix](path, rows), path, wanted_names(columns))


def _of(reader: Reader, path: Path, columns: list[str] | None) -> Chunks:
    def names() -> list[str]:
        with _reading(path):
            held = reader.names()
        for name in columns or ():
            if name not in held:
                raise ValueError(f"columns: {name!r} is not in {path}")
        return held if columns is None else columns

    def make() -> Iterator[Any]:
        kept = None if columns is None else names()
        with _reading(path):
            found = reader.pieces(kept)
        while True:
            with _reading(path):
                piece = next(found, None)
            if piece is None:
                return
            yield piece

    narrow = (lambda kept: _of(reader, path, kept)) if reader.narrow else None
    return Chunks(make, str(path), None, names, narrow, reader.width)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Name the file in what its reader complains about, whatever the kind of the complaint."""
    try:
        yield
    except (MemoryError, ModuleNotFoundError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise ValueError(f"{path}: cannot be read: {str(error) or type(error).__name__}") from error
