"""The density of one of SciPy's distributions, also where a place is no number but its logarithm is one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions import densities
from klnumba.distributions.charts import FARTHEST, LEAST, MOST
from klnumba.distributions.distribution import scipy_arguments
from klnumba.distributions.log_densities import Function, of_large, of_small
from klnumba.distributions.log_draws import FROM_0, FROM_0_TO_1
from klnumba.distributions.places import Draws

Array = np.ndarray[Any, Any]
Known = tuple[float, Function] | None  # from where on, and what

# Quantiles at which an integral is cut, from both ends.
QUANTILES = np.array([1e-300, 1e-200, 1e-100, 1e-50, 1e-30, 1e-20, 1e-14, 1e-8, 1e-4, 1e-2, 0.1, 0.3, 0.5])
ROOM = 0.4  # of the range of logarithms: squares of so many scales are numbers, and some times these


class Single:
    """A frozen distribution of SciPy's kind; a gapless one has a density above 0 all the way from end to end."""

    def __init__(self, frozen: Any, *, gapless: bool) -> None:
        self.frozen, self.gapless = densities.exact(frozen), gapless
        shapes, loc, scale = scipy_arguments(self.frozen)
        self.shapes = tuple(np.asarray(x, np.float64)[()] for x in shapes)
        self.loc, self.scale = float(loc), float(scale)
        if not 0.0 < self.scale < math.inf:
            raise NotImplementedError("its scale in the terms of SciPy is beyond the range of numbers")
        self.mirrored = densities.mirrored(self.frozen.dist, self.shapes)
        low, high = self.frozen.support()
        self.ends = [(float(low), float(high))]
        self.known: dict[tuple[float, float], tuple[Known, Known]] = {}

    def logs(self, origin: float, sign: float, t: Array) -> Array:
        """The logarithm of the density of t at origin + sign*exp(t)."""
        with np.errstate(all="ignore"):
            found = self._within(origin, sign, t) + t
            for known, is_there in zip(self._beyond(origin, sign), (np.less, np.greater), strict=True):
                if known is not None and np.any(is_there(t, known[0])):
                    found = np.where(is_there(t, known[0]), known[1](t), found)
            return found

    def reach(self, origin: float, sign: float) -> tuple[float, float]:
        """The least and the largest t for which this is known."""
        with np.errstate(all="ignore"):
            below, above = self._beyond(origin, sign)
        return LEAST if below is None else -FARTHEST, MOST if above is None else FARTHEST

    def _within(self, origin: float, sign: float, t: Array) -> Array:
        """The logarithm of the density at origin + sign*exp(t), which is a number."""
        if self._is_outside(origin, sign):
            return np.full(np.shape(t), -math.inf)
        if self._is_mirrored(origin, sign):
            return np.asarray(self.mirrored.logpdf(np.exp(t) / self.scale)) - math.log(self.scale)
        return self._at(((origin - self.loc) + sign * np.exp(t)) / self.scale)

    def _at(self, z: Array) -> Array:
        """The logarithm of the density at loc + scale*z; NaN where SciPy raises an error, as it does of some."""
        try:
            return np.asarray(self.frozen.dist.logpdf(z, *self.shapes)) - math.log(self.scale)
        except OverflowError:
            if z.size < 2:
                return np.full(z.shape, math.nan)
            flat, half = z.reshape(-1), z.size // 2
            return np.concatenate([self._at(flat[:half]), self._at(flat[half:])]).reshape(z.shape)

    def _beyond(self, origin: float, sign: float) -> tuple[Known, Known]:
        """What `logs` is below a small t, and above a large one."""
        if (origin, sign) not in self.known:
            self.known[origin, sign] = self._below(origin, sign), self._above(origin, sign)
        return self.known[origin, sign]

    def _below(self, origin: float, sign: float) -> Known:
        """That of the logarithm where the origin is the end; elsewhere it falls like t, where the density is level."""
        found = None
        if self._is_mirrored(origin, sign):
            found = of_small(self.mirrored.dist, scipy_arguments(self.mirrored)[0], self.scale)
        elif origin == self.loc and sign > 0.0:
            found = of_small(self.frozen.dist, self.shapes, self.scale)
        if found is not None:
            return max(LEAST, ROOM * LEAST + math.log(self.scale)), found
        first, second = self._within(origin, sign, np.array([LEAST, LEAST + 3.0]))
        return (LEAST, lambda t: first + t) if first == second < math.inf else None

    def _above(self, origin: float, sign: float) -> Known:
        """As where the origin is the location, but for a step of log(x - loc)."""
        low, high = self.ends[0]
        start = min(MOST, ROOM * MOST + math.log(self.scale))
        if self._is_outside(origin, sign):
            return start, lambda t: np.full(np.shape(t), -math.inf)
        found = of_large(self.frozen.dist, self.shapes, self.scale, sign)
        if found is None or math.isfinite(high if sign > 0.0 else low):
            return None

        def above(t: Array) -> Array:
            step = np.log(np.abs(1.0 + sign * (origin - self.loc) * np.exp(-t)))
            return np.asarray(found(t + step) - step)

        return start, above

    def _is_outside(self, origin: float, sign: float) -> bool:
        low, high = self.ends[0]
        return (origin <= low and sign < 0.0) or (origin >= high and sign > 0.0)

    def _is_mirrored(self, origin: float, sign: float) -> bool:
        """Whether the distance from the upper end is known better than the place."""
        return self.mirrored is not None and origin == self.ends[0][1] and sign < 0.0

    def logpdf(self, x: Array) -> Array:
        """The logarithm of the density."""
        return np.asarray(self.frozen.logpdf(x))

    def at(self, origin: Array, offset: Array) -> Array:
        """The logarithm of the density at origin + offset."""
        found = self._at(((origin - self.loc) + offset) / self.scale)
        if self.mirrored is None:
            return found
        near = (origin == self.ends[0][1]) & np.signbit(offset)
        return np.where(near, self.mirrored.logpdf(-offset / self.scale) - math.log(self.scale), found)

    def marks(self) -> list[float]:
        """Places between which the density is smooth enough for one integral each."""
        with np.errstate(all="ignore"):
            found = np.concatenate([_quantiles(self.frozen.ppf), _quantiles(self.frozen.isf)])
        return [float(x) for x in found if math.isfinite(x)]

    def middles(self) -> list[float]:
        """Places with a neighbourhood of their own: a median, where a kink may be."""
        with np.errstate(all="ignore"):
            middle = float(self.frozen.median())
        return [middle] if math.isfinite(middle) else []

    def before(self, x: float) -> float:
        """The mass below."""
        return float(self.frozen.cdf(x))

    def after(self, x: float) -> float:
        """The mass above."""
        return float(self.frozen.sf(x))

    def between(self, a: float, b: float) -> float:
        """The mass from a to b; positive where there is any, though it may underflow."""
        return self.after(a) - self.after(b) if a > self.frozen.median() else self.before(b) - self.before(a)

    def rvs(self, size: int, rng: np.random.Generator) -> Draws:
        """So many draws, around the location, or, where that is known better, by logarithms from an end."""
        dist = self.frozen.dist
        if type(dist) in FROM_0:
            return Draws.by_logs(self.loc, 1.0, self.scale, FROM_0[type(dist)](rng, size, *self.shapes))
        if type(dist) in FROM_0_TO_1:
            low, high = FROM_0_TO_1[type(dist)](rng, size, *self.shapes)
            first = low <= high
            origin, sign = np.where(first, *self.ends[0]), np.where(first, 1.0, -1.0)
            return Draws.by_logs(origin, sign, self.scale, np.where(first, low, high))
        drawn = dist.rvs(*self.shapes, size=size, random_state=rng)
        return Draws.around(self.loc, self.scale * np.asarray(drawn, np.float64))


def _quantiles(of: Function) -> Array:
    """Those that SciPy finds; of an inverse Gaussian distribution some raise an error."""
    try:
        return np.asarray(of(QUANTILES))
    except OverflowError:
        return np.array([x for u in QUANTILES for x in _quantile(of, u)])


def _quantile(of: Function, u: float) -> list[float]:
    try:
        return [float(of(u))]
    except OverflowError:
        return []
