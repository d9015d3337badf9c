"""The log-ratio of the sums of two rows of logits, guessed from their first cells, which need not be right."""

from __future__ import annotations

from typing import Any

import numpy as np

from klnumba.formulas.elementary import log
from klnumba.formulas.logit_cells import LARGEST, SMALLEST, rough_power
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.lanes import LANES, added, largest, on_stack
from klnumba.kernels.logit_quick import NEAR_BITS, size_bits
from klnumba.kernels.logit_tiles import placing
from klnumba.kernels.tiles import TILE, ask

_log = scalar(log)


def rough_sums(line: int) -> Any:
    """(the sum of p, that of q, whether a cell is far) of a tile, in float32."""
    power = scalar(rough_power)
    vectors, lanes = on_stack(3), LANES
    mass, other, far = range(0, 3 * LANES, LANES)

    @helper
    def sums(x: Any, y: Any) -> Any:
        state = vectors()
        state[:] = np.float32(0.0)
        signed = state.view(np.int32)
        for start in range(0, x.size, 2 * lanes):
            u, v = x[start : start + 2 * lanes], y[start : start + 2 * lanes]
            ask(u, v, TILE, 2 * lanes, line)
            for k in range(lanes):
                a, b = np.float32(u[k]), np.float32(v[k])
                c, d = np.float32(u[lanes + k]), np.float32(v[lanes + k])
                state[mass + k] += power(a) + power(c)
                state[other + k] += power(b) + power(d)
                signed[far + k] = max(max(signed[far + k], size_bits(a - b)), size_bits(c - d))
        return added(state, mass), added(state, other), largest(signed, far) >= NEAR_BITS

    return sums


def guessing(dtype: Any) -> Any:
    """(the log-ratio of the sums of the first cells, or 0 where they tell none; whether one of these is far)."""
    real, place, sums = dtype.type, placing(dtype), rough_sums(64 // dtype.itemsize)

    @part
    def guess(p: Any, o: Any, q: Any, u: Any, head: Any, inverse: Any, work: Any, view: Any) -> Any:
        mass = other = 0.0
        far = False
        for start in range(0, head, TILE):
            count = min(TILE, head - start)
            x, y = place(p, o + start, q, u + start, count, 0.0, inverse, work, view)
            more, more_other, so = sums(x, y)
            mass += np.float64(more)
            other += np.float64(more_other)
            far |= so
        usable = SMALLEST < mass < LARGEST and SMALLEST < other < LARGEST
        return (np.float64(real(_log(mass / other))) if usable else 0.0), far

    return guess
