"""Which loops a call needs, and running them over blocks of rows.

KL of normalised probabilities takes one read (`kernels.fast`); the rows that
this flags are brought to a common mass and read again, and those that this
flags too go the exact way (`kernels.exact`), as every other divergence of
probabilities does. KL of normalised logarithms has its own quick way
(`kernels.logits`); what it flags, and all else of logarithms, goes through
`kernels.logs`. Short rows have loops that take many at a time. A row longer
than `CHUNK` is cut into pieces, whose sums are added in order, so that several
threads share it; its answer does not depend on how many there are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.arrays import FLOAT64, Block, Rows
from klnumba.formulas.finish import finish_difference, finish_sum, kl_finish
from klnumba.formulas.primitives import fma
from klnumba.kernels import cpu, exact, exact_short, fast, logits, logs, threads
from klnumba.kernels.tiles import CHUNK, STEP, combine

NAMES = {"d": "float64", "f": "float32"}
AGREE = "argmax_agree"


@dataclass(frozen=True)
class Task:
    """What to compute: a divergence by name, of which kind of rows, taken how."""

    name: str
    kind: str = "prob"
    normalize: bool = True
    weight: float = 0.5
    temperature: float = 1.0

    @property
    def logs(self) -> bool:
        return self.kind != "prob"

    def inverse_temperature(self) -> tuple[float, float]:
        """1/temperature and what its rounding left."""
        return _inverse(self.temperature)


@functools.lru_cache  # in exact fractions, which takes longer than a row
def _inverse(temperature: float) -> tuple[float, float]:
    inverse = 1.0 / temperature
    return inverse, fma(-inverse, temperature, 1.0) / temperature


def values(task: Task, block: Block, d: int, dtype: np.dtype[Any], out: np.ndarray) -> None:
    """Fill `out`, float64, with the divergence of every row of a block, or with whether the largest cells agree."""
    if task.name == AGREE:
        out[:] = agreement(block, d)
        return
    if task.logs:
        _logs(task, block, d, dtype, out)
    elif task.name == "kl" and task.normalize:
        _kl(block, d, dtype, out)
    elif task.name == "kl":
        _exact("kl", task, block, d, dtype, np.arange(block.count), out, difference=True)
        rest = np.flatnonzero(np.isnan(out))
        if rest.size:
            _exact("rel_entr", task, block, d, dtype, rest, out)
    else:
        _exact(task.name, task, block, d, dtype, np.arange(block.count), out)


def _kl(block: Block, d: int, dtype: np.dtype[Any], out: np.ndarray) -> None:
    flag = np.empty(block.count, np.int8)
    short, name, room = d < fast.SHORT, NAMES[dtype.char], threads.scratch(dtype)
    loop = cpu.kl_rows(name, short)
    loop(block.p, block.a, block.ps, block.q, block.b, block.qs, block.count, d, out, flag, *room)
    if np.count_nonzero(flag):
        index = _frozen(np.flatnonzero(flag))
        room = threads.scratch(FLOAT64) if short else room
        scaled = cpu.kl_rows_scaled(name, short)
        scaled(block.p, block.a, block.ps, block.q, block.b, block.qs, index, d, out, flag, *room)
        if np.count_nonzero(flag):
            _exact("kl", Task("kl"), block, d, dtype, np.flatnonzero(flag), out)


def _exact(
    name: str, task: Task, block: Block, d: int, dtype: np.dtype[Any], index: np.ndarray, out: np.ndarray,
    *, difference: bool = False,
) -> None:  # fmt: skip
    room = threads.scratch(FLOAT64)
    loop = cpu.exact_rows(name, NAMES[dtype.char], difference, d < exact_short.SHORT)
    loop(
        block.p, block.a, block.ps, block.q, block.b, block.qs, _frozen(index), d,
        task.normalize, task.weight, out, *room,
    )  # fmt: skip


def _logs(task: Task, block: Block, d: int, dtype: np.dtype[Any], out: np.ndarray) -> None:
    inverse, tail = task.inverse_temperature()
    dtype_name = NAMES[dtype.char]
    index = np.arange(block.count)
    if task.name == "kl" and task.normalize and math.frexp(inverse)[0] == 0.5:
        index = _logits(block, d, dtype, inverse, out)
        if not index.size:
            return
    room = threads.scratch(FLOAT64)
    for name, weight in _attempts(task):
        loop = cpu.log_rows(name, dtype_name)
        loop(
            block.p, block.a, block.ps, block.q, block.b, block.qs, _frozen(index), d,
            task.normalize, inverse, tail, weight, out, *room,
        )  # fmt: skip
        index = np.flatnonzero(np.isnan(out))
        if not index.size:
            return


def _logits(block: Block, d: int, dtype: np.dtype[Any], inverse: float, out: np.ndarray) -> np.ndarray:
    """KL of rows of logits, fast; the rows that this does not serve."""
    flag = np.empty(block.count, np.int8)
    if d < fast.SHORT:
        rows = block.p, block.a, block.ps, block.q, block.b, block.qs, block.count, d, inverse
        cpu.short_logit_rows(NAMES[dtype.char])(*rows, out, flag, *threads.scratch(FLOAT64))
        return np.flatnonzero(flag)
    kind = dtype if d >= logits.MANY else FLOAT64
    _long_logits(block, slice(0, block.count), d, dtype, kind, inverse, out, flag)
    if kind != FLOAT64:
        for close in _runs(np.flatnonzero(flag)):  # they are too close for float32
            _long_logits(block, close, d, dtype, FLOAT64, inverse, out, flag)
    return np.flatnonzero(flag)


def _long_logits(
    block: Block, rows: slice, d: int, dtype: np.dtype[Any], kind: np.dtype[Any], inverse: float,
    out: np.ndarray, flag: np.ndarray,
) -> None:  # fmt: skip
    """Some rows, computed as `kind`."""
    loop, first = cpu.logit_rows(NAMES[dtype.char], NAMES[kind.char]), rows.start
    loop(
        block.p, block.a + first * block.ps, block.ps, block.q, block.b + first * block.qs, block.qs,
        rows.stop - first, d, inverse, np.empty((3, d + STEP), kind), out[rows], flag[rows], *threads.scratch(dtype),
    )  # fmt: skip


def _runs(index: np.ndarray) -> list[slice]:
    """Rising numbers as stretches without a gap."""
    if not index.size:
        return []
    ends = np.flatnonzero(np.diff(index) > 1)
    starts, stops = index[np.concatenate([[0], ends + 1])], index[np.append(ends, -1)] + 1
    return [slice(a, b) for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]


def _attempts(task: Task) -> list[tuple[str, float]]:
    """The cells to try in turn, with their weights.

    KL of rows as they are may cancel in either of its two forms. There the weight is the limit on how much.
    """
    if task.name == "kl" and not task.normalize:
        forms = [(limit, name) for limit in (2.0, 8.0, 64.0) for name in ("kl", "rel_entr")]
        return [(name, limit) for limit, name in forms] + [("kl", math.inf)]
    return [(task.name, task.weight)]


def _frozen(index: np.ndarray) -> np.ndarray:
    index.flags.writeable = False
    return index


# --- one long row ---------------------------------------------------------------------------------------------------


class LongRow:
    """One row in pieces of `CHUNK` cells."""

    def __init__(self, task: Task, rows: Rows, row: int, count: int, order: str) -> None:
        self.task, self.rows, self.row, self.threads, self.order = task, rows, row, count, order
        self.starts = range(0, rows.d, CHUNK)

    def value(self) -> float:
        if self.task.name == AGREE:
            return self._agreement()
        if self.task.logs:
            return self._logs()
        if self.task.name == "kl" and self.task.normalize:
            value = self._kl()
            if value >= 0.0:
                return value
        return self._exact()

    def _sweep(self, states: np.ndarray, call: Callable[[Block, np.ndarray, np.ndarray], None]) -> np.ndarray:
        """Run `call(block, stops, states)` on every piece."""

        def piece(i: int) -> None:
            start = self.starts[i]
            stop = min(start + CHUNK, self.rows.d)
            block = self.rows.piece(self.row, start, stop).ordered(self.order)
            call(block, _frozen(np.array([stop - start])), states[i : i + 1])

        threads.run(piece, range(len(self.starts)), self.threads)
        return states

    def _states(self) -> np.ndarray:
        return np.zeros((len(self.starts), exact.SIZE))

    def _kl(self) -> float:
        dtype = self.rows.dtype
        loop = cpu.kl_pieces(NAMES[dtype.char])
        zero = _frozen(np.zeros(1, np.int64))

        def call(block: Block, stops: np.ndarray, states: np.ndarray) -> None:
            loop(block.p, block.a, block.q, block.b, zero, stops, states, *threads.scratch(dtype))

        states = self._sweep(self._states(), call)
        g, ge, p, pe, q, qe, held = map(float, combine(states))
        if held < len(states) or not 0.0 < p + pe < math.inf:
            return -1.0
        return kl_finish(g + ge, p + pe, q + qe, *fast.constants(dtype)[2:])

    def _exact(self) -> float:
        task = self.task
        factors = np.ones(2)
        sums = self._sums(1.0, 1.0)
        if task.normalize:
            if not np.isfinite(sums[[0, 2]]).all():
                factors[:] = np.where(np.isfinite(sums[[0, 2]]), 1.0, exact.SHRINK)
                sums = self._sums(float(factors[0]), float(factors[1]))
            exact.raise_up(sums, factors)
        fp, fq = map(float, factors)
        if task.name == "kl" and not task.normalize:
            value = self._cells("kl", sums, fp, fq, finish_difference)
            return self._cells("rel_entr", sums, fp, fq, finish_sum) if value != value else value
        return self._cells(task.name, sums, fp, fq, cpu.finish_of(task.name))

    def _sums(self, fp: float, fq: float) -> np.ndarray:
        loop = cpu.exact_piece_sums(NAMES[self.rows.dtype.char])
        zero = _frozen(np.zeros(1, np.int64))

        def call(block: Block, stops: np.ndarray, states: np.ndarray) -> None:
            room = threads.scratch(FLOAT64)
            loop(block.p, block.a, block.q, block.b, zero, stops, fp, fq, states, *room)

        return combine(self._sweep(self._states(), call))

    def _cells(self, name: str, sums: np.ndarray, fp: float, fq: float, finish: Callable[..., float]) -> float:
        task = self.task
        loop = cpu.exact_piece_cells(name, NAMES[self.rows.dtype.char])
        zero = _frozen(np.zeros(1, np.int64))

        def call(block: Block, stops: np.ndarray, states: np.ndarray) -> None:
            room = threads.scratch(FLOAT64)
            loop(
                block.p, block.a, block.q, block.b, zero, stops, fp, fq, sums, task.normalize, task.weight,
                states, *room,
            )  # fmt: skip

        states = self._sweep(self._states(), call)
        common = float(states[0, 6])
        g, ge = combine(states, 4 if name == cpu.LARGEST else None)[4:6]
        p, pe, q, qe, _, _, negative = map(float, sums)
        return float(finish(p, pe, q, qe, float(g), float(ge), negative, common, task.normalize))

    def _logs(self) -> float:
        task, name = self.task, NAMES[self.rows.dtype.char]
        inverse, tail = task.inverse_temperature()
        zero = _frozen(np.zeros(1, np.int64))
        c = np.array([0.0, 0.0, inverse, tail, 0.0, 0.0, 0.0, 0.0])
        largest = cpu.log_piece_largest(name)

        def first(block: Block, stops: np.ndarray, states: np.ndarray) -> None:
            largest(block.p, block.a, block.q, block.b, zero, stops, states, threads.scratch(FLOAT64)[2])

        c[:2] = self._sweep(self._states(), first)[:, :2].max(axis=0)
        if logs.barred(c, task.normalize):
            return math.nan
        value = math.nan
        for cell, weight in _attempts(task):
            value = self._log_value(cell, weight, c)
            if value == value:
                break
        return value

    def _log_value(self, cell: str, weight: float, c: np.ndarray) -> float:
        task, name = self.task, NAMES[self.rows.dtype.char]
        zero = _frozen(np.zeros(1, np.int64))
        sweep, rest = cpu.log_piece_sweep(cell, name), cpu.log_piece_rest(name)

        def second(block: Block, stops: np.ndarray, states: np.ndarray) -> None:
            room = threads.scratch(FLOAT64)
            sweep(block.p, block.a, block.q, block.b, zero, stops, c, weight, states, *room)

        def third(block: Block, stops: np.ndarray, states: np.ndarray) -> None:
            room = threads.scratch(FLOAT64)
            rest(block.p, block.a, block.q, block.b, zero, stops, c, states, *room)

        marks = cell == "kl", cell == cpu.LARGEST, cell == "rel_entr", weight
        for attempt in range(logs.ROUNDS):
            states = self._sweep(self._states(), second)
            f, fe, mass, low_mass, gap, low_gap, _ = map(float, combine(states, 0 if cell == cpu.LARGEST else None))
            mass, gap = mass + low_mass, gap + low_gap
            value, done = logs.judge(f if math.isinf(f) else f + fe, mass, gap, task.normalize, *marks, attempt)
            if done:
                break
            logs.sharpen(c, mass, gap)
            if cpu.CELLS[cell][1] in logs.SURPRISES:
                states = self._sweep(self._states(), third)
                sums = states.sum(axis=0)
                c[5] = logs.log_normaliser(sums[0] + sums[1], sums[2])
                c[6] = logs.log_normaliser(sums[3] + sums[4], sums[5])
        return float(value)

    def _agreement(self) -> bool:
        """The first largest cells of p and q, piece by piece: a later piece wins only if it is larger."""
        states = self._states()
        d = self.rows.d

        def call(block: Block, stops: np.ndarray, states: np.ndarray) -> None:
            for k, (flat, start) in enumerate(((block.p, block.a), (block.q, block.b))):
                cells = flat[start : start + int(stops[0])]
                at = int(cells.argmax())
                states[0, 2 * k : 2 * k + 2] = cells[at], at

        self._sweep(states, call)
        places = []
        for k in (0, 2):
            best = int(states[:, k].argmax())
            places.append(self.starts[best] + int(states[best, k + 1]) if not np.isnan(states[:, k]).any() else d - k)
        return places[0] == places[1]


# --- the statistic that is no divergence ----------------------------------------------------------------------------


def agreement(block: Block, d: int) -> np.ndarray:
    """Whether p and q have their first largest cell in the same place; False where one has a NaN."""
    left = _cells(block.p, block.a, block.ps, block.count, d)
    right = _cells(block.q, block.b, block.qs, block.count, d)
    first, second = left.argmax(axis=1), right.argmax(axis=1)
    rows = np.arange(block.count)
    numbers = ~(np.isnan(left[rows, first]) | np.isnan(right[rows, second]))  # argmax finds a NaN first
    same: np.ndarray = (first == second) & numbers
    return same


def _cells(flat: np.ndarray, start: int, step: int, count: int, d: int) -> np.ndarray:
    item = flat.itemsize
    return np.lib.stride_tricks.as_strided(flat[start:], (count, d), (step * item, item), writeable=False)
