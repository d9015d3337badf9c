"""Readers of text, whose types are guessed: a column has one for the whole file, however it is cut. That of CSV."""

from __future__ import annotations

import gzip
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from klnumba.missing import WORDS
from klnumba.optional import load
from klnumba.tables import whole
from klnumba.tables.border import check_differ, frame_columns
from klnumba.tables.columns import Column, Unusable
from klnumba.tables.counting import all_missing
from klnumba.tables.readers import rows_of

NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)\s*", re.ASCII | re.IGNORECASE)
LONGER = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
QUOTED = re.compile(r'"[^"]*"')
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}  # that other programs part fields by


class Survey(NamedTuple):
    """What is known of a file that has been read once."""

    names: list[str]
    typed: set[str]  # columns of numbers alone, or of truth values
    mixed: set[str]  # columns of one kind in one piece and of another in the next
    rounded: set[str]  # columns whose numbers may have lost digits


@dataclass
class Untyped(ABC):
    """A file of text: its types are guessed from the values, and so from all of them before the first is counted."""

    path: Path
    rows: int | None
    surveys: dict[tuple[str, ...] | None, Survey] = field(default_factory=dict, init=False, repr=False)
    state: tuple[int, int] | None = field(default=None, init=False, repr=False)  # of the file that they tell of

    @abstractmethod
    def frames(self, columns: list[str] | None, survey: Survey | None) -> Iterator[Any]:
        """The pieces, each with the types that it has by itself, but for what the survey found mixed."""

    def pieces(self, columns: list[str] | None) -> Iterator[Any]:
        """The rows; a file of one piece is read once, a longer one first to see its types."""
        self.renew()
        survey = self._survey_of(columns)
        if survey is None:
            frames = self.frames(columns, None)
            start = [*islice(frames, 2)]
            if len(start) < 2 and all(map(self.settled, start)):
                yield from start
                return
            survey = self._surveyed(chain(start, frames))
            self.surveys[None if columns is None else tuple(columns)] = survey
        yield from self.frames(columns, survey)

    def renew(self) -> None:
        """Forget what is known of a file that has been written to since."""
        found = self.path.stat()
        state = found.st_size, found.st_mtime_ns
        if state != self.state:
            self.surveys.clear()
            self.state = state

    def _survey_of(self, columns: list[str] | None) -> Survey | None:
        """What is known of these columns, perhaps from a survey of more of them."""
        for held, survey in self.surveys.items():
            if held is None or (columns is not None and set(columns) <= set(held)):
                kept = {*(survey.names if columns is None else columns)}
                return Survey(survey.names, *(one & kept for one in survey[1:]))
        return None

    def settled(self, frame: Any) -> bool:
        """Whether the values of a file of one piece are known once it has been read."""
        return not self.rounded(frame)

    def rounded(self, frame: Any) -> set[str]:
        """The columns of a piece whose numbers may not be those of the file."""
        return set()

    def _surveyed(self, frames: Iterable[Any]) -> Survey:
        kinds: dict[str, set[str]] = {}
        rounded: set[str] = set()
        for frame in frames:
            numbers = self.rounded(frame)
            rounded |= numbers
            for name, column in frame_columns(frame, "file").items():
                held = kinds.setdefault(name, set())
                kind = "number" if name in numbers else column.kind
                if kind not in held and _has_values(column):
                    held.add(kind)
        typed = {name for name, held in kinds.items() if held in ({"number"}, {"boolean"})}
        mixed = {name for name, held in kinds.items() if len(held) > 1}
        return Survey([*kinds], typed, mixed, rounded - mixed)


def _has_values(column: Column) -> bool:
    """Whether the kind of a column means anything; what cannot be read says so where it is counted."""
    with suppress(Exception):
        return isinstance(column, Unusable) or not all_missing(column)
    return True


