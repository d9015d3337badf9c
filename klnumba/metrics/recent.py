"""Metrics of what came last: a window of batches, and weights that fade."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Mapping
from copy import copy
from typing import Any, Self

import numpy as np

from klnumba.kernels.uninterrupted import uninterrupted
from klnumba.metrics.divergences import METRICS
from klnumba.metrics.lasting import Lasting
from klnumba.metrics.metric import RowMetric
from klnumba.metrics.summary import Summary
from klnumba.metrics.turns import Turns
from klnumba.reduction import real


def _empty_twin(metric: Any) -> RowMetric:
    """A metric of the same kind and options with no rows; refuses anything else than a metric of rows."""
    if not isinstance(metric, RowMetric):
        raise TypeError(f"metric: a metric of rows such as KLDivergence, not {type(metric).__name__}")
    return type(metric)(threads=metric.threads, **metric.options())


# what fades, by its name in a state
_FADING = {
    "weight": "weight", "mean": "mean", "variance": "_variance", "not_finite": "not_finite", "limit": "_limit"
}  # fmt: skip


def _told(empty: RowMetric) -> dict[str, Any]:
    """What a state says of a metric without rows."""
    return {"metric_class": type(empty).__name__, "metric": empty.state_dict()}


def _metric_of(state: Mapping[str, Any]) -> RowMetric:
    """The metric of which a state tells."""
    name, metric = _parts(state, "metric_class", "metric")
    kind = next((one for one in METRICS if one.__name__ == name), None)
    if kind is None:
        raise ValueError(f"state: of a metric {name!r}, which is none of {', '.join(m.__name__ for m in METRICS)}")
    return kind.from_state_dict(metric)


def _check_like(empty: RowMetric, state: Mapping[str, Any], name: str, its: Any, mine: Any) -> None:
    """Refuse the state of another metric, or with another option."""
    _loaded(empty, *_parts(state, "metric"))
    if its != mine:
        raise ValueError(f"state: {name} is {its!r} there and {mine!r} here")


def _loaded(empty: RowMetric, state: Mapping[str, Any]) -> RowMetric:
    """A metric like an empty one, with the rows of a state."""
    one = _empty_twin(empty)
    one.load_state_dict(state)
    return one


def _parts(state: Mapping[str, Any], *names: str) -> list[Any]:
    """Some parts of a state."""
    try:
        return [state[name] for name in names]
    except KeyError as error:
        raise ValueError(f"state: no {error.args[0]!r}") from None


class _Recent(Lasting):
    """The base of both: a copy and a pickle are of one moment, and share nothing that changes."""

    _lock: Turns

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: copy(kept) for name, kept in self.__dict__.items()}


class Windowed(_Recent):
    """A metric over the last batches.

    Parameters
    ----------
    metric : KLDivergence, JensenShannonDivergence or CrossEntropy
        Which metric, with which options; it stays as it is.
    size : int
        How many batches the window holds.

    Raises
    ------
    TypeError
        If `metric` is something else.
    ValueError
        If `size` is no positive integer.

    Notes
    -----
    Each batch keeps an exact state of its own, so that the window has the same bits as a new metric that saw its
    batches only. Memory is that of `size` states. Updates and reads from several threads take turns. Windows have no
    `merge`: two of them have no order in common, which would tell what came last.

    Examples
    --------
    >>> import klnumba as kl
    >>> recent = kl.metrics.Windowed(kl.KLDivergence(base=2), size=2)
    >>> for q in ([1, 1], [1, 3], [1, 7]):
    ...     recent.update([[1, 1]], [q])
    >>> print(round(float(recent.compute()), 4))
    0.4019
    """

    def __init__(self, metric: RowMetric, size: int) -> None:
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size <= sys.maxsize:
            raise ValueError(f"size: a positive integer, not {size!r}")
        self._empty = _empty_twin(metric)
        self._batches: deque[RowMetric] = deque(maxlen=int(size))
        self._lock = Turns()

    @property
    def size(self) -> int:
        """How many batches the window holds."""
        return int(self._batches.maxlen or 0)

    def update(self, *batch: Any, **options: Any) -> None:
        """Take in a batch, as `KLDivergence.update` does; the oldest leaves a full window."""
        one = _empty_twin(self._empty)
        one.update(*batch, **options)
        self._keep(one)

    def forward(self, *batch: Any, **options: Any) -> Any:
        """Take in a batch and return its own value; the same as calling the object."""
        one = _empty_twin(self._empty)
        value = one(*batch, **options)
        self._keep(one)
        return value

    __call__ = forward

    def _keep(self, one: RowMetric) -> None:
        """Put a batch into the window; raises, with nothing done, where it does not go with those that stay there."""
        with self._lock:
            leaves = len(self._batches) == self.size
            for other in list(self._batches)[leaves:] if one.rows else []:
                other.statistics.check_groups(one.labels)
            self._batches.append(one)

    def compute(self) -> Any:
        """The value over the rows in the window."""
        return self.metric().compute()

    def summary(self) -> Summary:
        """A summary of the rows in the window."""
        return self.metric().summary()

    def metric(self) -> RowMetric:
        """The rows in the window as one metric."""
        return self._copy()[0]

    def _copy(self) -> tuple[RowMetric, int]:
        """The rows as one metric, and how many batches they are."""
        with self._lock:
            batches = list(self._batches)  # none of them changes any more
        total = _empty_twin(self._empty)
        total.merge(*batches)
        return total, len(batches)

    def reset(self) -> None:
        """Empty the window."""
        with self._lock:
            self._batches.clear()

    def state_dict(self) -> dict[str, Any]:
        """All that is kept: the state of each batch, and of a metric without rows."""
        with self._lock:
            batches = {str(k): one.state_dict() for k, one in enumerate(self._batches)}
        return _told(self._empty) | {"size": self.size, "batches": batches}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what `state_dict` gave, in place of what is here.

        Raises
        ------
        ValueError
            If it was given by a window of another size or metric, or is damaged; nothing is changed then.
        """
        size, batches = _parts(state, "size", "batches")
        _check_like(self._empty, state, "size", size, self.size)
        found = [_loaded(self._empty, one) for one in _parts(batches, *map(str, range(len(batches))))]
        with self._lock:
            self._batches = deque(found, self.size)

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Self:
        """The window whose `state_dict` this is; of a metric of your own, make a window and load the state there."""
        made = cls(_metric_of(state), *_parts(state, "size"))
        made.load_state_dict(state)
        return made

    def __repr__(self) -> str:
        total, batches = self._copy()
        return f"<Windowed: {batches} of {self.size} batches: {total!r}>"


