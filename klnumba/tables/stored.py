"""Profiles as plain values, and back: the versioned format of their JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from klnumba.tables import cells as cell
from klnumba.tables.cells import Cells
from klnumba.tables.counting import Tally

VERSION = 1

Parts = tuple[dict[str, Cells], dict[str, Tally], dict[str, str], frozenset[str]]


def written(
    cells: dict[str, Cells], tallies: dict[str, Tally], problems: dict[str, str], known: Iterable[str]
) -> dict[str, Any]:
    """The parts of a profile as plain values."""
    columns = {}
    for name, one in cells.items():
        tally = tallies[name]
        columns[name] = one.to_dict() | {
            "rows": tally.rows,
            "counts": tally.counts.tolist(),
            "squares": None if tally.squares is None else tally.squares.tolist(),
            "unseen": None if tally.unseen is None else sorted(map(list, tally.unseen.items()), key=repr),
            "buckets": None if tally.buckets is None else tally.buckets.tolist(),
            "known": name in known,
        }
    return {"klnumba_profile": VERSION, "columns": columns, "problems": dict(problems)}


def read(text: str) -> Parts:
    """The parts of a profile from its JSON."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"text: no JSON: {error}") from None
    if not isinstance(found, dict) or "klnumba_profile" not in found:
        raise ValueError("text: not a profile")
    if found["klnumba_profile"] != VERSION:
        raise ValueError(f"text: a profile of version {found['klnumba_profile']}, this reads {VERSION}")
    try:
        return _parts(found)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"text: a damaged profile: {error!r}") from None


def _parts(found: dict[str, Any]) -> Parts:
    cells: dict[str, Cells] = {}
    tallies: dict[str, Tally] = {}
    for name, column in found["columns"].items():
        one = cell.from_dict(column)
        weighted = column["squares"] is not None
        kind: Any = np.float64 if weighted or column["known"] else np.int64
        counts = np.array(column["counts"], kind)
        squares = np.array(column["squares"], np.float64) if weighted else None
        unseen = None if column["unseen"] is None else dict(column["unseen"])
        if counts.shape != (one.size,) or (squares is not None and squares.shape != counts.shape):
            raise ValueError(f"text: a damaged profile: column {name!r} has {counts.size} counts, not {one.size}")
        buckets = np.array(column["buckets"], kind) if column.get("buckets") is not None else None
        cells[name], tallies[name] = one, Tally(counts, squares, column["rows"], unseen, buckets)
    known = frozenset(name for name, column in found["columns"].items() if column["known"])
    return cells, tallies, dict(found["problems"]), known
