"""Which loops a call needs, and running them over blocks of rows.

Three ways lead to the value of a row. KL of normalised probabilities takes one
read, and the rows that this flags a second, exact one. Every other divergence
of probabilities takes the exact way, and rows of logarithms their own. A row
longer than `CHUNK` is cut into pieces, whose sums are added in order, so that
several threads share it; its answer does not depend on how many there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.arrays import Block, Rows
from klnumba.formulas.divergences import kl_finish
from klnumba.formulas.primitives import fma
from klnumba.kernels import cpu, exact, fast, logs, threads
from klnumba.kernels.tiles import CHUNK, SCRATCH, combine

FLOAT64 = np.dtype(np.float64)


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
        inverse = 1.0 / self.temperature
        return inverse, fma(-inverse, self.temperature, 1.0) / self.temperature


def values(task: Task, block: Block, d: int, dtype: np.dtype[Any]) -> np.ndarray:
    """The divergence of every row of a block, in float64."""
    out = np.empty(block.count, np.float64)
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
    return out


def _kl(block: Block, d: int, dtype: np.dtype[Any], out: np.ndarray) -> None:
    flag = np.empty(block.count, np.int8)
    work, view = threads.scratch(dtype, SCRATCH)
    loop = cpu.kl_rows(dtype.name, d < fast.SHORT)
    loop(block.p, block.a, block.ps, block.q, block.b, block.qs, block.count, d, out, flag, work, view)
    if flag.any():
        _exact("kl", Task("kl"), block, d, dtype, np.flatnonzero(flag), out)


def _exact(
    name: str, task: Task, block: Block, d: int, dtype: np.dtype[Any], index: np.ndarray, out: np.ndarray,
    *, difference: bool = False,
) -> None:  # fmt: skip
    work, view = threads.scratch(FLOAT64, SCRATCH)
    loop = cpu.exact_rows(name, dtype.name, difference)
    loop(
        block.p, block.a, block.ps, block.q, block.b, block.qs, _frozen(index), d,
        task.normalize, task.weight, out, work, view,
    )  # fmt: skip


def _logs(task: Task, block: Block, d: int, dtype: np.dtype[Any], out: np.ndarray) -> None:
    work, view = threads.scratch(FLOAT64, SCRATCH)
    inverse, tail = task.inverse_temperature()
    index = np.arange(block.count)
    for name in (task.name, "rel_entr"):
        loop = cpu.log_rows(name, dtype.name)
        loop(
            block.p, block.a, block.ps, block.q, block.b, block.qs, _frozen(index), d,
            task.normalize, inverse, tail, task.weight, out, work, view,
        )  # fmt: skip
        index = np.flatnonzero(np.isnan(out))
        if task.name != "kl" or task.normalize or not index.size:
            return


def _frozen(index: np.ndarray) -> np.ndarray:
    index.flags.writeable = False
    return index


# --- one long row ---------------------------------------------------------------------------------------------------


class LongRow:
    """One row in pieces of `CHUNK` cells."""

    def __init__(self, task: Task, rows: Rows, row: int, count: int) -> None:
        self.task, self.rows, self.row, self.threads = task, rows, row, count
        self.starts = range(0, rows.d, CHUNK)

    def value(self) -> float:
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
            call(self.rows.piece(self.row, start, stop), _frozen(np.array([stop - start])), states[i : i + 1])

        threads.run(piece, range(len(self.starts)), self.threads)
        return states

    def _states(self) -> np.ndarray:
        return np.zeros((len(self.starts), exact.SIZE))

    def _kl(self) -> float:
        dtype = self.rows.dtype
        loop = cpu.kl_pieces(dtype.name)
        zero = _frozen(np.zeros(1, np.int64))

        def call(block: Block, stops: np.ndarray, states: np.ndarray) -> None:
            loop(block.p, block.a, block.q, block.b, zero, stops, states, *threads.scratch(dtype, SCRATCH))

        states = self._sweep(self._states(), call)
        g, ge, p, pe, q, qe, held = map(float, combine(states))
        if held < len(states) or not 0.0 < p + pe < math.inf:
            return -1.0
        return kl_finish(g + ge, p + pe, q + qe, fast.constants(dtype)[2])

    def _exact(self) -> float:
        task = self.task
        fp = fq = 1.0
        sums = self._sums(fp, fq)
        if task.normalize:
            fp, fq = float(exact.factor_of.py_func(sums[0])), float(exact.factor_of.py_func(sums[2]))
            if (fp, fq) != (1.0, 1.0):
                sums = self._sums(fp, fq)
        if task.name == "kl" and not task.normalize:
            value = self._cells("kl", sums, fp, fq, exact.finish_difference)
            return self._cells("rel_entr", sums, fp, fq, exact.finish_sum) if value != value else value
        return self._cells(task.name, sums, fp, fq, exact.finish_sum)

    def _sums(self, fp: float, fq: float) -> np.ndarray:
        loop = cpu.exact_piece_sums(self.rows.dtype.name)
        zero = _frozen(np.zeros(1, np.int64))

        def call(block: Block, stops: np.ndarray, states: np.ndarray) -> None:
            work, view = threads.scratch(FLOAT64, SCRATCH)
            loop(block.p, block.a, block.q, block.b, zero, stops, fp, fq, states, work, view)

        return combine(self._sweep(self._states(), call))

    def _cells(self, name: str, sums: np.ndarray, fp: float, fq: float, finish: Callable[..., float]) -> float:
        task = self.task
        loop = cpu.exact_piece_cells(name, self.rows.dtype.name)
        zero = _frozen(np.zeros(1, np.int64))

        def call(block: Block, stops: np.ndarray, states: np.ndarray) -> None:
            work, view = threads.scratch(FLOAT64, SCRATCH)
            loop(
                block.p, block.a, block.q, block.b, zero, stops, fp, fq, sums, task.normalize, task.weight,
                states, work, view,
            )  # fmt: skip

        states = self._sweep(self._states(), call)
        common = float(states[0, 6])
        g, ge = combine(states)[4:6]
        p, pe, q, qe, _, _, negative = map(float, sums)
        return float(finish(p, pe, q, qe, float(g), float(ge), negative, common, task.normalize))

    def _logs(self) -> float:
        task, name = self.task, self.rows.dtype.name
        inverse, tail = task.inverse_temperature()
        zero = _frozen(np.zeros(1, np.int64))
        c = np.array([0.0, 0.0, inverse, tail, 0.0, 0.0, 0.0])
        if task.normalize:
            largest = cpu.log_piece_largest(name)

            def first(block: Block, stops: np.ndarray, states: np.ndarray) -> None:
                largest(block.p, block.a, block.q, block.b, zero, stops, states)

            c[:2] = self._sweep(self._states(), first)[:, :2].max(axis=0)
            if not np.isfinite(c[:2]).all():
                return math.nan
        value = math.nan
        for cell in (task.name, "rel_entr"):
            sweep = cpu.log_piece_sweep(cell, name)

            def second(block: Block, stops: np.ndarray, states: np.ndarray, sweep: Any = sweep) -> None:
                work, view = threads.scratch(FLOAT64, SCRATCH)
                sweep(block.p, block.a, block.q, block.b, zero, stops, c, task.weight, states, work, view)

            for attempt in range(logs.ROUNDS):
                f, fe, mass, rest, gap, low, _ = map(float, combine(self._sweep(self._states(), second)))
                mass, gap = mass + rest, gap + low
                value, done = logs.judge(f + fe, mass, gap, task.normalize, cell == "kl", attempt)
                if done:
                    break
                logs.sharpen(c, mass, gap)
            if task.name != "kl" or task.normalize or value == value:
                break
        return float(value)
