"""Derivatives of the array functions by their arguments."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from klnumba import arrays
from klnumba.arrays import FLOAT64, Block, Rows, compute_dtype, take
from klnumba.engine import NAMES, Task, frozen
from klnumba.formulas.slopes import SLOPES
from klnumba.gpu.borders import any_on_device
from klnumba.kernels import cpu, hessians, threads
from klnumba.kernels.fast import SHORT as FEW
from klnumba.kernels.log_slopes_short import ROOM
from klnumba.kernels.logs_short import SHORT
from klnumba.kernels.means import room_of_shares
from klnumba.kernels.rises import KEPT
from klnumba.reduction import kept_shape, prepared, reduce, task_of, unit_of

By = tuple[bool, bool]  # whether the derivative by p is wanted, and that by q
Found = list[Any]  # an array each, None where none is wanted
Moves = tuple[Any, Any]  # the directions in which p and q move, None for one that stays


@dataclass(frozen=True)
class OfRows:
    """A call of a function of rows, whose derivatives are asked for."""

    name: str
    kind: str
    axis: Any
    normalize: bool
    base: float | None
    temperature: float
    reduction: str
    where: Any
    dtype: Any
    threads: int | None
    weight: float = 0.5
    stream: Any = None
    keepdims: bool = False
    invalid: str = "nan"
    names: ClassVar[tuple[str, str]] = ("p", "q")
    by_last_axes: ClassVar[bool] = True

    def value(self, p: Any, q: Any) -> Any:
        """The result itself."""
        return reduce(
            self.name, p, p if q is None else q, self.kind, self.axis, self.normalize, self.base, self.temperature,
            self.reduction, self.where, self.keepdims, None, self.dtype, self.threads, self.invalid, self.weight,
            stream=self.stream,
        )  # fmt: skip

    def slopes(self, p: Any, q: Any, upstream: Any, by: By) -> Found:
        """The derivatives of what is made of the result, by p and by q, given those by the result itself.

        The entropy has no q.
        """
        q = p if q is None else q
        if any_on_device(p, q):
            from klnumba.gpu import gradients as gpu

            return gpu.of_rows(self, p, q, upstream, by)
        sides, task = _taken(p, q), self.task()
        rows, _, reduced, _ = prepared(*sides, self.axis, self.where, task, self.dtype)
        factors = np.asarray(upstream, np.float64) / self.divisor(rows.n)
        found = _slopes(task, rows, factors, by, self._threads(rows))
        places = [_in_place(out, rows, reduced) if wanted else None for out, wanted in zip(found, by, strict=True)]
        return _as_arguments(places, sides)

    def slopes_along(self, p: Any, q: Any, moves: Moves) -> Any:
        """The derivative of the result in a direction, in float64."""

        def slopes(task: Task, rows: Rows, reduced: tuple[int, ...], by: By, count: int) -> Found:
            return _slopes(task, rows, 1.0 / self.divisor(rows.n), by, count)

        return self._along(p, q, moves, slopes)

    def hessian_product(self, p: Any, q: Any, upstream: Any, moves: Moves, by: By) -> Found:
        """What the derivatives change by as p and q move, in float64."""
        sides, rows, reduced, _ = self._wide(p, q)
        factors = np.asarray(upstream, np.float64) / self.divisor(rows.n)
        found = _hessian_products(self.task(), rows, reduced, factors, moves, by, self._threads(rows))
        places = [_in_place(out, rows, reduced) if wanted else None for out, wanted in zip(found, by, strict=True)]
        return _as_arguments(places, sides)

    def hessian_along(self, p: Any, q: Any, moves: Moves, others: Moves) -> Any:
        """The second derivative of the result in two directions, in float64."""

        def slopes(task: Task, rows: Rows, reduced: tuple[int, ...], by: By, count: int) -> Found:
            return _hessian_products(task, rows, reduced, 1.0 / self.divisor(rows.n), others, by, count)

        return self._along(p, q, moves, slopes)

    def _along(self, p: Any, q: Any, moves: Moves, slopes: Callable[..., Found]) -> Any:
        """The derivatives by the cells of rows times the moves of these, added up to the shape of the result."""
        _, rows, reduced, ndim = self._wide(p, q)
        by = moves[0] is not None, moves[1] is not None
        found = slopes(self.task(), rows, reduced, by, self._threads(rows))
        total = np.zeros(rows.n)
        for out, move in zip(found, moves, strict=True):
            if move is not None:
                total += _times(out, _flat_moves(move, rows, reduced)).reshape(rows.n, rows.d).sum(axis=1)
        if self.reduction == "none":
            return total.reshape(kept_shape(rows.outer, reduced, ndim, self.keepdims))
        return total.sum().reshape(kept_shape((), tuple(range(ndim)), ndim, self.keepdims))

    def _wide(self, p: Any, q: Any) -> tuple[tuple[np.ndarray, np.ndarray], Rows, tuple[int, ...], int]:
        """The arguments, and their rows in float64."""
        _on_the_cpu(p, q)
        sides = _taken(p, p if q is None else q)
        rows, ndim, reduced, _ = prepared(*sides, self.axis, self.where, self.task(), FLOAT64)
        return sides, rows, reduced, ndim

    def _threads(self, rows: Rows) -> int:
        return threads.choose(self.threads, rows.n * rows.d)

    def behind_a_batch(self, shapes: list[tuple[int, ...]]) -> OfRows | None:
        """The call with arguments of one axis more, before those of these shapes.

        None where the result has no place for each row of the arguments, or something is added up over rows.
        """
        shape = np.broadcast_shapes(*shapes)
        where = () if self.where is None else np.shape(self.where)
        if self.reduction != "none" or not shape or np.broadcast_shapes(shape, where) != shape:
            return None
        return replace(self, axis=tuple(k + 1 for k in arrays.axes(self.axis, len(shape))))

    def task(self) -> Task:
        """What is computed of a row."""
        return task_of(self.name, self.kind, self.normalize, self.temperature, self.weight)

    def divisor(self, rows: int) -> float:
        """By what a value of a row is divided."""
        return unit_of(self.base) * (max(rows, 1) if self.reduction == "mean" else 1)


@dataclass(frozen=True)
class OfCells:
    """A call of a function of single cells."""

    by_last_axes: ClassVar[bool] = True

    name: str
    where: Any = True
    dtype: Any = None
    names: tuple[str, str] = ("p", "q")
    count: int = 1  # by which the results are divided
    summed: bool = False  # whether the result is their sum
    value: Callable[[Any, Any], Any] | None = None  # what computes the result itself

    def slopes(self, p: Any, q: Any, upstream: Any, by: By) -> Found:
        """As those of rows."""
        if any_on_device(p, q):
            from klnumba.gpu import gradients as gpu

            return gpu.of_cells(self, p, q, upstream, by)
        sides = _taken(p, q, self.names)
        wide = self.dtype is not None and np.dtype(self.dtype) == FLOAT64
        kind = FLOAT64 if wide else compute_dtype(*sides)
        loop = cpu.slope_cells(self.name, NAMES[kind.char], by)
        found = _cells(loop, sides, self._factors(upstream, *sides), kind, by)
        return _as_arguments(found, sides)

    def slopes_along(self, p: Any, q: Any, moves: Moves) -> Any:
        """As that of rows."""
        _on_the_cpu(p, q)
        sides = _taken(p, q, self.names)
        by = moves[0] is not None, moves[1] is not None
        found = _cells(cpu.slope_cells(self.name, FLOAT64.name, by), sides, self._factors(1.0, *sides), FLOAT64, by)
        return self._along(found, moves)

    def hessian_product(self, p: Any, q: Any, upstream: Any, moves: Moves, by: By) -> Found:
        """As that of rows."""
        found, sides = self._hessian_product(p, q, upstream, moves)
        return _as_arguments([out if wanted else None for out, wanted in zip(found, by, strict=True)], sides)

    def hessian_along(self, p: Any, q: Any, moves: Moves, others: Moves) -> Any:
        """As that of rows."""
        return self._along(self._hessian_product(p, q, 1.0, others)[0], moves)

    def _hessian_product(self, p: Any, q: Any, upstream: Any, moves: Moves) -> tuple[Found, tuple[Any, Any]]:
        _on_the_cpu(p, q)
        sides = _taken(p, q, self.names)
        given = (*sides, *(np.zeros(()) if move is None else move for move in moves))
        return _cells(cpu.hessian_cells(self.name), given, self._factors(upstream, *sides), FLOAT64), sides

    def _along(self, found: Found, moves: Moves) -> Any:
        """The derivatives of cells times the moves of these, or the sum of all."""
        total = sum(_times(out, move) for out, move in zip(found, moves, strict=True) if move is not None)
        return np.sum(total) if self.summed else total

    def _factors(self, upstream: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The derivatives by the result of each cell, none where it does not count."""
        factors = np.asarray(np.asarray(upstream, np.float64) / self.count)
        if self.where is not True:
            factors = np.where(np.asarray(self.where), factors, 0.0)
        for side in (x, y):
            if isinstance(side, np.ma.MaskedArray):
                factors = np.where(np.ma.getmaskarray(side), 0.0, factors)
        return factors

    def behind_a_batch(self, shapes: list[tuple[int, ...]]) -> OfCells | None:
        """As that of rows, of cells."""
        shape = np.broadcast_shapes(*shapes)
        return None if self.summed or np.broadcast_shapes(shape, np.shape(self.where)) != shape else self


