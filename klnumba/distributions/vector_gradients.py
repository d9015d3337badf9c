"""The derivatives of KL between families of vectors, by hand.

Those by probabilities and concentrations are worked out in twice the digits of float64, since they vanish at p = q,
where their terms do not.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from klnumba.distributions.categorical import Categorical
from klnumba.distributions.categories import Categories
from klnumba.distributions.dirichlet import Dirichlet, part_bends, part_slopes
from klnumba.distributions.distribution import Distribution
from klnumba.distributions.evaluate import evaluate, evaluate_slopes, sums_of_others
from klnumba.distributions.multinomial import Multinomial
from klnumba.distributions.one_hot_categorical import OneHotCategorical
from klnumba.distributions.von_mises_fisher import VonMisesFisher
from klnumba.duals import twofold as tf
from klnumba.duals.number import Moving, Twofold, mapped, move_of, where
from klnumba.formulas.bessel import NODES, WEIGHTS
from klnumba.formulas.bessel_orders import gap_of_orders, ratio_of_orders, slope_of_orders

Sides = tuple[dict[str, Any], dict[str, Any]]


def gradient(p: Distribution, q: Distribution, value: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The derivatives by what p was given by, and by what q was, given the divergence."""
    rule = RULES[type(p), type(q)]
    dtype = np.result_type(p.dtype, q.dtype)
    with np.errstate(all="ignore"):
        sides = rule(p, q, np.asarray(value, np.float64))
        found = [{name: _finite(x, value).astype(dtype)[()] for name, x in side.items()} for side in sides]
    return MappingProxyType(found[0]), MappingProxyType(found[1])


def _finite(slopes: Any, value: Any) -> Any:
    """NaN where the divergence, or the derivative, is infinite."""
    more = np.ndim(slopes) - np.ndim(value)
    known = np.isfinite(value)[(..., *(None,) * more)]
    return np.where(known & np.isfinite(slopes), np.asarray(slopes) + 0.0, np.nan)


def _sum(x: Twofold) -> Twofold:
    """Over the last axis, which is kept."""

    def cell(k: int) -> Twofold:
        return mapped(lambda part: part[..., k : k + 1], x)

    return functools.reduce(operator.add, map(cell, range(1, x.hi.shape[-1])), cell(0))


def _wide(x: Any, shape: tuple[int, ...]) -> Twofold:
    """Numbers along the last axis, of a batch of this shape."""
    array = np.asarray(x, np.float64)
    return Twofold(np.broadcast_to(array, (*shape, array.shape[-1])), np.zeros((*shape, array.shape[-1])))


# --- categories -------------------------------------------------------------------------------------------------------


def _given(x: Categories, shape: tuple[int, ...], step: Any = None) -> tuple[str, Twofold]:
    """The form that was given, and the numbers, as they move."""
    form = "probs" if "probs" in x._given else "logits"
    return form, _moving(x._given[form], shape, step)


def _moving(x: Any, shape: tuple[int, ...], step: Any) -> Twofold:
    """Numbers along the last axis, and how they move; None for such that rest."""
    numbers = _wide(x, shape)
    return numbers if step is None else Moving(numbers, Twofold(np.broadcast_to(step, numbers.hi.shape)))


def _parts(form: str, given: Twofold) -> tuple[Twofold, Any]:
    """The probabilities, and what each number has to be divided by for the other form."""
    masses = given if form == "probs" else tf.exp(given - np.max(given.hi, -1, keepdims=True))
    whole = _sum(masses)
    return masses / whole, whole if form == "probs" else None


def _categories(p: Categories, q: Categories, value: Any) -> Sides:
    sides = _given(p, np.shape(value)), _given(q, np.shape(value))
    of_p, of_q = _category_slopes(*sides)
    return {sides[0][0]: of_p.hi}, {sides[1][0]: of_q.hi}


def _category_slopes(p: tuple[str, Twofold], q: tuple[str, Twofold]) -> tuple[Twofold, Twofold]:
    """By logits P*(log(P/Q) - KL) and Q - P; by masses these over the masses."""
    (a, whole_p), (b, whole_q) = _parts(*p), _parts(*q)
    none = a.hi == 0.0
    logs = tf.log_of_quotient(where(none, 1.0, a), where(none, 1.0, b))
    off = where(none, -np.inf, logs - _sum(where(none, 0.0, a * logs)))
    of_p = where(none, 0.0, a * off) if whole_p is None else off / whole_p
    if whole_q is None:
        return of_p, b - a
    same = none & (b.hi == 0.0)
    return of_p, where(same, 1.0, (b - a) / where(same, 1.0, b)) / whole_q


def categories_along(p: Categories, q: Categories, value: Any, steps: Sequence[Any]) -> list[tuple[str, np.ndarray]]:
    """What the derivatives of one draw by what both were given by change by as this moves, by the name of it."""
    sides = [_given(x, np.shape(value), step) for x, step in zip((p, q), steps, strict=True)]
    found = _category_slopes(*sides)
    return [(form, _spread_move(x)) for (form, _), x in zip(sides, found, strict=True)]


def _spread_move(x: Twofold) -> np.ndarray:
    return np.broadcast_to(move_of(x).hi, x.hi.shape)


def _multinomial(p: Multinomial, q: Multinomial, value: Any) -> Sides:
    """So many times that of one draw."""
    count = np.broadcast_to(p.total_count, np.shape(value))[..., None]
    return tuple({name: count * x for name, x in side.items()} for side in _categories(p, q, value))  # type: ignore[return-value]


