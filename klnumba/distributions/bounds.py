"""Bounds of KL between mixtures, from the closed forms between their components.

The upper bound is the chain rule: KL of mixtures is at most that of any two joint distributions of components and
draws that have them as marginals. With phi_ij the mass that p's component i shares with q's component j, and psi_ij
the same of q, it is the sum of phi_ij*(log(phi_ij/psi_ij) + KL(f_i || g_j)), which two alternating steps make least
(J. R. Hershey and P. A. Olsen, "Approximating the Kullback Leibler Divergence between Gaussian Mixture Models",
ICASSP 2007, section 8).

The lower bound takes E log p from below and E log q from above, by Jensen's inequality both times (J.-L. Durrieu,
J.-P. Thiran and F. Kelly, "Lower and upper bounds for approximation of the Kullback-Leibler divergence between
Gaussian mixture models", ICASSP 2012). It needs the integrals of f_i*g_j, which normal components have in closed
form; for others, and where it is negative, the lower bound is 0.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from klnumba.distributions.distribution import Distribution
from klnumba.distributions.mixture import Mixture
from klnumba.distributions.multivariate_normal import MultivariateNormal
from klnumba.distributions.normal import Normal
from klnumba.distributions.registry import divergence as closed

Array = np.ndarray[Any, Any]

_STEPS = 500
_STEADY = 1e-10  # relative change of the upper bound in a step, at which it stops


class Bounds(NamedTuple):
    """What a divergence lies between.

    Attributes
    ----------
    lower, upper : array
        In nats, unless another base was asked for.
    """

    lower: Any
    upper: Any


def between(p: Distribution, q: Distribution) -> tuple[float, float]:
    """The bounds of KL between two single distributions, of which at least one is a mixture."""
    if not isinstance(p, Mixture) and not isinstance(q, Mixture):
        raise ValueError("method: 'bounds' is for mixtures; p and q are none")
    (weights, parts), (masses, others) = _components(p), _components(q)
    apart = _matrix(parts, others)
    upper = _upper(weights, masses, apart)
    return min(_lower(weights, parts, masses, others), upper), upper


def _components(one: Distribution) -> tuple[Array, Distribution]:
    """Weights and components, those without weight left out; one component of what is no mixture."""
    if not isinstance(one, Mixture):
        together = Distribution.together([one])
        if together is None:
            raise NotImplementedError(f"{type(one).__name__}: no batch can be made of it")
        return np.ones(1), together
    weights = np.asarray(one.mixture_distribution.probs, np.float64).reshape(-1)
    parts = [one.component_distribution.one((int(k),)) for k in np.flatnonzero(weights)]
    together = Distribution.together(parts)
    if together is None:
        raise NotImplementedError(f"{type(parts[0]).__name__}: no batch can be made of the components")
    return weights[weights > 0.0], together


def _matrix(parts: Distribution, others: Distribution) -> Array:
    return np.asarray(closed(parts.spread(len(others.batch_shape)), others), np.float64)


def _upper(weights: Array, masses: Array, apart: Array) -> float:
    """The sum of phi*(log(phi/psi) + apart), phi and psi made best in turn."""
    if np.isinf(apart).all(axis=1).any():
        return math.inf  # a component of p of which no component of q has all the support
    near = np.exp(-apart)
    shared = np.outer(weights, masses)
    best = math.inf
    for _ in range(_STEPS):
        others = masses * shared / _positive(shared.sum(axis=0))
        pulled = others * near
        sums = pulled.sum(axis=1, keepdims=True)
        if not (sums > 0.0).all():  # exp(-apart) underflows: bounds from the nearest components alone
            return min(best, _nearest(weights, masses, apart))
        shared = weights[:, None] * pulled / sums
        found = _cost(shared, others, apart)
        if found >= best * (1.0 - _STEADY):
            return max(min(best, found), 0.0)
        best = found
    return max(best, 0.0)


def _positive(x: Array) -> Array:
    return np.where(x > 0.0, x, 1.0)


def _cost(shared: Array, others: Array, apart: Array) -> float:
    held = (shared > 0.0) & (others > 0.0)  # what has underflowed adds nothing that counts
    s = shared[held]
    return float(np.sum(s * (np.log(s / others[held]) + apart[held])))


def _nearest(weights: Array, masses: Array, apart: Array) -> float:
    """Each component of p with the one of q that is best for it, q's masses split between them in proportion."""
    choice = np.argmin(apart - np.log(masses), axis=1)
    taken = np.bincount(choice, weights, minlength=masses.size)
    rows = np.arange(weights.size)
    return float(np.sum(weights * (np.log(taken[choice] / masses[choice]) + apart[rows, choice])))


def _lower(weights: Array, parts: Distribution, masses: Array, others: Distribution) -> float:
    overlap = _log_products(parts, others)
    if overlap is None:
        return 0.0
    own = _log_sum(np.log(weights) - _matrix(parts, parts))
    theirs = _log_sum(np.log(masses) + overlap)
    entropies = np.asarray(parts.entropy(), np.float64)
    return max(float(np.sum(weights * (own - entropies - theirs))), 0.0)


def _log_sum(x: Array) -> Array:
    """log(sum(exp(x))) of every row."""
    top = x.max(axis=1)
    found: Array = top + np.log(np.exp(x - top[:, None]).sum(axis=1))
    return found


def _log_products(parts: Distribution, others: Distribution) -> Array | None:
    """log of the integral of f_i*g_j, a normal density of the means' distance; None where it is not known."""
    if isinstance(parts, Normal) and isinstance(others, Normal):
        means = [np.asarray(x.loc, np.float64).reshape(-1, 1) for x in (parts, others)]
        spreads = [np.asarray(np.square(x.scale), np.float64).reshape(-1, 1, 1) for x in (parts, others)]
    elif isinstance(parts, MultivariateNormal) and isinstance(others, MultivariateNormal):
        means = [np.asarray(x.loc, np.float64) for x in (parts, others)]
        spreads = [np.asarray(x.covariance_matrix, np.float64) for x in (parts, others)]
    else:
        return None
    total = spreads[0][:, None] + spreads[1][None]
    off = means[0][:, None] - means[1][None]
    _, log_volume = np.linalg.slogdet(2.0 * math.pi * total)
    found: Array = -0.5 * (log_volume + np.sum(off * np.linalg.solve(total, off[..., None])[..., 0], axis=-1))
    return found
