"""What a call is given beside its two sides: an array for the result, and a mask that is one truth value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from klnumba.gpu.borders import Array
from klnumba.gpu.place import Place
from klnumba.gpu.rows import flat_view


def fit_for_results(out: Array) -> None:
    """Raise where kernels cannot write results into an array.

    Raises
    ------
    TypeError
        If its dtype is not one of those of results.
    ValueError
        If its cells are not adjacent, or are not to be written.
    """
    if out.dtype not in ("float64", "float32"):
        raise TypeError(f"out: float64 or float32 for arrays on a device, not {out.dtype}")
    if not out.layout.is_adjacent():
        raise ValueError("out: on a device, an array whose cells are adjacent in C order")
    if not out.writable:
        raise ValueError("out: read-only")


def dtype_of_results(dtype: Any) -> np.dtype[Any]:
    """The dtype that is asked for, if results on a device have it."""
    kind: np.dtype[Any] = np.dtype(dtype)
    if kind.name not in ("float64", "float32"):
        raise TypeError(f"dtype: float64 or float32 for arrays on a device, not {kind}")
    return kind


def add_mask(found: dict[str, Array], where: Any, stream: Any) -> None:
    """Among the arrays of a call put that of ``where=False``, which holds no cell; for True there is none."""
    if isinstance(where, bool | np.bool_) and not where:
        from klnumba.kernels.cuda import flat

        place = Place.of(next(iter(found.values())), stream)
        _, mask = place.own.new((), "bool")
        place.over_cells(flat.filled(), 1, 0, flat_view(mask, mask.layout)[0])
        found["where"] = replace(mask, name="where")
