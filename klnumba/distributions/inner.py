"""What a divergence comes down to: those of the parts, of the blocks, or of what transforms were made from."""

from __future__ import annotations

from typing import NamedTuple, cast

from klnumba.distributions.distribution import Distribution
from klnumba.distributions.independent import Independent, independent_independent, without
from klnumba.distributions.joint import Joint, joint_joint
from klnumba.distributions.registry import find
from klnumba.distributions.transformed_distribution import TransformedDistribution, transformed

BY_PARTS = (independent_independent, joint_joint, transformed)  # whose derivatives are those of what they come down to


class Inner(NamedTuple):
    """The two distributions that a divergence comes down to, and how many axes of their batch it is a sum over."""

    p: Distribution
    q: Distribution
    summed: int = 0


def inner(p: Distribution, q: Distribution, summed: int = 0, by_name: bool = False) -> Inner:
    """What both are independent draws of, or what the same transforms make both of.

    By name a transformed distribution is that of the family whose name it has, if both have one.
    """
    p, q = _by_name(p, q) if by_name else (_without_nothing(p), _without_nothing(q))
    if isinstance(p, Independent) and isinstance(q, Independent):
        count = min(p.reinterpreted_batch_ndims, q.reinterpreted_batch_ndims)
        return inner(without(p, count), without(q, count), summed + count, by_name)
    if isinstance(p, TransformedDistribution) and isinstance(q, TransformedDistribution) and _keep_apart(p, q):
        return inner(p.base_distribution, q.base_distribution, summed, by_name)
    return Inner(p, q, summed)


def _by_name(p: Distribution, q: Distribution) -> tuple[Distribution, Distribution]:
    p, q = _without_nothing(p), _without_nothing(q)
    names = p.named(), q.named()
    return (p, q) if any(isinstance(x, TransformedDistribution) for x in names) else names


def _without_nothing(x: Distribution) -> Distribution:
    """The base of what takes no axis for part of a draw."""
    if isinstance(x, Independent) and not x.reinterpreted_batch_ndims:
        return _without_nothing(x.base_distribution)
    return x


def _keep_apart(p: TransformedDistribution, q: TransformedDistribution) -> bool:
    """Whether the transforms of both are the same, and make no two numbers one."""
    return p.transforms == q.transforms and all(p.injective()) and all(q.injective())


def joints(found: Inner) -> tuple[Joint, Joint] | None:
    """The two whose divergence is the sum of those of blocks; None of others."""
    p, q = found.p, found.q
    both = isinstance(p, Joint) and isinstance(q, Joint) and find(type(p), type(q)).function is joint_joint
    return cast(tuple[Joint, Joint], (p, q)) if both else None
