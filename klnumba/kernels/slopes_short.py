"""What `kernels.slopes` does, for short rows: many at a time, so that a row costs no start of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.divergences import common_mass
from klnumba.formulas.slopes import Slope
from klnumba.kernels.compiler import part, scalar
from klnumba.kernels.exact import SCALES, SIZE
from klnumba.kernels.exact_short import GROUP, PLACE, prepare
from klnumba.kernels.instructions import frozen
from klnumba.kernels.log_slopes_short import ROOM
from klnumba.kernels.slopes import REFS, is_sound, level, mean_of, refer_loop, slope_of, unknown, write
from klnumba.kernels.tiles import SPACE, SPARE, STEP, fill, vector_sum

# Numbers of the row of each cell, in `more`: both means, two places for the derivatives, and what `refer` says.
AT_REFS = 4
assert (AT_REFS + REFS) * PLACE <= ROOM
AT = 8 * (GROUP + 1)  # in `space`
assert AT + SPARE + REFS <= SPACE

_common_mass = scalar(common_mass)


@part
def levelled(c: Any, d: Any, work: Any, at: Any) -> Any:
    """Bring the sums of a row within a power of two, in `c` and in the buffers; what `level` says of it."""
    numbers = level(c)
    up, vp, c[2], c[3], c[4], c[5], c[6], c[7] = numbers
    for k in range(at, at + d):
        work[k] *= up
        work[PLACE + k] *= vp
    for i in range(2, SCALES):
        fill(work, (i + 1) * PLACE + at, d, c[i])
    return numbers


def flat_loop(slope: Slope, normalize: bool, side: int) -> Any:
    cell = slope_of(slope, normalize, side)

    @part
    def flat(work: Any, count: Any, more: Any, out: Any, weight: Any, by_share: Any) -> None:
        """The derivatives of the cells of a group of rows by those of p, or of q."""
        x, y = work[0:count], work[PLACE : PLACE + count]
        h, he = work[3 * PLACE : 3 * PLACE + count], work[4 * PLACE : 4 * PLACE + count]
        p_mass, p_rest = work[5 * PLACE : 5 * PLACE + count], work[6 * PLACE : 6 * PLACE + count]
        q_mass, q_rest = work[7 * PLACE : 7 * PLACE + count], work[8 * PLACE : 8 * PLACE + count]
        mean = more[side * PLACE : side * PLACE + count]
        refs = more[AT_REFS * PLACE : (AT_REFS + REFS) * PLACE]
        x_p, y_p = refs[0:count], refs[PLACE : PLACE + count]
        ratio_p, rest_p = refs[2 * PLACE : 2 * PLACE + count], refs[3 * PLACE : 3 * PLACE + count]
        ratio_q, rest_q = refs[4 * PLACE : 4 * PLACE + count], refs[5 * PLACE : 5 * PLACE + count]
        told_p, told_q = refs[6 * PLACE : 6 * PLACE + count], refs[7 * PLACE : 7 * PLACE + count]
        slopes = out[side * PLACE : side * PLACE + count]
        for k in range(count):
            slopes[k] = cell(
                x[k], y[k], h[k], he[k], p_mass[k], p_rest[k], q_mass[k], q_rest[k], x_p[k], y_p[k], ratio_p[k],
                rest_p[k], ratio_q[k], rest_q[k], told_p[k], told_q[k], weight, mean[k], by_share,
            )  # fmt: skip

    return flat


def rows(slope: Slope, normalize: bool) -> Callable[..., None]:
    """Rows of fewer than `exact_short.SHORT` cells."""
    refer = refer_loop(slope)
    flat_p, flat_q = flat_loop(slope, normalize, 0), flat_loop(slope, normalize, 1)
    centred_p, centred_q = slope.centred if normalize else (False, False)
    wanted = np.flatnonzero([slope.surprises] * 2 + [centred_p] * 2 + [centred_q] * 2 + [centred_p, centred_q])

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any, factors: Any, weight: Any, by_p: Any,
        by_q: Any, out_p: Any, out_q: Any, more: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        most = GROUP // d
        c = space[0:SCALES]
        found = more[2 * PLACE : 4 * PLACE]
        spare, refs = space[AT : AT + SPARE], space[AT + SPARE : AT + SPARE + REFS]
        start = 0 if (by_p and centred_p) or (by_q and centred_q) else 1
        fill(more, AT_REFS * PLACE, REFS * PLACE, 1.0)
        for first in range(0, index.size, most):
            count = min(most, index.size - first)
            cells = count * d
            whole = (cells + STEP - 1) // STEP * STEP
            for i in range(9):
                fill(work, i * PLACE + cells, whole - cells, 1.0)
            fill(more, 0, whole, 0.0)
            fill(more, PLACE, whole, 0.0)
            for r in range(count):
                state = space[8 + 8 * r : 8 + 8 * r + SIZE]
                i = index[first + r]
                prepare(p, a + i * ps, q, b + i * qs, d, normalize, state, c, work, r * d)
                state[1], state[3] = c[0], c[1]  # only the sums themselves are asked for again
                state[4], state[5] = c[4], c[6]
                if start == 0:
                    numbers = levelled(c, d, work, r * d)
                    refer(p, a + i * ps, q, b + i * qs, d, state[1], state[3], numbers, spare, refs)
                    for one in wanted:
                        fill(more, (AT_REFS + one) * PLACE + r * d, d, refs[one])
            for last in range(start, 2):
                if by_p and (last or centred_p):
                    flat_p(view, whole, more, found, weight, last == 0)
                if by_q and (last or centred_q):
                    flat_q(view, whole, more, found, weight, last == 0)
                for k in range(2):
                    if last or not (by_p and centred_p if k == 0 else by_q and centred_q):
                        continue
                    for r in range(count):
                        mass = _common_mass(work[5 * PLACE + r * d], work[7 * PLACE + r * d])
                        at = k * PLACE + r * d
                        fill(more, at, d, mean_of(vector_sum(frozen(found)[at : at + d]), 0.0) / mass)
            for r in range(count):
                state, at = space[8 + 8 * r : 8 + 8 * r + SIZE], index[first + r] * d
                factor = factors[index[first + r]]
                if not is_sound(state, normalize):
                    unknown(at, d, factor, by_p, by_q, out_p, out_q)
                    continue
                if by_p:
                    write(frozen(found), r * d, d, factor / state[4], state[1], out_p, at)
                if by_q:
                    write(frozen(found), PLACE + r * d, d, factor / state[5], state[3], out_q, at)

    return loop
