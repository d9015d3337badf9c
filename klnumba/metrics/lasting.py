"""What lasts beyond a process: a state as plain dicts, and on disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

from klnumba.metrics import files
from klnumba.tensors import untrace, untraced

# What is asked of a metric or a statistic, under any of their names: none of it is for PyTorch's compiler to follow.
DOORS = (
    "__init__", "__call__", "forward", "update", "update_values", "compute", "reset", "merge", "clone", "summary",
    "summaries", "quantile", "mean", "total", "moments", "distribution", "state_dict", "load_state_dict", "rows",
    "labels", "std", "metric", "size", "plot", "from_state_dict", "__add__", "__radd__",
)  # fmt: skip


class Lasting:
    """The base of what gives its state and takes one."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Make doors of those."""
        super().__init_subclass__(**options)
        untrace(cls, *DOORS)

    def state_dict(self) -> dict[str, Any]:
        """All that is kept, and the options that decide on values."""
        raise NotImplementedError

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        raise NotImplementedError

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Self:
        """The object whose `state_dict` this is."""
        raise NotImplementedError

    @untraced
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything into a file, which replaces an old one only when it is whole and on disk."""
        files.write(path, {"class": type(self).__name__, **self.state_dict()})

    @classmethod
    @untraced
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The object that `save` wrote.

        Raises
        ------
        ValueError
            If the file is truncated, or was written by another class, by something else or by another version.
        """
        state = files.read(path)
        if state.get("class") != cls.__name__:
            raise ValueError(f"{path}: a {state.get('class')}, not a {cls.__name__}")
        try:
            return cls.from_state_dict(state)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from error
