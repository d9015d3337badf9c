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

from klnumba.formulas.divergences import common_mass, log_ratio, multipliers, on_common_mass, scaled
from klnumba.formulas.hessians import Bend, relative, turned
from klnumba.formulas.slopes import Slope, times
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.exact import SCALES, SIZE, masses
from klnumba.kernels.instructions import frozen
from klnumba.kernels.slopes import is_sound, mean_of, unknown, write
from klnumba.kernels.tiles import BUFFER, SPARE, TILE, add, copy, pad, total

# Numbers of each cell of a row: p, q, u, v, the moves of both shares, these over the shares, and p - q.
KEPT = 9
FEW = 2.0**-930  # shares below it lose digits, or are no more than zero
MORE = 64  # places behind a row, which its last tile is filled up to

_on_common_mass, _multipliers, _common_mass = scalar(on_common_mass), scalar(multipliers), scalar(common_mass)
_scaled = scalar(scaled)
_log_ratio, _times, _relative, _turned = scalar(log_ratio), scalar(times), scalar(relative), scalar(turned)


@part
def summed(cells: Any, weights: Any, work: Any, view: Any, state: Any) -> None:
    """state[0] + state[1] = the sum of weights times cells, which a weight of 0 leaves out."""
    state[0], state[1] = 0.0, 0.0
    for first in range(0, cells.size, TILE):
        count = min(TILE, cells.size - first)
        xs, ws = cells[first : first + count], weights[first : first + count]
        products = work[2 * BUFFER : 2 * BUFFER + count]
        for k in range(count):
            products[k] = _times(ws[k], xs[k])
        add(state, np.int64(0), total(view, np.int64(2 * BUFFER), count))


@helper
def centre(cells: Any, weights: Any, mass: Any, work: Any, view: Any, state: Any) -> None:
    """Take from cells their mean, of weights that add up to `mass`; NaN where that is infinite."""
    summed(cells, weights, work, view, state)
    mean = mean_of(state[0], state[1]) / mass
    for k in range(cells.size):
        cells[k] -= mean


@helper
def total_of(cells: Any, work: Any, view: Any, state: Any) -> Any:
    """The sum of cells, which may be infinite."""
    state[0], state[1] = 0.0, 0.0
    for first in range(0, cells.size, TILE):
        count = min(TILE, cells.size - first)
        copy(frozen(cells), first, count, work, np.int64(2 * BUFFER))
        add(state, np.int64(0), total(view, np.int64(2 * BUFFER), count))
    return state[0] + state[1] if abs(state[0]) < math.inf else state[0]


def slopes_of(slope: Slope, normalize: bool) -> Any:
    formula = scalar(slope.normalised if normalize else slope.plain)

    @part
    def slopes(xs: Any, ys: Any, c: Any, weight: Any, ps: Any, qs: Any, us: Any, vs: Any, gaps: Any) -> None:
        """The cells of a tile on their common mass, and the first derivatives by shares, without their means."""
        fp, fq, h, he, p_mass, p_rest, q_mass, q_rest = c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
        u, ue, v, ve = _multipliers(h, he, p_mass, q_mass)
        whole = _common_mass(p_mass, q_mass)
        for k in range(xs.size):
            x, y = _scaled(xs[k], fp), _scaled(ys[k], fq)
            pk, qk, gap, _, above_p, above_q = _on_common_mass(x, y, u, ue, v, ve, p_mass, p_rest, q_mass, q_rest)
            sp, sq = _log_ratio(whole, pk, above_p), _log_ratio(whole, qk, above_q)
            delta = _log_ratio(pk, qk, gap)
            us[k], _, vs[k], _ = formula(
                pk, qk, delta, delta, sp, sq, gap / pk, -gap / qk, pk / qk, 1.0, gap, 1.0, -gap, weight
            )
            ps[k], qs[k], gaps[k] = pk, qk, gap

    return slopes


