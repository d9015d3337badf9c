"""From the arguments of a row-reduced function to its result: checks, blocks, reductions, and what was wrong."""

from __future__ import annotations

import functools
import math
import numbers
import reprlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from klnumba import arrays, fixed_point, labelled, long_rows, tensors
from klnumba.arrays import Back, Rows, one_of, take
from klnumba.diagnosis import diagnosis
from klnumba.engine import AGREE, Task, is_quick, values
from klnumba.gpu.borders import any_on_device
from klnumba.kernels import threads
from klnumba.kernels.tiles import CHUNK
from klnumba.labels import ALIGN

LAST, OUTER = -1, "outer"  # what most calls leave as it is; what only equals one of them is checked later

KEPT = 1 << 16  # values that a thread adds up, or puts in their place, at a time

STATISTICS = (
    "kl",
    "reverse_kl",
    "js",
    "entropy_p",
    "entropy_q",
    "cross_entropy",
    "argmax_agree",
    "max_log_ratio",
)

# A statistic: the divergence it is, of which rows.
SOURCES = {
    "kl": ("kl", "pq"),
    "reverse_kl": ("kl", "qp"),
    "js": ("js", "pq"),
    "jeffreys": ("jeffreys", "pq"),
    "entropy_p": ("entropy", "pp"),
    "entropy_q": ("entropy", "qq"),
    "cross_entropy": ("cross_entropy", "pq"),
    "max_log_ratio": ("max_log_ratio", "pq"),
    "argmax_agree": ("argmax_agree", "pq"),
}


def reduce(
    name: str, p: Any, q: Any, kind: str, axis: Any, normalize: bool, base: float | None, temperature: float,
    reduction: str, where: Any, keepdims: bool, out: Any, dtype: Any, count: int | None, invalid: str,
    weight: float = 0.5, align: str = "outer", stream: Any = None,
) -> Any:  # fmt: skip
    """A divergence of every row, or its mean or sum over the rows."""
    if tensors.asks_gradient(p, q):
        from klnumba import autograd

        return autograd.reduce(
            name, p, q, kind, axis, normalize, base, temperature, reduction, where, keepdims, out, dtype, count,
            invalid, weight, stream,
        )  # fmt: skip
    if any_on_device(p, q, where, out):
        from klnumba.gpu import reduction as gpu

        return gpu.reduce(
            name, p, q, kind, axis, normalize, base, temperature, reduction, where, keepdims, out, dtype, invalid,
            weight, stream,
        )  # fmt: skip
    _no_stream(stream)
    task = task_of(name, kind, normalize, temperature, weight)
    unit = unit_of(base)
    one_of(reduction, ("none", "mean", "sum"), "reduction")
    one_of(invalid, ("nan", "raise"), "invalid")
    if axis is LAST and align is OUTER and where is out is dtype is None and invalid == "nan" and keepdims is False:
        quick = _at_once(task, p, q, unit, count)
        if quick is not None:
            return _given(quick, reduction, p)
    rows, ndim, reduced, back = prepared(p, q, axis, where, task, dtype, align, name)
    _check_labels(rows, keepdims, out)
    if reduction == "none":
        shape = kept_shape(rows.outer, reduced, ndim, keepdims)
    else:
        shape = kept_shape((), tuple(range(ndim)), ndim, keepdims)
    result = _result(out, shape, dtype, rows.dtype)
    target = result
    if out is not None and any(np.may_share_memory(target, side) for side in rows.inputs()):
        result = np.empty_like(target)  # it may overwrite rows that are still to be read
    found = Found(rows, [(task, "pq", result if reduction == "none" else None)], unit, invalid == "raise")
    found.run(threads.choose(count, rows.n * rows.d))
    if reduction != "none":
        with arrays.unheard():
            result[...] = found.mean() if reduction == "mean" else found.total()
    if out is None:
        return back(result)
    if result is not target:
        target[...] = result
    return out


def _at_once(task: Task, p: Any, q: Any, unit: float, count: int | None) -> np.ndarray | None:
    """The values of all rows, of two arrays that one span or block holds and no copy is needed of; else None.

    For a row or a batch of a stream: what is asked of every other kind of argument takes longer than their loops.
    """
    block = arrays.adjacent(p, q)
    if block is None or block.ps > CHUNK or p.size > _at_most(task, block.ps, p.dtype):
        return None
    found = np.empty(p.shape[:-1])
    values(task, block, block.ps, p.dtype, found.reshape(-1), threads.choose(count, p.size))
    if unit != 1.0:
        with arrays.unheard():
            found /= unit
    return found


