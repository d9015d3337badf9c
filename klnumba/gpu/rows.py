"""Two arrays on a device as rows: used where they lie if the kernels can, copied side by side on the device if not."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from klnumba import arrays
from klnumba.gpu.borders import Array
from klnumba.gpu.layout import KEPT, Layout
from klnumba.gpu.place import Place

DIRECT = ("float64", "float32", "float16", "bfloat16")  # dtypes that the kernels over rows read


def compute_dtype(*dtypes: str) -> str:
    """float32 where every argument is float32 or narrower, else float64, as on the CPU."""
    return "float32" if all(dtype in ("float32", "float16", "bfloat16") for dtype in dtypes) else "float64"


class Rows:
    """p and q as rows of `d` adjacent cells: (flat array, distance between rows) for each in `p` and `q`."""

    def __init__(
        self, p: Array, q: Array, reduced: tuple[int, ...], where: Array | None, zero: float, place: Place, *,
        wide: bool,
    ) -> None:  # fmt: skip
        self._place = place
        self.order = order = order_of(p.shape, q.shape, None if where is None else where.shape, reduced)
        self.outer, self.n, self.d = order.outer, order.n, order.d
        self.result = "float64" if wide else compute_dtype(p.dtype, q.dtype)
        plain = p.dtype == q.dtype and p.dtype in DIRECT and not wide and where is None
        self.store = p.dtype if plain else self.result
        if self.n and self.d:
            self.p = self._side(p, where, zero)
            self.q = self.p if q is p else self._side(q, where, zero)

    def _arranged(self, array: Array) -> Layout:
        return arranged(array.layout, self.order)

    def _side(self, array: Array, where: Array | None, zero: float) -> tuple[Any, int]:
        layout = self._arranged(array)
        step = layout.row_step(len(self.outer))
        if where is None and array.dtype == self.store and step is not None:
            return flat_view(array, layout)[0], step
        held = None if where is None else (where, self._arranged(where))
        return side_by_side(array, layout, self.store, self._place, held, zero), self.d


class Order(NamedTuple):
    """The axes of rows: the common shape, those that are kept before the reduced ones, and how many cells they have."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    outer: tuple[int, ...]
    n: int
    d: int


@functools.lru_cache(KEPT)
def order_of(p: tuple[int, ...], q: tuple[int, ...], where: tuple[int, ...] | None, reduced: tuple[int, ...]) -> Order:
    """How arrays of these shapes become rows; the shapes broadcast."""
    shape = np.broadcast_shapes(p, q, p if where is None else where)
    if not shape:
        shape, reduced = (1,), (0,)
    kept = arrays.kept(len(shape), reduced)
    outer = tuple(shape[k] for k in kept)
    return Order(shape, kept + reduced, outer, math.prod(outer), math.prod(shape[k] for k in reduced))


@functools.lru_cache(KEPT)
def arranged(layout: Layout, order: Order) -> Layout:
    """An array's layout as rows."""
    return layout.broadcast(order.shape).transposed(order.axes)


def side_by_side(
    array: Array, layout: Layout, dtype: str, place: Place, mask: tuple[Array, Layout] | None = None, fill: float = 0.0
) -> Any:
    """A copy on the device, as `dtype`, whose cells are adjacent; where the mask says no, `fill`."""
    from klnumba.kernels.cuda import flat
    from klnumba.kernels.cuda.cells import STORED

    cells = math.prod(layout.shape)
    target = place.room(cells, STORED[dtype])
    held, held_layout = (array, layout) if mask is None else mask
    shape, (steps, held_steps) = merged(layout.shape, (layout.steps, held_layout.steps))
    source, start = flat_view(array, layout)
    marks, marks_start = flat_view(held, held_layout)
    raw = array.dtype == dtype and mask is None
    place.over_cells(
        flat.copy(array.dtype, dtype, mask is not None, raw), cells,
        source, start, shape, steps, marks, marks_start, held_steps, fill, target,
    )  # fmt: skip
    return target


def flat_view(array: Array, layout: Layout) -> tuple[Any, int]:
    """(the array's memory from its first cell to its last as a flat array, where the cell with all indices 0 is)."""
    from klnumba.kernels.cuda.machine import flat

    stored, start, offset, cells = _memory(layout, array.dtype)
    return flat(array.pointer - offset, cells, stored, array.owner), start


@functools.lru_cache(KEPT)
def _memory(layout: Layout, dtype: str) -> tuple[str, int, int, int]:
    """(the dtype of the cells for a kernel, how many come before the one with all indices 0, in bytes, all cells)."""
    from klnumba.kernels.cuda.cells import STORED

    stored = "uint8" if dtype == "bool" else STORED.get(dtype, dtype)
    start = -layout.least()
    return stored, start, start * np.dtype(stored).itemsize, layout.extent()


def merged(
    shape: tuple[int, ...], steps: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """The same cells with as few axes as can be: fewer divisions to find a cell."""
    lengths: list[int] = []
    walks: list[list[int]] = [[] for _ in steps]
    for k, n in enumerate(shape):
        if n == 1:
            continue
        if lengths and all(walk[-1] == one[k] * n for walk, one in zip(walks, steps, strict=True)):
            lengths[-1] *= n
            for walk, one in zip(walks, steps, strict=True):
                walk[-1] = one[k]
        else:
            lengths.append(n)
            for walk, one in zip(walks, steps, strict=True):
                walk.append(one[k])
    if not lengths:
        return (1,), tuple((0,) for _ in steps)
    return tuple(lengths), tuple(map(tuple, walks))
