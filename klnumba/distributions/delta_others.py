"""From one place to what is made of other distributions, and to whatever has no rule of its own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.categorical import Categorical
from klnumba.distributions.categories import of_one_draw
from klnumba.distributions.delta import Delta
from klnumba.distributions.distribution import Distribution
from klnumba.distributions.mixture import Mixture
from klnumba.distributions.registry import common_shape, divergence, register_kl
from klnumba.distributions.transformed_distribution import TransformedDistribution


def _infinite(p: Delta, q: Distribution) -> Any:
    return np.full(common_shape(p, q), math.inf, np.result_type(p.dtype, q.dtype))


def _over_numbers(q: Distribution) -> None:
    if q.event_shape != ():
        raise ValueError(f"p, q: a draw of Delta is a number, one of {type(q).__name__} has the shape {q.event_shape}")


@register_kl(Delta, Distribution)
def delta_any(p: Delta, q: Distribution) -> Any:
    """Infinite where q is continuous and so gives no place a probability."""
    _over_numbers(q)
    name = type(q).__name__
    try:
        discrete = q.support.discrete
    except NotImplementedError:
        raise NotImplementedError(f"KL(Delta || {name}): {name} has no support, which says if it is discrete") from None
    if discrete:
        raise NotImplementedError(
            f"KL(Delta || {name}) is not registered: it is minus the logarithm of the probability of v under q"
        )
    return _infinite(p, q)


@register_kl(Delta, Categorical)
def delta_categorical(p: Delta, q: Categorical) -> Any:
    """-log of the probability of category v, which is the divergence from the row that has a 1 there."""
    v = np.asarray(p.v)
    there = (v >= 0.0) & (v < q.count) & (v == np.floor(v))
    row = np.where(there, v, 0.0)[..., None] == np.arange(q.count)
    return np.where(there, of_one_draw(Categorical(row), q), math.inf)


@register_kl(Delta, Mixture)
def delta_mixture(p: Delta, q: Mixture) -> Any:
    """-log of the sum of the components' probabilities of v."""
    _over_numbers(q)
    apart = np.asarray(divergence(p.spread(1), q.component_distribution), np.float64)
    weights = np.asarray(q.mixture_distribution.probs, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(weights) - apart
        missing = np.sum(weights * np.expm1(-apart), -1)  # the probability less 1, which keeps the digits of one near 1
        return np.where(missing > -0.5, -np.log1p(np.minimum(missing, 0.0)), -np.logaddexp.reduce(logs, -1))


@register_kl(Delta, TransformedDistribution)
def delta_transformed(p: Delta, q: TransformedDistribution) -> Any:
    """That of the place that the transforms, which are injective, move to v; infinite where q is continuous."""
    _over_numbers(q)
    if not q.support.discrete:
        return _infinite(p, q)
    q.check_injective()
    base = q.base_distribution
    origin = np.asarray(base.v) if isinstance(base, Delta) else np.rint(q.origin(p.v))
    found = origin
    for transform in q.transforms:
        found = transform(found)
    hit = (found == p.v) & np.isfinite(origin)
    return np.where(hit, divergence(Delta(np.where(hit, origin, 0.0)), base), math.inf)
