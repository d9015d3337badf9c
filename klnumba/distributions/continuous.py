"""Densities over numbers, as the integral of a divergence wants them, whatever they come from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special, stats

from klnumba.distributions import densities
from klnumba.distributions.bins import Bins
from klnumba.distributions.changes import Change
from klnumba.distributions.charts import LEAST, MOST
from klnumba.distributions.distribution import Distribution
from klnumba.distributions.mixture import Mixture
from klnumba.distributions.places import Draws
from klnumba.distributions.scipy_objects import families
from klnumba.distributions.single import Single
from klnumba.distributions.transformed_distribution import TransformedDistribution
from klnumba.distributions.transforms import AffineTransform

Array = np.ndarray[Any, Any]

ORDINARY = 900  # a binary exponent that leaves room to the ends of the range


class Mixed:
    """Several densities with weights."""

    def __init__(self, weights: Array, parts: list[Any]) -> None:
        self.weights = weights / weights.sum()
        self.parts = parts
        self.ends = [end for part in parts for end in part.ends]
        self.gapless = all(part.gapless for part in parts)

    def _sum(self, logs: list[Array]) -> Array:
        with np.errstate(all="ignore"):
            shifted = np.stack([np.broadcast_to(x, np.shape(logs[0])) for x in logs])
            weights = np.log(self.weights).reshape(-1, *(1,) * (shifted.ndim - 1))
            return np.asarray(special.logsumexp(shifted + weights, axis=0))

    def logs(self, origin: float, sign: float, t: Array) -> Array:
        """The logarithm of the density of t at origin + sign*exp(t)."""
        return self._sum([part.logs(origin, sign, t) for part in self.parts])

    def reach(self, origin: float, sign: float) -> tuple[float, float]:
        """What all parts know."""
        low, high = zip(*(part.reach(origin, sign) for part in self.parts), strict=True)
        return max(low), min(high)

    def logpdf(self, x: Array) -> Array:
        """The logarithm of the density."""
        return self._sum([part.logpdf(x) for part in self.parts])

    def at(self, origin: Array, offset: Array) -> Array:
        """The logarithm of the density at origin + offset."""
        return self._sum([part.at(origin, offset) for part in self.parts])

    def marks(self) -> list[float]:
        """Those of the parts."""
        return [x for part in self.parts for x in part.marks()]

    def middles(self) -> list[float]:
        """Those of the parts."""
        return [x for part in self.parts for x in part.middles()]

    def _mean(self, masses: list[float]) -> float:
        return math.fsum(float(w) * x for w, x in zip(self.weights, masses, strict=True))

    def before(self, x: float) -> float:
        """The mass below."""
        return self._mean([part.before(x) for part in self.parts])

    def after(self, x: float) -> float:
        """The mass above."""
        return self._mean([part.after(x) for part in self.parts])

    def between(self, a: float, b: float) -> float:
        """The mass from a to b."""
        return self._mean([part.between(a, b) for part in self.parts])

    def rvs(self, size: int, rng: np.random.Generator) -> Draws:
        """So many draws, those of one part after those of another."""
        counts = rng.multinomial(size, self.weights)
        return Draws.joined([part.rvs(int(n), rng) for part, n in zip(self.parts, counts, strict=True)])


class Changed:
    """What a function, increasing or decreasing, makes of a draw from a density."""

    def __init__(self, base: Any, change: Change) -> None:
        self.base, self.change, self.gapless = base, change, base.gapless
        self.ends = [(min(at), max(at)) for at in ((float(change(a)), float(change(b))) for a, b in base.ends)]

    def logpdf(self, x: Array) -> Array:
        """The logarithm of the density."""
        return self._from(self.change.inverse(x), np.asarray(x))

    def at(self, origin: Array, offset: Array) -> Array:
        """The logarithm of the density at origin + offset."""
        return self.logpdf(origin + offset)

    def logs(self, origin: float, sign: float, t: Array) -> Array:
        """The logarithm of the density of t at origin + sign*exp(t)."""
        with np.errstate(all="ignore"):
            offset = sign * np.exp(t)
            return self._from(self.change.inverse_from(origin, offset), origin + offset) + t

    def reach(self, origin: float, sign: float) -> tuple[float, float]:
        """Where exp(t) is a number."""
        return LEAST, MOST

    def _from(self, back: Array, x: Array) -> Array:
        inside = np.zeros(np.shape(x), bool)
        for low, high in self.ends:
            inside |= (x >= low) & (x <= high)
        with np.errstate(all="ignore"):
            return np.where(inside, self.base.logpdf(back) - self.change.log_slope(back), -math.inf)

    def marks(self) -> list[float]:
        """Those of the base, where they come to."""
        return [float(x) for x in self.change(self.base.marks()) if math.isfinite(x)]

    def middles(self) -> list[float]:
        """Those of the base, and kinks of the function, where they come to."""
        return [float(x) for x in self.change(self.base.middles() + self.change.kinks) if math.isfinite(x)]

    def before(self, x: float) -> float:
        """The mass below."""
        at = float(self.change.inverse(x))
        return float(self.base.after(at) if self.change.falling else self.base.before(at))

    def after(self, x: float) -> float:
        """The mass above."""
        at = float(self.change.inverse(x))
        return float(self.base.before(at) if self.change.falling else self.base.after(at))

    def between(self, a: float, b: float) -> float:
        """The mass from a to b."""
        low, high = sorted(float(self.change.inverse(x)) for x in (a, b))
        return float(self.base.between(low, high))

    def rvs(self, size: int, rng: np.random.Generator) -> Draws:
        """So many draws."""
        return Draws.around(0.0, self.change(self.base.rvs(size, rng).numbers()))


def density(one: Distribution, exponent: int = 0) -> Any:
    """That of a single continuous distribution over numbers, in a unit of 2**exponent."""
    if isinstance(one, Mixture):
        weights = np.asarray(one.mixture_distribution.probs, np.float64)
        return Mixed(weights[weights > 0.0], [density(part, exponent) for part in _parts(one)])
    if isinstance(one, TransformedDistribution):
        found = density(one.base_distribution)
        unit = [AffineTransform(0.0, math.ldexp(1.0, -exponent))] if exponent else []
        for transform in (*one.transforms, *unit):
            found = Changed(found, Change(transform, min(low for low, _ in found.ends)))
        return found
    found = densities.frozen(one, exponent)
    return Bins(found) if isinstance(found.dist, stats.rv_histogram) else Single(found, gapless=type(one) in families())


def _parts(one: Mixture) -> list[Distribution]:
    """Those with a weight."""
    at = np.flatnonzero(np.asarray(one.mixture_distribution.probs))
    return [one.component_distribution.one((int(i),)) for i in at]


def exponents(one: Distribution) -> list[int]:
    """The binary ones of all locations and scales."""
    if isinstance(one, Mixture):
        return [x for part in _parts(one) for x in exponents(part)]
    return [] if isinstance(one, TransformedDistribution) else densities.exponents(one)


def common_unit(found: list[int]) -> int:
    """The exponent of a unit in which none of these comes close to the ends of the range of numbers."""
    least, largest = min(found, default=0), max(found, default=0)
    unit = max(largest - ORDINARY, 0) or min(least + ORDINARY, 0)
    return unit if max(largest - unit, unit - least) <= ORDINARY else 0


def escapes(f: Any, g: Any) -> bool:
    """Whether p has mass where q has none: before, between or after the places where q has its mass."""
    places = sorted(g.ends)
    reach = -math.inf
    for low, high in [*places, (math.inf, math.inf)]:
        gaps = ((max(a, reach), min(b, low)) for a, b in f.ends)
        if any(a < b and _some(f, a, b) for a, b in gaps):
            return True
        reach = max(reach, high)
    return False


def _some(f: Any, a: float, b: float) -> bool:
    """Whether a density has mass from a to b, within its ends: also where that is below all numbers.

    A gapless one has, even where the logarithm of its density is no number. Of others that, at an end, may tell.
    """
    if f.gapless or f.between(a, b) > 0.0:
        return True
    return bool(np.any(f.logpdf(np.nextafter([a, b], [b, a])) > -math.inf))
