"""Rows of logits whose divergence takes little more than sums of exponentials, which a second read gives.


The first read gives the largest cells. JS, whose cells need the sums of the exponentials, takes a third.

A row whose largest cells, sums or value are out of range is flagged and left to `kernels.logs`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import from_dtype

from klnumba.formulas import log_sum_cells as formulas
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.lanes import LANES, on_stack
from klnumba.kernels.shares import flagged, take
from klnumba.kernels.tiles import STEP, TILE, add, copy, fill, vector_sum

# The cells, compiled.
below = scalar(formulas.below)
between = scalar(formulas.between)
fall_apart = scalar(formulas.fall_apart)
gained = scalar(formulas.gained)
is_usable = scalar(formulas.is_usable)
js = scalar(formulas.js)
own_surprise = scalar(formulas.own_surprise)
surprise = scalar(formulas.surprise)

LARGEST = "max_log_ratio"  # of what the cells are not added up
FINISH = {
    "entropy": scalar(formulas.finished),
    "cross_entropy": scalar(formulas.finished),
    "js": scalar(formulas.js_finished),
    LARGEST: scalar(formulas.ratio_finished),
}


def largest_of(dtype: Any) -> Any:
    """The largest of at least two vectors of cells; NaN cells are passed over."""
    width, half, quarter = 2 * LANES, LANES, LANES // 2
    vectors = on_stack(2, from_dtype(dtype))

    @helper
    def top_of(cells: Any, start: Any, d: Any) -> Any:
        tops = vectors()
        tops[:] = -np.inf
        for first in range(0, d, width):
            at = start + min(first, d - width)  # the last ones may be among those before
            x = cells[at : at + width]
            for k in range(width):
                tops[k] = x[k] if x[k] > tops[k] else tops[k]
        for k in range(half):
            tops[k] = max(tops[k], tops[half + k])
        for k in range(quarter):
            tops[k] = max(tops[k], tops[quarter + k])
        top = tops[0]
        for k in range(1, quarter):
            top = max(top, tops[k])
        return np.float64(top)

    return top_of


@helper
def _placed(cells: Any, start: Any, count: Any, work: Any, at: Any) -> Any:
    """Copy cells, filled up with zeros' logarithms; how many there are then."""
    whole = (count + STEP - 1) // STEP * STEP
    copy(cells, start, count, work, at)
    fill(work, at + count, whole - count, -np.inf)
    return whole


@helper
def tile_of(p: Any, o: Any, q: Any, u: Any, count: Any, alone: Any, work: Any, view: Any) -> Any:
    """The cells from o and u on: in `work`, where they are few."""
    if count % STEP == 0:
        return p[o : o + count], q[u : u + count]
    whole = _placed(p, o, count, work, 0)
    if alone:
        return view[0:whole], view[0:whole]
    _placed(q, u, count, work, TILE)
    return view[0:whole], view[TILE : TILE + whole]


@part
def _own_sums(x: Any, y: Any, top_p: Any, top_q: Any, deep: Any, inverse: Any, space: Any) -> Any:
    """Add R and the cells of a tile of a row and itself to the first numbers; how many of the largest there are."""
    rests, cells = space[TILE : TILE + x.size], space[3 * TILE : 3 * TILE + x.size]
    ties = 0
    for k in range(x.size):
        u = np.float64(x[k])
        t, e, rests[k] = below(u, top_p, deep, inverse)
        cells[k] = own_surprise(t, e)
        ties += u == top_p
    add(space, 0, vector_sum(rests))
    add(space, 4, vector_sum(cells))
    return ties, 0


def sums_of_two(name: str) -> Any:
    """The same of two rows, of both of which there is an R; of JS no cells.

    Of the largest log-ratio the largest cell, and in the place of the R of q what q has more than p.
    """
    added, raised, top_of = name == "cross_entropy", name == LARGEST, largest_of(np.dtype(np.float64))

    @part
    def sums(x: Any, y: Any, top_p: Any, top_q: Any, deep: Any, inverse: Any, space: Any) -> Any:
        rests, others = space[TILE : TILE + x.size], space[2 * TILE : 2 * TILE + x.size]
        cells = space[3 * TILE : 3 * TILE + x.size]
        ties = other_ties = 0
        for k in range(x.size):
            u, v = np.float64(x[k]), np.float64(y[k])
            _, e, rests[k] = below(u, top_p, deep, inverse)
            _, other, others[k] = below(v, top_q, deep, inverse)
            if added:
                cells[k] = surprise(u, v, e, top_p, top_q, deep, inverse)
            if raised:
                cells[k] = fall_apart(u, v, top_p, top_q, inverse)
                others[k] = gained(cells[k], e, other)
            ties += u == top_p
            other_ties += v == top_q
        add(space, 0, vector_sum(rests))
        add(space, 2, vector_sum(others))
        if added:
            add(space, 4, vector_sum(cells))
        if raised:
            space[4] = max(space[4], top_of(cells, 0, cells.size))
        return ties, other_ties

    return sums


@part
def _js_sum(
    x: Any, y: Any, top_p: Any, top_q: Any, deep: Any, inverse: Any, shift: Any, half_p: Any, half_q: Any, space: Any
) -> None:  # fmt: skip
    """Add the cells of JS of a tile."""
    cells = space[3 * TILE : 3 * TILE + x.size]
    for k in range(x.size):
        u, v = np.float64(x[k]), np.float64(y[k])
        cells[k] = js(u, v, top_p, top_q, deep, inverse, shift, half_p, half_q)
    add(space, 4, vector_sum(cells))


def rows(name: str, dtype: Any) -> Callable[..., Any]:
    """Rows of at least `log_sums_short.SHORT` cells; of the entropy, of p."""
    alone, twice, top_of = name == "entropy", name == "js", largest_of(dtype)
    sums, finish = _own_sums if alone else sums_of_two(name), FINISH[name]
    least = -math.inf if name == LARGEST else 0.0

    @part
    def row(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, work: Any, view: Any, space: Any) -> Any:
        top_p, deep = top_of(p, o, d), formulas.DEEP / inverse
        top_q = top_p if alone else top_of(q, u, d)
        if not (is_usable(top_p, inverse) and is_usable(top_q, inverse)):
            return math.nan, False
        space[0:6] = 0.0
        space[4] = least
        ties = other_ties = 0
        for start in range(0, d, TILE):
            x, y = tile_of(p, o + start, q, u + start, min(TILE, d - start), alone, work, view)
            more, others = sums(x, y, top_p, top_q, deep, inverse, space)
            ties, other_ties = ties + more, other_ties + others
        rest = other = (space[0] + space[1]) + (ties - 1)
        if not alone:
            other = (space[2] + space[3]) + (0 if name == LARGEST else other_ties - 1)
        if not twice:
            return finish(rest, other, space[4] + space[5])
        shift, half_p, half_q = between(rest, other)
        for start in range(0, d, TILE):
            x, y = tile_of(p, o + start, q, u + start, min(TILE, d - start), alone, work, view)
            _js_sum(x, y, top_p, top_q, deep, inverse, shift, half_p, half_q, space)
        return finish(rest, other, space[4] + space[5])

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any, out: Any, flag: Any, turn: Any,
        inverse: Any, work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        while True:
            first, stop = take(turn, n, d)
            if first == stop:
                break
            for r in range(first, stop):
                out[r], right = row(p, a + r * ps, q, b + r * qs, d, inverse, work, view, space)
                flag[r] = 0 if right else turn[3]
        return flagged(turn, flag)

    return loop
