"""Closed forms as nodes of PyTorch's graph: of distributions whose parameters are tensors that require grad."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, NamedTuple

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

Place = tuple[str, str]  # "p" or "q", and the name of a parameter there


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


class Call(NamedTuple):
    """A divergence of which PyTorch wants the gradient."""

    found: Inner
    of_parts: Any  # the divergence of these; None where it is not known yet
    derivatives: Rule
    unit: float
    tensors: dict[Place, Any]

    def slopes(self, upstream: np.ndarray, wanted: list[Place]) -> Iterator[np.ndarray]:
        """The derivatives by tensors of what is made of the value, given those by the value itself."""
        of_parts, factors = self._parts(upstream)
        found = self.derivatives(of_parts, Asked(factors, LEAST, wanted))
        return self._by_tensors(found, factors, wanted)

    def hessian_product(self, upstream: np.ndarray, moves: Moves, wanted: list[Place]) -> Iterator[np.ndarray]:
        """What these change by as the tensors move."""
        of_parts, factors = self._parts(np.asarray(upstream, np.float64))
        found = hessian(*self.found[:2])(of_parts, factors, self._of_batch(moves, np.ndim(of_parts)))
        return self._by_tensors(found, factors, wanted)

    def along(self, moves: Moves, shape: tuple[int, ...]) -> np.ndarray:
        """The derivative of the value, of this shape, in that direction."""
        of_parts, _ = self._parts(np.ones(shape))
        each = Asked(np.full(np.shape(of_parts), 1.0 / self.unit), LEAST, list(moves))
        slopes = self.derivatives(of_parts, each)._asdict()
        total = np.zeros(np.shape(of_parts))
        for (side, name), move in self._of_batch(moves, total.ndim).items():
            term = _zero_where(move == 0.0, np.asarray(slopes[side][name], np.float64) * move)
            total = total + term.sum(tuple(range(total.ndim, term.ndim)))
        last = tuple(range(total.ndim - self.found.summed, total.ndim))
        return np.broadcast_to(total.sum(last), shape)

    def _parts(self, upstream: np.ndarray) -> tuple[Any, np.ndarray]:
        """The divergences of the parts, and the derivatives by each of them."""
        p, q, summed = self.found
        of_parts = closed(p, q) if self.of_parts is None else self.of_parts
        in_nats = upstream if self.unit == 1.0 else upstream / upstream.dtype.type(self.unit)
        return of_parts, _over(in_nats, summed, np.shape(of_parts))

    def _by_tensors(self, found: Gradient, factors: np.ndarray, wanted: list[Place]) -> Iterator[np.ndarray]:
        """The derivatives in the shapes of the tensors, none where nothing uses a divergence."""
        unused = None if _is_used(factors) else factors == 0.0
        for side, name in wanted:
            slopes = np.asarray((found.p if side == "p" else found.q)[name])
            used = slopes if unused is None else _zero_where(unused, slopes)
            yield summed_to(used, tuple(self.tensors[side, name].shape))

    def _of_batch(self, moves: Moves, ndim: int) -> Moves:
        """The moves of parameters, their axes behind those of the batch of the parts."""
        families = {"p": type(self.found.p), "q": type(self.found.q)}
        found = {}
        for (side, name), move in moves.items():
            batch, own = getattr(families[side], name).split(move.shape)
            found[side, name] = move.reshape((1,) * (ndim - len(batch)) + batch + own)
        return found


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
    torch: Any = importlib.import_module("torch")
    found = inner(p, q)
    with torch.no_grad():
        value, of_parts = _values(p, q, base, found)
    tensors = {place: x for side, one in zip("pq", found[:2], strict=True) for place, x in _tensors(one, side)}
    from klnumba.distributions import graph_nodes  # which loads PyTorch

    return graph_nodes.Divergence.apply(
        value, Call(found, of_parts, _rule(found), unit_of(base), tensors), *tensors.values()
    )


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
        if is_count(type(one), name):  # type: ignore[arg-type]
            raise NotImplementedError(f"{side}: {family} has no derivative by {name}, an integer: detach it")
        if x._version != one._versions[name]:
            raise RuntimeError(f"{side}: {family}: {name} was changed in place since; make the distribution anew")
        yield (side, name), x


def _rule(found: Inner) -> Rule:
    """What gives the derivatives, of a pair that has them by all that PyTorch wants them of."""
    advice = "a parameter requires a gradient: detach it or compute under torch.no_grad()"
    for one in (found.p, found.q):
        if one._in_graph and not one._tensors:
            pair = f"KL({type(found.p).__name__} || {type(found.q).__name__})"
            raise NotImplementedError(
                f"{pair}: no gradient goes to what a {type(one).__name__} is made of or from, unless the transforms of "
                f"both are the same; {advice}"
            )
    try:
        return rule(found.p, found.q)
    except NotImplementedError as reason:
        raise NotImplementedError(f"{reason}; {advice}") from None
