"""What needs the host: naming the row that is no distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba import arrays
from klnumba.diagnosis import diagnosis
from klnumba.engine import Task
from klnumba.gpu import borders
from klnumba.gpu.borders import Array
from klnumba.gpu.place import Place
from klnumba.gpu.rows import flat_view


def fetched(array: Array) -> np.ndarray:
    """A copy of an array in the memory of the host."""
    flat, start = flat_view(array, array.layout)
    cells = np.asarray(flat.copy_to_host())
    if array.dtype in ("float16", "bfloat16"):
        wide = cells.view(np.float16) if array.dtype == "float16" else (cells.astype(np.uint32) << 16).view(np.float32)
        cells = wide.astype(np.float32)
    elif array.dtype == "bool":
        cells = cells.view(bool)
    strides = tuple(step * cells.itemsize for step in array.layout.steps)
    return np.lib.stride_tricks.as_strided(cells[start:], array.shape, strides, writeable=False)


def numbers(result: Any) -> np.ndarray:
    """A copy of a result in the memory of the host. Waits for the device."""
    return fetched(borders.take(result, "result"))


def filled(fill: Callable[[Any], None], like: Any, shape: tuple[int, ...]) -> np.ndarray:
    """What `fill` puts into a float64 array of the library and device of `like`, flat on the host."""
    with borders.device_of(p=like):
        made, out = Place.of(borders.take(like, "p")).new(shape, "float64")
        fill(made)
        return fetched(out).reshape(-1)


def refuse(task: Task, target: Array, p: Any, q: Any, where: Any, reduced: tuple[int, ...], zero: float) -> None:
    """Raise if a value is NaN, with the row, the cell and the rule. Waits for the device."""
    bad = np.flatnonzero(np.isnan(fetched(target)))
    if not bad.size:
        return
    left = fetched(borders.take(p, "p"))
    right = left if q is p else fetched(borders.take(q, "q"))
    mask = None if where is None or where is True else fetched(borders.take(where, "where"))
    rows = arrays.Rows(left, right, reduced, mask, zero, wide=True)
    raise ValueError(diagnosis(rows, task, int(bad[0])))
