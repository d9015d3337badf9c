"""Closed forms as nodes of PyTorch's graph: of distributions whose parameters are tensors that require grad."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from klnumba.distributions.distribution import Distribution
from klnumba.distributions.joint import Joint, blocks, joint_joint
from klnumba.distributions.registry import common_shape, find
from klnumba.distributions.registry import divergence as closed
from klnumba.distributions.torch_batch import BatchCall
from klnumba.distributions.torch_call import ADVICE, Inner, Place, call_of, inner, refuse_counts, rule_of
from klnumba.reduction import unit_of
from klnumba.tensors import MAPPED, transforms_around, version


def divergence(p: Distribution, q: Distribution, base: float | None) -> Any:
    """KL(p || q) as a tensor, with a way back to the parameters that are tensors.

    Raises
    ------
    NotImplementedError
        If the pair has no derivatives.
    """
    found = inner(p, q)
    if _are_joint(found):
        return _of_blocks(found, base)
    _refuse_untaken(found)
    tensors = {place: x for side, one in zip("pq", found[:2], strict=True) for place, x in _tensors(one, side)}
    shapes = {place: tuple(x.shape) for place, x in tensors.items()}
    from klnumba.torch_nodes import Value  # which loads PyTorch

    mapped = (p._is_mapped or q._is_mapped) and transforms_around()
    of_batch = BatchCall(p, q, base, shapes, kept=not mapped)
    if mapped:
        return Value.apply(of_batch, *tensors.values())
    refuse_counts(found, shapes)
    call = call_of(p, q, base, found, shapes, of_batch, rule_of(found))
    return Value.apply(call, *tensors.values())


def _are_joint(found: Inner) -> bool:
    """Whether a divergence is the sum of those of blocks."""
    both = isinstance(found.p, Joint) and isinstance(found.q, Joint)
    return both and find(type(found.p), type(found.q)).function is joint_joint


def _of_blocks(found: Inner, base: float | None) -> Any:
    """The sum of the divergences of the blocks, each of which has a way back of its own."""
    torch = sys.modules["torch"]
    p, q, summed = cast(tuple[Joint, Joint, int], found)
    shape, dtype = common_shape(p, q), getattr(torch, np.result_type(p.dtype, q.dtype).name)
    terms = (
        divergence(x, y, None) if x._in_graph or y._in_graph else torch.as_tensor(closed(x, y)) for x, y in blocks(p, q)
    )
    total = sum(term.to(dtype) for term in terms).expand(shape)
    value = total.sum(tuple(range(len(shape) - summed, len(shape)))) if summed else total
    return value / unit_of(base)


def _tensors(one: Distribution, side: str) -> Iterator[tuple[Place, Any]]:
    """Those that PyTorch wants the gradient by."""
    family = type(one).__name__
    for name, x in one._tensors.items():
        if version(x) != one._versions[name]:
            raise RuntimeError(f"{side}: {family}: {name} was changed in place since; make the distribution anew")
        yield (side, name), x


def _refuse_untaken(found: Inner) -> None:
    """An error where PyTorch wants derivatives by what a pair is not computed from."""
    for one in (found.p, found.q):
        if one._in_graph and not one._tensors:
            pair = f"KL({type(found.p).__name__} || {type(found.q).__name__})"
            if one._is_mapped:
                raise NotImplementedError(f"{pair}: what a {type(one).__name__} is made of is {MAPPED}")
            raise NotImplementedError(
                f"{pair}: no gradient goes to what a {type(one).__name__} is made of or from, unless the transforms of "
                f"both are the same; {ADVICE}"
            )
