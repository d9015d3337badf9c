"""Short rows of logits, as `kernels.log_sums` has long ones, many side by side: one a lane of a vector.

So a row's sums are those of its lane, in an order that depends on its length alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from klnumba.formulas.elementary import two_sum
from klnumba.formulas.log_sum_cells import DEEP
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.lanes import LANES, on_stack
from klnumba.kernels.log_sums import (
    FINISH,
    LARGEST,
    below,
    between,
    fall_apart,
    gained,
    is_usable,
    js,
    own_surprise,
    surprise,
)
from klnumba.kernels.shares import flagged, take
from klnumba.kernels.tiles import SCRATCH, SPACE

SHORT = 160  # rows shorter than this are computed so,
ROWS = LANES  # so many at a time
RUN = 4  # cells of a lane that are added up in order; the sums of the runs keep their rounding errors
# Where in the vectors of a group there begin the largest cells and their numbers, of p and q; R of p and q and the
# cells, of a run and before it; and what JS needs.
TOPS, TIES, RUNS, SUMS, LOWS, NUMBERS = 0, 2 * ROWS, 4 * ROWS, 7 * ROWS, 10 * ROWS, 13 * ROWS
SECOND, THIRD = ROWS, 2 * ROWS
assert SHORT * ROWS <= SPACE
assert (SHORT + 2) * ROWS <= SCRATCH

_two_sum = scalar(two_sum)


@helper
def _across(cells: Any, start: Any, step: Any, count: Any, d: Any, target: Any) -> None:
    """The cells of `count` rows, one a lane; the other lanes are zero."""
    for r in range(count):
        row, lane = cells[start + r * step : start + r * step + d], target[r : d * ROWS]
        for k in range(d):
            lane[k * ROWS] = row[k]
    for r in range(count, ROWS):
        lane = target[r : d * ROWS]
        for k in range(d):
            lane[k * ROWS] = 0.0


@part
def _end_run(state: Any) -> None:
    for r in range(3 * ROWS):
        total, low = _two_sum(state[SUMS + r], state[RUNS + r])
        state[SUMS + r] = total
        state[LOWS + r] += low
        state[RUNS + r] = 0.0


def tops_loop(alone: bool) -> Any:
    """The largest cells of the rows."""

    @part
    def largest(xs: Any, ys: Any, d: Any, state: Any) -> None:
        for r in range(2 * ROWS):
            state[TOPS + r] = -np.inf
        for start in range(0, d * ROWS, ROWS):
            x, y = xs[start : start + ROWS], ys[start : start + ROWS]
            for r in range(ROWS):
                state[TOPS + r] = x[r] if x[r] > state[TOPS + r] else state[TOPS + r]
                if not alone:
                    state[TOPS + SECOND + r] = y[r] if y[r] > state[TOPS + SECOND + r] else state[TOPS + SECOND + r]

    return largest


def sums_loop(name: str) -> Any:
    """R of the rows, how many of the largest cells there are, and the sums of the cells where these need no more.

    Of the largest log-ratio the largest cells, in the place of what their sums lost, and what q has more than p in the
    place of the R of q.
    """
    alone, added, raised = name == "entropy", name == "cross_entropy", name == LARGEST

    @part
    def sums(xs: Any, ys: Any, d: Any, deep: Any, inverse: Any, state: Any) -> None:
        for start in range(0, d, RUN):
            for k in range(start, min(start + RUN, d)):
                x, y = xs[k * ROWS : (k + 1) * ROWS], ys[k * ROWS : (k + 1) * ROWS]
                for r in range(ROWS):
                    top_p, top_q = state[TOPS + r], state[TOPS + SECOND + r]
                    t, e, rest = below(x[r], top_p, deep, inverse)
                    state[RUNS + r] += rest
                    state[TIES + r] += 1.0 if x[r] == top_p else 0.0
                    if alone:
                        state[RUNS + THIRD + r] += own_surprise(t, e)
                    else:
                        _, mass, other = below(y[r], top_q, deep, inverse)
                        state[TIES + SECOND + r] += 1.0 if y[r] == top_q else 0.0
                        if added:
                            state[RUNS + THIRD + r] += surprise(x[r], y[r], e, top_p, top_q, deep, inverse)
                        if raised:
                            gap = fall_apart(x[r], y[r], top_p, top_q, inverse)
                            state[LOWS + THIRD + r] = max(state[LOWS + THIRD + r], gap)
                            other = gained(gap, e, mass)
                        state[RUNS + SECOND + r] += other
            _end_run(state)

    return sums


@part
def _js_sums(xs: Any, ys: Any, d: Any, deep: Any, inverse: Any, state: Any) -> None:
    """The sums of the cells of JS, which need those of the exponentials."""
    for r in range(ROWS):
        shift, half_p, half_q = between(state[TIES + r], state[TIES + SECOND + r])
        state[NUMBERS + r], state[NUMBERS + SECOND + r], state[NUMBERS + THIRD + r] = shift, half_p, half_q
    for start in range(0, d, RUN):
        for k in range(start, min(start + RUN, d)):
            x, y = xs[k * ROWS : (k + 1) * ROWS], ys[k * ROWS : (k + 1) * ROWS]
            for r in range(ROWS):
                top_p, top_q = state[TOPS + r], state[TOPS + SECOND + r]
                shift, half_p, half_q = state[NUMBERS + r], state[NUMBERS + SECOND + r], state[NUMBERS + THIRD + r]
                state[RUNS + THIRD + r] += js(x[r], y[r], top_p, top_q, deep, inverse, shift, half_p, half_q)
        _end_run(state)


def lanes_loop(name: str) -> Any:
    """Short rows side by side in `xs` and `ys`, from their largest cells to their values and whether these are right.

    All that is kept of the rows is in vectors.
    """
    alone, twice = name == "entropy", name == "js"
    vectors, finish = on_stack(16, types.float64), FINISH[name]
    largest, sums = tops_loop(alone), sums_loop(name)
    least = -np.inf if name == LARGEST else 0.0

    @helper
    def values(xs: Any, ys: Any, d: Any, inverse: Any, out: Any, right: Any) -> None:
        state, deep = vectors(), DEEP / inverse
        state[:] = 0.0
        state[LOWS + THIRD : LOWS + THIRD + ROWS] = least
        largest(xs, ys, d, state)
        sums(xs, ys, d, deep, inverse, state)
        for r in range(ROWS):
            rest = (state[SUMS + r] + state[LOWS + r]) + (state[TIES + r] - 1.0)
            more_ties = 0.0 if name == LARGEST else state[TIES + SECOND + r] - 1.0
            other = (state[SUMS + SECOND + r] + state[LOWS + SECOND + r]) + more_ties
            state[TIES + r], state[TIES + SECOND + r] = rest, rest if alone else other
        if twice:
            _js_sums(xs, ys, d, deep, inverse, state)
        for r in range(ROWS):
            whole = state[SUMS + THIRD + r] + state[LOWS + THIRD + r]
            top_p, top_q = state[TOPS + r], state[TOPS + r] if alone else state[TOPS + SECOND + r]
            out[r], fine = finish(state[TIES + r], state[TIES + SECOND + r], whole)
            right[r] = 1.0 if fine and is_usable(top_p, inverse) and is_usable(top_q, inverse) else 0.0

    return values


def rows(name: str) -> Callable[..., Any]:
    """Rows of fewer than `SHORT` cells."""
    alone, values = name == "entropy", lanes_loop(name)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any, out: Any, flag: Any, turn: Any,
        inverse: Any, work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        cells = SHORT * ROWS
        xs, ys = work[0:cells], work[0:cells] if alone else space[0:cells]
        found, right = work[cells : cells + ROWS], work[cells + ROWS : cells + 2 * ROWS]
        while True:
            begin, stop = take(turn, n, d)
            if begin == stop:
                break
            for first in range(begin, stop, ROWS):
                count = min(ROWS, stop - first)
                _across(p, a + first * ps, ps, count, d, xs)
                if not alone:
                    _across(q, b + first * qs, qs, count, d, ys)
                values(xs, ys, d, inverse, found, right)
                for r in range(count):
                    out[first + r] = found[r]
                    flag[first + r] = 0 if right[r] != 0.0 else turn[3]
        return flagged(turn, flag)

    return loop
