"""A histogram as a density: level in each bin, with gaps where bins are empty."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.charts import LEAST, MOST
from klnumba.distributions.distribution import scipy_arguments

Array = np.ndarray[Any, Any]


class Bins:
    """One of SciPy's, frozen; every edge of a bin that is not empty is an end of its support."""

    gapless = True  # from end to end of each

    def __init__(self, frozen: Any) -> None:
        _, loc, scale = scipy_arguments(frozen)
        edges = float(loc) + float(scale) * np.asarray(frozen.dist._hbins, np.float64)
        heights = np.asarray(frozen.dist._hpdf[1:-1], np.float64) / float(scale)
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

    def rvs(self, size: int, rng: np.random.Generator) -> Array:
        """So many draws."""
        return np.asarray(self.frozen.rvs(size=size, random_state=rng))
