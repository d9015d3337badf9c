"""The array functions of tensors that PyTorch differentiates or maps over a batch: nodes of its graph.

A result is computed as ever, in every bit, and its derivatives by loops of their own when they are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from klnumba import arrays, labelled, tensors, torch_nodes
from klnumba.derivatives import OfCells, OfRows
from klnumba.gpu.borders import any_on_device


def _cells_that_count(where: Any) -> Any:
    """The same of `where`, which may be a tensor."""
    if where is None or isinstance(where, bool | np.bool_):
        return where
    if any_on_device(where):
        return where.clone() if hasattr(where, "clone") else torch_nodes.kept(where)
    return arrays.truth(tensors.mask(where)).copy()


def of(call: OfRows | OfCells, p: Any, q: Any) -> Any:
    """The result of a call, with a way back for PyTorch's derivatives."""
    if any_on_device(p, q) and not all(tensors.is_tensor(x) for x in (p, q) if x is not None):
        raise TypeError("a tensor on a device that requires grad goes with tensors alone: give torch.as_tensor(...)")
    for x, name in zip((p, q), call.names, strict=True):
        tensors.refuse_lists(x, name)
    return torch_nodes.Value.apply(call, p, q)


def reduce(
    name: str, p: Any, q: Any, kind: str, axis: Any, normalize: bool, base: float | None, temperature: float,
    reduction: str, where: Any, keepdims: bool, out: Any, dtype: Any, count: int | None, invalid: str, weight: float,
    stream: Any,
) -> Any:  # fmt: skip
    """`klnumba.reduction.reduce` of tensors of which one requires grad."""
    if out is not None:
        raise TypeError("out: not with a tensor that requires grad")
    _no_labels(p, q)
    call = OfRows(
        name, kind, axis, normalize, base, temperature, reduction, _cells_that_count(where), dtype, count, weight,
        stream, keepdims, invalid,
    )  # fmt: skip
    return of(call, p, None if name == "entropy" else q)


def pointwise(name: str, p: Any, q: Any, out: Any, where: Any, dtype: Any, names: tuple[str, str]) -> Any:
    """`klnumba.cellwise.pointwise` of the same."""
    from klnumba import cellwise as plain

    if out is not None:
        raise TypeError("out: not with a tensor that requires grad")
    _no_labels(p, q)
    _no_masks(p, q)
    where = _cells_that_count(where)
    value = partial(plain.pointwise, name, where=where, dtype=dtype, names=names)
    return of(OfCells(name, where, dtype, names, value=value), p, q)


def loss(value: Callable[..., Any], name: str, model: Any, data: Any, over_cells: str, per_row: bool) -> Any:
    """The loss of `klnumba.functional` whose cell has this name, and which `value` computes."""
    _no_labels(model, data)
    _no_masks(model, data)
    shape = np.broadcast_shapes(np.shape(model), np.shape(data))
    rows = shape[0] if per_row and shape else 1
    count = max(1, rows * (math.prod(shape) if over_cells == "mean" else 1))
    summed = over_cells != "none"
    return of(OfCells(name, names=("input", "target"), count=count, summed=summed, value=value), model, data)


def _no_masks(p: Any, q: Any) -> None:
    if any(isinstance(x, np.ma.MaskedArray) for x in (p, q)):
        raise TypeError("a masked array beside a tensor that requires grad: give `where`, or fill it")


def _no_labels(p: Any, q: Any) -> None:
    if labelled.present(p, q):
        raise TypeError("a tensor that requires grad is matched by place: give the Series or DataFrame as .to_numpy()")