@helper
def moves_of(xs: Any, moves: Any, others: Any, one: Any, scale: Any, shares: Any, parts: Any) -> None:
    """By how much of the mass the cells of a tile move, and by which part of themselves.

    `one` is one over the sum of the cells times `scale`.
    """
    for k in range(moves.size):
        move = 0.0 if xs[k] == 0.0 and others[k] == 0.0 else moves[k]
        shares[k] = move * one * scale
        parts[k] = _relative(move, xs[k])


@helper
def settle(moves: Any, cells: Any, mass: Any, work: Any, view: Any, state: Any) -> Any:
    """Make of moves of cells, as parts of the sum, those of their shares; by how much the sum moves is returned.

    That of a cell that is nearly all of its row is what the others leave: so what is left of the sum is taken too.
    """
    whole = rest = total_of(moves, work, view, state)
    for _ in range(3):
        for k in range(moves.size):
            moves[k] -= cells[k] / mass * rest
        rest = total_of(moves, work, view, state)
    return whole


@part
def change_of(move: Any, share: Any, part: Any, whole: Any) -> Any:
    """By which part of itself a share moves, from its move or, for a small one, from that of the cell."""
    return move / share if share > 0.5 else part - whole


@part
def risen(
    gap: Any, p: Any, q: Any, share: Any, apart: Any, part: Any, part_q: Any, move_q: Any, whole: Any, mass: Any
) -> Any:
    """The tangent of (1 - q/p) over the sum of p, times that sum, and of it the part that is q/p's.

    A small share may be a small part of q, a large one may be nearly equal to it.
    """
    if share > 0.5:
        turn = _turned(q, p, -apart, move_q, mass)
        return -turn - whole * (gap / p), turn
    turn = _turned(q, p, part_q - part, move_q, mass)
    return -turn - whole, turn


@part
def over_mass(cell: Any, share: Any, change: Any, mass: Any) -> Any:
    """change*cell/mass, where `share`, a cell over its sum, has lost digits too."""
    return _times(cell, change) / mass if share < FEW else share * change


@part
def tangent(slope: Any, du: Any, a: Any, whole: Any) -> Any:
    """The tangent of a derivative, u + a less its mean, over a sum that moves; where there is none, none."""
    value = du if abs(du) == math.inf else (du + a) - _times(whole, slope)
    return value if slope == slope else math.nan


