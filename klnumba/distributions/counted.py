"""Masses over the integers, as a sum wants them, whatever they come from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from klnumba.distributions.categorical import Categorical
from klnumba.distributions.charts import EPSILON
from klnumba.distributions.count_logs import log_mass
from klnumba.distributions.delta import Delta
from klnumba.distributions.distribution import Distribution, scipy_arguments
from klnumba.distributions.mixture import Mixture

Array = np.ndarray[Any, Any]

LARGEST = 2**63 - 1  # of NumPy's integers; what is larger a generator cuts to it
OWN = 64.0 * EPSILON  # how far our own logarithms may be off: those below -30 hardly count


def of_terms(last: float) -> float:
    """How far logarithms may be off that are sums of terms as large as last*log(last)."""
    return 4.0 * EPSILON * (abs(last) + 1.0) * math.log(abs(last) + 2.0)


class Single:
    """A distribution that is a frozen one of SciPy's kind."""

    def __init__(self, one: Distribution) -> None:
        self.frozen: Any = one.to_scipy()
        self.own = log_mass(self.frozen, one)
        self.ends = tuple(float(x) for x in self.frozen.support())

    def log(self, k: Any) -> Array:
        """The logarithm of the mass at k."""
        return np.asarray((self.own or self.frozen.logpmf)(k))

    def rounding(self, last: float) -> float:
        """How far the logarithms of the masses up to `last` may be off."""
        return of_terms(last) if self.own is None else OWN

    def until(self, k: float) -> float:
        """The mass of all integers to k."""
        return float(self.frozen.cdf(k))

    def after(self, k: float) -> float:
        """The mass of all integers above k."""
        return float(self.frozen.sf(k))

    def quantiles(self, low: float, high: float) -> tuple[float, float, float]:
        """Below which there is the mass `low`, the middle, and above which there is `high`."""
        return float(self.frozen.ppf(low)), float(self.frozen.median()), float(self.frozen.isf(high))

    def rvs(self, size: int, rng: np.random.Generator) -> Array:
        """So many draws. NumPy's generators take a count as an integer alone, and SciPy hands on what it was given."""
        shapes, loc, _ = scipy_arguments(self.frozen)
        draws = np.asarray(self.frozen.dist.rvs(*map(_whole, shapes), size=size, random_state=rng))
        if np.any(draws == LARGEST):
            raise ValueError("a draw is beyond the largest integer of NumPy")
        return np.asarray(draws + _whole(loc))


def _whole(x: Any) -> Any:
    """As an integer, where it is one."""
    number = float(x)
    return int(number) if number == math.floor(number) and abs(number) < LARGEST else x


class Listed:
    """Masses of the integers from `first` on."""

    def __init__(self, logs: Array, first: int = 0) -> None:
        self.logs, self.first = logs, first
        self.ends = (float(first), float(first + len(logs) - 1))

    def log(self, k: Any) -> Array:
        """The logarithm of the mass at k."""
        at = np.asarray(k) - self.first
        inside = (at >= 0) & (at < len(self.logs)) & (at == np.floor(at))
        return np.where(inside, self.logs[np.where(inside, at, 0).astype(np.int64)], -math.inf)

    def rounding(self, last: float) -> float:
        """How far they may be off."""
        return of_terms(last)

    def until(self, k: float) -> float:
        """The mass of all integers to k."""
        return float(np.exp(self.logs[: max(int(k) - self.first + 1, 0)]).sum())

    def after(self, k: float) -> float:
        """The mass of all integers above k."""
        return float(np.exp(self.logs[max(int(k) - self.first + 1, 0) :]).sum())

    def quantiles(self, low: float, high: float) -> tuple[float, float, float]:
        """All of them."""
        return self.ends[0], self.ends[0], self.ends[1]

    def rvs(self, size: int, rng: np.random.Generator) -> Array:
        """So many draws."""
        masses = np.exp(self.logs)
        return np.asarray(self.first + rng.choice(len(masses), size, p=masses / masses.sum()))


class Mixed:
    """Several of them with weights."""

    def __init__(self, weights: Array, parts: list[Any]) -> None:
        self.weights, self.parts = weights / weights.sum(), parts
        self.ends = (min(part.ends[0] for part in parts), max(part.ends[1] for part in parts))

    def log(self, k: Any) -> Array:
        """The logarithm of the mass at k."""
        logs = np.stack([part.log(k) for part in self.parts])
        with np.errstate(all="ignore"):
            weights = np.log(self.weights).reshape(-1, *(1,) * (logs.ndim - 1))
            return np.asarray(special.logsumexp(logs + weights, axis=0))

    def rounding(self, last: float) -> float:
        """How far the logarithms of the masses up to `last` may be off."""
        return OWN + max(float(part.rounding(last)) for part in self.parts)

    def until(self, k: float) -> float:
        """The mass of all integers to k."""
        return math.fsum(float(w) * part.until(k) for w, part in zip(self.weights, self.parts, strict=True))

    def after(self, k: float) -> float:
        """The mass of all integers above k."""
        return math.fsum(float(w) * part.after(k) for w, part in zip(self.weights, self.parts, strict=True))

    def quantiles(self, low: float, high: float) -> tuple[float, float, float]:
        """The outermost of the parts."""
        columns = list(zip(*(part.quantiles(low, high) for part in self.parts), strict=True))
        return min(columns[0]), min(columns[1]), max(columns[2])

    def rvs(self, size: int, rng: np.random.Generator) -> Array:
        """So many draws, those of one part after those of another."""
        counts = rng.multinomial(size, self.weights)
        return np.concatenate([part.rvs(int(n), rng) for part, n in zip(self.parts, counts, strict=True)])


def masses(one: Distribution) -> Any:
    """Those of a single discrete distribution over numbers."""
    if isinstance(one, Mixture):
        parts = one.component_distribution
        weights = np.asarray(one.mixture_distribution.probs, np.float64)
        return Mixed(weights[weights > 0.0], [masses(parts.one((int(i),))) for i in np.flatnonzero(weights)])
    if isinstance(one, Categorical):
        return Listed(np.asarray(one.logits, np.float64))
    if isinstance(one, Delta):
        if float(one.v) != math.floor(float(one.v)):
            raise ValueError(f"Delta: v must be an integer for a sum, not {float(one.v)!r}")
        return Listed(np.zeros(1), int(one.v))
    return Single(one)


def on_integers(one: Distribution) -> Any:
    """The masses of one that has them on integers alone, which are what a sum goes over."""
    found = masses(one)
    if isinstance(found, Single):
        listed = getattr(found.frozen.dist, "xk", 0.0)  # the values of SciPy's that are given as a list
        draws = np.atleast_1d(np.add(listed, scipy_arguments(found.frozen)[1]))
        off = draws[draws != np.floor(draws)]
        if off.size:
            raise ValueError(f"{one!r}: its draws must be integers for a sum, but {off[0]} is none")
    return found


def has_others(f: Any, g: Any) -> bool:
    """Whether p has mass on integers before or after those of q; on the nearest, since the whole may underflow."""
    before, after = g.ends[0] - 1.0, g.ends[1] + 1.0
    left = -math.inf < before >= f.ends[0] and float(f.log(before)) > -math.inf
    return bool(left or (math.inf > after <= f.ends[1] and float(f.log(after)) > -math.inf))
