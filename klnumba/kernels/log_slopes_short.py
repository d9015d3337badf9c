"""What `kernels.log_slopes` does, for short rows: many at a time, so that a row costs no start of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.log_cells import no_cell
from klnumba.formulas.slopes import Slope
from klnumba.kernels.compiler import part
from klnumba.kernels.fast import sums
from klnumba.kernels.log_slopes import is_apart, refer_loop, slope_of
from klnumba.kernels.logs import SCALES, sharpen
from klnumba.kernels.logs_short import BRANCH, KEPT, MOST, SCALE, begun, flat_loop, place
from klnumba.kernels.slopes import keep, mean_of, unknown
from klnumba.kernels.tiles import BUFFER, SPACE, SPARE, TILE, fill

# Numbers of the row of each cell: 1/sum(p), both means, and what `refer` says. Then, of each row, whether to look twice
# for the ratio of the normalisers.
MEANS, REFS, TWICE = BUFFER, 3 * BUFFER, 7 * BUFFER
ROOM = 7 * BUFFER + MOST
assert BRANCH + SPARE + 4 <= SPACE


@part
def normalised(count: Any, d: Any, again: Any, view: Any, space: Any, more: Any) -> Any:
    """Put the sums of rows where their cells find them; whether one wants a second look."""
    for k in range(2):
        sums(view, (3 + k) * BUFFER, count, d, space[k * TILE : (k + 1) * TILE])
    apart = False
    for r in range(count):
        mass, gap = space[r], space[TILE + r]
        if again and more[TWICE + r] == 0.0:
            continue
        sharpen(space[SCALE + r * KEPT : SCALE + (r + 1) * KEPT], mass, gap)
        fill(more, r * d, d, 1.0 / mass)
        if not again and is_apart(mass, gap):
            apart, more[TWICE + r] = True, 1.0
    return apart


def refer_all_loop(slope: Slope) -> Any:
    refer = refer_loop(slope)

    @part
    def refer_all(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, count: Any, d: Any, space: Any, more: Any
    ) -> None:  # fmt: skip
        """Put what `refer` says of rows where their cells find it."""
        refs = space[BRANCH + SPARE : BRANCH + SPARE + 4]
        for r in range(count):
            c = space[SCALE + r * KEPT : SCALE + (r + 1) * KEPT]
            i = np.int64(c[SCALES])
            refer(p, a + i * ps, q, b + i * qs, d, c, refs)
            for k in range(4):
                fill(more, REFS + k * BUFFER + r * d, d, refs[k])

    return refer_all


def rows(slope: Slope, normalize: bool) -> Callable[..., None]:
    """Rows of fewer than `logs_short.SHORT` cells."""
    cell, masses, refer = slope_of(slope, normalize), flat_loop(no_cell), refer_all_loop(slope)
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
        mean_p, mean_q = more[MEANS : MEANS + count], more[MEANS + BUFFER : MEANS + BUFFER + count]
        y_p, x_q = more[REFS : REFS + count], more[REFS + BUFFER : REFS + BUFFER + count]
        ratio_p = more[REFS + 2 * BUFFER : REFS + 2 * BUFFER + count]
        ratio_q = more[REFS + 3 * BUFFER : REFS + 3 * BUFFER + count]
        for k in range(count):
            us[k], vs[k] = cell(
                xs[k], ys[k], mp[k], mq[k], inverse, tail, shift[k], log_p[k], log_q[k], shift_low[k], parts[k],
                y_p[k], x_q[k], ratio_p[k], ratio_q[k], mean_p[k], mean_q[k], weight,
            )  # fmt: skip

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any, factors: Any, weight: Any,
        inverse: Any, tail: Any, by_p: Any, by_q: Any, out_p: Any, out_q: Any, more: Any, work: Any, view: Any,
        space: Any,
    ) -> None:  # fmt: skip
        spare = space[BRANCH : BRANCH + SPARE]
        most = min(MOST, TILE // d)
        start = 0 if (by_p and centred_p) or (by_q and centred_q) else 1
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
            for k in range(2):
                fill(more, MEANS + k * BUFFER, whole, 0.0)
            for k in range(4):
                fill(more, REFS + k * BUFFER, whole, 1.0)
            fill(more, TWICE, MOST, 0.0)
            apart = normalize
            for look in range(2):
                if apart:
                    masses(view, whole, inverse, tail, weight, work, space)
                    apart = normalised(count, d, look == 1, view, space, more)
                    place(p, a, ps, q, b, qs, count, d, work, space)
            if start == 0:
                refer(p, a, ps, q, b, qs, count, d, space, more)
            for last in range(start, 2):
                flat(view, whole, inverse, tail, weight, work, space, more)
                for k in range(2):
                    if not last and (by_p if k == 0 else by_q):
                        found = work[4 * BUFFER : 4 * BUFFER + TILE]
                        sums(view, (2 + k) * BUFFER, count, d, found)
                        for r in range(count):
                            fill(more, MEANS + k * BUFFER + r * d, d, mean_of(found[r], 0.0))
            for r in range(count):
                row = np.int64(space[SCALE + r * KEPT + SCALES])
                factor = factors[row] * inverse
                keep(r * d, d, row * d, factor, 1.0, factor, 1.0, by_p, by_q, out_p, out_q, view)

    return loop
