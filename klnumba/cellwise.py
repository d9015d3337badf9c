"""The functions of single cells over whole arrays, with the ufuncs' broadcasting, ``out``, ``where`` and ``dtype``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from klnumba import arrays, fixed_point, labelled, tensors
from klnumba.arrays import compute_dtype, one_of, take
from klnumba.engine import NAMES
from klnumba.gpu.borders import any_on_device
from klnumba.kernels import cpu, threads
from klnumba.labels import ALIGN

PIECE = 1 << 15  # cells that are held at a time where they are copied, or where only their sum is asked for


def pointwise(
    name: str,
    x: Any,
    y: Any,
    out: Any = None,
    where: Any = True,
    dtype: Any = None,
    align: str = "outer",
    names: tuple[str, str] = ("p", "q"),
) -> Any:
    """A formula of two numbers over two arrays, with the ufuncs' `out`, `where` and `dtype`."""
    if align != "outer":
        one_of(align, ALIGN, "align")
    if tensors.asks_gradient(x, y):
        from klnumba import autograd

        return autograd.pointwise(name, x, y, out, where, dtype, names)
    if any_on_device(x, y, out, where):
        from klnumba.gpu import cellwise as gpu

        return gpu.pointwise(name, x, y, out, where, dtype, names)
    if labelled.present(x, y):
        return _labelled(name, x, y, out, where, dtype, align)
    first, back = take(x, names[0])
    second, other = take(y, names[1])
    back = other if back is arrays.as_is else back
    if isinstance(out, tuple):
        if len(out) != 1:
            raise TypeError(f"out: an array, or a tuple of one, not of {len(out)}")
        (out,) = out
    target = None if out is None else arrays.output(out)
    mask = _mask(where)
    shape = arrays.common_shape(first, second)
    shape = shape if mask is True else shape_with(mask, shape)
    if target is not None and not fits(shape, target.shape):
        raise ValueError(f"out: shape {target.shape}, but the result has shape {shape}")
    kind = arrays.FLOAT64 if arrays.is_wide(dtype) else compute_dtype(first, second)
    result = np.empty(shape, kind if dtype is None else arrays.float_dtype(dtype)) if target is None else target
    loop = cpu.cells_pointwise(name, NAMES[kind.char])
    plain = _is_plain(first, second, shape, kind)
    apart = target is None or not any(np.may_share_memory(target, a) for a in (first, second))
    if (
        plain
        and apart
        and mask is True
        and result.dtype == kind
        and result.shape == shape
        and result.flags.c_contiguous
    ):
        _plain(loop, np.asarray(first), np.asarray(second), result)
    else:
        _buffered(loop, np.asarray(first), np.asarray(second), result, np.asarray(mask), kind)
    masked = [a.mask for a in (first, second) if isinstance(a, np.ma.MaskedArray)]
    if masked:
        return np.ma.array(
            result, mask=np.broadcast_to(np.logical_or.reduce(np.broadcast_arrays(*masked)), result.shape)
        )
    return back(result) if out is None else out


def _mask(where: Any) -> Any:
    """Which cells are wanted: True, or a boolean array."""
    if isinstance(where, bool | np.bool_):
        return True if where else np.zeros((), bool)
    return arrays.truth(where)


