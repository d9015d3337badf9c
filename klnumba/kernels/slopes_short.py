"""What `kernels.slopes` does, for short rows: many at a time, so that a row costs no start of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from klnumba.formulas.divergences import common_mass
from klnumba.formulas.slopes import Slope
from klnumba.kernels.compiler import part, scalar
from klnumba.kernels.exact import SCALES, SIZE
from klnumba.kernels.exact_short import GROUP, PLACE, prepare
from klnumba.kernels.instructions import frozen
from klnumba.kernels.slopes import is_sound, mean_of, slope_of, unknown, write
from klnumba.kernels.tiles import STEP, fill, vector_sum

_common_mass = scalar(common_mass)


def rows(slope: Slope, normalize: bool) -> Callable[..., None]:
    """Rows of fewer than `exact_short.SHORT` cells."""
    cell = slope_of(slope, normalize)
    centred_p, centred_q = slope.centred if normalize else (False, False)

    @part
    def flat(work: Any, count: Any, more: Any, out: Any, weight: Any, by_share: Any, by_p: Any, by_q: Any) -> None:
        """The derivatives of the cells of a group of rows, by p in the first place of `out`, by q in the second."""
        x, y = work[0:count], work[PLACE : PLACE + count]
        h, he = work[3 * PLACE : 3 * PLACE + count], work[4 * PLACE : 4 * PLACE + count]
        p_mass, p_rest = work[5 * PLACE : 5 * PLACE + count], work[6 * PLACE : 6 * PLACE + count]
        q_mass, q_rest = work[7 * PLACE : 7 * PLACE + count], work[8 * PLACE : 8 * PLACE + count]
        mean_p, mean_q = more[0:count], more[PLACE : PLACE + count]
        us, vs = out[0:count], out[PLACE : PLACE + count]
        for k in range(count):
            du, dv = cell(
                x[k], y[k], h[k], he[k], p_mass[k], p_rest[k], q_mass[k], q_rest[k], weight, mean_p[k], mean_q[k],
                by_share,
            )  # fmt: skip
            if by_p:
                us[k] = du
            if by_q:
                vs[k] = dv

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any, factors: Any, weight: Any, by_p: Any,
        by_q: Any, out_p: Any, out_q: Any, more: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        most = GROUP // d
        c = space[0:SCALES]
        found = more[2 * PLACE : 4 * PLACE]
        start = 0 if (by_p and centred_p) or (by_q and centred_q) else 1
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
            for last in range(start, 2):
                flat(view, whole, more, found, weight, last == 0, by_p, by_q)
                for k in range(2):
                    if last or not (by_p if k == 0 else by_q):
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
