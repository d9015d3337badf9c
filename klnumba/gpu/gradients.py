"""Derivatives for arrays on a CUDA device: what `klnumba.derivatives` is for arrays of the CPU."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from klnumba.gpu import borders, given, streams
from klnumba.gpu.borders import Array
from klnumba.gpu.cellwise import operand, read_as
from klnumba.gpu.layout import adjacent
from klnumba.gpu.place import Place
from klnumba.gpu.reduction import Call
from klnumba.gpu.rows import compute_dtype, flat_view, merged

if TYPE_CHECKING:
    from klnumba.derivatives import OfCells, OfRows

By = tuple[bool, bool]  # whether the derivative by the first argument is wanted, and that by the second
Made = list[Any]  # new arrays of the caller's library, in the shapes of the arguments; None where none is wanted


def of_rows(asked: OfRows, p: Any, q: Any, upstream: Any, by: By) -> Made:
    """The derivatives by p and by q, given those by the result: a number, or an array of its shape."""
    found = _arrays(("p", p), ("q", q), asked.where, upstream)
    with borders.at_work(found):
        given.add_mask(found, asked.where, asked.stream)
        call = Call(found, asked.axis, asked.task(), asked.dtype, asked.stream)
        order, result, (left, right, mask) = call.rows.order, call.rows.result, call.sides
        targets = [
            Target(side, order.shape, order.axes, mask, result, call.place) if wanted else None
            for side, wanted in zip((left, right), by, strict=True)
        ]
        if call.rows.n and call.rows.d:
            _launch(asked, call, found.get("upstream"), by, targets)
        made = [target and target.made() for target in targets]
        streams.end(call.place, found, asked.stream)
    return made


def _launch(asked: OfRows, call: Call, upstream: Array | None, by: By, targets: list[Target | None]) -> None:
    from klnumba.kernels.cuda import choice, slopes

    task, rows = asked.task(), call.rows
    chosen = choice.choose(rows.d, rows.store)
    factors, step, store = _factors(upstream, call.place)
    kernel = slopes.of_rows(task.name, task.logs, task.normalize, by, rows.store, store, chosen)
    first, second = _cells_of(targets)
    call.place.launch(
        kernel, rows.n, chosen.threads // chosen.width, chosen.threads, *rows.p, *rows.q, rows.n, rows.d,
        *task.inverse_temperature(), task.weight, asked.divisor(rows.n), factors, step, first, second,
    )  # fmt: skip


def of_cells(asked: OfCells, x: Any, y: Any, upstream: Any, by: By) -> Made:
    """As `of_rows`, of a function of single cells."""
    from klnumba.kernels.cuda import slopes

    first, second = asked.names
    found = _arrays((first, x), (second, y), asked.where, upstream)
    with borders.at_work(found):
        given.add_mask(found, asked.where, None)
        place = streams.begin(found)
        left, right, mask = found[first], found.get(second, found[first]), found.get("where")
        shape = np.broadcast_shapes(*(array.shape for array in found.values()))
        wide = asked.dtype is not None and np.dtype(asked.dtype) == np.float64
        result, axes = "float64" if wide else compute_dtype(left.dtype, right.dtype), tuple(range(len(shape)))
        targets = [
            Target(side, shape, axes, None, result, place) if wanted else None
            for side, wanted in zip((left, right), by, strict=True)
        ]
        cells = math.prod(shape)
        if cells:
            kernel_mask = left if mask is None else mask
            marks, start = flat_view(kernel_mask, kernel_mask.layout.broadcast(shape))
            lengths, (steps,) = merged(shape, (kernel_mask.layout.broadcast(shape).steps,))
            factors, step, store = _factors(found.get("upstream"), place, shape)
            kernel = slopes.of_cells(asked.name, read_as(left), read_as(right), store, mask is not None, by)
            place.over_cells(
                kernel, cells, *operand(left, shape, place), *operand(right, shape, place), factors, step,
                float(asked.count), marks, start, lengths, steps, cells, *_cells_of(targets),
            )  # fmt: skip
        made = [target and target.made() for target in targets]
        streams.end(place, found)
    return made


def _arrays(first: tuple[str, Any], second: tuple[str, Any], where: Any, upstream: Any) -> dict[str, Array]:
    """The arrays of a call by name; a number as the derivative by the result is none."""
    sides = dict([first]) if second[1] is first[1] else dict([first, second])
    number = isinstance(upstream, float)
    return borders.all_of(**sides, where=where, upstream=None if number else upstream)


def _factors(upstream: Array | None, place: Place, shape: tuple[int, ...] | None = None) -> tuple[Any, int, str]:
    """(an array for a kernel, 1 or, for one number in the place of all, 0, how it is read); none stands for 1."""
    from klnumba.kernels.cuda import flat

    if upstream is None:
        one = place.room(1, "float64")
        place.over_cells(flat.filled(), 1, 1.0, one)
        return one, 0, "float64"
    cells, step = operand(upstream, upstream.shape if shape is None else shape, place)
    alone = shape is None and math.prod(upstream.shape) == 1
    return cells, 0 if alone else step, read_as(upstream)


def _cells_of(targets: list[Target | None]) -> Iterator[Any]:
    """What a kernel writes to; in the place of what is not wanted, the other."""
    wanted = next(target.cells for target in targets if target is not None)
    return (wanted if target is None else target.cells for target in targets)


class Target:
    """Where the derivatives by one argument go: into the result, or into room from which they are brought there.

    A kernel writes those of the whole `shape`, its axes in the order `axes`, side by side.
    """

    def __init__(
        self, argument: Array, shape: tuple[int, ...], axes: tuple[int, ...], mask: Array | None, dtype: str,
        place: Place,
    ) -> None:  # fmt: skip
        self._argument, self._shape, self._axes, self._mask, self._place = argument.shape, shape, axes, mask, place
        self._result, self._array = replace(place, library=argument.library).new(argument.shape, dtype)
        self._direct = mask is None and argument.shape == shape and axes == tuple(range(len(shape)))
        own = flat_view(self._array, self._array.layout)[0]
        self.cells = own if self._direct else place.room(math.prod(shape), dtype)

    def made(self) -> Any:
        """The result, once the kernel has been started."""
        cells = math.prod(self._argument)
        if cells and not self._direct:
            self._fold(cells)
        return self._result

    def _fold(self, cells: int) -> None:
        from klnumba.kernels.cuda import slopes

        order = sorted(range(len(self._axes)), key=self._axes.__getitem__)
        written = adjacent(tuple(self._shape[k] for k in self._axes)).transposed(tuple(order))
        out = flat_view(self._array, self._array.layout)[0]
        marks, held, start = written, out, 0
        if self._mask is not None:
            marks = self._mask.layout.broadcast(self._shape)
            held, start = flat_view(self._mask, marks)
        lead = len(self._shape) - len(self._argument)
        spread = [k < lead or (self._argument[k - lead] == 1 and n != 1) for k, n in enumerate(self._shape)]
        own, more = (_axes_that(spread, which, self._shape, written.steps, marks.steps) for which in (False, True))
        copies = math.prod(n for n, apart in zip(self._shape, spread, strict=True) if apart)
        self._place.over_cells(
            slopes.folded(self._mask is not None), cells,
            self.cells, own[0], own[1][0], more[0], copies, more[1][0], held, start, own[1][1], more[1][1], out,
        )  # fmt: skip


def _axes_that(
    spread: list[bool], which: bool, shape: tuple[int, ...], *walks: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Those axes along which an argument was, or was not, broadcast, and the steps along them."""
    kept = [k for k, apart in enumerate(spread) if apart is which]
    return merged(tuple(shape[k] for k in kept), tuple(tuple(walk[k] for k in kept) for walk in walks))
