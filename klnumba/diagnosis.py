"""What is wrong with a row that is no distribution."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from klnumba import labelled
from klnumba.arrays import Rows
from klnumba.engine import Task

RULES = ("is NaN", "is negative", "is infinite", "is +inf: no finite mass")


class Side(NamedTuple):
    """What cells of p or of q show: the rule that one breaks, which cell and its value, and whether there is mass."""

    rule: int
    cell: int
    value: float
    mass: bool

    def after(self, cells: int) -> Side:
        """The same of cells that others precede."""
        return self._replace(cell=self.cell + cells)


def side_of(cells: np.ndarray, held: np.ndarray, logs: bool) -> Side:
    """What is wrong with some cells of a row, of which those that are held count."""
    broken = {0: np.isnan(cells)}
    broken |= {3: cells == math.inf} if logs else {1: cells < 0.0, 2: np.isinf(cells)}
    mass = bool((cells[held] > -math.inf).any() if logs else (cells[held] != 0.0).any())
    for rule, wrong in broken.items():
        hits = np.flatnonzero(wrong & held)
        if hits.size:
            return Side(rule, int(hits[0]), float(cells[hits[0]]), mass)
    return Side(len(RULES), 0, 0.0, mass)


def sides_of(rows: Rows, at: Any, logs: bool) -> tuple[Side, Side]:
    """What is wrong with the cells of p and of q at a place."""
    mask = rows.held(at)
    found = []
    for view in (rows.p, rows.q):
        cells = np.asarray(view[at], np.float64).reshape(-1)
        found.append(side_of(cells, np.ones(cells.size, bool) if mask is None else mask.reshape(-1), logs))
    return found[0], found[1]


def joined(parts: list[Side]) -> Side:
    """What is wrong with cells that come in parts: the first of those that break the first rule that one breaks."""
    return min(parts, key=lambda part: (part.rule, part.cell))._replace(mass=any(part.mass for part in parts))


def told(p: Side, q: Side, at: tuple[int, ...], named: labelled.Named | None = None) -> str:
    """The first of what is wrong with a row, in words: argument, row, cell and rule."""
    named = named or labelled.Named()
    place = f"row {named.row(at[0])!r}" if len(at) == 1 else f"row {at}" if at else "the row"
    found = (wrong(side, f"{name}: {place}", named) for name, side in (("p", p), ("q", q)))
    return next(filter(None, found), f"p and q: {place} is not a number")


def wrong(side: Side, row: str, named: labelled.Named) -> str | None:
    """What is wrong with one side of a row, if anything is."""
    if side.rule < len(RULES):
        return f"{row}, cell {named.cell(side.cell)!r} {RULES[side.rule]} ({side.value})"
    return None if side.mass else f"{row} has no mass"


def diagnosis(rows: Rows, task: Task, row: int) -> str:
    """What is wrong with a row: argument, row, cell and rule."""
    at = tuple(map(int, np.unravel_index(row, rows.outer))) if rows.outer else ()
    return told(*sides_of(rows, at, task.logs), at, rows.named)
