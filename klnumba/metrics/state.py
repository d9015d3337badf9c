"""What an accumulator keeps: for each group, exact sums, counts and a sketch of the values of its rows.

Everything is an integer or an extreme, so that a state does not depend on how rows were split into batches, nor on the
order in which states were merged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from klnumba import fixed_point
from klnumba.formulas.exact_integers import BIAS
from klnumba.kernels import accumulate, cpu, threads
from klnumba.metrics.sketch import MOST, Layout, Window

Array = np.ndarray[Any, Any]

_MOST_PENDING = 1 << 26  # rows between carries: a limb has room for 2**29
CELLS_OF_ROW = 4  # of rows of probabilities, for which KL takes as long as a value here
_MOST_LOAD = 1 << 62  # what the weights of all rows may add up to, in whole numbers
NO_LABELS = np.empty(0, np.int64)
NO_LABELS.flags.writeable = False


class State:
    """The states of `groups` groups.

    Attributes
    ----------
    counts : (groups, kinds) int64
        Rows that are finite, zero, inf, -inf and NaN.
    extremes : (groups, 2) float64
        Least and largest value.
    sums : (groups, 2, limbs) int64
        Sums of w*x and w*x**2 over finite rows, in fixed point.
    masses : (groups, 2, limbs) int64 or None
        Sums of w and w**2 over finite rows; None while every weight was one.
    whole, part : (groups, columns) int64
        Weights of the values in each place of `layout`: whole numbers, and what is left in units of 2**-62.
    """

    __slots__ = ("counts", "extremes", "layout", "load", "masses", "part", "pending", "sums", "thresholds", "whole")

    def __init__(self, groups: int, thresholds: tuple[float, ...], shift: int) -> None:
        self.thresholds = np.array(thresholds, np.float64)
        self.thresholds.flags.writeable = False
        self.layout = Layout(len(thresholds), shift)
        self.counts = np.zeros((groups, accumulate.KINDS), np.int64)
        self.extremes = np.tile([math.inf, -math.inf], (groups, 1))
        self.sums = fixed_point.zeros(groups, 2)
        self.masses: Array | None = None
        self.whole = np.zeros((groups, self.layout.columns), np.int64)
        self.part = np.zeros((groups, self.layout.columns), np.int64)
        self.pending = 0
        self.load = 0

    @property
    def groups(self) -> int:
        return len(self.counts)

    def ready(
        self, values: Array, weights: Array | None, labels: Array = NO_LABELS, most: int | None = 1
    ) -> Callable[[], None]:
        """Make room for row values, which shows nowhere; what then takes them in cannot fail.

        `labels` holds each row's group, where there is more than one: up to `most` threads share the groups (None: as
        many as pay). Rows of one group take so little time that no second thread pays.
        """
        most = threads.choose(most, CELLS_OF_ROW * values.size)
        if self.pending + values.size > _MOST_PENDING:
            self.carry()
        heavy = values.size if weights is None else math.ceil(weights.sum())
        check_load(self.load + heavy)
        if weights is not None:
            self.take_weights()
        elif self.masses is not None:
            weights = frozen(np.ones(values.size))
        if labels.size:
            values, weights, labels = _by_group(values, weights, labels)
        self._spread(self.layout.holding(values))
        rows = (values, labels) if weights is None else (values, weights, labels)
        cuts = _cuts(labels, values.size, most) if labels.size else [0, values.size]
        shares = [
            (*(x[start:stop] for x in rows), *self._for_loop(room))
            for start, stop, room in zip(cuts, cuts[1:], _rooms(len(cuts) - 1), strict=False)
        ]
        loop = cpu.accumulated(weights is not None)

        def take() -> None:
            self.pending += values.size
            self.load += heavy
            threads.run(lambda share: loop(*share), shares, most)

        return take

    def _for_loop(self, room: Array) -> tuple[Array, ...]:
        """What the loop changes, and what it needs beside that."""
        sums = (self.sums,) if self.masses is None else (self.sums, self.masses)
        return (
            self.thresholds, self.counts, self.extremes, *sums, self.whole, self.part, self.layout.for_loop(), room
        )  # fmt: skip

    def _spread(self, layout: Layout) -> None:
        if layout != self.layout:
            whole, part = (layout.moved(x, self.layout) for x in (self.whole, self.part))
            self.layout, self.whole, self.part = layout, whole, part

    def take_weights(self) -> None:
        """From now on rows have weights; those so far weighed one."""
        if self.masses is not None:
            return
        masses = fixed_point.zeros(self.groups, 2)
        for g, rows in enumerate(self.counts[:, accumulate.FINITE]):
            masses[g, :] = fixed_point.from_integer(int(rows) << BIAS)
        self.masses = masses

    def carry(self) -> None:
        """Give every sum its one form."""
        if not self.pending:
            return
        fixed_point.carry(self.sums)
        if self.masses is not None:
            fixed_point.carry(self.masses)
        self.pending = 0

    def grow(self, groups: int) -> None:
        """Make room for more groups."""
        if groups <= self.groups:
            return
        groups = max(groups, self.groups * 3 // 2)  # labels that come one by one do not copy everything each time
        more = State(groups - self.groups, tuple(self.thresholds), self.layout.shift)
        if self.masses is not None:
            more.take_weights()
        more._spread(self.layout)
        self._put({name: np.concatenate([array, getattr(more, name)]) for name, array in self._arrays()})

    def _put(self, arrays: Mapping[str, Array]) -> None:
        """Replace arrays, all of which are made."""
        for name, array in arrays.items():
            setattr(self, name, array)

    def _arrays(self) -> Iterator[tuple[str, Array]]:
        for name in ("counts", "extremes", "sums", "masses", "whole", "part"):
            array = getattr(self, name)
            if array is not None:
                yield name, array

    def merge(self, other: State, places: Array | None = None) -> None:
        """Add the groups of another state to those here; its group k goes to `places[k]`, by default to k."""
        check_load(self.load + other.load)
        other = other.copy()
        self.carry()
        other.carry()
        if self.masses is not None or other.masses is not None:
            self.take_weights()
            other.take_weights()
        layout = self.layout.joined(other.layout)
        self._spread(layout)
        other._spread(layout)
        made = {name: array.copy() for name, array in self._arrays()}
        at = slice(other.groups) if places is None else places  # no place twice
        made["extremes"][at, 0] = np.minimum(made["extremes"][at, 0], other.extremes[:, 0])
        made["extremes"][at, 1] = np.maximum(made["extremes"][at, 1], other.extremes[:, 1])
        for name in made.keys() - {"extremes"}:
            made[name][at] += getattr(other, name)
        over = made["part"] >> accumulate.PART_BITS
        made["part"] &= accumulate.PART - 1
        made["whole"] += over
        self._put(made)
        self.load += other.load
        self.pending = 1
        self.carry()

    def together(self) -> State:
        """All groups as one."""
        self.carry()
        total = self.of()
        for name, array in self._arrays():
            if name not in ("extremes", "part"):
                setattr(total, name, array.sum(axis=0, keepdims=True))
        reach = [self.extremes[:, 0].min(initial=math.inf), self.extremes[:, 1].max(initial=-math.inf)]
        total.extremes = np.array([reach])
        half = accumulate.PART_BITS // 2  # many parts add up to more than an integer holds, many halves do not
        low = (self.part & ((1 << half) - 1)).sum(axis=0, keepdims=True)
        high = (self.part >> half).sum(axis=0, keepdims=True) + (low >> half)
        total.whole += high >> half
        total.part = ((high & ((1 << half) - 1)) << half) + (low & ((1 << half) - 1))
        total.pending = 1
        total.carry()
        return total

    def of(self, *groups: int) -> State:
        """Some of the groups, in this order."""
        found = self._shallow()
        for name, array in self._arrays():
            setattr(found, name, array[np.array(groups, np.int64)])
        return found

    def copy(self) -> State:
        """A state with a life of its own."""
        found = self._shallow()
        for name, array in self._arrays():
            setattr(found, name, array.copy())
        return found

    def _shallow(self) -> State:
        """This state's arrays in another object."""
        twin = object.__new__(State)
        for name in self.__slots__:
            setattr(twin, name, getattr(self, name))
        return twin

    # --- as plain arrays -----------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """The state in its one form: equal states give equal arrays."""
        self.carry()
        layout = self.layout.trimmed(self.whole, self.part)
        windows = (layout.negative, layout.positive)
        found = {name: array.copy() for name, array in self._arrays()}
        found |= {name: layout.moved(found[name], self.layout) for name in ("whole", "part")}
        found["extremes"] += 0.0
        found["windows"] = np.array([(w.first, w.count) for w in windows], np.int64)
        return found

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], thresholds: tuple[float, ...], shift: int) -> State:
        """The state whose `arrays` these are; raises ValueError naming the one that does not fit."""
        groups = len(np.atleast_1d(arrays["counts"]))
        state = cls(groups, thresholds, shift)
        windows = np.asarray(arrays["windows"])
        if windows.shape != (2, 2) or windows.dtype.kind != "i" or (windows < 0).any() or (windows > MOST).any():
            raise ValueError("windows: two pairs of integers, not negative, of intervals that there are")
        layout = Layout(len(thresholds), shift, *(Window(int(a), int(b)) for a, b in windows))
        if np.shape(arrays["whole"]) != (groups, layout.columns):
            raise ValueError(f"whole: of shape {(groups, layout.columns)}, not {np.shape(arrays['whole'])}")
        state._spread(layout)
        if "masses" in arrays:
            state.take_weights()
        for name, here in state._arrays():
            there = np.asarray(arrays[name])
            if there.shape != here.shape or there.dtype != here.dtype:
                raise ValueError(
                    f"{name}: {here.dtype} of shape {here.shape}, not {there.dtype} of shape {there.shape}"
                )
            setattr(state, name, np.array(there, order="C"))
        state._check_contents()
        state.pending = 1
        return state

    def _check_contents(self) -> None:
        """Refuse what no rows can have left."""
        for name in ("counts", "whole", "part"):
            if (getattr(self, name) < 0).any():
                raise ValueError(f"{name}: negative")
        if (self.part >= accumulate.PART).any() or np.isnan(self.extremes).any():
            raise ValueError("part, extremes: out of range")
        shares = slice(accumulate.SPECIALS, accumulate.SPECIALS + len(self.thresholds))
        held = np.delete(self.whole, shares, axis=1)
        rows = self.counts[:, [accumulate.FINITE, accumulate.PLUS_INF, accumulate.MINUS_INF]].sum(axis=1)
        if self.masses is None and ((held.sum(axis=1) != rows).any() or self.part.any()):
            raise ValueError("masses: missing, though not every row weighs one")
        counted = held.astype(np.float64)
        self.load = math.ceil(counted.sum()) + self.whole.size
        if self.load > _MOST_LOAD:
            raise ValueError("whole: out of range")


def check_load(load: int) -> None:
    """Refuse rows that would make the sum of all weights too large."""
    if load > _MOST_LOAD:
        raise ValueError("weights: the sum of all would pass 2**62")


def _by_group(values: Array, weights: Array | None, labels: Array) -> tuple[Array, Array | None, Array]:
    """The rows of a batch group by group: what a group keeps is then brought into the cache once."""
    narrow = labels.astype(np.uint16) if labels.max() < 1 << 16 else labels
    order = narrow.argsort(kind="stable")
    return frozen(values[order]), None if weights is None else frozen(weights[order]), frozen(labels[order])


def _cuts(labels: Array, size: int, count: int) -> list[int]:
    """Where the rows of each thread begin, and where the last end; no group is cut."""
    places = [size * k // count for k in range(1, count)]
    return sorted({0, *labels.searchsorted(labels[places]).tolist(), size})


def _rooms(count: int) -> list[Array]:
    """Scratch of the loop for so many threads: this one's own, and new ones."""
    return [threads.scratch(np.dtype(np.float64))[2], *(np.empty(accumulate.ROOM) for _ in range(1, count))]


def frozen(array: Array) -> Array:
    """The array, read-only, as the loops want it."""
    array.flags.writeable = False
    return array
