"""What an accumulator has taken in on devices and not yet brought to the host.

A delta is a state on one device: its sums, counts and sketch are integers there, to which kernels add. Being exact, it
joins the state of the host at any time with the same bits. A delta has all intervals that there are; where that takes
too much memory, for the sake of many groups or of very fine quantiles, values come to the host instead. So they do
where there are more thresholds than a kernel takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.exact_integers import LIMBS
from klnumba.gpu.place import Place
from klnumba.gpu.values import DeviceValues
from klnumba.kernels.accumulate import KINDS, SPECIALS
from klnumba.metrics.sketch import Layout, Window
from klnumba.metrics.state import State

Array = np.ndarray[Any, Any]

LARGEST = 1 << 28  # bytes that the intervals of a delta may take
_ROOM = 4  # groups that a delta has room for at least
_MOST_PENDING = 1 << 26  # rows between carries: a limb has room for 2**29


class Afar:
    """The deltas of an accumulator, one for each place, with weights and without."""

    def __init__(self, thresholds: tuple[float, ...], shift: int) -> None:
        self.thresholds, self.shift = thresholds, shift
        self._deltas: dict[Any, Delta] = {}
        self._full: list[Delta] = []  # whose groups have outgrown them

    @property
    def rows(self) -> int:
        return sum(delta.rows for delta in self._all())

    @property
    def load(self) -> int:
        """What the weights of all rows add up to, each batch rounded up."""
        return sum(delta.load for delta in self._all())

    def _all(self) -> list[Delta]:
        return [*self._full, *self._deltas.values()]

    def holds(self, groups: int, weighted: bool) -> bool:
        """Whether a state of so many groups may stay on a device."""
        from klnumba.kernels.cuda import accumulate

        if len(self.thresholds) > accumulate.MOST_THRESHOLDS:
            return False
        return max(groups, _ROOM) * self._bytes(weighted) <= LARGEST

    def _bytes(self, weighted: bool) -> int:
        from klnumba.kernels.cuda import accumulate

        return 16 * accumulate.intervals(self.shift) * (3 if weighted else 1)

    def ready(
        self, values: DeviceValues, weights: Array | None, labels: Array | None, groups: int
    ) -> Callable[[], None]:
        """Make room for rows; what then takes them in waits for nothing."""
        weighted = weights is not None
        key = (values.place, weighted)
        delta = self._deltas.get(key)
        if delta is None or delta.groups < groups:
            least = _ROOM if labels is not None else 1
            most = LARGEST // max(self._bytes(weighted), 1)
            room = max(groups, min(max(least, 2 * groups), most))
            fresh = Delta(values.place, room, self.thresholds, self.shift, weighted)
        else:
            fresh = delta
        take = fresh.ready(values, weights, labels)

        def put() -> None:
            if delta is not None and delta is not fresh:
                self._full.append(delta)
            self._deltas[key] = fresh
            take()

        return put

    def states(self, groups: int) -> list[State]:
        """The deltas as states of the host, which then are no longer here. Waits for the devices."""
        found = [delta.state(groups) for delta in self._all()]
        self._deltas, self._full = {}, []
        return found


class Delta:
    """Rows on one device and stream."""

    def __init__(self, place: Place, groups: int, thresholds: tuple[float, ...], shift: int, weighted: bool) -> None:
        from klnumba.kernels.cuda import accumulate, flat, machine

        self.place, self.groups, self.thresholds = place, groups, thresholds
        self.shift, self.weighted = shift, weighted
        self.rows = self.load = self._pending = 0
        self.size, self.count = accumulate.core_size(weighted, len(thresholds)), accumulate.intervals(shift)
        cells = groups * max(2 * self.count, 1)
        with machine.at(place.device):
            self.core = place.room(groups * self.size, "int64")
            self.extremes = place.room(2 * groups, "int64")
            self.whole = place.room(cells, "int64")
            self.low, self.high = (place.room(cells, "int64") if weighted else self.whole for _ in range(2))
            for array in (self.core, self.whole, *((self.low, self.high) if weighted else ())):
                place.over_cells(flat.filled(), array.size, 0, array)
            place.over_cells(accumulate.no_extremes(), 2 * groups, self.extremes)

    def ready(self, values: DeviceValues, weights: Array | None, labels: Array | None) -> Callable[[], None]:
        """Bring weights and labels to the device; what then takes rows in starts a kernel."""
        from klnumba.kernels.cuda import accumulate, flat, machine

        place, n = self.place, values.size
        heavy = n if weights is None else math.ceil(weights.sum())
        kernel = accumulate.rows(self.weighted, labels is not None, values.index is not None, len(self.thresholds))
        with machine.at(place.device):
            index, masses, names = (
                _uploaded(values.index, "int32" if values.index is None else values.index.dtype.name, place),
                _uploaded(weights, "float64", place),
                _uploaded(labels, "int32", place),
            )

        def take() -> None:
            with machine.at(place.device):
                if self._pending + n > _MOST_PENDING:
                    carried = accumulate.carried(self.weighted, len(self.thresholds))
                    place.over_cells(carried, self.groups * accumulate.numbers(self.weighted), self.groups, self.core)
                    self._pending = 0
                place.launch(
                    kernel, n, flat.THREADS, flat.THREADS,
                    values.cells, index, masses, names, n, self.thresholds or (0.0,), self.core, self.extremes,
                    self.whole, self.low, self.high, max(self.shift, 0), self.count,
                )  # fmt: skip
            self._pending, self.rows, self.load = self._pending + n, self.rows + n, self.load + heavy

        return take

    def state(self, groups: int) -> State:
        """The state of the first groups, on the host."""
        from klnumba.kernels.cuda import accumulate, machine

        groups = min(groups, self.groups)
        with machine.at(self.place.device):
            arrays = [self.core, self.extremes, self.whole, *((self.low, self.high) if self.weighted else ())]
            rows = [machine.download(array, self.place.stream).reshape(self.groups, -1)[:groups] for array in arrays]
        core, extremes, whole, *rest = rows
        many = accumulate.numbers(self.weighted)
        sums, counts, *places = np.split(core, self._cuts(many), axis=1)
        found = State(groups, self.thresholds, self.shift)
        found.sums, found.counts = sums.reshape(groups, many, -1)[:, :2].copy(), counts.copy()
        found.extremes = _unordered(extremes)
        if self.weighted:
            found.masses = sums.reshape(groups, many, -1)[:, 2:].copy()
        self._places(found, places, [whole, *rest])
        found.pending, found.load = 1, self.load
        found.carry()
        return found

    def _cuts(self, many: int) -> list[int]:
        first = many * LIMBS
        return [
            first,
            *(first + KINDS + k * (SPECIALS + len(self.thresholds)) for k in range(3 if self.weighted else 1)),
        ]

    def _places(self, found: State, places: list[Array], tables: list[Array]) -> None:
        """The weights of places, and those of the intervals that hold some, into a state."""
        windows = []
        for side in (slice(0, self.count), slice(self.count, 2 * self.count)):
            used = np.flatnonzero(np.any([table[:, side].any(axis=0) for table in tables], axis=0))
            first = int(used[0]) if used.size else 0
            windows.append(Window(first, int(used[-1]) + 1 - first if used.size else 0))
        found.layout = Layout(len(self.thresholds), self.shift, *windows)
        negative, positive = windows
        joined = [
            np.concatenate([
                special,
                table[:, negative.first : negative.first + negative.count],
                table[:, self.count + positive.first : self.count + positive.first + positive.count],
            ], axis=1)
            for special, table in zip(places, tables, strict=True)
        ]  # fmt: skip
        found.whole, found.part = joined[0], np.zeros_like(joined[0])
        if self.weighted:
            low, high = joined[1:]
            high = high + (low >> _half())
            found.part = (low & ((1 << _half()) - 1)) + ((high & ((1 << _half()) - 1)) << _half())
            found.whole = found.whole + (high >> _half())


def _half() -> int:
    from klnumba.kernels.cuda import accumulate

    return accumulate.HALF


def _unordered(keys: Array) -> Array:
    """The numbers of which `kernels.cuda.accumulate.ordered` made integers."""
    from klnumba.kernels.cuda import accumulate

    found: Array = np.where(keys >= 0, keys, keys ^ accumulate.SIGN_LESS).view(np.float64)
    return found


def _uploaded(cells: Array | None, dtype: str, place: Place) -> Any:
    """Numbers of the host on a device, or in the place of none an array that is not read."""
    from klnumba.kernels.cuda import machine

    room = place.room(0 if cells is None else cells.size, dtype)
    if cells is not None:
        machine.upload(np.ascontiguousarray(cells, dtype), room, place.stream)
    return room
