"""Second derivatives of a divergence by the cells of rows of probabilities, and of single cells, times a direction.

As in `kernels.slopes` the rows are brought to a common mass. What their cells are is then kept for a row at a time:
the shares, the first derivatives and the moves, from which follow the means that normalising subtracts, and those by
which these change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.divergences import LEAST, common_mass, log_ratio, multipliers, on_common_mass
from klnumba.formulas.hessians import Bend, relative, turned
from klnumba.formulas.slopes import Slope, times
from klnumba.kernels.compiler import frozen, helper, part, scalar
from klnumba.kernels.exact import SCALES, SIZE, masses
from klnumba.kernels.slopes import is_sound, mean_of, unknown, write
from klnumba.kernels.tiles import BUFFER, TILE, TREE, add, copy, pad, total

KEPT = 8  # numbers of each cell of a row: p, q, u, v, the moves of both shares and these over the shares
MORE = 64  # places behind a row, which its last tile is filled up to

_on_common_mass, _multipliers, _common_mass = scalar(on_common_mass), scalar(multipliers), scalar(common_mass)
_log_ratio, _times, _relative, _turned = scalar(log_ratio), scalar(times), scalar(relative), scalar(turned)


@part
def summed(cells: Any, weights: Any, work: Any, view: Any, tree: Any, state: Any) -> None:
    """state[0] + state[1] = the sum of weights times cells, which a weight of 0 leaves out."""
    state[0], state[1] = 0.0, 0.0
    for first in range(0, cells.size, TILE):
        count = min(TILE, cells.size - first)
        xs, ws = cells[first : first + count], weights[first : first + count]
        products = work[2 * BUFFER : 2 * BUFFER + count]
        for k in range(count):
            products[k] = _times(ws[k], xs[k])
        add(state, np.int64(0), total(view, np.int64(2 * BUFFER), count, tree))


@helper
def centre(cells: Any, weights: Any, mass: Any, work: Any, view: Any, tree: Any, state: Any) -> None:
    """Take from cells their mean, of weights that add up to `mass`; NaN where that is infinite."""
    summed(cells, weights, work, view, tree, state)
    mean = mean_of(state[0], state[1]) / mass
    for k in range(cells.size):
        cells[k] -= mean


@helper
def total_of(cells: Any, work: Any, view: Any, tree: Any, state: Any) -> Any:
    """The sum of cells, which may be infinite."""
    state[0], state[1] = 0.0, 0.0
    for first in range(0, cells.size, TILE):
        count = min(TILE, cells.size - first)
        copy(frozen(cells), first, count, work, np.int64(2 * BUFFER))
        add(state, np.int64(0), total(view, np.int64(2 * BUFFER), count, tree))
    return state[0] + state[1] if abs(state[0]) < math.inf else state[0]


def slopes_of(slope: Slope, normalize: bool) -> Any:
    formula = scalar(slope.normalised if normalize else slope.plain)

    @part
    def slopes(xs: Any, ys: Any, c: Any, weight: Any, ps: Any, qs: Any, us: Any, vs: Any) -> None:
        """The cells of a tile on their common mass, and the first derivatives by shares, without their means."""
        fp, fq, h, he, p_mass, p_rest, q_mass, q_rest = c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
        u, ue, v, ve = _multipliers(h, he, p_mass, q_mass)
        whole = _common_mass(p_mass, q_mass)
        for k in range(xs.size):
            x = xs[k] * fp
            y = ys[k] * fq
            x = LEAST if x == 0.0 and xs[k] > 0.0 else x  # the scale must not make a zero
            y = LEAST if y == 0.0 and ys[k] > 0.0 else y
            pk, qk, gap, _, above_p, above_q = _on_common_mass(x, y, u, ue, v, ve, p_mass, p_rest, q_mass, q_rest)
            sp, sq = _log_ratio(whole, pk, above_p), _log_ratio(whole, qk, above_q)
            us[k], _, vs[k], _ = formula(
                pk, qk, gap, _log_ratio(pk, qk, gap), sp, sq, gap / pk, -gap / qk, pk / qk, weight
            )
            ps[k], qs[k] = pk, qk

    return slopes


@helper
def moves_of(xs: Any, moves: Any, others: Any, one: Any, shares: Any, parts: Any) -> None:
    """By how much of the mass the cells of a tile move, and by which part of themselves; `one` is one over the sum."""
    for k in range(moves.size):
        move = 0.0 if xs[k] == 0.0 and others[k] == 0.0 else moves[k]
        shares[k] = move * one
        parts[k] = _relative(move, xs[k])


def bends_of(bend: Bend, normalize: bool) -> Any:
    formula = scalar(bend.normalised if normalize else bend.plain)

    @part
    def bends(
        ps: Any, qs: Any, us: Any, vs: Any, shares_p: Any, shares_q: Any, parts_p: Any, parts_q: Any, mass: Any,
        whole_p: Any, whole_q: Any, weight: Any,
    ) -> None:  # fmt: skip
        """Put into the places of u and v the tangents of the derivatives, but for what the means change by.

        What each cell adds to that goes into the places of the moves; whole_p and whole_q are the moves of the sums.
        """
        for k in range(ps.size):
            p, q = ps[k] / mass, qs[k] / mass
            move_p, move_q = shares_p[k] - p * whole_p, shares_q[k] - q * whole_q
            part_p, part_q = parts_p[k] - whole_p, parts_q[k] - whole_q
            apart = (parts_p[k] - parts_q[k]) - (whole_p - whole_q)
            p_apart = p * apart if p > 0.0 else move_p
            q_apart = q * apart if q > 0.0 else -move_q
            rise_p = -_turned(qs[k], ps[k], part_q - parts_p[k], move_q, mass)
            rise_q = -_turned(ps[k], qs[k], part_p - parts_q[k], move_p, mass)
            du, a, dv, b = formula(
                p, q, apart, p_apart, q_apart, part_p, part_q, rise_p - whole_p, rise_q - whole_q, -rise_q, weight
            )
            none = ps[k] == 0.0 and qs[k] == 0.0
            shares_p[k] = 0.0 if none else _times(move_p, us[k]) + _times(p, du)
            shares_q[k] = 0.0 if none else _times(move_q, vs[k]) + _times(q, dv)
            us[k] = 0.0 if none else (du if abs(du) == math.inf else (du + a) - _times(whole_p, us[k]))
            vs[k] = 0.0 if none else (dv if abs(dv) == math.inf else (dv + b) - _times(whole_q, vs[k]))

    return bends


@helper
def less(cells: Any, ps: Any, qs: Any, mean: Any) -> None:
    """Take what the mean changes by from cells that are a part of the row; an infinite one stays."""
    for k in range(cells.size):
        kept = abs(cells[k]) == math.inf or (ps[k] == 0.0 and qs[k] == 0.0)
        cells[k] = cells[k] if kept else cells[k] - mean


def rows(slope: Slope, bend: Bend, normalize: bool) -> Callable[..., None]:
    """The second derivatives of whole rows times a direction, each times its factor.

    The directions by p and by q are rows as those that are written, or for all rows one, with a step of 0.
    """
    slopes, bends = slopes_of(slope, normalize), bends_of(bend, normalize)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any, factors: Any, weight: Any, dp: Any,
        dps: Any, dq: Any, dqs: Any, by_p: Any, by_q: Any, out_p: Any, out_q: Any, room: Any, work: Any, view: Any,
        space: Any,
    ) -> None:  # fmt: skip
        state = space[0:SIZE]
        c = space[8 : 8 + SCALES]
        tree = space[16 : 16 + TREE]
        for r in index:
            masses(p, a + r * ps, q, b + r * qs, d, normalize, state, c, work, view, tree)
            if not is_sound(state, normalize):
                unknown(r * d, d, factors[r], by_p, by_q, out_p, out_q)
                continue
            mass = _common_mass(c[4], c[6])
            one_p, one_q = c[0] / c[4], c[1] / c[6]
            whole = 0
            for first in range(0, d, TILE):
                size = min(TILE, d - first)
                pad(q, b + r * qs + first, size, work, np.int64(BUFFER), 0.0)
                padded = pad(p, a + r * ps + first, size, work, np.int64(0), 0.0)
                whole = first + padded
                xs, ys = view[0:padded], view[BUFFER : BUFFER + padded]
                slopes(
                    xs, ys, c, weight, room[0, first:whole], room[1, first:whole], room[2, first:whole],
                    room[3, first:whole],
                )  # fmt: skip
                pad(dp, r * dps + first, size, work, np.int64(2 * BUFFER), 0.0)
                pad(dq, r * dqs + first, size, work, np.int64(3 * BUFFER), 0.0)
                moves, others = view[2 * BUFFER : 2 * BUFFER + padded], view[3 * BUFFER : 3 * BUFFER + padded]
                moves_of(xs, moves, ys, one_p, room[4, first:whole], room[6, first:whole])
                moves_of(ys, others, xs, one_q, room[5, first:whole], room[7, first:whole])
            cells_p, cells_q, us, vs = room[0, 0:whole], room[1, 0:whole], room[2, 0:whole], room[3, 0:whole]
            whole_p, whole_q = 0.0, 0.0
            if normalize:
                whole_p = total_of(room[4, 0:whole], work, view, tree, state)
                whole_q = total_of(room[5, 0:whole], work, view, tree, state)
                centre(us, cells_p, mass, work, view, tree, state)
                centre(vs, cells_q, mass, work, view, tree, state)
            bends(
                cells_p, cells_q, us, vs, room[4, 0:whole], room[5, 0:whole], room[6, 0:whole], room[7, 0:whole],
                mass, whole_p, whole_q, weight,
            )  # fmt: skip
            if normalize:
                less(us, cells_p, cells_q, total_of(room[4, 0:whole], work, view, tree, state))
                less(vs, cells_p, cells_q, total_of(room[5, 0:whole], work, view, tree, state))
            if by_p:
                write(frozen(us), 0, d, factors[r] * one_p, out_p, r * d)
            if by_q:
                write(frozen(vs), 0, d, factors[r] * one_q, out_q, r * d)

    return loop


def cells(formula: Callable[..., Any]) -> Callable[..., None]:
    """The second derivatives of a formula of two numbers by both times a direction, each times its factor."""
    formula = scalar(formula)

    def loop(x: Any, y: Any, dx: Any, dy: Any, factors: Any, out_x: Any, out_y: Any) -> None:
        for k in range(x.size):
            u, v = formula(x[k], y[k], dx[k], dy[k])
            g = factors[k]
            out_x[k] = 0.0 if g == 0.0 else u * g
            out_y[k] = 0.0 if g == 0.0 else v * g

    return loop
