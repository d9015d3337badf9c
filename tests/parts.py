"""A part of the cases of a test, always the same; the whole would take too long, and runs with the slow tests.

``@pytest.mark.part(3)`` leaves a third of the cases of a test and marks the others slow. They are drawn by the names of
their parameters alone: several tests of the same pairs are left with the same, whose loops are compiled once. Where a
parameter has the same value in many cases, as a family has in many pairs, at least one case of each value is left; of a
family as ``p`` or as ``q``. Cases that are slow by themselves are not drawn from.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any


def left_out(items: Iterable[Any], count: int) -> list[Any]:
    """The cases of which only one in so many is wanted, less those."""
    tests: dict[str, list[Any]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return [item for cases in tests.values() for item in _less_some(cases, count)]


def _less_some(cases: list[Any], count: int) -> Iterator[Any]:
    """Those of one test."""
    kept = [case for case in cases if zlib.crc32(_name(case).encode()) % count == 0] or cases[:1]
    often = Counter(value for case in cases for value in _values(case))
    few = Counter(name for name, _ in often)  # the values that a parameter has
    seen = {value for case in kept for value in _values(case)}
    for case in cases:
        more = {value for value in _values(case) if 2 * few[value[0]] <= len(cases)} - seen
        if case in kept or more:
            seen |= more
        else:
            yield case


def _name(case: Any) -> str:
    """That of a case without that of its test."""
    return str(case.nodeid.partition("[")[2])


def _values(case: Any) -> set[tuple[str, str]]:
    """The parameters of a case with their values, of `p` and `q` as if they were one."""
    given = getattr(case, "callspec", None)
    params = {} if given is None else given.params
    return {("p or q" if name in {"p", "q"} else name, repr(value)) for name, value in params.items()}
