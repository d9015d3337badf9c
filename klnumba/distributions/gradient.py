"""The derivatives of closed forms by the parameters of both distributions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from klnumba.distributions import beta, gumbel, normal_gradient, uniform
from klnumba.distributions.delta import Delta
from klnumba.distributions.distribution import Distribution
from klnumba.distributions.multivariate_normal import MultivariateNormal
from klnumba.distributions.registry import Pair, divergence, find
from klnumba.duals import twofold as tf
from klnumba.duals.dual import chain, value_of
from klnumba.duals.rules import rule
from klnumba.duals.twin import rebuilt, slopes, twin
from klnumba.duals.twofold import Twofold, exactly, where

# Families of p that have no derivatives, and why.
REFUSED: Mapping[type[Distribution], str] = MappingProxyType(
    {Delta: "the divergence is finite at single points v only, so it has no derivative by v"}
)


class Gradient(NamedTuple):
    """Partial derivatives by the parameters of p and by those of q, each by its name."""

    p: Mapping[str, Any]
    q: Mapping[str, Any]


def kl_divergence_grad(p: Distribution, q: Distribution) -> tuple[Any, Gradient]:
    """KL(p || q) and its partial derivatives by every parameter of both.

    The derivatives are those of the closed form, exact but for rounding: the formula itself is evaluated with numbers
    that carry their derivatives, in twice the digits of float64.

    Parameters
    ----------
    p, q : Distribution
        Two distributions of this package, `MultivariateNormal` or of families whose pair is registered with
        ``compiled=True``.

    Returns
    -------
    value : ndarray or scalar
        ``kl_divergence(p, q)``.
    gradient : Gradient
        ``gradient.p`` and ``gradient.q``, read-only mappings from the name of each parameter to an array of the
        broadcast batch shape; those of `MultivariateNormal` by ``loc`` and by the matrix that each was given by.

    Raises
    ------
    TypeError
        If an argument is no distribution of this package.
    ValueError
        If the batch shapes do not broadcast.
    NotImplementedError
        If the pair is not registered, or not with ``compiled=True``, if p is a `Delta`, or if a formula calls a
        function that has no rule for derivatives.

    Notes
    -----
    A derivative is NaN where the divergence is infinite, and where it is no finite number itself, as that by the rate
    of p at ``Poisson(0)``. Where a parameter can move to one side only without the divergence becoming infinite, as
    the ends of two equal `Uniform` or `LogUniform` distributions, or the scale of `Pareto`, the derivative is that of
    the finite side. Otherwise all derivatives at p = q are 0. Parameters that are more than some 1e18 apart may cost
    digits, and such as overflow on the way give NaN.

    A parameter given in another form, such as ``logits`` for ``probs``, is derived by in the form of the family's
    ``parameters``.

    Examples
    --------
    >>> from klnumba.distributions import Normal, kl_divergence_grad
    >>> value, gradient = kl_divergence_grad(Normal(1.0, 2.0), Normal(0.0, [2.0, 4.0]))
    >>> value.round(6)
    array([0.125   , 0.349397])
    >>> gradient.p["loc"]
    array([0.25  , 0.0625])
    >>> gradient.q["scale"]
    array([-0.125  ,  0.171875])
    """
    for name, x in (("p", p), ("q", q)):
        if not isinstance(x, Distribution):
            raise TypeError(f"{name}: a distribution of klnumba.distributions, not {type(x).__name__}")
    if isinstance(p, MultivariateNormal) and isinstance(q, MultivariateNormal):
        return divergence(p, q), Gradient(*normal_gradient.gradient(p, q))
    pair = find(type(p), type(q))
    if not pair.compiled:
        raise NotImplementedError(
            f"KL({type(p).__name__} || {type(q).__name__}): derivatives are those of scalar formulas, "
            "and this pair is not registered with compiled=True"
        )
    for family, why in REFUSED.items():
        if isinstance(p, family):
            raise NotImplementedError(f"KL({type(p).__name__} || {type(q).__name__}): {why}")
    value = divergence(p, q)
    shape, dtype = np.shape(value), np.result_type(p.dtype, q.dtype)
    columns = [np.broadcast_to(x._column(name), shape).reshape(-1) for x in (p, q) for name in type(x).parameters]
    rows = slopes(_of_own_parameters(pair, type(p), type(q)), columns)
    with np.errstate(over="ignore", under="ignore"):  # beyond the range of float32
        found = [row.reshape(shape).astype(dtype)[()] for row in rows]
    count = len(type(p).parameters)
    return value, Gradient(_named(type(p), found[:count]), _named(type(q), found[count:]))


def _named(family: type[Distribution], values: list[Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(zip(family.parameters, values, strict=True)))


def _of_own_parameters(pair: Pair, p: type[Distribution], q: type[Distribution]) -> Callable[..., Any]:
    """The pair's formula of duals, as one of the parameters of two families that it serves."""
    formula = twin(pair.function)

    def run(*numbers: Any) -> Any:
        count = len(p.parameters)
        return formula(*_as(pair.p, p, numbers[:count]), *_as(pair.q, q, numbers[count:]))

    return run


