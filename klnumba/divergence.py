"""The NumPy-style functions: divergences of rows, and of cells."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import numpy as np

from klnumba.cellwise import pointwise
from klnumba.parametric import SAMPLES, function_of, is_usual
from klnumba.reduction import STATISTICS, real, reduce, statistics
from klnumba.tensors import untraced

Kind = Literal["prob", "log_prob", "logit"]
Reduction = Literal["none", "mean", "sum"]
Axis = int | tuple[int, ...] | None
Invalid = Literal["nan", "raise"]
Align = Literal["outer", "strict"]
Method = Literal["auto", "closed", "quadrature", "sum", "bounds", "monte_carlo"]
F = TypeVar("F", bound=Callable[..., Any])

ARRAYS = """p, q : array_like
        The data or reference first. Real numbers of any dtype and layout; they broadcast against each other. Arrays of
        other libraries come in through DLPack, and the result goes back to that library; those on a CUDA device are
        used there. Masked cells are left out. Series and DataFrames are matched by their labels, not by place.
"""
OPTIONS = """kind : {"prob", "log_prob", "logit"}, default "prob"
        What a cell holds: a probability (or a count, or any non-negative mass), its logarithm, or a logit.
    axis : int, tuple of int or None, default -1
        The axis or axes along which a row lies; None takes the whole array as one row.
    normalize : bool, default True
        Divide rows by their sums (for "log_prob": subtract logsumexp). False takes them as they are. Logits are always
        normalised.
    base : float, optional
        Unit of the result: None for nats, 2 for bits, 10 for bans.
    temperature : float, default 1.0
        Divides logits first.
    reduction : {"none", "mean", "sum"}, default "none"
        One value a row, or their mean or sum, added up exactly and rounded once; `keepdims` then keeps all axes.
    where : array_like of bool, optional
        Cells that belong to the support; the others are left out of both rows.
    keepdims : bool, default False
        Keep the reduced axes with length 1.
    out : numpy.ndarray, optional
        Where to put the result; some of it is there already when a row raises.
    dtype : dtype, optional
        Dtype of the result: by default float32 where all inputs are float32, float16 or bfloat16, else float64.
    threads : int, optional
        How many threads may work. By default all, but one for small inputs and in calls from a worker thread.
    invalid : {"nan", "raise"}, default "nan"
        A row with a negative cell, a NaN or (normalised) no finite mass is NaN, or raises.
    align : {"outer", "strict"}, default "outer"
        What becomes of a label that only one of two Series or DataFrames has: a cell without mass on the other side, or
        an error.
    stream : stream or int, optional
        For arrays on a CUDA device: the stream to work on, of any library or by its address. By default the current
        one of the library of `p`.
"""
RESULT = """numpy.ndarray, scalar or array of the caller's library
        In nats, unless `base` is given; the shape of the arguments without `axis`; of DataFrames, a Series with the
        rows of p. Never negative for normalised rows.
"""
ERRORS = """ValueError
        If the shapes do not broadcast, labels cannot be matched (one that occurs twice cannot), an option is out of its
        range, or, with ``invalid="raise"``, a row is no distribution: the text names the argument, the row, the cell
        and the rule.
    TypeError
        If an argument is complex, text or object, or a sparse tensor.
    RuntimeError
        If a tensor of PyTorch requires grad, has a tangent or stands for a batch where no derivative is computed,
        as in `row_statistics`.
