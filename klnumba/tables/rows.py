"""Divergences of the rows of a DataFrame, and of all its rows to each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from klnumba import divergence
from klnumba.arrays import one_of
from klnumba.diagnosis import side_of, wrong
from klnumba.labelled import Named, Table, join, table
from klnumba.labels import ALIGN
from klnumba.optional import load, type_name


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
    frame_of(p, "p")
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
        If a column occurs twice; with ``align="strict"``, if one is missing on one side; with ``invalid="raise"``, if a
        row is no distribution.

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
    first = table(frame_of(p, "p"), "p", turned=False)
    second = Table(first.cells, first.labels) if q is None else table(frame_of(q, "q"), "q", turned=False)
    invalid, logs = options.pop("invalid", "nan"), options.get("kind", "prob") != "prob"
    one_of(invalid, ("nan", "raise"), "invalid")
    columns, _ = join(first, second, -1, "column", align, -np.inf if logs else 0.0)
    found = divergence.kl_divergence(first.cells[:, None, :], second.cells[None, :, :], **options)
    if invalid == "raise" and np.isnan(found).any():
        i, j = map(int, np.argwhere(np.isnan(found))[0])
        pair = ("p", first, i), ("p" if q is None else "q", second, j)
        raise ValueError(_diagnosis(pair, columns, logs))
    return load("pandas").DataFrame(found, index=p.index, columns=p.index if q is None else q.index)


def _diagnosis(pair: tuple[tuple[str, Table, int], ...], columns: Any, logs: bool) -> str:
    """What is wrong with a row of one table and a row of another, by their labels."""
    places = []
    for name, side, at in pair:
        named, cells = Named(side.over(-2), columns), np.asarray(side.cells[at], np.float64)
        places.append(f"row {named.row(at)!r}")
        text = wrong(side_of(cells, np.ones(cells.size, bool), logs), f"{name}: {places[-1]}", named)
        if text is not None:
            return text
    return f"p and q: {' to '.join(places)} is not a number"


def frame_of(x: Any, name: str) -> Any:
    """A DataFrame, or an error that names the argument."""
    if not isinstance(x, load("pandas").DataFrame):
        raise TypeError(f"{name}: a DataFrame of pandas, not {type_name(x)}")
    return x
