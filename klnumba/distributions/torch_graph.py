"""Closed forms as nodes of PyTorch's graph: of distributions whose parameters are tensors that require grad."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from klnumba.distributions.distribution import Distribution
from klnumba.distributions.independent import sum_of_last
from klnumba.distributions.inner import Inner, inner, joints
from klnumba.distributions.joint import Joint, blocks
from klnumba.distributions.registry import check_events, common_shape
from klnumba.distributions.registry import divergence as closed
from klnumba.distributions.torch_batch import BatchCall
from klnumba.distributions.torch_call import ADVICE, Place, call_of, refuse_counts, rule_of
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
    if (both := joints(found)) is not None:
        return _of_blocks(*both, found.summed, base)
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


def _of_blocks(p: Joint, q: Joint, summed: int, base: float | None) -> Any:
    """The sum of the divergences of the blocks, each of which has a way back of its own."""
    from klnumba.torch_nodes import Value

    torch = sys.modules["torch"]
    check_events(p, q)
    shape, dtype = common_shape(p, q), getattr(torch, np.result_type(p.dtype, q.dtype).name)
    terms = (
        divergence(x, y, None) if x._in_graph or y._in_graph else torch.as_tensor(closed(x, y)) for x, y in blocks(p, q)
    )
    total = sum(term.to(dtype) for term in terms).expand(shape)
    return (Value.apply(SumOfLast(summed), total) if summed else total) / unit_of(base)


@dataclass(frozen=True, eq=False)
class SumOfLast:
    """The sums over the last axes, as `torch_nodes.Call`: PyTorch's own depend on how many threads it has."""

    by_last_axes: ClassVar[bool] = False

    count: int

    def value(self, x: Any) -> Any:
        """The sums as a tensor."""
        return sys.modules["torch"].from_numpy(np.asarray(self._sums(x.detach().resolve_neg().numpy())))

    def slopes(self, x: Any, upstream: np.ndarray, by: Sequence[bool]) -> Sequence[np.ndarray | None]:
        """Those by a sum, for each of its terms."""
        wide = upstream.reshape(upstream.shape + (1,) * self.count)
        return [np.broadcast_to(wide, x.shape) if want else None for want in by]

    def slopes_along(self, x: Any, moves: Sequence[Any]) -> Any:
        """The sums of the moves."""
        return self._sums(moves[0])

    def hessian_product(self, x: Any, upstream: Any, moves: Any, by: Sequence[bool]) -> Sequence[np.ndarray | None]:
        """None: a sum is not bent."""
        return [np.zeros(x.shape) if want else None for want in by]

    def hessian_along(self, x: Any, *_: Any) -> np.ndarray:
        """The same in two directions."""
        return np.zeros(x.shape[: x.ndim - self.count])

    def behind_a_batch(self, shapes: list[tuple[int, ...]]) -> SumOfLast:
        """Itself: the last axes stay the last."""
        return self

    def _sums(self, terms: np.ndarray) -> Any:
        return sum_of_last(np.ascontiguousarray(terms), self.count)


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
                raise NotImplementedError(f"{pair}: what the {type(one).__name__} is made of is {MAPPED}")
            raise NotImplementedError(
                f"{pair}: no gradient goes to what the {type(one).__name__} is made of or from, unless the transforms "
                f"of both are the same and keep all numbers apart; {ADVICE}"
            )
