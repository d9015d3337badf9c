"""The nodes of PyTorch's graph that stand for a call, and for its derivatives.

A result is bent by p and q, and linear in the directions of its derivatives: so five nodes are enough. `Value` leads to
`Slopes` in reverse mode and to `SlopesAlong` a direction in forward mode, both of these to `HessianProduct` or
`HessianAlong` two directions, and these nowhere. Each is a node of its own, since only the arguments of those does
PyTorch unwrap where transforms of ``torch.func`` stand around a call.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np

from klnumba import tensors
from klnumba.derivatives import By, OfCells, OfRows

torch: Any = importlib.import_module("torch")  # whoever comes here has a tensor
Call = OfRows | OfCells
F = TypeVar("F", bound=Callable[..., Any])
NO_MORE = "klnumba computes first and second derivatives: products of the second are not differentiated further"


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
    def forward(p: Any, q: Any, call: Call) -> Any:
        assert call.value is not None
        return call.value(p, q)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _save(ctx, [x if isinstance(x, torch.Tensor) else kept(x) for x in inputs[:2]])
        ctx.call, ctx.dtype = inputs[2], output.dtype

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        if upstream is None:
            return (None,) * 3
        found = _by_sides(Slopes, ctx.needs_input_grad[:2], *_saved(ctx), upstream, ctx.call)
        return *found, None

    @staticmethod
    def jvp(ctx: Any, move_p: Any, move_q: Any, *_: Any) -> Any:
        return SlopesAlong.apply(*_saved(ctx), move_p, move_q, ctx.call, ctx.dtype)

    @staticmethod
    def vmap(info: Any, dims: Any, p: Any, q: Any, call: Call) -> Any:
        return _mapped(Value.apply, info.batch_size, dims, (p, q), call)


class Slopes(torch.autograd.Function):  # type: ignore[misc]
    """The derivatives of a call by its arguments, given those by its result."""

    @staticmethod
    @_described
    def forward(p: Any, q: Any, upstream: Any, call: Call, by: By) -> Any:
        return _wanted(call.slopes(p, q, _numbers(upstream), by), p, q)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _save(ctx, inputs[:3])
        ctx.call, ctx.by = inputs[3:]

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        if all(one is None for one in upstream):
            return (None,) * 5
        p, q, factors = _saved(ctx)
        moves, wanted = _in_places(upstream, ctx.by), ctx.needs_input_grad
        found = _by_sides(HessianProduct, wanted[:2], p, q, factors, *moves, ctx.call)
        along = SlopesAlong.apply(p, q, *moves, ctx.call, factors.dtype) if wanted[2] else None
        return *found, along, None, None

    @staticmethod
    def jvp(ctx: Any, move_p: Any, move_q: Any, move: Any, *_: Any) -> Any:
        p, q, factors = _saved(ctx)
        found = []
        if move_p is not None or move_q is not None:
            found.append(HessianProduct.apply(p, q, factors, move_p, move_q, ctx.call, ctx.by))
        if move is not None:
            found.append(Slopes.apply(p, q, move, ctx.call, ctx.by))
        return tuple(map(_sum, zip(*found, strict=True)))

    @staticmethod
    def vmap(info: Any, dims: Any, p: Any, q: Any, upstream: Any, call: Call, by: By) -> Any:
        return _mapped(Slopes.apply, info.batch_size, dims, (p, q, upstream), call, by)


class SlopesAlong(torch.autograd.Function):  # type: ignore[misc]
    """The derivative of a call in the direction in which its arguments move."""

    @staticmethod
    @_described
    def forward(p: Any, q: Any, move_p: Any, move_q: Any, call: Call, dtype: Any) -> Any:
        return _result(call.slopes_along(p, q, _moves(move_p, move_q)), dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _save(ctx, inputs[:4])
        ctx.call, ctx.dtype = inputs[4:]

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        if upstream is None:
            return (None,) * 6
        p, q, *moves = _saved(ctx)
        wanted = ctx.needs_input_grad
        found = _by_sides(HessianProduct, wanted[:2], p, q, upstream, *moves, ctx.call)
        along = _by_sides(Slopes, wanted[2:4], p, q, upstream, ctx.call)
        return *found, *along, None, None

    @staticmethod
    def jvp(ctx: Any, move_p: Any, move_q: Any, turn_p: Any, turn_q: Any, *_: Any) -> Any:
        p, q, *moves = _saved(ctx)
        found = []
        if move_p is not None or move_q is not None:
            found.append(HessianAlong.apply(p, q, *moves, move_p, move_q, ctx.call, ctx.dtype))
        if turn_p is not None or turn_q is not None:
            found.append(SlopesAlong.apply(p, q, turn_p, turn_q, ctx.call, ctx.dtype))
        return _sum(found)

    @staticmethod
    def vmap(info: Any, dims: Any, p: Any, q: Any, move_p: Any, move_q: Any, call: Call, dtype: Any) -> Any:
        return _mapped(SlopesAlong.apply, info.batch_size, dims, (p, q, move_p, move_q), call, dtype)


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
    def forward(p: Any, q: Any, upstream: Any, move_p: Any, move_q: Any, call: Call, by: By) -> Any:
        found = call.hessian_product(p, q, _numbers(upstream), _moves(move_p, move_q), by)
        return _wanted(found, p, q)

    @staticmethod
    def vmap(info: Any, dims: Any, p: Any, q: Any, upstream: Any, move_p: Any, move_q: Any, call: Call, by: By) -> Any:
        arguments = p, q, upstream, move_p, move_q
        return _mapped(HessianProduct.apply, info.batch_size, dims, arguments, call, by)


class HessianAlong(Last):
    """The second derivative of a call in two directions in which its arguments move."""

    @staticmethod
    @_described
    def forward(p: Any, q: Any, *rest: Any) -> Any:
        *moves, call, dtype = rest
        return _result(call.hessian_along(p, q, _moves(*moves[:2]), _moves(*moves[2:])), dtype)

    @staticmethod
    def vmap(info: Any, dims: Any, p: Any, q: Any, *rest: Any) -> Any:
        *moves, call, dtype = rest
        return _mapped(HessianAlong.apply, info.batch_size, dims, (p, q, *moves), call, dtype)


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
    return upstream if upstream.is_cuda else upstream.resolve_neg().numpy()


def _moves(*moves: Any) -> Any:
    """The directions in which arguments move, in float64; None for one that stays."""
    return tuple(None if move is None else move.cpu().double().resolve_neg().numpy() for move in moves)


def _wanted(found: Any, p: Any, q: Any) -> tuple[Any, ...]:
    """Derivatives that are there, as tensors of the dtypes of their arguments."""
    return tuple(_as_tensor(out).to(x.dtype) for out, x in zip(found, (p, q), strict=True) if out is not None)


def _result(found: Any, dtype: Any) -> Any:
    return _as_tensor(np.asarray(found)).to(dtype)


def _as_tensor(found: Any) -> Any:
    return torch.from_numpy(np.asarray(found, order="C")) if isinstance(found, np.ndarray) else found


def _by_sides(node: Any, by: By, *arguments: Any) -> list[Any]:
    """What a node finds by the sides that are wanted, None in the places of the others.

    Where nothing is recorded there is no node to be made, which takes longer than many a call.
    """
    if not any(by):
        return [None, None]
    run = node.apply if tensors.is_recorded(*arguments) else node.forward
    return _in_places(run(*arguments, by), by)


def _in_places(found: Any, by: By) -> list[Any]:
    left = iter(found)
    return [next(left) if wanted else None for wanted in by]


def _sum(found: Any) -> Any:
    first, *rest = found
    return sum(rest, first)


# --- over a batch -----------------------------------------------------------------------------------------------------


def _mapped(node: Callable[..., Any], size: int, dims: Any, arguments: tuple[Any, ...], call: Call, *rest: Any) -> Any:
    """What a node finds for each member of a batch, and along which axis: that of dims in each argument, or None."""
    dims = [dim if isinstance(dim, int) else None for dim in dims[: len(arguments)]]  # a list has one for each number
    if not size:
        raise RuntimeError("torch.func.vmap: the batch is empty, and no call tells the shape of a result")
    arguments = tuple(map(_on_the_host, arguments))
    given = [x for x in arguments if x is not None]
    if any(getattr(x, "is_cuda", False) for x in given):
        raise NotImplementedError("torch.func.vmap: not of tensors on a CUDA device; give the batch as one more axis")
    shapes = [_shape_of_one(x, dim) for x, dim in zip(arguments[:2], dims, strict=False) if x is not None]
    whole = np.broadcast_shapes(*shapes)
    expand = len(arguments) > 2  # derivatives by an argument have its shape
    if all(hasattr(x, "expand") for x in given) and call.by_row(whole) and not (expand and set(shapes) != {whole}):
        placed = [_in_front(x, dim, size if expand else 0, len(whole)) for x, dim in zip(arguments, dims, strict=True)]
        found = node(*placed, call.behind_a_batch(len(whole)), *rest)
    else:
        members = ([_member(x, dim, k) for x, dim in zip(arguments, dims, strict=True)] for k in range(size))
        found = _stacked([node(*member, call, *rest) for member in members])
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


def _in_front(x: Any, dim: int | None, size: int, ndim: int) -> Any:
    """An argument whose first axis is that of the batch, before `ndim` of its own; one that has none gets `size`."""
    if x is None or (dim is None and not size):
        return x
    if dim is None:
        return x.expand(size, *x.shape)
    first = x.movedim(dim, 0)
    missing = 0 if size else ndim - (x.ndim - 1)
    return first.reshape(first.shape[0], *(1,) * missing, *first.shape[1:])


def _member(x: Any, dim: int | None, k: int) -> Any:
    return x if dim is None else x.select(dim, k)


def _stacked(found: list[Any]) -> Any:
    if isinstance(found[0], tuple):
        return tuple(map(torch.stack, zip(*found, strict=True)))
    return torch.stack(found)
