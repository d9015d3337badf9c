"""Values and derivatives of the array functions, for NumPy and whatever has arrays like it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from klnumba import divergence, labelled, parametric, tensors
from klnumba.arrays import take
from klnumba.derivatives import OfCells, OfRows

ROWS: dict[Any, str] = {
    divergence.kl_divergence: "kl",
    divergence.js_divergence: "js",
    divergence.jeffreys_divergence: "jeffreys",
    divergence.cross_entropy: "cross_entropy",
    divergence.entropy: "entropy",
}
CELLS: dict[Any, str] = {divergence.rel_entr: "rel_entr", divergence.generalized_kl: "generalized_kl"}


def value_and_grad(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that returns what an array function returns, and its derivatives.

    Called like ``jax.value_and_grad``. The derivatives are those of the sum of all results: where the function returns
    a value a row, those of each value by the cells of its own row.

    Parameters
    ----------
    function : callable
        `kl_divergence`, `js_divergence`, `jeffreys_divergence`, `cross_entropy`, `entropy`, `rel_entr` or
        `generalized_kl`.
    argnums : int or sequence of int, default 0
        By which arguments: 0 is p, 1 is q. With a sequence the derivatives come as a tuple.

    Returns
    -------
    callable
        It takes what `function` takes, but for `out`, Series and DataFrames, and returns (value, gradient). A
        derivative has the shape and the array library of its argument. It is float64 where an argument or `dtype` is,
        and float32 where all are float32, float16 or bfloat16.

    Raises
    ------
    TypeError
        If the function has no derivatives here, or an argument is a distribution, a Series or a DataFrame.
    ValueError
        If `argnums` names no argument; and, when the result is called, for what `function` refuses.

    See Also
    --------
    klnumba.distributions.kl_divergence_grad : by the parameters of two distributions.

    Notes
    -----
    The value is the function's own, in every bit. Derivatives of normalised rows are right to some roundings of the
    largest finite one in the row, within the range of numbers, and those of rows that are taken as they are to
    roundings of 1 or, by log-probabilities, of the largest share, where that is more.

    At the edges they are the limits from the right: by a cell p = 0 with q > 0, that of KL is -inf. A cell where p and
    q are both zero is no part of the row; its derivative is 0. By logits and log-probabilities derivatives are finite,
    also of a q of zero, where KL is infinite. Of a row whose value is infinite those by p are NaN, and of one that is
    no distribution all.

    With T the temperature and p, q the normalised rows, the derivatives of KL are (log(p/q) - KL)/sum by a cell of p,
    (1 - p/q)/sum by a cell of q, p*(log(p/q) - KL)/T by a logit of p and (q - p)/T by a logit of q.

    Tensors of PyTorch that require grad need no such call: the array functions are nodes of PyTorch's graph.

    Examples
    --------
    >>> import klnumba as kl
    >>> value, gradient = kl.value_and_grad(kl.kl_divergence, argnums=1)([0.5, 0.5], [0.25, 0.75])
    >>> gradient.round(6)
    array([-1.      ,  0.333333])
    >>> value, gradient = kl.value_and_grad(kl.kl_divergence, argnums=1)([0.0, 2.0], [0.0, 2.0], kind="logit")
    >>> gradient
    array([0., 0.])
    """
    if not callable(function) or not (function in ROWS or function in CELLS):
        known = ", ".join(one.__name__ for one in (*ROWS, *CELLS))
        raise TypeError(f"function: one of {known}, not {function!r}")
    signature = inspect.signature(function)
    sides = [name for name in signature.parameters if name in ("p", "q")]
    wanted = tuple(argnums) if isinstance(argnums, Sequence) else (argnums,)
    for k in wanted:
        if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k < len(sides):
            allowed = "0 to 1, or several of these" if len(sides) > 1 else "0"
            raise ValueError(f"argnums: {allowed}, not {argnums!r}")

    @tensors.untraced
    @functools.wraps(function)
    def both(*args: Any, **options: Any) -> Any:
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        given = bound.arguments
        _check(given)
        p, q = given["p"], given[sides[-1]]
        with tensors.no_graph():
            value = function(*args, **options)
            found = _call(function, given).slopes(p, q, 1.0, (0 in wanted, 1 in wanted))
            made = [_given_back(found[k], given[sides[k]], sides[k]) for k in wanted]
        return value, made[0] if isinstance(argnums, int) else tuple(made)

    return both


def _check(given: dict[str, Any]) -> None:
    """Refuse arguments that have no derivatives here."""
    sides = [given[name] for name in ("p", "q") if name in given]
    if labelled.present(sides[0], sides[-1]):
        raise TypeError("p, q: arrays, not a Series or DataFrame; give .to_numpy()")
    if any(parametric.library_of(x) for x in sides):
        raise TypeError("p, q: arrays; klnumba.distributions.kl_divergence_grad is for distributions")
    if given["out"] is not None:
        raise TypeError("out: not with derivatives")


def _call(function: Callable[..., Any], given: dict[str, Any]) -> OfRows | OfCells:
    if function in CELLS:
        return OfCells(CELLS[function], given["where"], given["dtype"])
    options = {field.name: given[field.name] for field in fields(OfRows) if field.name in given}
    return OfRows(ROWS[function], **options)


def _given_back(found: Any, x: Any, name: str) -> Any:
    """Derivatives in the library of an argument, in which those on a device are."""
    return take(x, name)[1](found) if isinstance(found, np.ndarray) else found
