"""What a divergence comes down to: those of the parts, of the blocks, or of what transforms were made from."""

from __future__ import annotations

from typing import NamedTuple, cast

from klnumba.distributions.distribution import Distribution
from klnumba.distributions.independent import Independent, independent_independent, without
from klnumba.distributions.joint import Joint, joint_joint
from klnumba.distributions.registry import find
from klnumba.distributions.transformed_distribution import TransformedDistribution, behind, transformed
from klnumba.kernels.compiler import is_ours
from klnumba.tensors import no_graph

BY_PARTS = (independent_independent, joint_joint, transformed)  # whose derivatives are those of what they come down to


class Inner(NamedTuple):
    """The two distributions that a divergence comes down to, and how many axes of their batch it is a sum over."""

    p: Distribution
    q: Distribution
    summed: int = 0


def inner(p: Distribution, q: Distribution, summed: int = 0) -> Inner:
    """What both are independent draws of, or what the same transforms make both of."""
    if is_of_others(p, q):
        return Inner(p, q, summed)
    p, q = _without_nothing(p), _without_nothing(q)
    if isinstance(p, Independent) and isinstance(q, Independent):
        return inner(*_parts(p, q, summed))
    if isinstance(p, TransformedDistribution) and isinstance(q, TransformedDistribution) and _keep_apart(p, q):
        return inner(p.base_distribution, q.base_distribution, summed)
    return Inner(p, q, summed)


def inner_by_name(p: Distribution, q: Distribution, summed: int = 0) -> Inner:
    """The same with each transformed distribution as that of the family whose name it has, where it has one."""
    if is_of_others(p, q):
        return Inner(p, q, summed)
    p, q = _without_nothing(p), _without_nothing(q)
    if not is_of_others(_base(p), _base(q)):
        names = p.named(), q.named()
        p, q = (p, q) if any(isinstance(x, TransformedDistribution) for x in names) else names
    if isinstance(p, Independent) and isinstance(q, Independent):
        return inner_by_name(*_parts(p, q, summed))
    made = q.counterpart(p), p.counterpart(q)
    if made == (p, q) and isinstance(p, TransformedDistribution) and isinstance(q, TransformedDistribution):
        made = behind(p, q)
    return Inner(p, q, summed) if made == (p, q) else inner_by_name(*made, summed)


def is_of_others(p: Distribution, q: Distribution) -> bool:
    """Whether the pair that serves two distributions is none of this package: of that nothing more is known."""
    try:
        pair = find(type(p), type(q))
    except NotImplementedError:
        return False
    if is_ours(pair.function) or pair.compiled or p._is_mapped or q._is_mapped:
        return not is_ours(pair.function)
    with no_graph():
        return pair.function(p, q) is not NotImplemented  # which declines


def _base(x: Distribution) -> Distribution:
    """What transforms are applied to."""
    return x.flat().base_distribution if isinstance(x, TransformedDistribution) else x


def _parts(p: Independent, q: Independent, summed: int) -> Inner:
    """With the axes that belong to the draws of both put back into the batch."""
    count = min(p.reinterpreted_batch_ndims, q.reinterpreted_batch_ndims)
    return Inner(without(p, count), without(q, count), summed + count)


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