class Csv(Untyped):
    """A .csv or .csv.gz file: a column that is not all numbers or all truth values is text as it stands."""

    narrow = True  # a line is read whole, but the types of the others need not be known
    width = None

    def names(self) -> list[str]:
        """The columns."""
        self._check()
        return [*load("pandas").read_csv(self.path, nrows=0).columns]

    def _check(self) -> int:
        """How many columns there are.

        Of names that stand there twice, or fields before the first that has a name, pandas says nothing; and where
        no comma is, it finds one column.
        """
        self._check_commas()
        with _longer():
            head = load("pandas").read_csv(self.path, nrows=2, header=None, dtype=str, keep_default_na=False)
        check_differ(filter(None, head.to_numpy()[:1].reshape(-1)))
        return int(head.shape[1])

    def _check_commas(self) -> None:
        """Refuse a file whose head and first row have as many of another separator, and whose head has no comma."""
        with self._opened() as file:
            first = [QUOTED.sub("", line) for line in islice(filter(str.strip, file), 2)]
        for one, name in SEPARATORS.items():
            if len(first) == 2 and "," not in first[0] and first[0].count(one) == first[1].count(one) > 0:
                raise ValueError(f"fields are parted by {name}, and in a .csv file by commas; numbers have points")

    def frames(self, columns: list[str] | None, survey: Survey | None) -> Iterator[Any]:
        """The pieces; lines are read whole, for pandas counts the fields only of those."""
        width = self._check()
        rows = rows_of(self.rows, width)  # with those that are not wanted, which are taken apart too
        found = Survey([], set(), set(), set()) if survey is None else survey
        words = WORDS if survey is None else {name: WORDS if name in found.typed else ("",) for name in found.names}
        text = dict.fromkeys(found.rounded | found.mixed, str)
        options: dict[str, Any] = {"na_values": words, "keep_default_na": False, "dtype": text, "low_memory": False}
        options |= _precision()
        if width == 1:  # an empty line is a missing value
            options |= {"skip_blank_lines": False, "skiprows": self._above()}
        with _longer(), load("pandas").read_csv(self.path, chunksize=rows, **options) as reader:
            for frame in reader:
                kept = _without_blanks(frame if columns is None else frame[columns])
                yield kept.assign(**{name: _numbers(kept[name]) for name in kept if name in found.rounded})

    def _above(self) -> int:
        """How many lines without a text stand above the head."""
        with self._opened() as file:
            return sum(1 for _ in takewhile(lambda line: not line.strip(), file))

    def _opened(self) -> Any:
        """The file as lines of text, whatever its bytes are."""
        unpacked: Any = gzip.open if self.path.name.lower().endswith(".gz") else open
        return unpacked(self.path, "rt", encoding="utf-8-sig", errors="replace")

    def settled(self, frame: Any) -> bool:
        """What is missing may be a word, and that a text."""
        doubtful = frame_columns(frame.loc[:, frame.isna().any()], "file")
        typed = all(column.kind in ("number", "boolean") and _has_values(column) for column in doubtful.values())
        return typed and super().settled(frame)

    def rounded(self, frame: Any) -> set[str]:
        """Where a value is missing, pandas reads whole numbers as float64, and those from 2**63 on as texts."""
        floats = frame.select_dtypes("float64")
        large = (floats.abs() >= whole.LIMIT) & np.isfinite(floats)
        texts = {name for name in frame if frame[name].dtype.kind == "O" and _written_numbers(frame[name])}
        return texts | {name for name in floats if large[name].any()}


def _precision() -> dict[str, str]:
    """What pandas before 3.1 needs to read the number that is written, and not one beside it."""
    version = tuple(int(part) for part in load("pandas").__version__.split(".")[:2])
    return {"float_precision": "round_trip"} if version < (3, 1) else {}


def _without_blanks(frame: Any) -> Any:
    """Empty fields as missing values: beside a whole number of more than 64 bits pandas leaves them as they are."""
    texts = (name for name in frame if frame[name].dtype.kind == "O")
    blank = {name: found for name in texts if (found := frame[name] == "").any()}
    return frame.assign(**{name: frame[name].mask(found) for name, found in blank.items()}) if blank else frame


def _written_numbers(texts: Iterable[Any]) -> bool:
    """Whether these are numbers, of which some are too large for 64 bits with a sign."""
    large = False
    for text in texts:
        if isinstance(text, float) or text in WORDS:  # NaN, or what pandas leaves as it is among such numbers
            continue
        found = NUMBER.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            return False
        large = large or abs(_number(text)) >= 1 << 63
    return large


@contextmanager
def _longer() -> Iterator[None]:
    """Say of a line with too many fields what may be the matter."""
    try:
        yield
    except load("pandas").errors.ParserError as error:
        found = LONGER.search(str(error))
        if found is None:
            raise
        more = "row names need a name there, and a field with a comma needs quotes"
        raise ValueError(f"line {found[2]}: {found[3]} fields, but the head has {found[1]}; {more}") from error


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
