"""The functions of single cells for arrays on a CUDA device."""

from __future__ import annotations

import math
from typing import Any

from klnumba import arrays
from klnumba.cellwise import fits, shape_with
from klnumba.gpu import borders, given, streams, sums
from klnumba.gpu.borders import Array
from klnumba.gpu.place import Place
from klnumba.gpu.rows import DIRECT, compute_dtype, flat_view, merged, side_by_side


def pointwise(
    name: str, x: Any, y: Any, out: Any, where: Any, dtype: Any, names: tuple[str, str], over: float = 1.0
) -> Any:
    """A formula of two numbers over two arrays, its values over `over`, with the ufuncs' `out`, `where`, `dtype`."""
    if isinstance(out, tuple):
        (out,) = out
    found = borders.all_of(**{names[0]: x, names[1]: y, "where": where, "out": out})
    with borders.at_work(found):
        given.add_mask(found, where, None)
        place = streams.begin(found)
        result = _pointwise(name, found, out, dtype, names, over, place)
        streams.end(place, found)
        return result


def _pointwise(
    name: str, found: dict[str, Array], out: Any, dtype: Any, names: tuple[str, str], over: float, place: Place
) -> Any:  # fmt: skip
    from klnumba.kernels.cuda import flat

    first, second, mask, target = found[names[0]], found[names[1]], found.get("where"), found.get("out")
    shape = _shape(first, second, mask, target)
    kind = dtype or compute_dtype(first.dtype, second.dtype)
    made, target = _target(target, shape, kind, place)
    given_out = target
    sides = [first, second] if mask is None else [first, second, mask]
    if out is not None and any(target.overlaps(side) and target.memory() != side.memory() for side in sides):
        made, target = place.new(shape, target.dtype)  # cells that are still to be read lie elsewhere in it
        place.copy(given_out, target)
    if not math.prod(shape):
        return made if out is None else out
    (a, a_step), (b, b_step) = operand(first, shape, place), operand(second, shape, place)
    held = target if mask is None else mask
    axes, (steps,) = merged(shape, (held.layout.broadcast(shape).steps,))
    marks, start = flat_view(held, held.layout.broadcast(shape))
    kernel = flat.pointwise(name, read_as(first), read_as(second), mask is not None)
    place.over_cells(
        kernel, math.prod(shape),
        a, a_step, b, b_step, over, marks, start, axes, steps, flat_view(target, target.layout)[0],
    )  # fmt: skip
    if given_out is not target:
        place.copy(target, given_out)
    return made if out is None else out


def total(name: str, x: Any, y: Any, over: int, dtype: Any, names: tuple[str, str]) -> Any:
    """The sum of a formula over all cells, exact, over an integer, rounded once; NaN over 0."""
    found = borders.all_of(**{names[0]: x, names[1]: y})
    with borders.at_work(found):
        place = streams.begin(found)
        result = _total(name, found[names[0]], found[names[1]], over, dtype, place)
        streams.end(place, found)
        return result


def _total(name: str, first: Array, second: Array, over: int, dtype: Any, place: Place) -> Any:
    from klnumba.kernels.cuda import sums as kernels

    shape = arrays.common_shape(first, second)  # type: ignore[arg-type]
    made, target = _target(None, (), dtype or compute_dtype(first.dtype, second.dtype), place)
    cells = math.prod(shape)
    if cells:
        (a, a_step), (b, b_step) = operand(first, shape, place), operand(second, shape, place)
        kernel = kernels.of_cells(name, read_as(first), read_as(second))
    else:
        a = b = place.room(1, "float64")
        a_step, b_step, kernel = 0, 0, kernels.of_values()
    sums.whole(kernel, a, a_step, b, b_step, cells, over, place, flat_view(target, target.layout)[0])
    return made


def _shape(first: Array, second: Array, mask: Array | None, out: Array | None) -> tuple[int, ...]:
    """The shape of a result: the cells broadcast to that of an array which is given."""
    shape = arrays.common_shape(first, second)  # type: ignore[arg-type]
    if mask is not None:
        if mask.dtype != "bool":
            raise TypeError(f"where: a boolean array, not {mask.dtype}")
        shape = shape_with(mask, shape)
    if out is None:
        return shape
    if not fits(shape, out.shape):
        raise ValueError(f"out: shape {out.shape}, but the result has shape {shape}")
    return out.shape


def _target(out: Array | None, shape: tuple[int, ...], dtype: Any, place: Place) -> tuple[Any, Array]:
    if out is None:
        return place.new(shape, given.dtype_of_results(dtype))
    given.fit_for_results(out)
    return None, out


def read_as(array: Array) -> str:
    """The dtype as which kernels read an array, or a copy of it."""
    return array.dtype if array.dtype in DIRECT else "float64"


def operand(array: Array, shape: tuple[int, ...], place: Place) -> tuple[Any, int]:
    """(flat array, 1 or, for one number in the place of all, 0): where it lies, or a copy."""
    layout = array.layout.broadcast(shape)
    if array.dtype in DIRECT:
        if layout.row_step(0) == math.prod(shape):
            return flat_view(array, layout)[0], 1
        if not any(layout.steps):
            return flat_view(array, layout)[0], 0
    return side_by_side(array, layout, read_as(array), place), 1
