"""Mixtures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from klnumba.distributions.categorical import Categorical
from klnumba.distributions.distribution import Distribution, Support
from klnumba.distributions.holder import Holder, distribution
from klnumba.distributions.joint import by_block


class Mixture(Holder):
    """A draw from one of several distributions of a family, itself chosen at random.

    The divergence between mixtures has no closed form, and none is registered; ``method="bounds"`` gives bounds.
    That of `Delta` from a mixture is known.

    Parameters
    ----------
    mixture_distribution : Categorical
        Which component is drawn from.
    component_distribution : Distribution
        The components, along the last axis of its batch.

    Examples
    --------
    >>> from klnumba.distributions import Categorical, Mixture, Normal
    >>> d = Mixture(Categorical([0.25, 0.75]), Normal([0.0, 4.0], 1.0))
    >>> float(d.mean), float(d.variance)
    (3.0, 4.0)
    """

    mixture_distribution: Categorical
    component_distribution: Distribution

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution) -> None:
        choice = distribution("Mixture", "mixture_distribution", mixture_distribution, Categorical)
        parts = distribution("Mixture", "component_distribution", component_distribution)
        if parts.batch_shape[-1:] != (choice.count,):
            raise ValueError(
                f"Mixture: component_distribution must have a last axis of {choice.count} in its batch, which is "
                f"{parts.batch_shape}"
            )
        try:
            shape = np.broadcast_shapes(choice.batch_shape, parts.batch_shape[:-1])
        except ValueError:
            raise ValueError(
                f"Mixture: batch shapes {choice.batch_shape} and {parts.batch_shape[:-1]} do not broadcast"
            ) from None
        super().__init__(shape, parts.event_shape, mixture_distribution=choice, component_distribution=parts)

    def one(self, at: tuple[int, ...], shape: tuple[int, ...] | None = None) -> Self:
        """The distribution at one place of the batch, broadcast to `shape`."""
        wide = self.batch_shape if shape is None else shape
        parts = (*wide, self.mixture_distribution.count)
        choice, component = self.mixture_distribution.one(at, wide), self.component_distribution.one(at, parts)
        return self._like(Mixture, choice, component)

    def _broken(self) -> Any:
        choice, parts = self.mixture_distribution._broken(), self.component_distribution._broken()
        return np.broadcast_to(choice | parts.any(-1), self.batch_shape)

    @property
    def support(self) -> Any:
        """From where to where draws lie; of components that are a `Joint`, those of each of its blocks."""
        return by_block(self._support_of, self.component_distribution)

    @property
    def mean(self) -> Any:
        """The mean; of components that are a `Joint`, of each of its blocks."""
        return by_block(self._mean_of, self.component_distribution)

    @property
    def variance(self) -> Any:
        """The variance; of components that are a `Joint`, of each of its blocks."""
        return by_block(self._variance_of, self.component_distribution)

    def _support_of(self, parts: Distribution) -> Support:
        low, high, discrete = parts.support
        return Support(self._of_parts(np.min, low, parts), self._of_parts(np.max, high, parts), discrete)

    def _of_parts(self, choose: Callable[..., Any], ends: Any, parts: Distribution) -> Any:
        """The least or the largest over the components, where they differ in it."""
        batch, axes = parts.batch_shape, len(parts.event_shape)
        if np.ndim(ends) < len(batch):
            return ends
        wide = batch if np.ndim(ends) == len(batch) else batch + parts.event_shape
        return choose(np.broadcast_to(ends, wide), axis=-1 if wide == batch else -1 - axes)

    def _mean_of(self, parts: Distribution) -> Any:
        return self._full(self._over_components(parts.mean, parts), parts.event_shape)

    def _variance_of(self, parts: Distribution) -> Any:
        mean = np.expand_dims(self._over_components(parts.mean, parts), -1 - len(parts.event_shape))
        values = parts.variance + np.square(parts.mean - mean)
        return self._full(self._over_components(values, parts), parts.event_shape)

    def _over_components(self, values: Any, parts: Distribution) -> Any:
        """The mean of some numbers of each component over them."""
        weights, axes = self.mixture_distribution.probs, len(parts.event_shape)
        shape = np.broadcast_shapes(self.component_distribution.batch_shape + parts.event_shape, np.shape(values))
        wide = np.broadcast_to(values, shape)
        return np.sum(np.reshape(weights, weights.shape + (1,) * axes) * wide, -1 - axes)

    def entropy(self) -> Any:
        """Not known in closed form."""
        raise NotImplementedError("Mixture: the entropy has no closed form")

    def to_scipy(self) -> Any:
        """The same mixture as ``scipy.stats.Mixture``, which holds no batches, and continuous numbers alone."""
        from scipy import stats

        from klnumba.distributions.scipy_objects import new_scipy

        if not hasattr(stats, "Mixture"):
            raise NotImplementedError("Mixture: scipy.stats has no Mixture before SciPy 1.15")
        if self.batch_shape != ():
            raise ValueError(f"Mixture: scipy.stats.Mixture is one distribution, not {self.batch_shape}")
        parts = self.component_distribution
        if self.event_shape or parts.support.discrete:
            raise NotImplementedError(f"Mixture: scipy.stats.Mixture is of continuous numbers, not of {parts!r}")
        weights = np.asarray(self.mixture_distribution.probs, np.float64)
        return stats.Mixture([new_scipy(parts.one((i,))) for i in range(len(weights))], weights=weights / weights.sum())
