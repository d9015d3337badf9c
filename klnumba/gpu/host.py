"""What needs the host: naming the row that is no distribution, and numbers that go there and come from there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba import arrays
from klnumba.diagnosis import diagnosis
from klnumba.engine import Task
from klnumba.gpu import borders, streams
from klnumba.gpu.borders import Array
from klnumba.gpu.place import Place
from klnumba.gpu.rows import flat_view


def fetched(array: Array, stream: int | None = None) -> np.ndarray:
    """A copy of an array in the memory of the host. Waits for a stream, by default the one on which it comes about."""
    from klnumba.kernels.cuda import machine

    flat, start = flat_view(array, array.layout)
    if stream is None:
        stream = array.library.stream(array.device) if array.ready is None else array.ready
    cells = machine.download(flat, stream)
    if array.dtype in ("float16", "bfloat16"):
        wide = cells.view(np.float16) if array.dtype == "float16" else (cells.astype(np.uint32) << 16).view(np.float32)
        cells = wide.astype(np.float32)
    elif array.dtype == "bool":
        cells = cells.view(bool)
    strides = tuple(step * cells.itemsize for step in array.layout.steps)
    return np.lib.stride_tricks.as_strided(cells[start:], array.shape, strides, writeable=False)


def numbers(x: Any, name: str = "result") -> np.ndarray:
    """A copy of an array of any library in the memory of the host. Waits for the device."""
    found = borders.all_of(**{name: x})
    with borders.at_work(found):
        return fetched(found[name])


def giver(like: Any) -> Callable[[Any], Any]:
    """What puts numbers of the host into new arrays of the library and on the device of `like`."""
    found = borders.take(like, "p")
    library, device = found.library, found.device

    def give(result: Any) -> Any:
        from klnumba.kernels.cuda import machine

        cells = np.asarray(result, np.float64, order="C")
        with machine.at(device):
            place = Place(library, device, int(library.stream(device)))
            made, target = place.new(cells.shape, cells.dtype)
            if cells.size:
                machine.upload(cells.reshape(-1), flat_view(target, target.layout)[0], place.stream)
            streams.end(place, {"p": found})
        return made

    return give


def refuse(
    task: Task, values: Any, n: int, sides: tuple[Array, Array, Array | None], reduced: tuple[int, ...], stream: int
) -> None:
    """Raise if one of the values of `n` rows is NaN, with the row, the cell and the rule. Waits for the stream."""
    from klnumba.kernels.cuda import machine

    bad = np.flatnonzero(np.isnan(machine.download(values, stream)[:n]))
    if not bad.size:
        return
    p, q, where = sides
    left = fetched(p, stream)
    right = left if q is p else fetched(q, stream)
    mask = None if where is None else fetched(where, stream)
    rows = arrays.Rows(left, right, reduced, mask, -math.inf if task.logs else 0.0, wide=True)
    raise ValueError(diagnosis(rows, task, int(bad[0])))
