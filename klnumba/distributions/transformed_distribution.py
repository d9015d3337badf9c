"""Distributions of functions of a draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from klnumba.distributions.distribution import Distribution, Support
from klnumba.distributions.holder import Holder, distribution
from klnumba.distributions.registry import divergence, register_kl
from klnumba.distributions.transforms import AbsTransform, AffineTransform, StickBreakingTransform, Transform


class TransformedDistribution(Holder):
    """What transforms, one after the other, make of a draw.

    Parameters
    ----------
    base_distribution : Distribution
        What is drawn from.
    transforms : Transform or sequence of Transform
        The first one is applied first.

    Notes
    -----
    The moments and the entropy are known where every transform is an ``AffineTransform``.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import ExpTransform, Normal, TransformedDistribution
    >>> p = TransformedDistribution(Normal(1.0, 2.0), ExpTransform())
    >>> float(kl.kl_divergence(p, TransformedDistribution(Normal(0.0, 2.0), ExpTransform())))
    0.125
    """

    base_distribution: Distribution
    transforms: tuple[Transform, ...]

    def __init__(self, base_distribution: Distribution, transforms: Any) -> None:
        base = distribution("TransformedDistribution", "base_distribution", base_distribution)
        chain = (transforms,) if isinstance(transforms, Transform) else tuple(transforms)
        for found in chain:
            if not isinstance(found, Transform):
                raise TypeError(
                    f"TransformedDistribution: transforms must be Transform objects, not {type(found).__name__}"
                )
        shapes = [value.shape for found in chain for value in found.parameters.values()]
        shape: tuple[int, ...] | None
        try:
            shape = np.broadcast_shapes(base.batch_shape + base.event_shape, *shapes)
        except ValueError:
            shape = None
        cut = 0 if shape is None else len(shape) - len(base.event_shape)
        if shape is None or shape[cut:] != base.event_shape:
            raise ValueError(
                f"TransformedDistribution: transforms with parameters of shapes {shapes} do not fit a batch "
                f"{base.batch_shape} of draws {base.event_shape}"
            )
        event = base.event_shape
        added = sum(found.added for found in chain)
        if added and len(event) != 1:
            raise ValueError(f"TransformedDistribution: {list(chain)} are for vectors, not for draws {event}")
        if added:
            event = (event[0] + added,)
        super().__init__(shape[:cut], event, base_distribution=base, transforms=chain)

    @property
    def support(self) -> Support:
        low, high, discrete = self.base_distribution.support
        if any(isinstance(transform, StickBreakingTransform) for transform in self.transforms):
            return Support(0.0, 1.0)
        for transform in self.transforms:
            if isinstance(transform, AbsTransform):
                inside = (np.asarray(low) < 0) & (np.asarray(high) > 0)
                low, high = np.abs(low), np.abs(high)
                low, high = np.where(inside, 0.0, np.minimum(low, high))[()], np.maximum(low, high)
            else:
                low, high = transform(low), transform(high)
                low, high = np.minimum(low, high), np.maximum(low, high)
        return Support(low, high, discrete)

    def _slopes(self) -> list[Any]:
        """The scales of the transforms."""
        if not all(isinstance(transform, AffineTransform) for transform in self.transforms):
            raise NotImplementedError("TransformedDistribution: known only where every transform is an AffineTransform")
        return [transform.parameters["scale"] for transform in self.transforms]

    @property
    def mean(self) -> Any:
        self._slopes()
        value = self.base_distribution.mean
        for transform in self.transforms:
            value = transform(value)
        return self._full(value, self.event_shape)

    @property
    def variance(self) -> Any:
        value = self.base_distribution.variance
        for scale in self._slopes():
            value = value * np.square(scale)
        return self._full(value, self.event_shape)

    def entropy(self) -> Any:
        """The entropy, in nats."""
        slopes = self._slopes()
        if self.base_distribution.support.discrete:
            return self._full(self.base_distribution.entropy())
        shape = self.batch_shape + self.event_shape
        logs = np.zeros(shape)
        for scale in slopes:
            logs = logs + np.log(np.abs(scale))
        axes = tuple(range(len(self.batch_shape), len(shape)))
        return self._full(self.base_distribution.entropy() + logs.sum(axes))


@register_kl(TransformedDistribution, TransformedDistribution)
def transformed(p: TransformedDistribution, q: TransformedDistribution) -> Any:
    """That of the base distributions, if both have the same transforms, and these are injective."""
    for transform in (*p.transforms, *q.transforms):
        if not transform.injective:
            raise NotImplementedError(
                f"KL of transformed distributions: {transform!r} is not injective, so that of the base distributions "
                "is a bound only"
            )
    if p.transforms != q.transforms:
        raise NotImplementedError(
            f"KL of transformed distributions is known for equal transforms, not for {list(p.transforms)} and "
            f"{list(q.transforms)}"
        )
    return divergence(p.base_distribution, q.base_distribution)
