"""What all metrics of rows share: rows in, exact statistics of their values out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from operator import index
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from klnumba import arrays, labelled
from klnumba import reduction as rows_of
from klnumba.divergence import Axis, Invalid, Kind
from klnumba.gpu.borders import any_on_device, is_on_device, shape_of
from klnumba.gpu.values import DeviceValues
from klnumba.kernels.uninterrupted import uninterrupted
from klnumba.labels import outside
from klnumba.metrics.batch import Batch, as_row_values, on_host, refuse_masked
from klnumba.metrics.kept_rows import Buffer, Spill
from klnumba.metrics.labels import Label
from klnumba.metrics.mergeable import Mergeable
from klnumba.metrics.running import RunningStatistics
from klnumba.metrics.state import frozen
from klnumba.metrics.summary import Summary

Array = np.ndarray[Any, Any]

_EARLY = (
    "The ``compute`` method of metric {} was called before the ``update`` method which may lead to errors, "
    "as metric states have not yet been updated."
)
_WEIGHTLESS = (
    "The ``compute`` method of metric {} was called while no row has weight: no update so far had a row of a "
    "weight above 0."
)


class GroupValues(NamedTuple):
    """One value a group.

    Attributes
    ----------
    labels : list
        Labels of the groups, in order.
    values : array
        Their values.
    """

    labels: list[Label]
    values: Any


def _checked_axis(axis: Any) -> Axis:
    """The axis or axes as Python's integers."""
    try:
        found: Axis = tuple(map(index, axis)) if isinstance(axis, tuple) else None if axis is None else index(axis)
    except TypeError:
        raise TypeError(f"axis: an integer or a tuple of integers, not {axis!r}") from None
    if isinstance(found, tuple) and len(set(found)) < len(found):
        raise ValueError(f"axis: one of {found} twice")
    return found


