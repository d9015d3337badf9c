"""A histogram as a density: level in each bin, with gaps where bins are empty.

Against another density it is integrated; of two histograms the divergence is a sum over the bins between all edges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from klnumba.distributions.charts import EPSILON, LEAST, MOST, Result, spread
from klnumba.distributions.distribution import Distribution, scipy_arguments
from klnumba.distributions.frozen import Frozen
from klnumba.distributions.places import Draws
from klnumba.divergence import kl_divergence, rel_entr

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Steps:
    """What the bins of a histogram hold, not normalised, as it was given: densities, or counts."""

    edges: Array
    held: Array
    density: bool
    coarse: float = 0.0  # how far an edge may be from where it ought to be

    def placed(self, loc: float, scale: float) -> Steps:
        """At a location, and stretched."""
        with np.errstate(over="ignore"):
            stretched = scale * self.edges
        coarse = EPSILON * max(abs(loc), float(np.abs(stretched).max()))
        _check_edges(loc + stretched, f", at loc {loc} and scale {scale},")
        return Steps(loc + stretched, self.held, self.density, coarse)

    def over(self, grid: Array) -> tuple[Array, Array]:
        """Of each bin of a finer grid: what its own bin holds, and how much of that is in it, a factor."""
        at = np.searchsorted(self.edges, grid[:-1], "right") - 1
        inside = (at >= 0) & (at < len(self.held))
        at = np.where(inside, at, 0)
        units = 1.0 if self.density else np.diff(self.edges)[at]
        return np.where(inside, self.held[at], 0.0), np.where(inside, np.diff(grid) / units, 1.0)


def steps(one: Distribution, other: Distribution) -> Steps | None:
    """Those of the first of two frozen histograms; None where one of the two is of another family."""
    found, theirs = _histogram(one), _histogram(other)
    if found is None or theirs is None:
        return None
    place = _place(found)
    read = _read(found.dist)
    # A location and a scale that both have would only round the edges: a divergence does not see them.
    return read if place == scipy_arguments(theirs)[1:] else read.placed(*place)


def _histogram(one: Distribution) -> Any:
    """SciPy's, frozen; None of another distribution."""
    frozen = one.to_scipy() if isinstance(one, Frozen) else None
    return frozen if frozen is not None and isinstance(frozen.dist, stats.rv_histogram) else None


def _place(frozen: Any) -> tuple[float, float]:
    _, loc, scale = scipy_arguments(frozen)
    if not (math.isfinite(loc) and 0.0 < scale < math.inf):
        place = f"loc and scale of the histogram are {loc} and {scale}"
        raise ValueError(f"{place}; they must be finite, and the scale above 0")
    return float(loc), float(scale)


def _read(dist: Any) -> Steps:
    """From what SciPy was given: what it makes of that is rounded."""
    held, edges = (np.asarray(x, np.float64) for x in dist._histogram)
    _check_edges(edges)
    bad = np.flatnonzero(~((held >= 0.0) & np.isfinite(held)))
    if bad.size:
        found = f"bin {bad[0]} of the histogram holds {held[bad[0]]}"
        raise ValueError(f"{found}; what bins hold must be finite and at least 0")
    if not held.any():
        raise ValueError("the histogram is empty; one bin at least must hold more than 0")
    widths = np.diff(edges)
    density = not np.allclose(widths, widths[0]) if dist._density is None else dist._density  # as SciPy reads it
    return Steps(edges, held, bool(density))


def _check_edges(edges: Array, where: str = "") -> None:
    with np.errstate(all="ignore"):
        widths = np.diff(edges)
    bad = np.flatnonzero(~((widths > 0.0) & np.isfinite(widths)))
    if bad.size:
        found = f"bin {bad[0]} of the histogram{where} is from {edges[bad[0]]} to {edges[bad[0] + 1]}"
        raise ValueError(f"{found}; its edges must be finite and increase")


def between(p: Steps, q: Steps) -> Result:
    """KL of two histograms, a sum over the bins between the edges of both, and what rounding may do to it."""
    grid = np.union1d(p.edges, q.edges)
    (held_p, parts_p), (held_q, parts_q) = p.over(grid), q.over(grid)
    if np.any((held_p > 0.0) & (held_q == 0.0)):
        return math.inf, 0.0
    masses_p, masses_q = held_p * parts_p, held_q * parts_q
    value = float(kl_divergence(masses_p, masses_q))
    coarse = max(p.coarse, q.coarse)
    if coarse == 0.0 and np.all(parts_p == 1.0) and np.all(parts_q == 1.0):  # what was given, as it is
        return value, 4.0 * EPSILON * value
    return value, 8.0 * EPSILON * spread(value) + _moved(masses_p, masses_q, coarse / np.diff(grid))


def _moved(p: Array, q: Array, parts: Array) -> float:
    """What it may do that edges are not in place, each by such a part of the bins beside it."""
    p, q = p / p.sum(), q / q.sum()
    return 4.0 * math.fsum((np.abs(rel_entr(p, q)) + np.abs(p - q)) * parts)


class Bins:
    """One of SciPy's, frozen; every edge of a bin that is not empty is an end of its support."""

    gapless = True  # from end to end of each

    def __init__(self, frozen: Any) -> None:
        loc, scale = _place(frozen)
        edges = _read(frozen.dist).placed(loc, scale).edges
        heights = np.asarray(frozen.dist._hpdf[1:-1], np.float64) / scale
        masses = heights * np.diff(edges)
        self.edges, self.masses = edges, masses / masses.sum()
        with np.errstate(divide="ignore"):
            self.heights = np.concatenate([[-math.inf], np.log(heights), [-math.inf]])
        self.ends = [(float(edges[i]), float(edges[i + 1])) for i in np.flatnonzero(masses > 0.0)]
        self.frozen = frozen

    def logs(self, origin: float, sign: float, t: Array) -> Array:
        """The logarithm of the density of t at origin + sign*exp(t), which for small t is on its side of an edge."""
        with np.errstate(all="ignore"):
            x = origin + sign * np.exp(t)
        return np.asarray(self.heights[np.searchsorted(self.edges, x, "right" if sign > 0.0 else "left")] + t)

    def reach(self, origin: float, sign: float) -> tuple[float, float]:
        """Where exp(t) is a number."""
        return LEAST, MOST

    def logpdf(self, x: Array) -> Array:
        """The logarithm of the density."""
        return np.asarray(self.heights[np.searchsorted(self.edges, x, "right")])

    def at(self, origin: Array, offset: Array) -> Array:
        """The logarithm of the density at origin + offset."""
        return self.logpdf(origin + offset)

    def marks(self) -> list[float]:
        """None but the ends."""
        return []

    def middles(self) -> list[float]:
        """None but the ends."""
        return []

    def before(self, x: float) -> float:
        """The mass below."""
        return self.between(self.edges[0], x)

    def after(self, x: float) -> float:
        """The mass above."""
        return self.between(x, self.edges[-1])

    def between(self, a: float, b: float) -> float:
        """The mass from a to b."""
        inside = np.clip(self.edges, a, max(a, b))
        return math.fsum(np.diff(inside) / np.diff(self.edges) * self.masses)

    def rvs(self, size: int, rng: np.random.Generator) -> Draws:
        """So many draws."""
        return Draws.around(0.0, self.frozen.rvs(size=size, random_state=rng))
