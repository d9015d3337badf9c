"""Scoring of Dask arrays: a report a block, merged in a tree."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed

import klnumba as kl
from klnumba.dask.accumulators import along_rows
from klnumba.dask.rows import lazily_given, refuse_unknown, whole_rows
from klnumba.dask.trees import tree
from klnumba.scoring import Report
from klnumba.scoring.opening import open_source


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
        Its ``compute()`` is a `klnumba.scoring.Report` with the bits of ``klnumba.score`` on the whole arrays.

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
    first, second = lazily_given(p, "p"), lazily_given(q, "q")
    refuse_unknown(first, second, () if mask is None else mask, mask="mask")
    if first.ndim != 2 or first.shape != second.shape:
        raise ValueError(f"p, q: two matrices of one shape, not {first.shape} and {second.shape}")
    if mask is not None and np.shape(mask) not in (first.shape, (first.shape[0], 1)):
        raise ValueError(f"mask: a cell of it for each of p, of shape {first.shape}, not {np.shape(mask)}")
    kl.score(np.ones((1, first.shape[1])), np.ones((1, first.shape[1])), **options)  # refuses wrong options now
    first = whole_rows(first, 1)
    lengths = first.chunks[0]
    columns = [first, second.rechunk(first.chunks), along_rows(mask, "mask", lengths)]
    blocks = [[None] * len(lengths) if x is None else list(x.to_delayed().ravel()) for x in columns]
    blocks.append([int(sum(lengths[:k])) for k in range(len(lengths))])
    return tree([_scored(options, *one) for one in zip(*blocks, strict=True)], _joined_reports)


_SCORING = (
    "stats", "kind", "normalize", "base", "temperature", "valid_width", "invalid", "quantile_error", "thresholds",
)  # fmt: skip


@delayed(pure=True)
def _scored(options: dict[str, Any], p: Any, q: Any, mask: Any, begin: int) -> Report:
    rows = open_source(p, "p")
    rows.begin = begin
    return kl.score(rows, q, mask=mask, threads=1, **options)


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
