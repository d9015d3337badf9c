"""The nodes of PyTorch's graph that stand for a closed form, and for its first and second derivatives."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from klnumba.distributions.torch_graph import Call, Place
from klnumba.tensors import is_recorded

torch: Any = importlib.import_module("torch")  # whoever comes here has a tensor
NO_MORE = "klnumba computes first and second derivatives: those of closed forms are not differentiated further"


class Divergence(torch.autograd.Function):  # type: ignore[misc]
    """A divergence."""

    @staticmethod
    def forward(ctx: Any, value: Any, call: Call, *tensors: Any) -> Any:
        ctx.call = call
        ctx.save_for_backward(*tensors)  # PyTorch watches over them
        return torch.from_numpy(np.array(value))

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        call, wanted = ctx.call, _wanted(ctx.call, ctx.needs_input_grad[2:])
        tensors = ctx.saved_tensors  # looked for also where they are not needed: PyTorch finds those that have changed
        if is_recorded(upstream, *tensors):
            slopes = Slopes.apply(upstream, call, wanted, *tensors)
        else:
            slopes = _slopes(upstream, call, wanted)
        found = dict(zip(wanted, slopes, strict=True))
        return None, None, *(found.get(place) for place in call.tensors)


class Slopes(torch.autograd.Function):  # type: ignore[misc]
    """The derivatives by tensors, given those by the divergence."""

    @staticmethod
    def forward(ctx: Any, upstream: Any, call: Call, wanted: list[Place], *tensors: Any) -> Any:
        ctx.call, ctx.wanted = call, wanted
        ctx.save_for_backward(upstream, *tensors)
        ctx.set_materialize_grads(False)
        return _slopes(upstream, call, wanted)

    @staticmethod
    def backward(ctx: Any, *directions: Any) -> Any:
        upstream, *tensors = ctx.saved_tensors
        moves = {place: x for place, x in zip(ctx.wanted, directions, strict=True) if x is not None}
        of_upstream, _, _, *of_tensors = ctx.needs_input_grad
        if not moves:
            return (None,) * (3 + len(tensors))
        wanted, given = _wanted(ctx.call, of_tensors), (list(moves), upstream, *moves.values(), *tensors)
        found = dict(zip(wanted, HessianProduct.apply(ctx.call, wanted, *given), strict=True)) if wanted else {}
        along = Along.apply(ctx.call, *given) if of_upstream else None
        return along, None, None, *(found.get(place) for place in ctx.call.tensors)


class Last(torch.autograd.Function):  # type: ignore[misc]
    """A node that has no derivatives. In silence one would pass for a constant."""

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        raise RuntimeError(NO_MORE)


class HessianProduct(Last):
    """What the derivatives change by as tensors move."""

    @staticmethod
    def forward(ctx: Any, call: Call, wanted: list[Place], moving: list[Place], upstream: Any, *others: Any) -> Any:
        moves = dict(zip(moving, map(_numbers, others), strict=False))
        return _as_tensors(call.hessian_product(_numbers(upstream), moves, wanted), call, wanted)


class Along(Last):
    """The derivative of the divergence as tensors move."""

    @staticmethod
    def forward(ctx: Any, call: Call, moving: list[Place], upstream: Any, *others: Any) -> Any:
        moves = dict(zip(moving, map(_numbers, others), strict=False))
        return torch.from_numpy(np.array(call.along(moves, tuple(upstream.shape)))).to(upstream.dtype)


def _slopes(upstream: Any, call: Call, wanted: list[Place]) -> tuple[Any, ...]:
    return _as_tensors(call.slopes(upstream.resolve_neg().numpy(), wanted), call, wanted)


def _wanted(call: Call, needed: Any) -> list[Place]:
    return [place for place, want in zip(call.tensors, needed, strict=True) if want]


def _numbers(x: Any) -> np.ndarray:
    return np.asarray(x.resolve_neg().double().numpy())


def _as_tensors(found: Iterator[np.ndarray], call: Call, wanted: list[Place]) -> tuple[Any, ...]:
    """Derivatives as tensors of the dtypes of those that they are by."""
    made = [torch.from_numpy(np.asarray(x, order="C")) for x in found]
    return tuple(x.to(call.tensors[place].dtype) for x, place in zip(made, wanted, strict=True))
