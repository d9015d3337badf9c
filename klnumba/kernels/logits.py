"""KL of rows of logits: the exponentials and their sums, then the cells.

Float32 rows of many cells are computed in float32 arithmetic and added up in
float64. There the few cells that hold most of a sum are looked up and put in
anew from float64, so that only errors of many small cells are left, which level
out unless the cells are alike. Shorter rows, where that would not pay, are computed in float64.

A row whose KL is so small that more digits are wanted, whose logits are far
from zero, or that holds a zero of q where p has none, is flagged and left to
`kernels.logs`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.elementary import exp, log, two_sum
from klnumba.formulas.logit_cells import LOGIT_CELLS
from klnumba.kernels.compiler import helper, part, prefetch, scalar
from klnumba.kernels.fast import AHEAD, sums
from klnumba.kernels.tiles import BUFFER, SCRATCH, STEP, TILE, fill, pad, side_by_side, total, vector_sum

# KL below which the error of the ratio of the sums, t (about 2**-22 and 2**-50), shows as t*t/2.
LEAST = {"float64": 2.0**-44, "float32": 2.0**-18}
# The sums that a row may have: no exponential is near overflow, and those that are zero would add nothing.
SMALLEST, LARGEST = 2.0**-40, 2.0**80

MANY = 512  # cells of a float32 row from which on it is computed in float32
HEAVY = 1.0 / 16.0  # the share of a sum from which on a term counts as large: there are 16 at most
GROUP = 256  # cells of several short rows
NEARLY = 1.0 - 2.0**-20  # the share of a sum that is left at least when it is rounded to float32
PLACE = GROUP + STEP  # a buffer: x, y, p, q, two numbers of the row of each cell, and the cells
assert 7 * PLACE <= SCRATCH

_two_sum = scalar(two_sum)
_exp = scalar(exp)
_log = scalar(log)
_powers, _kl = map(scalar, LOGIT_CELLS["float64"])


def exponentials_loop(dtype: Any, kind: Any) -> Any:
    """The first read: P and Q; the exponentials themselves go into store[0] and store[1].

    The sums of tiles of store[0], and of store[2] later, stand behind the cells.
    """
    real, none, added = kind.type, dtype.type(-math.inf), added_as(kind)
    powers = scalar(LOGIT_CELLS[kind.name][0])
    line, ahead = 64 // dtype.itemsize, AHEAD // dtype.itemsize

    @part
    def tile(x: Any, y: Any, inverse: Any, ps: Any, qs: Any) -> None:
        for k in range(x.size):
            ps[k], qs[k] = powers(real(x[k]), real(y[k]), inverse)

    @part
    def exponentials(
        p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, store: Any, work: Any, view: Any, tree: Any
    ) -> Any:
        mass = other = low = rest = 0.0
        for start in range(0, d, TILE):
            count = min(TILE, d - start)
            for k in range(0, count, line):
                prefetch(p, o + start + k + ahead)
                prefetch(q, u + start + k + ahead)
            x, i, y, j = p, o + start, q, u + start
            if count % STEP:
                pad(q, j, count, work, BUFFER, none)
                count = pad(p, i, count, work, 0, none)
                x, i, y, j = view, np.int64(0), view, np.int64(BUFFER)
            ep, eq = store[0, start : start + count], store[1, start : start + count]
            tile(x[i : i + count], y[j : j + count], inverse, ep, eq)
            more = added(ep, tree)
            store[0, d + STEP + start // TILE] = more
            mass, e = _two_sum(mass, more)
            low += e
            other, e = _two_sum(other, added(eq, tree))
            rest += e
        return mass + low, other + rest

    return exponentials


def cells_loop(dtype: Any, kind: Any) -> Any:
    """The second read: the sum of the cells, which themselves go into store[2].

    Memory would be idle, since the row is at hand: the row at `after` and `then`, which comes next, is asked for.
    """
    real, none, added = kind.type, dtype.type(-math.inf), added_as(kind)
    kl = scalar(LOGIT_CELLS[kind.name][1])
    line = 64 // dtype.itemsize

    @part
    def tile(x: Any, y: Any, ps: Any, qs: Any, inverse: Any, shift: Any, rest: Any, ratio: Any, out: Any) -> None:
        for k in range(x.size):
            out[k] = kl(real(x[k]), real(y[k]), ps[k], qs[k], inverse, shift, rest, ratio)

    @part
    def cells(
        p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, shift: Any, store: Any, work: Any, view: Any, tree: Any,
        after: Any, then: Any,
    ) -> Any:  # fmt: skip
        whole = real(shift)
        rest = real(shift - np.float64(whole))
        ratio = real(_exp(shift))  # not P/Q: the two agree to the last digit, where the shift is rounded
        total_, low = 0.0, 0.0
        for start in range(0, d, TILE):
            count = min(TILE, d - start)
            for k in range(0, count, line):
                prefetch(p, after + start + k)
                prefetch(q, then + start + k)
            x, i, y, j = p, o + start, q, u + start
            if count % STEP:
                pad(q, j, count, work, BUFFER, none)
                count = pad(p, i, count, work, 0, none)
                x, i, y, j = view, np.int64(0), view, np.int64(BUFFER)
            here = slice(start, start + count)
            ep, eq, g = store[0, here], store[1, here], store[2, here]
            tile(x[i : i + count], y[j : j + count], ep, eq, inverse, whole, rest, ratio, g)
            more = added(g, tree)
            store[2, d + STEP + start // TILE] = more
            total_, e = _two_sum(total_, more)
            low += e
        return total_ + low if total_ < math.inf else total_

    return cells


@functools.cache
def added_as(kind: Any) -> Any:
    """The sum of a tile: of float64 terms in fours first, of float32 terms in float64 at once."""
    if kind == np.float64:

        @helper
        def added(terms: Any, tree: Any) -> Any:
            return total(terms, 0, terms.size, tree)
    else:

        @helper
        def added(terms: Any, tree: Any) -> Any:
            return vector_sum(terms)

    return added


@helper
def sharpened(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, shift: Any, store: Any, i: Any, sum_: Any) -> Any:
    """The sum of store[i], the exponentials of p or the cells, its largest terms replaced by those of float64."""
    cut = sum_ * HEAVY
    ratio = _exp(shift)
    tiles = store[i, d + STEP :]
    for start in range(0, d, TILE):
        if tiles[start // TILE] >= cut * NEARLY:
            for first in range(start, min(start + TILE, d), STEP):
                terms = store[i, first : first + STEP]
                heavy = 0
                for k in range(STEP):
                    heavy += terms[k] >= cut
                if heavy:
                    for k in range(min(STEP, d - first)):
                        if terms[k] >= cut:
                            x, y = np.float64(p[o + first + k]), np.float64(q[u + first + k])
                            ep, eq = _powers(x, y, inverse)
                            term = ep if i == 0 else _kl(x, y, ep, eq, inverse, shift, 0.0, ratio)
                            sum_ += term - np.float64(terms[k])
    return sum_


def room(d: int) -> tuple[int, int]:
    """The shape of what a row of `d` cells is computed in."""
    return 3, d + STEP + -(-d // TILE)


def rows(dtype: Any, kind: Any) -> Callable[..., None]:
    """Rows of at least `fast.SHORT` cells of `dtype`, computed as `kind`."""
    real, wide, least = kind.type, kind == np.float64, LEAST[kind.name]
    exponentials, cells = exponentials_loop(dtype, kind), cells_loop(dtype, kind)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any, inverse: Any, store: Any,
        out: Any, flag: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        for r in range(n):
            o, u = a + r * ps, b + r * qs
            flag[r] = 1
            mass, other = exponentials(p, o, q, u, d, real(inverse), store, work, view, space)
            if not (SMALLEST < mass < LARGEST and SMALLEST < other < LARGEST):
                continue
            shift = _log(mass / other)
            value = cells(p, o, q, u, d, real(inverse), shift, store, work, view, space, o + ps, u + qs)
            if not wide and 0.0 < value < math.inf:
                value = sharpened(p, o, q, u, d, inverse, shift, store, 2, value)
                mass = sharpened(p, o, q, u, d, inverse, shift, store, 0, mass)
            value /= mass
            out[r] = value
            # In float32 the square of a small delta is zero.
            flag[r] = not (least <= value < math.inf or (wide and value == 0.0 and mass == other))

    return loop


def short_rows() -> Callable[..., None]:
    """Rows of fewer than `fast.SHORT` cells, many at a time, in float64."""
    least = LEAST["float64"]
    powers, kl = _powers, _kl

    @part
    def first(view: Any, count: Any, inverse: Any, ps: Any, qs: Any) -> None:
        x, y = view[0:count], view[PLACE : PLACE + count]
        for k in range(count):
            ps[k], qs[k] = powers(x[k], y[k], inverse)

    @part
    def second(view: Any, count: Any, inverse: Any, out: Any) -> None:
        x, y = view[0:count], view[PLACE : PLACE + count]
        ps, qs = view[2 * PLACE : 2 * PLACE + count], view[3 * PLACE : 3 * PLACE + count]
        shift, ratio = view[4 * PLACE : 4 * PLACE + count], view[5 * PLACE : 5 * PLACE + count]
        for k in range(count):
            out[k] = kl(x[k], y[k], ps[k], qs[k], inverse, shift[k], 0.0, ratio[k])

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any, inverse: Any,
        out: Any, flag: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        most = GROUP // d
        gs, xs, ys = space[0:TILE], space[TILE : 2 * TILE], space[2 * TILE : 3 * TILE]
        for start in range(0, n, most):
            count = min(most, n - start)
            cells = count * d
            whole = (cells + STEP - 1) // STEP * STEP
            side_by_side(p, a + start * ps, ps, count, d, work, 0)
            side_by_side(q, b + start * qs, qs, count, d, work, PLACE)
            for i in range(6):
                fill(work, i * PLACE + cells, whole - cells, 0.0)
            first(view, whole, inverse, work[2 * PLACE : 2 * PLACE + whole], work[3 * PLACE : 3 * PLACE + whole])
            sums(view, 2 * PLACE, count, d, xs)
            sums(view, 3 * PLACE, count, d, ys)
            for r in range(count):
                gs[r] = _log(xs[r] / ys[r])
            shifts, ratios = work[4 * PLACE : 4 * PLACE + cells], work[5 * PLACE : 5 * PLACE + cells]
            for r in range(count):
                shift, ratio = gs[r], _exp(gs[r])
                for k in range(r * d, r * d + d):
                    shifts[k] = shift
                    ratios[k] = ratio
            second(view, whole, inverse, work[6 * PLACE : 6 * PLACE + whole])
            sums(view, 6 * PLACE, count, d, gs)
            for r in range(count):
                value = gs[r] / xs[r]
                usable = SMALLEST < xs[r] < LARGEST and SMALLEST < ys[r] < LARGEST
                sound = least <= value < math.inf or (value == 0.0 and xs[r] == ys[r])
                out[start + r] = value
                flag[start + r] = not (usable and sound)

    return loop
