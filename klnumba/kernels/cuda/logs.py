"""Every divergence of rows of log-probabilities and logits, in float64 arithmetic (see `kernels.logs`)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.log_cells import lift, power_over, rel_entr, relative
from klnumba.kernels import logs
from klnumba.kernels.cuda.cells import reader
from klnumba.kernels.cuda.target import cuda, device, piece, two_sum
from klnumba.kernels.cuda.team import Team, larger, value_of

ROUNDS = logs.ROUNDS
barred, sharpen, _judge = device(logs.barred), device(logs.sharpen), device(logs.judge)
_log_normaliser = device(logs.log_normaliser)
_relative, _lift, _power_over = device(relative), device(lift), device(power_over)


@functools.cache
def tops(store: str, team: Team) -> Any:
    """The largest cells of p and of q; NaN cells are passed over."""
    one, width, largest = reader(store).one, team.width, team.largest

    @piece
    def found(p: Any, o: Any, q: Any, u: Any, d: Any, lane: Any, room: Any) -> Any:
        a = b = -math.inf
        for k in range(lane, d, width):
            a, b = larger(a, np.float64(one(p, o + k))), larger(b, np.float64(one(q, u + k)))
        return largest(a, room), largest(b, room)

    return found


@functools.cache
def beside(store: str, team: Team) -> Any:
    """The cell of q beside the largest of p, which is in c[0], and that of p beside the largest of q, c[1].

    Where several are the largest it is the larger one beside them.
    """
    one, width, largest = reader(store).one, team.width, team.largest

    @piece
    def found(p: Any, o: Any, q: Any, u: Any, d: Any, c: Any, lane: Any, room: Any) -> Any:
        a = b = -math.inf
        for k in range(lane, d, width):
            x, y = np.float64(one(p, o + k)), np.float64(one(q, u + k))
            a, b = larger(a, y if x == c[0] else -math.inf), larger(b, x if y == c[1] else -math.inf)
        return largest(a, room), largest(b, room)

    return found


@functools.cache
def sweep(cell: Callable[..., Any], store: str, team: Team, largest: bool, sizes: bool) -> Any:
    """One read: the sums of the cells, of p and of q - p (or of the cells' sizes)."""
    one, width = reader(store).one, team.width
    add_three, highest, add = team.add_three, team.largest, team.add
    formula = device(cell)

    @piece
    def sums(p: Any, o: Any, q: Any, u: Any, d: Any, c: Any, weight: Any, lane: Any, room: Any) -> Any:
        f = -math.inf if largest else 0.0
        fe = mass = me = gap = ge = nan = 0.0
        for k in range(lane, d, width):
            x, y = np.float64(one(p, o + k)), np.float64(one(q, u + k))
            a, low_a, t, v, low_v, delta, low = _relative(x, y, c[0], c[1], c[2], c[3], c[4], c[7])
            pk, qk, dk, g = _lift(a, low_a, v, low_v, delta, low)
            value = formula(pk, qk, dk, g, delta, (c[5] - a) - low_a, c[6] - t, weight)
            if largest:
                f = larger(f, value)
                nan += 0.0 if value == value else value
            else:
                f, e = two_sum(f, value)
                fe += e
            mass, e = two_sum(mass, pk)
            me += e
            gap, e = two_sum(gap, abs(value) if sizes else -dk)
            ge += e
        if largest:
            f, fe = highest(f, room), 0.0
            nan, _ = add(nan, 0.0, room)
            _, _, mass, me, gap, ge = add_three(0.0, 0.0, mass, me, gap, ge, room)
            return f + nan, fe, mass, me, gap, ge
        return add_three(f, fe, mass, me, gap, ge, room)

    return sums


@functools.cache
def rests(store: str, team: Team) -> Any:
    """The sum of a row's exponentials below the largest, and the number of the largest."""
    one, width, add_three = reader(store).one, team.width, team.add_three

    @piece
    def of(p: Any, o: Any, d: Any, top: Any, inverse: Any, tail: Any, lane: Any, room: Any) -> Any:
        rest = low = ties = 0.0
        for k in range(lane, d, width):
            w, e = two_sum(np.float64(one(p, o + k)), -top)
            rest, e = two_sum(rest, 0.0 if w == 0.0 else _power_over(w, e, inverse, tail))
            low += e
            ties += np.float64(w == 0.0)
        return add_three(rest, low, ties, 0.0, 0.0, 0.0, room)

    return of


@functools.cache
def normaliser(store: str, team: Team) -> Any:
    """log of the sum of a row's exponentials over that of its largest."""
    sums = rests(store, team)

    @piece
    def of(p: Any, o: Any, d: Any, top: Any, inverse: Any, tail: Any, lane: Any, room: Any) -> Any:
        rest, low, ties, _, _, _ = sums(p, o, d, top, inverse, tail, lane, room)
        return _log_normaliser(rest + low, ties)

    return of


@functools.cache
def value(cell: Callable[..., Any], store: str, team: Team, plain: bool, largest: bool, normalize: bool) -> Any:
    """The divergence of a row, the same in every thread of its team.

    `plain` marks KL itself, whose cells are those of G and need no exact guess.
    """
    sizes, surprises = cell is rel_entr, cell in logs.SURPRISES
    found, sums, of = tops(store, team), sweep(cell, store, team, largest, sizes), normaliser(store, team)
    any_of = team.any

    @piece
    def row(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, tail: Any, weight: Any, lane: Any, room: Any) -> Any:
        c = cuda.local.array(8, np.float64)
        c[0], c[1] = found(p, o, q, u, d, lane, room)
        c[2], c[3], c[4], c[5], c[6], c[7] = inverse, tail, 0.0, 0.0, 0.0, 0.0
        result = math.nan
        done = barred(c, normalize)
        for attempt in range(ROUNDS):
            if not any_of(not done):
                break
            f, fe, mass, me, gap, ge = sums(p, o, q, u, d, c, weight, lane, room)
            f, mass, gap = value_of(f, fe), mass + me, gap + ge
            if not done:
                result, done = _judge(f, mass, gap, normalize, plain, largest, sizes, weight, attempt)
            if not done:
                sharpen(c, mass, gap)
            if surprises and any_of(not done):
                log_p = of(p, o, d, c[0], inverse, tail, lane, room)
                log_q = of(q, u, d, c[1], inverse, tail, lane, room)
                if not done:
                    c[5], c[6] = log_p, log_q
        return result

    return row
