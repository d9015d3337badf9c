"""Densities over numbers, as the integral of a divergence wants them, whatever they come from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from klnumba.distributions import densities
from klnumba.distributions.changes import Change
from klnumba.distributions.distribution import Distribution, scipy_arguments
from klnumba.distributions.mixture import Mixture
from klnumba.distributions.transformed_distribution import TransformedDistribution

Array = np.ndarray[Any, Any]

# Quantiles at which an integral is cut, from both ends.
QUANTILES = np.array([1e-300, 1e-200, 1e-100, 1e-50, 1e-30, 1e-20, 1e-14, 1e-8, 1e-4, 1e-2, 0.1, 0.3, 0.5])


class Single:
    """A frozen distribution of SciPy's kind."""

    def __init__(self, frozen: Any) -> None:
        self.frozen = densities.exact(frozen)
        shapes, loc, scale = scipy_arguments(self.frozen)
        self.shapes = tuple(np.asarray(x, np.float64)[()] for x in shapes)
        self.loc, self.scale = float(loc), float(scale)
        self.mirrored = densities.mirrored(self.frozen.dist, self.shapes)
        low, high = self.frozen.support()
        self.ends = [(float(low), float(high))]

    def logs(self, origin: float, sign: float, t: Array) -> Array:
        """The logarithm of the density at origin + sign*exp(t)."""
        low, high = self.ends[0]
        if (origin <= low and sign < 0.0) or (origin >= high and sign > 0.0):
            return np.full(np.shape(t), -math.inf)
        with np.errstate(all="ignore"):
            if self.mirrored is not None and origin == high and sign < 0.0:
                return np.asarray(self.mirrored.logpdf(np.exp(t) / self.scale)) - math.log(self.scale)
            z = ((origin - self.loc) + sign * np.exp(t)) / self.scale
            return np.asarray(self.frozen.dist.logpdf(z, *self.shapes)) - math.log(self.scale)

    def logpdf(self, x: Array) -> Array:
        """The logarithm of the density."""
        return np.asarray(self.frozen.logpdf(x))

    def marks(self) -> list[float]:
        """Places between which the density is smooth enough for one integral each."""
        with np.errstate(all="ignore"):
            found = np.concatenate([self.frozen.ppf(QUANTILES), self.frozen.isf(QUANTILES)])
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

    def rvs(self, size: int, rng: np.random.Generator) -> Array:
        """So many draws."""
        return np.asarray(self.frozen.rvs(size=size, random_state=rng))


class Mixed:
    """Several densities with weights."""

    def __init__(self, weights: Array, parts: list[Any]) -> None:
        self.weights = weights / weights.sum()
        self.parts = parts
        self.ends = [end for part in parts for end in part.ends]

    def _sum(self, logs: list[Array]) -> Array:
        with np.errstate(all="ignore"):
            shifted = np.stack([np.broadcast_to(x, np.shape(logs[0])) for x in logs])
            weights = np.log(self.weights).reshape(-1, *(1,) * (shifted.ndim - 1))
            return np.asarray(special.logsumexp(shifted + weights, axis=0))

    def logs(self, origin: float, sign: float, t: Array) -> Array:
        """The logarithm of the density at origin + sign*exp(t)."""
        return self._sum([part.logs(origin, sign, t) for part in self.parts])

    def logpdf(self, x: Array) -> Array:
        """The logarithm of the density."""
        return self._sum([part.logpdf(x) for part in self.parts])

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

    def rvs(self, size: int, rng: np.random.Generator) -> Array:
        """So many draws, those of one part after those of another."""
        counts = rng.multinomial(size, self.weights)
        draws = [part.rvs(int(n), rng) for part, n in zip(self.parts, counts, strict=True)]
        return np.concatenate(draws)


class Changed:
    """What a function, increasing or decreasing, makes of a draw from a density."""

    def __init__(self, base: Any, change: Change) -> None:
        self.base, self.change = base, change
        self.ends = [(min(at), max(at)) for at in ((float(change(a)), float(change(b))) for a, b in base.ends)]

    def logpdf(self, x: Array) -> Array:
        """The logarithm of the density."""
        return self._from(self.change.inverse(x), np.asarray(x))

    def logs(self, origin: float, sign: float, t: Array) -> Array:
        """The logarithm of the density at origin + sign*exp(t)."""
        with np.errstate(all="ignore"):
            offset = sign * np.exp(t)
            return self._from(self.change.inverse_from(origin, offset), origin + offset)

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
        """Those of the base, where they come to."""
        return [float(x) for x in self.change(self.base.middles()) if math.isfinite(x)]

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

    def rvs(self, size: int, rng: np.random.Generator) -> Array:
        """So many draws."""
        return self.change(self.base.rvs(size, rng))


def density(one: Distribution) -> Any:
    """That of a single continuous distribution over numbers."""
    if isinstance(one, Mixture):
        parts = one.component_distribution
        weights = np.asarray(one.mixture_distribution.probs, np.float64)
        return Mixed(weights[weights > 0.0], [density(parts.one((int(i),))) for i in np.flatnonzero(weights)])
    if isinstance(one, TransformedDistribution):
        found = density(one.base_distribution)
        for transform in one.transforms:
            found = Changed(found, Change(transform, min(low for low, _ in found.ends)))
        return found
    return Single(densities.frozen(one))


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
    """Whether a density has mass from a to b: also where that underflows, but the logarithm at an end does not."""
    return f.between(a, b) > 0.0 or bool(np.any(f.logpdf(np.nextafter([a, b], [b, a])) > -math.inf))
