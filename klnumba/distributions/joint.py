"""Independent distributions of any families, taken as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Self

import numpy as np

from klnumba.distributions.distribution import Distribution
from klnumba.distributions.holder import Holder, distribution
from klnumba.distributions.registry import divergence, register_kl


class Joint(Holder):
    """Independent draws from several distributions, which may be of different families, taken as one draw.

    Parameters
    ----------
    distributions : iterable of Distribution
        The blocks of a draw; their batches broadcast.

    Attributes
    ----------
    event_shape : tuple of tuple of int
        That of each block. `mean`, `variance` and `support` are tuples in the same way.

    Examples
    --------
    >>> import klnumba as kl
    >>> from klnumba.distributions import Gamma, Joint, Normal
    >>> p = Joint([Normal(1.0, 2.0), Gamma(2.0, [1.0, 3.0])])
    >>> p.batch_shape, p.event_shape
    ((2,), ((), ()))
    >>> kl.kl_divergence(p, Joint([Normal(0.0, 2.0), Gamma(2.0, 1.0)])).round(6)
    array([0.125     , 0.988891])
    """

    distributions: tuple[Distribution, ...]
    event_shape: Any

    def __init__(self, distributions: Iterable[Distribution]) -> None:
        try:
            listed = tuple(distributions)
        except TypeError:
            kind = type(distributions).__name__
            raise TypeError(f"Joint: distributions must be a list of Distribution objects, not {kind}") from None
        blocks = tuple(distribution("Joint", f"distributions[{i}]", x) for i, x in enumerate(listed))
        if not blocks:
            raise ValueError("Joint: distributions must be one or more, but there are none")
        shapes = [x.batch_shape for x in blocks]
        try:
            batch = np.broadcast_shapes(*shapes)
        except ValueError:
            raise ValueError(f"Joint: the batch shapes of the blocks do not broadcast: {shapes}") from None
        super().__init__(batch, tuple(x.event_shape for x in blocks), distributions=blocks)

    @property
    def support(self) -> Any:
        """Of each block."""
        return by_block(attrgetter("support"), self)

    @property
    def mean(self) -> Any:
        """Of each block."""
        return by_block(attrgetter("mean"), self)

    @property
    def variance(self) -> Any:
        """Of each block."""
        return by_block(attrgetter("variance"), self)

    def entropy(self) -> Any:
        """The entropy, in nats: the sum of those of the blocks."""
        total = sum(np.asarray(x.entropy(), np.float64) for x in self.distributions)
        return np.broadcast_to(total, self.batch_shape).astype(self.dtype)[()]

    def with_axes(self, place: int, count: int) -> Self:
        """The same batch with `count` more axes of length 1 before the axis at `place`."""
        before = [place - (len(self.batch_shape) - len(x.batch_shape)) for x in self.distributions]
        return self._like(
            Joint,
            [x if at < 0 else x.with_axes(at, count) for x, at in zip(self.distributions, before, strict=True)],
        )

    def one(self, at: tuple[int, ...], shape: tuple[int, ...] | None = None) -> Self:
        """The distribution at one place of the batch, broadcast to `shape`."""
        wide = self.batch_shape if shape is None else shape
        return self._like(Joint, [x.one(at, wide) for x in self.distributions])


def by_block(of: Callable[[Distribution], Any], x: Distribution) -> Any:
    """Something of a distribution; of a `Joint` a tuple of that of each block."""
    return tuple(by_block(of, block) for block in x.distributions) if isinstance(x, Joint) else of(x)


@register_kl(Joint, Joint)
def joint_joint(p: Joint, q: Joint) -> Any:
    """The sum of those of the blocks."""
    return sum(np.asarray(divergence(x, y)) for x, y in blocks(p, q))


def blocks(p: Joint, q: Joint) -> Iterable[tuple[Distribution, Distribution]]:
    """The blocks of p, each with that of q in its place."""
    counts = len(p.distributions), len(q.distributions)
    if counts[0] != counts[1]:
        raise ValueError(f"p, q: a Joint of {counts[0]} blocks and one of {counts[1]}")
    return zip(p.distributions, q.distributions, strict=True)
