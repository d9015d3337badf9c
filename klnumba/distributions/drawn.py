"""What can be drawn from, and the logarithm of its density at the draws: numbers, vectors, matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats

from klnumba.distributions.continuous import density, escapes
from klnumba.distributions.counted import has_others, masses
from klnumba.distributions.dirichlet import Dirichlet
from klnumba.distributions.distribution import Distribution
from klnumba.distributions.independent import Independent
from klnumba.distributions.inverse_wishart import InverseWishart
from klnumba.distributions.joint import Joint
from klnumba.distributions.mixture import Mixture
from klnumba.distributions.multinomial import Multinomial
from klnumba.distributions.one_hot_categorical import OneHotCategorical
from klnumba.distributions.von_mises_fisher import VonMisesFisher
from klnumba.distributions.wishart import Wishart

Array = np.ndarray[Any, Any]


class Drawn:
    """Draws along the first axis, and the logarithm of the density of each."""

    def __init__(
        self,
        rvs: Callable[[int, np.random.Generator], Array],
        log: Callable[[Array], Array],
        discrete: bool,
        numbers: Any = None,
    ) -> None:
        self.rvs, self.log, self.discrete = rvs, log, discrete
        self.numbers = numbers  # the density or the masses, of draws that are numbers

    def leaves(self, other: Drawn) -> bool:
        """Whether it has mass where the other has none; known of numbers."""
        if self.numbers is None or other.numbers is None:
            return False
        return has_others(self.numbers, other.numbers) if self.discrete else escapes(self.numbers, other.numbers)


def drawable(one: Distribution) -> Drawn:
    """A single distribution of any event shape."""
    if isinstance(one, Joint):
        raise NotImplementedError("a draw of Joint has blocks of several shapes: take its distributions one by one")
    if not one.event_shape:
        return _numbers(one)
    if isinstance(one, Independent):
        return _independent(one)
    if isinstance(one, Mixture):
        return _mixture(one)
    return _vectors(one)


def _numbers(one: Distribution) -> Drawn:
    discrete = bool(one.support.discrete)
    made = masses(one) if discrete else density(one)
    return Drawn(made.rvs, made.log if discrete else made.logpdf, discrete, made)


def _independent(one: Independent) -> Drawn:
    base = one.base_distribution
    shape = base.batch_shape
    parts = [drawable(base.one(at)) for at in np.ndindex(shape)]
    size = len(shape)

    def rvs(count: int, rng: np.random.Generator) -> Array:
        draws = np.stack([part.rvs(count, rng) for part in parts], 1)
        return draws.reshape(count, *shape, *draws.shape[2:])

    def log(x: Array) -> Array:
        flat = x.reshape(len(x), len(parts), *x.shape[1 + size :])
        return np.asarray(sum(part.log(flat[:, i]) for i, part in enumerate(parts)))

    return Drawn(rvs, log, all(part.discrete for part in parts))


def _mixture(one: Mixture) -> Drawn:
    weights = np.asarray(one.mixture_distribution.probs, np.float64)
    kept = np.flatnonzero(weights)
    weights = weights[kept] / weights[kept].sum()
    parts = [drawable(one.component_distribution.one((int(i),))) for i in kept]

    def rvs(count: int, rng: np.random.Generator) -> Array:
        counts = rng.multinomial(count, weights)
        return np.concatenate([part.rvs(int(n), rng) for part, n in zip(parts, counts, strict=True)])

    def log(x: Array) -> Array:
        return np.asarray(special.logsumexp(np.stack([part.log(x) for part in parts], 1), axis=1, b=weights))

    return Drawn(rvs, log, parts[0].discrete)


def _vectors(one: Distribution) -> Drawn:
    """A family over vectors or matrices that SciPy has."""
    shape, discrete = one.event_shape, bool(one.support.discrete)
    if isinstance(one, OneHotCategorical):
        one = Multinomial(1, one.probs)
    even = isinstance(one, VonMisesFisher) and float(one.concentration) == 0.0
    frozen = stats.uniform_direction(int(shape[0])) if even else one.to_scipy()

    def rvs(count: int, rng: np.random.Generator) -> Array:
        return np.asarray(frozen.rvs(size=count, random_state=rng)).reshape(count, *shape)

    def log(x: Array) -> Array:
        if even:
            return np.full(len(x), -float(one.entropy()))
        turned = np.moveaxis(x, 0, -1) if _draws_last(one) else x
        found = getattr(frozen, "logpdf", None) or frozen.logpmf
        return np.asarray(found(turned)).reshape(len(x))

    return Drawn(rvs, log, discrete)


def _draws_last(one: Distribution) -> bool:
    """Whether SciPy takes the draws along the last axis."""
    return isinstance(one, Dirichlet | Wishart | InverseWishart)
