"""Closed forms as nodes of PyTorch's graph: of distributions whose parameters are tensors that require grad."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from klnumba.derivatives import summed_to
from klnumba.distributions.distribution import Distribution
from klnumba.distributions.gradient import Asked, Gradient, Rule, is_count, rule
from klnumba.distributions.hessian import LEAST, hessian
from klnumba.distributions.independent import Independent, sum_of_last, without
from klnumba.distributions.normal_hessian import Moves
from klnumba.distributions.registry import common_shape
from klnumba.distributions.registry import divergence as closed
from klnumba.distributions.transformed_distribution import TransformedDistribution
from klnumba.reduction import unit_of
from klnumba.tensors import MAPPED, is_mapped

Place = tuple[str, str]  # "p" or "q", and the name of a parameter there
ADVICE = "a parameter requires a gradient: detach it or compute under torch.no_grad()"


class Inner(NamedTuple):
    """The two distributions that a divergence comes down to, and how many axes of their batch it is a sum over."""

    p: Distribution
    q: Distribution
    summed: int = 0


def inner(p: Distribution, q: Distribution, summed: int = 0) -> Inner:
    """What both are independent draws of, or what the same transforms make both of."""
    p, q = _without_nothing(p), _without_nothing(q)
    if isinstance(p, Independent) and isinstance(q, Independent):
        count = min(p.reinterpreted_batch_ndims, q.reinterpreted_batch_ndims)
        return inner(without(p, count), without(q, count), summed + count)
    if isinstance(p, TransformedDistribution) and isinstance(q, TransformedDistribution) and _keep_apart(p, q):
        return inner(p.base_distribution, q.base_distribution, summed)
    return Inner(p, q, summed)


def _without_nothing(x: Distribution) -> Distribution:
    """The base of what takes no axis for part of a draw."""
    if isinstance(x, Independent) and not x.reinterpreted_batch_ndims:
        return _without_nothing(x.base_distribution)
    return x


def _keep_apart(p: TransformedDistribution, q: TransformedDistribution) -> bool:
    """Whether the transforms of both are the same, and make no two numbers one."""
    return p.transforms == q.transforms and all(p.injective()) and all(q.injective())


@dataclass(frozen=True, eq=False)
class Call:
    """A divergence of which PyTorch wants derivatives by the tensors at some places, as `torch_nodes.Call`.

    The tensors are given once more by its methods' callers: the numbers are those that the distributions keep.
    """

    by_last_axes: ClassVar[bool] = False

    found: Inner
    numbers: np.ndarray  # the divergence itself
    of_parts: Any  # that of the parts; None where it is not known yet
    unit: float
    shapes: dict[Place, tuple[int, ...]]  # of the tensors, in their order
    anew: MappedCall
    derivatives: Rule | None = None  # None where it is not known yet

    def value(self, *_: Any) -> Any:
        """The divergence as a tensor."""
        return sys.modules["torch"].from_numpy(np.array(self.numbers))

    def slopes(self, *given: Any) -> Sequence[np.ndarray | None]:
        """The derivatives by tensors of what is made of the value, given those by the value itself."""
        *_, upstream, by = given
        of_parts, factors = self._parts(upstream)
        wanted = [place for place, want in zip(self.shapes, by, strict=True) if want]
        return self._by_tensors(self._slopes(of_parts, factors, wanted), factors, by)

    def slopes_along(self, *given: Any) -> np.ndarray:
        """The derivative of the value in a direction."""
        *_, moves = given
        of_parts, factors = self._ones()
        places = [place for place, move in zip(self.shapes, moves, strict=True) if move is not None]
        return self._along(self._slopes(of_parts, factors, places), moves, np.shape(of_parts))

    def hessian_product(self, *given: Any) -> Sequence[np.ndarray | None]:
        """What the slopes change by as the tensors move."""
        *_, upstream, moves, by = given
        of_parts, factors = self._parts(np.asarray(upstream, np.float64))
        found = hessian(*self.found[:2])(of_parts, factors, self._of_batch(moves, np.ndim(of_parts)))
        return self._by_tensors(found, factors, by)

    def hessian_along(self, *given: Any) -> np.ndarray:
        """The second derivative of the value in two directions."""
        *_, moves, others = given
        of_parts, factors = self._ones()
        found = hessian(*self.found[:2])(of_parts, factors, self._of_batch(others, np.ndim(of_parts)))
        return self._along(found, moves, np.shape(of_parts))

    def behind_a_batch(self, shapes: list[tuple[int, ...]]) -> MappedCall:
        """That of as many distributions as there are directions, which are made anew."""
        return self.anew

    def _slopes(self, of_parts: Any, factors: np.ndarray, places: Collection[Place]) -> Gradient:
        """The derivatives by the parameters at some places."""
        found = self.derivatives or _rule(self.found)
        return found(of_parts, Asked(factors, LEAST, places))

    def _ones(self) -> tuple[Any, np.ndarray]:
        """The divergences of the parts, and what each of them counts in the value."""
        of_parts = closed(*self.found[:2]) if self.of_parts is None else self.of_parts
        return of_parts, np.full(np.shape(of_parts), 1.0 / self.unit)

    def _along(self, found: Gradient, moves: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray:
        """Derivatives of the parts, of this shape, times moves, added up to the shape of the value."""
        slopes, total = found._asdict(), np.zeros(shape)
        for (side, name), move in self._of_batch(moves, total.ndim).items():
            term = _zero_where(move == 0.0, np.asarray(slopes[side][name], np.float64) * move)
            total = total + term.sum(tuple(range(total.ndim, term.ndim)))
        last = tuple(range(total.ndim - self.found.summed, total.ndim))
        return np.broadcast_to(total.sum(last), self.numbers.shape)

    def _parts(self, upstream: np.ndarray) -> tuple[Any, np.ndarray]:
        """The divergences of the parts, and the derivatives by each of them."""
        of_parts = closed(*self.found[:2]) if self.of_parts is None else self.of_parts
        in_nats = upstream if self.unit == 1.0 else upstream / upstream.dtype.type(self.unit)
        return of_parts, _over(in_nats, self.found.summed, np.shape(of_parts))

    def _by_tensors(self, found: Gradient, factors: np.ndarray, by: Sequence[bool]) -> Sequence[np.ndarray | None]:
        """The derivatives in the shapes of the tensors, zero where nothing uses a divergence."""
        unused = None if _is_used(factors) else factors == 0.0
        slopes = found._asdict()

        def in_place(place: Place) -> np.ndarray:
            side, name = place
            own = np.asarray(slopes[side][name])
            return summed_to(own if unused is None else _zero_where(unused, own), self.shapes[place])

        return [in_place(place) if wanted else None for place, wanted in zip(self.shapes, by, strict=True)]

    def _of_batch(self, moves: Sequence[Any], ndim: int) -> Moves:
        """The moves of the parameters that move, their axes behind those of the batch of the parts."""
        families = {"p": type(self.found.p), "q": type(self.found.q)}
        found = {}
        for (side, name), move in zip(self.shapes, moves, strict=True):
            if move is None:
                continue
            batch, own = getattr(families[side], name).split(move.shape)
            found[side, name] = move.reshape((1,) * (ndim - len(batch)) + batch + own)
        return found


@dataclass(frozen=True, eq=False)
class MappedCall:
    """A divergence whose parameters ``vmap`` gives out: it is made anew of the numbers that its methods are given.

    Before its own axes every tensor has those of the batches that ``vmap`` goes through.
    """

    by_last_axes: ClassVar[bool] = False

    p: Distribution
    q: Distribution
    base: float | None
    shapes: dict[Place, tuple[int, ...]]  # of the tensors of one member, in their order

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
        return self._differentiated(arguments, moves).slopes_along(self._placed(moves))

    def hessian_product(self, *given: Any) -> Sequence[np.ndarray | None]:
        """What the slopes change by as the tensors move."""
        *arguments, upstream, moves, by = given
        found = self._differentiated(arguments, by).hessian_product(upstream, self._placed(moves), by)
        return self._in_shape(found, arguments)

    def hessian_along(self, *given: Any) -> np.ndarray:
        """The second derivatives of the values in two directions each."""
        *arguments, moves, others = given
        return self._differentiated(arguments, moves).hessian_along(self._placed(moves), self._placed(others))

    def behind_a_batch(self, shapes: list[tuple[int, ...]]) -> MappedCall:
        """Itself: the axes of batches are those that the tensors have beside their own."""
        return self

    def _call(self, arguments: Sequence[Any]) -> Call:
        """That of the distributions that have these numbers."""
        numbers: dict[str, dict[str, Any]] = {"p": {}, "q": {}}
        for (side, name), x in zip(self.shapes, self._placed(arguments), strict=True):
            numbers[side][name] = x
        leaves = inner(self.p, self.q)
        p, q = _renewed(self.p, leaves.p, numbers["p"]), _renewed(self.q, leaves.q, numbers["q"])
        shapes = {(side, name): tuple(x.shape) for side in "pq" for name, x in numbers[side].items()}
        return self.call_of(p, q, shapes)

    def call_of(self, p: Distribution, q: Distribution, shapes: dict[Place, tuple[int, ...]]) -> Call:
        """The call of two distributions whose numbers are at hand."""
        torch: Any = importlib.import_module("torch")
        found = inner(p, q)
        with torch.no_grad():
            value, of_parts = _values(p, q, self.base, found)
        return Call(found, np.asarray(value), of_parts, unit_of(self.base), shapes, self)

    def _differentiated(self, arguments: Sequence[Any], by: Sequence[Any]) -> Call:
        """The same, where derivatives are wanted by some tensors."""
        call = self._call(arguments)
        wanted = (place for place, one in zip(self.shapes, by, strict=True) if one is not None and one is not False)
        refuse_counts(call.found, wanted)
        return call

    def _placed(self, given: Sequence[Any]) -> list[Any]:
        """Tensors, or moves of them, whose batches have as many axes each, behind those that ``vmap`` goes through."""
        families = inner(self.p, self.q)
        ndim = max(_axes(self.p, families.p), _axes(self.q, families.q))
        found = []
        for (place, own), x in zip(self.shapes.items(), given, strict=True):
            side, name = place
            batch, event = getattr(type(getattr(families, side)), name).split(own)
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
    """What is made of a distribution, made of the one that has other numbers."""
    if one is leaf:
        return leaf._rebuilt({**leaf._given, **numbers}) if numbers else leaf
    base = _renewed(cast(Any, one).base_distribution, leaf, numbers)
    if isinstance(one, Independent):
        return one._like(Independent, base, one.reinterpreted_batch_ndims)
    return one._like(TransformedDistribution, base, cast(TransformedDistribution, one).transforms)


def _over(upstream: np.ndarray, summed: int, shape: tuple[int, ...]) -> np.ndarray:
    """The derivatives by each of the parts that are added up, which may have been broadcast before."""
    if not summed and upstream.shape == shape:
        return upstream
    wide = np.reshape(upstream, upstream.shape + (1,) * summed)
    return summed_to(np.broadcast_to(wide, np.broadcast_shapes(wide.shape, shape)), shape)


def _is_used(factors: np.ndarray) -> bool:
    """Whether no derivative is multiplied by zero afterwards."""
    same = factors.size and not any(factors.strides)
    return bool(factors[(0,) * factors.ndim]) if same else bool(factors.all())


def _zero_where(unused: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """What is multiplied by zero has no derivative that matters, though it may be NaN."""
    return np.where(np.reshape(unused, unused.shape + (1,) * (slopes.ndim - unused.ndim)), 0.0, slopes)


def divergence(p: Distribution, q: Distribution, base: float | None) -> Any:
    """KL(p || q) as a tensor, with a way back to the parameters that are tensors.

    Raises
    ------
    NotImplementedError
        If the pair has no derivatives.
    """
    found = inner(p, q)
    _refuse_untaken(found)
    tensors = {place: x for side, one in zip("pq", found[:2], strict=True) for place, x in _tensors(one, side)}
    shapes = {place: tuple(x.shape) for place, x in tensors.items()}
    from klnumba.torch_nodes import Value  # which loads PyTorch

    anew = MappedCall(p, q, base, shapes)
    if any(map(is_mapped, tensors.values())):
        return Value.apply(anew, *tensors.values())
    refuse_counts(found, shapes)
    return Value.apply(replace(anew.call_of(p, q, shapes), derivatives=_rule(found)), *tensors.values())


def _values(p: Distribution, q: Distribution, base: float | None, found: Inner) -> tuple[Any, Any]:
    """The divergence, and that of the parts, where it is found on the way."""
    if found == (p, q, 0):
        value = closed(p, q, base)
        return value, value
    if base is None and p.event_shape == q.event_shape and _sums_of(found, p, q):
        of_parts = np.asarray(closed(found.p, found.q))
        if of_parts.shape[: of_parts.ndim - found.summed] == common_shape(p, q):
            return sum_of_last(of_parts, found.summed), of_parts
    return closed(p, q, base), None


def _sums_of(found: Inner, *both: Distribution) -> bool:
    """Whether the two are one `Independent` of the parts each, whose divergences are added up at once."""
    return all(
        isinstance(x, Independent) and x.base_distribution is part and not x._unchecked
        for x, part in zip(both, found[:2], strict=True)
    )


def _tensors(one: Distribution, side: str) -> Iterator[tuple[Place, Any]]:
    """Those that PyTorch wants the gradient by."""
    family = type(one).__name__
    for name, x in one._tensors.items():
        if x._version != one._versions[name]:
            raise RuntimeError(f"{side}: {family}: {name} was changed in place since; make the distribution anew")
        yield (side, name), x


def refuse_counts(found: Inner, places: Iterable[Place]) -> None:
    """An error where derivatives by a count are wanted."""
    for side, name in places:
        family = type(getattr(found, side))
        if is_count(family, name):  # type: ignore[arg-type]
            raise NotImplementedError(f"{side}: {family.__name__} has no derivative by {name}, an integer: detach it")


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


def _rule(found: Inner) -> Rule:
    """What gives the derivatives of a pair."""
    try:
        return rule(found.p, found.q)
    except NotImplementedError as reason:
        raise NotImplementedError(f"{reason}; {ADVICE}") from None
