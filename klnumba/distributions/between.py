"""KL and what follows from it between any two distributions, ours, SciPy's or PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from klnumba.arrays import one_of
from klnumba.distributions import foreign, frozen, numeric, pairwise_normal
from klnumba.distributions.bounds import bounds
from klnumba.distributions.distribution import Distribution, refuse_graphs
from klnumba.distributions.registry import divergence as closed
from klnumba.parametric import SAMPLES, Parametric, is_default, is_usual, library_of
from klnumba.reduction import generator, unit_of
from klnumba.tensors import untraced

ESTIMATES = ("quadrature", "sum", "monte_carlo")
METHODS = ("auto", "closed", "quadrature", "sum", "bounds", "monte_carlo")


def divergence(
    p: Any, q: Any, *, base: float | None = None, method: str = "auto", return_error: bool = False,
    samples: int = SAMPLES, rng: Any = None,
) -> Any:  # fmt: skip
    """KL(p || q) of two batches, in closed form or as `method` says; with an estimate of the error, if wanted."""
    usual = is_usual(method, return_error, samples, rng)
    if usual and isinstance(p, Distribution) and isinstance(q, Distribution) and not (p._in_graph or q._in_graph):
        return closed(p, q, base)  # one pair takes as long as the way to it
    one_of(method, METHODS, "method")
    if not isinstance(return_error, bool | np.bool_):
        raise TypeError(f"return_error: True or False, not {return_error!r}")
    unit = unit_of(base)
    give = foreign.back(p, q)
    first, second = (frozen if method in ESTIMATES else foreign).pair(p, q)
    if method != "monte_carlo" and (rng is not None or not is_default(samples)):
        raise ValueError(f"samples, rng: for method 'monte_carlo', not {method!r}")
    if method in ("auto", "closed"):
        if return_error:
            raise ValueError("return_error: a closed form has no estimate; the table of pairs has its largest error")
        return _closed(first, second, base, give)
    refuse_graphs(f"method={method!r}", first, second)
    found: Any
    if method == "bounds":
        found = (second.nan_where_broken(first.nan_where_broken(x)) for x in bounds(first, second))
    else:
        found = numeric.each(_fallback(method, samples, rng), first, second)
    dtype = np.result_type(first.dtype, second.dtype)
    value, error = (x / unit for x in found)
    rounded = value.astype(dtype)
    error = error + np.where(np.isfinite(value), np.abs(np.nan_to_num(value) - rounded), 0.0)
    return (give(rounded[()]), give(error.astype(dtype)[()])) if return_error else give(rounded[()])


def _closed(p: Distribution, q: Distribution, base: float | None, give: Callable[[Any], Any]) -> Any:
    """The closed form; where PyTorch wants the gradient, a node of its graph."""
    if not (p._in_graph or q._in_graph):
        return give(closed(p, q, base))
    from klnumba.distributions import torch_graph

    return torch_graph.divergence(p, q, base)


def _fallback(method: str, samples: int, rng: Any) -> Callable[[Distribution, Distribution], Any]:
    if method == "quadrature":
        return numeric.quadrature
    if method == "sum":
        return numeric.total
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 2:
        raise ValueError(f"samples: an integer of at least 2, not {samples!r}")
    return partial(numeric.monte_carlo, samples=int(samples), rng=generator(rng))


def cross_entropy(p: Any, q: Any, base: float | None = None) -> Any:
    """The entropy of p plus KL(p || q); infinite where that is."""
    give = foreign.back(p, q)
    apart = closed(*foreign.pair(p, q))
    with np.errstate(invalid="ignore"):
        value = np.where(np.isposinf(apart), apart, apart + foreign.entropy(p)).astype(np.asarray(apart).dtype)
    return give((value / value.dtype.type(unit_of(base)))[()])


def jeffreys(p: Any, q: Any, base: float | None = None) -> Any:
    """KL(p || q) + KL(q || p)."""
    give = foreign.back(p, q)
    first, second = foreign.pair(p, q)
    return _closed(first, second, base, give) + _closed(second, first, base, give)


@untraced
def pairwise_kl(p: Any, q: Any = None, *, base: float | None = None) -> Any:
    """KL of every distribution of one batch to every one of another.

    Parameters
    ----------
    p : distribution or sequence of distributions
        A batch, or single distributions, which may be of several families.
    q : distribution or sequence of distributions, optional
        The same; without it, `p` once more.
    base : float, optional
        Unit of the result: None for nats, 2 for bits.

    Returns
    -------
    numpy.ndarray
        Of shape ``p.batch_shape + q.batch_shape``, where a sequence has the shape ``(len(sequence),)``; a tensor where
        one of the distributions is of PyTorch. The diagonal of a batch with itself is exactly zero.

    Notes
    -----
    Two batches of `Normal`, of ``Independent(Normal, 1)`` or of `MultivariateNormal` distributions are taken by
    products of matrices; an entry that these may get wrong by more than 1e-13 of itself, because p and q are close, is
    taken from the closed form. So entries can differ in their last digits from those of ``kl_divergence``. The bits are
    those of NumPy's matrix product: the same on every run, but with another number of threads of its BLAS library, or
    another such library, entries can differ in their last digits, by less than 1e-13 of themselves.

    Raises
    ------
    ValueError
        If a distribution in a sequence is itself a batch.
    NotImplementedError
        If the closed form of a pair is not known.

    Examples
    --------
    >>> from klnumba.distributions import Normal, pairwise_kl
    >>> pairwise_kl(Normal([0.0, 1.0, 2.0], 1.0))
    array([[0. , 0.5, 2. ],
           [0.5, 0. , 0.5],
           [2. , 0.5, 0. ]])
    """
    give = _library(p if q is None else [*_listed(p), *_listed(q)])
    rows, columns = _batches(p, "p"), _batches(p if q is None else q, "q")
    refuse_graphs("pairwise_kl", *(x for side in (rows, columns) for x in _listed(side) if isinstance(x, Distribution)))
    if isinstance(rows, Distribution) and isinstance(columns, Distribution):
        checked = not (rows._unchecked or columns._unchecked)
        products = pairwise_normal.divergences(rows, columns) if checked else None
        if products is not None:
            products /= products.dtype.type(unit_of(base))
            return give(products.reshape(rows.batch_shape + columns.batch_shape))
        return give(np.asarray(closed(rows.spread(len(columns.batch_shape)), columns, base)))
    first, second = _singles(rows), _singles(columns)
    found = [[_one(first, i, second, j, base) for j in range(len(second))] for i in range(len(first))]
    return give(np.array(found).reshape(len(first), len(second)))


def _one(p: list[Any], i: int, q: list[Any], j: int, base: float | None) -> Any:
    """Of two single ones; SciPy's may have a location or a scale in common that no family of ours has."""
    try:
        found = closed(*foreign.pair(p[i], q[j]), base)
    except (ValueError, TypeError, NotImplementedError) as reason:
        text = str(reason)
        at = {"p:": f"p[{i}]:", "q:": f"q[{j}]:"}.get(text[:2])
        place = f"p[{i}], q[{j}]: {text}" if isinstance(reason, NotImplementedError) else text
        raise type(reason)(place if at is None else f"{at}{text[2:]}") from None
    if np.ndim(found):
        raise ValueError(f"p[{i}], q[{j}]: single distributions, not a batch of shape {np.shape(found)}")
    return found


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def _library(given: Any) -> Callable[[Any], Any]:
    """What turns a result into a tensor, where one of these is of PyTorch."""
    theirs = next((x for x in _listed(given) if library_of(x) == "torch"), None)
    return foreign.back(theirs, theirs)


def _batches(given: Any, name: str) -> Distribution | list[Any]:
    """A batch; of a sequence of single distributions of one family, the batch of them."""
    if not isinstance(given, list | tuple):
        return foreign.ours(given, name)
    found = [_as_ours(one, f"{name}[{i}]") for i, one in enumerate(given)]
    if not all(isinstance(one, Distribution) for one in found):
        return found
    for i, one in enumerate(found):
        if one.batch_shape:
            raise ValueError(f"{name}[{i}]: a single distribution, not a batch of shape {one.batch_shape}")
    return Distribution.together(found) or found


def _as_ours(one: Any, place: str) -> Any:
    """One as ours, or as it is where it is SciPy's and only the other of a pair can say what it is of ours."""
    try:
        return foreign.ours(one, place)
    except ValueError:
        if library_of(one) != "scipy":
            raise
        return one


def _singles(given: Distribution | list[Any]) -> list[Any]:
    """The distributions of a batch one by one."""
    return given if isinstance(given, list) else [given.one(at) for at in np.ndindex(given.batch_shape)]


Parametric.functions = {"kl": divergence, "cross_entropy": cross_entropy, "jeffreys": jeffreys}
