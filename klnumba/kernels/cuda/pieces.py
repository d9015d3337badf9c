"""Few long rows: blocks take pieces of them, and the sums of the pieces are combined in their order.

What one block does at once for a row of middle length, here goes in steps. All blocks take pieces from one queue, those
of all rows for the first step, then those for the second; the block that finishes the last piece of a row draws the
conclusion of the step, for which the row's next step waits. No block waits for one that has not begun: what a piece
waits for was taken from the queue before. So all steps are one kernel, whatever the number of blocks, and which
block takes what has no effect on any value.

A row keeps its numbers from step to step in `memory`. Once its value is found, the rest of its steps is passed over.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from klnumba.kernels.cuda.flat import THREADS
from klnumba.kernels.cuda.target import apart, cuda, kernel, noinline, piece, shared
from klnumba.kernels.cuda.team import joined, team

SUMS = 6  # numbers that a piece leaves: three double-doubles
MEMORY = 16  # numbers that a row keeps; two of them, at first, are
INVERSE = 10  # 1/temperature and what its rounding left
WHATEVER = 2  # that a value stands which may be NaN
FOUND = 1 << 30  # steps that a row has behind it whose value is found


class Stage(NamedTuple):
    """A thing that is done with all pieces of a row.

    `work(p, o, q, u, cells, row_p, row_q, d, m, weight, lane, room)` gives the numbers of a piece, of which
    `concluded(states, first, count, m, weight, lane, room)` makes the value of a row and whether it stands. It may
    change `m`, the row's memory. A NaN stands in the last step alone, or where it stands `WHATEVER` it is.
    """

    label: str
    work: Any
    concluded: Any
    room: int = 0


class Step(NamedTuple):
    """One step on the way to a statistic, and what it waits for: `turn` steps before it."""

    stage: Stage
    weight: float  # NaN: the call's
    statistic: int
    turn: int
    final: bool
    order: str  # of the sides: "pq", "qp", "pp" or "qq"


@piece
def highest(x: Any, y: Any) -> Any:
    """The larger of two numbers; a NaN wins."""
    return y if y > x or y != y else x


def stage(label: str, work: Any, step: Any, threads: int, maxima: int = 0) -> Stage:
    """A stage of which `step(m, a, ae, b, be, e, ee, weight)` makes a row's value, from the sums over its pieces.

    The first `maxima` of the three are not sums but the largest of something.
    """
    together = team(threads, threads)
    add_three = together.add_three

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

    @piece
    def concluded(states: Any, first: Any, count: Any, m: Any, weight: Any, lane: Any, room: Any) -> Any:
        a, ae, b, be, e, ee = combined(states, first, count, lane, room)
        return step(m, a, ae, b, be, e, ee, weight)

    return Stage(label, work, concluded, max(together.size, threads))


def called(function: Any, arguments: int) -> Any:
    """The work of a stage, or its conclusion, as a function of its own."""
    if arguments == 7:

        @apart
        def concluded(states: Any, first: Any, count: Any, m: Any, weight: Any, lane: Any, room: Any) -> Any:
            noinline()
            return function(states, first, count, m, weight, lane, room)

        return concluded

    @apart
    def work(p: Any, o: Any, q: Any, u: Any, cells: Any, row_p: Any, row_q: Any, d: Any, m: Any, weight: Any,
             lane: Any, room: Any) -> Any:  # fmt: skip
        noinline()
        return function(p, o, q, u, cells, row_p, row_q, d, m, weight, lane, room)

    return work


def works(stages: tuple[Stage, ...], inline: int) -> Any:
    """The work of the k-th of some stages; of the first `inline` it is a part of the kernel."""
    last = len(stages) - 1
    mine = stages[last].work if last < inline else called(stages[last].work, 12)
    others: Any = works(stages[:-1], inline) if last else None

    @piece
    def work(which: Any, p: Any, o: Any, q: Any, u: Any, cells: Any, row_p: Any, row_q: Any, d: Any, m: Any,
             weight: Any, lane: Any, room: Any) -> Any:  # fmt: skip
        if last == 0 or which == last:
            return mine(p, o, q, u, cells, row_p, row_q, d, m, weight, lane, room)
        return others(which, p, o, q, u, cells, row_p, row_q, d, m, weight, lane, room)

    return work


def conclusions(stages: tuple[Stage, ...]) -> Any:
    """What the k-th of some stages concludes."""
    last = len(stages) - 1
    mine = called(stages[last].concluded, 7)
    others: Any = conclusions(stages[:-1]) if last else None

    @piece
    def concluded(which: Any, states: Any, first: Any, count: Any, m: Any, weight: Any, lane: Any, room: Any) -> Any:
        if last == 0 or which == last:
            return mine(states, first, count, m, weight, lane, room)
        return others(which, states, first, count, m, weight, lane, room)

    return concluded


def writer(statistics: int) -> Any:
    """What puts a number into the k-th of some arrays."""
    last = statistics - 1
    others: Any = writer(last) if last else None

    @piece
    def put(outs: Any, which: Any, r: Any, value: Any) -> None:
        if last == 0 or which == last:
            outs[last][r] = value
        else:
            others(outs, which, r, value)

    return put


def kernel_of(label: str, steps: tuple[Step, ...], units: tuple[bool, ...], threads: int, resident: int) -> Any:
    """The kernel of some steps, whose values are in the call's unit or, as `units` says, in none."""
    distinct = tuple(dict.fromkeys(step.stage for step in steps))
    work, concluded, put = works(distinct, 1), conclusions(distinct), writer(len(units))
    total, shared_room = len(steps), shared(max(max(stage.room for stage in distinct), threads))
    which_of = tuple(distinct.index(step.stage) for step in steps)
    weight_of, turn_of, final_of = (
        tuple(column) for column in zip(*((s.weight, s.turn, s.final) for s in steps), strict=True)
    )
    statistic_of = tuple(step.statistic for step in steps)
    end_of = tuple(1 + max(k for k, other in enumerate(steps) if other.statistic == s.statistic) for s in steps)
    first_is_p, second_is_p = (tuple(step.order[k] == "p" for step in steps) for k in (0, 1))

    @piece
    def told(number: Any, lane: Any, room: Any) -> Any:
        """The first thread's number, for all threads."""
        if lane == 0:
            room[0] = np.float64(number)
        cuda.syncthreads()
        found = np.int64(room[0])
        cuda.syncthreads()
        return found

    @piece
    def taken(queue: Any, lane: Any, room: Any) -> Any:
        """The block's next piece."""
        number = np.int64(0)
        if lane == 0:
            number = np.int64(cuda.atomic.add(queue, 0, 1))
        # Behind a name: Python's compiler makes two of a call that ends a function, one in each branch before it.
        found = told(number, lane, room)
        return found  # noqa: RET504

    @piece
    def awaited(reached: Any, row: Any, turn: Any, lane: Any, room: Any) -> Any:
        """How many steps a row has behind it, once those are `turn`."""
        now = 0
        if lane == 0:
            now = cuda.atomic.add(reached, row, 0)
            while now < turn:
                now = cuda.atomic.add(reached, row, 0)
            cuda.threadfence()
        return told(now, lane, room)

    @piece
    def is_last(tickets: Any, row: Any, count: Any, lane: Any, room: Any) -> Any:
        """Whether the other pieces of a row are done; what they left can then be read."""
        ticket = 0
        if lane == 0:
            cuda.threadfence()
            ticket = cuda.atomic.add(tickets, row, 1)
            cuda.threadfence()
        return told(ticket, lane, room) == count - 1

    def pieces(
        p: Any, ps: Any, q: Any, qs: Any, n: Any, d: Any, size: Any, weight: Any, unit: Any,
        memory: Any, states: Any, queue: Any, tickets: Any, reached: Any, outs: Any,
    ) -> None:  # fmt: skip
        room = shared_room()
        m = cuda.local.array(MEMORY, np.float64)
        lane = np.int64(cuda.threadIdx.x)
        count = (d + size - 1) // size
        items = n * count
        while True:
            place = taken(queue, lane, room)
            if place >= total * items:
                break
            at, item = place // items, place % items
            r, s = item // count, statistic_of[at]
            row = s * n + r
            if awaited(reached, row, turn_of[at], lane, room) != turn_of[at]:
                continue
            start = item % count * size
            cells = min(size, d - start)
            limit = weight_of[at] if weight_of[at] == weight_of[at] else weight
            x, i = (p, r * ps) if first_is_p[at] else (q, r * qs)
            y, j = (p, r * ps) if second_is_p[at] else (q, r * qs)
            for k in range(MEMORY):
                m[k] = memory[row * MEMORY + k]
            a, ae, b, be, e, ee = work(which_of[at], x, i + start, y, j + start, cells, i, j, d, m, limit, lane, room)
            if lane == 0:
                to = SUMS * (s * items + item)
                states[to], states[to + 1], states[to + 2] = a, ae, b
                states[to + 3], states[to + 4], states[to + 5] = be, e, ee
            if not is_last(tickets, row, count, lane, room):
                continue
            value, stands = concluded(which_of[at], states, row * count, count, m, limit, lane, room)
            if lane == 0:
                tickets[row] = 0
                for k in range(MEMORY):
                    memory[row * MEMORY + k] = m[k]
                found = stands and (value == value or final_of[at] or stands == WHATEVER)
                if found:
                    put(outs, s, r, value / (unit if units[s] else 1.0))
                cuda.threadfence()
                cuda.atomic.exch(reached, row, FOUND if found else turn_of[at] + 1)
                if found and cuda.atomic.add(queue, 1 + s, -1) == 1:
                    cuda.atomic.max(queue, 0, end_of[at] * items)  # no row needs the other steps

    return kernel(pieces, f"pieces-{label}", threads, resident)


@functools.cache
def start() -> Any:
    """Every row has all before it."""

    def ready(n: Any, memory: Any, queue: Any, tickets: Any, reached: Any, inverse: Any, tail: Any) -> None:
        for i in range(np.int64(cuda.grid(1)), memory.size, np.int64(cuda.gridsize(1))):
            place = i % MEMORY
            memory[i] = inverse if place == INVERSE else (tail if place == INVERSE + 1 else 0.0)
            if i < reached.size:
                tickets[i], reached[i] = 0, 0
            if i < queue.size:
                queue[i] = 0 if i == 0 else n

    return kernel(ready, "pieces-start", THREADS)
