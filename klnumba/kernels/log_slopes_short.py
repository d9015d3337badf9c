"""What `kernels.log_slopes` does, for short rows: many at a time, so that a row costs no start of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.log_cells import no_cell
from klnumba.formulas.slopes import Slope
from klnumba.kernels.compiler import part, scalar
from klnumba.kernels.fast import sums
from klnumba.kernels.log_slopes import LACK, LAST, MEANS, after, is_apart, is_lopsided, is_near, slope_of
from klnumba.kernels.logs import SCALES, sharpen
from klnumba.kernels.logs_short import BRANCH, KEPT, MOST, SCALE, begun, flat_loop, place
from klnumba.kernels.slopes import keep, mean_of, unknown
from klnumba.kernels.tiles import BUFFER, SPARE, TILE, fill

# Numbers of the row of each cell: 1/sum(p), both means, what they lack, and whether they are less their bounds. Then
# those of each row: whether to look for what they lack, and twice for the ratio of the normalisers.
BOUNDED, FURTHER, TWICE = 5 * BUFFER, 7 * BUFFER, 7 * BUFFER + MOST
ROOM = 7 * BUFFER + 2 * MOST


@part
def normalised(count: Any, d: Any, again: Any, view: Any, space: Any, more: Any) -> Any:
    """Put the sums of rows where their cells find them; whether one wants a further read, and one a second look."""
    for k in range(2):
        sums(view, (3 + k) * BUFFER, count, d, space[k * TILE : (k + 1) * TILE])
    lopsided = apart = False
    for r in range(count):
        mass, gap = space[r], space[TILE + r]
        if again and more[TWICE + r] == 0.0:
            continue
        sharpen(space[SCALE + r * KEPT : SCALE + (r + 1) * KEPT], mass, gap)
        fill(more, r * d, d, 1.0 / mass)
        if not again and is_lopsided(mass, gap):
            lopsided, more[FURTHER + r] = True, 1.0
        if not again and is_apart(mass, gap):
            apart, more[TWICE + r] = True, 1.0
    return lopsided, apart


@part
def take(read: Any, side: Any, found: Any, limit: Any, count: Any, d: Any, more: Any) -> Any:
    """What a read found of the means of rows, for each as `log_slopes.take`; whether one is near its bound.

    The neighbours of a row do not change its bits.
    """
    near = False
    for r in range(count):
        mean, kept, flag = mean_of(found[r], 0.0), (1 + side) * BUFFER + r * d, BOUNDED + side * BUFFER + r * d
        if read == LACK:
            if more[FURTHER + r] != 0.0:
                fill(more, kept + 2 * BUFFER, d, mean)
        elif read == MEANS and is_near(mean, limit):
            fill(more, flag, d, 1.0)
            near = True
        elif read == MEANS or more[flag] != 0.0:
            fill(more, kept, d, mean)
    return near


def rows(slope: Slope, normalize: bool) -> Callable[..., None]:
    """Rows of fewer than `logs_short.SHORT` cells."""
    cell, masses, bounds = slope_of(slope, normalize), flat_loop(no_cell), scalar(slope.bounds)
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
        near_p, near_q = more[BOUNDED : BOUNDED + count], more[BOUNDED + BUFFER : BOUNDED + BUFFER + count]
        for k in range(count):
            us[k], vs[k] = cell(
                xs[k], ys[k], mp[k], mq[k], inverse, tail, shift[k], log_p[k], log_q[k], shift_low[k], parts[k],
                mean_p[k], mean_q[k], rest_p[k], rest_q[k], weight, near_p[k] != 0.0, near_q[k] != 0.0,
            )  # fmt: skip

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any, factors: Any, weight: Any,
        inverse: Any, tail: Any, by_p: Any, by_q: Any, out_p: Any, out_q: Any, more: Any, work: Any, view: Any,
        space: Any,
    ) -> None:  # fmt: skip
        spare = space[BRANCH : BRANCH + SPARE]
        most = min(MOST, TILE // d)
        centred = (by_p and centred_p) or (by_q and centred_q)
        limits = bounds(weight)
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
            for k in range(1, 7):
                fill(more, k * BUFFER, whole, 0.0)
            fill(more, FURTHER, 2 * MOST, 0.0)
            lopsided, apart = False, normalize
            for look in range(2):
                if apart:
                    masses(view, whole, inverse, tail, weight, work, space)
                    wanted, apart = normalised(count, d, look == 1, view, space, more)
                    lopsided = lopsided or wanted
                    place(p, a, ps, q, b, qs, count, d, work, space)
            read = MEANS if centred else LAST
            while True:
                flat(view, whole, inverse, tail, weight, work, space, more)
                if read == LAST:
                    break
                near = False
                for k in range(2):
                    if by_p if k == 0 else by_q:
                        found = work[4 * BUFFER : 4 * BUFFER + TILE]
                        sums(view, (2 + k) * BUFFER, count, d, found)
                        near |= take(read, k, found, limits[k], count, d, more)
                read = after(read, near, lopsided)
            for r in range(count):
                row = np.int64(space[SCALE + r * KEPT + SCALES])
                factor = factors[row] * inverse
                keep(r * d, d, row * d, factor, 1.0, factor, 1.0, by_p, by_q, out_p, out_q, view)

    return loop
