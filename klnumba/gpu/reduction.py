"""The functions over rows for arrays on a CUDA device: what `klnumba.reduction` is for arrays of the CPU."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from klnumba import arrays, reduction
from klnumba.engine import AGREE, Task
from klnumba.gpu import borders, given, long, streams, sums
from klnumba.gpu.borders import Array
from klnumba.gpu.layout import KEPT, Layout
from klnumba.gpu.rows import DIRECT, Rows, arranged, compute_dtype, flat_view, order_of


def reduce(
    name: str, p: Any, q: Any, kind: str, axis: Any, normalize: bool, base: float | None, temperature: float,
    how: str, where: Any, keepdims: bool, out: Any, dtype: Any, invalid: str, weight: float = 0.5,
    stream: Any = None,
) -> Any:  # fmt: skip
    """A divergence of every row, or its mean or sum over the rows."""
    asked = _asked(name, kind, reduction.flag(normalize, "normalize"), temperature, weight, base, how, invalid)
    found = borders.all_of(p=p, q=None if q is p else q, where=where, out=out)
    with borders.at_work(found):
        if asked.is_plain and where is out is dtype is None and type(axis) is int and keepdims is False:
            at_once = _at_once(asked, found, axis, stream)
            if at_once is not None:
                return at_once
        task, unit = asked.task, asked.unit
        given.add_mask(found, where, stream)
        call = Call(found, axis, task, dtype, stream)
        shape = call.shape(keepdims) if how == "none" else call.shape_of_one(keepdims)
        result, target = call.result(shape, dtype)
        if how == "none":
            call.values(task, unit, target, invalid == "raise")
        else:
            call.reduced(task, unit, how, target, invalid == "raise")
        if call.out is not None and call.out is not target:
            call.place.copy(target, call.out)
        streams.end(call.place, found, stream)
    return out if out is not None else result


class Asked:
    """What is asked of every row, checked."""

    def __init__(
        self, name: str, kind: str, normalize: bool, temperature: float, weight: float, base: float | None, how: str,
        invalid: str,
    ) -> None:  # fmt: skip
        self.task = reduction.task_of(name, kind, normalize, temperature, weight)
        self.unit = reduction.unit_of(base)
        arrays.one_of(how, ("none", "mean", "sum"), "reduction")
        arrays.one_of(invalid, ("nan", "raise"), "invalid")
        self.is_plain = how == "none" and invalid == "nan"


_kept = functools.lru_cache(KEPT, typed=True)(Asked)  # what equals an argument may still be refused: True, and 1.0


def _asked(*arguments: Any) -> Asked:
    try:
        return _kept(*arguments)
    except TypeError:  # one of them cannot be kept, or is refused
        return Asked(*arguments)


class Plan(NamedTuple):
    """One launch for rows that lie where the kernels read them."""

    kernel: Any
    per_block: int
    threads: int
    shape: tuple[int, ...]
    result: str
    n: int
    p: tuple[Layout, int]  # the layout of a side as rows, and the distance between them
    q: tuple[Layout, int]
    numbers: tuple[Any, ...]


@functools.lru_cache(KEPT)
def _plan(asked: Asked, p: Layout, q: Layout, dtype: str, axis: int) -> Plan | None:
    """How the rows of two arrays of one dtype are done in one launch without a copy; None where they are not."""
    from klnumba.kernels.cuda.choice import SPLIT

    task, ndim = asked.task, len(arrays.common_shape(p, q))  # type: ignore[arg-type]
    order = order_of(p.shape, q.shape, None, arrays.axes(axis, ndim))
    left, right = arranged(p, order), arranged(q, order)
    ps, qs = (layout.row_step(len(order.outer)) for layout in (left, right))
    if dtype not in DIRECT or not order.n or not 0 < order.d <= SPLIT or ps is None or qs is None:
        return None
    kernel, chosen = _one(task, dtype, order.d)
    return Plan(
        kernel, chosen.threads // chosen.width, chosen.threads, order.outer, compute_dtype(dtype), order.n,
        (left, ps), (right, qs), (order.n, order.d, *task.inverse_temperature(), task.weight, asked.unit),
    )  # fmt: skip


def _one(task: Task, store: str, d: int) -> tuple[Any, Any]:
    """The kernel of one divergence of rows of `d` cells, and its team."""
    from klnumba.kernels.cuda import choice, rows

    chosen = choice.choose(d, store)
    fast = _fast(task) if task.name == "kl" else ""
    return rows.one(task.name, task.logs, task.normalize, fast, store, chosen), chosen


def _at_once(asked: Asked, found: dict[str, Array], axis: int, stream: Any) -> Any:
    """The values of all rows, of arrays for which there is a `Plan`; else None.

    For small calls: what is asked of every other kind of argument takes longer than the kernel.
    """
    from klnumba.kernels.cuda.machine import flat

    first = found["p"]
    second = found.get("q", first)
    plan = _plan(asked, first.layout, second.layout, first.dtype, axis) if first.dtype == second.dtype else None
    if plan is None:
        return None
    place = streams.begin(found, stream)
    made, pointer = place.library.empty(plan.shape, plan.result, place.device, place.stream)
    (left, ps), (right, qs) = plan.p, plan.q
    p = flat_view(first, left)[0]
    q = p if second is first else flat_view(second, right)[0]
    out = flat(pointer, plan.n, plan.result, made)
    place.launch(plan.kernel, plan.n, plan.per_block, plan.threads, p, ps, q, qs, *plan.numbers, out)
    streams.end(place, found, stream)
    return made


def statistics(
    p: Any, q: Any, stats: Any, kind: str, axis: Any, normalize: bool, base: float | None,
    temperature: float, where: Any, keepdims: bool, dtype: Any, invalid: str, stream: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Several statistics of every row, in one launch."""
    stats = reduction.named(stats)
    arrays.one_of(invalid, ("nan", "raise"), "invalid")
    unit = reduction.unit_of(base)
    task = reduction.task_of("kl", kind, normalize, temperature, 0.5)
    found = borders.all_of(p=p, q=None if q is p else q, where=where)
    with borders.at_work(found):
        given.add_mask(found, where, stream)
        call = Call(found, axis, task, dtype, stream)
        plan = tuple(reduction.SOURCES[name] for name in stats)
        shape = call.shape(keepdims)
        made = [call.place.new(shape, np.bool_) if source == AGREE else call.result(shape, dtype) for source, _ in plan]
        if call.rows.n and plan:
            call.statistics(plan, task, unit, tuple(flat_view(target, target.layout)[0] for _, target in made))
        if invalid == "raise":
            for (source, _), (_, target) in zip(plan, made, strict=True):
                if source != AGREE:
                    cells = flat_view(target, target.layout)[0]
                    call.refuse(reduction.task_of(source, kind, normalize, temperature, 0.5), cells)
        streams.end(call.place, found, stream)
    return {name: result for name, (result, _) in zip(stats, made, strict=True)}