def shape_with(mask: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of cells of which those of a mask are wanted."""
    try:
        return np.broadcast_shapes(shape, np.shape(mask))
    except ValueError:
        raise ValueError(f"where: shape {mask.shape} does not broadcast with {shape}") from None


def total(name: str, first: np.ndarray, second: np.ndarray) -> tuple[int, float]:
    """The exact sum of a formula over all cells, as `fixed_point.rounded` takes it.

    Threads share arrays that a loop can read as they are; others go through the iterator, on one.
    """
    shape, kind = arrays.common_shape(first, second), compute_dtype(first, second)
    loop = cpu.cells_pointwise(name, NAMES[kind.char])
    if not _is_plain(first, second, shape, kind):
        pieces = _pieces(np.asarray(first), np.asarray(second), kind)
        return fixed_point.sum_of(_computed(loop, x, y, kind).astype(np.float64, copy=False) for x, y in pieces)
    x, y, size = np.asarray(first).reshape(-1), np.asarray(second).reshape(-1), math.prod(shape)
    sums: dict[int, tuple[int, float]] = {}

    def part(start: int) -> None:
        places = [slice(k, k + PIECE) for k in range(start, min(start + arrays.BLOCK, size), PIECE)]
        found = (_computed(loop, x[place], y[place], kind) for place in places)
        sums[start] = fixed_point.sum_of(cells.astype(np.float64, copy=False) for cells in found)

    threads.run(part, range(0, size, arrays.BLOCK), threads.choose(None, size))
    return sum(whole for whole, _ in sums.values()), sum(rest for _, rest in sums.values())


def _computed(loop: Any, x: np.ndarray, y: np.ndarray, kind: np.dtype[Any]) -> np.ndarray:
    found = np.empty(x.size, kind)
    loop(_readonly(x), _readonly(y), found)
    return found


def _pieces(first: np.ndarray, second: np.ndarray, kind: np.dtype[Any]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Two arrays of any layout, broadcast, piece by piece, through NumPy's buffered iterator."""
    iterator: Any = np.nditer(  # type: ignore[call-overload]
        [first, second], ["external_loop", "buffered", "zerosize_ok"], [["readonly", "contig"]] * 2,
        _buffered_kinds(first, second, kind), casting="unsafe", buffersize=PIECE,
    )  # fmt: skip
    with iterator:
        for x, y in iterator:
            yield x.astype(kind, copy=False), y.astype(kind, copy=False)


def _buffered_kinds(first: np.ndarray, second: np.ndarray, kind: np.dtype[Any]) -> list[np.dtype[Any]]:
    """What NumPy's iterator is to make of both: it has no way from bfloat16."""
    return [a.dtype if a.dtype.name == "bfloat16" else kind for a in (first, second)]


def _is_plain(first: np.ndarray, second: np.ndarray, shape: tuple[int, ...], kind: np.dtype[Any]) -> bool:
    """Whether a loop can read both as they are."""
    return all(
        a.dtype == kind and a.shape == shape and a.flags.c_contiguous and a.dtype.isnative for a in (first, second)
    )


def _labelled(name: str, p: Any, q: Any, out: Any, where: Any, dtype: Any, align: str) -> Any:
    """The same over Series and DataFrames; a cell that is not wanted is NaN."""
    if out is not None:
        raise TypeError("out: not with a Series or DataFrame, since the result has its labels")
    first, second, mask, named = labelled.of_cells(p, q, where, align)
    if mask is True:
        return named(np.asarray(np.ma.filled(pointwise(name, first, second, dtype=dtype), math.nan)))
    shape = np.broadcast_shapes(arrays.common_shape(first, second), np.shape(mask))
    kind = compute_dtype(first, second) if dtype is None else arrays.float_dtype(dtype)
    return named(np.ma.filled(pointwise(name, first, second, np.full(shape, math.nan, kind), mask), math.nan))


def fits(shape: tuple[int, ...], out: tuple[int, ...]) -> bool:
    """Whether cells of a shape broadcast to the shape of a result."""
    try:
        return np.broadcast_shapes(shape, out) == out
    except ValueError:
        return False


def _plain(loop: Any, first: np.ndarray, second: np.ndarray, result: np.ndarray) -> None:
    x, y, z = _readonly(first), _readonly(second), result.reshape(-1)
    step = arrays.BLOCK

    def part(start: int) -> None:
        stop = start + step
        loop(x[start:stop], y[start:stop], z[start:stop])

    count = threads.choose(None, z.size)
    threads.run(part, threads.apart(range(0, z.size, step), count), count)


def _readonly(array: np.ndarray) -> np.ndarray:
    flat = array.reshape(-1).view()
    flat.flags.writeable = False
    return flat


def _buffered(
    loop: Any, first: np.ndarray, second: np.ndarray, result: np.ndarray, mask: np.ndarray, kind: np.dtype[Any]
) -> None:
    """Any layout and dtype: contiguous pieces through NumPy's buffered iterator."""
    operands = [first, second, mask, result]
    kinds = _buffered_kinds(first, second, kind)
    flags = [["readonly", "contig"], ["readonly", "contig"], ["readonly"], ["readwrite", "no_broadcast"]]
    iterator: Any = np.nditer(  # type: ignore[call-overload]
        operands, ["external_loop", "buffered", "zerosize_ok", "copy_if_overlap"],
        flags, [*kinds, np.dtype(bool), result.dtype], casting="unsafe", buffersize=PIECE,
    )  # fmt: skip
    with iterator, arrays.unheard():
        for x, y, keep, z in iterator:
            found = _computed(loop, x.astype(kind, copy=False), y.astype(kind, copy=False), kind)
            np.copyto(z, found, where=keep, casting="same_kind")
