"""Gradients for PyTorch: the array functions as nodes of its graph.

A result is computed as ever, in every bit, and its derivatives by the loops of `kernels.slopes` and
`kernels.log_slopes` when they are asked for. They have none of their own.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from klnumba import arrays, labelled
from klnumba.gpu.borders import any_on_device
from klnumba.gradients import OfCells, OfRows

Call = OfRows | OfCells


@functools.cache
def _node() -> Any:
    """The function of PyTorch's that computes a call, loaded when the first tensor asks for gradients."""
    torch: Any = importlib.import_module("torch")

    class Slopes(torch.autograd.Function):  # type: ignore[misc]
        """The derivatives of a call, as a node of their own: only of those does `torch.func` unwrap the tensors."""

        @staticmethod
        def forward(p: Any, q: Any, upstream: Any, call: Call, by: tuple[bool, bool]) -> Any:
            found = call.slopes(p, q, _numbers(upstream), by)
            return tuple(_like(out, x, torch) for out, x in zip(found, (p, q), strict=True) if out is not None)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            """Nothing is kept."""

        @staticmethod
        def backward(ctx: Any, *upstream: Any) -> Any:
            """In silence a derivative would pass for a constant."""
            raise RuntimeError("klnumba computes first derivatives: those of rows and cells cannot be differentiated")

    slopes: Any = Slopes.apply

    class Divergence(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(p: Any, q: Any, value: Callable[[Any, Any], Any], call: Call) -> Any:
            return value(p, q)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            *sides, _, ctx.call = inputs
            ctx.save_for_backward(*(x if isinstance(x, torch.Tensor) else None for x in sides))
            ctx.others = [None if isinstance(x, torch.Tensor) else _kept(x) for x in sides]

        @staticmethod
        def backward(ctx: Any, upstream: Any) -> Any:
            sides = [other if x is None else x for x, other in zip(ctx.saved_tensors, ctx.others, strict=True)]
            by = tuple(ctx.needs_input_grad[:2])
            found = iter(slopes(*sides, upstream, ctx.call, by))
            back = [next(found) if wanted else None for wanted in by]
            return *back, None, None

    return Divergence.apply


def _numbers(upstream: Any) -> Any:
    """The derivatives by a result, as those by the arguments are computed from them."""
    return upstream if upstream.is_cuda else upstream.resolve_neg().numpy()


def _kept(x: Any) -> Any:
    """An array as it is now, whatever becomes of it before `backward`: PyTorch watches over tensors alone."""
    if isinstance(x, np.ndarray) or (hasattr(x, "__cuda_array_interface__") and hasattr(x, "copy")):
        return x.copy()
    return x


def _cells_that_count(where: Any) -> Any:
    """The same of `where`, which may be a tensor."""
    if where is None or isinstance(where, bool | np.bool_):
        return where
    if any_on_device(where):
        return where.clone() if hasattr(where, "clone") else _kept(where)
    return arrays.truth(where).copy()


def _like(found: Any, x: Any, torch: Any) -> Any:
    """Derivatives as a tensor of the dtype of the argument."""
    return (torch.from_numpy(np.ascontiguousarray(found)) if isinstance(found, np.ndarray) else found).to(x.dtype)


def of(value: Callable[[Any, Any], Any], call: Call, p: Any, q: Any) -> Any:
    """What `value` computes of p and q, with a way back for PyTorch's gradients."""
    if any_on_device(p, q) and {type(x).__module__.partition(".")[0] for x in (p, q) if x is not None} != {"torch"}:
        raise TypeError("a tensor on a device that requires grad goes with tensors alone: give torch.as_tensor(...)")
    return _node()(p, q, value, call)


def reduce(
    name: str, p: Any, q: Any, kind: str, axis: Any, normalize: bool, base: float | None, temperature: float,
    reduction: str, where: Any, keepdims: bool, out: Any, dtype: Any, count: int | None, invalid: str, weight: float,
    stream: Any,
) -> Any:  # fmt: skip
    """`klnumba.reduction.reduce` of tensors of which one requires grad."""
    from klnumba import reduction as plain

    if out is not None:
        raise TypeError("out: not with a tensor that requires grad")

    where = _cells_that_count(where)

    def value(p: Any, q: Any) -> Any:
        second = p if q is None else q
        return plain.reduce(
            name, p, second, kind, axis, normalize, base, temperature, reduction, where, keepdims, None, dtype, count,
            invalid, weight, stream=stream,
        )  # fmt: skip

    _no_labels(p, q)
    call = OfRows(name, kind, axis, normalize, base, temperature, reduction, where, dtype, count, weight)
    return of(value, call, p, None if name == "entropy" else q)


def pointwise(name: str, p: Any, q: Any, out: Any, where: Any, dtype: Any, names: tuple[str, str]) -> Any:
    """`klnumba.cellwise.pointwise` of the same."""
    from klnumba import cellwise as plain

    if out is not None:
        raise TypeError("out: not with a tensor that requires grad")
    _no_labels(p, q)
    _no_masks(p, q)
    where = _cells_that_count(where)
    value = partial(plain.pointwise, name, where=where, dtype=dtype, names=names)
    return of(value, OfCells(name, where, dtype, names), p, q)


def loss(value: Callable[..., Any], name: str, model: Any, data: Any, over_cells: str, per_row: bool) -> Any:
    """The loss of `klnumba.functional` whose cell has this name, and which `value` computes."""
    _no_labels(model, data)
    _no_masks(model, data)
    shape = np.broadcast_shapes(np.shape(model), np.shape(data))
    rows = shape[0] if per_row and shape else 1
    count = max(1, rows * (math.prod(shape) if over_cells == "mean" else 1))
    return of(value, OfCells(name, names=("input", "target"), count=count), model, data)


def _no_masks(p: Any, q: Any) -> None:
    if any(isinstance(x, np.ma.MaskedArray) for x in (p, q)):
        raise TypeError("a masked array beside a tensor that requires grad: give `where`, or fill it")


def _no_labels(p: Any, q: Any) -> None:
    if labelled.present(p, q):
        raise TypeError("a tensor that requires grad is matched by place: give the Series or DataFrame as .to_numpy()")
