"""A batch of row values with weights and labels, checked. Values may stay on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.arrays import take
from klnumba.gpu import borders
from klnumba.gpu.values import DeviceValues
from klnumba.labelled import check_places
from klnumba.metrics.labels import as_labels
from klnumba.metrics.state import frozen

Array = np.ndarray[Any, Any]

LEAST_WEIGHT, LARGEST_WEIGHT = 2.0**-32, 2.0**32


@dataclass(frozen=True)
class Batch:
    """Flat values, and a weight and a label of each where they have some; no weight is zero."""

    values: Array | DeviceValues
    weights: Array | None = None
    labels: Array | None = None

    @classmethod
    def of(cls, values: Any, weights: Any = None, groups: Any = None) -> Batch:
        """Check the three."""
        check_places(values=values, weights=weights, groups=groups)
        return cls.holding(as_row_values(values), weights, groups, borders.shape_of(values, "values"))

    @classmethod
    def holding(cls, row: Array | DeviceValues, weights: Any, groups: Any, shape: tuple[int, ...]) -> Batch:
        """Check weights and labels of flat values that are nobody else's, for rows of this shape."""
        weights, groups = on_host(weights, "weights"), on_host(groups, "groups")
        labels = None if groups is None else as_labels(groups, shape)
        if weights is None:
            return cls(row, None, labels)
        mass = _weights(weights, shape)
        held = mass > 0.0
        if held.all():
            return cls(row, frozen(mass), labels)
        rest = row[held]
        rest = rest if isinstance(rest, DeviceValues) else frozen(rest)
        return cls(rest, frozen(mass[held]), None if labels is None else labels[held])

    def on_host(self) -> Array:
        """The values in the memory of the host; waits for those of a device."""
        return self.values if isinstance(self.values, np.ndarray) else frozen(self.values.fetched())

    def with_values(self, values: Array) -> Batch:
        """Other values of the same rows."""
        return Batch(frozen(values), self.weights, self.labels)


def on_host(x: Any, name: str) -> Any:
    """What is looked at here, such as weights and labels; that of a device is waited for."""
    if not borders.is_on_device(x):
        return x
    from klnumba.gpu import host

    return host.numbers(x, name)


def as_row_values(values: Any) -> Array | DeviceValues:
    """A flat copy of row values, in float64; those of a device stay there."""
    if borders.is_on_device(values):
        return DeviceValues.of(values, "values")
    refuse_masked(values, "values")
    found = take(values, "values")[0]
    return frozen(np.asarray(found, np.float64).reshape(-1) + 0.0)  # -0.0 becomes 0.0


def refuse_masked(x: Any, name: str) -> None:
    """Raise where a mask would be lost."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name}: a masked array; give rows to leave out a weight of 0")


def _weights(weights: Any, shape: tuple[int, ...]) -> Array:
    """A weight a row; raises naming the first row whose weight is none."""
    refuse_masked(weights, "weights")
    found = take(weights, "weights")[0]
    if found.ndim and found.shape != shape:
        raise ValueError(f"weights: one a row, of shape {shape}, or one for all, not shape {found.shape}")
    flat = np.ascontiguousarray(np.broadcast_to(found.astype(np.float64), shape)).reshape(-1)
    if (fault := weights_fault(flat)) is not None:
        raise ValueError(fault)
    return flat


def weights_fault(flat: Array, first: int = 0) -> str | None:
    """What is wrong with the first weight that is none, if one is; `first` is the number of the first row."""
    bad = np.flatnonzero(~((flat == 0.0) | ((flat >= LEAST_WEIGHT) & (flat <= LARGEST_WEIGHT))))
    if not bad.size:
        return None
    row = int(bad[0])
    return f"weights: row {first + row} weighs {flat[row]}; a weight is 0 or from 2**-32 to 2**32"
