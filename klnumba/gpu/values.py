"""Values of rows that stay on their device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from klnumba.gpu import borders, streams
from klnumba.gpu.place import Place
from klnumba.gpu.rows import flat_view, side_by_side

NARROW = 1 << 31  # rows that an index of 32 bits can name


@dataclass(frozen=True)
class DeviceValues:
    """Numbers side by side in the memory of a device, and which of them count: all, or those that `index` names."""

    place: Place
    cells: Any  # as an array for kernels, of float64
    count: int
    index: np.ndarray | None = None

    @classmethod
    def filled(cls, fill: Callable[[Any], None], like: Any, shape: tuple[int, ...]) -> DeviceValues:
        """What `fill` puts into a float64 array on the device of `like`."""
        found = borders.all_of(p=like)
        with borders.at_work(found):
            place = Place.of(found["p"])
            made, out = place.own.new(shape, "float64")
            fill(made)
            return cls(place, flat_view(out, out.layout)[0], int(np.prod(shape, dtype=np.int64)))

    @classmethod
    def of(cls, array: Any, name: str) -> DeviceValues:
        """A copy of an array of any layout and dtype."""
        taken = borders.all_of(**{name: array})
        with borders.at_work(taken):
            found = taken[name]
            place, count = streams.begin(taken), int(np.prod(found.shape, dtype=np.int64))
            cells = side_by_side(found, found.layout, "float64", place) if count else place.room(0, "float64")
            streams.end(place, taken)
            return cls(place, cells, count)

    @property
    def size(self) -> int:
        return self.count if self.index is None else self.index.size

    def __getitem__(self, held: np.ndarray) -> DeviceValues:
        """Those where a mask says yes."""
        rows = np.arange(self.count) if self.index is None else self.index
        return replace(self, index=rows[held].astype(np.int32 if self.count <= NARROW else np.int64))

    def fetched(self) -> np.ndarray:
        """A copy on the host. Waits for the device."""
        from klnumba.kernels.cuda import machine

        with machine.at(self.place.device):
            cells = machine.download(self.cells, self.place.stream)[: self.count] + 0.0
        return cells if self.index is None else cells[self.index]
