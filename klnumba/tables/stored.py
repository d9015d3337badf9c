"""Profiles as plain values, and back: the versioned format of their JSON."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from klnumba.optional import type_name
from klnumba.tables import cells as cell
from klnumba.tables import sums
from klnumba.tables.cells import Array, Cells
from klnumba.tables.hashing import BUCKETS
from klnumba.tables.tally import Tally

VERSION = 1
KINDS = {"bins": ("number", "datetime", "timedelta"), "categories": ("number", "boolean", "category")}

Parts = tuple[dict[str, Cells], dict[str, Tally], dict[str, str], frozenset[str]]


def written(
    cells: dict[str, Cells], tallies: dict[str, Tally], problems: dict[str, str], known: Iterable[str]
) -> dict[str, Any]:
    """The parts of a profile as plain values."""
    columns = {}
    for name, one in cells.items():
        columns[name] = one.to_dict() | {"rows": tallies[name].rows} | _sums(tallies[name]) | {"known": name in known}
    return {"klnumba_profile": VERSION, "columns": columns, "problems": dict(problems)}


def _sums(tally: Tally) -> dict[str, Any]:
    """Counts, or sums of weights as the nearest numbers; `rests` has what these lack, where any lacks something."""
    labels = None if tally.unseen is None else sorted(tally.unseen, key=lambda label: repr([label, 0]))
    found = _lists(tally, labels)
    rests = {}
    if tally.exact is not None:
        exact = _lists(tally.exact, labels)
        rests = {key: None if one is None else [*map(sums.rests, one)] for key, one in exact.items()}
    if tally.unseen is not None and labels is not None:
        found["unseen"] = [[label, tally.unseen[label]] for label in labels]
    return found | ({"rests": rests} if any(any(one or ()) for one in rests.values()) else {})


def _lists(tally: Tally, labels: list[Any] | None) -> dict[str, Any]:
    """The numbers of a tally, those of the categories without a cell in the order of these labels."""
    return {
        "counts": tally.counts.tolist(),
        "squares": None if tally.squares is None else tally.squares.tolist(),
        "unseen": None if labels is None or tally.unseen is None else [tally.unseen[label] for label in labels],
        "buckets": None if tally.buckets is None else tally.buckets.tolist(),
    }


def read(text: str) -> Parts:
    """The parts of a profile from its JSON."""
    if not isinstance(text, str):
        raise TypeError(f"text: the JSON of a profile, not {type_name(text)}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"text: no JSON: {error}") from None
    if not isinstance(found, dict) or "klnumba_profile" not in found:
        raise ValueError("text: not a profile")
    if found["klnumba_profile"] != VERSION:
        raise ValueError(f"text: a profile of version {found['klnumba_profile']}, this reads {VERSION}")
    try:
        return _parts(found)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"text: a damaged profile: {error!r}") from None


def _parts(found: dict[str, Any]) -> Parts:
    cells: dict[str, Cells] = {}
    tallies: dict[str, Tally] = {}
    for name, column in found["columns"].items():
        _check_cells(name, column)
        one = cell.from_dict(column)
        _check_tally(name, column, one.size)
        cells[name], tallies[name] = one, _tally(name, column)
    known = frozenset(name for name, column in found["columns"].items() if column["known"])
    problems = found["problems"]
    _check(all(isinstance(reason, str) for reason in problems.values()), "problems are texts, by column")
    return cells, tallies, dict(problems), known


def _tally(name: str, column: dict[str, Any]) -> Tally:
    weighted = column["squares"] is not None
    kind: Any = np.float64 if weighted or column["known"] else np.int64
    counts = np.array(column["counts"], kind)
    squares = np.array(column["squares"], np.float64) if weighted else None
    unseen = None if column["unseen"] is None else dict(column["unseen"])
    buckets = None if column.get("buckets") is None else np.array(column["buckets"], kind)
    found = Tally(counts, squares, column["rows"], unseen, buckets)
    if not weighted or "rests" not in column:  # of sums without rounding, or written when these were rounded
        return found
    rests, labels = column["rests"], [*(unseen or {})]
    whole = _lists(found, None if unseen is None else labels)
    counts = _added(name, whole["counts"], rests["counts"])
    more, named, others = (
        None if whole[key] is None else _added(name, whole[key], rests[key]) for key in ("squares", "unseen", "buckets")
    )
    names = None if named is None else dict(zip(labels, named, strict=True))
    return Tally(counts, more, column["rows"], names, others).rounded()


def _added(name: str, numbers: list[float], rests: list[list[float]]) -> Array:
    """Sums of weights with what rounding took, believed only if it could."""
    fine = len(rests) == len(numbers) and all(all(map(_number, one)) for one in rests)
    _check(fine, f'column {name!r}: "rests" are lists of numbers, one for each sum')
    found = sums.listed(sum(map(sums.of_float, [one, *more])) for one, more in zip(numbers, rests, strict=True))
    fine = sums.rounded(found).tolist() == [*map(float, numbers)]
    _check(fine, f'column {name!r}: "rests" are less than what rounding takes')
    return found


def _check(held: bool, rule: str) -> None:
    if not held:
        raise ValueError(f"text: a damaged profile: {rule}")


def _check_cells(name: str, column: dict[str, Any]) -> None:
    """Cells are believed only if they are such as this package makes."""
    kind, shape = column["kind"], column["cells"]
    _check(shape in KINDS and kind in KINDS[shape], f"column {name!r} has {shape!r} of {kind!r}")
    if shape == "bins":
        for key in ("aware", "fitted"):
            _check(isinstance(column.get(key, False), bool), f'column {name!r}: "{key}" is true or false')
        _check(kind == "datetime" or not column["aware"], f'column {name!r}: "aware" is for times')
        edges = column["edges"]
        limit = math.inf if kind == "number" else 2.0**63  # times are microseconds in 64 bits
        fine = all(_number(edge) and abs(edge) < limit for edge in edges)
        _check(fine and len(edges) != 1, f"column {name!r}: edges are two finite numbers or more")
        steps = [high - low for low, high in itertools.pairwise(edges)]
        rising = all(step > 0 for step in steps[:-1]) and (len(steps) == 0 or steps[-1] >= 0)
        _check(rising, f"column {name!r}: edges increase")
        return
    names, numbers = column["names"], kind == "number"
    _check(isinstance(names, list), f"column {name!r}: names are a list")
    _check(all(map(_category if numbers else _label, names)), f"column {name!r}: names of kind {kind!r}")
    _check(len(set(names)) == len(names), f"column {name!r}: names differ")
    fine = kind != "boolean" or names in ([], [False, True])  # none where no row had a value
    _check(fine, f"column {name!r}: truth values are false and true")
    _check(_count(column["folded"]), f'column {name!r}: "folded" is a whole number from 0 on')


def _check_tally(name: str, column: dict[str, Any], size: int) -> None:
    """Counts are believed only if they can have been counted."""
    counts, squares, unseen, known = (column[key] for key in ("counts", "squares", "unseen", "known"))
    _check(isinstance(known, bool), f'column {name!r}: "known" is true or false')
    _check(_count(column["rows"]), f'column {name!r}: "rows" is a whole number from 0 on')
    for numbers in [counts] if squares is None else [counts, squares]:
        _check(len(numbers) == size, f"column {name!r} has {len(numbers)} counts, not {size}")
        _check(all(_number(one) and one >= 0 for one in numbers), f"column {name!r}: counts are numbers from 0 on")
    if squares is None and not known:
        whole = all(map(_count, counts)) and sum(counts) == column["rows"]
        _check(whole, f"column {name!r}: counts are whole numbers that add up to its rows")
    counted = _count if squares is None else _sum
    if unseen is not None:
        fine = all(len(pair) == 2 and _label(pair[0]) and counted(pair[1]) for pair in unseen)
        _check(fine, f'column {name!r}: "unseen" has pairs of a category and a count')
        apart = len({label for label, _ in unseen} - {*column.get("names", ())}) == len(unseen)
        _check(apart, f'column {name!r}: "unseen" has each category once, and none that has a name')
    buckets = column.get("buckets")
    if buckets is not None:
        _check(
            len(buckets) == BUCKETS and all(map(counted, buckets)), f'column {name!r}: "buckets" are {BUCKETS} counts'
        )
    if column["cells"] == "categories" and squares is None and not known:  # sums of weights are rounded
        told = [one for one in (None if unseen is None else [count for _, count in unseen], buckets) if one is not None]
        fine = all(sum(one) == counts[-2] for one in told)
        _check(fine, f"column {name!r}: new categories add up to the count of their cell")


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _sum(value: Any) -> bool:
    """A sum of weights."""
    return _number(value) and value >= 0


def _category(value: Any) -> bool:
    """A number as a category: infinities are texts."""
    return _number(value) or value in cell.INFINITE


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _label(value: Any) -> bool:
    return isinstance(value, (str, bool)) or _number(value)
