"""What can be drawn from, and the logarithm of its density at the draws: numbers, vectors, matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats

from klnumba.distributions import log_draws
from klnumba.distributions.continuous import density, escapes
from klnumba.distributions.count_logs import deviance, stirling_rest
from klnumba.distributions.counted import has_others, masses
from klnumba.distributions.directions import Directions
from klnumba.distributions.dirichlet import Dirichlet
from klnumba.distributions.distribution import Distribution
from klnumba.distributions.factor_draws import InverseWishartDraws, WishartDraws
from klnumba.distributions.independent import Independent
from klnumba.distributions.inverse_wishart import InverseWishart
from klnumba.distributions.joint import Joint
from klnumba.distributions.low_rank_multivariate_normal import LowRankMultivariateNormal
from klnumba.distributions.matrix_normal import MatrixNormal
from klnumba.distributions.mixture import Mixture
from klnumba.distributions.multinomial import Multinomial
from klnumba.distributions.multivariate_normal import MultivariateNormal
from klnumba.distributions.one_hot_categorical import OneHotCategorical
from klnumba.distributions.places import Draws, log_density
from klnumba.distributions.von_mises_fisher import VonMisesFisher
from klnumba.distributions.wishart import Wishart
from klnumba.duals.number import twofold

Array = np.ndarray[Any, Any]

NUMBERS = "numbers"
FAR = -700.0  # logarithms below are of shares that may be no numbers


class Drawn:
    """Draws along the first axis, and the logarithm of the density of each."""

    def __init__(
        self,
        rvs: Callable[[int, np.random.Generator], Draws],
        log: Callable[[Draws], Array],
        discrete: bool,
        numbers: Any = None,
        over: str = NUMBERS,
    ) -> None:
        self.rvs, self.log, self.discrete = rvs, log, discrete
        self.over = over  # what the densities are densities over
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
        return _counts(one) if one.support.discrete else _numbers(one)
    if isinstance(one, Independent):
        return _independent(one)
    if isinstance(one, Mixture):
        return _mixture(one)
    if isinstance(one, Wishart | InverseWishart):
        return _factors(one)
    return _dirichlet(one) if isinstance(one, Dirichlet) else _vectors(one)


def _factors(one: Wishart | InverseWishart) -> Drawn:
    made = WishartDraws(one) if isinstance(one, Wishart) else InverseWishartDraws(one)
    return Drawn(made.rvs, made.log, False, over="positive definite matrices")


def _numbers(one: Distribution) -> Drawn:
    made = density(one)
    return Drawn(made.rvs, lambda x: log_density(made, x), False, made)


def _counts(one: Distribution) -> Drawn:
    made = masses(one)
    return Drawn(
        lambda count, rng: Draws.around(0.0, made.rvs(count, rng)), lambda x: made.log(x.numbers()), True, made
    )


def _independent(one: Independent) -> Drawn:
    base = one.base_distribution
    shape = base.batch_shape
    parts = [drawable(base.one(at)) for at in np.ndindex(shape)]
    size = len(shape)

    def rvs(count: int, rng: np.random.Generator) -> Draws:
        draws = Draws.beside([part.rvs(count, rng) for part in parts])
        return draws.each(lambda x: x.reshape(count, *shape, *x.shape[2:]))

    def log(x: Draws) -> Array:
        flat = x.each(lambda y: y.reshape(len(y), len(parts), *y.shape[1 + size :]))
        logs = (part.log(Draws(*(y[:, i] for y in flat))) for i, part in enumerate(parts))
        return np.asarray(sum(logs))

    over = next((part.over for part in parts if part.over != NUMBERS), NUMBERS)
    return Drawn(rvs, log, all(part.discrete for part in parts), over=over)


def _mixture(one: Mixture) -> Drawn:
    weights = np.asarray(one.mixture_distribution.probs, np.float64)
    kept = np.flatnonzero(weights)
    weights = weights[kept] / weights[kept].sum()
    parts = [drawable(one.component_distribution.one((int(i),))) for i in kept]

    def rvs(count: int, rng: np.random.Generator) -> Draws:
        counts = rng.multinomial(count, weights)
        return Draws.joined([part.rvs(int(n), rng) for part, n in zip(parts, counts, strict=True)])

    def log(x: Draws) -> Array:
        return np.asarray(special.logsumexp(np.stack([part.log(x) for part in parts], 1), axis=1, b=weights))

    return Drawn(rvs, log, parts[0].discrete, over=parts[0].over)


def _dirichlet(one: Dirichlet) -> Drawn:
    """By logarithms: with small concentrations most of a draw is below all numbers.

    Of large ones the logarithms of gamma functions are large: by Stirling's formula they join the rest to deviances.
    """
    a = np.asarray(one.concentration, np.float64)
    whole = a.sum()
    rests = (stirling_rest(x) + 0.5 * np.log(2.0 * math.pi / x) for x in (whole, a))
    constant = float(np.subtract(*map(np.sum, rests)))

    def rvs(count: int, rng: np.random.Generator) -> Draws:
        logs = log_draws.dirichlet(rng, count, a)
        return Draws(np.zeros(logs.shape), np.exp(logs), logs)

    def log(x: Draws) -> Array:
        logs = x.logs()
        means = whole * np.exp(logs)
        direct = a * (np.log(a / whole) - logs) - a + means
        plain = (a < 1.0) | (logs < FAR)  # there the mean may be zero, and the deviance then infinite
        apart = np.where(plain, direct, deviance(np.broadcast_to(a, logs.shape), twofold(means)))
        return np.asarray(constant - (apart + logs).sum(1) + x.volume())

    return Drawn(rvs, log, False, over="a simplex")


def _vectors(one: Distribution) -> Drawn:
    """A family over vectors or matrices that SciPy has."""
    shape, discrete = one.event_shape, bool(one.support.discrete)
    if isinstance(one, OneHotCategorical):
        one = Multinomial(1, one.probs)
    even = isinstance(one, VonMisesFisher) and float(one.concentration) == 0.0
    frozen = stats.uniform_direction(int(shape[0])) if even else one.to_scipy()
    loc = np.zeros(shape)
    if isinstance(one, MultivariateNormal | LowRankMultivariateNormal | MatrixNormal):
        loc, frozen.mean = frozen.mean, loc  # draws around 0 keep the digits that the location would take

    def rvs(count: int, rng: np.random.Generator) -> Draws:
        return Draws.around(loc, np.asarray(frozen.rvs(size=count, random_state=rng)).reshape(count, *shape))

    def log(x: Draws) -> Array:
        if even:
            return np.full(len(x.offset), -float(one.entropy())) + x.volume()
        found = getattr(frozen, "logpdf", None) or frozen.logpmf
        return np.asarray(found(x.beyond(loc))).reshape(len(x.offset)) + x.volume()

    return Drawn(rvs, log, discrete, over="a sphere" if isinstance(one, Directions) else NUMBERS)