class Decayed(_Recent):
    """The mean of a metric in which older batches weigh less and less.

    Parameters
    ----------
    metric : KLDivergence, JensenShannonDivergence or CrossEntropy
        Which metric, with which options; it stays as it is.
    half_life : float
        After how many further updates a batch weighs half.

    Attributes
    ----------
    weight : float
        What the finite rows so far weigh now.
    mean, std : float
        Of the finite rows. ``std`` divides by the weight.
    not_finite : int
        Rows that were infinite or NaN.

    Raises
    ------
    TypeError
        If `metric` is something else.
    ValueError
        If `half_life` is not positive, or the metric's reduction is not "mean".

    Notes
    -----
    Fading weights are no integers: the result depends on the order of updates, as it should, and two of these cannot
    be merged. Formula: T. Finch, "Incremental calculation of weighted mean and variance", 2009, section 9, with the
    weights of whole batches.

    Examples
    --------
    >>> import klnumba as kl
    >>> recent = kl.metrics.Decayed(kl.KLDivergence(base=2), half_life=1)
    >>> for q in ([1, 1], [1, 3]):
    ...     recent.update([[1, 1]], [q])
    >>> print(round(recent.compute(), 4))
    0.1383
    """

    def __init__(self, metric: RowMetric, half_life: float) -> None:
        if not 0.0 < real(half_life, "half_life") < math.inf:
            raise ValueError(f"half_life: a positive number of updates, not {half_life!r}")
        self._empty = _empty_twin(metric)
        if self._empty.reduction != "mean":
            raise ValueError(f"metric: its reduction must be 'mean', not {self._empty.reduction!r}")
        self.half_life = float(half_life)
        self._fade = 2.0 ** (-1.0 / self.half_life)
        self._lock = Turns()
        self.reset()

    def reset(self) -> None:
        """Forget all rows."""
        with self._lock:
            self.weight, self.mean, self._variance = 0.0, math.nan, 0.0
            self.not_finite = 0
            self._limit = 0.0  # what infinite and NaN rows have made of the mean of all rows

    def update(self, p: Any, q: Any, weights: Any = None, where: Any = None) -> None:
        """Take in a batch, as `KLDivergence.update` does."""
        batch = _empty_twin(self._empty)
        batch.update(p, q, weights, where)
        found, moments = batch.summary(), batch.statistics.moments()
        with self._lock, uninterrupted():
            self.weight *= self._fade
            if found.weight:
                self._join(*moments)
            lost = found.inf + found.nan
            if lost:
                self.not_finite += lost
                self._limit += found.mean

    def _join(self, weight: float, mean: float, spread: float) -> None:
        total = self.weight + weight
        share = weight / total
        before = self.mean if self.weight else mean
        apart = mean - before
        self._variance = (1.0 - share) * (self._variance + share * apart * apart) + share * spread
        self.mean = before + share * apart
        self.weight = total

    @property
    def std(self) -> float:
        return math.sqrt(self._variance) if self.weight else math.nan

    def compute(self) -> float:
        """The mean over all rows: infinite or NaN once a row was."""
        with self._lock:
            return self._limit if self.not_finite else self.mean

    def state_dict(self) -> dict[str, Any]:
        """All that is kept: a few numbers, and the state of a metric without rows."""
        with self._lock:
            found = {name: getattr(self, kept) for name, kept in _FADING.items()}
        return _told(self._empty) | {"half_life": self.half_life} | found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Put back what `state_dict` gave, in place of what is here.

        Raises
        ------
        TypeError, ValueError
            If it was given by one of another half-life or metric, or is damaged; nothing is changed then.
        """
        half_life, *found = _parts(state, "half_life", *_FADING)
        _check_like(self._empty, state, "half_life", half_life, self.half_life)
        for name, value in zip(_FADING, found, strict=True):
            real(value, f"state: {name}")
        with self._lock, uninterrupted():
            for kept, value in zip(_FADING.values(), found, strict=True):
                setattr(self, kept, value)

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Self:
        """What had this `state_dict`; of a metric of your own, make one and load the state there."""
        made = cls(_metric_of(state), *_parts(state, "half_life"))
        made.load_state_dict(state)
        return made

    def __repr__(self) -> str:
        return f"<Decayed: mean {self.compute():.6g}, weight {self.weight:.6g}>"
