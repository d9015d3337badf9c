"""Every divergence of rows of log-probabilities and logits.

A first read takes the largest cells m_p and m_q. The second forms, for every
cell, u = x - m_p and delta = log(p/q) relative to a guess of the ratio of the
normalisers (at first 1), and adds up G = sum p*(delta + expm1(-delta)), P =
sum p and D = sum (q - p). As for probabilities, KL = G/P - phi(D/P), whatever
the guess: where that would lose digits the guess becomes right, and the row,
by then in the cache, is read again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.elementary import log, log1p, two_sum
from klnumba.formulas.log_cells import (
    cross_entropy_log,
    entropy_log,
    lift,
    no_cell,
    phi,
    power_over,
    rel_entr,
    relative,
)
from klnumba.kernels.compiler import as_written, helper, part, scalar
from klnumba.kernels.tiles import BUFFER, SPARE, STEP, TILE, add_all, pad, raise_to

# The state of a piece: F (the cells), P, D as double-doubles, and a spare.
SIZE = 7
SCALES = 8
ROUNDS = 4
READY = 2  # the attempt from which on the guess is right enough for every cell
SURPRISES = (cross_entropy_log, entropy_log)  # cells that hold -log p or -log q

_lift = scalar(lift)
_relative = as_written(relative)
_phi = scalar(phi)
_power_over = as_written(power_over)
_log = scalar(log)
_log1p = scalar(log1p)
_two_sum = scalar(two_sum)


@helper
def larger_of(cells: Any, top: Any) -> Any:
    """The largest cell, or `top`; four at a time, since each comparison waits for the one before."""
    a = b = c = e = top
    whole = cells.size // 4 * 4
    for k in range(0, whole, 4):
        a = cells[k] if cells[k] > a else a
        b = cells[k + 1] if cells[k + 1] > b else b
        c = cells[k + 2] if cells[k + 2] > c else c
        e = cells[k + 3] if cells[k + 3] > e else e
    for k in range(whole, cells.size):
        a = cells[k] if cells[k] > a else a
    a = b if b > a else a
    c = e if e > c else c
    return c if c > a else a


@helper
def top_of(a: Any, start: Any, d: Any, spare: Any) -> Any:
    """The largest cell; NaN cells are passed over."""
    top = -np.inf
    whole = d // STEP * STEP
    if whole:
        for k in range(STEP):
            spare[k] = -np.inf
        for first in range(start, start + whole, STEP):
            x = a[first : first + STEP]
            for k in range(STEP):
                spare[k] = x[k] if x[k] > spare[k] else spare[k]
        top = larger_of(spare[0:STEP], top)
    return larger_of(a[start + whole : start + d], top)


@helper
def tops_of(a: Any, start: Any, rows: Any, d: Any, out: Any) -> None:
    """Those of adjacent rows of a few cells."""
    for r in range(rows):
        out[r] = larger_of(a[start + r * d : start + (r + 1) * d], -np.inf)


@part
def arguments(
    x: Any, y: Any, mp: Any, mq: Any, inverse: Any, tail: Any, shift: Any, log_p: Any, log_q: Any, shift_low: Any
) -> Any:
    """What a cell takes, but for the weight."""
    u, low_u, t, v, low_v, delta, low = _relative(x, y, mp, mq, inverse, tail, shift, shift_low)
    pk, qk, dk, g = _lift(u, low_u, v, low_v, delta, low)
    return pk, qk, dk, g, delta, (log_p - u) - low_u, log_q - t


def sweep_loop(cell: Callable[..., Any], *, largest: bool) -> Any:
    sizes = cell is rel_entr  # its third sum is that of the sizes of the cells
    cell = scalar(cell)
    top = largest

    @part
    def sweep(p: Any, a: Any, q: Any, b: Any, d: Any, c: Any, weight: Any, work: Any, view: Any, state: Any) -> None:
        """Add the cells, p and q - p of a piece to state[0:2], state[2:4], state[4:6]."""
        mp, mq, inverse, tail, shift, log_p, log_q, shift_low = c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
        for k in range(SIZE):
            state[k] = -math.inf if top and k == 0 else 0.0
        for first in range(0, d, TILE):
            count = min(TILE, d - first)
            pad(q, b + first, count, work, np.int64(BUFFER), -np.inf)
            count = pad(p, a + first, count, work, np.int64(0), -np.inf)
            xs = view[0:count]
            ys = view[BUFFER : BUFFER + count]
            fs = work[2 * BUFFER : 2 * BUFFER + count]
            ps = work[3 * BUFFER : 3 * BUFFER + count]
            ds = work[4 * BUFFER : 4 * BUFFER + count]
            for k in range(count):
                pk, qk, dk, g, delta, nu, nv = arguments(
                    xs[k], ys[k], mp, mq, inverse, tail, shift, log_p, log_q, shift_low
                )
                fs[k] = cell(pk, qk, dk, g, delta, nu, nv, weight)
                ps[k] = pk
                ds[k] = abs(fs[k]) if sizes else -dk
            if top:
                raise_to(state, np.int64(0), view, np.int64(2 * BUFFER), min(TILE, d - first))
            else:
                add_all(state, np.int64(0), view, np.int64(2 * BUFFER), count)
            add_all(state, np.int64(2), view, np.int64(3 * BUFFER), count)
            add_all(state, np.int64(4), view, np.int64(4 * BUFFER), count)

    return sweep


@part
def _sound(f: Any, p: Any, d: Any) -> Any:
    """KL from G, P and D = Q - P, or -1 where that loses digits."""
    t = d / p
    bend = _phi(t)
    value = f / p - bend
    # The roundings of t weigh |t|/(1 + t) as much in the bend.
    if value != value or (abs(t) <= value * min(1.0, 1.0 + t) and 4.0 * bend <= value):
        return value
    return 0.0 if f == 0.0 and d == 0.0 else -1.0


@part
def value_of(hi: Any, lo: Any) -> Any:
    return hi if abs(hi) == math.inf else hi + lo


@part
def below_top(x: Any, top: Any, inverse: Any, tail: Any) -> Any:
    """(the exponential of a cell, where it is below the largest, else 0; whether it is the largest)."""
    w, e = _two_sum(x, -top)
    return (0.0 if w == 0.0 else _power_over(w, e, inverse, tail)), w == 0.0


@helper
def rest_of(a: Any, start: Any, d: Any, top: Any, inverse: Any, tail: Any, work: Any, view: Any, state: Any) -> None:
    """state[0:2] = the sum of exp over the cells below the largest, state[2] = the number of the largest."""
    state[0], state[1] = 0.0, 0.0
    ties = 0
    for first in range(0, d, TILE):
        count = pad(a, start + first, min(TILE, d - first), work, np.int64(0), -np.inf)
        xs = view[0:count]
        out = work[BUFFER : BUFFER + count]
        for k in range(count):
            out[k], tie = below_top(xs[k], top, inverse, tail)
            ties += tie
        add_all(state, np.int64(0), view, np.int64(BUFFER), count)
    state[2] = ties


@part
def log_normaliser(rest: Any, ties: Any) -> Any:
    """log(ties + rest) to the last digit, also where one cell holds nearly all."""
    return _log1p(rest) if ties == 1.0 else _log(ties + rest)


@helper
def normaliser(a: Any, start: Any, d: Any, top: Any, inverse: Any, tail: Any, work: Any, view: Any, state: Any) -> Any:
    rest_of(a, start, d, top, inverse, tail, work, view, state)
    return log_normaliser(state[0] + state[1], state[2])


@part
def barred(c: Any, normalize: Any) -> Any:
    """Whether the largest cells show that a row is no distribution; rows that are taken as they are need no shift."""
    if c[0] == math.inf or c[1] == math.inf or (normalize and (c[0] == -math.inf or c[1] == -math.inf)):
        return True
    if not normalize:
        c[0] = 0.0
        c[1] = 0.0
    return False


@part
def sharpen(c: Any, mass: Any, gap: Any) -> None:
    """Make the guess of the ratio of the normalisers right, and note the normalisers."""
    c[4], low = _two_sum(c[4], -_log1p(gap / mass))
    c[7] += low
    c[5] = _log(mass)
    c[6] = c[5] - c[4]


@part
def judge(
    f: Any, mass: Any, gap: Any, normalize: Any, plain: Any, top: Any, sizes: Any, limit: Any, attempt: Any
) -> Any:
    """(the value, whether it stands), from the sums of the cells, of p and of q - p (or of the cells' sizes).

    KL of rows as they are is NaN where its terms are more than `limit` times the value.
    """
    if not normalize:
        value = f - gap if plain and f < math.inf else f
        size = f + abs(gap) if plain else (gap if sizes else 0.0)
        return (math.nan if size > limit * abs(value) else value), True
    if not plain:
        return f if top else f / mass, attempt >= READY
    value = _sound(f, mass, gap)
    if value == -1.0 and attempt == ROUNDS - 1:  # the guess is right to the last digit and still shows
        return max(0.0, f / mass - _phi(gap / mass)), True
    return value, value != -1.0


def first_attempt(cell: Callable[..., Any]) -> int:
    """The last one at once where a cell depends on the normalisers but not on the guess of their ratio."""
    return READY if cell in SURPRISES else 0


def rows(cell: Callable[..., Any], *, plain: bool, largest: bool = False) -> Callable[..., None]:
    """Whole rows. `plain` marks KL itself, whose cells are those of G and need no exact guess."""
    sweep, masses = sweep_loop(cell, largest=largest), sweep_loop(no_cell, largest=False)
    sizes, surprises = cell is rel_entr, cell in SURPRISES
    first = first_attempt(cell)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any,
        normalize: Any, inverse: Any, tail: Any, weight: Any, out: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        state = space[0:SIZE]
        c = space[8 : 8 + SCALES]
        spare = space[16 : 16 + SPARE]
        for r in index:
            c[0] = top_of(p, a + r * ps, d, spare)
            c[1] = top_of(q, b + r * qs, d, spare)
            c[2], c[3], c[4], c[5], c[6], c[7] = inverse, tail, 0.0, 0.0, 0.0, 0.0
            out[r] = math.nan
            if barred(c, normalize):
                continue
            if surprises and normalize:
                c[5] = normaliser(p, a + r * ps, d, c[0], inverse, tail, work, view, state)
                c[6] = normaliser(q, b + r * qs, d, c[1], inverse, tail, work, view, state)
            for attempt in range(first, ROUNDS):
                if normalize and not plain and attempt < READY:  # no cell is of use yet
                    masses(p, a + r * ps, q, b + r * qs, d, c, weight, work, view, state)
                else:
                    sweep(p, a + r * ps, q, b + r * qs, d, c, weight, work, view, state)
                f, mass, gap = value_of(state[0], state[1]), state[2] + state[3], state[4] + state[5]
                value, done = judge(f, mass, gap, normalize, plain, largest, sizes, weight, attempt)
                out[r] = value
                if done:
                    break
                sharpen(c, mass, gap)

    return loop


def piece_largest() -> Callable[..., None]:
    def loop(p: Any, a: Any, q: Any, b: Any, starts: Any, stops: Any, states: Any, space: Any) -> None:
        spare = space[16 : 16 + SPARE]
        for i in range(starts.size):
            states[i, 0] = top_of(p, a + starts[i], stops[i] - starts[i], spare)
            states[i, 1] = top_of(q, b + starts[i], stops[i] - starts[i], spare)

    return loop


def piece_sweep(cell: Callable[..., Any], *, largest: bool = False) -> Callable[..., None]:
    sweep = sweep_loop(cell, largest=largest)

    def loop(
        p: Any,
        a: Any,
        q: Any,
        b: Any,
        starts: Any,
        stops: Any,
        c: Any,
        weight: Any,
        states: Any,
        work: Any,
        view: Any,
        space: Any,
    ) -> None:
        for i in range(starts.size):
            sweep(p, a + starts[i], q, b + starts[i], stops[i] - starts[i], c, weight, work, view, states[i])

    return loop


def piece_rest() -> Callable[..., None]:
    """The parts of the normalisers of both rows: columns 0, 1, 2 of p and 3, 4, 5 of q."""

    def loop(
        p: Any, a: Any, q: Any, b: Any, starts: Any, stops: Any, c: Any, states: Any, work: Any, view: Any, space: Any
    ) -> None:
        for i in range(starts.size):
            d = stops[i] - starts[i]
            rest_of(p, a + starts[i], d, c[0], c[2], c[3], work, view, states[i, 0:3])
            rest_of(q, b + starts[i], d, c[1], c[2], c[3], work, view, states[i, 3:6])

    return loop
