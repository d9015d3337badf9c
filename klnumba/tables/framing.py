"""Rows of plain values as a frame of pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from klnumba.jsonable import HALVES
from klnumba.optional import load


def framed(rows: list[dict[str, Any]], names: Sequence[str], dtypes: Mapping[str, str] = MappingProxyType({})) -> Any:
    """A pandas.DataFrame of these columns, of the given dtypes, or of those that pandas finds.

    Half a surrogate pair, which pandas' texts cannot hold, makes objects.
    """
    pd = load("pandas")
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in names}
    for name, values in columns.items():
        dtype = object if _halved(values) else dtypes.get(name)
        if dtype is not None:
            columns[name] = pd.Series(values, dtype=dtype)
    return pd.DataFrame(columns)


def _halved(values: list[Any]) -> bool:
    return any(isinstance(one, str) and HALVES.search(one) is not None for one in values)