# --- Dirichlet --------------------------------------------------------------------------------------------------------


def _dirichlet(p: Dirichlet, q: Dirichlet, value: Any) -> Sides:
    """trigamma(a)*(a - c) and digamma(c) - digamma(a), each less the same of the sums."""
    a, c = (_wide(x._given["concentration"], np.shape(value)) for x in (p, q))
    of_p, of_q = _dirichlet_slopes(a, c)
    return {"concentration": of_p.hi}, {"concentration": of_q.hi}


def _dirichlet_slopes(a: Twofold, c: Twofold) -> tuple[Twofold, Twofold]:
    s, t = _sum(a), _sum(c)
    return tf.trigamma(a) * (a - c) - tf.trigamma(s) * (s - t), _climb(a, c) - _climb(s, t)


def dirichlet_along(a: np.ndarray, c: np.ndarray, steps: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the derivatives by both concentrations, a row each, change by as these move."""
    sides = (_moving(x, x.shape[:-1], step) for x, step in zip((a, c), steps, strict=True))
    return [_spread_move(slopes) for slopes in _dirichlet_slopes(*sides)]


def quick_dirichlet_along(
    a: np.ndarray, c: np.ndarray, steps: Sequence[np.ndarray], factors: Any, least: float
) -> tuple[list[np.ndarray], np.ndarray]:
    """The same by compiled formulas, times a factor a row, and the cells that these do not serve."""
    move, other = steps
    pairs = [(a, c, sums_of_others(a - c)), (move, other, sums_of_others(move - other))]
    columns = [x for p, q, gap in pairs for x in (p, sums_of_others(p), q, sums_of_others(q), gap)]
    wanted = (True, False, True, *(False for _ in range(7)))
    scale = np.asarray(factors)[..., None]
    found, left = evaluate_slopes(part_bends, columns, a.shape, scale, least, np.float64, wanted)
    return [found[0], found[2]], left


def quick_dirichlet(
    p: Dirichlet, q: Dirichlet, shape: tuple[int, ...], factors: Any, least: float, dtype: Any, wanted: Sequence[bool]
) -> tuple[list[np.ndarray], np.ndarray]:
    """The quick slopes by all concentrations, and the cells that these do not serve.

    By one, with the others as they are, it is that of beta distributions whose second concentration is their sum.
    """
    a, c = (np.asarray(x._given["concentration"], np.float64) for x in (p, q))
    columns, both = (
        [a, sums_of_others(a), c, sums_of_others(c), sums_of_others(c - a)],
        (wanted[0], False, wanted[1], False, False),
    )
    wide, scale = (*shape, a.shape[-1]), np.asarray(factors)[..., None]
    found, left = evaluate_slopes(part_slopes, columns, wide, scale, least, dtype, both)
    return [found[0], found[2]], left


def _climb(x: Twofold, y: Twofold) -> Twofold:
    """digamma(y) - digamma(x)."""
    rest = tf.digamma_less_log(y) - tf.digamma_less_log(x)
    return tf.log_of_quotient(y, x) + (0.5 * (y - x) / (x * y) + rest)


# --- von Mises and Fisher ---------------------------------------------------------------------------------------------


def mean_length_rise(n: float, a: float, b: float) -> float:
    """The mean resultant length at b less that at a."""
    d = b - a
    if abs(d) <= 0.5 * a:
        total = 0.0
        for i in range(12):
            total += WEIGHTS[i] * slope_of_orders(n, a + d * NODES[i])
        return d * total
    return gap_of_orders(n, a) - gap_of_orders(n, b) if a > n + 1.0 else ratio_of_orders(n, b) - ratio_of_orders(n, a)


def _fisher(p: VonMisesFisher, q: VonMisesFisher, value: Any) -> Sides:
    """With A(c) the mean resultant length and t the angle: A'(c)*(c - d*cos(t)), A(d) - A(c)*cos(t), and turns."""
    shape = np.shape(value)
    (u, of_u), (v, of_v) = _direction(p, shape), _direction(q, shape)
    apart = 0.5 * _sum((u - v) * (u - v))  # 1 - cos(t)
    gap = apart.hi[..., 0]
    order = np.asarray(0.5 * p.event_shape[0] - 1.0)
    c, d = (np.broadcast_to(np.asarray(x.concentration, np.float64), shape) for x in (p, q))
    length, slope = (np.asarray(evaluate(f, [order, c], shape)) for f in (ratio_of_orders, slope_of_orders))
    rise = np.asarray(evaluate(mean_length_rise, [order, c, d], shape))
    pull = (d * length)[..., None]
    of_p = {"mean_direction": (-pull * ((v - u) + apart * u) / of_u).hi, "concentration": slope * ((c - d) + d * gap)}
    return of_p, {"mean_direction": (-pull * ((u - v) + apart * v) / of_v).hi, "concentration": rise + length * gap}


def _direction(x: VonMisesFisher, shape: tuple[int, ...]) -> tuple[Twofold, Twofold]:
    """The unit vectors, and the lengths of what was given."""
    given = _wide(x._given["mean_direction"], shape)
    length = tf.sqrt(_sum(given * given))
    return given / length, length


RULES: dict[tuple[type, type], Callable[[Any, Any, Any], Sides]] = {
    **{(p, q): _categories for p in (Categorical, OneHotCategorical) for q in (Categorical, OneHotCategorical)},
    (Multinomial, Multinomial): _multinomial,
    (Dirichlet, Dirichlet): _dirichlet,
    (VonMisesFisher, VonMisesFisher): _fisher,
}
