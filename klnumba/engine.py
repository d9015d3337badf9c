"""Which loops a call needs, and running them over blocks of rows.

KL of probabilities takes one read (`kernels.fast`), and so do JS with equal
weights, Jeffreys and cross-entropy (`kernels.fast_pairs`). The normalised rows
that this flags are brought to a common mass and read again, and those that
this flags too, or that are taken as they are, go the exact way
(`kernels.exact`). So do the divergences that have no quick way. Entropy is the
cross-entropy of p with itself. KL of normalised logarithms has its own quick
way (`kernels.logits`), and so have entropy, cross-entropy, JS and the largest
log-ratio (`kernels.log_sums`); of logarithms that are taken as they are one
read is enough (`kernels.logs_plain`). What these flag, and all else of
logarithms, goes through `kernels.logs`. Short rows have loops that take many
at a time. Rows longer than `CHUNK` are for `long_rows`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from klnumba.arrays import FLOAT64, Block
from klnumba.formulas.finish import limit
from klnumba.formulas.primitives import fma
from klnumba.kernels import cpu, exact_short, fast, log_sums_short, logits, logs_plain, logs_short, shares, threads
from klnumba.kernels.quick_rows import QUICK

EXACT_PLAIN = (("kl", True), ("rel_entr", False))  # KL of rows taken as they are: its forms, until one is no NaN
NAMES = {"d": "float64", "f": "float32"}
AGREE = "argmax_agree"
# Of normalised logarithms; JS with equal weights, as in every quick loop.
QUICK_LOGS = ("kl", "jeffreys", "entropy", "cross_entropy", "js", cpu.LARGEST)
FEW = 1 << 15  # rows among which those are looked for that the quick loop does not serve


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


def values(task: Task, block: Block, d: int, dtype: np.dtype[Any], out: np.ndarray, count: int = 1) -> None:
    """Fill `out`, float64, with the divergence of every row of a block, or with whether the largest cells agree.

    More than one thread is for tasks that have a quick loop.
    """
    if task.name == AGREE:
        out[:] = agreement(task, block, d)
        return
    if task.name == "jeffreys" and task.logs and task.normalize and is_quick(task, d, dtype):
        _both_ways(task, block, d, dtype, out, count)
    elif task.logs:
        _logs(task, block, d, dtype, out, count)
    elif task.name == "entropy":
        values(replace(task, name="cross_entropy"), block.ordered("pp"), d, dtype, out, count)
    elif is_quick(task, d, dtype):
        _quick(task, block, d, dtype, out, count)
    else:
        _exact(task.name, task, block, d, dtype, np.arange(block.count), out)
    most = limit(task.name, task.normalize)
    if most < math.inf:
        np.minimum(out, most, out=out)


def is_quick(task: Task, d: int, dtype: np.dtype[Any]) -> bool:
    """Whether a loop for nearly every row of `d` cells lets threads share the rows."""
    if task.name == "js" and task.weight != 0.5:
        return False
    if not task.logs:
        return task.name in QUICK or task.name == "entropy"
    if not task.normalize:
        return task.name in logs_plain.CELLS
    return task.name in QUICK_LOGS and (math.frexp(task.inverse_temperature()[0])[0] == 0.5 or _is_wide(task, d, dtype))


def _is_wide(task: Task, d: int, dtype: np.dtype[Any]) -> bool:
    """Whether logits times a rounded 1/temperature have all digits that are asked for: float32 ones, in float64."""
    return dtype == np.float32 and (d < fast.SHORT or task.name not in ("kl", "jeffreys"))


def _shared(
    loop: Any, rest: Callable[[], tuple[Any, ...]], careful: Callable[[np.ndarray, np.ndarray], None],
    block: Block, d: int, out: np.ndarray, count: int,
) -> None:  # fmt: skip
    """Run a quick loop, which takes `rest` a thread. Rows that it does not serve go to `careful`, with all flags."""
    count = min(count, shares.MOST)
    flag = np.zeros(block.count, np.int8)  # no thread's where another has not been yet
    taken, rows = shares.parts(count), (*block.sides(), block.count, d, out, flag)

    def work(me: int) -> None:
        turn = shares.turn(taken, me, d)
        if not loop(*rows, turn, *rest()):
            return
        for first in range(0, block.count, FEW):
            (mine,) = (flag[first : first + FEW] == turn[3]).nonzero()
            if mine.size:
                careful(mine + first if first else mine, flag)

    threads.together(work, count)


def _quick(task: Task, block: Block, d: int, dtype: np.dtype[Any], out: np.ndarray, count: int) -> None:
    """A divergence of probabilities that has a quick loop."""
    short, name = d < fast.SHORT, NAMES[dtype.char]

    def scaled(index: np.ndarray, flag: np.ndarray) -> None:
        room = threads.scratch(FLOAT64 if short else dtype)
        cpu.scaled_rows(task.name, name, short)(*block.sides(), frozen(index), d, out, flag, *room)
        exact(index[flag[index] != 0])

    def exact(index: np.ndarray, flag: Any = None) -> None:
        for form, difference in EXACT_PLAIN if task.name == "kl" and not task.normalize else ((task.name, False),):
            if not index.size:
                return
            _exact(form, task, block, d, dtype, index, out, difference=difference)
            index = index[np.isnan(out[index])]

    loop = cpu.quick_rows(task.name, name, short, task.normalize)
    careful = scaled if task.normalize else exact
    _shared(loop, lambda: threads.scratch(dtype), careful, block, d, out, count)


def _both_ways(task: Task, block: Block, d: int, dtype: np.dtype[Any], out: np.ndarray, count: int) -> None:
    """Jeffreys of normalised rows of logarithms: KL there and back, neither of which is negative."""
    one_way = replace(task, name="kl")
    values(one_way, block, d, dtype, out, count)
    back = np.empty_like(out)
    values(one_way, block.ordered("qp"), d, dtype, back, count)
    with np.errstate(over="ignore"):
        out += back


def _exact(
    name: str, task: Task, block: Block, d: int, dtype: np.dtype[Any], index: np.ndarray, out: np.ndarray,
    *, difference: bool = False,
) -> None:  # fmt: skip
    room = threads.scratch(FLOAT64)
    loop = cpu.exact_rows(name, NAMES[dtype.char], difference, d < exact_short.SHORT)
    loop(*block.sides(), frozen(index), d, task.normalize, task.weight, out, *room)


def _logs(task: Task, block: Block, d: int, dtype: np.dtype[Any], out: np.ndarray, count: int) -> None:
    inverse, tail = task.inverse_temperature()

    def careful(index: np.ndarray, flag: Any = None) -> None:
        for name, weight in attempts(task):
            loop = cpu.log_rows(name, NAMES[dtype.char], d < logs_short.SHORT)
            numbers = task.normalize, inverse, tail, weight
            loop(*block.sides(), frozen(index), d, *numbers, out, *threads.scratch(FLOAT64))
            index = index[np.isnan(out[index])]
            if not index.size:
                return
        out[index] = math.nan  # of one sign

    if not is_quick(task, d, dtype):
        careful(np.arange(block.count))
    elif not task.normalize:
        loop = cpu.plain_log_rows(task.name, NAMES[dtype.char], d < fast.SHORT)
        _shared(loop, lambda: threads.scratch(dtype), careful, block, d, out, count)
        out += 0.0  # -0.0 becomes 0.0
    elif task.name != "kl":
        short = d < log_sums_short.SHORT
        loop = cpu.log_sum_rows(task.name, NAMES[dtype.char], short)
        _shared(loop, lambda: (inverse, *threads.scratch(FLOAT64 if short else dtype)), careful, block, d, out, count)
    elif d < fast.SHORT:
        loop = cpu.short_logit_rows(NAMES[dtype.char])
        _shared(loop, lambda: (inverse, *threads.scratch(dtype)), careful, block, d, out, count)
    else:
        loop = cpu.logit_rows(NAMES[dtype.char])

        def rest() -> tuple[Any, ...]:
            return inverse, np.empty(logits.room(), dtype), *threads.scratch(dtype)

        _shared(loop, rest, careful, block, d, out, count)


def attempts(task: Task) -> list[tuple[str, float]]:
    """The cells to try in turn, with their weights.

    KL of rows as they are may cancel in either of its two forms. There the weight is the limit on how much.
    """
    if task.name == "kl" and not task.normalize:
        forms = [(limit, name) for limit in (2.0, 8.0, 64.0) for name in ("kl", "rel_entr")]
        return [(name, limit) for limit, name in forms] + [("kl", math.inf)]
    return [(task.name, task.weight)]


def frozen(index: np.ndarray) -> np.ndarray:
    """The numbers of rows as the loops take them."""
    index.flags.writeable = False
    return index


# --- the statistic that is no divergence ----------------------------------------------------------------------------


def agreement(task: Task, block: Block, d: int) -> np.ndarray:
    """Whether p and q have their first largest cell in the same place; False where one is no distribution."""
    left = _cells(block.p, block.a, block.ps, block.count, d)
    right = _cells(block.q, block.b, block.qs, block.count, d)
    first, second = left.argmax(axis=1), right.argmax(axis=1)
    return (first == second) & _are_rows(task, left, first) & _are_rows(task, right, second)


def _are_rows(task: Task, cells: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Which rows are distributions, from where their largest cells are; that of a row with a NaN is NaN."""
    found = has_mass(task, cells[np.arange(len(cells)), places])
    if task.logs or cells.min() >= 0.0:  # of all at once: of short rows one by one NumPy takes long
        return found
    return found & (cells.min(axis=1) >= 0.0)


def has_mass(task: Task, top: Any) -> Any:
    """Whether the largest cell of a row is finite and, where rows are normalised, no zero."""
    lowest = -math.inf if task.logs else 0.0
    return (top < math.inf) & ((top > lowest) | (not task.normalize))


def _cells(flat: np.ndarray, start: int, step: int, count: int, d: int) -> np.ndarray:
    item = flat.itemsize
    return np.lib.stride_tricks.as_strided(flat[start:], (count, d), (step * item, item), writeable=False)
