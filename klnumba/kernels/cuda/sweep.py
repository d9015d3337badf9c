"""One read of a row, each cell in the arithmetic of its dtype: three sums, wide."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from klnumba.formulas.elementary import sum_of_four
from klnumba.kernels.cuda.cells import COMPUTED, GROUP, reader
from klnumba.kernels.cuda.target import device, piece, two_sum
from klnumba.kernels.cuda.team import Team

_four = device(sum_of_four)


@functools.cache
def adder(wide: bool) -> Any:
    """What adds a number to a sum: a double-double of float64 numbers, or a float64 of float32 numbers."""

    @piece
    def add(hi: Any, lo: Any, x: Any) -> Any:
        if wide:
            s, e = two_sum(hi, x)
            return s, lo + e
        return hi + np.float64(x), lo

    return add


@functools.cache
def sweep(cell: Any, store: str, team: Team, grouped: bool, nothing: float, top: Any, normal: Any) -> Any:
    """The sums of a row over the team, as three double-doubles.

    `cell(x, y, c)` gives the three terms of a cell and a guard; the first sum is NaN where the least guard is below
    `normal`. `nothing` is what fills up the last group. `grouped` threads take `GROUP` adjacent cells at a time, whose
    terms are added in fours; else one.
    """
    read, width, group = reader(store), team.width, GROUP[store]
    kind = np.dtype(COMPUTED[store])
    none = kind.type(nothing)
    add, add_three = adder(kind == np.float64), team.add_three
    one_cell, wide_cells, narrow_cells, aligned = read.one, read.wide, read.narrow, read.aligned

    @piece
    def added(s: Any, f: Any, x: Any, y: Any) -> Any:
        a, ae = add(s[0], s[1], f)
        b, be = add(s[2], s[3], x)
        e, ee = add(s[4], s[5], y)
        return a, ae, b, be, e, ee

    @piece
    def four(s: Any, x0: Any, x1: Any, x2: Any, x3: Any, y0: Any, y1: Any, y2: Any, y3: Any, c: Any, guard: Any) -> Any:
        """The sums with four cells more."""
        f0, a0, b0, g0 = cell(x0, y0, c)
        f1, a1, b1, g1 = cell(x1, y1, c)
        f2, a2, b2, g2 = cell(x2, y2, c)
        f3, a3, b3, g3 = cell(x3, y3, c)
        s = added(s, _four(f0, f1, f2, f3), _four(a0, a1, a2, a3), _four(b0, b1, b2, b3))
        return s, min(guard, min(min(g0, g1), min(g2, g3)))

    @piece
    def took(s: Any, x: Any, y: Any, c: Any, guard: Any) -> Any:
        """The sums with a group more."""
        s, guard = four(s, x[0], x[1], x[2], x[3], y[0], y[1], y[2], y[3], c, guard)
        if group == 8:
            s, guard = four(s, x[4], x[5], x[6], x[7], y[4], y[5], y[6], y[7], c, guard)
        return s, guard

    @piece
    def single(p: Any, o: Any, q: Any, u: Any, d: Any, c: Any, lane: Any) -> Any:
        s = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        guard = top
        for k in range(lane, d, width):
            f, a, b, g = cell(one_cell(p, o + k), one_cell(q, u + k), c)
            s, guard = added(s, f, a, b), min(guard, g)
        return s, guard

    @piece
    def at_most(source: Any, at: Any, k: Any, count: Any) -> Any:
        """Cell k of the `count` that are left, or nothing."""
        return one_cell(source, at + k) if k < count else none

    @piece
    def groups(p: Any, o: Any, q: Any, u: Any, d: Any, c: Any, lane: Any) -> Any:
        s = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        guard = top
        whole = d // group * group
        if aligned(p, o) and aligned(q, u):
            for k in range(lane * group, whole, width * group):
                s, guard = took(s, wide_cells(p, o + k), wide_cells(q, u + k), c, guard)
        else:
            for k in range(lane * group, whole, width * group):
                s, guard = took(s, narrow_cells(p, o + k), narrow_cells(q, u + k), c, guard)
        # The last cells, fewer than a group, fall to the thread whose turn it is.
        if whole < d and whole // group % width == lane:
            for k in range(whole, d, 4):
                i, j, n = o + k, u + k, d - k
                s, guard = four(
                    s,
                    at_most(p, i, 0, n), at_most(p, i, 1, n), at_most(p, i, 2, n), at_most(p, i, 3, n),
                    at_most(q, j, 0, n), at_most(q, j, 1, n), at_most(q, j, 2, n), at_most(q, j, 3, n),
                    c, guard,
                )  # fmt: skip
        return s, guard

    walk = groups if grouped else single

    @piece
    def sums(p: Any, o: Any, q: Any, u: Any, d: Any, c: Any, lane: Any, room: Any) -> Any:
        s, guard = walk(p, o, q, u, d, c, lane)
        first = s[0] if guard >= normal else math.nan
        return add_three(first, s[1], s[2], s[3], s[4], s[5], room)

    return sums
