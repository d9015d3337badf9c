"""KL of normalised rows of probabilities in one read (see `kernels.fast`), each cell in the arithmetic of its dtype."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from klnumba.formulas.divergences import kl_cell, kl_cell_f32
from klnumba.formulas.elementary import sum_of_four
from klnumba.formulas.finish import kl_finish
from klnumba.kernels import fast
from klnumba.kernels.cuda.cells import COMPUTED, GROUP, reader
from klnumba.kernels.cuda.target import device, piece, two_sum
from klnumba.kernels.cuda.team import Team, value_of

_four = device(sum_of_four)
_finish = device(kl_finish)


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
def row_sums(store: str, team: Team, grouped: bool) -> Any:
    """One read of the cells `start` to `stop` of a row: (G, P, Q) of the team as double-doubles.

    G is NaN where `kl_cell` does not serve a cell. `grouped` threads take `GROUP` adjacent cells at a time; else one.
    """
    read, width, group = reader(store), team.width, GROUP[store]
    kind = np.dtype(COMPUTED[store])
    wide = kind == np.float64
    real, zero, one = kind.type, kind.type(0), kind.type(1)
    top, normal = fast.constants(kind)[:2]
    cell = device(kl_cell if wide else kl_cell_f32)
    add, add_three = adder(wide), team.add_three

    @piece
    def quad(x0: Any, x1: Any, x2: Any, x3: Any, y0: Any, y1: Any, y2: Any, y3: Any) -> Any:
        """The sums of four cells, and the least guard."""
        g0, c0 = cell(x0, y0, one)
        g1, c1 = cell(x1, y1, one)
        g2, c2 = cell(x2, y2, one)
        g3, c3 = cell(x3, y3, one)
        guard = min(min(c0, c1), min(c2, c3))
        return _four(g0, g1, g2, g3), _four(x0, x1, x2, x3), _four(y0, y1, y2, y3), guard

    @piece
    def added(s: Any, g: Any, x: Any, y: Any) -> Any:
        a, ae = add(s[0], s[1], g)
        b, be = add(s[2], s[3], x)
        c, ce = add(s[4], s[5], y)
        return a, ae, b, be, c, ce

    @piece
    def took(s: Any, x: Any, y: Any, guard: Any) -> Any:
        """The sums with one group more."""
        g, a, b, c = quad(x[0], x[1], x[2], x[3], y[0], y[1], y[2], y[3])
        s, guard = added(s, g, a, b), min(guard, c)
        if group == 8:
            g, a, b, c = quad(x[4], x[5], x[6], x[7], y[4], y[5], y[6], y[7])
            s, guard = added(s, g, a, b), min(guard, c)
        return s, guard

    one_cell, wide_cells, narrow_cells, aligned = read.one, read.wide, read.narrow, read.aligned

    @piece
    def single(p: Any, o: Any, q: Any, u: Any, d: Any, lane: Any) -> Any:
        s = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        guard = top
        for k in range(lane, d, width):
            x, y = one_cell(p, o + k), one_cell(q, u + k)
            g, c = cell(x, y, one)
            s, guard = added(s, g, x, y), min(guard, c)
        return s, guard

    @piece
    def at_most(source: Any, at: Any, k: Any, count: Any) -> Any:
        """Cell k of the `count` that are left, or nothing."""
        return one_cell(source, at + k) if k < count else zero

    @piece
    def groups(p: Any, o: Any, q: Any, u: Any, d: Any, lane: Any) -> Any:
        s = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        guard = top
        whole = d // group * group
        if aligned(p, o) and aligned(q, u):
            for k in range(lane * group, whole, width * group):
                s, guard = took(s, wide_cells(p, o + k), wide_cells(q, u + k), guard)
        else:
            for k in range(lane * group, whole, width * group):
                s, guard = took(s, narrow_cells(p, o + k), narrow_cells(q, u + k), guard)
        # The last cells, fewer than a group, fall to the thread whose turn it is.
        if whole < d and whole // group % width == lane:
            for k in range(whole, d, 4):
                i, j, n = o + k, u + k, d - k
                g, a, b, c = quad(
                    at_most(p, i, 0, n), at_most(p, i, 1, n), at_most(p, i, 2, n), at_most(p, i, 3, n),
                    at_most(q, j, 0, n), at_most(q, j, 1, n), at_most(q, j, 2, n), at_most(q, j, 3, n),
                )  # fmt: skip
                s, guard = added(s, g, a, b), min(guard, c)
        return s, guard

    sweep = groups if grouped else single

    @piece
    def sums(p: Any, o: Any, q: Any, u: Any, d: Any, lane: Any, room: Any) -> Any:
        s, guard = sweep(p, o, q, u, d, lane)
        mark = s[0] if guard >= normal else math.nan
        return add_three(mark, s[1], s[2], s[3], s[4], s[5], room)

    return sums


@functools.cache
def finished(store: str) -> Any:
    """KL from (G, P, Q), or -1 where that loses digits."""
    floor, large = fast.constants(np.dtype(COMPUTED[store]))[2:]

    @piece
    def value(a: Any, ae: Any, b: Any, be: Any, c: Any, ce: Any) -> Any:
        return _finish(value_of(a, ae), value_of(b, be), value_of(c, ce), floor, large)

    return value
