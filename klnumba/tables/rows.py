"""Divergences of the rows of a DataFrame, of all its rows to each other, and of groups of rows."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from klnumba import divergence
from klnumba.arrays import one_of
from klnumba.labelled import Table, join, table
from klnumba.labels import ALIGN, listed, numbers, only
from klnumba.optional import load

CELLS = 1 << 28  # groups times values: 2 GiB of counts


def kl_rows(p: Any, q: Any, **options: Any) -> Any:
    """KL(p || q) of every row of a DataFrame.

    Parameters
    ----------
    p : pandas.DataFrame
        A distribution in each row: probabilities, counts or any non-negative masses.
    q : pandas.DataFrame, pandas.Series or array_like
        A DataFrame has a row for each of p's, found by its label; a Series is one distribution for all of them. Columns
        and the labels of a Series are matched with p's columns; an array goes by place.
    **options
        Those of `klnumba.kl_divergence`.

    Returns
    -------
    pandas.Series
        Named "kl", with the index of `p`. In nats, unless `base` is given; NaN for a row that q does not have.

    Raises
    ------
    TypeError
        If `p` is no DataFrame, or a column holds no real numbers.
    ValueError
        If a label that is to be matched occurs twice; with ``align="strict"``, if one is missing on one side.

    See Also
    --------
    klnumba.kl_divergence : what is computed, and all options.

    Examples
    --------
    >>> import pandas as pd
    >>> from klnumba.tables import kl_rows
    >>> p = pd.DataFrame({"red": [2, 1], "blue": [2, 3]}, index=["May", "June"])
    >>> kl_rows(p, pd.Series({"blue": 1, "red": 3}), base=2).round(4)
    May     0.2075
    June    0.7925
    Name: kl, dtype: float64
    """
    _frame(p, "p")
    return divergence.kl_divergence(p, q, **options)


def kl_matrix(p: Any, q: Any = None, *, align: divergence.Align = "outer", **options: Any) -> Any:
    """KL of every row of one DataFrame to every row of another.

    Parameters
    ----------
    p : pandas.DataFrame
        A distribution in each row.
    q : pandas.DataFrame, optional
        The same; without it, `p` once more. Columns are matched by label, rows are not matched.
    align : {"outer", "strict"}, default "outer"
        What becomes of a column that only one of them has: a cell without mass in the other, or an error.
    **options
        Those of `klnumba.kl_divergence` that do not speak of axes: `kind`, `normalize`, `base`, `temperature`, `dtype`,
        `threads` and `invalid`.

    Returns
    -------
    pandas.DataFrame
        The rows of `p` by the rows of `q`, in nats, unless `base` is given. The diagonal of a DataFrame with itself is
        exactly 0.

    Raises
    ------
    TypeError
        If an argument is no DataFrame, or a column holds no real numbers.
    ValueError
        If a column occurs twice; with ``align="strict"``, if one is missing on one side.

    Examples
    --------
    >>> import pandas as pd
    >>> from klnumba.tables import kl_matrix
    >>> p = pd.DataFrame({"red": [2, 1], "blue": [2, 3]}, index=["May", "June"])
    >>> kl_matrix(p, base=2).round(4)
             May    June
    May   0.0000  0.2075
    June  0.1887  0.0000
    """
    one_of(align, ALIGN, "align")
    unknown = options.keys() - {"kind", "normalize", "base", "temperature", "dtype", "threads", "invalid"}
    if unknown:
        raise TypeError(f"kl_matrix: takes no {', '.join(sorted(unknown))}")
    first = table(_frame(p, "p"), "p", turned=False)
    second = Table(first.cells, first.labels) if q is None else table(_frame(q, "q"), "q", turned=False)
    if q is not None and q is not p:
        join(first, second, -1, "column", align, -np.inf if options.get("kind", "prob") != "prob" else 0.0)
    found = divergence.kl_divergence(first.cells[:, None, :], second.cells[None, :, :], **options)
    return load("pandas").DataFrame(found, index=p.index, columns=p.index if q is None else q.index)


def kl_groups(
    frame: Any, by: Any, column: Hashable, *, weights: Any = None, against: Any = None, missing: str = "cell",
    stats: tuple[str, ...] | list[str] = ("kl",), base: float | None = None, threads: int | None = None,
) -> Any:  # fmt: skip
    """KL of the values of a column in each group of rows, to those in all other rows or in one group.

    All groups are counted in one pass. Each distinct value of the column is a cell; numbers that are spread out want
    bins first, such as those of `pandas.cut`.

    Parameters
    ----------
    frame : pandas.DataFrame
        The rows.
    by : label or list of labels
        The column or columns that name the group. A row where one is missing belongs to no group, and is not counted at
        all. Categories without rows are no groups.
    column : label
        The column whose values are compared: of any dtype, if its values can be hashed.
    weights : label or array_like, optional
        How much each row counts: a column or an array, finite and not negative. By default each row counts 1.
    against : label, optional
        The group that all are compared with; of several columns `by`, a tuple. By default each group is compared with
        all other rows.
    missing : {"cell", "drop"}, default "cell"
        Whether missing values of `column` are a cell of their own, or their rows are not counted.
    stats : sequence of str, default ("kl",)
        What is computed, as in `klnumba.row_statistics`.
    base : float, optional
        Unit of the result: None for nats, 2 for bits.
    threads : int, optional
        How many threads may work.

    Returns
    -------
    pandas.DataFrame
        One row a group, sorted: ``n``, its number of rows; with weights, ``weight``, their sum; and a column for each
        of `stats`. A group that has a value which the others do not have is at an infinite distance; where one of the
        two sides has no rows or no weight, the result is NaN.

    Raises
    ------
    TypeError
        If `frame` is no DataFrame, or values cannot be hashed.
    ValueError
        If there is no such column or group, a weight is not finite or negative, or groups times values are more than
        ``2**28`` cells.

    Notes
    -----
    These are divergences of what was counted, without a correction: a group of n rows that is not different at all has
    about (K - 1)/2 * (1/n + 1/m) nats, for K values and m rows that it is compared with.

    Examples
    --------
    >>> import pandas as pd
    >>> from klnumba.tables import kl_groups
    >>> rides = pd.DataFrame({"day": ["Mon", "Mon", "Mon", "Sun", "Sun", "Sun"], "by": list("bbtbtt")})
    >>> kl_groups(rides, "day", "by").round(4)
         n     kl
    day
    Mon  3  0.231
    Sun  3  0.231
    """
    one_of(missing, ("cell", "drop"), "missing")
    pandas = load("pandas")
    _frame(frame, "frame")
    group, labels = _groups(frame, by)
    try:
        value, values = pandas.factorize(_column(frame, column, "column"), use_na_sentinel=missing == "drop")
    except TypeError as error:
        raise TypeError(f"column: the values of {column!r} cannot be counted: {error}") from None
    weight = None if weights is None else _weights(frame, weights)
    size = len(labels), len(values)
    if size[0] * size[1] > CELLS:
        raise ValueError(f"by, column: {size[0]:,} groups of {size[1]:,} values are more than 2**28 cells")
    held = (group >= 0) & (value >= 0)
    if not held.all():
        group, value = group[held], value[held]
        weight = None if weight is None else weight[held]
    counts = np.bincount(group * size[1] + value, weight, size[0] * size[1]).reshape(size)
    other = _others(counts) if against is None else counts[_place(labels, against)]
    found = divergence.row_statistics(counts, other, stats=stats, base=base, threads=threads)
    result = {"n": np.bincount(group, minlength=size[0])}
    if weight is not None:
        result["weight"] = counts.sum(axis=1)
    return pandas.DataFrame(result | found, index=labels)


def _groups(frame: Any, by: Any) -> tuple[np.ndarray, Any]:
    """The number of each row's group, -1 where it has none, and the groups."""
    keys = list(by) if isinstance(by, list) else [by]
    if not keys:
        raise ValueError("by: at least one column")
    columns = [_column(frame, key, "by") for key in keys]
    grouped = frame.groupby(columns if len(columns) > 1 else columns[0], sort=True, observed=True)
    number = grouped.ngroup().to_numpy(dtype=np.float64, na_value=-1.0)
    return number.astype(np.intp), grouped.size().index


