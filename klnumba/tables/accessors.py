"""The accessors ``series.kl`` and ``df.kl``."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from klnumba import divergence
from klnumba.optional import load
from klnumba.tables.frames import compare
from klnumba.tables.groups import kl_groups
from klnumba.tables.rows import kl_matrix


class SeriesAccessor:
    """``series.kl``: a Series as one distribution over its labels.

    Examples
    --------
    >>> import pandas as pd
    >>> import klnumba.tables
    >>> p = pd.Series({"red": 1, "blue": 3})
    >>> float(p.kl.divergence(pd.Series({"blue": 1, "red": 1}), base=2).round(4))
    0.1887
    """

    def __init__(self, series: Any) -> None:
        self._given = series

    def divergence(self, q: Any, **options: Any) -> Any:
        """KL of this to `q`: `klnumba.kl_divergence`."""
        return divergence.kl_divergence(self._given, q, **options)

    def cross_entropy(self, q: Any, **options: Any) -> Any:
        """The cross entropy of this and `q`: `klnumba.cross_entropy`."""
        return divergence.cross_entropy(self._given, q, **options)

    def js(self, q: Any, **options: Any) -> Any:
        """The Jensen-Shannon divergence of this and `q`: `klnumba.js_divergence`."""
        return divergence.js_divergence(self._given, q, **options)

    def jeffreys(self, q: Any, **options: Any) -> Any:
        """The Jeffreys divergence of this and `q`: `klnumba.jeffreys_divergence`."""
        return divergence.jeffreys_divergence(self._given, q, **options)

    def entropy(self, **options: Any) -> Any:
        """The entropy of this: `klnumba.entropy`."""
        return divergence.entropy(self._given, **options)

    def statistics(self, q: Any, **options: Any) -> Any:
        """Several statistics of this and `q`, as a Series: `klnumba.row_statistics`."""
        return load("pandas").Series(divergence.row_statistics(self._given, q, **options))


class FrameAccessor(SeriesAccessor):
    """``df.kl``: a DataFrame with a distribution in each row, or with rows to be compared.

    Examples
    --------
    >>> import pandas as pd
    >>> import klnumba.tables
    >>> p = pd.DataFrame({"red": [2, 1], "blue": [2, 3]}, index=["May", "June"])
    >>> p.kl.divergence(p.sum(), base=2).round(4)
    May     0.0466
    June    0.0510
    Name: kl, dtype: float64
    """

    def statistics(self, q: Any, **options: Any) -> Any:
        """Several statistics of each row, as a DataFrame: `klnumba.row_statistics`."""
        return load("pandas").DataFrame(divergence.row_statistics(self._given, q, **options))

    def matrix(self, q: Any = None, **options: Any) -> Any:
        """KL of every row to every row of `q`, or of this: `klnumba.tables.kl_matrix`."""
        return kl_matrix(self._given, q, **options)

    def groups(self, by: Any, column: Hashable, **options: Any) -> Any:
        """KL of each group of rows to the others: `klnumba.tables.kl_groups`."""
        return kl_groups(self._given, by, column, **options)

    def compare(self, current: Any, **options: Any) -> Any:
        """What changed from this to `current`, column by column: `klnumba.tables.compare`."""
        return compare(self._given, current, **options)


def register() -> None:
    """Give every Series and DataFrame its ``kl``; once."""
    extensions = load("pandas").api.extensions
    for name, accessor in (("series", SeriesAccessor), ("dataframe", FrameAccessor)):
        owner = getattr(load("pandas"), {"series": "Series", "dataframe": "DataFrame"}[name])
        if getattr(owner, "kl", None) is not accessor:
            getattr(extensions, f"register_{name}_accessor")("kl")(accessor)
