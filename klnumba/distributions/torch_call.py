"""A closed form and its derivatives, as PyTorch's nodes ask for them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from klnumba.derivatives import summed_to
from klnumba.distributions.distribution import Distribution
from klnumba.distributions.gradient import Asked, Gradient, Rule, is_count, rule
from klnumba.distributions.hessian import LEAST, hessian
from klnumba.distributions.independent import Independent, sum_of_last
from klnumba.distributions.inner import Inner
from klnumba.distributions.normal_hessian import Moves
from klnumba.distributions.registry import common_shape
from klnumba.distributions.registry import divergence as closed
from klnumba.reduction import unit_of

Place = tuple[str, str]  # "p" or "q", and the name of a parameter there
Shapes = dict[Place, tuple[int, ...]]
ADVICE = "a parameter requires a gradient: detach it or compute under torch.no_grad()"


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
    shapes: Shapes  # of the tensors, in their order
    of_batch: Any  # the call of a batch of such tensors
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
        found = hessian(*self.found[:2])(of_parts, factors, self._moves_of_parts(moves, np.ndim(of_parts)))
        return self._by_tensors(found, factors, by)

    def hessian_along(self, *given: Any) -> np.ndarray:
        """The second derivative of the value in two directions."""
        *_, moves, others = given
        of_parts, factors = self._ones()
        found = hessian(*self.found[:2])(of_parts, factors, self._moves_of_parts(others, np.ndim(of_parts)))
        return self._along(found, moves, np.shape(of_parts))

    def behind_a_batch(self, shapes: list[tuple[int, ...]]) -> Any:
        """That of as many distributions as there are directions, which are made anew."""
        return self.of_batch

    def _slopes(self, of_parts: Any, factors: np.ndarray, places: Collection[Place]) -> Gradient:
        """The derivatives by the parameters at some places."""
        found = self.derivatives or rule_of(self.found)
        return found(of_parts, Asked(factors, LEAST, places))

    def _ones(self) -> tuple[Any, np.ndarray]:
        """The divergences of the parts, and what each of them counts in the value."""
        of_parts = closed(*self.found[:2]) if self.of_parts is None else self.of_parts
        return of_parts, np.full(np.shape(of_parts), 1.0 / self.unit)

    def _along(self, found: Gradient, moves: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray:
        """Derivatives of the parts, of this shape, times moves, added up to the shape of the value."""
        slopes, total = found._asdict(), np.zeros(shape)
        for (side, name), move in self._moves_of_parts(moves, total.ndim).items():
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

    def _moves_of_parts(self, moves: Sequence[Any], ndim: int) -> Moves:
        """The moves of the parameters that move, their axes behind those of the batch of the parts."""
        families = {"p": type(self.found.p), "q": type(self.found.q)}
        found = {}
        for (side, name), move in zip(self.shapes, moves, strict=True):
            if move is None:
                continue
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


def call_of(
    p: Distribution, q: Distribution, base: float | None, found: Inner, shapes: Shapes, of_batch: Any,
    derivatives: Rule | None = None,
) -> Call:  # fmt: skip
    """The call of two distributions whose numbers are at hand."""
    with sys.modules["torch"].no_grad():
        value, of_parts = _values(p, q, base, found)
    return Call(found, np.asarray(value), of_parts, unit_of(base), shapes, of_batch, derivatives)


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


def refuse_counts(found: Inner, places: Iterable[Place]) -> None:
    """An error where derivatives by a count are wanted."""
    for side, name in places:
        family = type(getattr(found, side))
        if is_count(family, name):  # type: ignore[arg-type]
            raise NotImplementedError(f"{side}: {family.__name__} has no derivative by {name}, an integer: detach it")


def rule_of(found: Inner) -> Rule:
    """What gives the derivatives of a pair."""
    try:
        return rule(found.p, found.q)
    except NotImplementedError as reason:
        raise NotImplementedError(f"{reason}; {ADVICE}") from None
