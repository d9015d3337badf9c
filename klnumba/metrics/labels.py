"""Names of groups, and the number of the group that each row belongs to."""

from __future__ import annotations

from typing import Any

import numpy as np

from klnumba.metrics.state import frozen

Array = np.ndarray[Any, Any]
Label = int | bool | str

_DENSE = 1 << 20  # integers that lie closer than this are looked up in a table


def as_labels(groups: Any, shape: tuple[int, ...]) -> Array:
    """The labels of a batch as a flat array of integers, booleans or text."""
    if isinstance(groups, np.ma.MaskedArray):
        raise TypeError("groups: a masked array; give rows to leave out a weight of 0")
    found = np.asarray(groups) if hasattr(groups, "dtype") else np.asarray(groups, object)
    if found.shape != shape:
        raise ValueError(f"groups: one label a row, of shape {shape}, not {found.shape}")
    if not found.size:
        return np.empty(0, np.int64)
    if found.dtype.kind in "OT":
        found = _of_one_kind(found.astype(object))
    if found.dtype.kind not in "iubU":
        raise TypeError(f"groups: integers, booleans or text, not {found.dtype}")
    return found.reshape(-1)


def _of_one_kind(labels: Array) -> Array:
    """Python's objects as an array of what they are."""
    kinds = {_kind(one) for one in set(map(type, labels.flat))}
    if len(kinds) > 1 or not kinds <= {bool, int, str}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise TypeError(f"groups: integers, booleans or text, all of one kind, not {names}")
    if kinds == {int}:
        return labels.astype(_holding(min(labels.flat), max(labels.flat)))
    if kinds == {str}:
        return _texts(labels)
    return labels.astype(bool)


def _texts(labels: Array) -> Array:
    """Text as an array; of members of an Enum that are text, what they hold and not their names."""
    texts = [str.__str__(one) for one in labels.flat]
    if "\0" in "".join(texts):
        raise ValueError("groups: text with NUL characters, which NumPy drops where they come last")
    return np.array(texts, str).reshape(labels.shape)


def _kind(of: type) -> type:
    for kind, kinds in ((bool, (bool, np.bool_)), (int, (int, np.integer)), (str, str)):
        if issubclass(of, kinds):
            return kind
    return of


def _holding(low: int, high: int) -> type:
    """The dtype that holds these integers."""
    for kind in (np.int64, np.uint64):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return kind
    raise ValueError(f"groups: integers of 64 bits, not from {low} to {high}")


class Labels:
    """The labels seen so far, numbered in the order of their first row."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[type, Label], int] = {}
        self._table = np.empty(0, np.int64)  # number of each label from _low on, -1 for those not seen
        self._low = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def names(self) -> list[Label]:
        """Labels by number."""
        return [name for _, name in self._numbers]

    def ordered(self) -> list[int]:
        """Numbers in the order of the labels: booleans, integers, text."""
        names = self.names()
        kinds: dict[type, int] = {bool: 0, int: 1, str: 2}
        return sorted(range(len(names)), key=lambda k: (kinds[type(names[k])], names[k]))

    def copy(self) -> Labels:
        twin = Labels()
        twin._numbers, twin._table, twin._low = dict(self._numbers), self._table, self._low
        return twin

    def add(self, names: list[Label]) -> Array:
        """Number these labels, new ones after those known."""
        return frozen(np.array([self._number(name) for name in names], np.int64))

    def _number(self, name: Label) -> int:
        return self._numbers.setdefault((_checked(name), name), len(self._numbers))  # True is not 1

    def numbers(self, labels: Array) -> Array:
        """The number of each row's group."""
        if labels.size and labels.dtype.kind in "iu":
            low, high = int(labels.min()), int(labels.max())
            if high - low < _DENSE and high < 1 << 62 and low > -(1 << 62):
                return self._looked_up(labels.astype(np.int64, copy=False), low, high)
        names, places = np.unique(labels, return_inverse=True)
        return frozen(self.add(names.tolist())[places])

    def _looked_up(self, labels: Array, low: int, high: int) -> Array:
        if low < self._low or high >= self._low + self._table.size:
            self._low, self._table = low, np.full(high - low + 1, -1)
        places = labels - self._low
        found = self._table[places]
        if (found < 0).any():
            names = np.unique(labels[found < 0])
            self._table = self._table.copy()  # a copy of this object may hold it too
            self._table[names - self._low] = self.add(names.tolist())
            found = self._table[places]
        return frozen(found)


def _checked(name: Any) -> type:
    if type(name) not in (bool, int, str):
        raise ValueError(f"labels: integers, booleans or text, not {name!r}")
    return type(name)
