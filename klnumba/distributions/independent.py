"""Batches taken for single draws: vectors and arrays of independent numbers."""

from __future__ import annotations

import math
import operator
from typing import Any, Self

import numpy as np

from klnumba.distributions.delta import Delta
from klnumba.distributions.distribution import Distribution, Support
from klnumba.distributions.evaluate import evaluate_rows
from klnumba.distributions.holder import Holder, distribution
from klnumba.distributions.low_rank_multivariate_normal import LowRankMultivariateNormal, diagonal
from klnumba.distributions.multivariate_normal import MultivariateNormal
from klnumba.distributions.normal import Normal
from klnumba.distributions.positive_definite import excess, mahalanobis
from klnumba.distributions.registry import divergence, register_kl
from klnumba.formulas.elementary import two_sum


class Independent(Holder):
    """Independent draws of a batch of distributions, taken as one draw.

    Parameters
    ----------
    base_distribution : Distribution
        What the parts are drawn from.
    reinterpreted_batch_ndims : int
        How many axes of its batch, the last ones, belong to a draw.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Independent, Normal
    >>> p = Independent(Normal([[0.0, 1.0], [2.0, 3.0]], 1.0), 1)
    >>> p.batch_shape, p.event_shape
    ((2,), (2,))
    >>> kl.kl_divergence(p, Independent(Normal([0.0, 0.0], 1.0), 1))
    array([0.5, 6.5])
    """

    base_distribution: Distribution
    reinterpreted_batch_ndims: int
    of_a_batch = True

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int) -> None:
        base = distribution("Independent", "base_distribution", base_distribution)
        axes = len(base.batch_shape)
        try:
            count = operator.index(reinterpreted_batch_ndims)
        except TypeError:
            kind = type(reinterpreted_batch_ndims).__name__
            raise TypeError(f"Independent: reinterpreted_batch_ndims must be an integer, not {kind}") from None
        if not 0 <= count <= axes:
            raise ValueError(f"Independent: reinterpreted_batch_ndims must be from 0 to {axes}, but is {count}")
        cut = axes - count
        super().__init__(
            base.batch_shape[:cut],
            base.batch_shape[cut:] + base.event_shape,
            base_distribution=base,
            reinterpreted_batch_ndims=count,
        )

    def with_axes(self, place: int, count: int) -> Self:
        """The same batch with `count` more axes of length 1 before the axis at `place`."""
        return self._like(Independent, self.base_distribution.with_axes(place, count), self.reinterpreted_batch_ndims)

    def one(self, at: tuple[int, ...], shape: tuple[int, ...] | None = None) -> Self:
        """The distribution at one place of the batch, broadcast to `shape`."""
        cut = len(self.batch_shape)
        wide = self.batch_shape if shape is None else shape
        base = self.base_distribution.one(at, wide + self.base_distribution.batch_shape[cut:])
        return self._like(Independent, base, self.reinterpreted_batch_ndims)

    def named(self) -> Distribution:
        """The base where no axis belongs to a draw."""
        return self if self.reinterpreted_batch_ndims else self.base_distribution.named()

    def _broken(self) -> Any:
        axes = tuple(range(len(self.batch_shape), len(self.base_distribution.batch_shape)))
        return self.base_distribution._broken().any(axes)

    @property
    def support(self) -> Support:
        return self.base_distribution.support

    @property
    def mean(self) -> Any:
        return self.base_distribution.mean

    @property
    def variance(self) -> Any:
        return self.base_distribution.variance

    def entropy(self) -> Any:
        """The entropy, in nats: the sum of those of the parts."""
        return sum_of_last(np.asarray(self.base_distribution.entropy()), self.reinterpreted_batch_ndims)


def total(room: Any, row: Any) -> float:
    """The sum of a row, the rounding errors of the additions added last."""
    high = 0.0
    low = 0.0
    for x in row:
        high, rest = two_sum(high, x)
        low += rest
    return high + low if abs(high) < np.inf else high


def sum_of_last(values: np.ndarray, count: int) -> Any:
    """The sums over so many of the last axes."""
    shape = values.shape[: values.ndim - count]
    return evaluate_rows(total, [values], [count], shape, values.dtype)


def without(distribution: Independent, count: int) -> Distribution:
    """The same with so many axes of the draw put back into the batch."""
    left = distribution.reinterpreted_batch_ndims - count
    base = distribution.base_distribution
    return base if left == 0 else Independent(base, left)


def parts(distribution: Distribution) -> Distribution:
    """What the numbers of a draw are drawn from: the distribution itself, or the innermost base of an `Independent`."""
    return parts(distribution.base_distribution) if isinstance(distribution, Independent) else distribution


@register_kl(Independent, Independent)
def independent_independent(p: Independent, q: Independent) -> Any:
    """The sum of those of the parts."""
    count = min(p.reinterpreted_batch_ndims, q.reinterpreted_batch_ndims)
    return sum_of_last(np.asarray(divergence(without(p, count), without(q, count))), count)


def means_and_scales(distribution: Any) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the factor of the covariance, of a multivariate normal or of independent normal distributions."""
    if not isinstance(distribution, Independent):
        return distribution._given["loc"], distribution.scale_of_covariance()
    base = distribution.base_distribution
    if not isinstance(base, Normal) or distribution.reinterpreted_batch_ndims != 1:
        raise NotImplementedError(
            f"KL between a multivariate normal and an Independent is that of Independent(Normal, 1), not of {base!r}, "
            f"{distribution.reinterpreted_batch_ndims}"
        )
    return np.asarray(base.loc), diagonal(np.asarray(base.scale))


@register_kl(Independent, MultivariateNormal)
@register_kl(MultivariateNormal, Independent)
@register_kl(Independent, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, Independent)
def independent_normals(p: Any, q: Any) -> Any:
    """That of multivariate normal distributions by their `scale_tril`, which for independent ones is diagonal.

    Infinite where one of the two is an `Independent` of `Delta` distributions.
    """
    shape = np.broadcast_shapes(p.batch_shape, q.batch_shape)
    if isinstance(parts(p), Delta) or isinstance(parts(q), Delta):  # a density gives one place no probability
        return np.full(shape, math.inf, np.result_type(p.dtype, q.dtype))
    mean_p, scale_p = means_and_scales(p)
    mean_q, scale_q = means_and_scales(q)
    apart = mahalanobis(shape, mean_p, mean_q, scale_q)
    return (0.5 * (excess(shape, scale_p, scale_q) + apart)).astype(np.result_type(p.dtype, q.dtype))
