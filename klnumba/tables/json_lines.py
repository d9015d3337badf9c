"""The reader of .jsonl files: a line is an object, and its values have the types that JSON gives them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, filterfalse, islice
from typing import Any

from klnumba.optional import load
from klnumba.tables import objects, whole
from klnumba.tables.border import check_differ
from klnumba.tables.columns import ColumnError
from klnumba.tables.readers import rows_of
from klnumba.tables.text_files import Survey, Untyped

BLANKS = " \t\r\n"  # what JSON allows around a value; Python's own `strip` takes more
OBJECT = 4  # as many values of a frame as a value of JSON takes memory for while its line is taken apart


@dataclass
class JsonLines(Untyped):
    """A .jsonl file: values have the types that JSON gives them, and a key that a line lacks is missing there."""

    narrow = True  # a line is read whole, but no columns are made of the others
    width = None
    _names: list[str] | None = field(default=None, init=False, repr=False)

    def renew(self) -> None:
        """Forget what is known of a file that has been written to since."""
        held = self.state
        super().renew()
        if self.state != held:
            self._names = None

    def names(self) -> list[str]:
        """The columns: every key of any line."""
        self.renew()
        if self._names is None:
            survey = self.surveys.get(None)
            self._names = survey.names if survey is not None else _keys(chain.from_iterable(self._records()))
        return self._names

    def frames(self, columns: list[str] | None, survey: Survey | None) -> Iterator[Any]:
        """The pieces."""
        mixed = survey.mixed if survey is not None else ()
        for records in self._records() if survey is None else self._checked(self.names()):
            names = columns or (survey.names if survey is not None else _keys(records))
            values = zip(*(tuple(map(one.get, names)) for one in records), strict=True)
            records.clear()  # they take ten times as much as the frame
            held = {name: _series(one, name in mixed) for name, one in zip(names, values, strict=True)}
            yield load("pandas").DataFrame(held)
            del held

    def _records(self) -> Iterator[list[dict[str, Any]]]:
        """The objects, and an error for whatever is none."""
        with self._open() as file:
            lines = ((number, text) for number, line in enumerate(file, 1) if (text := line.strip(BLANKS)))
            piece: list[dict[str, Any]] = []
            values = number = 0
            for number, line in lines:
                piece.append(_record(number, line))
                values += len(piece[-1])
                if len(piece) >= rows_of(self.rows, OBJECT * values // len(piece)):
                    yield piece
                    piece, values = [], 0
            if not number:
                raise ValueError("no lines, and so no columns")
            if piece:
                yield piece

    def _checked(self, names: list[str]) -> Iterator[list[dict[str, Any]]]:
        """The same of a file in which `_records` found no error: many lines at a time, which is quicker."""
        with self._open() as file:
            lines = filterfalse(str.isspace, file)
            size = rows_of(self.rows, OBJECT * len(names))
            while text := ",".join(islice(lines, size)):
                yield json.loads(f"[{text}]")

    def _open(self) -> Any:
        return self.path.open(encoding="utf-8-sig")


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


def _series(values: Sequence[Any], mixed: bool) -> Any:
    """A column; of a mixed one the values are categories also in a piece that has numbers alone."""
    pd = load("pandas")
    if mixed:
        with suppress(ColumnError):  # lists and objects cannot be told apart; the column's status will say so
            codes, found = objects.coded(pd.Series(values, dtype=object))
            return pd.Series(pd.Categorical.from_codes(codes, categories=pd.Index(found, dtype=object)))
    kinds = set(map(type, values))
    if int in kinds and any(type(one) is int and abs(one) >= whole.LIMIT for one in values):
        return pd.Series(values, dtype=object)  # beside a missing value pandas would make them float64
    try:
        return pd.Series(values, dtype=float if kinds <= {type(None)} else None)
    except UnicodeEncodeError:  # half of a surrogate pair, which Arrow's text cannot hold
        return pd.Series(values, dtype=object)