def _at_most(task: Task, d: int, dtype: np.dtype[Any]) -> int:
    """How many cells are computed at once."""
    return arrays.MOST if is_quick(task, d, dtype) else arrays.BLOCK


def _given(found: np.ndarray, reduction: str, like: np.ndarray) -> Any:
    """The values of rows, or their mean or sum, in the dtype of the rows."""
    if reduction == "none":
        return arrays.as_is(found if found.dtype == like.dtype else narrowed(found, like.dtype))
    whole, rest = fixed_point.sum_of([found.reshape(-1)])
    value = fixed_point.rounded(whole, rest, found.size if reduction == "mean" else 1)
    return narrowed(np.array(value), like.dtype)[()]


def narrowed(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Values in a dtype in which the largest may be infinite."""
    with arrays.unheard():
        return values.astype(dtype)


def row_values(
    name: str, p: Any, q: Any, kind: str, axis: Any, normalize: bool, base: float | None, temperature: float,
    where: Any, count: int | None, invalid: str, weight: float,
) -> tuple[np.ndarray, tuple[int, ...], Back]:  # fmt: skip
    """A divergence of every row, flat, in float64; the shape of the rows, and the way back to the library of p or q."""
    task = task_of(name, kind, normalize, temperature, weight)
    unit = unit_of(base)
    one_of(invalid, ("nan", "raise"), "invalid")
    if axis is LAST and where is None and invalid == "nan":
        quick = _at_once(task, p, q, unit, count)
        if quick is not None:
            return quick.reshape(-1), p.shape[:-1], arrays.as_is
    rows, _, _, back = prepared(p, q, axis, where, task, None, "strict", None)
    found = np.empty(rows.n)
    Found(rows, [(task, "pq", found)], unit, invalid == "raise").run(threads.choose(count, rows.n * rows.d))
    return found, rows.outer, back if rows.named is None else arrays.as_is


def statistics(
    p: Any, q: Any, stats: Any, kind: str, axis: Any, normalize: bool, base: float | None,
    temperature: float, where: Any, keepdims: bool, dtype: Any, count: int | None, invalid: str, align: str = "outer",
    stream: Any = None, unrounded: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Several statistics of every row; on the host `unrounded` gives float64 also where rows are of float32."""
    if any_on_device(p, q, where):
        from klnumba.gpu import reduction as gpu

        return gpu.statistics(
            p, q, stats, kind, axis, normalize, base, temperature, where, keepdims, dtype, invalid, stream
        )
    _no_stream(stream)
    stats = named(stats)
    one_of(invalid, ("nan", "raise"), "invalid")
    unit = unit_of(base)
    first = task_of("kl", kind, normalize, temperature, 0.5)
    rows, ndim, reduced, back = prepared(p, q, axis, where, first, dtype, align, None)
    _check_labels(rows, keepdims, None)
    shape = kept_shape(rows.outer, reduced, ndim, keepdims)
    wanted: list[tuple[Task, str, np.ndarray | None]] = []
    results = {}
    for name in stats:
        source, order = SOURCES[name]
        kind_of = np.float64 if unrounded else dtype
        results[name] = np.empty(shape, bool) if source == AGREE else _result(None, shape, kind_of, rows.dtype)
        wanted.append((task_of(source, kind, normalize, temperature, 0.5), order, results[name]))
    Found(rows, wanted, unit, invalid == "raise").run(threads.choose(count, rows.n * rows.d))
    return {name: back(result) for name, result in results.items()}


def _no_stream(stream: Any) -> None:
    if stream is not None:
        raise ValueError("stream: only arrays on a CUDA device are worked on in one")


def named(stats: Any) -> tuple[str, ...]:
    """The names of statistics, each of which is one."""
    if isinstance(stats, str) or not isinstance(stats, Iterable):
        raise TypeError(f"stats: a sequence of names, not {stats!r}")
    found = tuple(stats)
    for name in found:
        if not isinstance(name, str) or name not in SOURCES:
            raise ValueError(f"stats: {name!r} is none of {', '.join(map(repr, SOURCES))}")
    return found


def task_of(name: str, kind: str, normalize: bool, temperature: float, weight: float) -> Task:
    """The task of a call, its options checked."""
    one_of(kind, ("prob", "log_prob", "logit"), "kind")
    heat = real(temperature, "temperature")
    if kind != "logit" and heat != 1.0:
        raise ValueError(f"temperature: only logits have one; kind is {kind!r}")
    if not 0.0 < heat < math.inf or not 1.0 / heat < math.inf:
        raise ValueError(f"temperature: a positive finite number with a finite inverse, not {temperature!r}")
    return _made(name, kind, flag(normalize, "normalize") or kind == "logit", float(weight), heat)


_made = functools.lru_cache(Task)  # a stream of batches asks for the same again and again


def flag(value: Any, name: str) -> bool:
    """The value, if it is a truth value, or 0 or 1."""
    if value is True or value is False:
        return value
    if not isinstance(value, int | np.integer | np.bool_) or value not in (0, 1):
        raise TypeError(f"{name}: True or False, not {short(value)}")
    return bool(value)


def real(value: Any, name: str) -> float:
    """The value, if it is a real number."""
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}: a real number, not {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name}: a number in the range of float64, not {short(value)}") from None


