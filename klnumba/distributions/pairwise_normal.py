"""KL of every normal distribution of one batch to every one of another, by products of matrices.

Twice the divergence is the mean, under p, of a quadratic polynomial whose coefficients q gives, and terms of p and of q
alone. So one product of two matrices, the moments of p by the coefficients of q, is all that takes both.

The polynomial's terms cancel where p and q are close. An entry that may have lost more than `WANTED` by that is taken
from the closed form of the pair; so is one that left the range of numbers. Where these are most, all of them are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.distributions.distribution import Distribution
from klnumba.distributions.independent import Independent
from klnumba.distributions.multivariate_normal import MultivariateNormal
from klnumba.distributions.normal import Normal
from klnumba.distributions.positive_definite import transposed
from klnumba.distributions.registry import divergence

Array = Any  # NumPy's products of arrays are typed as anything

WANTED = 1e-13
FEW = 256  # entries below which the closed form is faster
BLOCK = 1 << 21  # numbers of a batch that is taken from the closed form


def divergences(p: Distribution, q: Distribution) -> Array | None:
    """A matrix, a row for each p and a column for each q; None of families, or numbers, that this does not serve."""
    rows, columns = math.prod(p.batch_shape), math.prod(q.batch_shape)
    sides = _sides(p, q) if rows * columns >= FEW else None
    if sides is None:
        return None
    moments, of_p, coefficients, of_q, loss = sides
    with np.errstate(all="ignore"):
        twice = moments @ transposed(coefficients) + of_p[:, None] + of_q
        size = np.abs(moments) @ transposed(np.abs(coefficients)) + np.abs(of_p)[:, None] + np.abs(of_q)
        unsure = ~(twice * WANTED > size * loss)
    found = 0.5 * twice
    i, j = np.nonzero(unsure)
    if 2 * i.size > found.size:
        return None
    block = max(1, BLOCK // moments.shape[1])
    for start in range(0, i.size, block):
        rows_of, columns_of = i[start : start + block], j[start : start + block]
        found[rows_of, columns_of] = divergence(_taken(p, rows_of), _taken(q, columns_of))
    return found.astype(np.result_type(p.dtype, q.dtype))


def _sides(p: Distribution, q: Distribution) -> tuple[Array, Array, Array, Array, Array] | None:
    """The moments of p, its own terms, the coefficients of q, its own terms, and the relative error of a term."""
    if isinstance(p, MultivariateNormal) and isinstance(q, MultivariateNormal):
        return _full(p, q) if p.event_shape == q.event_shape else None
    numbers = _independent(p), _independent(q)
    if numbers[0] is None or numbers[1] is None or numbers[0][0].shape[1] != numbers[1][0].shape[1]:
        return None
    return _diagonal(*numbers[0], *numbers[1])


def _independent(x: Distribution) -> tuple[Array, Array] | None:
    """Means and scales of independent normal distributions, a row each."""
    inner, dims = (x.base_distribution, x.reinterpreted_batch_ndims) if isinstance(x, Independent) else (x, 0)
    if type(inner) is not Normal:
        return None
    cut = len(inner.batch_shape) - dims
    shape = math.prod(inner.batch_shape[:cut]), math.prod(inner.batch_shape[cut:])
    return tuple(np.asarray(getattr(inner, name), np.float64).reshape(shape) for name in ("loc", "scale"))  # type: ignore[return-value]


def _diagonal(m: Array, s: Array, n: Array, t: Array) -> tuple[Array, Array, Array, Array, Array]:
    middle = n.mean(0)
    m, n = m - middle, n - middle
    with np.errstate(all="ignore"):
        weight = 1.0 / (t * t)
        moments = np.concatenate([s * s + m * m, m], -1)
        coefficients = np.concatenate([weight, -2.0 * n * weight], -1)
        of_p = -2.0 * np.log(s).sum(-1) - s.shape[-1]
        of_q = (n * n * weight + 2.0 * np.log(t)).sum(-1)
    return moments, of_p, coefficients, of_q, _error_of_sum(moments.shape[-1])


def _full(p: MultivariateNormal, q: MultivariateNormal) -> tuple[Array, Array, Array, Array, Array]:
    d = p.event_shape[0]
    (m, of_p), (n, of_q) = _means_and_factors(p), _means_and_factors(q)
    middle = n.mean(0)
    m, n = m - middle, n - middle
    with np.errstate(all="ignore"):
        inverse = np.linalg.inv(of_q)
        weight = transposed(inverse) @ inverse
        pulled = (weight @ n[..., None])[..., 0]
        second = of_p @ transposed(of_p) + m[:, :, None] * m[:, None, :]
        moments = np.concatenate([second.reshape(-1, d * d), m], -1)
        coefficients = np.concatenate([weight.reshape(-1, d * d), -2.0 * pulled], -1)
        alone = (n * pulled).sum(-1) + _log_determinant(of_q)
        condition = (np.abs(inverse) @ np.abs(of_q)).sum(-1).max(-1)  # what the inverse may have lost (Skeel)
    return moments, -_log_determinant(of_p) - d, coefficients, alone, _error_of_sum(moments.shape[-1]) * condition


def _means_and_factors(x: MultivariateNormal) -> tuple[Array, Array]:
    d = x.event_shape[0]
    scale = np.asarray(x.scale_of_covariance(), np.float64)
    mean = np.broadcast_to(np.asarray(x.loc, np.float64), (*x.batch_shape, d)).reshape(-1, d)
    return mean, np.broadcast_to(scale, (*x.batch_shape, d, d)).reshape(-1, d, d)


def _log_determinant(factor: Array) -> Array:
    return 2.0 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)


def _error_of_sum(count: int) -> Array:
    """What a sum of so many products may be off by, relative to the sum of their sizes."""
    return np.array((8.0 + math.sqrt(count)) * np.finfo(np.float64).eps)


def _taken(x: Distribution, places: Array) -> Distribution:
    """The batch of these members of a batch, counted as they lie."""
    if isinstance(x, Independent):
        dims = len(x.batch_shape)
        return Independent(_taken_of(x.base_distribution, places, dims), x.reinterpreted_batch_ndims)
    return _taken_of(x, places, len(x.batch_shape))


def _taken_of(x: Distribution, places: Array, dims: int) -> Distribution:
    """The same of the first axes of a batch."""
    given = {}
    for name, value in x._given.items():
        wide = np.broadcast_to(value, x.batch_shape + getattr(type(x), name).split(value.shape)[1])
        given[name] = wide.reshape(-1, *wide.shape[dims:])[places]
    return x._rebuilt(given)
