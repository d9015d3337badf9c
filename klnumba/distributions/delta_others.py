"""Between one place and what is made of other distributions, vectors, and whatever has no rule of its own.

A draw may be a number, of `Delta`, or an array of numbers, of an `Independent` of `Delta` distributions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.distributions.categorical import Categorical
from klnumba.distributions.categories import Categories, of_one_draw
from klnumba.distributions.delta import Delta
from klnumba.distributions.distribution import Distribution
from klnumba.distributions.evaluate import evaluate
from klnumba.distributions.independent import Independent, parts
from klnumba.distributions.mixture import Mixture
from klnumba.distributions.multinomial import Multinomial
from klnumba.distributions.one_hot_categorical import OneHotCategorical
from klnumba.distributions.registry import divergence, register_kl
from klnumba.distributions.transformed_distribution import TransformedDistribution
from klnumba.formulas.elementary import log
from klnumba.formulas.special import HALF_LOG_2PI, stirling

Rule = Callable[[Any, Any], Any]


def _places(p: Distribution, q: Distribution) -> Any:
    """Where p, of `Delta` distributions, has its mass; None if it is not of those, or goes by a simpler name."""
    base = parts(p)
    if not isinstance(base, Delta) or p.named() is not p:
        return None
    if p.event_shape != q.event_shape:
        drawn = f"an array of the shape {p.event_shape}" if p.event_shape else "a number"
        kind = type(q).__name__
        found = f"has the shape {q.event_shape}" if q.event_shape else "is a number"
        raise ValueError(f"p, q: a draw of {type(p).__name__} is {drawn}, one of {kind} {found}")
    return np.asarray(base.v)


def _at(v: Any, event: tuple[int, ...]) -> Distribution:
    """The distributions that have their mass there."""
    return Independent(Delta(v), len(event)) if event else Delta(v)


def _from_places(rule: Rule) -> Rule:
    """KL(p || q) by a rule of v and q, if p is of `Delta` distributions."""

    @functools.wraps(rule)
    def run(p: Distribution, q: Distribution) -> Any:
        v = _places(p, q)
        return NotImplemented if v is None else rule(v, q)

    return run


def _is_discrete(x: Distribution, pair: str) -> bool:
    name = type(x).__name__
    try:
        return x.support.discrete
    except NotImplementedError:
        raise NotImplementedError(f"KL({pair}): {name} has no support, which says if it is discrete") from None


@register_kl(Independent, Distribution)
@register_kl(Delta, Distribution)
@_from_places
def delta_any(v: Any, q: Distribution) -> Any:
    """Infinite where q is continuous and so gives no place a probability."""
    pair = f"Delta || {type(q).__name__}"
    if _is_discrete(q, pair):
        raise NotImplementedError(
            f"KL({pair}) is not registered: it is minus the logarithm of the probability of v under q"
        )
    return math.inf


def _rows(v: Any, q: Categories) -> tuple[Any, Categorical]:
    """Where v is a category of q, and the rows that have a 1 there, or in the first place."""
    there = (v >= 0.0) & (v < q.count) & (v == np.floor(v))
    return there, Categorical(np.where(there, v, 0.0)[..., None] == np.arange(q.count))


@register_kl(Delta, Categorical)
@_from_places
def delta_categorical(v: Any, q: Categories) -> Any:
    """-log of the probability of category v, which is the divergence from the row that has a 1 there."""
    there, rows = _rows(v, q)
    return np.where(there, of_one_draw(rows, q), math.inf)


@register_kl(Categorical, Delta)
def categorical_delta(p: Categorical, q: Delta) -> Any:
    """0 where p has all its mass at v, else infinite: the divergence to the row that has a 1 there."""
    there, rows = _rows(np.asarray(q.v), p)
    return np.where(there, of_one_draw(p, rows), math.inf)


def _category(v: Any) -> Any:
    """The category that a vector with a single 1 stands for; -1 for other vectors."""
    single = ((v == 0.0) | (v == 1.0)).all(-1) & (v.sum(-1) == 1.0)
    return np.where(single, v.argmax(-1), -1)


@register_kl(Independent, OneHotCategorical)
@_from_places
def delta_one_hot(v: Any, q: OneHotCategorical) -> Any:
    """-log of the probability of the category, of which the vector is another name."""
    there, rows = _rows(_category(v), q)
    return np.where(there, of_one_draw(rows, q), math.inf)


def log_factorial_rest(n: float) -> float:
    """log n! - n*log(n) + n, 0 for n = 0."""
    return 0.0 if n == 0.0 else HALF_LOG_2PI + 0.5 * log(n) + stirling(n)


@register_kl(Independent, Multinomial)
@_from_places
def delta_multinomial(v: Any, q: Multinomial) -> Any:
    """-log of the probability of the counts: n times the divergence of their shares, and the rests of the factorials.

    The largest count, most of n, takes that of n away first, so that no digits are lost where it is all of n.
    """
    n = np.asarray(q.total_count, np.float64)
    v = np.asarray(v, np.float64)
    counts = ((v >= 0.0) & (v == np.floor(v))).all(-1) & (v.sum(-1) == n)
    v = np.where(counts[..., None], v, np.arange(q.count) == 0)
    shares = of_one_draw(Categorical(np.where(v.any(-1)[..., None], v, 1.0)), q)
    rests = np.sort(evaluate(log_factorial_rest, [v], v.shape), -1)
    last = rests[..., -1] - evaluate(log_factorial_rest, [n], n.shape)
    with np.errstate(invalid="ignore"):
        found = np.where(n == 0.0, 0.0, n * shares) + (rests[..., :-1].sum(-1) + last)
    return np.where(counts, found, math.inf)


@register_kl(Independent, Mixture)
@register_kl(Delta, Mixture)
@_from_places
def delta_mixture(v: Any, q: Mixture) -> Any:
    """-log of the sum of the components' probabilities of v."""
    one_each = _at(np.expand_dims(v, -1 - len(q.event_shape)), q.event_shape)
    apart = np.asarray(divergence(one_each, q.component_distribution), np.float64)
    weights = np.asarray(q.mixture_distribution.probs, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(weights) - apart
        missing = np.sum(weights * np.expm1(-apart), -1)  # the probability less 1, which keeps the digits of one near 1
        return np.where(missing > -0.5, -np.log1p(np.minimum(missing, 0.0)), -np.logaddexp.reduce(logs, -1))


def _moved(q: TransformedDistribution, x: Any) -> Any:
    """What the transforms make of x."""
    for transform in q.transforms:
        x = transform(x)
    return x


def _origin(v: Any, q: TransformedDistribution) -> Any:
    """What the transforms move to v: a place of q's own, or else an integer, if one of these does it."""
    base = parts(q.base_distribution)
    if isinstance(base, Delta):
        return np.asarray(base.v)
    origin = q.origin(v)
    whole = np.rint(origin)
    return np.where(_moved(q, whole) == v, whole, origin)


@register_kl(Independent, TransformedDistribution)
@register_kl(Delta, TransformedDistribution)
@_from_places
def delta_transformed(v: Any, q: TransformedDistribution) -> Any:
    """That of the place that the transforms, which are injective, move to v; infinite where q is continuous."""
    if not _is_discrete(q, f"Delta || {type(q).__name__}"):
        return math.inf
    q.check_injective()
    q = q.flat()
    origin = _origin(v, q)
    hit = (_moved(q, origin) == v) & np.isfinite(origin)
    inside = _at(np.where(hit, origin, 0.0), q.event_shape)
    every = hit.all(tuple(range(hit.ndim - len(q.event_shape), hit.ndim)))
    return np.where(every, divergence(inside, q.base_distribution), math.inf)


@register_kl(Distribution, Independent)
@register_kl(Distribution, Delta)
def any_delta(p: Distribution, q: Distribution) -> Any:
    """0 where p has all its mass at v, else infinite, as where p is continuous."""
    v = _places(q, p)
    if v is None:
        return NotImplemented
    if not _is_discrete(p, f"{type(p).__name__} || Delta"):
        return math.inf
    alone = np.asarray(divergence(q, p)) == 0.0
    if not q.event_shape:  # the probability of v may be less than 1 by a number that is too small
        alone &= np.isinf(divergence(Delta(v - 1.0), p)) & np.isinf(divergence(Delta(v + 1.0), p))
    return np.where(alone, 0.0, math.inf)


@register_kl(Delta, Independent)
@register_kl(Independent, Delta)
def of_no_axes(p: Distribution, q: Distribution) -> Any:
    """That of the base of an `Independent` of no axes, which goes by its name; a vector is no number."""
    return NotImplemented