def short(value: Any) -> str:
    """A value for an error text; of a long one, both ends."""
    try:
        return reprlib.repr(value)
    except ValueError:  # more digits than Python writes
        return "one of thousands of digits"


def generator(rng: Any) -> np.random.Generator:
    """The argument `rng`: a generator of random numbers, or what seeds one."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(f"rng: a numpy.random.Generator or a seed, an integer >= 0, not {rng!r}") from error


def unit_of(base: float | None) -> float:
    """The number of nats in a unit of the result."""
    if base is None:
        return 1.0
    value = real(base, "base")
    if not 0.0 < value < math.inf or value == 1.0:
        raise ValueError(f"base: a positive finite number other than 1, not {short(base)}")
    return math.log(value)


def positive_unit(base: float | None) -> float:
    """The same, of results beside which errors and tests stand: a base below 1 would make them negative."""
    if base is not None and not 1.0 < real(base, "base") < math.inf:
        raise ValueError(f"base: a finite number above 1, not {short(base)}")
    return unit_of(base)


def _check_labels(rows: Rows, keepdims: bool, out: Any) -> None:
    """Refuse options whose result could not have the labels of a Series or DataFrame."""
    if rows.named is not None and (flag(keepdims, "keepdims") or out is not None):
        raise TypeError("keepdims, out: not with a Series or DataFrame, since the result has its labels")


def prepared(
    p: Any, q: Any, axis: Any, where: Any, task: Task, dtype: Any, align: str = "outer", name: str | None = None
) -> tuple[Rows, int, tuple[int, ...], Back]:
    """The rows of a call; a result in float64 that is asked for is computed in float64."""
    zero = -math.inf if task.logs else 0.0
    named = None
    if align != "outer":
        one_of(align, ALIGN, "align")
    if labelled.present(p, q):
        p, q, axis, where, named = labelled.of_rows(p, q, axis, where, align, zero, name)
    first, back = take(p, "p")
    second = first
    if q is not p:
        second, other = take(q, "q")
        back = other if back is arrays.as_is else back
    shape = arrays.common_shape(first, second)
    if where is not None and where is not True:
        where = arrays.truth(where)
        try:
            shape = np.broadcast_shapes(shape, where.shape)
        except ValueError:
            raise ValueError(f"where: shape {where.shape} does not broadcast with {shape}") from None
    reduced = arrays.axes(axis, len(shape))
    rows = Rows(first, second, reduced, where, zero, wide=arrays.is_wide(dtype))
    rows.named = named
    return rows, len(shape), reduced, named or back


def kept_shape(outer: tuple[int, ...], reduced: tuple[int, ...], ndim: int, keepdims: bool) -> tuple[int, ...]:
    """The shape of the values of rows, `outer` without the reduced axes."""
    if not flag(keepdims, "keepdims"):
        return outer
    kept = iter(outer)
    return tuple(1 if k in reduced else next(kept) for k in range(ndim))


def _result(out: Any, shape: tuple[int, ...], dtype: Any, default: np.dtype[Any]) -> np.ndarray:
    if out is None:
        return np.empty(shape, default if dtype is None else arrays.float_dtype(dtype))
    target = arrays.output(out)
    if target.shape != shape:
        raise ValueError(f"out: shape {target.shape}, but the result has shape {shape}")
    return target


class Found:
    """The values of all rows, block by block: into results, or into exact sums of blocks."""

    def __init__(
        self, rows: Rows, wanted: list[tuple[Task, str, np.ndarray | None]], unit: float, strict: bool
    ) -> None:
        self.rows, self.wanted, self.unit, self.strict = rows, wanted, unit, strict
        self.sums: dict[int, tuple[int, float]] = {}
        self.bad: dict[int, Task] = {}

    def run(self, count: int) -> None:
        rows = self.rows
        if rows.n == 0:
            return
        if rows.d == 0:
            for task, _, result in self.wanted:
                empty = math.nan if task.normalize or task.name == "max_log_ratio" else 0.0
                self._keep(task, result, 0, np.full(rows.n, False if task.name == AGREE else empty))
        elif rows.d > CHUNK:
            for row in range(rows.n):
                for task, order, result in self.wanted:
                    self._keep(task, result, row, np.array([long_rows.value(task, rows, row, count, order)]))
        elif rows.direct is not None and len(self.wanted) == 1 and is_quick(self.wanted[0][0], rows.d, rows.dtype):
            for span in rows.spans(count):
                self._span(span, count)
        else:
            threads.run(self._block, rows.blocks(count), count)
        if self.strict and self.bad:
            row = min(self.bad)
            raise ValueError(diagnosis(rows, self.bad[row], row))

    def _block(self, job: Any) -> None:
        block = self.rows.load(job)
        for task, order, result in self.wanted:
            found = self._room(result, block.first, block.count)
            values(task, block.ordered(order), self.rows.d, self.rows.dtype, found)
            if not self._is_kept(result):
                self._keep(task, result, block.first, found)

    def _span(self, span: Any, count: int) -> None:
        """Rows that so many threads share; few of them have values enough to share out."""
        block, (task, order, result) = self.rows.load(span), self.wanted[0]
        found = self._room(result, block.first, block.count)
        values(task, block.ordered(order), self.rows.d, self.rows.dtype, found, count)
        if self._is_kept(result):
            return

        def keep(k: int) -> None:
            self._keep(task, result, block.first + k, found[k : k + KEPT])

        threads.run(keep, range(0, block.count, KEPT), count)

    def _room(self, result: np.ndarray | None, first: int, count: int) -> np.ndarray:
        """Where the values of a block go: into the result itself, where it holds float64 and no unit follows."""
        if result is None or not self._is_direct(result):
            return np.empty(count)
        return result.reshape(-1)[first : first + count]

    def _is_direct(self, result: np.ndarray) -> bool:
        return self.unit == 1.0 and result.dtype == np.float64 and result.flags.carray

    def _is_kept(self, result: np.ndarray | None) -> bool:
        """Whether the values of a block need nothing more when they are there."""
        return result is not None and not self.strict and self._is_direct(result)

    def _keep(self, task: Task, result: np.ndarray | None, first: int, found: np.ndarray) -> None:
        if self.strict:
            bad = np.flatnonzero(np.isnan(found))
            if bad.size:
                self.bad[first + int(bad[0])] = task
        with arrays.unheard():
            if self.unit != 1.0 and task.name != AGREE:
                found /= self.unit
            if result is None:
                self.sums[first] = fixed_point.sum_of([found])
            else:
                place = result.reshape(-1) if result.flags.c_contiguous else result.flat
                place[first : first + found.size] = found

    def total(self) -> float:
        """The sum over all rows, rounded once."""
        return self._sum_over(1)

    def mean(self) -> float:
        """The mean over all rows, rounded once."""
        return self._sum_over(self.rows.n) if self.rows.n else math.nan

    def _sum_over(self, rows: int) -> float:
        whole, rest = (sum(parts) for parts in zip(*self.sums.values(), strict=True)) if self.sums else (0, 0.0)
        return fixed_point.rounded(int(whole), rest, rows)