"""


def _documented(function: F) -> F:
    """Put the common paragraphs into a docstring."""
    text = function.__doc__ or ""
    of_several = re.sub(r"^    (?:reduction|out) : .*\n(?:        .*\n)+", "", OPTIONS, flags=re.MULTILINE)
    parts = {
        "{arrays}": ARRAYS, "{options}": OPTIONS, "{options of several}": of_several, "{result}": RESULT,
        "{errors}": ERRORS,
    }  # fmt: skip
    for mark, part in parts.items():
        text = text.replace(mark, part.rstrip("\n"))
    function.__doc__ = text
    return function


@untraced
@_documented
def kl_divergence(
    p: Any, q: Any, *, kind: Kind = "prob", axis: Axis = -1, normalize: bool = True, base: float | None = None,
    temperature: float = 1.0, reduction: Reduction = "none", where: Any = None, keepdims: bool = False,
    out: np.ndarray | None = None, dtype: Any = None, threads: int | None = None, invalid: Invalid = "nan",
    align: Align = "outer", stream: Any = None, method: Method = "auto", return_error: bool = False,
    samples: int = SAMPLES, rng: Any = None,
) -> Any:  # fmt: skip
    """Kullback-Leibler divergence KL(p || q) of every row.

    KL(p || q) = sum p*log(p/q) over the cells of a row, p and q divided by their sums first [1]_. A cell with p = 0
    adds nothing, one with p > 0 and q = 0 makes the row infinite; no eps is added and no term dropped. The result is
    right to the last digits also where p is close to q, is exactly 0 for equal rows, and does not depend on the number
    of threads or on how rows are split over calls.

    Parameters
    ----------
    {arrays}
    {options}
    method : {"auto", "closed", "quadrature", "sum", "bounds", "monte_carlo"}, default "auto"
        Of two distributions: "auto" and "closed" take the closed form, and raise where there is none; "quadrature"
        integrates (continuous ones over numbers), "sum" adds up (discrete ones), "bounds" takes the middle between two
        bounds (mixtures), "monte_carlo" draws.
    return_error : bool, default False
        With the four last methods, return (value, error): an estimate of the absolute error; of bounds, how far they
        are on either side; of draws, the standard error.
    samples : int, default 1_000_000
        How many draws "monte_carlo" takes.
    rng : numpy.random.Generator or int, optional
        Where its draws come from, or a seed.

    Returns
    -------
    {result}

    Raises
    ------
    {errors}
    NotImplementedError
        If the closed form of two distributions is not known: the text lists those that are.

    See Also
    --------
    rel_entr, generalized_kl : cell by cell.
    row_statistics : several statistics in one read.

    References
    ----------
    .. [1] S. Kullback and R. A. Leibler, "On Information and Sufficiency", Annals of Mathematical Statistics 22,
       pp. 79-86, 1951.

    Examples
    --------
    >>> import klnumba as kl
    >>> float(kl.kl_divergence([0.5, 0.5, 0.0], [0.25, 0.5, 0.25], base=2))
    0.5
    >>> kl.kl_divergence([[1, 1], [2, 0]], [3, 1], base=2).round(4)
    array([0.2075, 0.415 ])

    Of two distributions with parameters, in closed form; also of SciPy's frozen ones and PyTorch's:

    >>> from klnumba.distributions import Normal
    >>> float(kl.kl_divergence(Normal([0.0, 1.0], 2.0), Normal(0.0, 2.0))[1])
    0.125
    """
    between = function_of("kl", p, q)
    if between is not None:
        _refuse(where, out, kind, axis, normalize, temperature, reduction, keepdims, dtype, threads, invalid, align)
        return between(p, q, base=base, method=method, return_error=return_error, samples=samples, rng=rng)
    if not is_usual(method, return_error, samples, rng):
        raise ValueError("method, return_error, samples, rng: for distributions; of arrays, every cell is summed")
    return reduce(
        "kl", p, q, kind, axis, normalize, base, temperature, reduction, where, keepdims, out, dtype, threads, invalid,
        align=align, stream=stream,
    )  # fmt: skip


def _refuse(where: Any, out: Any, *others: Any) -> None:
    """Options that speak of rows, given with distributions."""
    usual = ("prob", -1, True, 1.0, "none", False, None, None, "nan", "outer")
    if where is not None or out is not None or others != usual:
        raise TypeError("p, q: distributions have no rows, and take none of the options that speak of rows")


@untraced
@_documented
def cross_entropy(
    p: Any, q: Any, *, kind: Kind = "prob", axis: Axis = -1, normalize: bool = True, base: float | None = None,
    temperature: float = 1.0, reduction: Reduction = "none", where: Any = None, keepdims: bool = False,
    out: np.ndarray | None = None, dtype: Any = None, threads: int | None = None, invalid: Invalid = "nan",
    align: Align = "outer", stream: Any = None,
) -> Any:  # fmt: skip
    """Cross entropy -sum p*log(q) of every row: the entropy of p plus KL(p || q).

    Parameters
    ----------
    {arrays}
    {options}

    Returns
    -------
    {result}

    Raises
    ------
    {errors}

    Notes
    -----
    Formula: T. M. Cover and J. A. Thomas, Elements of Information Theory, 2nd edition, 2006, section 2.3.

    Examples
    --------
    >>> import klnumba as kl
    >>> float(kl.cross_entropy([0.5, 0.5], [0.25, 0.75], base=2).round(4))
    1.2075
    """
    between = function_of("cross_entropy", p, q)
    if between is not None:
        _refuse(where, out, kind, axis, normalize, temperature, reduction, keepdims, dtype, threads, invalid, align)
        return between(p, q, base)
    return reduce(
        "cross_entropy", p, q, kind, axis, normalize, base, temperature, reduction, where, keepdims, out, dtype,
        threads, invalid, align=align, stream=stream,
    )  # fmt: skip


@untraced
@_documented
def js_divergence(
    p: Any, q: Any, *, weight: float = 0.5, kind: Kind = "prob", axis: Axis = -1, normalize: bool = True,
    base: float | None = None, temperature: float = 1.0, reduction: Reduction = "none", where: Any = None,
    keepdims: bool = False, out: np.ndarray | None = None, dtype: Any = None, threads: int | None = None,
    invalid: Invalid = "nan", align: Align = "outer", stream: Any = None,
) -> Any:  # fmt: skip
    """Jensen-Shannon divergence of every row: w*KL(p || m) + (1 - w)*KL(q || m), m = w*p + (1 - w)*q.

    This is the divergence of [1]_, not its square root (which SciPy's ``jensenshannon`` returns).

    Parameters
    ----------
    {arrays}
    weight : float, default 0.5
        The weight w of p, from 0 to 1.
    {options}

    Returns
    -------
    {result}

    Raises
    ------
    {errors}

    References
    ----------
    .. [1] J. Lin, "Divergence Measures Based on the Shannon Entropy", IEEE Transactions on Information Theory 37,
       pp. 145-151, 1991.

    Examples
    --------
    >>> import klnumba as kl
    >>> float(kl.js_divergence([1, 0], [0, 1], base=2))
    1.0
    """
    if not 0.0 <= real(weight, "weight") <= 1.0:
        raise ValueError(f"weight: a number from 0 to 1, not {weight!r}")
    return reduce(
        "js", p, q, kind, axis, normalize, base, temperature, reduction, where, keepdims, out, dtype, threads, invalid,
        weight, align, stream,
    )  # fmt: skip


@untraced
@_documented
def jeffreys_divergence(
    p: Any, q: Any, *, kind: Kind = "prob", axis: Axis = -1, normalize: bool = True, base: float | None = None,
    temperature: float = 1.0, reduction: Reduction = "none", where: Any = None, keepdims: bool = False,
    out: np.ndarray | None = None, dtype: Any = None, threads: int | None = None, invalid: Invalid = "nan",
    align: Align = "outer", stream: Any = None,
) -> Any:  # fmt: skip
    """Jeffreys divergence of every row, the symmetric sum KL(p || q) + KL(q || p).

    Parameters
    ----------
    {arrays}
    {options}

    Returns
    -------
    {result}

    Raises
    ------
    {errors}

    Notes
    -----
    Formula: H. Jeffreys, "An Invariant Form for the Prior Probability in Estimation Problems", Proceedings of the Royal
    Society A 186, pp. 453-461, 1946. The industry's "population stability index" is the same sum.

    Examples
    --------
    >>> import klnumba as kl
    >>> p, q = [0.5, 0.5], [0.25, 0.75]
    >>> float(kl.jeffreys_divergence(p, q)) == float(kl.jeffreys_divergence(q, p))
    True
    """
    between = function_of("jeffreys", p, q)
    if between is not None:
        _refuse(where, out, kind, axis, normalize, temperature, reduction, keepdims, dtype, threads, invalid, align)
        return between(p, q, base)
    return reduce(
        "jeffreys", p, q, kind, axis, normalize, base, temperature, reduction, where, keepdims, out, dtype, threads,
        invalid, align=align, stream=stream,
    )  # fmt: skip


@untraced
@_documented
def entropy(
    p: Any, *, kind: Kind = "prob", axis: Axis = -1, normalize: bool = True, base: float | None = None,
    temperature: float = 1.0, reduction: Reduction = "none", where: Any = None, keepdims: bool = False,
    out: np.ndarray | None = None, dtype: Any = None, threads: int | None = None, invalid: Invalid = "nan",
    align: Align = "outer", stream: Any = None,
) -> Any:  # fmt: skip
    """Shannon entropy -sum p*log(p) of every row.

    Parameters
    ----------
    p : array_like
        Real numbers of any dtype and layout. Masked cells are left out.
    {options}

    Returns
    -------
    {result}

    Raises
    ------
    {errors}

    Notes
    -----
    Formula: C. E. Shannon, "A Mathematical Theory of Communication", Bell System Technical Journal 27, 1948.

    Examples
    --------
    >>> import klnumba as kl
    >>> float(kl.entropy([1, 1, 1, 1], base=2))
    2.0
    """
    return reduce(
        "entropy", p, p, kind, axis, normalize, base, temperature, reduction, where, keepdims, out, dtype, threads,
        invalid, align=align, stream=stream,
    )  # fmt: skip


@untraced
@_documented
def row_statistics(
    p: Any, q: Any, *, stats: tuple[str, ...] | list[str] = STATISTICS, kind: Kind = "prob", axis: Axis = -1,
    normalize: bool = True, base: float | None = None, temperature: float = 1.0, where: Any = None,
    keepdims: bool = False, dtype: Any = None, threads: int | None = None, invalid: Invalid = "nan",
    align: Align = "outer", stream: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Several statistics of every row, from one read of memory.

    Rows are taken a block at a time, small enough to stay in the cache while every statistic is computed; each equals
    the single function bit for bit.

    Parameters
    ----------
    {arrays}
    stats : sequence of str, default all but "jeffreys"
        Any of "kl", "reverse_kl" (that is KL(q || p)), "js", "jeffreys", "entropy_p", "entropy_q", "cross_entropy",
        "argmax_agree" (whether the first largest cells agree) and "max_log_ratio" (the largest log(p/q) where p > 0).
    {options of several}

    Returns
    -------
    dict of str to array
        One array a statistic; "argmax_agree" is boolean, and False where a row is no distribution, for which only the
        others raise.

    Raises
    ------
    {errors}

    Examples
    --------
    >>> import klnumba as kl
    >>> found = kl.row_statistics([[1, 3], [2, 2]], [[2, 2], [2, 2]], stats=("kl", "max_log_ratio"), base=2)
    >>> found["max_log_ratio"].round(4)
    array([0.585, 0.   ])
    """
    return statistics(
        p, q, stats, kind, axis, normalize, base, temperature, where, keepdims, dtype, threads, invalid, align, stream
    )


@untraced
def rel_entr(
    p: Any, q: Any, /, out: Any = None, *, where: Any = True, dtype: Any = None, align: Align = "outer"
) -> Any:
    """p*log(p/q), cell by cell.

    Parameters
    ----------
    p, q : array_like
        Real numbers; they broadcast against each other. Series and DataFrames are matched by their labels.
    out : numpy.ndarray, optional
        Where to put the result.
    where : array_like of bool, default True
        Cells to compute; the others keep what `out` holds, and are NaN in a Series or DataFrame.
    dtype : dtype, optional
        Dtype of the result.
    align : {"outer", "strict"}, default "outer"
        What becomes of a label that only one of two Series or DataFrames has: a cell without mass on the other side, or
        an error.

    Returns
    -------
    numpy.ndarray, scalar or array of the caller's library, Series or DataFrame
        In nats: 0 where p = 0 and q >= 0, inf where p > 0 and q = 0 and where either is negative, as in
        ``scipy.special.rel_entr``.

    Raises
    ------
    ValueError
        If the shapes do not broadcast, or labels cannot be matched.
    TypeError
        If an argument is complex, text or object.

    Notes
    -----
    Formula: S. Boyd and L. Vandenberghe, Convex Optimization, 2004, section 3.2.6.

    Examples
    --------
    >>> import klnumba as kl
    >>> kl.rel_entr([0.0, 1.0, 2.0], [1.0, 1.0, 0.0])
    array([ 0.,  0., inf])
    """
    return pointwise("rel_entr", p, q, out, where, dtype, align)


@untraced
def generalized_kl(
    p: Any, q: Any, /, out: Any = None, *, where: Any = True, dtype: Any = None, align: Align = "outer"
) -> Any:
    """p*log(p/q) - p + q, cell by cell: never negative, and accurate where p is close to q.

    Parameters
    ----------
    p, q : array_like
        Real numbers; they broadcast against each other. Series and DataFrames are matched by their labels.
    out : numpy.ndarray, optional
        Where to put the result.
    where : array_like of bool, default True
        Cells to compute; the others keep what `out` holds, and are NaN in a Series or DataFrame.
    dtype : dtype, optional
        Dtype of the result.
    align : {"outer", "strict"}, default "outer"
        What becomes of a label that only one of two Series or DataFrames has: a cell without mass on the other side, or
        an error.

    Returns
    -------
    numpy.ndarray, scalar or array of the caller's library
        In nats: q where p = 0, inf where p > 0 and q = 0 and where either is negative. The edge values are those of
        ``scipy.special.kl_div``, but (inf, 1) and (1, inf) are inf, and (1, 1e-320) is finite.

    Raises
    ------
    ValueError
        If the shapes do not broadcast, or labels cannot be matched.
    TypeError
        If an argument is complex, text or object.

    Notes
    -----
    Formula: S. Boyd and L. Vandenberghe, Convex Optimization, 2004, section 3.2.6.

    Examples
    --------
    >>> import klnumba as kl
    >>> print(f"{kl.generalized_kl(1.0, 1.0 + 2.0**-30):.12e}")
    4.336808687249e-19
    """
    return pointwise("generalized_kl", p, q, out, where, dtype, align)
