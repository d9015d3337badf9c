"""KL of long rows of logits, in the arithmetic of the input: the exponentials and their sums, then the cells.

The exponentials of a row wait in memory of the thread's own. A row whose KL is
so small that more digits are wanted, whose logits are far from zero, or that
holds a zero of q where p has none, is flagged and left to `kernels.logs`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.elementary import log
from klnumba.kernels.compiler import helper, prefetch, scalar
from klnumba.kernels.fast import AHEAD
from klnumba.kernels.tiles import BUFFER, STEP, add, total

# KL below which the error of the ratio of the sums, t (about 2**-22 and 2**-50), shows as t*t/2.
LEAST = {"float64": 2.0**-44, "float32": 2.0**-18}
# The sums that a row may have: no exponential is near overflow, and those that are zero would add nothing.
SMALLEST, LARGEST = 2.0**-40, 2.0**80

TILE = 512

_log = scalar(log)


def rows(cells: tuple[Callable[..., Any], Callable[..., Any]], dtype: Any) -> Callable[..., None]:
    real, least = dtype.type, LEAST[dtype.name]
    powers, kl = scalar(cells[0]), scalar(cells[1])
    line, ahead = 64 // dtype.itemsize, AHEAD // dtype.itemsize
    none = real(-math.inf)

    @helper
    def first(x: Any, y: Any, inverse: Any, ps: Any, qs: Any) -> None:
        for k in range(x.size):
            ps[k], qs[k] = powers(x[k], y[k], inverse)

    @helper
    def second(x: Any, y: Any, ps: Any, qs: Any, inverse: Any, shift: Any, rest: Any, ratio: Any, out: Any) -> None:
        for k in range(x.size):
            out[k] = kl(x[k], y[k], ps[k], qs[k], inverse, shift, rest, ratio)

    @helper
    def end(a: Any, start: Any, count: Any, work: Any, at: Any) -> None:
        """The end of a row, filled up to a multiple of `STEP` with zeros, logarithms of -inf."""
        cells = a[start : start + count]
        place = work[at : at + (count + STEP - 1) // STEP * STEP]
        for k in range(place.size):
            place[k] = none
        for k in range(count):
            place[k] = cells[k]

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any, inverse: Any,
        powers_p: Any, powers_q: Any, out: Any, flag: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        state, tree = space[0:8], space[8 : 8 + TILE // 4]
        scale = real(inverse)
        for r in range(n):
            o, u = a + r * ps, b + r * qs
            state[0:6] = 0.0
            for start in range(0, d, TILE):
                count = min(TILE, d - start)
                for k in range(0, count, line):
                    prefetch(p, o + start + k + ahead)
                    prefetch(q, u + start + k + ahead)
                x, i, y, j = p, o + start, q, u + start
                if count % STEP:
                    end(p, i, count, work, 0)
                    end(q, j, count, work, BUFFER)
                    count = (count + STEP - 1) // STEP * STEP
                    x, i, y, j = view, np.int64(0), view, np.int64(BUFFER)
                ep, eq = powers_p[start : start + count], powers_q[start : start + count]
                first(x[i : i + count], y[j : j + count], scale, ep, eq)
                add(state, np.int64(2), total(powers_p, start, count, tree))
                add(state, np.int64(4), total(powers_q, start, count, tree))
            mass, other = state[2] + state[3], state[4] + state[5]
            flag[r] = 1
            if not (SMALLEST < mass < LARGEST and SMALLEST < other < LARGEST):
                continue
            shift = _log(mass / other)
            whole = real(shift)
            rest = real(shift - np.float64(whole))
            ratio = real(mass / other)
            for start in range(0, d, TILE):
                count = min(TILE, d - start)
                x, i, y, j = p, o + start, q, u + start
                if count % STEP:
                    end(p, i, count, work, 0)
                    end(q, j, count, work, BUFFER)
                    count = (count + STEP - 1) // STEP * STEP
                    x, i, y, j = view, np.int64(0), view, np.int64(BUFFER)
                ep, eq = powers_p[start : start + count], powers_q[start : start + count]
                place = work[2 * BUFFER : 2 * BUFFER + count]
                second(x[i : i + count], y[j : j + count], ep, eq, scale, whole, rest, ratio, place)
                add(state, np.int64(0), total(work, np.int64(2 * BUFFER), count, tree))
            value = (state[0] + state[1]) / mass
            out[r] = value
            flag[r] = not (least <= value < math.inf or (value == 0.0 and mass == other))

    return loop
