"""The nodes of PyTorch's graph that stand for a call, and for its derivatives.

A result is bent by its arguments, and linear in the directions of its derivatives: so five nodes are enough. `Value`
leads to `Slopes` in reverse mode and to `SlopesAlong` a direction in forward mode, both of these to `HessianProduct` or
`HessianAlong` two directions, and these nowhere. Each is a node of its own, since only the arguments of those does
PyTorch unwrap where transforms of ``torch.func`` stand around a call. A node is given the call, what is no tensor, the
derivatives by the result if it needs them, the arguments, and moves of these.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from klnumba import tensors

torch: Any = importlib.import_module("torch")  # whoever comes here has a tensor
By = tuple[bool, ...]  # by which arguments derivatives are wanted
F = TypeVar("F", bound=Callable[..., Any])
NO_MORE = "klnumba computes first and second derivatives: products of the second are not differentiated further"


class Call(Protocol):
    """A function of some arguments, which come before all else that is given; what it finds are arrays.

    Moves are the directions in which arguments move, None for one that stays; found by the arguments that are not
    wanted is None.
    """

    @property
    def by_last_axes(self) -> bool:
        """Whether arguments of several shapes broadcast with each other as arrays do."""

    @property
    def value(self) -> Callable[..., Any]:
        """The result, in PyTorch's tensors, of the arguments."""

    @property
    def slopes(self) -> Callable[..., Any]:
        """Derivatives by the arguments, from those by the result, and which are wanted."""

    @property
    def slopes_along(self) -> Callable[..., Any]:
        """The derivative of the result, from moves."""

    @property
    def hessian_product(self) -> Callable[..., Any]:
        """What `slopes` change by, from derivatives by the result, moves, and which are wanted."""

    @property
    def hessian_along(self) -> Callable[..., Any]:
        """The second derivative of the result, from moves, and others."""

    def behind_a_batch(self, shapes: list[tuple[int, ...]]) -> Call | None:
        """The call of arguments of these shapes with the axis of a batch before; None if there is none."""


class _Bound:
    """Arguments of a call, as a signature binds them."""

    kwargs: ClassVar[dict[str, Any]] = {}

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.args = args

    def apply_defaults(self) -> None:
        """There are none."""


class _ByPlace(inspect.Signature):
    """The signature of a function that is called with all its arguments by place."""

    def bind(self, *args: Any) -> Any:
        return _Bound(args)


def _described(forward: F) -> F:
    """PyTorch binds the arguments of a node at every call, which takes longer than many a call: these are bound."""
    forward.__signature__ = _ByPlace(list(inspect.signature(forward).parameters.values()))  # type: ignore[attr-defined]
    return forward


