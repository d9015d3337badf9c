"""One row longer than `CHUNK`, in pieces of so many cells, whose states are added in their order.

What is to be read next depends on what the last read found. So a row has a plan: a generator that asks for a read of
all pieces, is sent their states, and returns the value. Which threads, or which machines, read the pieces makes no
difference to any bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import numpy as np

from klnumba.arrays import FLOAT64, Block, Rows
from klnumba.engine import AGREE, NAMES, Task, attempts, has_mass
from klnumba.formulas.finish import finish_difference, finish_sum, kl_finish, kl_finish_difference, limit
from klnumba.kernels import cpu, exact, fast, logs, threads
from klnumba.kernels.tiles import CHUNK, combine

STATE = exact.SIZE  # float64 numbers that a read leaves of a piece


class Read(NamedTuple):
    """What to do with every piece: a loop, and what it needs to know."""

    loop: str
    cell: str = ""
    weight: float = 0.0
    normalize: bool = True
    numbers: tuple[float, ...] = ()
    sums: tuple[float, ...] = ()


Plan = Generator[Read, np.ndarray, Any]


def starts(d: int) -> range:
    """Where the pieces of a row of `d` cells begin."""
    return range(0, d, CHUNK)


def value(task: Task, rows: Rows, row: int, count: int, order: str) -> Any:
    """The divergence of one row, on so many threads."""
    running = plan(task, rows.d, rows.dtype)
    try:
        read = next(running)
        while True:
            read = running.send(_states(read, rows, row, count, order))
    except StopIteration as end:
        return end.value


def _states(read: Read, rows: Rows, row: int, count: int, order: str) -> np.ndarray:
    pieces = starts(rows.d)
    states = np.zeros((len(pieces), STATE))

    def one(i: int) -> None:
        stop = min(pieces[i] + CHUNK, rows.d)
        states[i] = state_of(read, rows.piece(row, pieces[i], stop).ordered(order), stop - pieces[i], rows.dtype)

    threads.run(one, range(len(pieces)), count)
    return states


# --- one piece --------------------------------------------------------------------------------------------------------


def state_of(read: Read, block: Block, cells: int, dtype: np.dtype[Any]) -> np.ndarray:
    """What a read leaves of one piece, which a block holds."""
    states = np.zeros((1, STATE))
    _LOOPS[read.loop](read, block, cells, dtype, states)
    found: np.ndarray = states[0]
    return found


def _whole(block: Block, cells: int) -> tuple[Any, ...]:
    """The piece as the loops take it: where it starts and stops, too."""
    start, stop = np.zeros(1, np.int64), np.array([cells])
    start.flags.writeable = stop.flags.writeable = False
    return block.p, block.a, block.q, block.b, start, stop


def _quick(read: Read, block: Block, cells: int, dtype: np.dtype[Any], states: np.ndarray) -> None:
    cpu.kl_pieces(NAMES[dtype.char], read.normalize)(*_whole(block, cells), states, *threads.scratch(dtype))


def _masses(read: Read, block: Block, cells: int, dtype: np.dtype[Any], states: np.ndarray) -> None:
    loop = cpu.exact_piece_sums(NAMES[dtype.char])
    loop(*_whole(block, cells), *read.numbers, states, *threads.scratch(FLOAT64))


def _cells(read: Read, block: Block, cells: int, dtype: np.dtype[Any], states: np.ndarray) -> None:
    loop, sums = cpu.exact_piece_cells(read.cell, NAMES[dtype.char]), np.array(read.sums)
    loop(
        *_whole(block, cells), *read.numbers, sums, read.normalize, read.weight, states, *threads.scratch(FLOAT64)
    )  # fmt: skip


def _largest(read: Read, block: Block, cells: int, dtype: np.dtype[Any], states: np.ndarray) -> None:
    cpu.log_piece_largest(NAMES[dtype.char])(*_whole(block, cells), states, threads.scratch(FLOAT64)[2])


def _log_cells(read: Read, block: Block, cells: int, dtype: np.dtype[Any], states: np.ndarray) -> None:
    loop, c = cpu.log_piece_sweep(read.cell, NAMES[dtype.char]), np.array(read.numbers)
    loop(*_whole(block, cells), c, read.weight, states, *threads.scratch(FLOAT64))


def _log_masses(read: Read, block: Block, cells: int, dtype: np.dtype[Any], states: np.ndarray) -> None:
    loop, c = cpu.log_piece_rest(NAMES[dtype.char]), np.array(read.numbers)
    loop(*_whole(block, cells), c, states, *threads.scratch(FLOAT64))


def _places(read: Read, block: Block, cells: int, dtype: np.dtype[Any], states: np.ndarray) -> None:
    """The first largest cells of p and of q, each with its place in the piece; NaN where one is below `numbers[0]`."""
    for k, (flat, start) in enumerate(((block.p, block.a), (block.q, block.b))):
        part = flat[start : start + cells]
        at = int(part.argmax())
        states[0, 2 * k : 2 * k + 2] = math.nan if part.min() < read.numbers[0] else part[at], at


_LOOPS: dict[str, Callable[[Read, Block, int, np.dtype[Any], np.ndarray], None]] = {
    "quick": _quick, "masses": _masses, "cells": _cells, "largest": _largest, "log cells": _log_cells,
    "log masses": _log_masses, "places": _places,
}  # fmt: skip


# --- the plan of a row ------------------------------------------------------------------------------------------------


def plan(task: Task, d: int, dtype: np.dtype[Any]) -> Plan:
    """The reads that a row of `d` cells takes; the value is what it returns."""
    if task.name == AGREE:
        return (yield from _agreement(task, d))
    if not task.logs and task.name == "kl":
        found = yield from (_quickly if task.normalize else _quickly_plain)(dtype)
        if found == found:
            return found
    found = yield from (_of_logs if task.logs else _exactly)(task)
    return min(found, limit(task.name, task.normalize))  # NaN stays


def _quickly(dtype: np.dtype[Any]) -> Plan:
    """KL of normalised probabilities from one read, or NaN where that is not exact."""
    states = yield Read("quick")
    g, ge, p, pe, q, qe, held = map(float, combine(states))
    if held < len(states) or not 0.0 < p + pe < math.inf:
        return math.nan
    found = kl_finish(g + ge, p + pe, q + qe, *fast.constants(dtype)[2:])
    return found if found >= 0.0 else math.nan


def _quickly_plain(dtype: np.dtype[Any]) -> Plan:
    """The same of probabilities that are taken as they are."""
    states = yield Read("quick", normalize=False)
    g, ge, d, de, e, ee, held = map(float, combine(states))
    if held < len(states):
        return math.nan
    return kl_finish_difference(g + ge, d + de, e + ee, fast.plain_floor(dtype), fast.constants(dtype)[3])


def _exactly(task: Task) -> Plan:
    factors = np.ones(2)
    sums = combine((yield Read("masses", numbers=(1.0, 1.0))))
    if task.normalize:
        if not np.isfinite(sums[[0, 2]]).all():
            factors[:] = np.where(np.isfinite(sums[[0, 2]]), 1.0, exact.SHRINK)
            sums = combine((yield Read("masses", numbers=tuple(factors.tolist()))))
        exact.raise_up(sums, factors)
    if task.name == "kl" and not task.normalize:
        found = yield from _finished("kl", task, sums, factors, finish_difference)
        return (yield from _finished("rel_entr", task, sums, factors, finish_sum)) if found != found else found
    return (yield from _finished(task.name, task, sums, factors, cpu.finish_of(task.name)))


def _finished(name: str, task: Task, sums: np.ndarray, factors: np.ndarray, finish: Callable[..., float]) -> Plan:
    states = yield Read(
        "cells", name, task.weight, task.normalize, tuple(factors.tolist()), tuple(sums.tolist())
    )  # fmt: skip
    common = float(states[0, 6])
    g, ge = combine(states, 4 if name == cpu.LARGEST else None)[4:6]
    p, pe, q, qe, _, _, negative = map(float, sums)
    return float(finish(p, pe, q, qe, float(g), float(ge), negative, common, task.normalize))


def _of_logs(task: Task) -> Plan:
    inverse, tail = task.inverse_temperature()
    c = np.array([0.0, 0.0, inverse, tail, 0.0, 0.0, 0.0, 0.0])
    states = yield Read("largest")
    c[:2] = states[:, :2].max(axis=0)
    if logs.barred(c, task.normalize):
        return math.nan
    found = math.nan
    for cell, weight in attempts(task):
        found = yield from _log_value(task, cell, weight, c)
        if found == found:
            break
    return found


def _log_value(task: Task, cell: str, weight: float, c: np.ndarray) -> Plan:
    found = math.nan
    marks = cell == "kl", cell == cpu.LARGEST, cell == "rel_entr", weight
    for attempt in range(logs.ROUNDS):
        states = yield Read("log cells", cell, weight, numbers=tuple(c.tolist()))
        f, fe, mass, low_mass, gap, low_gap, _ = map(float, combine(states, 0 if cell == cpu.LARGEST else None))
        mass, gap = mass + low_mass, gap + low_gap
        found, done = logs.judge(f if math.isinf(f) else f + fe, mass, gap, task.normalize, *marks, attempt)
        if done:
            break
        logs.sharpen(c, mass, gap)
        if cpu.CELLS[cell][1] in logs.SURPRISES:
            sums = (yield Read("log masses", numbers=tuple(c.tolist()))).sum(axis=0)
            c[5] = logs.log_normaliser(sums[0] + sums[1], sums[2])
            c[6] = logs.log_normaliser(sums[3] + sums[4], sums[5])
    return float(found)


def _agreement(task: Task, d: int) -> Plan:
    """Whether the first largest cells of p and q are one: a later piece wins only if it is larger."""
    states = yield Read("places", numbers=(-math.inf if task.logs else 0.0,))
    places = []
    for k in (0, 2):
        best = int(states[:, k].argmax())  # finds a NaN first
        if not has_mass(task, states[best, k]):
            return False
        places.append(starts(d)[best] + int(states[best, k + 1]))
    return places[0] == places[1]
