"""A closed form of each member of a batch that ``vmap`` goes through, all of them in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from klnumba.distributions.distribution import Distribution
from klnumba.distributions.independent import Independent
from klnumba.distributions.inner import Inner, inner
from klnumba.distributions.torch_call import Call, Shapes, call_of, refuse_counts
from klnumba.distributions.transformed_distribution import TransformedDistribution


@dataclass(frozen=True, eq=False)
class BatchCall:
    """A divergence that is made anew for a whole batch, as `torch_nodes.Call`.

    Before its own axes every tensor has those of the batches that ``vmap`` goes through: of members, whose numbers are
    those that the methods are given, or of directions in which the derivatives of one divergence are wanted.
    """

    by_last_axes: ClassVar[bool] = False

    p: Distribution
    q: Distribution
    base: float | None
    shapes: Shapes  # of the tensors of one member, in their order
    kept: bool  # whether the numbers are those that p and q keep, whatever has become of the tensors since

    def value(self, *arguments: Any) -> Any:
        """The divergences as a tensor."""
        return self._call(arguments).value()

    def slopes(self, *given: Any) -> Sequence[np.ndarray | None]:
        """The derivatives by the tensors."""
        *arguments, upstream, by = given
        found = self._differentiated(arguments, by).slopes(upstream, by)
        return self._in_shape(found, arguments)

    def slopes_along(self, *given: Any) -> np.ndarray:
        """The derivatives of the values in a direction each."""
        *arguments, moves = given
        return self._moved(arguments, moves).slopes_along(self._placed(moves))

    def hessian_product(self, *given: Any) -> Sequence[np.ndarray | None]:
        """What the slopes change by as the tensors move."""
        *arguments, upstream, moves, by = given
        found = self._differentiated(arguments, by).hessian_product(upstream, self._placed(moves), by)
        return self._in_shape(found, arguments)

    def hessian_along(self, *given: Any) -> np.ndarray:
        """The second derivatives of the values in two directions each."""
        *arguments, moves, others = given
        return self._moved(arguments, moves).hessian_along(self._placed(moves), self._placed(others))

    def behind_a_batch(self, shapes: list[tuple[int, ...]]) -> BatchCall:
        """Itself: the axes of batches are those that the tensors have beside their own."""
        return self

    def _call(self, arguments: Sequence[Any]) -> Call:
        """That of the distributions that have these numbers."""
        leaves = inner(self.p, self.q)
        given = self._kept(leaves, arguments) if self.kept else arguments
        numbers: dict[str, dict[str, Any]] = {"p": {}, "q": {}}
        for (side, name), x in zip(self.shapes, self._placed(given), strict=True):
            numbers[side][name] = x
        try:
            p, q = _renewed(self.p, leaves.p, numbers["p"]), _renewed(self.q, leaves.q, numbers["q"])
        except ValueError:
            self._check(leaves, given)
            raise
        shapes = {(side, name): tuple(x.shape) for side in "pq" for name, x in numbers[side].items()}
        return call_of(p, q, self.base, inner(p, q), shapes, self)

    def _kept(self, leaves: Inner, arguments: Sequence[Any]) -> list[Any]:
        """The numbers that the distributions keep, in the shapes of the arguments."""
        own = (getattr(leaves, side)._given[name] for side, name in self.shapes)
        return [np.broadcast_to(numbers, x.shape) for numbers, x in zip(own, arguments, strict=True)]

    def _check(self, leaves: Inner, given: Sequence[Any]) -> None:
        """An error that names the place of a number that breaks a rule, without the axes that are added here."""
        for (side, name), x in zip(self.shapes, given, strict=True):
            family = type(getattr(leaves, side))
            getattr(family, name).constraint.check(family.__name__, name, np.asarray(x))

    def _differentiated(self, arguments: Sequence[Any], by: Sequence[bool]) -> Call:
        """The same, where derivatives are wanted by some tensors."""
        call = self._call(arguments)
        refuse_counts(call.found, (place for place, one in zip(self.shapes, by, strict=True) if one))
        return call

    def _moved(self, arguments: Sequence[Any], moves: Sequence[Any]) -> Call:
        """The same, where some tensors move."""
        return self._differentiated(arguments, [move is not None for move in moves])

    def _placed(self, given: Sequence[Any]) -> list[Any]:
        """Tensors, or moves of them, whose batches have as many axes each, behind those that ``vmap`` goes through."""
        leaves = inner(self.p, self.q)
        moving = {side for side, _ in self.shapes}
        ndim = max(
            _axes(one, leaf) if side in moving else len(one.batch_shape) + leaves.summed
            for side, one, leaf in (("p", self.p, leaves.p), ("q", self.q, leaves.q))
        )
        found = []
        for (place, own), x in zip(self.shapes.items(), given, strict=True):
            side, name = place
            batch, event = getattr(type(getattr(leaves, side)), name).split(own)
            before = () if x is None else tuple(x.shape[: x.ndim - len(own)])
            wide = before + (1,) * (ndim - len(batch)) + batch + event
            found.append(None if x is None else x.reshape(wide))
        return found

    def _in_shape(self, found: Sequence[np.ndarray | None], arguments: Sequence[Any]) -> list[np.ndarray | None]:
        """Derivatives in the shapes of the tensors as they were given."""
        return [None if out is None else out.reshape(x.shape) for out, x in zip(found, arguments, strict=True)]


def _axes(one: Distribution, leaf: Distribution) -> int:
    """How many axes a batch of a leaf must have, so that those before them stay before all of what is made of it."""
    if one is leaf:
        return len(leaf.batch_shape)
    inside = one.reinterpreted_batch_ndims if isinstance(one, Independent) else 0
    return max(len(one.batch_shape) + inside, _axes(cast(Any, one).base_distribution, leaf))


def _renewed(one: Distribution, leaf: Distribution, numbers: dict[str, Any]) -> Distribution:
    """What is made of a distribution, made of the one that has other numbers, which are at hand."""
    if not numbers:
        return one
    if one is leaf:
        made = leaf._rebuilt({**leaf._given, **numbers})
    else:
        base = _renewed(cast(Any, one).base_distribution, leaf, numbers)
        if isinstance(one, Independent):
            made = one._like(Independent, base, one.reinterpreted_batch_ndims)
        else:
            made = one._like(TransformedDistribution, base, cast(TransformedDistribution, one).transforms)
    made.__dict__.update(_in_graph=False, _is_mapped=False)
    return made