class RowMetric(Mergeable):
    """The mean, sum or list of a divergence of rows over batches; `klnumba.KLDivergence` tells of the parameters."""

    divergence: ClassVar[str]  # the name of what is computed of a row
    higher_is_better: ClassVar[bool] = False
    _updated = False  # whether there was an update, be it one of no row that has weight

    def __init__(
        self, log_prob: bool = False, reduction: Literal["mean", "sum", "none"] | None = "mean", *,
        kind: Kind | None = None, normalize: bool = True, temperature: float = 1.0, base: float | None = None,
        axis: Axis = -1, quantile_error: float | None = 0.01, thresholds: Iterable[float] = (),
        agreement: bool = False, invalid: Invalid = "nan", threads: int | None = None,
        spill: str | os.PathLike[str] | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(log_prob, bool):
            raise TypeError(f"Expected argument `log_prob` to be bool but got {log_prob}")
        allowed = ["mean", "sum", "none", None]
        if reduction not in allowed:
            raise ValueError(f"Expected argument `reduction` to be one of {allowed} but got {reduction}")
        if log_prob and kind not in (None, "log_prob"):
            raise ValueError(f"kind: {kind!r} contradicts log_prob=True")
        self.reduction = reduction or "none"
        self.kind: Kind = kind or ("log_prob" if log_prob else "prob")
        self.normalize = rows_of.flag(normalize, "normalize")
        self.temperature = rows_of.real(temperature, "temperature")
        self.base = None if base is None else rows_of.real(base, "base")
        self.axis = _checked_axis(axis)
        self.agreement, self.invalid = rows_of.flag(agreement, "agreement"), invalid
        if spill is not None and self.reduction != "none":
            raise ValueError(f"spill: rows are kept with reduction 'none' only, not {self.reduction!r}")
        self.statistics = RunningStatistics(quantile_error=quantile_error, thresholds=thresholds, threads=threads)
        self._agreed = RunningStatistics(quantile_error=None, threads=threads) if agreement else None
        self._try_options()
        self._kept = None if self.reduction != "none" else Buffer() if spill is None else Spill(spill)
        self._waiting: list[DeviceValues] = []  # kept rows whose values are still on a device
        self._lock = self.statistics.turns
        self._back: arrays.Back | None = None

    @property
    def threads(self) -> int | None:
        """How many threads may work."""
        return self.statistics.threads

    @threads.setter
    def threads(self, most: int | None) -> None:
        for part in self._parts().values():
            part.threads = most

    def _try_options(self) -> None:
        """Refuse wrong options now, as the first update would."""
        self._rows_values(np.ones((0, 1)), np.ones((0, 1)), None, -1)

    # --- taking in -----------------------------------------------------------------------------------------------

    def update(self, p: Any, q: Any, weights: Any = None, where: Any = None, groups: Any = None) -> None:
        """Take in a batch of rows.

        Parameters
        ----------
        p, q : array_like, (rows, cells)
            Of one shape, p the data or reference. With an `axis` other than -1, of any number of axes. Rows and cells
            of DataFrames are matched by their labels, which must be the same on both sides, in the order of p.
        weights : array_like, optional
            A weight a row, or one for all: 0 or from 2**-32 to 2**32; rows of weight 0 are left out.
        where : array_like of bool, optional
            Cells that belong to the support.
        groups : array_like, optional
            A label a row (integers, booleans or text): the metric then keeps every group apart. Beside a DataFrame, a
            Series of weights or groups has the labels of its rows in their order.

        Raises
        ------
        RuntimeError
            If the shapes differ.
        ValueError
            If p and q are not matrices, or an argument does not fit. Nothing is changed by an update that fails.
        """
        self._take(p, q, weights, where, groups)

    def _take(self, p: Any, q: Any, weights: Any, where: Any, groups: Any) -> Batch:
        self.check_shapes(p, q)
        if where is not None:
            self._check_mask(p, where)
        if labelled.present(p, q):
            labelled.check_rows(p, q, self.axis, weights=weights, groups=groups)
        labelled.check_places(weights=weights, groups=groups)
        values, shape, back = self._rows_values(p, q, where, self.axis)
        agreed = None if self._agreed is None else self._agreement(p, q, where)
        return self._take_values(values, agreed, weights, groups, shape, back)

    def update_values(self, values: Any, agreed: Any = None, weights: Any = None, groups: Any = None) -> None:
        """Take in rows whose values were computed elsewhere, as this metric computes them.

        Parameters
        ----------
        values : array_like, (rows,)
            The divergence of each row, in the unit of `base`.
        agreed : array_like of bool, (rows,), optional
            Whether the largest cells agree, where the metric keeps that.
        weights, groups : array_like, optional
            As of `update`. Of several Series, all have the same labels in the same order.

        Raises
        ------
        ValueError
            If an argument does not fit, or `agreed` is missing; nothing is changed then.
        """
        labelled.check_places(values=values, agreed=agreed, weights=weights, groups=groups)
        shape, agreed = shape_of(values, "values"), on_host(agreed, "agreed")
        if self._agreed is not None and (np.shape(agreed) != shape or np.asarray(agreed).dtype != bool):
            raise ValueError(f"agreed: booleans, whether the largest cells of each row agree, of shape {shape}")
        refuse_masked(agreed, "agreed")
        agreed = None if self._agreed is None else as_row_values(np.asarray(agreed, float))
        self._take_values(as_row_values(values), agreed, weights, groups, shape, None)

    def _take_values(
        self, values: Array | DeviceValues, agreed: Any, weights: Any, groups: Any, shape: tuple[int, ...],
        back: arrays.Back | None,
    ) -> Batch:  # fmt: skip
        if groups is not None and self._kept is not None:
            raise ValueError("groups: with reduction 'none' all rows are kept in one list; use 'mean' or 'sum'")
        batch = Batch.holding(values, weights, groups, shape)
        with self._lock:
            change = self.statistics.ready(batch)
            if self._agreed is None and self._kept is None:
                change()
            else:
                other = None if self._agreed is None else Batch.holding(agreed, weights, groups, shape)
                self._take_parts(batch, change, other)
            self._back = back or self._back
            self._updated = True
        return batch

    def _take_parts(self, batch: Batch, change: Callable[[], None], agreed: Batch | None) -> None:
        """Take a batch into everything that is kept, or into nothing."""
        with uninterrupted():
            changes = [change]
            if self._agreed is not None and agreed is not None:
                changes.append(self._agreed.ready(agreed))
            if self._kept is not None:
                self._keep(batch.values)
            for one in changes:
                one()

    @staticmethod
    def _check_mask(p: Any, where: Any) -> None:
        """Raise where a mask would make more rows."""
        shape, mask = shape_of(p, "p"), shape_of(where, "where")
        try:
            fits = np.broadcast_shapes(mask, shape) == shape
        except ValueError:
            raise ValueError(f"where: shape {mask} does not go together with that of the rows, {shape}") from None
        if not fits:
            raise ValueError(f"where: shape {mask} is more than the rows have, which is {shape}")

    def check_shapes(self, p: Any, q: Any) -> None:
        """Raise where `update` would."""
        shapes = [shape_of(p, "p"), shape_of(q, "q")]
        if shapes[0] != shapes[1]:
            raise RuntimeError(
                f"Predictions and targets are expected to have the same shape, but got {shapes[0]} and {shapes[1]}."
            )
        if len(shapes[0]) != 2 and self.axis == -1:
            many = len(shapes[0])
            raise ValueError(
                f"Expected both p and q distribution to be 2D but got {many} and {many} respectively "
                f"(name the axis of the rows' cells to take others: axis={max(many - 1, 0)})"
            )

    def _keep(self, values: Array | DeviceValues) -> None:
        """Keep values behind those before; those of a device stay there until the list is asked for, or in a file."""
        if isinstance(values, np.ndarray) or self._kept is None or self._kept.path is not None:
            kept = self._list()
            kept.append(values if isinstance(values, np.ndarray) else values.fetched())
        else:
            self._waiting.append(values)

    def _list(self) -> Buffer | Spill:
        """The kept values, those of devices among them."""
        assert self._kept is not None
        waiting, self._waiting = self._waiting, []
        for values in waiting:
            self._kept.append(values.fetched())
        return self._kept

    def _rows_values(self, p: Any, q: Any, where: Any, axis: Axis) -> tuple[Any, tuple[int, ...], arrays.Back]:
        """The divergence of every row, flat, in float64 whatever the dtype of the rows; their shape, and the way back
        to the library of p. Those of rows on a device stay there.
        """
        if any_on_device(p, q):
            return self._values_on_device(p, q, where, axis)
        values, shape, back = rows_of.row_values(
            self.divergence, p, q, self.kind, axis, self.normalize, self.base, self.temperature, where, self.threads,
            self.invalid, self._weight(),
        )  # fmt: skip
        return frozen(values), shape, back

    def _values_on_device(self, p: Any, q: Any, where: Any, axis: Axis) -> tuple[Any, tuple[int, ...], arrays.Back]:
        from klnumba.gpu import host

        def fill(found: Any) -> None:
            rows_of.reduce(
                self.divergence, p, q, self.kind, axis, self.normalize, self.base, self.temperature, "none", where,
                False, found, None, self.threads, self.invalid, self._weight(),
            )  # fmt: skip

        shape = shape_of(p, "p")
        shape = tuple(map(shape.__getitem__, arrays.kept(len(shape), arrays.axes(axis, len(shape)))))
        values = DeviceValues.filled(fill, p if is_on_device(p) else q, shape)
        return values, shape, host.giver(p) if is_on_device(p) else arrays.take(p, "p")[1]

    def _weight(self) -> float:
        """The weight of p, which some divergences have."""
        return 0.5

    def _agreement(self, p: Any, q: Any, where: Any) -> Array | DeviceValues:
        found = rows_of.statistics(
            p, q, ("argmax_agree",), self.kind, self.axis, self.normalize, None, self.temperature, where, False, None,
            self.threads, "nan", "strict",
        )  # fmt: skip
        agreed = found["argmax_agree"]
        if is_on_device(agreed):
            return DeviceValues.of(agreed, "agreement")
        return frozen(np.array(agreed, np.float64).reshape(-1))

    def forward(self, p: Any, q: Any, weights: Any = None, where: Any = None, groups: Any = None) -> Any:
        """Take in a batch and return its own value; the same as calling the metric."""
        batch = self._take(p, q, weights, where, groups)
        if self.reduction == "none":
            return self._given_back(batch.on_host() + 0.0)
        alone = RunningStatistics(quantile_error=None)
        alone.ready(batch)()
        return self._value_of(alone)

    __call__ = forward

    # --- giving out ----------------------------------------------------------------------------------------------

    def compute(self) -> Any:
        """The value over all rows so far, in float64 and in the array library of the last update.

        Returns
        -------
        scalar, array or GroupValues
            With reduction "none" the values of all rows in their order; with groups a value a label.

        Warns
        -----
        UserWarning
            If there was no update yet, or none with a row that has weight.
        """
        if not self.rows:
            text = _WEIGHTLESS if self._updated else _EARLY
            warnings.warn(text.format(type(self).__name__), UserWarning, stacklevel=outside())
        with self._lock:
            return (
                self._given_back(self._list().values()) if self._kept is not None else self._value_of(self.statistics)
            )

    def _value_of(self, statistics: RunningStatistics) -> Any:
        found = statistics.mean() if self.reduction == "mean" else statistics.total()
        labels = statistics.labels
        return self._given_back(found) if labels is None else GroupValues(labels, self._given_back(found))

    def _given_back(self, result: Any) -> Any:
        if isinstance(result, np.memmap):
            return result
        return self._back(np.asarray(result)) if self._back is not None else result

    @property
    def rows(self) -> int:
        """Rows taken in."""
        return self.statistics.rows

    @property
    def labels(self) -> list[Label] | None:
        """Labels of the groups in order, or None where updates had none."""
        return self.statistics.labels

    def summary(self) -> Summary:
        """Count, mean, spread, quantiles and extremes of all rows."""
        with self._lock:
            found = self.statistics.summary()
            return found if self._agreed is None else found.agreeing(float(self._agreed.summary().mean))

    def summaries(self) -> dict[Label, Summary]:
        """A summary for each label."""
        with self._lock:
            found = self.statistics.summaries()
            if self._agreed is None:
                return found
            agreed = self._agreed.summaries()
            return {name: one.agreeing(agreed[name].mean) for name, one in found.items()}

    def quantile(self, share: float) -> float:
        """The least value that at least this share of the rows' weight does not exceed, within `quantile_error`."""
        return self.statistics.quantile(share)

    def plot(self, ax: Any = None) -> Any:
        """The distribution of the rows' values on a logarithmic axis, with mean and median.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default the axes of a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            Without matplotlib.
        ValueError
            If no quantiles are kept, or no row is positive and finite.
        """
        from klnumba.metrics.plot import distribution

        return distribution(self.statistics, ax, f"{type(self).__name__} of a row")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.statistics.rows} rows, {self.kind}, reduction {self.reduction!r}>"

    # --- putting together ----------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Forget all rows."""
        with self._lock:
            if self._kept is not None:
                self._kept.hold(np.empty(0))  # first: it may fail
            self._waiting.clear()
            for part in self._parts().values():
                part.reset()
            self._updated = False

    def _parts(self) -> dict[str, RunningStatistics]:
        found = {"statistics": self.statistics}
        return found if self._agreed is None else found | {"agreed": self._agreed}

    def merge(self, *others: RowMetric) -> None:
        """Add the rows of others, which stay as they are; kept rows come after those here, in the order given.

        Raises
        ------
        TypeError
            If one is another metric.
        ValueError
            If one was made with other options, or one has groups and another has not.
        """
        for other in others:
            self._check_like(other)
        self.statistics.check_like(*(other.statistics for other in others))
        for other in others:
            with other._lock:
                parts = {name: part.clone() for name, part in other._parts().items()}
                kept = None if other._kept is None else other._list().values()
                back, updated = other._back, other._updated
            with self._lock, uninterrupted():
                if self._kept is not None and kept is not None:
                    self._list().append(kept)
                for name, part in self._parts().items():
                    part.merge(parts[name])
                self._back = self._back or back
                self._updated = self._updated or updated

    def clone(self) -> Self:
        """A copy with a life of its own; rows that were kept in a file are kept in memory there."""
        twin = super().clone()
        twin._back, twin._updated = self._back, self._updated
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"updated": self._updated}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._updated = state.get("updated", self._updated)

    # --- keeping -------------------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """The options that decide on values; the number of threads does not, nor where rows are kept."""
        names = ("reduction", "kind", "normalize", "temperature", "base", "axis", "agreement", "invalid")
        statistics = {name: getattr(self.statistics, name) for name in ("quantile_error", "thresholds")}
        return {name: getattr(self, name) for name in names} | statistics

    def state_dict(self) -> dict[str, Any]:
        """All that is kept, as nested dicts, in one form: the same rows give the same state."""
        with self._lock:
            found: dict[str, Any] = {"divergence": self.divergence, "options": self.options()}
            found |= {name: part.state_dict() for name, part in self._parts().items()}
            return found if self._kept is None else found | {"kept": np.array(self._list().values())}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what `state_dict` gave, in place of what is here.

        Raises
        ------
        ValueError
            If it was given by another metric, by one with other options, or is damaged; nothing is changed then.
        """
        self._check_state(state)
        its = state.get("divergence", self.divergence)
        if its != self.divergence:
            raise ValueError(f"state: of the divergence {its!r}, not {self.divergence!r}")
        try:
            parts = {
                name: RunningStatistics(threads=part.threads, **part.options()) for name, part in self._parts().items()
            }
            for name, part in parts.items():
                part.load_state_dict(state[name])
            kept = None if self._kept is None else np.asarray(state["kept"], np.float64)
            counts = [(part.rows,) for part in parts.values()] + ([] if kept is None else [kept.shape])
            if len(set(counts)) > 1:
                raise ValueError("state: its parts hold different numbers of rows")
        except KeyError as error:
            raise ValueError(f"state: no {error.args[0]!r}") from None
        with self._lock:
            if self._kept is not None and kept is not None:
                self._kept.hold(kept)
                self._waiting.clear()
            self.statistics, self._agreed = parts["statistics"], parts.get("agreed")
            self.statistics.turns = self._lock
            self._updated = True  # a state without rows does not tell whether there was an update
