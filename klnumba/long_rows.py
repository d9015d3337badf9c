"""One row longer than `CHUNK`, in pieces of so many cells, whose states are added in their order.

What is to be read next depends on what the last read found. So a row has a plan: a generator that asks for a read of
all pieces, is sent their states, and returns the value. Which threads, or which machines, read the pieces makes no
difference to any bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from klnumba.arrays import FLOAT64, Block, Rows
from klnumba.engine import AGREE, NAMES, Task, attempts, has_mass, is_quick
from klnumba.formulas.finish import finish_difference, finish_sum, limit, middling
from klnumba.kernels import cpu, exact, fast, logs, threads
from klnumba.kernels.quick_rows import QUICK
from klnumba.kernels.tiles import CHUNK, combine

_step = cpu.step_of_long_rows


class Read(NamedTuple):
    """What to do with every piece: a loop, and what it needs to know."""

    loop: str
    cell: str = ""
    weight: float = 0.0
    normalize: bool = True
    numbers: tuple[float, ...] = ()
    sums: tuple[float, ...] = ()

    @property
    def size(self) -> int:
        """How many numbers it leaves."""
        return 2 * QUICK[self.cell].sums + 1 if self.loop in ("quick", "scaled") else exact.SIZE


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
    states = np.zeros((len(pieces), read.size))

    def one(i: int) -> None:
        stop = min(pieces[i] + CHUNK, rows.d)
        states[i] = state_of(read, rows.piece(row, pieces[i], stop).ordered(order), stop - pieces[i], rows.dtype)

    threads.run(one, range(len(pieces)), count)
    return states


# --- one piece --------------------------------------------------------------------------------------------------------


def state_of(read: Read, block: Block, cells: int, dtype: np.dtype[Any]) -> np.ndarray:
    """What a read leaves of one piece, which a block holds."""
    states = np.zeros((1, read.size))
    _LOOPS[read.loop](read, block, cells, dtype, states)
    found: np.ndarray = states[0]
    return found


def _whole(block: Block, cells: int) -> tuple[Any, ...]:
    """The piece as the loops take it: where it starts and stops, too."""
    start, stop = np.zeros(1, np.int64), np.array([cells])
    start.flags.writeable = stop.flags.writeable = False
    return block.p, block.a, block.q, block.b, start, stop


def _quick(read: Read, block: Block, cells: int, dtype: np.dtype[Any], states: np.ndarray) -> None:
    loop = cpu.quick_pieces(read.cell, NAMES[dtype.char], read.normalize)
    loop(*_whole(block, cells), 1.0, states, *threads.scratch(dtype))


def _scaled(read: Read, block: Block, cells: int, dtype: np.dtype[Any], states: np.ndarray) -> None:
    loop = cpu.scaled_pieces(read.cell, NAMES[dtype.char])
    loop(*_whole(block, cells), *read.numbers, states, *threads.scratch(dtype))


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


def _plain_logs(read: Read, block: Block, cells: int, dtype: np.dtype[Any], states: np.ndarray) -> None:
    cpu.plain_log_pieces(read.cell, NAMES[dtype.char])(*_whole(block, cells), states, *threads.scratch(dtype))


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
    "quick": _quick, "scaled": _scaled, "masses": _masses, "cells": _cells, "largest": _largest,
    "log cells": _log_cells, "log masses": _log_masses, "plain logs": _plain_logs, "places": _places,
}  # fmt: skip


# --- the plan of a row ------------------------------------------------------------------------------------------------


def plan(task: Task, d: int, dtype: np.dtype[Any]) -> Plan:
    """The reads that a row of `d` cells takes; the value is what it returns."""
    if task.name == AGREE:
        return (yield from _agreement(task, d))
    found = yield from (_of_logs if task.logs else _of_cells)(task, d, dtype)
    return min(found, limit(task.name, task.normalize))  # NaN stays


def _of_cells(task: Task, d: int, dtype: np.dtype[Any]) -> Plan:
    """A divergence of probabilities; for the entropy p is in both places."""
    if is_quick(task, d, dtype):
        one = replace(task, name="cross_entropy") if task.name == "entropy" else task
        found = yield from _quickly(one, dtype)
        if found == found:
            return found
    return (yield from _exactly(task))


def _quickly(task: Task, dtype: np.dtype[Any]) -> Plan:
    """The value from one read or, where the masses differ, from a scaled one too; NaN where that is not exact."""
    states = yield Read("quick", task.name, normalize=task.normalize)
    *sums, held = _sums(states)
    p, q = sums[-2:]
    if held < len(states) or (task.normalize and not (0.0 < p < math.inf and 0.0 < q < math.inf)):
        return math.nan
    quick = QUICK[task.name]
    finish, floor = quick.finish(dtype, task.normalize)
    found = finish(*sums, floor, fast.constants(dtype)[3])
    if not task.normalize:
        return math.nan if found == -1.0 and task.name != "kl" else found
    if found >= 0.0 or not middling(p, q):
        return found if found >= 0.0 else math.nan
    c = quick.scale(p, q)
    states = yield Read("scaled", task.name, numbers=(c,))
    *sums, held = _sums(states)
    found = quick.scaled_finish(*sums, c)
    return found if held == len(states) and found >= 0.0 else math.nan


def _sums(states: np.ndarray) -> list[float]:
    """The sums of the pieces, and how many of their guards held."""
    *pairs, held = map(float, combine(states))
    return [hi + lo for hi, lo in zip(pairs[::2], pairs[1::2], strict=True)] + [held]


def _exactly(task: Task) -> Plan:
    factors = np.ones(2)
    sums = combine((yield Read("masses", numbers=(1.0, 1.0))))
    if task.normalize:
        if not np.isfinite(sums[[0, 2]]).all():
            factors[:] = np.where(np.isfinite(sums[[0, 2]]), 1.0, exact.SHRINK)
            sums = combine((yield Read("masses", numbers=tuple(factors.tolist()))))
        _step("raise-up")(sums, factors)
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


def _of_logs(task: Task, d: int, dtype: np.dtype[Any]) -> Plan:
    if not task.normalize and is_quick(task, d, dtype):
        found = _step("value-of-logs")(*combine((yield Read("plain logs", task.name)))[:2])
        if found > -math.inf:
            return found + 0.0  # -0.0 becomes 0.0
    inverse, tail = task.inverse_temperature()
    c = np.array([0.0, 0.0, inverse, tail, 0.0, 0.0, 0.0, 0.0])
    states = yield Read("largest")
    c[:2] = states[:, :2].max(axis=0)
    if _step("barred")(c, task.normalize):
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
        found, done = _step("judge")(f if math.isinf(f) else f + fe, mass, gap, task.normalize, *marks, attempt)
        if done:
            break
        _step("sharpen")(c, mass, gap)
        if cpu.CELLS[cell][1] in logs.SURPRISES:
            normaliser = _step("log-normaliser")
            sums = (yield Read("log masses", numbers=tuple(c.tolist()))).sum(axis=0)
            c[5] = normaliser(sums[0] + sums[1], sums[2])
            c[6] = normaliser(sums[3] + sums[4], sums[5])
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
