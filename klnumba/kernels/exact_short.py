"""What `kernels.exact` does, for short rows: many at a time, so that a row costs no start of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.divergences import common_mass, multipliers, on_common_mass, scaled
from klnumba.formulas.elementary import two_sum
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.exact import SCALES, SHRINK, SIZE, raise_up, scales
from klnumba.kernels.tiles import SCRATCH, SPACE, STEP, fill, raise_to, vector_sum

SHORT = 128  # rows shorter than this come here
GROUP = 256  # cells of several rows
PLACE = GROUP + STEP  # a buffer: x, y, the cells, then six numbers of the row of each cell
assert 9 * PLACE <= SCRATCH
assert 8 * (GROUP + 1) <= SPACE

_two_sum = scalar(two_sum)
_on_common_mass, _multipliers, _common_mass = scalar(on_common_mass), scalar(multipliers), scalar(common_mass)
_scaled = scalar(scaled)


@helper
def mass(a: Any, start: Any, d: Any, factor: Any, state: Any, i: Any) -> None:
    """state[i] + state[i + 1] = the sum of the cells times `factor`; state[6] counts the negative ones."""
    cells = a[start : start + d]
    hi = lo = negative = 0.0
    for k in range(d):
        hi, e = _two_sum(hi, np.float64(cells[k]) * factor)
        lo += e
        negative += cells[k] < 0.0
    state[i], state[i + 1] = _two_sum(hi, lo) if abs(hi) < np.inf else (hi, 0.0)
    state[6] += negative


@helper
def scaled_row(a: Any, start: Any, d: Any, factor: Any, work: Any, at: Any) -> None:
    cells = a[start : start + d]
    place = work[at : at + d]
    for k in range(d):
        place[k] = _scaled(np.float64(cells[k]), factor)


@part
def prepare(p: Any, a: Any, q: Any, b: Any, d: Any, normalize: Any, state: Any, c: Any, work: Any, at: Any) -> None:
    """The sums of one row, and its cells and scales in the buffers."""
    c[0], c[1] = 1.0, 1.0
    for attempt in range(2):
        state[6] = 0.0
        mass(p, a, d, c[0], state, 0)
        mass(q, b, d, c[1], state, 2)
        if attempt == 1 or not normalize or (state[0] < np.inf and state[2] < np.inf):
            break
        c[0] = 1.0 if state[0] < np.inf else SHRINK  # the other side may be as small as numbers are
        c[1] = 1.0 if state[2] < np.inf else SHRINK
    if normalize:
        raise_up(state, c)
    scales(state, normalize, c)
    scaled_row(p, a, d, c[0], work, at)
    scaled_row(q, b, d, c[1], work, PLACE + at)
    for i in range(2, SCALES):
        fill(work, (i + 1) * PLACE + at, d, c[i])


def rows(cell: Callable[..., Any], finish: Callable[..., Any], *, largest: bool = False) -> Callable[..., None]:
    """Rows of fewer than `SHORT` cells, those named in `index`."""
    cell, finish = scalar(cell), scalar(finish)

    @part
    def flat(work: Any, count: Any, weight: Any, out: Any) -> None:
        x, y = work[0:count], work[PLACE : PLACE + count]
        h, he = work[3 * PLACE : 3 * PLACE + count], work[4 * PLACE : 4 * PLACE + count]
        p_mass, p_rest = work[5 * PLACE : 5 * PLACE + count], work[6 * PLACE : 6 * PLACE + count]
        q_mass, q_rest = work[7 * PLACE : 7 * PLACE + count], work[8 * PLACE : 8 * PLACE + count]
        for k in range(count):
            u, ue, v, ve = _multipliers(h[k], he[k], p_mass[k], q_mass[k])
            pk, qk, gap, low, above_p, above_q = _on_common_mass(
                x[k], y[k], u, ue, v, ve, p_mass[k], p_rest[k], q_mass[k], q_rest[k]
            )
            out[k] = cell(pk, qk, gap, low, _common_mass(p_mass[k], q_mass[k]), above_p, above_q, weight)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any,
        normalize: Any, weight: Any, out: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        most = GROUP // d
        c = space[0:SCALES]
        for first in range(0, index.size, most):
            count = min(most, index.size - first)
            for r in range(count):
                i = index[first + r]
                state = space[8 + 8 * r : 8 + 8 * r + SIZE]
                prepare(p, a + i * ps, q, b + i * qs, d, normalize, state, c, work, r * d)
            cells = count * d
            rest = -cells % STEP
            for i in range(9):
                fill(work, i * PLACE + cells, rest, 1.0)
            flat(view, cells + rest, weight, work[2 * PLACE : 3 * PLACE])
            for r in range(count):
                state = space[8 + 8 * r : 8 + 8 * r + SIZE]
                at = 2 * PLACE + r * d
                if largest:
                    state[4], state[5] = -np.inf, 0.0
                    raise_to(state, np.int64(4), view, at, d)
                else:
                    state[4], state[5] = vector_sum(view[at : at + d]), 0.0
                common = _common_mass(work[5 * PLACE + r * d], work[7 * PLACE + r * d])
                out[index[first + r]] = finish(
                    state[0], state[1], state[2], state[3], state[4], state[5], state[6], common, normalize
                )

    return loop
