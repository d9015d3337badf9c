"""Few long rows: a block a piece, and the sums of the pieces combined in their order by the block that ends last.

What one block does at once for a row, here goes in stages, each a kernel: its blocks take the pieces of all rows, and
the last block of a row draws the conclusion (`step`). A row keeps its numbers from stage to stage in `memory`, and
takes no part any more once its value is found. Which block is the last has no effect on any value.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from klnumba.kernels.cuda.choice import PIECE
from klnumba.kernels.cuda.flat import THREADS
from klnumba.kernels.cuda.target import apart, cuda, kernel, noinline, piece, shared
from klnumba.kernels.cuda.team import joined, team

SUMS = 6  # numbers that a piece leaves: three double-doubles
MEMORY = 16  # numbers that a row keeps; two of them, at first, are
INVERSE = 10  # 1/temperature and what its rounding left


@piece
def highest(x: Any, y: Any) -> Any:
    """The larger of two numbers; a NaN wins."""
    return y if y > x or y != y else x


def stage(label: str, work: Any, step: Any, threads: int, maxima: int = 0) -> Any:
    """The kernel of one stage.

    `work(p, o, q, u, cells, row_p, row_q, d, m, weight, lane, room)` gives the sums of a piece; the first `maxima` of
    the three are not sums but the largest of something. `step(m, a, ae, b, be, e, ee, weight)` gives the value of a row
    and whether it stands, and may change `m`, the row's memory. A NaN stands in the `final` stage alone.
    """
    together = team(threads, threads)
    add_three, shared_room = together.add_three, shared(max(together.size, threads))

    @piece
    def best(x: Any, lane: Any, room: Any) -> Any:
        """The largest of the block's numbers."""
        room[lane] = x
        cuda.syncthreads()
        for k in range(threads):
            x = highest(x, room[k])
        cuda.syncthreads()
        return x

    @piece
    def combined(states: Any, first: Any, count: Any, lane: Any, room: Any) -> Any:
        """The pieces of a row, in an order that their number decides."""
        a = -math.inf if maxima > 0 else 0.0
        b = -math.inf if maxima > 1 else 0.0
        ae = be = e = ee = 0.0
        for k in range(first + lane, first + count, threads):
            at = SUMS * k
            if maxima > 0:
                a = highest(a, states[at])
            else:
                a, ae = joined(a, ae, states[at], states[at + 1])
            if maxima > 1:
                b = highest(b, states[at + 2])
            else:
                b, be = joined(b, be, states[at + 2], states[at + 3])
            e, ee = joined(e, ee, states[at + 4], states[at + 5])
        top = best(a, lane, room) if maxima > 0 else a
        second = best(b, lane, room) if maxima > 1 else b
        a, ae, b, be, e, ee = add_three(
            0.0 if maxima > 0 else a, ae, 0.0 if maxima > 1 else b, be, e, ee, room
        )  # fmt: skip
        return top if maxima > 0 else a, ae, second if maxima > 1 else b, be, e, ee

    @apart
    def concluded(states: Any, first: Any, count: Any, m: Any, weight: Any, lane: Any, room: Any) -> Any:
        noinline()
        a, ae, b, be, e, ee = combined(states, first, count, lane, room)
        return step(m, a, ae, b, be, e, ee, weight)

    def pieces(
        p: Any, ps: Any, q: Any, qs: Any, n: Any, d: Any, weight: Any, unit: Any, final: Any,
        memory: Any, states: Any, tickets: Any, todo: Any, out: Any,
    ) -> None:  # fmt: skip
        room = shared_room()
        m = cuda.local.array(MEMORY, np.float64)
        lane = np.int64(cuda.threadIdx.x)
        count = (d + PIECE - 1) // PIECE
        for item in range(np.int64(cuda.blockIdx.x), n * count, np.int64(cuda.gridDim.x)):
            r = item // count
            if todo[r] != 0:
                start = item % count * PIECE
                o, u = r * ps, r * qs
                for k in range(MEMORY):
                    m[k] = memory[r * MEMORY + k]
                cells = min(PIECE, d - start)
                a, ae, b, be, e, ee = work(p, o + start, q, u + start, cells, o, u, d, m, weight, lane, room)
                if lane == 0:
                    at = SUMS * item
                    states[at], states[at + 1], states[at + 2] = a, ae, b
                    states[at + 3], states[at + 4], states[at + 5] = be, e, ee
                    cuda.threadfence()
                    room[0] = np.float64(cuda.atomic.add(tickets, r, 1))
                    cuda.threadfence()
                cuda.syncthreads()
                last = room[0] == np.float64(count - 1)
                cuda.syncthreads()
                if last:
                    value, stands = concluded(states, r * count, count, m, weight, lane, room)
                    if lane == 0:
                        tickets[r] = 0
                        for k in range(MEMORY):
                            memory[r * MEMORY + k] = m[k]
                        if stands and (value == value or final):
                            out[r] = value / unit
                            todo[r] = 0

    return kernel(pieces, f"pieces-{label}", threads)


@functools.cache
def start() -> Any:
    """Every row has all before it."""

    def ready(memory: Any, tickets: Any, todo: Any, inverse: Any, tail: Any) -> None:
        for i in range(np.int64(cuda.grid(1)), memory.size, np.int64(cuda.gridsize(1))):
            place = i % MEMORY
            memory[i] = inverse if place == INVERSE else (tail if place == INVERSE + 1 else 0.0)
            if i < todo.size:
                tickets[i], todo[i] = 0, 1

    return kernel(ready, "pieces-start", THREADS)
