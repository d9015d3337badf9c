"""Distributions of functions of a draw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np

from klnumba.distributions.apart import apart
from klnumba.distributions.distribution import Distribution, Support
from klnumba.distributions.holder import Holder, distribution
from klnumba.distributions.named import is_even, named
from klnumba.distributions.registry import divergence, register_kl
from klnumba.distributions.transform import Transform
from klnumba.distributions.transforms import AffineTransform, ExpTransform, PowerTransform

IDENTITIES = (AffineTransform(0.0, 1.0), PowerTransform(1.0))


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
    The moments are known where every transform is an ``AffineTransform``; the entropy also where an ``ExpTransform``
    follows, and powers and multiples of that.

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
        if any(isinstance(axis, tuple) for axis in base.event_shape):
            raise ValueError("TransformedDistribution: base_distribution is a Joint: transform each of its blocks")
        chain = tuple(transforms) if isinstance(transforms, Iterable) else (transforms,)
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
        for transform, low, high in self.reaches():
            least, largest = transform.domain()
            if np.any((low < least) | (high > largest)):
                raise ValueError(
                    f"TransformedDistribution: {transform!r} must be given numbers from {least} to {largest}, but they "
                    f"reach from {low} to {high}"
                )

    def one(self, at: tuple[int, ...], shape: tuple[int, ...] | None = None) -> Self:
        """The distribution at one place of the batch, broadcast to `shape`."""
        wide = self.batch_shape if shape is None else shape
        numbers = wide + self.base_distribution.event_shape
        transforms = [x.one(at, numbers) for x in self.transforms]
        return self._like(TransformedDistribution, self.base_distribution.one(at, wide), transforms)

    def with_axes(self, place: int, count: int) -> Self:
        """The same batch with `count` more axes of length 1 before the axis at `place`."""
        behind = len(self.batch_shape) - place
        base = self.base_distribution
        if len(base.batch_shape) >= behind:
            base = base.with_axes(len(base.batch_shape) - behind, count)
        of_numbers = behind + len(base.event_shape)
        return self._like(TransformedDistribution, base, [x.with_axes(of_numbers, count) for x in self.transforms])

    def reaches(self) -> Iterator[tuple[Transform, Any, Any]]:
        """Each transform, and from where to where the numbers lie that it is given; all, where that is not known."""
        try:
            low, high, _ = self.base_distribution.support
        except NotImplementedError:
            low, high = -math.inf, math.inf
        for transform in self.transforms:
            yield transform, low, high
            try:
                low, high = transform.image(low, high)
            except NotImplementedError:
                low, high = -math.inf, math.inf

    @property
    def support(self) -> Support:
        low, high, discrete = self.base_distribution.support
        for transform in self.transforms:
            low, high = transform.image(low, high)
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
        """The entropy, in nats: that of the base, and, of a continuous one, the mean logarithm of the slopes."""
        if self.base_distribution.support.discrete:
            self.check_injective()
            return self._full(self.base_distribution.entropy())
        shape = self.batch_shape + self.event_shape
        logs = np.broadcast_to(self._mean_log_slope(), shape)
        axes = tuple(range(len(self.batch_shape), len(shape)))
        return self._full(self.base_distribution.entropy() + logs.sum(axes))

    def _mean_log_slope(self) -> Any:
        """The expected logarithm of the absolute slope of the whole chain."""
        total: Any = np.zeros(())
        log_mean: Any = None  # the expected logarithm of what a transform is given, where it is known
        for i, transform in enumerate(self.transforms):
            if isinstance(transform, AffineTransform):
                loc, scale = transform.parameters["loc"], transform.parameters["scale"]
                total = total + np.log(np.abs(scale))
                kept = log_mean is not None and np.all(loc == 0.0) and np.all(scale > 0.0)
                log_mean = log_mean + np.log(scale) if kept else None
            elif isinstance(transform, ExpTransform):
                log_mean = TransformedDistribution(self.base_distribution, self.transforms[:i]).mean
                total = total + log_mean
            elif isinstance(transform, PowerTransform) and log_mean is not None:
                exponent = transform.parameters["exponent"]
                total = total + np.log(np.abs(exponent)) + (exponent - 1.0) * log_mean
                log_mean = exponent * log_mean
            else:
                raise NotImplementedError(f"TransformedDistribution: the entropy behind {transform!r} is not known")
        return total

    def origin(self, y: Any) -> Any:
        """What the transforms move to y."""
        for transform, _, high in reversed(list(self.reaches())):
            y = transform.inverse(y, high)
        return y

    def flat(self) -> TransformedDistribution:
        """The same, of a base that is not transformed itself."""
        base = self.base_distribution
        if not isinstance(base, TransformedDistribution):
            return self
        return TransformedDistribution(base.base_distribution, base.transforms + self.transforms).flat()

    def named(self) -> Distribution:
        """The distribution of another family that this is; itself where it is none."""
        flat = self.flat()
        return named(flat.base_distribution, flat.transforms) or self

    def counterpart(self, other: Distribution) -> Distribution:
        """The other as what transforms make of a base, if it is a family that the last ones of these make."""
        parts = apart(other)
        if parts is None:
            return other
        base, chain = parts
        chains = (chain, chain[:-1]) if chain[-1] in IDENTITIES else (chain,)  # this may do without a scale of 1
        made = (TransformedDistribution(base, transforms) for transforms in chains)
        mine = self.flat()
        return next((x for x in made if shared(mine, x)), other)

    def before(self, count: int) -> Distribution:
        """What the last so many transforms are applied to, by the name of its family if it has one."""
        left = self.transforms[: len(self.transforms) - count]
        return TransformedDistribution(self.base_distribution, left).named()

    def injective(self) -> list[bool]:
        """Of each transform, whether no two numbers that it is given become one."""
        return [bool(np.all(transform.injective(low, high))) for transform, low, high in self.reaches()]

    def check_injective(self) -> None:
        """Refuse a chain that makes one number of several."""
        for (transform, low, high), fine in zip(self.reaches(), self.injective(), strict=True):
            if not fine:
                raise NotImplementedError(
                    f"TransformedDistribution: {transform!r} is not injective on numbers from {low} to {high}, so "
                    "that what holds of the base distributions is a bound only"
                )


def shared(p: TransformedDistribution, q: TransformedDistribution) -> int:
    """How many of the last transforms are equal, and keep apart what tells the two distributions from each other."""
    count = 0
    for (one, low, high), (other, least, most) in zip(*(reversed([*x.reaches()]) for x in (p, q)), strict=False):
        if one != other:
            break
        injective = np.all(one.injective(np.minimum(low, least), np.maximum(high, most)))
        # what loses the sign alone loses nothing where either sign is as likely
        if not injective and not (np.all(one.even()) and all(is_even(x.before(count + 1)) for x in (p, q))):
            break
        count += 1
    return count


def behind(p: TransformedDistribution, q: TransformedDistribution) -> tuple[Distribution, Distribution]:
    """What the last transforms, which have to be equal and injective where there is mass, are applied to.

    That is the two base distributions, or families that the first transforms make of them.
    """
    p, q = p.flat(), q.flat()
    count = shared(p, q)
    first, second = p.before(count), q.before(count)
    if isinstance(first, TransformedDistribution) or isinstance(second, TransformedDistribution):
        matched = second.counterpart(first), first.counterpart(second)
        if matched != (first, second):
            return matched
        for one in (p, q):
            one.check_injective()
        raise NotImplementedError(
            "KL of transformed distributions is known for equal transforms, injective on the numbers of both, not for "
            f"{list(p.transforms)} and {list(q.transforms)}"
        )
    return first, second


@register_kl(TransformedDistribution, TransformedDistribution)
def transformed(p: TransformedDistribution, q: TransformedDistribution) -> Any:
    """That of what the last transforms are applied to."""
    return divergence(*behind(p, q))
