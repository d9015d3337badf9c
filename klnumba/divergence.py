"""The NumPy-style functions: divergences of rows, and of cells."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from klnumba import arrays
from klnumba.arrays import Back, Rows, compute_dtype, take
from klnumba.engine import LongRow, Task, values
from klnumba.kernels import cpu, threads
from klnumba.kernels.tiles import CHUNK

Kind = Literal["prob", "log_prob", "logit"]
Reduction = Literal["none", "mean", "sum"]

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


def kl_divergence(
    p: Any, q: Any, *, kind: Kind = "prob", axis: int | tuple[int, ...] | None = -1, normalize: bool = True,
    base: float | None = None, temperature: float = 1.0, reduction: Reduction = "none", where: Any = None,
    keepdims: bool = False, out: np.ndarray | None = None, dtype: Any = None, threads: int | None = None,
    invalid: Literal["nan", "raise"] = "nan",
) -> Any:  # fmt: skip
    """Kullback-Leibler divergence KL(p || q) of every row."""
    return _reduce("kl", p, q, **_options(locals()))


def cross_entropy(
    p: Any, q: Any, *, kind: Kind = "prob", axis: int | tuple[int, ...] | None = -1, normalize: bool = True,
    base: float | None = None, temperature: float = 1.0, reduction: Reduction = "none", where: Any = None,
    keepdims: bool = False, out: np.ndarray | None = None, dtype: Any = None, threads: int | None = None,
    invalid: Literal["nan", "raise"] = "nan",
) -> Any:  # fmt: skip
    """Cross entropy -sum p*log(q) of every row."""
    return _reduce("cross_entropy", p, q, **_options(locals()))


def js_divergence(
    p: Any, q: Any, *, weight: float = 0.5, kind: Kind = "prob", axis: int | tuple[int, ...] | None = -1,
    normalize: bool = True, base: float | None = None, temperature: float = 1.0, reduction: Reduction = "none",
    where: Any = None, keepdims: bool = False, out: np.ndarray | None = None, dtype: Any = None,
    threads: int | None = None, invalid: Literal["nan", "raise"] = "nan",
) -> Any:  # fmt: skip
    """Jensen-Shannon divergence w*KL(p || m) + (1 - w)*KL(q || m), m = w*p + (1 - w)*q, of every row."""
    if not 0.0 <= weight <= 1.0:
        raise ValueError(f"weight: a number from 0 to 1, not {weight!r}")
    return _reduce("js", p, q, **_options(locals()))


def jeffreys_divergence(
    p: Any, q: Any, *, kind: Kind = "prob", axis: int | tuple[int, ...] | None = -1, normalize: bool = True,
    base: float | None = None, temperature: float = 1.0, reduction: Reduction = "none", where: Any = None,
    keepdims: bool = False, out: np.ndarray | None = None, dtype: Any = None, threads: int | None = None,
    invalid: Literal["nan", "raise"] = "nan",
) -> Any:  # fmt: skip
    """Jeffreys divergence KL(p || q) + KL(q || p) of every row."""
    return _reduce("jeffreys", p, q, **_options(locals()))


def entropy(
    p: Any, *, kind: Kind = "prob", axis: int | tuple[int, ...] | None = -1, normalize: bool = True,
    base: float | None = None, temperature: float = 1.0, reduction: Reduction = "none", where: Any = None,
    keepdims: bool = False, out: np.ndarray | None = None, dtype: Any = None, threads: int | None = None,
    invalid: Literal["nan", "raise"] = "nan",
) -> Any:  # fmt: skip
    """Shannon entropy -sum p*log(p) of every row."""
    return _reduce("entropy", p, None, **_options(locals()))


def row_statistics(
    p: Any, q: Any, *, stats: tuple[str, ...] = STATISTICS, kind: Kind = "prob",
    axis: int | tuple[int, ...] | None = -1, normalize: bool = True, base: float | None = None,
    temperature: float = 1.0, where: Any = None, keepdims: bool = False, dtype: Any = None,
    threads: int | None = None, invalid: Literal["nan", "raise"] = "nan",
) -> dict[str, Any]:  # fmt: skip
    """Several statistics of every row from one read of memory."""
    raise NotImplementedError


def _options(given: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in given.items() if k not in {"p", "q"}}


def _reduce(
    name: str, p: Any, q: Any, *, kind: str, axis: Any, normalize: bool, base: float | None, temperature: float,
    reduction: str, where: Any, keepdims: bool, out: Any, dtype: Any, threads: int | None, invalid: str,
    weight: float = 0.5,
) -> Any:  # fmt: skip
    task = _task(name, kind, normalize, temperature, weight)
    unit = _unit(base)
    _check(reduction, ("none", "mean", "sum"), "reduction")
    _check(invalid, ("nan", "raise"), "invalid")
    rows, ndim, reduced, back = _prepare(p, q, axis, where, task)
    count = _threads(threads, rows)
    shape = _shape(rows, ndim, reduced, keepdims) if reduction == "none" else ()
    result = _result(out, shape, dtype, rows.dtype)
    found = Found(rows, task, result if reduction == "none" else None, unit, invalid == "raise")
    found.run(count)
    if reduction != "none":
        total = found.total()
        result[...] = total / rows.n if reduction == "mean" and rows.n else (math.nan if reduction == "mean" else total)
    return result if out is not None else back(result)


def _task(name: str, kind: str, normalize: bool, temperature: float, weight: float) -> Task:
    _check(kind, ("prob", "log_prob", "logit"), "kind")
    if kind != "logit" and temperature != 1.0:
        raise ValueError(f"temperature: only logits have one; kind is {kind!r}")
    if not 0.0 < temperature < math.inf:
        raise ValueError(f"temperature: a positive finite number, not {temperature!r}")
    return Task(name, kind, normalize or kind == "logit", float(weight), float(temperature))


def _check(value: Any, allowed: tuple[str, ...], name: str) -> None:
    if value not in allowed:
        raise ValueError(f"{name}: one of {', '.join(map(repr, allowed))}, not {value!r}")


def _unit(base: float | None) -> float:
    """The number of nats in a unit of the result."""
    if base is None:
        return 1.0
    if not 0.0 < base < math.inf or base == 1.0:
        raise ValueError(f"base: a positive finite number other than 1, not {base!r}")
    return math.log(base)


def _threads(count: int | None, rows: Rows) -> int:
    if count is not None and (not isinstance(count, int | np.integer) or count < 1):
        raise ValueError(f"threads: a positive integer, not {count!r}")
    return threads.choose(count, rows.n * rows.d)


def _prepare(p: Any, q: Any, axis: Any, where: Any, task: Task) -> tuple[Rows, int, tuple[int, ...], Back]:
    first, back = take(p, "p")
    second = first
    if q is not None:
        second, other = take(q, "q")
        back = other if back is arrays._as_is else back
    shape = arrays.common_shape(first, second)
    if where is not None and where is not True:
        where = np.asarray(where)
        try:
            shape = np.broadcast_shapes(shape, where.shape)
        except ValueError:
            raise ValueError(f"where: shape {where.shape} does not broadcast with {shape}") from None
    reduced = arrays.axes(axis, len(shape))
    return Rows(first, second, reduced, where, -math.inf if task.logs else 0.0), len(shape), reduced, back


def _shape(rows: Rows, ndim: int, reduced: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    if not keepdims:
        return rows.outer
    kept = iter(rows.outer)
    return tuple(1 if k in reduced else next(kept) for k in range(ndim))


def _result(out: Any, shape: tuple[int, ...], dtype: Any, default: np.dtype[Any]) -> np.ndarray:
    if out is None:
        kind = default if dtype is None else np.dtype(dtype)
        if kind.kind != "f":
            raise TypeError(f"dtype: a floating-point type, not {kind}")
        return np.empty(shape, kind)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out: a NumPy array, not {type(out).__name__}")
    if out.shape != shape:
        raise ValueError(f"out: shape {out.shape}, but the result has shape {shape}")
    if out.dtype.kind != "f":
        raise TypeError(f"out: dtype {out.dtype} cannot hold the result")
    return out


class Found:
    """The values of all rows, block by block: into the result, or into sums of blocks."""

    def __init__(self, rows: Rows, task: Task, result: np.ndarray | None, unit: float, strict: bool) -> None:
        self.rows, self.task, self.unit, self.strict = rows, task, unit, strict
        self.result = result
        self.place = None if result is None else (result.reshape(-1) if result.flags.c_contiguous else None)
        self.sums: dict[int, np.ndarray] = {}
        self.bad = rows.n

    def run(self, count: int) -> None:
        if self.rows.d == 0 or self.rows.n == 0:
            if self.rows.n:
                self._keep(0, np.full(self.rows.n, math.nan if self.task.normalize else 0.0))
        elif self.rows.d > CHUNK:
            for row in range(self.rows.n):
                self._keep(row, np.array([LongRow(self.task, self.rows, row, count).value()]))
        else:
            threads.run(self._block, self.rows.blocks(), count)
        if self.strict and self.bad < self.rows.n:
            raise ValueError(diagnosis(self.rows, self.task, self.bad))

    def _block(self, job: Any) -> None:
        block = self.rows.load(job)
        self._keep(block.first, values(self.task, block, self.rows.d, self.rows.dtype))

    def _keep(self, first: int, found: np.ndarray) -> None:
        if self.strict:
            bad = np.flatnonzero(np.isnan(found))
            if bad.size:
                self.bad = min(self.bad, first + int(bad[0]))
        if self.unit != 1.0:
            found /= self.unit
        if self.result is None:
            state = np.zeros(2)
            found.flags.writeable = False
            cpu.ordered_sum()(found, state)
            self.sums[first] = state
        elif self.place is not None:
            self.place[first : first + found.size] = found
        else:
            self.result.flat[first : first + found.size] = found

    def total(self) -> float:
        state = np.zeros(2)
        for first in sorted(self.sums):
            part = self.sums[first].copy()
            part.flags.writeable = False
            cpu.ordered_sum()(part, state)
        return float(state[0] if math.isinf(state[0]) else state[0] + state[1])


def diagnosis(rows: Rows, task: Task, row: int) -> str:
    """What is wrong with a row: argument, row, cell and rule."""
    at = tuple(map(int, np.unravel_index(row, rows.outer))) if rows.outer else ()
    place = f"row {at[0] if len(at) == 1 else at}" if at else "the row"
    mask = None if rows.where is None else rows.where[at].reshape(-1)
    for name, view in (("p", rows.p), ("q", rows.q)):
        cells = np.asarray(view[at], np.float64).reshape(-1)
        held = np.ones(cells.size, bool) if mask is None else mask
        rules = [(np.isnan(cells), "is NaN")]
        if task.logs:
            rules.append((cells == math.inf, "is +inf: no finite mass"))
        else:
            rules += [(cells < 0.0, "is negative"), (np.isinf(cells), "is infinite")]
        for wrong, rule in rules:
            hits = np.flatnonzero(wrong & held)
            if hits.size:
                return f"{name}: {place}, cell {int(hits[0])} {rule} ({cells[hits[0]]})"
        mass = np.where(held, np.exp(np.minimum(cells, 0.0)) if task.logs else cells, 0.0)
        if not mass.any() and not (task.logs and (cells[held] > -math.inf).any()):
            return f"{name}: {place} has no mass"
    return f"p and q: {place} is not a number"


# --- pointwise ------------------------------------------------------------------------------------------------------


def rel_entr(p: Any, q: Any, /, out: Any = None, *, where: Any = True, dtype: Any = None) -> Any:
    """p*log(p/q), cell by cell."""
    return _pointwise("rel_entr", p, q, out, where, dtype)


def generalized_kl(p: Any, q: Any, /, out: Any = None, *, where: Any = True, dtype: Any = None) -> Any:
    """p*log(p/q) - p + q, cell by cell."""
    return _pointwise("generalized_kl", p, q, out, where, dtype)


def _pointwise(
    name: str, x: Any, y: Any, out: Any = None, where: Any = True, dtype: Any = None, names: tuple[str, str] = ("p", "q")
) -> Any:
    """A formula of two numbers over two arrays, with the ufuncs' `out`, `where` and `dtype`."""
    first, back = take(x, names[0])
    second, other = take(y, names[1])
    back = other if back is arrays._as_is else back
    if isinstance(out, tuple):
        (out,) = out
    if out is not None and not isinstance(out, np.ndarray):
        raise TypeError(f"out: a NumPy array, not {type(out).__name__}")
    shape = arrays.common_shape(first, second)
    kind = compute_dtype(first, second)
    result = np.empty(shape, kind if dtype is None else np.dtype(dtype)) if out is None else out
    if result.dtype.kind != "f":
        raise TypeError(f"{'dtype' if out is None else 'out'}: a floating-point type, not {result.dtype}")
    loop = cpu.cells_pointwise(name, kind.name)
    plain = all(a.dtype == kind and a.shape == shape and a.flags.c_contiguous and a.dtype.isnative for a in (first, second))
    if plain and where is True and result.dtype == kind and result.shape == shape and result.flags.c_contiguous:
        _plain(loop, np.asarray(first), np.asarray(second), result)
    else:
        _buffered(loop, np.asarray(first), np.asarray(second), result, where, kind)
    masked = [a.mask for a in (first, second) if isinstance(a, np.ma.MaskedArray)]
    if masked:
        return np.ma.array(result, mask=np.broadcast_to(np.logical_or.reduce(np.broadcast_arrays(*masked)), result.shape))
    return result if out is not None else back(result)


