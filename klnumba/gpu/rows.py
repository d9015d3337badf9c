"""Two arrays on a device as rows: used where they lie if the kernels can, copied side by side on the device if not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba import arrays
from klnumba.gpu.borders import Array
from klnumba.gpu.layout import Layout
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
        shape = arrays.common_shape(p, q)  # type: ignore[arg-type]
        if where is not None:
            shape = np.broadcast_shapes(shape, where.shape)
        if not shape:
            shape, reduced = (1,), (0,)
        kept = tuple(k for k in range(len(shape)) if k not in reduced)
        self._shape, self._order, self._kept = shape, kept + reduced, len(kept)
        self.outer = tuple(shape[k] for k in kept)
        self.n = math.prod(self.outer)
        self.d = math.prod(shape[k] for k in reduced)
        self.result = "float64" if wide else compute_dtype(p.dtype, q.dtype)
        plain = p.dtype == q.dtype and p.dtype in DIRECT and not wide and where is None
        self.store = p.dtype if plain else self.result
        self.empty = self.n * self.d == 0
        if not self.empty:
            self.p = self._side(p, where, zero)
            self.q = self.p if q is p else self._side(q, where, zero)

    def _arranged(self, array: Array) -> Layout:
        return array.layout.broadcast(self._shape).transposed(self._order)

    def _side(self, array: Array, where: Array | None, zero: float) -> tuple[Any, int]:
        layout = self._arranged(array)
        step = layout.row_step(self._kept)
        if where is None and array.dtype == self.store and step is not None:
            return flat_view(array, layout)[0], step
        held = None if where is None else (where, self._arranged(where))
        return side_by_side(array, layout, self.store, self._place, held, zero), self.d


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
    from klnumba.kernels.cuda import machine
    from klnumba.kernels.cuda.cells import STORED

    stored = "uint8" if array.dtype == "bool" else STORED.get(array.dtype, array.dtype)
    first = layout.least()
    pointer = array.pointer + first * np.dtype(stored).itemsize
    return machine.flat(pointer, layout.extent(), stored, array.owner), -first


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
