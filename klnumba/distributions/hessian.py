"""Second derivatives of closed forms: what the first change by as the parameters of both distributions move."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from klnumba.distributions import normal_hessian, vector_gradients
from klnumba.distributions.categories import Categories
from klnumba.distributions.dirichlet import Dirichlet
from klnumba.distributions.distribution import Distribution
from klnumba.distributions.evaluate import evaluate_slopes
from klnumba.distributions.gradient import (
    NORMALS,
    Gradient,
    ScalarFormula,
    draws_of,
    named_slopes,
    nowhere_finite,
    of_known,
    of_rows,
    scalar_formula,
)
from klnumba.distributions.infinite import infinite
from klnumba.distributions.inner import is_of_others
from klnumba.distributions.normal_hessian import Moves
from klnumba.distributions.registry import find
from klnumba.duals.twin import slopes_along

LEAST = 2.0**-24  # the part of its terms that a quick one may be before it is worked out in more digits
Product = Callable[[Any, Any, Moves], Gradient]  # from the divergence, a factor a distribution, and moves


def hessian(p: Distribution, q: Distribution) -> Product:
    """What gives the product of the Hessian of the divergence with a direction.

    Raises
    ------
    NotImplementedError
        If the derivatives of the pair are none of a scalar formula, categories, Dirichlet or normal distributions.
    """
    if is_of_others(p, q):
        return partial(_of_numbers, scalar_formula(find(type(p), type(q)), p, q), p, q)
    p, q = p.named(), q.named()
    if (type(p), type(q)) in vector_gradients.RULES:
        if isinstance(p, Categories) and isinstance(q, Categories):
            alike = p._given.keys() == q._given.keys()
            return partial(_of_categories if alike else _of_both_forms, p, q)
        if isinstance(p, Dirichlet) and isinstance(q, Dirichlet):
            return partial(_of_dirichlet, p, q)
    elif isinstance(p, NORMALS) and isinstance(q, NORMALS):
        return partial(_of_normals, p, q)
    elif (pair := find(type(p), type(q))).function is infinite:
        return partial(nowhere_finite, p, q)
    else:
        return partial(_of_numbers, scalar_formula(pair, p, q), p, q)
    raise NotImplementedError(_refusal(p, q))


def _refusal(p: Distribution, q: Distribution, reason: Any = "") -> str:
    return f"KL({type(p).__name__} || {type(q).__name__}): no second derivatives" + (f", {reason}" if reason else "")


def _of_numbers(
    formula: ScalarFormula, p: Distribution, q: Distribution, value: Any, factors: Any, moves: Moves
) -> Gradient:
    shape, sides = np.shape(value), {"p": p, "q": q}
    places = [("p", name) for name in formula.of_p] + [("q", name) for name in formula.of_q]
    columns = [np.asarray(sides[side]._column(name)) for side, name in places]
    steps = [np.asarray(moves.get(place, 0.0)) for place in places]
    found, left = _quick(formula.bends, columns, steps, shape, factors)
    known = np.isfinite(value)
    left = of_known(left, known)
    if left.size:
        rates = np.broadcast_to(factors, shape).reshape(-1)[left]
        try:
            exact = slopes_along(formula.run, *([_some(x, shape, left) for x in side] for side in (columns, steps)))
        except (NotImplementedError, TypeError) as reason:
            raise NotImplementedError(_refusal(p, q, reason)) from reason
        with np.errstate(over="ignore", invalid="ignore"):
            for column, slopes in zip(found, exact * rates, strict=True):
                column[left] = slopes
    return named_slopes(
        p, q, {place: np.where(known, x.reshape(shape), np.nan) for place, x in zip(places, found, strict=True)}
    )


def _of_normals(p: normal_hessian.Normal, q: normal_hessian.Normal, value: Any, factors: Any, moves: Moves) -> Gradient:
    shape = np.shape(value)
    rates = np.broadcast_to(np.where(np.isfinite(value), factors, np.nan), shape)

    def scaled(x: np.ndarray) -> np.ndarray:
        return x * rates.reshape(shape + (1,) * (x.ndim - rates.ndim))

    sides = normal_hessian.along(p, q, shape, moves)
    return Gradient(*(MappingProxyType({name: scaled(x) for name, x in side.items()}) for side in sides))


def _quick(
    bends: Callable[..., Any] | None, columns: list[np.ndarray], steps: list[np.ndarray], shape: tuple[int, ...],
    factors: Any,
) -> tuple[list[np.ndarray], np.ndarray]:  # fmt: skip
    """Those that a compiled formula serves, and the places of the others."""
    size, count = math.prod(shape), len(columns)
    if bends is None:
        return [np.empty(size) for _ in columns], np.arange(size)
    wanted = [True] * count + [False] * count
    found, left = evaluate_slopes(bends, [*columns, *steps], shape, factors, LEAST, np.float64, wanted)
    return found[:count], left


def _some(x: np.ndarray, shape: tuple[int, ...], at: np.ndarray) -> np.ndarray:
    """The numbers of some distributions."""
    return np.asarray(np.broadcast_to(x, shape).reshape(-1)[at], np.float64)


def _of_categories(p: Categories, q: Categories, value: Any, factors: Any, moves: Moves) -> Gradient:
    form, call, sides, draws = of_rows(p, q, value)
    steps = moves.get(("p", form)), moves.get(("q", form))
    rates = np.broadcast_to(factors * draws, np.shape(value))
    found = call.hessian_product(*sides, rates, steps, (True, True))
    return Gradient(*(MappingProxyType({form: slopes}) for slopes in found))


def _of_both_forms(p: Categories, q: Categories, value: Any, factors: Any, moves: Moves) -> Gradient:
    forms = ["probs" if "probs" in x._given else "logits" for x in (p, q)]
    steps = [moves.get(place) for place in zip("pq", forms, strict=True)]
    rates = np.broadcast_to(factors * draws_of(p, q), np.shape(value))[..., None]
    with np.errstate(all="ignore"):
        found = vector_gradients.categories_along(p, q, value, steps)
        return Gradient(*(MappingProxyType({form: x * rates}) for form, x in found))


def _of_dirichlet(p: Dirichlet, q: Dirichlet, value: Any, factors: Any, moves: Moves) -> Gradient:
    """Quick ones, and by the twofold rule those of the distributions with a concentration that these do not serve."""
    name, shape = "concentration", (*np.shape(value), p.event_shape[0])
    rates = np.broadcast_to(factors, np.shape(value)).reshape(-1)
    a, c = (_rows(x._given[name], shape) for x in (p, q))
    steps = [_rows(moves.get((side, name), 0.0), shape) for side in "pq"]
    found, left = vector_gradients.quick_dirichlet_along(a, c, steps, rates, LEAST)
    rows = np.unique(left // shape[-1])
    if rows.size:
        with np.errstate(all="ignore"):
            exact = vector_gradients.dirichlet_along(a[rows], c[rows], [step[rows] for step in steps])
            for slopes, more in zip(found, exact, strict=True):
                slopes.reshape(a.shape)[rows] = more * rates[rows, None]
    known = np.isfinite(value)[..., None]
    return Gradient(*(MappingProxyType({name: np.where(known, x.reshape(shape), math.nan)}) for x in found))


def _rows(x: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Vectors of distributions of this shape, one after the other."""
    return np.broadcast_to(np.asarray(x, np.float64), shape).reshape(-1, shape[-1])
