"""Accumulators over Dask arrays: a state a block, merged in a tree."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate as accumulated
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed

from klnumba import arrays
from klnumba.dask import long
from klnumba.dask.rows import first_fault, lazily_given, refuse_unknown, whole_rows
from klnumba.dask.trees import tree
from klnumba.engine import AGREE, Task
from klnumba.kernels.tiles import CHUNK
from klnumba.metrics.batch import weights_fault
from klnumba.metrics.metric import RowMetric
from klnumba.reduction import unit_of


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
    weights : dask.array.Array, dask.dataframe.Series or array_like, (rows,), optional
        A weight a row.
    where : dask.array.Array, dask.dataframe.DataFrame or array_like, (rows, cells), optional
        Cells that belong to the support.
    groups : dask.array.Array, dask.dataframe.Series or array_like, (rows,), optional
        A label a row: whole numbers, truth values, or text. A column of a Dask table is computed once here, which
        tells how long its parts are.

    Returns
    -------
    dask.delayed.Delayed
        Its ``compute()`` is the metric. Its bits do not depend on blocks, workers, or the order of their work.

    Raises
    ------
    TypeError
        If `metric` is something else.
    RuntimeError, ValueError
        If the shapes differ or are unknown, or p and q are not matrices.

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
    first, second = lazily_given(p, "p"), lazily_given(q, "q")
    refuse_unknown(first, second)
    if metric.axis not in (-1, 1):
        raise ValueError(f"metric: rows along the last axis of two matrices, not along axis {metric.axis}")
    metric.check_shapes(first, second)
    where = _array_of(where)
    if where is not None and np.shape(where) != first.shape:
        raise ValueError(f"where: shape {np.shape(where)}, not that of p, {first.shape}")
    if first.shape[1] > CHUNK:
        update, columns = _updated_by_values, _values(metric, first, second, where)
    else:
        first = whole_rows(first, 1)
        update, columns = _updated, [first, second.rechunk(first.chunks), along_rows(where, "where", first.chunks[0])]
    rows = columns[0].chunks[0]
    columns += [along_rows(x, name, rows) for x, name in ((weights, "weights"), (groups, "groups"))]
    blocks = [[None] * len(rows) if x is None else list(x.to_delayed().ravel()) for x in columns]
    blocks.append([0, *accumulated(rows[:-1])])
    kind, options = type(metric), metric.options()
    return tree([update(kind, options, *one) for one in zip(*blocks, strict=True)], _merged)


def _values(metric: RowMetric, p: Any, q: Any, where: Any) -> list[Any]:
    """The values of rows that are too long for one block, and whether their largest cells agree, if that is asked."""
    task = Task(metric.divergence, metric.kind, metric.normalize, metric._weight(), metric.temperature)
    how = long.How(task, "pq", arrays.compute_dtype(p, q), unit_of(metric.base), metric.invalid == "raise")
    masks = [] if where is None else [da.asarray(where)]
    agreed = None
    if metric.agreement:
        of_places = how._replace(task=replace(task, name=AGREE), strict=False)
        agreed = long.values(of_places, [p, q], masks, (1,)).astype(bool)
    return [long.values(how, [p, q], masks, (1,)), agreed]


def along_rows(x: Any, name: str, rows: tuple[int, ...]) -> Any:
    """A column of the rows in the blocks of the rows."""
    if x is None:
        return None
    x = _array_of(x)
    found = x if isinstance(x, da.Array) else np.asarray(x)
    if isinstance(found, da.Array) and np.isnan(found.shape).any():
        raise ValueError(f"{name}: a Dask array of unknown length: x.compute_chunk_sizes() finds it")
    if found.ndim < 1 or found.shape[0] != sum(rows):
        raise ValueError(f"{name}: {sum(rows)} rows, not shape {found.shape}")
    chunks = (rows, *[-1] * (found.ndim - 1))
    return found.rechunk(chunks) if isinstance(found, da.Array) else da.from_array(found, chunks)


def _array_of(x: Any) -> Any:
    """An argument, of a Dask table or a column of one as an array of NumPy's dtypes: of numbers, theirs."""
    if not hasattr(x, "to_dask_array"):
        return x

    def known(kind: Any) -> Any:
        inner = kind if isinstance(kind, np.dtype) else getattr(kind, "numpy_dtype", None)
        return inner if inner is not None and inner.kind in "iufb" else np.dtype(object)

    kinds = known(x.dtypes) if x.ndim == 1 else {name: known(kind) for name, kind in x.dtypes.items()}
    return x.astype(kinds).to_dask_array(lengths=True)


@delayed(pure=True)
def _updated(
    kind: type[RowMetric], options: dict[str, Any], p: Any, q: Any, where: Any, weights: Any, groups: Any, first: int
) -> RowMetric:
    made = kind(threads=1, **options)
    try:
        made.update(p, q, weights, where, groups)
    except ValueError as error:
        raise ValueError(_diagnosis(made, p, q, where, first) or _fault(weights, first) or str(error)) from None
    return made


def _fault(weights: Any, first: int) -> str | None:
    """What is wrong with the weights of a block, by the number of the row in the whole."""
    return None if weights is None else weights_fault(np.asarray(weights, np.float64).reshape(-1), first)


def _diagnosis(metric: RowMetric, p: Any, q: Any, where: Any, first: int) -> str | None:
    """What is wrong with the first row that is no distribution, named by its place in the whole; None if none is."""
    if metric.invalid != "raise":
        return None
    lenient = type(metric)(threads=1, **(metric.options() | {"invalid": "nan"}))
    values = lenient._rows_values(p, q, where, 1)[0]
    if not isinstance(values, np.ndarray) or not np.isnan(values).any():  # those of a device are not looked at
        return None
    return first_fault(values, p, q, where, (1,), metric.kind != "prob", [range(first, first + len(values))])


@delayed(pure=True)
def _updated_by_values(
    kind: type[RowMetric], options: dict[str, Any], values: Any, agreed: Any, weights: Any, groups: Any, first: int
) -> RowMetric:
    made = kind(threads=1, **options)
    try:
        made.update_values(values, agreed, weights, groups)
    except ValueError as error:
        raise ValueError(_fault(weights, first) or str(error)) from None
    return made


@delayed(pure=True)
def _merged(parts: list[RowMetric]) -> RowMetric:
    total = parts[0].clone()
    total.merge(*parts[1:])
    return total
