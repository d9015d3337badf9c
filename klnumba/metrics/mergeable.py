"""What every accumulator can do once it can give its state, take one, and merge: add up, and copy itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from klnumba.metrics.lasting import Lasting


class Mergeable(Lasting):
    """The base of accumulators. Two that have the same `options` can be merged; `threads` is none of them."""

    threads: int | None

    def options(self) -> dict[str, Any]:
        """The keyword arguments that decide on values."""
        raise NotImplementedError

    def merge(self, *others: Any) -> None:
        """Add the rows of others."""
        raise NotImplementedError

    def clone(self) -> Self:
        """A copy with a life of its own."""
        twin = self.from_state_dict(self.state_dict())
        twin.threads = self.threads
        return twin

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Self:
        """The accumulator whose `state_dict` this is."""
        made = cls(**cls._options_of(state))
        made.load_state_dict(state)
        return made

    @classmethod
    def _options_of(cls, state: Mapping[str, Any]) -> dict[str, Any]:
        """The options in a state; others than `options` gives could make it write files."""
        found = _options_in(state)
        unknown = found.keys() - cls().options().keys()
        if unknown:
            raise ValueError(f"state: {min(unknown)!r} is no option of {cls.__name__}")
        return found

    def __add__(self, other: Any) -> Self:
        if not isinstance(other, Mergeable):
            return NotImplemented
        total = self.clone()
        total.merge(other)
        return total

    def __radd__(self, other: Any) -> Self:
        return self.clone() if isinstance(other, int) and other == 0 else NotImplemented  # sum() begins with 0

    def __deepcopy__(self, memo: Any) -> Self:
        return self.clone()

    def __getstate__(self) -> dict[str, Any]:
        return self.state_dict() | {"threads": self.threads}

    def __setstate__(self, state: dict[str, Any]) -> None:
        type(self).__init__(self, **self._options_of(state))
        self.load_state_dict(state)
        self.threads = state.get("threads")

    def _check_like(self, other: Any) -> None:
        """Refuse to merge with something else."""
        if type(other) is not type(self):
            raise TypeError(f"others: a {type(self).__name__}, not {type(other).__name__}")
        self._check_options(other.options(), "others")

    def _check_options(self, theirs: Mapping[str, Any], argument: str) -> None:
        for name, mine in self.options().items():
            its = theirs.get(name, "missing")
            if isinstance(its, np.ndarray) or its != mine:
                raise ValueError(f"{argument}: {name} is {its!r} there and {mine!r} here")

    def _check_state(self, state: Mapping[str, Any]) -> None:
        self._check_options(_options_in(state), "state")


def _options_in(state: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a state, as they were before JSON, which has no tuples."""
    options = state.get("options") if isinstance(state, Mapping) else None
    if not isinstance(options, Mapping):
        raise ValueError("state: no 'options'")
    return {name: tuple(x) if isinstance(x, list) else x for name, x in options.items()}