def bends_of(bend: Bend, normalize: bool) -> Any:
    formula = scalar(bend.normalised if normalize else bend.plain)

    @part
    def bends(
        ps: Any, qs: Any, us: Any, vs: Any, moves_p: Any, moves_q: Any, parts_p: Any, parts_q: Any, gaps: Any,
        mass: Any, whole_p: Any, whole_q: Any, weight: Any,
    ) -> None:  # fmt: skip
        """Put into the places of u and v the tangents of the derivatives, but for what the means change by.

        What each cell adds to that goes into the places of the moves; whole_p and whole_q are the moves of the sums.
        """
        for k in range(ps.size):
            p, q, move_p, move_q = ps[k] / mass, qs[k] / mass, moves_p[k], moves_q[k]
            part_p, part_q = change_of(move_p, p, parts_p[k], whole_p), change_of(move_q, q, parts_q[k], whole_q)
            apart = part_p - part_q
            x, y, one = (ps[k], qs[k], mass) if p < FEW and q < FEW else (p, q, 1.0)
            p_apart = over_mass(ps[k], p, apart, mass / one) if ps[k] > 0.0 else move_p * one
            q_apart = over_mass(qs[k], q, apart, mass / one) if qs[k] > 0.0 else -move_q * one
            rise_p, _ = risen(gaps[k], ps[k], qs[k], p, apart, parts_p[k], part_q, move_q, whole_p, mass)
            rise_q, share = risen(-gaps[k], qs[k], ps[k], q, -apart, parts_q[k], part_p, move_p, whole_q, mass)
            du, a, dv, b = formula(x, y, apart, p_apart, q_apart, part_p, part_q, rise_p, rise_q, share, weight)
            none = ps[k] == 0.0 and qs[k] == 0.0
            moves_p[k] = 0.0 if none else _times(move_p, us[k]) + over_mass(ps[k], p, du, mass)
            moves_q[k] = 0.0 if none else _times(move_q, vs[k]) + over_mass(qs[k], q, dv, mass)
            us[k] = 0.0 if none else tangent(us[k], du, a, whole_p)
            vs[k] = 0.0 if none else tangent(vs[k], dv, b, whole_q)

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
        spare = space[16 : 16 + SPARE]
        for r in index:
            masses(p, a + r * ps, q, b + r * qs, d, normalize, state, c, work, view, spare)
            if not is_sound(state, normalize):
                unknown(r * d, d, factors[r], by_p, by_q, out_p, out_q)
                continue
            mass = _common_mass(c[4], c[6])
            one_p, one_q = 1.0 / c[4], 1.0 / c[6]
            whole = 0
            for first in range(0, d, TILE):
                size = min(TILE, d - first)
                pad(q, b + r * qs + first, size, work, np.int64(BUFFER), 0.0)
                padded = pad(p, a + r * ps + first, size, work, np.int64(0), 0.0)
                whole = first + padded
                xs, ys = view[0:padded], view[BUFFER : BUFFER + padded]
                slopes(
                    xs, ys, c, weight, room[0, first:whole], room[1, first:whole], room[2, first:whole],
                    room[3, first:whole], room[8, first:whole],
                )  # fmt: skip
                pad(dp, r * dps + first, size, work, np.int64(2 * BUFFER), 0.0)
                pad(dq, r * dqs + first, size, work, np.int64(3 * BUFFER), 0.0)
                moves, others = view[2 * BUFFER : 2 * BUFFER + padded], view[3 * BUFFER : 3 * BUFFER + padded]
                moves_of(xs, moves, ys, one_p, c[0], room[4, first:whole], room[6, first:whole])
                moves_of(ys, others, xs, one_q, c[1], room[5, first:whole], room[7, first:whole])
            cells_p, cells_q, us, vs = room[0, 0:whole], room[1, 0:whole], room[2, 0:whole], room[3, 0:whole]
            whole_p, whole_q = 0.0, 0.0
            if normalize:
                whole_p = settle(room[4, 0:whole], cells_p, mass, work, view, state)
                whole_q = settle(room[5, 0:whole], cells_q, mass, work, view, state)
                centre(us, cells_p, mass, work, view, state)
                centre(vs, cells_q, mass, work, view, state)
            bends(
                cells_p, cells_q, us, vs, room[4, 0:whole], room[5, 0:whole], room[6, 0:whole], room[7, 0:whole],
                room[8, 0:whole], mass, whole_p, whole_q, weight,
            )  # fmt: skip
            if normalize:
                less(us, cells_p, cells_q, total_of(room[4, 0:whole], work, view, state))
                less(vs, cells_p, cells_q, total_of(room[5, 0:whole], work, view, state))
            if by_p:
                write(frozen(us), 0, d, factors[r] / c[4], c[0], out_p, r * d)
            if by_q:
                write(frozen(vs), 0, d, factors[r] / c[6], c[1], out_q, r * d)

    return loop


def cells(formula: Callable[..., Any]) -> Callable[..., None]:
    """The second derivatives of a formula of two numbers times a direction, each times its factor or the one of all."""
    formula = scalar(formula)

    def loop(x: Any, y: Any, dx: Any, dy: Any, factors: Any, one_of_all: bool, out_x: Any, out_y: Any) -> None:
        for k in range(x.size):
            u, v = formula(x[k], y[k], dx[k], dy[k])
            g = factors[0 if one_of_all else k]
            out_x[k] = 0.0 if g == 0.0 else u * g
            out_y[k] = 0.0 if g == 0.0 else v * g

    return loop
