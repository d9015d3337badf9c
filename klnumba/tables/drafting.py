"""Cells for all columns of a table, in one piece or in many."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from klnumba.kernels import threads
from klnumba.tables import fitting, rules, turns
from klnumba.tables.cells import Array, Cells
from klnumba.tables.chunks import Chunks, wanted_names
from klnumba.tables.columns import Column, ColumnError, Labels, Unusable
from klnumba.tables.counting import Progress, all_missing
from klnumba.tables.fitting import Draft
from klnumba.tables.room import Room
from klnumba.tables.weighting import split_weights

Drafts = dict[str, Draft | None]
Problems = dict[str, str]

NOT_EVERYWHERE = "is not in every piece"


def fitted(reference: Any, columns: Any, weights: Any, bins: Any) -> tuple[dict[str, Cells], Problems]:
    """The cells that fit a table, by column, and why a column has none."""
    if not isinstance(reference, Chunks):
        return _at_once(reference, columns, weights, bins)
    names: list[str] = []
    cells: dict[str, Cells] = {}
    problems: Problems = {}
    for part, wanted in strips(reference, columns, weights, bins):
        found, made, lost, later = _passed(part, wanted, weights, bins if part is reference else _of(bins, wanted))
        names += found
        fitting, rest = len(found) - len(later), later
        while rest:
            cells.update(made)
            problems.update(lost)
            some, rest = rest[: fitting + 1], rest[fitting + 1 :]
            _, made, lost, later = _passed(narrowed(part, some, weights), some, weights, _of(bins, some))
            fitting, rest = len(some) - len(later) if later else 2 * len(some), later + rest
        cells.update(made)
        problems.update(lost)
    return _in_order(names, cells, problems)


def apart(table: Any) -> bool:
    """Whether a table is a file that keeps its columns apart: of any other, lines are read whole."""
    return isinstance(table, Chunks) and table.width is not None


def strips(table: Any, columns: Any, weights: Any, bins: Any = None) -> list[tuple[Any, Any]]:
    """A table and its wanted columns; of a file that keeps columns apart, a few of them at a time."""
    if not apart(table):
        return [(table, columns)]
    wanted = [*chosen(dict.fromkeys(name for name in table.names() if name != weights), columns, "reference")]
    if len(wanted) <= table.width:
        return [(table, columns)]
    _check_known(bins, wanted)
    parts = (wanted[k : k + table.width] for k in range(0, len(wanted), table.width))
    return [(narrowed(table, part, weights), part) for part in parts]


def told(progress: Progress | None, parts: list[tuple[Any, Any]], cells: Container[str]) -> list[Progress | None]:
    """What is told of each strip, so that all together tell of the columns that have cells."""
    if progress is None or len(parts) == 1:
        return [progress] * len(parts)
    sizes = [sum(name in cells for name in names) for _, names in parts]
    starts = itertools.accumulate(sizes[:-1], initial=0)
    return [partial(_tell, progress, start, sum(sizes)) for start in starts]


def _tell(progress: Progress, start: int, total: int, done: int, _: int) -> None:
    progress(start + done, total)


def _of(bins: Any, names: Iterable[str]) -> Any:
    """The rules of these columns alone."""
    return {name: bins[name] for name in names if name in bins} if isinstance(bins, dict) else bins


def _passed(
    reference: Chunks, columns: Any, weights: Any, bins: Any
) -> tuple[list[str], dict[str, Cells], Problems, list[str]]:
    """All columns, the cells that one pass over the pieces makes, its problems, and the columns it had no room for."""
    drafts: Drafts = {}
    problems: Problems = {}
    room = Room(drafts)
    for first, (found, _) in enumerate(pieces(reference, weights, "reference")):
        if not first:
            found = chosen(found, columns, "reference")
            check_names(bins, found)
            drafts.update(dict.fromkeys(found))
        for name in found if columns is None else ():
            if name not in drafts:  # in this piece for the first time
                drafts[name], problems[name] = None, NOT_EVERYWHERE
        draft(drafts, problems, found, bins, room=room)
    return [*drafts], *cells_of(drafts, problems), [name for name in drafts if name in room.later]


def _in_order(names: Iterable[str], cells: dict[str, Cells], problems: Problems) -> tuple[dict[str, Cells], Problems]:
    """Both as the columns stand."""
    every = [*names]
    return {name: cells[name] for name in every if name in cells}, {k: problems[k] for k in every if k in problems}


def _at_once(reference: Any, columns: Any, weights: Any, bins: Any) -> tuple[dict[str, Cells], Problems]:
    """The cells of a table in one piece: each column's draft is dropped before the next one's begins."""
    found, _ = split_weights(reference, weights, "reference")
    found = chosen(found, columns, "reference")
    check_names(bins, found)
    cells: dict[str, Cells] = {}
    problems: Problems = {}

    def work(name: str) -> None:
        with turns.taken():
            one: Drafts = {name: None}
            _draft_one(one, problems, found, bins, name, 0)
            made, lost = cells_of(one, problems)
            cells.update(made)
            problems.update(lost)

    _run(work, [*found], found)
    return _in_order(found, cells, problems)


def cells_of(drafts: Drafts, problems: Problems) -> tuple[dict[str, Cells], Problems]:
    """The cells that follow from the drafts of all columns."""
    cells: dict[str, Cells] = {}
    for name, one in drafts.items():
        try:
            if one is not None and name not in problems:
                cells[name] = one.cells()
        except ValueError as error:  # a ColumnError, or bytes that are no text
            problems[name] = str(error)
    return cells, {name: problems[name] for name in drafts if name in problems}


def pieces(table: Any, weights: Any, name: str) -> Iterator[tuple[dict[str, Column], Array | None]]:
    """The columns and the weights of a frame, or of every piece of one."""
    if isinstance(table, Chunks) and weights is not None and not isinstance(weights, str):
        raise TypeError("weights: of a table in pieces, the name of a column")
    for piece in table if isinstance(table, Chunks) else (table,):
        yield split_weights(piece, weights, name)


def draft(
    drafts: Drafts, problems: Problems, found: dict[str, Column], bins: Any, start: int = 0, room: Room | None = None
) -> None:  # fmt: skip
    """Add a piece to the draft of every column, on all threads; the first piece begins with row `start`.

    Where there is no `room` for all, some are put off.
    """

    def put_off(name: str) -> bool:
        return room is not None and name in room.later

    def work(name: str) -> None:
        if not put_off(name):
            with turns.taken(lambda: put_off(name)):
                _draft_one(drafts, problems, found, bins, name, start)
                if room is not None:
                    room.take(name)

    _run(work, [name for name in drafts if name not in problems], found)


def _draft_one(
    drafts: Drafts, problems: Problems, found: dict[str, Column], bins: Any, name: str, start: int
) -> None:  # fmt: skip
    """Add a piece to the draft of one column."""
    try:
        if name not in found:
            raise ColumnError(NOT_EVERYWHERE)
        rule = rules.rule_of(bins, name)
        reason = None if _has_categories(found[name]) else _misfit(found[name], rule)
        if reason is not None:
            raise ColumnError(reason)
        drafts[name] = fitting.drafted(drafts[name], found[name], rule, start)
    except turns.GivenUp:
        drafts[name] = None
    except Exception as error:  # conversions are other libraries': what they raise is the column's status
        drafts[name], problems[name] = None, str(error) or type(error).__name__


def _run(work: Callable[[str], None], names: list[str], found: dict[str, Column]) -> None:
    """Do the work for each column, on all threads."""
    threads.run(work, names, threads.choose(None, sum(column.rows for column in found.values())))


def check_names(bins: Any, found: dict[str, Column]) -> None:
    """Refuse rules for columns that are not there, or of which such a rule makes no bins."""
    _check_known(bins, found)
    for name, rule in bins.items() if isinstance(bins, dict) else ():
        reason = _misfit(found[name], rule)
        if reason is not None:
            raise ValueError(f"bins: column {name!r} {reason}")


def _check_known(bins: Any, names: Container[str]) -> None:
    for name in bins if isinstance(bins, dict) else ():
        if name not in names:
            raise ValueError(f"bins: {name!r} is not in reference")


def _has_categories(column: Column) -> bool:
    """Whether a rule for all columns does not mean this one."""
    return isinstance(column, Labels) or column.kind == "boolean"


def _misfit(column: Column, rule: Any) -> str | None:
    """Why a rule makes no bins of a column; one without values has no kind yet."""
    if isinstance(column, Unusable):
        return None
    reason = rules.misfit(rule, column.kind, column.aware)
    return None if reason is None or all_missing(column) else reason


def chosen(found: Mapping[str, Any], columns: Iterable[Any] | None, name: str) -> dict[str, Any]:
    """The wanted columns, in the order in which they are wanted."""
    wanted = wanted_names(columns)
    for one in wanted or ():
        if one not in found:
            raise ValueError(f"columns: {one!r} is not in {name}")
    return dict(found) if wanted is None else {one: found[one] for one in wanted}


def narrowed(table: Any, columns: list[str] | None, weights: Any) -> Any:
    """A table in pieces without the columns that nobody wants, where that saves reading them."""
    if columns is None or not isinstance(table, Chunks):
        return table
    return table.only([*columns, *([weights] if isinstance(weights, str) and weights not in columns else [])])
