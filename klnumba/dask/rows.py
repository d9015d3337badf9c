"""Functions of rows over Dask arrays: which blocks they need, and what they do with one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed

from klnumba import arrays, diagnosis, fixed_point
from klnumba.dask import long
from klnumba.dask.trees import tree
from klnumba.divergence import Axis
from klnumba.engine import AGREE, Task
from klnumba.kernels.tiles import CHUNK
from klnumba.reduction import SOURCES, unit_of
from klnumba.tensors import is_tensor


def cells(function: Callable[..., Any], p: Any, q: Any, dtype: Any) -> Any:
    """A function of cells, lazily."""
    taken = [lazily_given(p, "p"), lazily_given(q, "q")]
    shape = _common_shape(*taken)
    function(*(np.ones((0,), x.dtype) for x in taken), dtype=dtype)  # refuses wrong dtypes now
    kind = arrays.float_dtype(dtype) if dtype is not None else arrays.compute_dtype(*taken)
    return _over_blocks(partial(function, dtype=kind), taken, shape, (), kind)


def lazily(
    name: str, function: Callable[..., Any], sides: tuple[Any, ...], axis: Axis, where: Any, keepdims: bool,
    options: dict[str, Any],
) -> Any:  # fmt: skip
    """A statistic of rows, which `function` computes of whole ones, lazily."""
    for option in {"out", "threads"} & options.keys():
        raise TypeError(f"{option}: not with dask arrays, whose results are lazy and whose blocks share the threads")
    options = dict(options)
    reduction = options.pop("reduction", "none")
    taken = [lazily_given(x, name) for x, name in zip(sides, "pq", strict=False)]
    masks = [] if where is None else [mask_of(where)]
    shape = _common_shape(*taken, *masks)
    reduced = arrays.axes(axis, len(shape)) if shape else ()
    arrays.one_of(options.get("invalid", "nan"), ("nan", "raise"), "invalid")
    probe = [np.ones((0,) * len(shape), x.dtype) for x in taken]
    lenient = options | {"invalid": "nan"}  # a probe of which all axes are reduced is no distribution
    function(*probe, axis=reduced, **({"reduction": reduction} if reduction != "none" else {}), **lenient)
    dtype = options.get("dtype")
    kind = arrays.float_dtype(dtype) if dtype is not None else arrays.compute_dtype(*taken)
    task, order = task_of(name, options)
    kind = np.dtype(bool) if task.name == AGREE else kind
    wide = reduction != "none"  # values in float64 until they are added up
    if math.prod(shape[k] for k in reduced) > CHUNK:
        computed = arrays.FLOAT64 if arrays.is_wide(dtype) else arrays.compute_dtype(*taken)
        how = long.How(task, order, computed, unit_of(options.get("base")), options.get("invalid") == "raise")
        found = long.values(how, taken, masks, reduced)
        found = found if wide else found.astype(kind)
    else:
        work = _Block(function, options, reduced, task.logs, len(taken), bool(masks), wide)
        given = np.dtype(np.float64) if wide else kind
        found = _over_blocks(work, [*taken, *masks], shape, reduced, given, numbered=work.strict)
    if wide:
        whole = _reduced(found, reduction, kind)
        return whole.reshape((1,) * len(shape)) if keepdims else whole
    return found[tuple(None if k in reduced else slice(None) for k in range(len(shape)))] if keepdims else found


def lazily_given(x: Any, name: str) -> Any:
    """An argument, lazily; of a tensor, the array behind it."""
    arrays.refuse_distribution(x, name)
    return da.asarray(arrays.take(x, name)[0] if is_tensor(x) else x)


def mask_of(where: Any) -> Any:
    """The argument `where`, lazily."""
    mask = lazily_given(where, "where")
    arrays.truth(np.ma.ones(0, mask.dtype) if isinstance(mask._meta, np.ma.MaskedArray) else np.ones(0, mask.dtype))
    return mask


def task_of(name: str, options: dict[str, Any]) -> tuple[Task, str]:
    """The divergence that a statistic is, of which rows."""
    source, order = SOURCES.get(name, (name, "pp"))
    kind, weight = options.get("kind", "prob"), float(options.get("weight", 0.5))
    normalize = bool(options.get("normalize", True)) or kind == "logit"
    return Task(source, kind, normalize, weight, float(options.get("temperature", 1.0))), order


def whole_rows(x: Any, *axes: int) -> Any:
    """An array with whole rows in a block, along `axes`, and no more cells in one than before."""
    if all(x.numblocks[k] == 1 for k in axes):
        return x
    if not x.size:
        return x.rechunk(dict.fromkeys(axes, -1))
    most = math.prod(map(max, x.chunks)) * x.itemsize
    cut = {k: -1 if k in axes else "auto" for k in range(x.ndim)}
    return x.rechunk(cut, block_size_limit=most, method="tasks")


def refuse_unknown(*taken: Any, mask: str = "where") -> None:
    """An error where a selection by a mask has left Dask without the lengths of blocks."""
    if any(n != n for x in taken for n in np.shape(x)):
        raise ValueError(f"p, q and {mask}: chunk sizes are not known; compute_chunk_sizes() finds them")


def _common_shape(*taken: Any) -> tuple[int, ...]:
    refuse_unknown(*taken)
    shapes = [x.shape for x in taken]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"p, q and where: shapes {', '.join(map(str, shapes))} do not broadcast") from None


def _over_blocks(
    work: Callable[..., Any], taken: list[Any], shape: tuple[int, ...], reduced: tuple[int, ...], kind: Any,
    *, numbered: bool = False,
) -> Any:  # fmt: skip
    """`work` on every block of whole rows, and on the numbers of its rows along each axis, if they are `numbered`."""
    kept = tuple(k for k in range(len(shape)) if k not in reduced)
    if 0 in shape:  # one block: Dask loses some of several without cells
        taken = [da.zeros(shape, chunks=shape, dtype=x.dtype) for x in taken]
    arguments: list[Any] = []
    for x in taken:
        places = tuple(range(len(shape) - x.ndim, len(shape)))
        whole = whole_rows(x, *(k for k, place in enumerate(places) if place in reduced))
        # a side of one cell goes to every block as it is, the others in blocks of the same rows
        own = tuple(place if n == shape[place] else -1 - place for n, place in zip(x.shape, places, strict=True))
        arguments += [whole, own]
    cut = {k: x.chunks[own.index(k)] for x, own in zip(arguments[::2], arguments[1::2], strict=True) for k in own}
    for k in kept if numbered else ():
        arguments += [da.arange(shape[k], chunks=(cut[k],)), (k,)]
    empty = np.empty((0,) * len(kept), kind)
    return da.blockwise(work, kept, *arguments, concatenate=True, dtype=kind, meta=empty)


@dataclass(frozen=True)
class _Block:
    """What is done with a block of whole rows, on one thread."""

    function: Callable[..., Any]
    options: dict[str, Any]
    reduced: tuple[int, ...]
    logs: bool
    sides: int
    masked: bool
    wide: bool

    @property
    def strict(self) -> bool:
        """Whether a row that is no distribution raises, for which the rows need their numbers."""
        return self.options.get("invalid") == "raise"

    def __call__(self, *blocks: Any) -> Any:
        """Blocks of p, of q and of the mask, and behind them the numbers of the rows along each axis, if strict."""
        sides, options = blocks[: self.sides], self.options | {"invalid": "nan"}
        where = blocks[self.sides] if self.masked else None
        if self.wide:
            shape = np.broadcast_shapes(*(x.shape for x in blocks[: self.sides + self.masked]))
            if np.dtype(options.get("dtype")) != np.float64:  # which is computed in, and not only given back
                options = {name: value for name, value in options.items() if name != "dtype"}
            options |= {"out": np.empty(tuple(n for k, n in enumerate(shape) if k not in self.reduced))}
        found = np.asarray(self.function(*sides, axis=self.reduced, where=where, threads=1, **options))
        if self.strict and np.isnan(found).any():
            numbers = blocks[self.sides + self.masked :]
            raise ValueError(first_fault(found, sides[0], sides[-1], where, self.reduced, self.logs, numbers))
        return found


def first_fault(
    found: Any, p: Any, q: Any, where: Any, reduced: tuple[int, ...], logs: bool, numbers: Sequence[Any]
) -> str:  # fmt: skip
    """What is wrong with the first row of a block that is NaN, named by its place in the whole.

    `numbers` are those of the block's rows along each axis.
    """
    rows = arrays.Rows(p, q, reduced, where, -math.inf if logs else 0.0, wide=True)
    at = np.unravel_index(int(np.isnan(found).argmax()), found.shape) if found.ndim else ()
    place = tuple(int(along[k]) for along, k in zip(numbers, at, strict=True))
    return diagnosis.told(*diagnosis.sides_of(rows, at, logs), place)


def _reduced(found: Any, reduction: str, kind: Any) -> Any:
    """The exact sum of all values, or that over their number, as a lazy array without axes."""
    parts = [_sum_of_block(block) for block in found.to_delayed().ravel()]
    total = _finished(tree(parts, _joined_sums), reduction, kind)
    return da.from_delayed(total, (), kind, meta=np.empty((), kind))


@delayed(pure=True)
def _sum_of_block(values: Any) -> tuple[int, float, int]:
    flat = np.ascontiguousarray(values, np.float64).reshape(-1).copy()
    return (*fixed_point.sum_of([flat]), flat.size)


@delayed(pure=True)
def _joined_sums(parts: list[tuple[int, float, int]]) -> tuple[int, float, int]:
    whole, rest, rows = zip(*parts, strict=True)
    return sum(whole), sum(rest), sum(rows)


@delayed(pure=True)
def _finished(total: tuple[int, float, int], reduction: str, kind: Any) -> Any:
    return np.asarray(fixed_point.rounded(*total[:2], total[2] if reduction == "mean" else 1), kind)
