"""The call signatures of PyTorch's and torchmetrics' KL functions, on arrays.

`kl_div` and `KLDivLoss` are called like ``torch.nn.functional.kl_div`` and ``torch.nn.KLDivLoss``: the first argument
is the model, in logs, and the second the data, so that the result is KL(target‖model). `kl_divergence` is called like
``torchmetrics.functional.regression.kl_divergence``, p first. Where those return a wrong number, these do not.
"""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Any, Literal

import numpy as np

from klnumba import arrays, divergence, fixed_point, labelled, tensors
from klnumba.cellwise import pointwise, total
from klnumba.gpu.borders import any_on_device, dtype_of, shape_of

__all__ = ["KLDivLoss", "kl_div", "kl_divergence"]

_MEAN_WARNING = (
    "reduction: 'mean' divides the total loss by both the batch size and the support size."
    "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
    "'mean' will be changed to behave the same as 'batchmean' in the next major release."
)


def _from_legacy_flags(size_average: bool | None, reduce: bool | None, stacklevel: int) -> str:
    """The reduction that the two deprecated flags stand for, with their warning."""
    if reduce is not None and not reduce:
        reduction = "none"
    else:
        reduction = "mean" if size_average is None or size_average else "sum"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
        stacklevel=stacklevel + 1,
    )
    return reduction