class Call:
    """The rows of a call on its device and stream."""

    def __init__(self, found: dict[str, Array], axis: Any, task: Task, dtype: Any, stream: Any) -> None:
        first = found["p"]
        second, mask = found.get("q", first), found.get("where")
        if mask is not None and mask.dtype != "bool":
            raise TypeError(f"where: a boolean array, not {mask.dtype}")
        shape = arrays.common_shape(first, second)  # type: ignore[arg-type]
        if mask is not None:
            try:
                shape = np.broadcast_shapes(shape, mask.shape)
            except ValueError:
                raise ValueError(f"where: shape {mask.shape} does not broadcast with {shape}") from None
        self.ndim, self.reduced_axes = len(shape), arrays.axes(axis, len(shape))
        self.place, self.sides = streams.begin(found, stream), (first, second, mask)
        self.out = found.get("out")
        wide = dtype is not None and np.dtype(dtype) == np.float64
        zero = -math.inf if task.logs else 0.0
        self.rows = Rows(first, second, self.reduced_axes, mask, zero, self.place, wide=wide)

    def shape(self, keepdims: bool) -> tuple[int, ...]:
        """Of the values of the rows."""
        return reduction.kept_shape(self.rows.outer, self.reduced_axes, self.ndim, keepdims)

    def shape_of_one(self, keepdims: bool) -> tuple[int, ...]:
        """Of one value of all rows."""
        return reduction.kept_shape((), tuple(range(self.ndim)), self.ndim, keepdims)

    def result(self, shape: tuple[int, ...], dtype: Any) -> tuple[Any, Array]:
        """A new array of the caller's library, or the one that was given."""
        if self.out is not None:
            self._check_out(self.out, shape)
            if not any(self.out.overlaps(side) for side in self.sides if side is not None):
                return None, self.out
            dtype = self.out.dtype  # it may overwrite rows that are still to be read
        if dtype is None:
            return self.place.new(shape, self.rows.result)
        return self.place.new(shape, given.dtype_of_results(dtype))

    @staticmethod
    def _check_out(out: Array, shape: tuple[int, ...]) -> None:
        if out.shape != shape:
            raise ValueError(f"out: shape {out.shape}, but the result has shape {shape}")
        given.fit_for_results(out)

    def values(self, task: Task, unit: float, target: Array, strict: bool) -> None:
        """The divergence of every row, into an array."""
        if self.rows.n:
            self._rows(task, unit, flat_view(target, target.layout)[0], strict)

    def reduced(self, task: Task, unit: float, how: str, target: Array, strict: bool) -> None:
        """The mean or the sum of the divergences of all rows, exact and rounded once."""
        from klnumba.kernels.cuda import sums as kernels

        place, n = self.place, self.rows.n
        found = place.room(n, "float64")
        if n:
            self._rows(task, unit, found, strict)
        over = n if how == "mean" else 1  # no rows: NaN
        sums.whole(kernels.of_values(), found, 1, found, 1, n, over, place, flat_view(target, target.layout)[0])

    def _rows(self, task: Task, unit: float, out: Any, strict: bool) -> None:
        """The values, into cells of a kernel; if one is NaN this may raise."""
        self._fill(task, unit, out)
        if strict:
            self.refuse(task, out)

    def _fill(self, task: Task, unit: float, out: Any) -> None:
        from klnumba.kernels.cuda.choice import SPLIT

        found = self.rows
        if not found.d or found.d > SPLIT:
            self.statistics(((task.name, "pq"),), task, unit, (out,))
            return
        kernel, chosen = _one(task, found.store, found.d)
        self._launch(kernel, chosen, task, unit, out)

    def statistics(self, plan: tuple[tuple[str, str], ...], task: Task, unit: float, outs: tuple[Any, ...]) -> None:
        """(divergence, order of the sides) after (divergence, order) of every row."""
        from klnumba.kernels.cuda import choice, flat, rows

        found = self.rows
        if not found.d:
            for (name, _), out in zip(plan, outs, strict=True):
                empty = math.nan if task.normalize or name == "max_log_ratio" else 0.0
                self.place.over_cells(flat.filled(), found.n, 0.0 if name == AGREE else empty, out)
        elif found.d > choice.SPLIT:
            long.run(plan, task, found, _fast(task), unit, self.place, outs)
        else:
            chosen = choice.choose(found.d, found.store)
            kernel = rows.several(plan, task.logs, task.normalize, _fast(task), found.store, chosen)
            self._launch(kernel, chosen, task, unit, outs)

    def _launch(self, kernel: Any, chosen: Any, task: Task, unit: float, out: Any) -> None:
        found = self.rows
        self.place.launch(
            kernel, found.n, chosen.threads // chosen.width, chosen.threads,
            *found.p, *found.q, found.n, found.d, *task.inverse_temperature(), task.weight, unit, out,
        )  # fmt: skip

    def refuse(self, task: Task, values: Any) -> None:
        """Raise if the value of a row is NaN; this waits for the device and copies to the host."""
        from klnumba.gpu import host

        if self.rows.n:
            host.refuse(task, values, self.rows.n, self.sides, self.reduced_axes, self.place.stream)


def _fast(task: Task) -> str:
    """How KL of these rows is computed from one read, or nothing."""
    from klnumba.kernels.cuda.logits import KNOWN, QUICK

    if not task.normalize or math.frexp(task.inverse_temperature()[0])[0] != 0.5:
        return ""
    return KNOWN if task.kind == "log_prob" and task.inverse_temperature()[0] == 1.0 else QUICK
