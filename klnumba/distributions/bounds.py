"""Bounds of KL between mixtures, from the closed forms between their components.

Upper: J. R. Hershey and P. A. Olsen, "Approximating the Kullback Leibler Divergence Between Gaussian Mixture Models",
ICASSP 2007. Lower: J.-L. Durrieu, J.-P. Thiran and F. Kelly, "Lower and Upper Bounds for Approximation of the
Kullback-Leibler Divergence Between Gaussian Mixture Models", ICASSP 2012.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.categorical import Categorical
from klnumba.distributions.distribution import Distribution
from klnumba.distributions.independent import Independent
from klnumba.distributions.joint import Joint
from klnumba.distributions.low_rank_multivariate_normal import LowRankMultivariateNormal, diagonal
from klnumba.distributions.mixture import Mixture
from klnumba.distributions.multivariate_normal import MultivariateNormal
from klnumba.distributions.normal import Normal
from klnumba.distributions.positive_definite import transposed
from klnumba.distributions.registry import divergence as closed

ROUNDS = 1_000
SETTLED = 1e-12  # a round that lowers the bound by less, relative to it, is the last

VECTORS = (MultivariateNormal, LowRankMultivariateNormal)

Array = np.ndarray[Any, Any]


def bounds(p: Distribution, q: Distribution) -> tuple[Array, Array]:
    """The middle between a lower and an upper bound of KL(p || q), and half their distance."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        low, high = _both(p, q)
        width = np.where(low == high, 0.0, high - low)
        return 0.5 * (low + high), 0.5 * width


def _both(p: Distribution, q: Distribution) -> tuple[Array, Array]:
    """A lower and an upper bound."""
    (w, f), (v, g) = _parts(p), _parts(q)
    far = np.asarray(closed(_down(f), _across(g)), np.float64)
    high = _upper(w, v, far)
    if w.shape[-1] == v.shape[-1]:
        apart = np.diagonal(far, axis1=-2, axis2=-1)
        high = np.minimum(high, closed(Categorical(w), Categorical(v)) + _mean(w, apart))
    low = high if w.shape[-1] == v.shape[-1] == 1 else np.clip(_lower(w, f, v, g), 0.0, high)
    return low, high


def _parts(one: Distribution) -> tuple[Array, Distribution]:
    """The weights, and the components along the last axis of their batch."""
    if isinstance(one, Mixture):
        return np.asarray(one.mixture_distribution.probs, np.float64), one.component_distribution
    return np.ones(1), one.spread(1)


def _down(parts: Distribution) -> Distribution:
    return parts.spread(1)


def _across(parts: Distribution) -> Distribution:
    return parts.with_axes(len(parts.batch_shape) - 1, 1)


def _mean(weights: Array, values: Any) -> Array:
    """Over the last axis; what has no weight does not count, whatever it is."""
    return np.asarray(np.where(weights > 0.0, weights * values, 0.0).sum(-1))


def _upper(w: Array, v: Array, far: Array) -> Array:
    """The least sum of divergences over all ways to share out the components' weights among each other.

    A share a, b of p's weights (`phi`) is set against one of q's (`psi`); each round makes the one best for the other.
    Each of a batch ends with its own last round, whatever its neighbours take.
    """
    least = far.min(-1)
    close = np.where(far < math.inf, np.exp(least[..., None] - far), 0.0)
    psi = w[..., :, None] * v[..., None, :] * np.ones(far.shape)
    value = np.full(psi.shape[:-2], math.inf)
    settled = np.zeros(value.shape, bool)
    for _ in range(ROUNDS):
        held = psi * close
        rows = held.sum(-1)
        found = _mean(w, least - np.log(rows / w))
        phi = np.where(held > 0.0, w[..., :, None] * held / rows[..., None], 0.0)
        psi = np.where(phi > 0.0, v[..., None, :] * phi / phi.sum(-2, keepdims=True), 0.0)
        last = np.isnan(found) | (found >= value - SETTLED * np.abs(value))
        value = np.where(settled, value, np.fmin(value, found))
        settled = settled | last
        if settled.all():
            break
    return np.asarray(np.maximum(value, 0.0))


def _lower(w: Array, f: Distribution, v: Array, g: Distribution) -> Any:
    """A lower bound of -entropy(p), and an upper one of the mean of log q over p; nothing is known where g has none."""
    overlap = _log_overlap(_down(f), _across(g))
    if overlap is None:
        return 0.0
    near = np.asarray(closed(_down(f), _across(f)), np.float64)
    own = np.logaddexp.reduce(np.log(w)[..., None, :] - near, axis=-1)
    other = np.logaddexp.reduce(np.log(v)[..., None, :] + overlap, axis=-1)
    return _mean(w, own - other - f.entropy())


def _log_overlap(one: Any, other: Any) -> Array | None:
    """The logarithm of the integral of the densities' product; None where it is not known."""
    if isinstance(one, Normal) and isinstance(other, Normal):
        scale = np.hypot(np.asarray(one.scale, np.float64), other.scale)  # squares may leave the range of numbers
        off = (np.asarray(one.loc, np.float64) - other.loc) / scale
        return np.asarray(-0.5 * (math.log(2.0 * math.pi) + off * off) - np.log(scale))
    if isinstance(one, Joint) and isinstance(other, Joint):
        found = [_log_overlap(x, y) for x, y in zip(one.distributions, other.distributions, strict=True)]
        known = [x for x in found if x is not None]
        return np.asarray(sum(known)) if len(known) == len(found) else None
    if isinstance(one, Independent) and isinstance(other, Independent):
        count = one.reinterpreted_batch_ndims
        alike = count == other.reinterpreted_batch_ndims
        parts = _log_overlap(one.base_distribution, other.base_distribution) if alike else None
        return None if parts is None else np.asarray(parts.sum(tuple(range(parts.ndim - count, parts.ndim))))
    first, second = _mean_and_covariance(one), _mean_and_covariance(other)
    if first is None or second is None:
        return None
    scale = np.linalg.cholesky(first[1] + second[1])
    off = first[0] - second[0]
    moved = np.linalg.solve(scale, off[..., None])
    volume = np.log(np.diagonal(scale, axis1=-2, axis2=-1)).sum(-1)
    size = off.shape[-1]
    return np.asarray(-0.5 * ((transposed(moved) @ moved)[..., 0, 0] + size * math.log(2.0 * math.pi)) - volume)


def _mean_and_covariance(one: Any) -> tuple[Array, Array] | None:
    """Of vectors of normal numbers; None of others."""
    if isinstance(one, VECTORS):
        return np.asarray(one.loc, np.float64), np.asarray(one.covariance_matrix, np.float64)
    base = getattr(one, "base_distribution", None)
    if isinstance(one, Independent) and isinstance(base, Normal) and one.reinterpreted_batch_ndims == 1:
        return np.asarray(base.loc, np.float64), diagonal(np.square(np.asarray(base.scale, np.float64)))
    return None
