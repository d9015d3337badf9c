"""Every divergence of rows of probabilities, to the last digits: two reads, in float64 (see `kernels.exact`)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.divergences import common_mass, multipliers, on_common_mass, scaled
from klnumba.kernels import exact
from klnumba.kernels.cuda.cells import reader
from klnumba.kernels.cuda.target import cuda, device, piece, two_sum
from klnumba.kernels.cuda.team import Team

_raise_up = device(exact.raise_up)
_scales = device(exact.scales)
_on_common_mass, _multipliers, whole_mass = device(on_common_mass), device(multipliers), device(common_mass)
_scaled = device(scaled)
SHRINK = exact.SHRINK


@functools.cache
def masses(store: str, team: Team) -> Any:
    """The first read: (P, Q) as double-doubles and the number of negative cells."""
    one, width = reader(store).one, team.width
    add_three = team.add_three

    @piece
    def sums(p: Any, o: Any, q: Any, u: Any, d: Any, fp: Any, fq: Any, lane: Any, room: Any) -> Any:
        a = ae = b = be = negative = 0.0
        for k in range(lane, d, width):
            x, y = np.float64(one(p, o + k)), np.float64(one(q, u + k))
            a, e = two_sum(a, x * fp)
            ae += e
            b, e = two_sum(b, y * fq)
            be += e
            negative += np.float64(x < 0.0) + np.float64(y < 0.0)
        return add_three(a, ae, b, be, negative, 0.0, room)

    return sums


@functools.cache
def cells(cell: Callable[..., Any], store: str, team: Team, largest: bool) -> Any:
    """The second read: the sum of the cells as a double-double, or the largest."""
    one, width = reader(store).one, team.width
    add, highest = team.add, team.largest
    formula = device(cell)

    @piece
    def total(p: Any, o: Any, q: Any, u: Any, d: Any, c: Any, weight: Any, lane: Any, room: Any) -> Any:
        hi = -math.inf if largest else 0.0
        lo = 0.0
        nan = 0.0
        v, ve, w, we = _multipliers(c[2], c[3], c[4], c[6])
        whole = whole_mass(c[4], c[6])
        for k in range(lane, d, width):
            x, y = _scaled(np.float64(one(p, o + k)), c[0]), _scaled(np.float64(one(q, u + k)), c[1])
            pk, qk, gap, low, above_p, above_q = _on_common_mass(x, y, v, ve, w, we, c[4], c[5], c[6], c[7])
            value = formula(pk, qk, gap, low, whole, above_p, above_q, weight)
            if largest:
                hi = value if value > hi else hi
                nan += value - value if value != value else 0.0
            else:
                hi, e = two_sum(hi, value)
                lo += e
        if largest:
            hi = highest(hi, room)
            nan, lo = add(nan, 0.0, room)
            return hi + nan, 0.0
        return add(hi, lo, room)

    return total


@functools.cache
def begun(store: str, team: Team) -> Any:
    """The sums of a row in `state`, and its factors and scales in `c`: both are arrays of 8 numbers of the thread."""
    sums, any_of = masses(store, team), team.any

    @piece
    def begin(
        p: Any, o: Any, q: Any, u: Any, d: Any, normalize: Any, state: Any, c: Any, lane: Any, room: Any
    ) -> None:  # fmt: skip
        c[0], c[1] = 1.0, 1.0
        a, ae, b, be, negative, _ = sums(p, o, q, u, d, 1.0, 1.0, lane, room)
        # A sum overflowed: once more with that side made smaller. Its team-mates go along.
        if any_of(normalize and not (a < math.inf and b < math.inf)):
            c[0] = 1.0 if a < math.inf or not normalize else SHRINK
            c[1] = 1.0 if b < math.inf or not normalize else SHRINK
            a, ae, b, be, negative, _ = sums(p, o, q, u, d, c[0], c[1], lane, room)
        state[0], state[2], state[6] = a, b, negative
        state[1] = ae if abs(a) < math.inf else 0.0
        state[3] = be if abs(b) < math.inf else 0.0
        if normalize:
            _raise_up(state, c)
        _scales(state, normalize, c)

    return begin


@functools.cache
def value(cell: Callable[..., Any], finish: Callable[..., Any], store: str, team: Team, largest: bool) -> Any:
    """The divergence of a row, the same in every thread of its team."""
    begin, total, last = begun(store, team), cells(cell, store, team, largest), device(finish)

    @piece
    def row(p: Any, o: Any, q: Any, u: Any, d: Any, normalize: Any, weight: Any, lane: Any, room: Any) -> Any:
        state, c = cuda.local.array(8, np.float64), cuda.local.array(8, np.float64)
        begin(p, o, q, u, d, normalize, state, c, lane, room)
        g, ge = total(p, o, q, u, d, c, weight, lane, room)
        ge = ge if abs(g) < math.inf else 0.0
        return last(state[0], state[1], state[2], state[3], g, ge, state[6], whole_mass(c[4], c[6]), normalize)

    return row