def _plain_reduction(reduction: str, stacklevel: int) -> str:
    """The reduction over cells that the argument `reduction` asks for: none, mean or sum."""
    if reduction == "mean":
        warnings.warn(_MEAN_WARNING, stacklevel=stacklevel + 1)
    elif reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=stacklevel + 1,
        )
        return "mean"
    elif reduction == "batchmean":
        return "sum"
    elif reduction not in ("none", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def _check_floating(**values: Any) -> None:
    """Refuse complex, integral and boolean input, in that order, as PyTorch does."""
    names = [dtype_of(value, name) for name, value in values.items()]
    if any("complex" in name for name in names):
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if any("int" in name or "bool" in name for name in names):
        raise RuntimeError("kl_div: Integral inputs not supported.")


@tensors.untraced
def _loss(input: Any, target: Any, over_cells: str, per_row: bool, log_target: bool) -> Any:  # noqa: A002
    """The reduced loss in the caller's array library; `per_row` divides by the length of the first axis."""
    if labelled.present(input, target):
        raise TypeError("input, target: arrays, not a Series or DataFrame; klnumba.kl_divergence matches their labels")
    _check_floating(input=input, target=target)
    if tensors.asks_gradient(input, target):
        from klnumba import autograd

        value = partial(_value, over_cells=over_cells, per_row=per_row, log_target=log_target)
        return autograd.loss(value, _formula(log_target), input, target, over_cells, per_row)
    return _value(input, target, over_cells, per_row, log_target)


def _value(input: Any, target: Any, over_cells: str, per_row: bool, log_target: bool) -> Any:  # noqa: A002
    """`_loss` of what nobody differentiates."""
    if any_on_device(input, target):
        return _loss_on_device(input, target, over_cells, per_row, log_target)
    model, give_back = arrays.take(input, "input")
    data, give_back_target = arrays.take(target, "target")
    if isinstance(input, np.ndarray | np.generic) or not hasattr(input, "dtype"):
        give_back = give_back_target
    dtype = arrays.compute_dtype(model, data)
    shape = _common_shape(model.shape, data.shape)
    formula = _formula(log_target)
    rows = shape[0] if per_row and shape else 1
    result: Any
    if over_cells == "none":
        result = np.asanyarray(pointwise(formula, model, data))
        if per_row and rows:
            result = np.asanyarray(result / dtype.type(rows))
    else:
        model, data = _without_masked(model, data, shape)
        whole, rest = total(formula, model, data)
        count = rows * (np.broadcast(model, data).size if over_cells == "mean" else 1)
        result = np.asarray(fixed_point.rounded(whole, rest, count), dtype=dtype)
    return give_back(result)


def _formula(log_target: bool) -> str:
    """The cell of the loss."""
    return "kl_div_log_target" if log_target else "kl_div"


def _without_masked(model: np.ndarray, data: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The cells that neither masks."""
    if not any(isinstance(a, np.ma.MaskedArray) for a in (model, data)):
        return model, data
    kept = ~(np.broadcast_to(np.ma.getmaskarray(model), shape) | np.broadcast_to(np.ma.getmaskarray(data), shape))
    return np.broadcast_to(np.ma.getdata(model), shape)[kept], np.broadcast_to(np.ma.getdata(data), shape)[kept]


def _loss_on_device(input: Any, target: Any, over_cells: str, per_row: bool, log_target: bool) -> Any:  # noqa: A002
    """`_loss` of arrays on a CUDA device, in their library."""
    from klnumba.gpu import cellwise as gpu

    shape = _common_shape(shape_of(input, "input"), shape_of(target, "target"))
    formula = _formula(log_target)
    rows = shape[0] if per_row and shape else 1
    names = "input", "target"
    if over_cells == "none":
        return gpu.pointwise(formula, input, target, None, True, None, names, float(rows or 1))
    count = rows * (math.prod(shape) if over_cells == "mean" else 1)
    return gpu.total(formula, input, target, count, None, names)


def _common_shape(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(first, second)
    except ValueError:
        raise ValueError(f"input and target do not broadcast: shapes {first} and {second}") from None


def kl_div(
    input: Any,  # noqa: A002
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    """KL(target‖model) from log-probabilities of the model, called like PyTorch's function.

    Mind the order: `input` is the model's log-probability log q, `target` the data's probability p. A cell is
    ``target·(log target − input)``. Nothing is normalised; rows that are no distributions can give negative sums.

    Parameters
    ----------
    input : array_like
        Log-probabilities of the model; -inf is a probability of zero. Floating point.
    target : array_like
        Probabilities of the data, or their logs with `log_target`. Broadcasts against `input`.
    size_average, reduce : bool, optional
        Deprecated, with PyTorch's meaning and warning; they override `reduction`, except that the division of
        ``"batchmean"`` stays.
    reduction : {"mean", "batchmean", "sum", "none"}
        ``"mean"`` divides the sum by the number of cells, and warns that it does; ``"batchmean"`` by the length of the
        first axis of the broadcast result; ``"none"`` returns the cells. ``"elementwise_mean"`` is a deprecated name
        of ``"mean"``. Cells that a ``numpy.ma`` array masks are left out of sums and of the number of cells; rows
        count, whatever is masked in them.
    log_target : bool
        Whether `target` holds logs.

    Returns
    -------
    scalar or array
        In nats: float64 where an input is float64, else float32 (also for float16 and bfloat16, which are read as they
        are and computed wider), in the array library of the inputs.

    Raises
    ------
    RuntimeError
        For integral, boolean or complex input.
    ValueError
        For an unknown reduction, or shapes that do not broadcast.

    Notes
    -----
    Some values differ from PyTorch's, on purpose. A zero target costs 0 also where `input` is infinite, and so does a
    `target` of -inf with `log_target`; an infinite target costs inf, unless `input` is inf (PyTorch: NaN each time).
    And ``"batchmean"`` counts the rows of the broadcast result, not those of `input`.

    Tensors that require grad have gradients: PyTorch's, but that by a target of zero, which is NaN there, is
    -inf here, the limit from the right, and 0 where `input` is -inf too.

    Examples
    --------
    >>> import numpy as np
    >>> from klnumba.functional import kl_div
    >>> model = np.log([[0.25, 0.75], [0.5, 0.5]])
    >>> data = np.array([[0.5, 0.5], [0.0, 1.0]])
    >>> print(round(float(kl_div(model, data, reduction="batchmean")), 6))
    0.418494
    """
    return _kl_div(input, target, size_average, reduce, reduction, log_target, stacklevel=2)


def _kl_div(
    input: Any,  # noqa: A002
    target: Any,
    size_average: bool | None,
    reduce: bool | None,
    reduction: str,
    log_target: bool,
    stacklevel: int,
) -> Any:
    """`kl_div`, with warnings that point `stacklevel` callers up."""
    if size_average is not None or reduce is not None:
        over_cells = _from_legacy_flags(size_average, reduce, stacklevel + 1)
    else:
        over_cells = _plain_reduction(reduction, stacklevel + 1)
    return _loss(input, target, over_cells, reduction == "batchmean", log_target)


class KLDivLoss:
    """`kl_div` with its settings kept, called like PyTorch's class.

    Parameters
    ----------
    size_average, reduce : bool, optional
        Deprecated; they replace `reduction`.
    reduction : str
        As in `kl_div`; checked when the loss is called.
    log_target : bool
        Whether targets hold logs.

    Examples
    --------
    >>> import numpy as np
    >>> from klnumba.functional import KLDivLoss
    >>> loss = KLDivLoss(reduction="sum")
    >>> print(round(float(loss(np.log([0.25, 0.75]), np.array([0.5, 0.5]))), 6))
    0.143841
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        if size_average is not None or reduce is not None:
            reduction = _from_legacy_flags(size_average, reduce, stacklevel=2)
        self.reduction = reduction
        self.log_target = log_target

    def forward(self, input: Any, target: Any) -> Any:  # noqa: A002
        """The loss of `input` against `target`; the same as calling the object."""
        return _kl_div(input, target, None, None, self.reduction, self.log_target, stacklevel=2)

    def __call__(self, input: Any, target: Any) -> Any:  # noqa: A002
        if getattr(self.forward, "__func__", None) is not KLDivLoss.forward:
            return self.forward(input, target)
        return _kl_div(input, target, None, None, self.reduction, self.log_target, stacklevel=2)  # the caller's line

    def __repr__(self) -> str:
        return f"KLDivLoss(reduction={self.reduction!r}, log_target={self.log_target!r})"


@tensors.untraced
def kl_divergence(
    p: Any, q: Any, log_prob: bool = False, reduction: Literal["mean", "sum", "none"] | None = "mean"
) -> Any:
    """KL(p‖q) of each row of two matrices, called like torchmetrics' function.

    Parameters
    ----------
    p, q : array_like
        Two matrices of one shape, a distribution in each row; p is the data, q the model. Probabilities are divided by
        the sums of their rows. Log-probabilities are taken as they are.
    log_prob : bool
        Whether p and q hold logs; -inf is a probability of zero.
    reduction : {"mean", "sum", "none", None}
        Over the rows; ``"none"`` and None return one value a row.

    Returns
    -------
    scalar or array
        In nats, with the dtype and the array library of `klnumba.kl_divergence`.

    Raises
    ------
    RuntimeError
        Where the shapes differ.
    ValueError
        Where the inputs have other than two axes, or for an unknown reduction.

    Examples
    --------
    >>> from klnumba.functional import kl_divergence
    >>> print(round(float(kl_divergence([[0.5, 0.5]], [[1.0, 3.0]])), 6))
    0.143841
    """
    allowed = ["mean", "sum", "none", None]
    if reduction not in allowed:
        raise ValueError(f"Expected argument `reduction` to be one of {allowed} but got {reduction}")
    shapes = [shape_of(p, "p"), shape_of(q, "q")]
    if shapes[0] != shapes[1]:
        raise RuntimeError(
            f"Predictions and targets are expected to have the same shape, but got {shapes[0]} and {shapes[1]}."
        )
    if len(shapes[0]) != 2:
        axes = len(shapes[0])
        raise ValueError(f"Expected both p and q distribution to be 2D but got {axes} and {axes} respectively")
    kind: divergence.Kind = "log_prob" if log_prob else "prob"
    return divergence.kl_divergence(p, q, kind=kind, normalize=not log_prob, reduction=reduction or "none")
