"""The array functions and the accumulators over Dask collections: lazy, block by block, with the bits of one machine.

A row that lies across several blocks is brought together on one worker: its value then has the same bits as it has on
one machine, which no sum of partial results could promise. Each block is computed on one thread, as the workers share
the processors out already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

import klnumba as kl
from klnumba import arrays, fixed_point
from klnumba.divergence import Axis
from klnumba.metrics.metric import RowMetric
from klnumba.scoring import Report

if TYPE_CHECKING:
    from klnumba.tables.partitions import compare as compare

try:
    import dask.array as da
    from dask.delayed import Delayed, delayed
except ImportError as error:
    raise ImportError('klnumba.dask needs Dask: python -m pip install "klnumba[dask]"') from error

__all__ = [
    "accumulate",
    "compare",
    "cross_entropy",
    "entropy",
    "generalized_kl",
    "jeffreys_divergence",
    "js_divergence",
    "kl_divergence",
    "rel_entr",
    "row_statistics",
    "score",
]

_FEW = 8  # accumulators that one task merges


def __getattr__(name: str) -> Any:
    if name == "compare":  # of data frames, which ask for more libraries than arrays do
        from klnumba.tables.partitions import compare

        return compare
    raise AttributeError(f"module 'klnumba.dask' has no attribute {name!r}")


def kl_divergence(p: Any, q: Any, *, axis: Axis = -1, where: Any = None, keepdims: bool = False, **options: Any) -> Any:
    """`klnumba.kl_divergence` of dask arrays.

    Parameters
    ----------
    p, q : dask.array.Array or array_like
        The data or reference first; they broadcast against each other. Blocks may differ.
    axis : int, tuple of int or None, default -1
        The axis or axes along which a row lies.
    where : array_like of bool, optional
        Cells that belong to the support.
    keepdims : bool, default False
        Keep the reduced axes with length 1.
    **options
        As of `klnumba.kl_divergence`, `out` and `threads` excepted. With ``invalid="raise"``, rows are numbered within
        their block.

    Returns
    -------
    dask.array.Array
        Lazy; the values have the bits of ``klnumba.kl_divergence`` on the whole arrays, also with reduction "mean" and
        "sum".

    Raises
    ------
    ValueError
        If the shapes do not broadcast, or an option is out of its range.

    Examples
    --------
    >>> import dask.array as da
    >>> import klnumba.dask
    >>> p = da.from_array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]], chunks=(1, 2))
    >>> klnumba.dask.kl_divergence(p, [0.25, 0.5, 0.25], base=2).compute().round(4)
    array([0.5  , 0.2145])
    """
    return _rows(kl.kl_divergence, (p, q), axis, where, keepdims, options)


def cross_entropy(p: Any, q: Any, *, axis: Axis = -1, where: Any = None, keepdims: bool = False, **options: Any) -> Any:
    """`klnumba.cross_entropy` of dask arrays; parameters as of `kl_divergence`."""
    return _rows(kl.cross_entropy, (p, q), axis, where, keepdims, options)


def js_divergence(p: Any, q: Any, *, axis: Axis = -1, where: Any = None, keepdims: bool = False, **options: Any) -> Any:
    """`klnumba.js_divergence` of dask arrays; parameters as of `kl_divergence`, and `weight`."""
    return _rows(kl.js_divergence, (p, q), axis, where, keepdims, options)


def jeffreys_divergence(
    p: Any, q: Any, *, axis: Axis = -1, where: Any = None, keepdims: bool = False, **options: Any
) -> Any:
    """`klnumba.jeffreys_divergence` of dask arrays; parameters as of `kl_divergence`."""
    return _rows(kl.jeffreys_divergence, (p, q), axis, where, keepdims, options)


def entropy(p: Any, *, axis: Axis = -1, where: Any = None, keepdims: bool = False, **options: Any) -> Any:
    """`klnumba.entropy` of a dask array; parameters as of `kl_divergence`."""
    return _rows(kl.entropy, (p,), axis, where, keepdims, options)


def row_statistics(
    p: Any, q: Any, *, stats: Sequence[str] = ("kl",), axis: Axis = -1, where: Any = None, keepdims: bool = False,
    **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """`klnumba.row_statistics` of dask arrays: a lazy array a statistic; compute them together with `dask.compute`.

    Parameters as of `kl_divergence`; `stats` as of `klnumba.row_statistics`.
    """
    if isinstance(stats, str):
        raise TypeError(f"stats: a sequence of names, not the text {stats!r}")
    made = {}
    for name in stats:
        one = partial(_statistic, name)
        kind = bool if name == "argmax_agree" else None
        made[name] = _rows(one, (p, q), axis, where, keepdims, options, kind)
    return made


def _statistic(name: str, p: Any, q: Any, **options: Any) -> Any:
    return kl.row_statistics(p, q, stats=(name,), **options)[name]


def rel_entr(p: Any, q: Any, *, dtype: Any = None) -> Any:
    """`klnumba.rel_entr` of dask arrays, cell by cell."""
    return _cells(kl.rel_entr, p, q, dtype)


def generalized_kl(p: Any, q: Any, *, dtype: Any = None) -> Any:
    """`klnumba.generalized_kl` of dask arrays, cell by cell."""
    return _cells(kl.generalized_kl, p, q, dtype)


def _cells(function: Callable[..., Any], p: Any, q: Any, dtype: Any) -> Any:
    taken = [da.asarray(p), da.asarray(q)]
    kind = np.dtype(dtype) if dtype is not None else arrays.compute_dtype(*taken)
    return _over_blocks(partial(function, dtype=kind), taken, _common_shape(*taken), (), kind)


# --- rows -------------------------------------------------------------------------------------------------------------


def _rows(
    function: Callable[..., Any], sides: tuple[Any, ...], axis: Axis, where: Any, keepdims: bool,
    options: dict[str, Any], kind: Any = None,
) -> Any:  # fmt: skip
    """A function of rows, lazily: whole rows go to it, a block of rows at a time."""
    for name in {"out", "threads"} & options.keys():
        raise TypeError(f"{name}: not with dask arrays, whose results are lazy and whose blocks share the threads")
    reduction = options.pop("reduction", "none")
    taken = [da.asarray(x) for x in sides]
    masks = [] if where is None else [da.asarray(where)]
    shape = _common_shape(*taken, *masks)
    reduced = arrays.axes(axis, len(shape))
    probe = [np.ones((0,) * len(shape), x.dtype) for x in taken]
    function(*probe, axis=reduced, **({"reduction": reduction} if reduction != "none" else {}), **options)
    dtype = options.get("dtype")
    kind = kind or (np.dtype(dtype) if dtype is not None else arrays.compute_dtype(*taken))
    wide = reduction != "none"  # values in float64 until they are added up
    work = partial(_block, function, len(taken), reduced, options, wide)
    found = _over_blocks(work, [*taken, *masks], shape, reduced, np.dtype(np.float64) if wide else kind)
    if wide:
        return _reduced(found, reduction, kind)
    return found[tuple(None if k in reduced else slice(None) for k in range(len(shape)))] if keepdims else found


def _common_shape(*taken: Any) -> tuple[int, ...]:
    shapes = [x.shape for x in taken]
    if any(n != n for shape in shapes for n in shape):
        raise ValueError("p, q and where: chunk sizes are not known; compute_chunk_sizes() finds them")
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"p, q and where: shapes {', '.join(map(str, shapes))} do not broadcast") from None


def _over_blocks(
    work: Callable[..., Any], taken: list[Any], shape: tuple[int, ...], reduced: tuple[int, ...], kind: Any
) -> Any:
    """`work` on every block of whole rows."""
    kept = tuple(k for k in range(len(shape)) if k not in reduced)
    arguments: list[Any] = []
    for x in taken:
        places = tuple(range(len(shape) - x.ndim, len(shape)))
        whole = x.rechunk({k: -1 for k, place in enumerate(places) if place in reduced})
        # a side of one cell goes to every block as it is, the others in blocks of the same rows
        own = tuple(place if n == shape[place] else -1 - place for n, place in zip(x.shape, places, strict=True))
        arguments += [whole, own]
    empty = np.empty((0,) * len(kept), kind)
    return da.blockwise(work, kept, *arguments, concatenate=True, dtype=kind, meta=empty)


def _block(
    function: Callable[..., Any],
    count: int,
    reduced: tuple[int, ...],
    options: dict[str, Any],
    wide: bool,
    *blocks: Any,
) -> Any:  # fmt: skip
    """The rows of a block, on one thread."""
    where = blocks[count] if len(blocks) > count else None
    if wide:
        shape = np.broadcast_shapes(*(x.shape for x in blocks))
        kept = tuple(n for k, n in enumerate(shape) if k not in reduced)
        if np.dtype(options.get("dtype")) != np.float64:  # which is computed in, and not only given back
            options = {name: value for name, value in options.items() if name != "dtype"}
        options = options | {"out": np.empty(kept)}
    return np.asarray(function(*blocks[:count], axis=reduced, where=where, threads=1, **options))


def _reduced(found: Any, reduction: str, kind: Any) -> Any:
    """The exact sum of all values, or that over their number, as a lazy array without axes."""
    parts = [_sum_of_block(block) for block in found.to_delayed().ravel()]
    total = _finished(_tree(parts, _joined_sums), reduction, kind)
    return da.from_delayed(total, (), kind, meta=np.empty((), kind))


@delayed(pure=True)
def _sum_of_block(values: Any) -> tuple[int, float, int]:
    flat = np.ascontiguousarray(values, np.float64).reshape(-1).copy()
    return (*fixed_point.sum_of(flat), flat.size)


@delayed(pure=True)
def _joined_sums(parts: list[tuple[int, float, int]]) -> tuple[int, float, int]:
    whole, rest, rows = zip(*parts, strict=True)
    return sum(whole), sum(rest), sum(rows)


@delayed(pure=True)
def _finished(total: tuple[int, float, int], reduction: str, kind: Any) -> Any:
    return np.asarray(fixed_point.rounded(*total[:2], total[2] if reduction == "mean" else 1), kind)


def _tree(parts: list[Any], join: Callable[[list[Any]], Any]) -> Any:
    """All parts joined, a few at a time."""
    while len(parts) > 1:
        parts = [join(parts[k : k + _FEW]) for k in range(0, len(parts), _FEW)]
    return parts[0]


# --- accumulators -----------------------------------------------------------------------------------------------------


def accumulate(
    metric: RowMetric, p: Any, q: Any, weights: Any = None, where: Any = None, groups: Any = None
) -> Delayed:
    """A metric over all rows of dask arrays: one state a block, merged in a tree.

    Parameters
    ----------
    metric : KLDivergence, JensenShannonDivergence or CrossEntropy
        Which metric, with which options; it stays as it is. With reduction "none", rows come in their order.
    p, q : dask.array.Array, (rows, cells)
        Of one shape; blocks may differ.
    weights : dask.array.Array or array_like, (rows,), optional
        A weight a row.
    where : dask.array.Array or array_like, (rows, cells), optional
        Cells that belong to the support.
    groups : dask.array.Array or array_like, (rows,), optional
        A label a row.

    Returns
    -------
    dask.delayed.Delayed
        Its ``compute()`` is the metric. Its bits do not depend on blocks, workers, or the order of their work.

    Raises
    ------
    TypeError
        If `metric` is something else.
    RuntimeError, ValueError
        If the shapes differ, or p and q are not matrices.

    Examples
    --------
    >>> import dask.array as da, klnumba as kl, klnumba.dask
    >>> p = da.from_array([[0.5, 0.5], [0.2, 0.8], [0.1, 0.9]], chunks=(2, 1))
    >>> q = da.full_like(p, 0.5)
    >>> metric = klnumba.dask.accumulate(kl.KLDivergence(base=2), p, q).compute()
    >>> metric.rows, round(float(metric.compute()), 4)
    (3, 0.2697)
    """
    if not isinstance(metric, RowMetric):
        raise TypeError(f"metric: a metric of rows such as KLDivergence, not {type(metric).__name__}")
    first, second = da.asarray(p), da.asarray(q)
    if metric.axis not in (-1, 1):
        raise ValueError(f"metric: rows along the last axis of two matrices, not along axis {metric.axis}")
    metric.check_shapes(first, second)
    if where is not None and np.shape(where) != first.shape:
        raise ValueError(f"where: shape {np.shape(where)}, not that of p, {first.shape}")
    first = first.rechunk({1: -1})
    rows = first.chunks[0]
    columns = [first, second.rechunk(first.chunks)]
    columns += [_along_rows(x, name, rows) for x, name in ((weights, "weights"), (where, "where"), (groups, "groups"))]
    blocks = [[None] * len(rows) if x is None else list(x.to_delayed().ravel()) for x in columns]
    kind, options = type(metric), metric.options()
    return _tree([_updated(kind, options, *one) for one in zip(*blocks, strict=True)], _merged)


def _along_rows(x: Any, name: str, rows: tuple[int, ...]) -> Any:
    """A column of the rows in the blocks of the rows."""
    if x is None:
        return None
    found = da.asarray(x)
    if found.ndim < 1 or found.shape[0] != sum(rows):
        raise ValueError(f"{name}: {sum(rows)} rows, not shape {found.shape}")
    return found.rechunk({0: rows} | dict.fromkeys(range(1, found.ndim), -1))


@delayed(pure=True)
def _updated(
    kind: type[RowMetric], options: dict[str, Any], p: Any, q: Any, weights: Any, where: Any, groups: Any
) -> RowMetric:
    made = kind(threads=1, **options)
    made.update(p, q, weights, where, groups)
    return made


@delayed(pure=True)
def _merged(parts: list[RowMetric]) -> RowMetric:
    total = parts[0].clone()
    total.merge(*parts[1:])
    return total


# --- scoring ----------------------------------------------------------------------------------------------------------


def score(p: Any, q: Any, *, mask: Any = None, **options: Any) -> Delayed:
    """`klnumba.score` of dask arrays: each block of rows is scored where it is, and the reports merge in a tree.

    Parameters
    ----------
    p, q : dask.array.Array, (rows, cells)
        The data or reference first, of one shape; blocks may differ.
    mask : dask.array.Array or array_like, (rows, cells), optional
        Cells that belong to the support.
    **options
        Those of `klnumba.score` that decide on values: `stats`, `kind`, `normalize`, `base`, `temperature`,
        `valid_width`, `invalid`, `quantile_error` and `thresholds`.

    Returns
    -------
    dask.delayed.Delayed
        Its ``compute()`` is a `klnumba.scoring.Report` with the bits of ``klnumba.score`` on the whole arrays. Rows in
        `first_invalid` count from the start of their block.

    Raises
    ------
    TypeError
        If an option is none of these.
    ValueError
        If p and q are not matrices of one shape.

    Examples
    --------
    >>> import dask.array as da
    >>> import klnumba.dask
    >>> p = da.from_array([[0.5, 0.5], [0.2, 0.8], [0.1, 0.9]], chunks=(2, 1))
    >>> report = klnumba.dask.score(p, da.full_like(p, 0.5), stats=("kl", "js"), base=2).compute()
    >>> report.rows, round(report["kl"].mean, 4)
    (3, 0.2697)
    """
    unknown = options.keys() - set(_SCORING)
    if unknown:
        raise TypeError(f"{min(unknown)}: not an option of scoring dask arrays; those are {', '.join(_SCORING)}")
    first, second = da.asarray(p), da.asarray(q)
    if first.ndim != 2 or first.shape != second.shape:
        raise ValueError(f"p, q: two matrices of one shape, not {first.shape} and {second.shape}")
    kl.score(np.ones((1, first.shape[1])), np.ones((1, first.shape[1])), **options)  # refuses wrong options now
    first = first.rechunk({1: -1})
    columns = [first, second.rechunk(first.chunks), _along_rows(mask, "mask", first.chunks[0])]
    blocks = [[None] * len(first.chunks[0]) if x is None else list(x.to_delayed().ravel()) for x in columns]
    return _tree([_scored(options, *one) for one in zip(*blocks, strict=True)], _joined_reports)


_SCORING = (
    "stats", "kind", "normalize", "base", "temperature", "valid_width", "invalid", "quantile_error", "thresholds",
)  # fmt: skip


@delayed(pure=True)
def _scored(options: dict[str, Any], p: Any, q: Any, mask: Any) -> Report:
    return kl.score(p, q, mask=mask, threads=1, **options)


@delayed(pure=True)
def _joined_reports(parts: list[Report]) -> Report:
    first = parts[0]
    return replace(
        first,
        rows=sum(part.rows for part in parts),
        masked_rows=sum(part.masked_rows for part in parts),
        first_invalid=next((part.first_invalid for part in parts if part.first_invalid), None),
        states={name: reduce(add, (part.states[name] for part in parts)) for name in first.states},
    )
