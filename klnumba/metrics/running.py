"""Statistics of row values that come in batches, exact and mergeable."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.gpu.values import DeviceValues
from klnumba.kernels.threads import choose
from klnumba.kernels.uninterrupted import uninterrupted
from klnumba.metrics.afar import Afar
from klnumba.metrics.batch import Batch
from klnumba.metrics.labels import Label, Labels
from klnumba.metrics.mergeable import Mergeable
from klnumba.metrics.reading import Read, values_of
from klnumba.metrics.sketch import shift_for
from klnumba.metrics.state import NO_LABELS, State, check_load, frozen
from klnumba.metrics.summary import Summary
from klnumba.metrics.turns import Turns
from klnumba.reduction import real, short

Array = np.ndarray[Any, Any]

LEAST_ERROR, LARGEST_ERROR = 1e-4, 0.5

# Batches of at most `WAITS` rows are kept until there are so many of them, or so many rows (a megabyte of values):
# what it costs to begin, and to bring the state of every group into the cache, is then paid once.
MOST_BATCHES = 64
MOST_WAITING = 1 << 17
WAITS = MOST_WAITING // 2


@dataclass(slots=True)
class Waiting:
    """A batch that is still to be taken in, with the number of each row's group.

    The last batch that waits has the rows and the load of all that do, and all labels that are known by then: they come
    with it in one step.
    """

    values: Array
    weights: Array | None
    places: Array | None
    rows: int
    load: int
    labels: Labels | None


class RunningStatistics(Mergeable):
    """Count, mean, spread, quantiles and extremes of row values that come in batches.

    The sums are exact, and the rest are counts and extremes: the same rows give the same bits for every split into
    batches, every order and every tree of merging. Memory does not grow with the number of rows. Updates and reads
    from several threads take turns.

    Parameters
    ----------
    quantile_error : float or None, default 0.01
        Largest relative error of quantiles, from 1e-4 to 0.5; None keeps no quantiles. It holds for values that are
        zero or not below 2.3e-308 in size.
    thresholds : sequence of float, optional
        Values for which the share of rows above is kept.
    threads : int, optional
        How many threads may take rows in; the bits do not depend on it.

    Examples
    --------
    >>> from klnumba.metrics import RunningStatistics
    >>> first, second = RunningStatistics(), RunningStatistics()
    >>> first.update([0.5, 0.25])
    >>> second.update([1.0])
    >>> round((first + second).summary().mean, 6)
    0.583333
    """

    def __init__(
        self, *, quantile_error: float | None = 0.01, thresholds: Iterable[float] = (), threads: int | None = None
    ) -> None:
        self.quantile_error = _checked_error(quantile_error)
        self.thresholds = _checked_thresholds(thresholds)
        self.threads = threads
        self.turns = Turns()  # a metric has that of its statistics
        self._clear()

    @property
    def threads(self) -> int | None:
        """How many threads may take rows in; None: as many as pay."""
        return self._threads

    @threads.setter
    def threads(self, most: int | None) -> None:
        self._threads = None if most is None else choose(most, 0)  # which refuses what is no number of threads

    def _clear(self) -> None:
        self._put(State(1, self.thresholds, shift_for(self.quantile_error)), None)

    def _put(self, state: State, labels: Labels | None) -> None:
        self._near, self._known = state, labels
        self._waiting: list[Waiting] = []
        self._afar = Afar(self.thresholds, shift_for(self.quantile_error))

    @property
    def _state(self) -> State:
        """All rows: those that wait are taken in, and what is on devices is waited for and joins what is here."""
        self._take_waiting()
        if self._afar.rows:
            groups = 1 if self._labels is None else len(self._labels)
            self._near.grow(groups)
            for state in self._afar.states(groups):
                self._near.merge(state)
        return self._near

    @property
    def _labels(self) -> Labels | None:
        """All labels so far."""
        return self._waiting[-1].labels if self._waiting else self._known

    @property
    def _held(self) -> int:
        """Rows that wait."""
        return self._waiting[-1].rows if self._waiting else 0

    @property
    def _held_load(self) -> int:
        """Their load."""
        return self._waiting[-1].load if self._waiting else 0

    def _wait(self, batch: Waiting) -> None:
        batch.rows, batch.load = self._held + batch.rows, self._held_load + batch.load
        self._waiting.append(batch)  # from here on its labels count
        if len(self._waiting) > 1:
            self._waiting[-2].labels = None

    def _take_waiting(self) -> None:
        if not self._waiting:
            return
        with uninterrupted():
            labels = self._labels
            self._near.grow(1 if labels is None else len(labels))
            self._near.ready(*_joined(self._waiting), self.threads)()
            self._known, self._waiting = labels, []

    def reset(self) -> None:
        """Forget all rows."""
        with self.turns:
            self._clear()

    # --- taking in -----------------------------------------------------------------------------------------------

    def update(self, values: Any, weights: Any = None, groups: Any = None) -> None:
        """Take in row values.

        Parameters
        ----------
        values : array_like
            Numbers; NaN and infinite ones are counted.
        weights : array_like, optional
            A weight a row, in the shape of `values`, or one for all: 0 or from 2**-32 to 2**32. Rows of weight 0 are
            left out.
        groups : array_like, optional
            A label a row, in the shape of `values`: integers, booleans or text. Either all updates have labels or none
            has. Of several Series, all have the same index in the same order.

        Raises
        ------
        ValueError
            If a shape or a weight does not fit; nothing is changed then.
        TypeError
            If values, weights or labels are of another kind.
        """
        batch = Batch.of(values, weights, groups)
        with self.turns:
            self.ready(batch)()

    def ready(self, batch: Batch) -> Callable[[], None]:
        """Make room for a batch, which shows nowhere; what then takes it in cannot fail, nor Ctrl-C part it."""
        if not batch.values.size:
            return lambda: None
        self.check_groups(batch.labels)
        load = batch.values.size if batch.weights is None else math.ceil(batch.weights.sum())
        check_load(self._near.load + self._afar.load + self._held_load + load)
        labels = places = None
        if batch.labels is not None:
            labels = Labels() if self._labels is None else self._labels.copy()
            places = labels.numbers(batch.labels)
        if isinstance(batch.values, np.ndarray) and batch.values.size <= WAITS:
            size = batch.values.size
            if self._held + size > MOST_WAITING or len(self._waiting) == MOST_BATCHES:
                self._take_waiting()
            return functools.partial(self._wait, Waiting(batch.values, batch.weights, places, size, load, labels))
        self._take_waiting()
        with uninterrupted():  # what grows does so in several steps
            return self._ready(batch, places, labels)

    def _ready(self, batch: Batch, places: Array | None, labels: Labels | None) -> Callable[[], None]:
        """Room for rows on the device of their values or here; no rows wait."""
        take = self._room(batch, places, 1 if labels is None else len(labels))

        def change() -> None:
            with uninterrupted():
                self._known = labels
                take()

        return change

    def _room(self, batch: Batch, places: Array | None, groups: int) -> Callable[[], None]:
        values = batch.values
        if isinstance(values, DeviceValues) and self._afar.holds(groups, batch.weights is not None):
            return self._afar.ready(values, batch.weights, places, groups)
        self._near.grow(groups)
        return self._near.ready(batch.on_host(), batch.weights, NO_LABELS if places is None else places, self.threads)

    def _kind(self) -> tuple[int, bool]:
        """The number of rows, and whether they have labels."""
        with self.turns:
            return self.rows, self._labels is not None

    def check_groups(self, names: Any) -> None:
        """Refuse labels after rows without, and rows without after labels."""
        if names is None and self._labels is not None:
            raise ValueError("groups: missing; the rows so far have labels")
        if names is not None and self._labels is None and self.rows:
            raise ValueError("groups: the rows so far have no labels")

    # --- putting together ----------------------------------------------------------------------------------------

    def merge(self, *others: RunningStatistics) -> None:
        """Add the rows of others, which stay as they are.

        Raises
        ------
        TypeError
            If one is something else.
        ValueError
            If one was made with other settings, or one has groups and another has not.
        """
        self.check_like(*others)
        for other in others:
            with other.turns:
                state, labels = other._state.copy(), None if other._labels is None else other._labels.copy()
            with self.turns, uninterrupted():
                self._merge(state, labels)

    def check_like(self, *others: Any) -> None:
        """Raise where `merge` would."""
        for other in others:
            self._check_like(other)
        if len({grouped for rows, grouped in (one._kind() for one in (self, *others)) if rows}) > 1:
            raise ValueError("others: one has groups and the other has none")

    def _merge(self, state: State, labels: Labels | None) -> None:
        if labels is None:
            if state.counts.any():
                self.check_groups(None)
                self._state.merge(state)
            return
        mine = Labels() if self._labels is None else self._labels.copy()
        places = mine.add(labels.names())
        self._state.grow(len(mine))
        self._state.merge(state.of(*range(len(labels))), places)
        self._known = mine

    # --- giving out ----------------------------------------------------------------------------------------------

    @property
    def labels(self) -> list[Label] | None:
        """Labels of the groups in order, or None where updates had none."""
        with self.turns:
            if self._labels is None:
                return None
            names = self._labels.names()
            return [names[k] for k in self._labels.ordered()]

    @property
    def rows(self) -> int:
        """Rows taken in, those that are NaN among them."""
        with self.turns:
            counts = self._near.counts
            return int(counts.sum() - counts[:, 1].sum()) + self._held + self._afar.rows

    def mean(self) -> Any:
        """The mean over all rows, rounded once; with groups an array, in the order of `labels`."""
        return self._numbers("mean")

    def total(self) -> Any:
        """The sum over all rows, rounded once; with groups an array, in the order of `labels`."""
        return self._numbers("total")

    def _numbers(self, method: str) -> Any:
        with self.turns:
            if self._labels is None:
                return np.float64(values_of(self._state, method, [0])[0])
            return values_of(self._state, method, self._labels.ordered())

    def _ordered(self) -> State:
        """A copy of the state with its groups in the order of their labels."""
        self._state.carry()
        if self._labels is None:
            return self._state.copy()
        return self._state.of(*self._labels.ordered())

    def summary(self) -> Summary:
        """All rows in one summary."""
        with self.turns:
            state = self._state.together()
        return Read(state).summary(self.quantile_error)

    def summaries(self) -> dict[Label, Summary]:
        """A summary for each label."""
        with self.turns:
            if self._labels is None:
                return {}
            names = self._labels.names()
            if len(set(names)) < len(names):
                raise ValueError("groups: True and 1, or False and 0, are both labels here, and one key of a dict")
            return {names[k]: Read(self._state, k).summary(self.quantile_error) for k in self._labels.ordered()}

    def quantile(self, share: float) -> float:
        """The least value that at least this share of the weight does not exceed, within `quantile_error`.

        Raises
        ------
        ValueError
            If the share is not from 0 to 1, or no quantiles are kept.
        """
        if not 0.0 <= real(share, "share") <= 1.0:
            raise ValueError(f"share: a number from 0 to 1, not {share!r}")
        if self.quantile_error is None:
            raise ValueError("quantile_error: None, so that no quantiles are kept")
        with self.turns:
            state = self._state.together()
        return Read(state).quantiles((float(share),))[float(share)]

    def moments(self) -> tuple[float, float, float]:
        """Sum of weights, mean and variance (divided by that sum) of the finite rows."""
        with self.turns:
            return Read(self._state.together()).moments()

    def distribution(self) -> tuple[Array, Array]:
        """(values, weights): what stands for each interval with rows in it, ascending, and their weight."""
        with self.turns:
            return Read(self._state.together()).distribution()

    def __repr__(self) -> str:
        with self.turns:
            groups = "" if self._labels is None else f", groups={len(self._labels)}"
            return f"<{type(self).__name__}: rows={self.rows}{groups}, mean={Read(self._state.together()).mean():.6g}>"

    # --- keeping -------------------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """The keyword arguments this was made with."""
        return {"quantile_error": self.quantile_error, "thresholds": self.thresholds}

    def state_dict(self) -> dict[str, Any]:
        """All that is kept, in one form: the same rows give the same arrays, whatever way they came in."""
        with self.turns:
            return {"options": self.options(), "labels": self.labels, **self._ordered().arrays()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what `state_dict` gave, in place of what is here.

        Raises
        ------
        ValueError
            If it was given by an accumulator with other options, or is damaged; nothing is changed then.
        """
        self._check_state(state)
        try:
            found = State.from_arrays(state, self.thresholds, shift_for(self.quantile_error))
            names = state["labels"]
        except KeyError as error:
            raise ValueError(f"state: no {error.args[0]!r}") from None
        labels = None
        if names is not None:
            if not isinstance(names, list):
                raise ValueError(f"state: labels are a list, not {names!r}")
            labels = Labels()
            labels.add(names)
            if len(labels) < len(names):
                raise ValueError(f"state: labels {names!r}, of which some are there twice")
        if found.groups != (1 if labels is None else len(labels)):
            raise ValueError(f"state: {found.groups} groups, labels {names!r}")
        with self.turns:
            self._put(found, labels)


def _joined(batches: list[Waiting]) -> tuple[Array, Array | None, Array]:
    """Values, weights where one has some, and groups of all batches."""
    values = frozen(np.concatenate([one.values for one in batches]))
    weights = None
    if any(one.weights is not None for one in batches):
        parts = [np.ones(one.values.size) if one.weights is None else one.weights for one in batches]
        weights = frozen(np.concatenate(parts))
    places = [one.places for one in batches if one.places is not None]
    return values, weights, frozen(np.concatenate(places)) if places else NO_LABELS


def _checked_error(value: Any) -> float | None:
    if value is None:
        return None
    if not LEAST_ERROR <= real(value, "quantile_error") <= LARGEST_ERROR:
        raise ValueError(f"quantile_error: from {LEAST_ERROR} to {LARGEST_ERROR}, or None, not {short(value)}")
    return float(value)


def _checked_thresholds(values: Any) -> tuple[float, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"thresholds: a sequence of numbers, not {values!r}")
    found = tuple(real(x, "thresholds") for x in values)
    for x in found:
        if math.isnan(x):
            raise ValueError("thresholds: NaN is no threshold")
    return found
