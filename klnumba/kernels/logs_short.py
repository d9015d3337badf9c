"""What `kernels.logs` does, for short rows: many at a time, so that a row costs no start of its own.

The rows of a group that want another attempt are brought together for it, as many as are left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.log_cells import no_cell, rel_entr
from klnumba.kernels.compiler import part, scalar
from klnumba.kernels.fast import sums
from klnumba.kernels.instructions import frozen
from klnumba.kernels.logs import (
    READY,
    ROUNDS,
    SCALES,
    SURPRISES,
    arguments,
    barred,
    below_top,
    first_attempt,
    judge,
    log_normaliser,
    sharpen,
    top_of,
)
from klnumba.kernels.tiles import BUFFER, SPACE, SPARE, STEP, TILE, copy, fill, raise_to

SHORT = 128  # rows shorter than this come here,
MOST = 64  # so many at a time, or as many as have `TILE` cells
# Where in `space` there are the six numbers of the row of each cell, whose place the sums take after them, and what is
# kept of a row: `SCALES` numbers as in `kernels.logs` and where the row is.
SCALE, KEPT = 6 * BUFFER, SCALES + 1
ROW = (0, 1, 4, 7, 5, 6)  # which of the scales these are, and the first of the normalisers
LOG_P = 4
BRANCH = SCALE + MOST * KEPT
assert 3 * TILE <= SCALE
assert BRANCH + SPARE <= SPACE


def flat_loop(cell: Callable[..., Any]) -> Any:
    """The cells of a group of rows, p and q - p."""
    sizes = cell is rel_entr
    cell = scalar(cell)

    @part
    def flat(view: Any, count: Any, inverse: Any, tail: Any, weight: Any, work: Any, space: Any) -> None:
        xs, ys = view[0:count], view[BUFFER : BUFFER + count]
        fs, ps = work[2 * BUFFER : 2 * BUFFER + count], work[3 * BUFFER : 3 * BUFFER + count]
        ds = work[4 * BUFFER : 4 * BUFFER + count]
        mp, mq = space[0:count], space[BUFFER : BUFFER + count]
        shift, shift_low = space[2 * BUFFER : 2 * BUFFER + count], space[3 * BUFFER : 3 * BUFFER + count]
        log_p, log_q = space[4 * BUFFER : 4 * BUFFER + count], space[5 * BUFFER : 5 * BUFFER + count]
        for k in range(count):
            pk, qk, dk, g, delta, nu, nv = arguments(
                xs[k], ys[k], mp[k], mq[k], inverse, tail, shift[k], log_p[k], log_q[k], shift_low[k]
            )
            fs[k] = cell(pk, qk, dk, g, delta, nu, nv, weight)
            ps[k] = pk
            ds[k] = abs(fs[k]) if sizes else -dk

    return flat


@part
def begun(
    p: Any, a: Any, q: Any, b: Any, d: Any, normalize: Any, inverse: Any, tail: Any, c: Any, i: Any, spare: Any
) -> Any:
    """Put the numbers of a row into `c`; whether it may be one of distributions."""
    c[0], c[1] = top_of(p, a, d, spare), top_of(q, b, d, spare)
    c[2], c[3], c[4], c[5], c[6], c[7], c[SCALES] = inverse, tail, 0.0, 0.0, 0.0, 0.0, i
    return not barred(c, normalize)


@part
def place(p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, count: Any, d: Any, work: Any, space: Any) -> Any:
    """The cells and the numbers of the rows that are kept, with zeros behind them; how many cells there are."""
    for r in range(count):
        c = space[SCALE + r * KEPT : SCALE + (r + 1) * KEPT]
        i = np.int64(c[SCALES])
        copy(p, a + i * ps, d, work, r * d)
        copy(q, b + i * qs, d, work, BUFFER + r * d)
        for k in range(6):
            fill(space, k * BUFFER + r * d, d, c[ROW[k]])
    rest = -count * d % STEP
    for k in range(2):
        fill(work, k * BUFFER + count * d, rest, -np.inf)
    for k in range(6):
        fill(space, k * BUFFER + count * d, rest, 0.0)
    return count * d + rest


@part
def _normalisers(count: Any, d: Any, whole: Any, inverse: Any, tail: Any, work: Any, view: Any, space: Any) -> None:
    """Put the logarithms of the sums of the exponentials into their places."""
    rests, ties = work[2 * BUFFER : 2 * BUFFER + whole], work[3 * BUFFER : 3 * BUFFER + whole]
    for side in range(2):
        xs, tops = view[side * BUFFER : side * BUFFER + whole], space[side * BUFFER : side * BUFFER + whole]
        for k in range(whole):
            rests[k], ties[k] = below_top(xs[k], tops[k], inverse, tail)
        rest = space[(LOG_P + side) * BUFFER : (LOG_P + side) * BUFFER + TILE]
        highest = work[4 * BUFFER : 4 * BUFFER + TILE]
        sums(view, 2 * BUFFER, count, d, rest)
        sums(view, 3 * BUFFER, count, d, highest)
        for r in range(count):
            highest[r] = log_normaliser(rest[r], highest[r])
        for r in range(count):
            fill(space, (LOG_P + side) * BUFFER + r * d, d, highest[r])


def rows(cell: Callable[..., Any], *, plain: bool, largest: bool = False) -> Callable[..., None]:
    """Rows of fewer than `SHORT` cells, those named in `index`."""
    sizes, surprises, first = cell is rel_entr, cell in SURPRISES, first_attempt(cell)
    flat, masses = flat_loop(cell), flat_loop(no_cell)

    @part
    def added(count: Any, d: Any, work: Any, view: Any, space: Any) -> None:
        """The sums of the rows, or their largest cells, for the first `TILE` numbers and twice as many after them."""
        for k in range(3):
            sums(view, (2 + k) * BUFFER, count, d, space[k * TILE : (k + 1) * TILE])
        if largest:
            for r in range(count):
                space[r] = -math.inf
                raise_to(space, r, view, 2 * BUFFER + r * d, d)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any,
        normalize: Any, inverse: Any, tail: Any, weight: Any, out: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        spare = space[BRANCH : BRANCH + SPARE]
        most = min(MOST, TILE // d)
        for begin in range(0, index.size, most):
            count = 0
            for i in index[begin : begin + most]:
                c = space[SCALE + count * KEPT : SCALE + (count + 1) * KEPT]
                out[i] = math.nan
                count += begun(p, a + i * ps, q, b + i * qs, d, normalize, inverse, tail, c, i, spare)
            for attempt in range(first, ROUNDS):
                whole = place(p, a, ps, q, b, qs, count, d, work, space)
                if surprises and normalize:
                    _normalisers(count, d, whole, inverse, tail, work, view, space)
                if normalize and not plain and attempt < READY:  # no cell is of use yet
                    masses(view, whole, inverse, tail, weight, work, space)
                else:
                    flat(view, whole, inverse, tail, weight, work, space)
                added(count, d, work, view, space)
                left = 0
                for r in range(count):
                    c = space[SCALE + r * KEPT : SCALE + (r + 1) * KEPT]
                    f, mass, gap = space[r], space[TILE + r], space[2 * TILE + r]
                    value, done = judge(f, mass, gap, normalize, plain, largest, sizes, weight, attempt)
                    out[np.int64(c[SCALES])] = value
                    if not done:
                        sharpen(c, mass, gap)
                        copy(frozen(space), SCALE + r * KEPT, KEPT, space, SCALE + left * KEPT)
                        left += 1
                count = left
                if count == 0:
                    break

    return loop
