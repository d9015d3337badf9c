"""The functions of arrays, by their names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import klnumba as kl
from klnumba.dask.rows import cells, lazily
from klnumba.divergence import Axis
from klnumba.reduction import named


def kl_divergence(p: Any, q: Any, *, axis: Axis = -1, where: Any = None, keepdims: bool = False, **options: Any) -> Any:
    """`klnumba.kl_divergence` of dask arrays.

    Parameters
    ----------
    p, q : dask.array.Array or array_like
        The data or reference first; they broadcast against each other. Blocks may differ.
    axis : int, tuple of int or None, default -1
        The axis or axes along which a row lies.
    where : array_like of bool, optional
        Cells that belong to the support.
    keepdims : bool, default False
        Keep the reduced axes with length 1.
    **options
        As of `klnumba.kl_divergence`, `out` and `threads` excepted.

    Returns
    -------
    dask.array.Array
        Lazy; the values have the bits of ``klnumba.kl_divergence`` on the whole arrays, also with reduction "mean" and
        "sum".

    Raises
    ------
    ValueError
        If the shapes do not broadcast, or an option is out of its range.

    Examples
    --------
    >>> import dask.array as da
    >>> import klnumba.dask
    >>> p = da.from_array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]], chunks=(1, 2))
    >>> klnumba.dask.kl_divergence(p, [0.25, 0.5, 0.25], base=2).compute().round(4)
    array([0.5  , 0.2145])
    """
    return lazily("kl", kl.kl_divergence, (p, q), axis, where, keepdims, options)


def cross_entropy(p: Any, q: Any, *, axis: Axis = -1, where: Any = None, keepdims: bool = False, **options: Any) -> Any:
    """`klnumba.cross_entropy` of dask arrays; parameters as of `kl_divergence`."""
    return lazily("cross_entropy", kl.cross_entropy, (p, q), axis, where, keepdims, options)


def js_divergence(p: Any, q: Any, *, axis: Axis = -1, where: Any = None, keepdims: bool = False, **options: Any) -> Any:
    """`klnumba.js_divergence` of dask arrays; parameters as of `kl_divergence`, and `weight`."""
    return lazily("js", kl.js_divergence, (p, q), axis, where, keepdims, options)


def jeffreys_divergence(
    p: Any, q: Any, *, axis: Axis = -1, where: Any = None, keepdims: bool = False, **options: Any
) -> Any:
    """`klnumba.jeffreys_divergence` of dask arrays; parameters as of `kl_divergence`."""
    return lazily("jeffreys", kl.jeffreys_divergence, (p, q), axis, where, keepdims, options)


def entropy(p: Any, *, axis: Axis = -1, where: Any = None, keepdims: bool = False, **options: Any) -> Any:
    """`klnumba.entropy` of a dask array; parameters as of `kl_divergence`."""
    return lazily("entropy", kl.entropy, (p,), axis, where, keepdims, options)


def row_statistics(
    p: Any, q: Any, *, stats: Sequence[str] = ("kl",), axis: Axis = -1, where: Any = None, keepdims: bool = False,
    **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """`klnumba.row_statistics` of dask arrays: a lazy array a statistic; compute them together with `dask.compute`.

    Parameters as of `kl_divergence`; `stats` as of `klnumba.row_statistics`.
    """
    return {
        name: lazily(name, partial(_statistic, name), (p, q), axis, where, keepdims, options) for name in named(stats)
    }


def _statistic(name: str, p: Any, q: Any, **options: Any) -> Any:
    return kl.row_statistics(p, q, stats=(name,), **options)[name]


def rel_entr(p: Any, q: Any, *, dtype: Any = None) -> Any:
    """`klnumba.rel_entr` of dask arrays, cell by cell."""
    return cells(kl.rel_entr, p, q, dtype)


def generalized_kl(p: Any, q: Any, *, dtype: Any = None) -> Any:
    """`klnumba.generalized_kl` of dask arrays, cell by cell."""
    return cells(kl.generalized_kl, p, q, dtype)
