"""Frozen distributions of SciPy that have no counterpart here, for the methods that need a density only."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Self

import numpy as np

from klnumba.distributions import foreign
from klnumba.distributions.distribution import Distribution, Support, scipy_arguments
from klnumba.distributions.von_mises import VonMises


class Frozen(Distribution):
    """A frozen distribution over numbers, as it is."""

    def __init__(self, frozen: Any) -> None:
        shapes, loc, scale = scipy_arguments(frozen)
        given = (*shapes, loc) if scale is None else (*shapes, loc, scale)
        numbers = tuple(np.asarray(x, np.float64) for x in given)
        shape = np.broadcast_shapes(*(x.shape for x in numbers))
        self.__dict__.update(_given={}, _frozen=frozen, _numbers_of=numbers, batch_shape=shape, event_shape=())
        self.__dict__["circular"] = getattr(frozen.dist, "name", "") == VonMises.scipy_name

    def __repr__(self) -> str:
        dist = self.__dict__["_frozen"].dist
        kind, name = type(dist), getattr(dist, "name", None)
        whole = sys.modules["scipy.stats"]  # whoever has such an object has loaded it
        if isinstance(dist, whole.rv_histogram):
            low, high = (np.asarray(x, np.float64)[()] for x in self.__dict__["_frozen"].support())
            count = len(dist._hbins) - 1
            return f"{kind.__name__} of {count} bin{'s' * (count > 1)} from {low} to {high}"
        if kind is type(getattr(whole, name or "", None)):
            title = f"scipy.stats.{name}"
        else:  # a class with a name of its own
            title = f"scipy.stats.{kind.__name__}" if getattr(whole, kind.__name__, None) is kind else kind.__name__
        return f"{title}({', '.join(str(x[()]) for x in self.__dict__['_numbers_of'])})"

    def one(self, at: tuple[int, ...], shape: tuple[int, ...] | None = None) -> Self:
        """The distribution at one place of the batch, broadcast to `shape`."""
        wide = self.batch_shape if shape is None else shape
        numbers = [float(np.broadcast_to(x, wide)[at]) for x in self.__dict__["_numbers_of"]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a histogram made anew warns as it did when it was given
            return type(self)(self.__dict__["_frozen"].dist(*numbers))

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64."""
        return np.dtype(np.float64)

    @property
    def support(self) -> Support:
        """Where the distribution has mass."""
        low, high = self.__dict__["_frozen"].support()
        return Support(low, high, discrete=not hasattr(self.__dict__["_frozen"].dist, "pdf"))

    def to_scipy(self) -> Any:
        """The frozen distribution."""
        return self.__dict__["_frozen"]


def same(p: Distribution, q: Distribution) -> bool:
    """Whether two frozen ones are of one family of SciPy's own, with equal numbers."""
    if not (isinstance(p, Frozen) and isinstance(q, Frozen)):
        return False
    (kind, numbers), (other, others) = ((x.__dict__["_frozen"].dist, x.__dict__["_numbers_of"]) for x in (p, q))
    own = getattr(sys.modules["scipy.stats"], getattr(kind, "name", None) or "", None)
    if not type(own) is type(kind) is type(other):
        return False  # others may keep more than their numbers
    low, high = p.support[:2]
    if not low < high:  # shapes that SciPy refuses
        return False
    return len(numbers) == len(others) and all(map(np.array_equal, numbers, others))


def pair(p: Any, q: Any) -> tuple[Distribution, Distribution]:
    """Both as ours, or as they are."""
    return _one(p, "p"), _one(q, "q")


def _one(value: Any, name: str) -> Distribution:
    try:
        return foreign.ours(value, name)
    except (TypeError, ValueError):
        if not hasattr(value, "dist") or not hasattr(value.dist, "rvs"):
            raise
        return Frozen(value)