def _plain(loop: Any, first: np.ndarray, second: np.ndarray, result: np.ndarray) -> None:
    x, y, z = _readonly(first), _readonly(second), result.reshape(-1)
    step = arrays.BLOCK

    def part(start: int) -> None:
        stop = start + step
        loop(x[start:stop], y[start:stop], z[start:stop])

    threads.run(part, range(0, z.size, step), threads.choose(None, z.size))


def _readonly(array: np.ndarray) -> np.ndarray:
    flat = array.reshape(-1).view()
    flat.flags.writeable = False
    return flat


def _buffered(
    loop: Any, first: np.ndarray, second: np.ndarray, result: np.ndarray, where: Any, kind: np.dtype[Any]
) -> None:
    """Any layout and dtype: contiguous pieces through NumPy's buffered iterator."""
    if not isinstance(where, bool | np.bool_) and np.asarray(where).dtype != bool:
        raise TypeError("where: a boolean array")
    mask = np.asarray(where, bool)
    operands = [first, second, mask, result]
    flags = [["readonly", "contig"], ["readonly", "contig"], ["readonly"], ["readwrite", "no_broadcast"]]
    if any(a.dtype.name == "bfloat16" for a in (first, second)):
        operands[:2] = [a.astype(kind) if a.dtype.name == "bfloat16" else a for a in (first, second)]
    iterator = np.nditer(
        operands, ["external_loop", "buffered", "zerosize_ok", "growinner", "copy_if_overlap"],
        flags, [kind, kind, np.dtype(bool), result.dtype], casting="unsafe", buffersize=1 << 15,
    )  # fmt: skip
    with iterator:
        for x, y, keep, z in iterator:
            found = np.empty(z.size, kind)
            loop(_readonly(x), _readonly(y), found)
            np.copyto(z, found, where=keep, casting="same_kind")


def _ordered_sum(array: np.ndarray) -> float:
    """The sum of all cells in their order, in double-double."""
    state = np.zeros(2)
    cpu.ordered_sum()(_readonly(np.ascontiguousarray(array, np.float64)), state)
    return float(state[0] if math.isinf(state[0]) or math.isnan(state[0]) else state[0] + state[1])