def _as(base: type[Distribution], family: type[Distribution], numbers: tuple[Any, ...]) -> list[Any]:
    """The parameters of the base of a family, which a subclass such as `Chi2` derives by properties from its own."""
    given = SimpleNamespace(_full=lambda x: x, **dict(zip(family.parameters, numbers, strict=True)))
    found = []
    for name in base.parameters:
        derived = inspect.getattr_static(family, name)
        if name in family.parameters:
            found.append(getattr(given, name))
        elif isinstance(derived, property) and derived.fget is not None:
            found.append(derived.fget(given))
        else:
            raise NotImplementedError(f"{family.__name__}: {name} is no property of its parameters")
    return found


# --- rules of formulas that belong to one family ----------------------------------------------------------------------


def _fractions(of: Callable[[int], Fraction], start: int) -> list[Twofold]:
    return [exactly(of(k)) for k in range(start, start + 18)]


MEAN_LOG = _fractions(lambda k: Fraction(1, 2 * k * (2 * k + 1)), 1)
MEAN_LOG_SLOPE = _fractions(lambda k: Fraction(1, 2 * k + 1), 1)
SINHC = _fractions(lambda k: Fraction(1, math.factorial(2 * k + 1)), 1)
SINHC_SLOPE = _fractions(lambda k: Fraction(2 * k, math.factorial(2 * k + 1)), 1)


@rule(uniform.mean_log_excess)
def mean_log_excess(t: Any) -> Any:
    """-E log(1 + t*U) has the derivative (atanh(t)/t - 1)/t, infinite at 1."""
    x = value_of(t)
    small = x.hi < 0.1
    near, far = where(small, x, 0.0), where(small, 0.5, x)
    z = near * near
    up, down = tf.log1p(far), tf.log1p(-far)
    left = where(far.hi == 1.0, 0.0, (1.0 - far) * down)
    value = where(small, z * tf.power_series(z, MEAN_LOG), 1.0 - ((1.0 + far) * up - left) / (2.0 * far))
    slope = where(small, near * tf.power_series(z, MEAN_LOG_SLOPE), (0.5 * (up - down) / far - 1.0) / far)
    return chain(value, (t, slope))


@rule(uniform.log_sinhc)
def log_sinhc(x: Any) -> Any:
    """The derivative of log(sinh(x)/x) is coth(x) - 1/x."""
    v = value_of(x)
    small = v.hi < 0.5
    near, far = where(small, v, 0.0), where(small, 1.0, v)
    z = near * near
    more = z * tf.power_series(z, SINHC)
    value = where(small, tf.log1p(more), far + tf.log1p(-tf.exp(-2.0 * far)) - tf.log(2.0 * far))
    slope_near = near * tf.power_series(z, SINHC_SLOPE) / (1.0 + more)
    slope = where(small, slope_near, 1.0 + 2.0 / tf.expm1(2.0 * far) - 1.0 / far)
    return chain(value, (x, slope))


@rule(uniform.mean_log_and_1)
def mean_log_and_1(low: Any, above: Any, width: Any) -> Any:
    """Its text, and at 0 what that leaves out: there the slope of low*log(low) is -inf."""
    found = rebuilt(uniform.mean_log_and_1)(low, above, width)
    return found + chain(Twofold(0.0), (low, Twofold(math.inf))) if low == 0.0 else found


@rule(beta.one_small)
def one_small(a: Any, b: Any, c: Any, d: Any, first: Any, second: Any) -> Any:
    """Its text rearranges the textbook form for the digits of float64; with twice as many, that form will do."""
    w, x, y, z = value_of(a), value_of(b), value_of(c), value_of(d)
    s, t = w + x, y + z
    climb, of_sum = _climb(s, t), tf.trigamma(s) * (t - s)
    value = (_beyond_first_order(w, y) + _beyond_first_order(x, z)) - _beyond_first_order(s, t)
    return chain(
        value,
        (a, of_sum - tf.trigamma(w) * (y - w)),
        (b, of_sum - tf.trigamma(x) * (z - x)),
        (c, _climb(w, y) - climb),
        (d, _climb(x, z) - climb),
    )


@rule(gumbel.gumbel_distance)
def gumbel_distance(y: Any) -> Any:
    """y - EULER and twice the entire exponential integral of exp(-y); the slope is 2*exp(-exp(-y)) - 1."""
    v = value_of(y)
    z = tf.exp(-v)
    value = (v - tf.EULER) + 2.0 * tf.entire_exponential_integral(z)
    return chain(value, (y, 2.0 * tf.exp(-z) - 1.0))


def _climb(x: Twofold, y: Twofold) -> Twofold:
    """digamma(y) - digamma(x)."""
    rest = tf.digamma_less_log(y) - tf.digamma_less_log(x)
    return tf.log_of_quotient(y, x) + (0.5 * (y - x) / (x * y) + rest)


def _beyond_first_order(x: Twofold, y: Twofold) -> Twofold:
    """log-gamma(y) - log-gamma(x) - digamma(x)*(y - x)."""
    return (tf.log_gamma(y) - tf.log_gamma(x)) - tf.digamma(x) * (y - x)
