"""Parameters of distributions that lie on a CUDA device."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from klnumba.gpu import borders, required, streams
from klnumba.gpu.place import Place
from klnumba.gpu.rows import flat_view, side_by_side


class Numbers:
    """A parameter on a device, as a distribution keeps it: a view, which is neither copied nor checked."""

    def __init__(self, array: Any, owner: str, name: str) -> None:
        required()
        try:
            self.taken = borders.take(array, name)
        except TypeError as error:
            raise TypeError(f"{owner}: {error}") from None
        self.array = array
        self.shape, self.ndim = self.taken.shape, len(self.taken.shape)
        narrow = self.taken.dtype in ("float32", "float16", "bfloat16")
        self.dtype = np.dtype(np.float32 if narrow else np.float64)

    def __repr__(self) -> str:
        return f"<{self.taken.dtype} of shape {self.shape} on device cuda:{self.taken.device}>"


def evaluate(
    formula: Callable[..., float], columns: Sequence[Any], shape: tuple[int, ...], dtype: Any, unit: float
) -> Any:
    """formula(*columns) over `unit`, broadcast to `shape`, in the library and on the device of the first column there.

    Raises
    ------
    ValueError
        If columns are on two devices, or one is a batch of the CPU.
    """
    found = [column.taken for column in columns if isinstance(column, Numbers)]
    first = found[0]
    for column in columns:
        if isinstance(column, Numbers) and column.taken.device != first.device:
            raise ValueError(f"p, q: parameters on devices cuda:{first.device} and cuda:{column.taken.device}")
        if not isinstance(column, Numbers) and np.size(column) > 1:
            raise ValueError(f"p, q: parameters on device cuda:{first.device} and in the memory of the CPU")
    from klnumba.kernels.cuda import elementwise, machine

    with machine.at(first.device):
        places = {str(k): column.taken for k, column in enumerate(columns) if isinstance(column, Numbers)}
        place = streams.begin(places)
        made, out = place.new(shape, dtype)
        if not math.prod(shape):
            return made
        cut = [_column(column, shape, place) for column in columns]
        kernel = elementwise.over_columns(formula, len(cut))
        place.over_cells(
            kernel, math.prod(shape),
            tuple(column for column, _ in cut), tuple(step for _, step in cut), unit, flat_view(out, out.layout)[0],
        )  # fmt: skip
        streams.end(place, places)
    return made


def _column(column: Any, shape: tuple[int, ...], place: Place) -> tuple[Any, int]:
    """(float64 numbers side by side, 1 or, for one number in the place of all, 0)."""
    from klnumba.kernels.cuda import flat

    if not isinstance(column, Numbers):
        one = place.room(1, "float64")
        place.over_cells(flat.filled(), 1, float(np.reshape(column, ())), one)
        return one, 0
    array = column.taken
    layout = array.layout.broadcast(shape)
    if math.prod(array.shape) == 1:
        return side_by_side(array, array.layout, "float64", place), 0
    if array.dtype == "float64" and layout.is_adjacent():
        return flat_view(array, layout)[0], 1
    return side_by_side(array, layout, "float64", place), 1
