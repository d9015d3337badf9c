"""Every divergence of rows of probabilities, to the last digits: two reads, float64 arithmetic.

The first read adds up p and q in double-double. The second brings the rows to
a common mass, x = p and y = c*q with c = P/Q (or the other way round, whichever
scales up), forms the difference d = p - c*q with one rounding of the exact
value, and adds up the cells f(x, y, d), none of which is negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.divergences import common_mass, multipliers, on_common_mass, scaled
from klnumba.formulas.elementary import two_sum
from klnumba.formulas.primitives import fma
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.tiles import BUFFER, SPARE, TILE, add_all, add_lanes, copy, fill, pad, raise_to

# The state of a piece: P, Q, G as double-doubles, then the number of cells that break a rule.
SIZE = 7
SCALES = 8
SHRINK = 2.0**-64  # brings the sum of up to 2**40 huge cells back into range

_fma = scalar(fma)
_two_sum = scalar(two_sum)
_on_common_mass, _multipliers, _common_mass = scalar(on_common_mass), scalar(multipliers), scalar(common_mass)
_scaled = scalar(scaled)


@helper
def mass(a: Any, start: Any, d: Any, factor: Any, work: Any, view: Any, spare: Any, state: Any, i: Any) -> None:
    """Add the cells of a piece times `factor` to the double-double state[i]; state[6] counts the negative ones."""
    hi = spare[0:64]
    lo = spare[64:128]
    for k in range(64):
        hi[k] = 0.0
        lo[k] = 0.0
    negative = 0
    for first in range(0, d, TILE):
        count = min(TILE, d - first)
        copy(a, start + first, count, work, np.int64(0))
        fill(work, count, -count % 64, 0.0)
        for j in range(0, count, 64):
            x = view[j : j + 64]
            for k in range(64):
                s, e = _two_sum(hi[k], x[k] * factor)
                hi[k] = s
                lo[k] += e
                negative += x[k] < 0.0
    add_lanes(state, i, hi, lo)
    state[6] += negative


def lever(mass: float, other: float) -> float:
    """The power of two that takes a mass up to about 2**900, or down to it from where its multiples overflow.

    There no cell that counts underflows. Where the other mass is too small to get there, it is to be near that one.
    """
    most = 1012 if other > 4.0 else 900
    exponent = (np.float64(mass).view(np.int64) >> np.int64(52)) - np.int64(1023)
    power = np.int64(0) if exponent >= 900 and exponent <= most else np.int64(900) - exponent
    return np.int64(min(power + np.int64(1023), np.int64(2046)) << np.int64(52)).view(np.float64)


_lever = helper(lever)


@part
def raise_up(state: Any, c: Any) -> None:
    """Take both masses to about 2**900, in the sums and in the factors of the cells."""
    for i in range(2):
        power = _lever(state[2 * i], state[2 - 2 * i])
        state[2 * i] *= power
        state[2 * i + 1] *= power
        c[i] *= power


@part
def scales(state: Any, normalize: Any, c: Any) -> None:
    """c[2:8] = the ratio of the sums in `state`, the larger one over the other, and both sums, as double-doubles."""
    p, pe = _two_sum(state[0], state[1])
    q, qe = _two_sum(state[2], state[3])
    c[2], c[3], c[4], c[5], c[6], c[7] = 1.0, 0.0, 1.0, 0.0, 1.0, 0.0
    if normalize:
        if p >= q:
            h = p / q
            c[2], c[3] = h, (_fma(-h, q, p) + (pe - h * qe)) / q
        else:
            h = q / p
            c[2], c[3] = h, (_fma(-h, p, q) + (qe - h * pe)) / p
        c[4], c[5], c[6], c[7] = p, pe, q, qe


@part
def masses(
    p: Any, a: Any, q: Any, b: Any, d: Any, normalize: Any, state: Any, c: Any, work: Any, view: Any, spare: Any
) -> None:
    """The sums of a whole row in `state`, and its factors and scales in `c`."""
    c[0], c[1] = 1.0, 1.0
    for attempt in range(2):
        for k in range(SIZE):
            state[k] = 0.0
        mass(p, a, d, c[0], work, view, spare, state, np.int64(0))
        mass(q, b, d, c[1], work, view, spare, state, np.int64(2))
        if attempt == 1 or not normalize or (state[0] < math.inf and state[2] < math.inf):
            break
        c[0] = 1.0 if state[0] < math.inf else SHRINK  # the other side may be as small as numbers are
        c[1] = 1.0 if state[2] < math.inf else SHRINK
    if normalize:
        raise_up(state, c)
    scales(state, normalize, c)


def cells_loop(cell: Callable[..., Any], *, largest: bool) -> Any:
    cell = scalar(cell)

    @part
    def cells(p: Any, a: Any, q: Any, b: Any, d: Any, c: Any, weight: Any, work: Any, view: Any, state: Any) -> None:
        """Add the cells of a piece to state[4:6], or raise state[4] to the largest."""
        state[4] = -math.inf if largest else 0.0
        state[5] = 0.0
        fp, fq, p_mass, p_rest, q_mass, q_rest = c[0], c[1], c[4], c[5], c[6], c[7]
        u, ue, v, ve = _multipliers(c[2], c[3], p_mass, q_mass)
        whole = _common_mass(p_mass, q_mass)
        for first in range(0, d, TILE):
            count = min(TILE, d - first)
            pad(q, b + first, count, work, np.int64(BUFFER), 0.0)
            count = pad(p, a + first, count, work, np.int64(0), 0.0)
            xs = view[0:count]
            ys = view[BUFFER : BUFFER + count]
            out = work[2 * BUFFER : 2 * BUFFER + count]
            for k in range(count):
                x, y = _scaled(xs[k], fp), _scaled(ys[k], fq)
                pk, qk, gap, low, above_p, above_q = _on_common_mass(x, y, u, ue, v, ve, p_mass, p_rest, q_mass, q_rest)
                out[k] = cell(pk, qk, gap, low, whole, above_p, above_q, weight)
            if largest:
                raise_to(state, np.int64(4), view, np.int64(2 * BUFFER), min(TILE, d - first))
            else:
                add_all(state, np.int64(4), view, np.int64(2 * BUFFER), count)

    return cells


def rows(cell: Callable[..., Any], finish: Callable[..., Any], *, largest: bool = False) -> Callable[..., None]:
    """Whole rows, those named in `index`: sums, scale, cells and the finished value."""
    cells = cells_loop(cell, largest=largest)
    finish = scalar(finish)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any,
        normalize: Any, weight: Any, out: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        state = space[0:SIZE]
        c = space[8 : 8 + SCALES]
        spare = space[16 : 16 + SPARE]
        for r in index:
            masses(p, a + r * ps, q, b + r * qs, d, normalize, state, c, work, view, spare)
            cells(p, a + r * ps, q, b + r * qs, d, c, weight, work, view, state)
            out[r] = finish(
                state[0],
                state[1],
                state[2],
                state[3],
                state[4],
                state[5],
                state[6],
                _common_mass(c[4], c[6]),
                normalize,
            )

    return loop


def piece_sums() -> Callable[..., None]:
    """The first read of pieces of one long row."""

    def loop(
        p: Any,
        a: Any,
        q: Any,
        b: Any,
        starts: Any,
        stops: Any,
        fp: Any,
        fq: Any,
        states: Any,
        work: Any,
        view: Any,
        space: Any,
    ) -> None:
        spare = space[16 : 16 + SPARE]
        for i in range(starts.size):
            state = states[i]
            for k in range(SIZE):
                state[k] = 0.0
            mass(p, a + starts[i], stops[i] - starts[i], fp, work, view, spare, state, np.int64(0))
            mass(q, b + starts[i], stops[i] - starts[i], fq, work, view, spare, state, np.int64(2))

    return loop


def piece_cells(cell: Callable[..., Any], *, largest: bool = False) -> Callable[..., None]:
    """The second read, given the sums of the whole row in `whole`."""
    cells = cells_loop(cell, largest=largest)

    def loop(
        p: Any, a: Any, q: Any, b: Any, starts: Any, stops: Any, fp: Any, fq: Any, whole: Any,
        normalize: Any, weight: Any, states: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        c = space[8 : 8 + SCALES]
        c[0], c[1] = fp, fq
        scales(whole, normalize, c)
        for i in range(starts.size):
            state = states[i]
            cells(p, a + starts[i], q, b + starts[i], stops[i] - starts[i], c, weight, work, view, state)
            state[6] = _common_mass(c[4], c[6])

    return loop
