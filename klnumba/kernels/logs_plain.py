"""Rows of log-probabilities that are taken as they are, of which one sum of cells is the value, in one read.

A row whose sum is NaN or -inf is flagged and left to `kernels.logs`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas import plain_log_cells as formulas
from klnumba.kernels.compiler import part, scalar
from klnumba.kernels.fast import GROUP, group, sums
from klnumba.kernels.instructions import frozen
from klnumba.kernels.lane_sums import AHEAD
from klnumba.kernels.log_sums import tile_of
from klnumba.kernels.logs import value_of
from klnumba.kernels.shares import flagged, take
from klnumba.kernels.tiles import SPACE, STEP, TILE, add, ask, vector_sum

CELLS: dict[str, Callable[..., Any]] = {
    "kl": formulas.kl,
    "jeffreys": formulas.jeffreys,
    "js": formulas.js,
    "cross_entropy": formulas.cross_entropy,
    "entropy": formulas.entropy,
}
AT = GROUP  # where the cells lie in `space`, after their sums
assert AT + GROUP + STEP <= SPACE


def short_rows(name: str) -> Callable[..., Any]:
    """Rows of fewer than `fast.SHORT` cells, many at a time."""
    cell = scalar(CELLS[name])

    @part
    def flat(p: Any, a: Any, q: Any, b: Any, count: Any, out: Any) -> None:
        line, ahead = 64 // p.itemsize, AHEAD // 2 // p.itemsize  # as in `fast.flat_loop`
        for start in range(0, count, STEP):
            stop = min(start + STEP, count)
            x, y, place = p[a + start : a + stop], q[b + start : b + stop], out[start:stop]
            ask(x, y, ahead, STEP, line)
            for k in range(x.size):
                place[k] = cell(np.float64(x[k]), np.float64(y[k]))

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any, out: Any, flag: Any, turn: Any,
        work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        most, found = GROUP // d, space[0:GROUP]
        while True:
            begin, stop = take(turn, n, d)
            if begin == stop:
                break
            for first in range(begin, stop, most):
                count = min(most, stop - first)
                x, o, y, u, whole = group(p, a + first * ps, ps, q, b + first * qs, qs, count, d, work, view)
                flat(x, o, y, u, whole, space[AT : AT + whole])
                sums(frozen(space), np.int64(AT), count, d, found)
                for r in range(count):
                    out[first + r] = found[r]
                    flag[first + r] = 0 if found[r] > -math.inf else turn[3]
        return flagged(turn, flag)

    return loop


def row_sum(name: str) -> Any:
    """The value of a long row, of which `space` keeps the sum to twice the digits."""
    cell, alone = scalar(CELLS[name]), name == "entropy"

    @part
    def row(p: Any, o: Any, q: Any, u: Any, d: Any, work: Any, view: Any, space: Any) -> Any:
        space[0], space[1] = 0.0, 0.0
        for start in range(0, d, TILE):
            x, y = tile_of(p, o + start, q, u + start, min(TILE, d - start), alone, work, view)
            cells = space[AT : AT + x.size]
            for k in range(x.size):
                cells[k] = cell(np.float64(x[k]), np.float64(y[k]))
            add(space, 0, vector_sum(cells))
        return value_of(space[0], space[1])

    return row


def long_rows(name: str) -> Callable[..., Any]:
    """Rows of at least so many."""
    row = row_sum(name)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any, out: Any, flag: Any, turn: Any,
        work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        while True:
            begin, stop = take(turn, n, d)
            if begin == stop:
                break
            for r in range(begin, stop):
                out[r] = row(p, a + r * ps, q, b + r * qs, d, work, view, space)
                flag[r] = 0 if out[r] > -math.inf else turn[3]
        return flagged(turn, flag)

    return loop


def pieces(name: str) -> Callable[..., None]:
    """Pieces of one long row: the sum of each."""
    row = row_sum(name)

    def loop(
        p: Any, a: Any, q: Any, b: Any, starts: Any, stops: Any, states: Any, work: Any, view: Any, space: Any
    ) -> None:
        for i in range(starts.size):
            row(p, a + starts[i], q, b + starts[i], stops[i] - starts[i], work, view, space)
            states[i, 0], states[i, 1] = space[0], space[1]

    return loop
