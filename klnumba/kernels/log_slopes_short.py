"""What `kernels.log_slopes` does, for short rows: many at a time, so that a row costs no start of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.log_cells import no_cell
from klnumba.formulas.slopes import Slope
from klnumba.kernels.compiler import part
from klnumba.kernels.fast import sums
from klnumba.kernels.log_slopes import LAST, is_apart, is_lopsided, slope_of
from klnumba.kernels.logs import SCALES, sharpen
from klnumba.kernels.logs_short import BRANCH, KEPT, MOST, SCALE, begun, flat_loop, place
from klnumba.kernels.slopes import keep, mean_of, unknown
from klnumba.kernels.tiles import BUFFER, SPARE, TILE, fill

# Numbers of the row of each cell: 1/sum(p), both means and what they lack; then, of each row, whether to look for that,
# and whether to look twice for the ratio of the normalisers.
FURTHER, APART = 5 * BUFFER, 5 * BUFFER + MOST
ROOM = 5 * BUFFER + 2 * MOST


@part
def normalised(count: Any, d: Any, again: Any, view: Any, space: Any, more: Any) -> Any:
    """Put the sums of rows where their cells find them; whether one wants a further read, and one a second look."""
    for k in range(2):
        sums(view, (3 + k) * BUFFER, count, d, space[k * TILE : (k + 1) * TILE])
    lopsided = apart = False
    for r in range(count):
        mass, gap = space[r], space[TILE + r]
        if again and more[APART + r] == 0.0:
            continue
        sharpen(space[SCALE + r * KEPT : SCALE + (r + 1) * KEPT], mass, gap)
        fill(more, r * d, d, 1.0 / mass)
        if not again and is_lopsided(mass, gap):
            lopsided, more[FURTHER + r] = True, 1.0
        if not again and is_apart(mass, gap):
            apart, more[APART + r] = True, 1.0
    return lopsided, apart


def rows(slope: Slope, normalize: bool) -> Callable[..., None]:
    """Rows of fewer than `logs_short.SHORT` cells."""
    cell, masses = slope_of(slope, normalize), flat_loop(no_cell)
    centred_p, centred_q = slope.centred if normalize else (False, False)

    @part
    def flat(view: Any, count: Any, inverse: Any, tail: Any, weight: Any, work: Any, space: Any, more: Any) -> None:
        """The derivatives of the cells of a group of rows."""
        xs, ys = view[0:count], view[BUFFER : BUFFER + count]
        us, vs = work[2 * BUFFER : 2 * BUFFER + count], work[3 * BUFFER : 3 * BUFFER + count]
        mp, mq = space[0:count], space[BUFFER : BUFFER + count]
        shift, shift_low = space[2 * BUFFER : 2 * BUFFER + count], space[3 * BUFFER : 3 * BUFFER + count]
        log_p, log_q = space[4 * BUFFER : 4 * BUFFER + count], space[5 * BUFFER : 5 * BUFFER + count]
        parts = more[0:count]
        mean_p, mean_q = more[BUFFER : BUFFER + count], more[2 * BUFFER : 2 * BUFFER + count]
        rest_p, rest_q = more[3 * BUFFER : 3 * BUFFER + count], more[4 * BUFFER : 4 * BUFFER + count]
        for k in range(count):
            us[k], vs[k] = cell(
                xs[k], ys[k], mp[k], mq[k], inverse, tail, shift[k], log_p[k], log_q[k], shift_low[k], parts[k],
                mean_p[k], mean_q[k], rest_p[k], rest_q[k], weight,
            )  # fmt: skip

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any, factors: Any, weight: Any,
        inverse: Any, tail: Any, by_p: Any, by_q: Any, out_p: Any, out_q: Any, more: Any, work: Any, view: Any,
        space: Any,
    ) -> None:  # fmt: skip
        spare = space[BRANCH : BRANCH + SPARE]
        most = min(MOST, TILE // d)
        centred = (by_p and centred_p) or (by_q and centred_q)
        for begin in range(0, index.size, most):
            count = 0
            for i in index[begin : begin + most]:
                c = space[SCALE + count * KEPT : SCALE + (count + 1) * KEPT]
                if begun(p, a + i * ps, q, b + i * qs, d, normalize, inverse, tail, c, i, spare):
                    count += 1
                else:
                    unknown(i * d, d, factors[i], by_p, by_q, out_p, out_q)
            whole = place(p, a, ps, q, b, qs, count, d, work, space)
            fill(more, 0, whole, 1.0)
            for k in range(1, 5):
                fill(more, k * BUFFER, whole, 0.0)
            fill(more, FURTHER, 2 * MOST, 0.0)
            lopsided, apart = False, normalize
            for look in range(2):
                if apart:
                    masses(view, whole, inverse, tail, weight, work, space)
                    wanted, apart = normalised(count, d, look == 1, view, space, more)
                    lopsided = lopsided or wanted
                    place(p, a, ps, q, b, qs, count, d, work, space)
            turn = 0 if centred else LAST
            while turn <= LAST:
                flat(view, whole, inverse, tail, weight, work, space, more)
                for k in range(2):
                    if turn < LAST and (by_p if k == 0 else by_q):
                        found = work[4 * BUFFER : 4 * BUFFER + TILE]
                        sums(view, (2 + k) * BUFFER, count, d, found)
                        for r in range(count):
                            if turn == 0 or more[FURTHER + r] != 0.0:  # its neighbours do not change the bits of a row
                                fill(more, (1 + 2 * turn + k) * BUFFER + r * d, d, mean_of(found[r], 0.0))
                turn += 1 if lopsided else LAST
            for r in range(count):
                row = np.int64(space[SCALE + r * KEPT + SCALES])
                factor = factors[row] * inverse
                keep(r * d, d, row * d, factor, factor, by_p, by_q, out_p, out_q, view)

    return loop