def _on_the_cpu(p: Any, q: Any) -> None:
    if any_on_device(p, q):
        raise NotImplementedError("on a CUDA device first derivatives are computed, in reverse mode alone")


def _times(found: np.ndarray, move: Any) -> np.ndarray:
    """Derivatives times moves; what does not move adds nothing, whatever its derivative is."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(move == 0.0, 0.0, found * move)


def _taken(p: Any, q: Any, names: tuple[str, str] = ("p", "q")) -> tuple[np.ndarray, np.ndarray]:
    """The arrays behind two arguments: the same one twice where these are one."""
    first = take(p, names[0])[0]
    return first, first if q is p else take(q, names[1])[0]


def _as_arguments(found: Found, sides: tuple[np.ndarray, np.ndarray]) -> Found:
    """Derivatives in the shapes of their arguments."""
    return [None if out is None else summed_to(out, x.shape) for out, x in zip(found, sides, strict=True)]


def _slopes(task: Task, rows: Rows, factors: Any, by: By, count: int) -> Found:
    """The derivatives of the values of rows, each times its factor, by p and by q, row after row.

    Factors are a number for each row, or one for all.
    """
    scale, found = _room(rows, factors, by)
    short, name = rows.d < SHORT, NAMES[rows.dtype.char]
    inverse: tuple[float, ...] = task.inverse_temperature() if task.logs else ()

    def careful(block: Block, scale: np.ndarray, places: list[np.ndarray], index: np.ndarray) -> None:
        loop = cpu.slope_rows(task.name, name, task.logs, short, task.normalize)
        more = (np.empty(ROOM),) if short else ()
        numbers = (scale, task.weight, *inverse)
        loop(*block.sides(), frozen(index), rows.d, *numbers, *by, *places, *more, *threads.scratch(FLOAT64))

    loops, kept = _quick_loops(task, name, rows.d, by), dict[int, np.ndarray]()

    def quick(block: Block, scale: np.ndarray, places: list[np.ndarray]) -> np.ndarray:
        """The rows that are left."""
        room = threads.scratch(FLOAT64 if rows.d < FEW else rows.dtype)
        powers = kept.setdefault(threading.get_ident(), np.empty(room_of_shares(rows.d) if loops else 0))
        flag = np.zeros((len(loops), block.count), np.int8)
        for (side, loop), left in zip(loops.items(), flag, strict=True):
            if isinstance(side, int):
                rest: tuple[Any, ...] = (*inverse[:1], places[side], left, *([powers] if task.logs else []))
            else:
                rest = (task.weight, inverse[0] if task.logs else 1.0, *side, *places, left, powers)
            loop(*block.sides(), block.count, rows.d, scale, *rest, *room)
        return np.flatnonzero(flag.any(axis=0))

    def one(job: Any) -> None:
        block = rows.load(job)
        stop = block.first + block.count
        places = [out[block.first * rows.d : stop * rows.d] for out in found]
        factors = scale[block.first : stop]
        index = quick(block, factors, places) if loops else np.arange(block.count)
        if index.size:
            careful(block, factors, places, index)

    if rows.n and rows.d:
        threads.run(one, rows.blocks(count), count)
    return found


def _room(rows: Rows, factors: Any, by: By) -> tuple[np.ndarray, Found]:
    """The factors of all rows, and where the derivatives that are wanted go."""
    scale = np.array(np.broadcast_to(np.asarray(factors, np.float64).reshape(-1), (rows.n,)))
    return scale, [np.empty(rows.n * rows.d if wanted else 0, rows.dtype) for wanted in by]


def _hessian_products(
    task: Task, rows: Rows, reduced: tuple[int, ...], factors: Any, moves: Moves, by: By, count: int
) -> Found:
    """What `_slopes` change by as the cells move, of rows in float64."""
    scale, found = _room(rows, factors, by)
    steps = [0 if move is None else rows.d for move in moves]
    ways = [np.zeros(rows.d) if move is None else _flat_moves(move, rows, reduced) for move in moves]
    for way in ways:
        way.flags.writeable = False
    loop = cpu.hessian_rows(task.name, task.logs, task.normalize)
    inverse: tuple[float, ...] = task.inverse_temperature() if task.logs else ()

    def one(job: Any) -> None:
        block = rows.load(job)
        stop = block.first + block.count
        places = [out[block.first * rows.d : stop * rows.d] for out in found]
        directions = [(way[block.first * step :], step) for way, step in zip(ways, steps, strict=True)]
        loop(
            *block.sides(), frozen(np.arange(block.count)), rows.d, scale[block.first : stop], task.weight, *inverse,
            *directions[0], *directions[1], *by, *places, np.empty((hessians.KEPT, rows.d + hessians.MORE)),
            *threads.scratch(FLOAT64),
        )  # fmt: skip

    if rows.n and rows.d:
        threads.run(one, rows.blocks(count), count)
    return found


def _flat_moves(move: Any, rows: Rows, reduced: tuple[int, ...]) -> np.ndarray:
    """The moves of the cells of an argument, row after row."""
    order = _order(rows, reduced)
    shape = tuple((rows.outer + rows.inner)[k] for k in np.argsort(order))
    found = np.ascontiguousarray(np.broadcast_to(move, shape).transpose(order), np.float64)
    return found.reshape(-1).view()


def _order(rows: Rows, reduced: tuple[int, ...]) -> tuple[int, ...]:
    """The axes in the order of rows."""
    return arrays.kept(len(rows.outer + rows.inner), reduced) + reduced


def _quick_loops(task: Task, dtype: str, d: int, by: By) -> dict[int | By, Any]:
    """What serves most rows, by the side that is wanted or, of loops that take both, by both; none for some calls."""
    slope, short, found = SLOPES[task.name], d < FEW, dict[int | By, Any]()
    if not task.normalize:
        return found
    if task.logs and by[0] and slope.meant is not None:
        found[0] = cpu.mean_rows(task.name, dtype, short)
    if by[1] and slope.rises:
        found[1] = cpu.rise_rows(dtype, task.logs, short)
    rest = by[0] and 0 not in found, by[1] and 1 not in found
    if any(rest):
        if d > KEPT:
            return {}
        found[rest] = cpu.centred_rows(task.name, dtype, task.logs, short)
    return found


def _in_place(flat: np.ndarray, rows: Rows, reduced: tuple[int, ...]) -> np.ndarray:
    """The derivatives with their axes where those of the arguments are, 0 for cells that do not count."""
    found = flat.reshape(rows.outer + rows.inner)
    held = rows.held((...,))
    if held is not None:
        found[~held] = 0.0
    return found.transpose(np.argsort(_order(rows, reduced)))


def _cells(
    loop: Any, given: Sequence[np.ndarray], factors: np.ndarray, kind: np.dtype[Any], by: By = (True, True)
) -> Found:
    """What a loop finds by one of two numbers or both, each times its factor, where all that are given broadcast to."""
    one_of_all = not factors.ndim
    shapes = {side.shape for side in (given if one_of_all else (*given, factors))}
    shape = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
    sides, size = [_flat(side, shape, kind) for side in given], math.prod(shape)
    scale = _flat(factors, () if one_of_all else shape, FLOAT64)
    found = [np.empty(size if wanted else 0, kind) for wanted in by]

    def part(start: int) -> None:
        place = slice(start, start + arrays.BLOCK)
        loop(
            *(side[place] for side in sides), scale if one_of_all else scale[place], one_of_all,
            *(out[place] for out in found),
        )  # fmt: skip

    threads.run(part, range(0, size, arrays.BLOCK), threads.choose(None, size))
    return [out.reshape(shape) if wanted else None for out, wanted in zip(found, by, strict=True)]


def _flat(side: np.ndarray, shape: tuple[int, ...], kind: np.dtype[Any]) -> np.ndarray:
    wide = side if side.shape == shape else np.broadcast_to(side, shape)
    return frozen(np.ascontiguousarray(wide, kind).reshape(-1).view())


def summed_to(found: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Derivatives by an argument of this shape that was broadcast: those of its copies, added up."""
    if found.shape == shape:
        return found
    extra = found.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(extra + k for k, n in enumerate(shape) if n == 1 and found.shape[extra + k] != 1)
    total = found.sum(axis=axes, keepdims=True, dtype=np.float64) if axes else found
    return total.astype(found.dtype, copy=False).reshape(shape)