class Value(torch.autograd.Function):  # type: ignore[misc]
    """The result of a call."""

    @staticmethod
    @_described
    def forward(call: Call, *arguments: Any) -> Any:
        return call.value(*arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.call, *arguments = inputs
        _save(ctx, [x if isinstance(x, torch.Tensor) else kept(x) for x in arguments])
        ctx.dtype = output.dtype

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        _, *wanted = ctx.needs_input_grad
        if upstream is None:
            return None, *(None for _ in wanted)
        return None, *_by_sides(Slopes, wanted, ctx.call, upstream, *_saved(ctx))

    @staticmethod
    def jvp(ctx: Any, _: Any, *moves: Any) -> Any:
        return SlopesAlong.apply(ctx.call, ctx.dtype, *_saved(ctx), *moves)

    @staticmethod
    def vmap(info: Any, dims: Any, call: Call, *arguments: Any) -> Any:
        return _mapped(Value.apply, info.batch_size, dims, arguments, slice(len(arguments)), call)


class Slopes(torch.autograd.Function):  # type: ignore[misc]
    """The derivatives of a call by its arguments, given those by its result."""

    @staticmethod
    @_described
    def forward(call: Call, by: By, upstream: Any, *arguments: Any) -> Any:
        return _wanted(call.slopes(*arguments, _numbers(upstream), by), arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.call, ctx.by, *rest = inputs
        _save(ctx, rest)

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        _, _, of_factors, *wanted = ctx.needs_input_grad
        if all(one is None for one in upstream):
            return None, None, None, *(None for _ in wanted)
        factors, *arguments = _saved(ctx)
        moves = _in_places(upstream, ctx.by)
        found = _by_sides(HessianProduct, wanted, ctx.call, factors, *arguments, *moves)
        along = SlopesAlong.apply(ctx.call, factors.dtype, *arguments, *moves) if of_factors else None
        return None, None, along, *found

    @staticmethod
    def jvp(ctx: Any, _: Any, __: Any, move: Any, *moves: Any) -> Any:
        factors, *arguments = _saved(ctx)
        found = []
        if _any(moves):
            found.append(HessianProduct.apply(ctx.call, ctx.by, factors, *arguments, *moves))
        if move is not None:
            found.append(Slopes.apply(ctx.call, ctx.by, move, *arguments))
        return tuple(map(_sum, zip(*found, strict=True)))

    @staticmethod
    def vmap(info: Any, dims: Any, call: Call, by: By, *given: Any) -> Any:
        return _mapped(Slopes.apply, info.batch_size, dims, given, slice(1, None), call, by)


class SlopesAlong(torch.autograd.Function):  # type: ignore[misc]
    """The derivative of a call in the direction in which its arguments move."""

    @staticmethod
    @_described
    def forward(call: Call, dtype: Any, *given: Any) -> Any:
        arguments, moves = _parts(given, 2)
        return _result(call.slopes_along(*arguments, _moves(moves)), dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.call, ctx.dtype, *given = inputs
        _save(ctx, given)

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        _, _, *wanted = ctx.needs_input_grad
        if upstream is None:
            return None, None, *(None for _ in wanted)
        given = _saved(ctx)
        of_arguments, of_moves = _parts(wanted, 2)
        found = _by_sides(HessianProduct, of_arguments, ctx.call, upstream, *given)
        along = _by_sides(Slopes, of_moves, ctx.call, upstream, *_parts(given, 2)[0])
        return None, None, *found, *along

    @staticmethod
    def jvp(ctx: Any, _: Any, __: Any, *moving: Any) -> Any:
        given = _saved(ctx)
        moves, turns = _parts(moving, 2)
        found = []
        if _any(moves):
            found.append(HessianAlong.apply(ctx.call, ctx.dtype, *given, *moves))
        if _any(turns):
            found.append(SlopesAlong.apply(ctx.call, ctx.dtype, *_parts(given, 2)[0], *turns))
        return _sum(found)

    @staticmethod
    def vmap(info: Any, dims: Any, call: Call, dtype: Any, *given: Any) -> Any:
        return _mapped(SlopesAlong.apply, info.batch_size, dims, given, slice(len(given) // 2), call, dtype)


class Last(torch.autograd.Function):  # type: ignore[misc]
    """A node that has no derivatives. In silence one would pass for a constant."""

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing is kept."""

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        raise RuntimeError(NO_MORE)

    @staticmethod
    def jvp(ctx: Any, *moves: Any) -> Any:
        raise RuntimeError(NO_MORE)


class HessianProduct(Last):
    """What the derivatives of a call change by as its arguments move."""

    @staticmethod
    @_described
    def forward(call: Call, by: By, upstream: Any, *given: Any) -> Any:
        arguments, moves = _parts(given, 2)
        return _wanted(call.hessian_product(*arguments, _numbers(upstream), _moves(moves), by), arguments)

    @staticmethod
    def vmap(info: Any, dims: Any, call: Call, by: By, *given: Any) -> Any:
        return _mapped(HessianProduct.apply, info.batch_size, dims, given, slice(1, 1 + len(given) // 2), call, by)


class HessianAlong(Last):
    """The second derivative of a call in two directions in which its arguments move."""

    @staticmethod
    @_described
    def forward(call: Call, dtype: Any, *given: Any) -> Any:
        arguments, moves, others = _parts(given, 3)
        return _result(call.hessian_along(*arguments, _moves(moves), _moves(others)), dtype)

    @staticmethod
    def vmap(info: Any, dims: Any, call: Call, dtype: Any, *given: Any) -> Any:
        return _mapped(HessianAlong.apply, info.batch_size, dims, given, slice(len(given) // 3), call, dtype)


# --- what a node keeps ------------------------------------------------------------------------------------------------


def _save(ctx: Any, arguments: Any) -> None:
    """Keep arguments for the derivatives, of which those that nobody asks for come as None."""
    kept_tensors = [x if isinstance(x, torch.Tensor) else None for x in arguments]
    ctx.save_for_backward(*kept_tensors)
    ctx.save_for_forward(*kept_tensors)
    ctx.others = [None if isinstance(x, torch.Tensor) else x for x in arguments]
    ctx.set_materialize_grads(False)


def _saved(ctx: Any) -> list[Any]:
    return [other if x is None else x for x, other in zip(ctx.saved_tensors, ctx.others, strict=True)]


def kept(x: Any) -> Any:
    """An array as it is now, whatever becomes of it before `backward`: PyTorch watches over tensors alone."""
    if isinstance(x, np.ndarray) or (hasattr(x, "__cuda_array_interface__") and hasattr(x, "copy")):
        return x.copy()
    return x


# --- from tensors to arrays and back ----------------------------------------------------------------------------------


def _numbers(upstream: Any) -> Any:
    """The derivatives by a result, as those by the arguments are computed from them."""
    return upstream if upstream.is_cuda else _array(upstream)


def _moves(moves: Any) -> Any:
    """The directions in which arguments move, in float64; None for one that stays."""
    return tuple(None if move is None else _array(move.cpu().double()) for move in moves)


def _array(x: Any) -> np.ndarray:
    """The numbers of a tensor, of which one that PyTorch knows to be zero has none in memory."""
    if x._is_zerotensor():
        return np.zeros(tuple(x.shape))
    found: np.ndarray = tensors.cells_of(x, "a derivative", torch).resolve_neg().numpy()
    return found


def _wanted(found: Any, arguments: Any) -> tuple[Any, ...]:
    """Derivatives that are there, as tensors of the dtypes of their arguments."""
    return tuple(_as_tensor(out).to(x.dtype) for out, x in zip(found, arguments, strict=True) if out is not None)


def _result(found: Any, dtype: Any) -> Any:
    return _as_tensor(np.asarray(found)).to(dtype)


def _as_tensor(found: Any) -> Any:
    return torch.from_numpy(np.require(found, requirements=["C", "W"])) if isinstance(found, np.ndarray) else found


def _by_sides(node: Any, wanted: Iterable[bool], call: Call, *given: Any) -> list[Any]:
    """What a node finds by the arguments that are wanted, None in the places of the others.

    Where nothing is recorded there is no node to be made, which takes longer than many a call.
    """
    by = tuple(wanted)
    if not any(by):
        return [None] * len(by)
    run = node.apply if tensors.is_recorded(*given) else node.forward
    return _in_places(run(call, by, *given), by)


def _in_places(found: Any, by: By) -> list[Any]:
    left = iter(found)
    return [next(left) if wanted else None for wanted in by]


def _parts(given: Any, count: int) -> list[Any]:
    """So many lists of one length, one after the other."""
    size = len(given) // count
    return [given[k * size : (k + 1) * size] for k in range(count)]


def _any(moves: Any) -> bool:
    return any(move is not None for move in moves)


def _sum(found: Any) -> Any:
    first, *rest = found
    return sum(rest, first)


# --- over a batch -----------------------------------------------------------------------------------------------------


def _mapped(
    node: Callable[..., Any], size: int, dims: Any, given: tuple[Any, ...], place: slice, call: Call, *rest: Any
) -> Any:
    """What a node finds for each member of a batch, and along which axis: that of dims in what is given, or None.

    In that place are the arguments of the call; beside them, derivatives by its result and moves.
    """
    dims = [dim if isinstance(dim, int) else None for dim in dims[-len(given) :]]  # a list has one for each number
    given = tuple(map(_on_the_host, given))
    if any(getattr(x, "is_cuda", False) for x in given):
        raise NotImplementedError("torch.func.vmap: not of tensors on a CUDA device; give the batch as one more axis")
    shapes = [_shape_of_one(x, dim) for x, dim in zip(given[place], dims[place], strict=True) if x is not None]
    values_alone = len(given[place]) == len(given)
    # derivatives by an argument have its shape
    alike = values_alone or not call.by_last_axes or len(set(shapes)) == 1
    placeable = alike and all(hasattr(x, "expand") for x in given if x is not None)
    one_call = call.behind_a_batch(shapes) if placeable else None
    if one_call is None:
        if not size:
            raise RuntimeError("torch.func.vmap: the batch is empty, and no call tells the shape of a result")
        members = ([_member(x, dim, k) for x, dim in zip(given, dims, strict=True)] for k in range(size))
        found = _stacked([node(call, *rest, *member) for member in members])
    else:
        # An argument without the batch: broadcasts as it is, or from an axis of 1; derivatives by it have the batch.
        wide = (None if call.by_last_axes else 1) if values_alone else size
        placed = [_in_front(x, dim, wide, max(map(len, shapes))) for x, dim in zip(given, dims, strict=True)]
        found = node(one_call, *rest, *placed)
    return found, tuple(0 for _ in found) if isinstance(found, tuple) else 0


def _on_the_host(x: Any) -> Any:
    """A plain array or a list as a tensor, which can be expanded."""
    if type(x) not in (np.ndarray, list, tuple):
        return x
    try:
        return torch.from_numpy(np.asarray(x))
    except (TypeError, ValueError):  # a dtype, or a layout, that PyTorch does not have
        return x


def _shape_of_one(x: Any, dim: int | None) -> tuple[int, ...]:
    """The shape of an argument without the axis of the batch."""
    return tuple(n for k, n in enumerate(np.shape(x)) if k != dim)


def _in_front(x: Any, dim: int | None, wide: int | None, ndim: int) -> Any:
    """An argument whose first axis is that of the batch.

    One that has none gets an axis of length `wide`. If that is None, it stays as it is, and in the others as many axes
    of length 1 follow the first as let them broadcast by their last ones, `ndim` in all.
    """
    if x is None or (dim is None and wide is None):
        return x
    if dim is None:
        return x.expand(wide, *x.shape)
    first = x.movedim(dim, 0)
    missing = ndim - (x.ndim - 1) if wide is None else 0
    return first.reshape(first.shape[0], *(1,) * missing, *first.shape[1:])


def _member(x: Any, dim: int | None, k: int) -> Any:
    return x if dim is None else x.select(dim, k)


def _stacked(found: list[Any]) -> Any:
    if isinstance(found[0], tuple):
        return tuple(map(torch.stack, zip(*found, strict=True)))
    return torch.stack(found)
