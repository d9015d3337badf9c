"""Rows of plain values as a frame of pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from klnumba.jsonable import HALVES
from klnumba.optional import load


def framed(rows: list[dict[str, Any]], names: Sequence[str]) -> Any:
    """A pandas.DataFrame of these columns; half a surrogate pair, which pandas' texts cannot hold, makes objects."""
    pd = load("pandas")
    lists = {name: [row[name] for row in rows] for name in names}
    return pd.DataFrame({name: pd.Series(one, dtype=object) if _halved(one) else one for name, one in lists.items()})


def _halved(values: list[Any]) -> bool:
    return any(isinstance(one, str) and HALVES.search(one) is not None for one in values)