def _others(counts: np.ndarray) -> np.ndarray:
    """What the other groups have together, of each value: weights are added only, so that none cancel."""
    if counts.dtype.kind == "i":
        return np.asarray(counts.sum(axis=0) - counts)
    other = np.zeros_like(counts)
    np.cumsum(counts[:-1], axis=0, out=other[1:])
    other[:-1] += np.cumsum(counts[:0:-1], axis=0)[::-1]
    return other


def _place(labels: Any, group: Any) -> int:
    at = int(labels.get_indexer([group])[0]) if len(labels) else -1
    if at < 0:
        raise ValueError(f"against: no group {group!r}; there are {listed(labels) or 'none'}")
    return at


def _weights(frame: Any, weights: Any) -> np.ndarray:
    labelled = isinstance(weights, load("pandas").Series)
    if isinstance(weights, Hashable) and not labelled:
        weights, labelled = _column(frame, weights, "weights"), True
    if labelled and not weights.index.equals(frame.index):
        raise ValueError("weights: a Series with the index of the rows")
    found = np.asarray(numbers(weights, "weights") if labelled else weights, np.float64)
    if found.shape != (len(frame),):
        raise ValueError(f"weights: one a row, {len(frame)}, not shape {found.shape}")
    bad = np.flatnonzero(~(np.isfinite(found) & (found >= 0.0)))
    if bad.size:
        raise ValueError(
            f"weights: finite and not negative, but row {only(frame.index, int(bad[0]))!r} has {found[bad[0]]}"
        )
    return found


def _column(frame: Any, label: Any, name: str) -> Any:
    try:
        found = frame[label]
    except (KeyError, TypeError):
        raise ValueError(f"{name}: no column {label!r}") from None
    if found.ndim != 1:
        raise ValueError(f"{name}: column {label!r} occurs {found.shape[1]} times")
    return found


def _frame(x: Any, name: str) -> Any:
    if not isinstance(x, load("pandas").DataFrame):
        raise TypeError(f"{name}: a DataFrame, not {type(x).__name__}")
    return x
