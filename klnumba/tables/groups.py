"""Divergences of groups of rows: each group against all other rows, or against one of the groups."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from klnumba import divergence
from klnumba.arrays import one_of
from klnumba.labels import listed, numbers, only
from klnumba.optional import load, type_name
from klnumba.reduction import positive_unit, real
from klnumba.tables import objects
from klnumba.tables import smoothing as smoothings
from klnumba.tables.cells import Array
from klnumba.tables.columns import label_of
from klnumba.tables.group_weights import Side, sides_of
from klnumba.tables.hashing import order_of
from klnumba.tables.pooling import Pair
from klnumba.tables.rows import frame_of
from klnumba.tables.statistics import CORRECTIONS, adjusted, evidence, spread
from klnumba.tables.weighting import check_index, in_range

CELLS = 1 << 28  # groups times values: 2 GiB of counts
BLOCK = 1 << 21  # of them at a time, where statistics need more room


def kl_groups(
    frame: Any, by: Any, column: Hashable, *, weights: Any = None, against: Any = None, missing: str = "cell",
    stats: tuple[str, ...] | list[str] = ("kl",), smoothing: str | float = "none", confidence: float | None = None,
    correction: str = "bh", base: float | None = None, threads: int | None = None,
) -> Any:  # fmt: skip
    """KL of the values of a column in each group of rows, to those in all other rows or in one group.

    All groups are counted in one pass. Each distinct value of the column is a cell; numbers that are spread out want
    bins first, such as those of `pandas.cut`.

    Parameters
    ----------
    frame : pandas.DataFrame
        The rows.
    by : label or list of labels
        The column or columns that name the group. A row where one is missing belongs to no group, and is not counted at
        all. Categories without rows are no groups.
    column : label
        The column whose values are compared: of any dtype, if its values can be hashed.
    weights : label or array_like, optional
        How much each row counts: a column or an array, 0 or from 1e-100 to 1e100; a row of weight 0 is left out. By
        default each row counts 1.
    against : label, optional
        The group that all are compared with; of several columns `by`, a tuple. By default each group is compared with
        all other rows.
    missing : {"cell", "drop"}, default "cell"
        Whether missing values of `column` are a cell of their own, or their rows are not counted.
    stats : sequence of str, default ("kl",)
        What is computed, as in `klnumba.row_statistics`.
    smoothing : {"none", "jeffreys", "laplace", "perks", "james-stein"} or float, default "none"
        Pseudo-counts for `stats`, as in `klnumba.tables.compare`.
    confidence : float, optional
        Also give the evidence: the bias-corrected value, its interval with this confidence, and the test of no change,
        all of the counts as they are.
    correction : {"bh", "bonferroni", "holm", "none"}
        How p-values are adjusted for the number of groups.
    base : float, optional
        Unit of the result: None for nats, 2 for bits; above 1.
    threads : int, optional
        How many threads may work.

    Returns
    -------
    pandas.DataFrame
        One row a group, sorted: ``n``, its number of rows; with weights, ``weight``, their sum; and a column for each
        of `stats`. A group that has a value which the others do not have is at an infinite distance, unless counts are
        smoothed; where one of the two sides has no rows or no weight, the result is NaN.
        With `confidence`, also ``n_effective`` and ``n_effective_other``, ``kl_corrected``, ``standard_error``,
        ``ci_low``, ``ci_high``, ``g``, ``dof``, ``p_value`` and ``p_adjusted``, as in `klnumba.tables.compare`; NaN for
        a group against itself.

    Raises
    ------
    TypeError
        If `frame` is no DataFrame, `by`, `column` or `against` is no label, or values cannot be hashed.
    ValueError
        If there is no such column or group, a weight is out of its range, an option is out of its range, or
        groups times values are more than ``2**28`` cells.
    ModuleNotFoundError
        With `confidence`, if SciPy is not installed.

    Notes
    -----
    `stats` are those of what was counted, without a correction: a group of n rows that is not different at all has
    about (K - 1)/2 * (1/n + 1/m) nats, for K values and m rows that it is compared with. That is what ``kl_corrected``
    takes away, and what the p-value knows.

    Examples
    --------
    >>> import pandas as pd
    >>> from klnumba.tables import kl_groups
    >>> rides = pd.DataFrame({"day": ["Mon", "Mon", "Mon", "Sun", "Sun", "Sun"], "by": list("bbtbtt")})
    >>> kl_groups(rides, "day", "by").round(4)
         n     kl
    day
    Mon  3  0.231
    Sun  3  0.231
    """
    one_of(missing, ("cell", "drop"), "missing")
    one_of(correction, CORRECTIONS, "correction")
    smoothings.check(smoothing)
    if confidence is not None and not 0.0 < real(confidence, "confidence") < 1.0:
        raise ValueError(f"confidence: a number between 0 and 1, not {confidence!r}")
    unit = positive_unit(base)
    pandas = load("pandas")
    frame_of(frame, "frame")
    group, labels = _groups(frame, by)
    series = _column(frame, column, "column")
    try:
        codes, values = objects.factorized(series, use_na_sentinel=missing == "drop")
    except TypeError as error:
        raise TypeError(f"column: the values of {column!r} cannot be counted: {error}") from None
    value, order = _ordered(codes, values)
    weight = None if weights is None else _weights(frame, weights)
    size = len(labels), len(values)
    if size[0] * size[1] > CELLS:
        raise ValueError(f"by, column: {size[0]:,} groups of {size[1]:,} values are more than 2**28 cells")
    held = (group >= 0) & (value >= 0) & (True if weight is None else weight > 0.0)
    if not held.all():
        group, value = group[held], value[held]
        weight = None if weight is None else weight[held]
    place = None if against is None else _place(labels, against)
    if weight is None:
        sides, total = _counted(group, value, size, place), None
    else:
        sides, total = sides_of(group, value, weight, size, place)
    smoothed = _smoothed(*sides, smoothing)
    found = divergence.row_statistics(*smoothed, stats=stats, base=base, threads=threads)
    result = {"n": np.bincount(group, minlength=size[0])}
    if total is not None:
        result["weight"] = total
    result |= found
    if confidence is not None:
        result |= _evidence(*sides, place, order, float(confidence), unit)
        result["p_adjusted"] = adjusted(result["p_value"], correction)
    return pandas.DataFrame(result, index=labels)


def _counted(group: Array, value: Array, size: tuple[int, int], place: int | None) -> tuple[Side, Side]:
    """The rows of each group, and those of all others, or of the group at `place`."""
    counts = np.bincount(group * size[1] + value, minlength=size[0] * size[1]).reshape(size)
    other = counts.sum(axis=0) - counts if place is None else counts[place]
    return (counts, _rows(counts), None), (other, _rows(other), None)


def _rows(counts: Array) -> Array:
    found: Array = counts.sum(axis=-1).astype(np.float64)
    return found


def _smoothed(first: Side, second: Side, smoothing: str | float) -> tuple[Array, Array]:
    if smoothing == "none":
        return first[0], second[0]
    shape = first[0].shape
    p, q = (np.broadcast_to(side[0], shape) for side in (first, second))
    used = (p > 0) | (q > 0)
    n, m = (np.broadcast_to(side[1], shape[:1]) for side in (first, second))
    return smoothings.smooth(p, n, used, smoothing), smoothings.smooth(q, m, used, smoothing)


def _ordered(codes: Array, values: Any) -> tuple[Array, Array]:
    """The codes of values in an order that neither groups nor rows have made, and the numbers that increase with it."""
    order = _order(load("pandas").Index(values))
    places = np.argsort(order)
    ranks = np.full(order.size + 1, -1)  # the last is that of missing values, whose code is -1
    ranks[places] = np.arange(order.size)
    return ranks[codes], order[places] if order.size else np.zeros(1)


def _order(values: Any) -> Array:
    """Numbers by which values come in an order of their own."""
    try:
        found: Array = load("pandas").util.hash_pandas_object(values, index=False).to_numpy() / 2.0**64
    except UnicodeEncodeError:  # half of a surrogate pair
        found = order_of(map(label_of, values.tolist()))
    return found


def _evidence(
    first: Side, second: Side, itself: int | None, order: Array, confidence: float, unit: float
) -> dict[str, Array]:
    """Effective numbers of rows, the interval and the test of each group."""
    shape = first[0].shape
    p, q = (np.broadcast_to(side[0], shape).astype(np.float64) for side in (first, second))
    if not shape[1]:  # no values at all: an empty cell stands for them
        p = q = np.zeros((shape[0], 1))
    squares = [np.broadcast_to(side[2], shape) for side in (first, second) if side[2] is not None and shape[1]]
    n, m = first[1], np.broadcast_to(second[1], shape[:1])
    some = (n > 0) & (m > 0)
    if itself is not None:
        some[itself] = False
    parts = []
    step = max(1, BLOCK // max(shape[1], 1))
    for start in range(0, max(shape[0], 1), step):
        here = slice(start, start + step)
        both = (squares[0][here], squares[1][here]) if squares else None
        orders = np.broadcast_to(order, p[here].shape)
        pair = Pair(p[here], n[here], q[here], m[here], np.zeros_like(p[here], np.int64), squares=both, order=orders)
        parts.append(evidence(pair.select(some[here]), confidence, unit))
    found = {name: spread(np.concatenate([part[name] for part in parts]), some) for name in parts[0]}
    return {"n_effective": n, "n_effective_other": m} | found


def _groups(frame: Any, by: Any) -> tuple[Array, Any]:
    """The number of each row's group, -1 where it has none, and the groups."""
    keys = list(by) if isinstance(by, list) else [by]
    if not keys:
        raise ValueError("by: at least one column")
    columns = [_column(frame, key, "by") for key in keys]
    grouped = frame.groupby(columns if len(columns) > 1 else columns[0], sort=True, observed=True)
    try:
        number = grouped.ngroup().to_numpy(dtype=np.float64, na_value=-1.0)
    except TypeError as error:
        raise TypeError(f"by: the values of {by!r} cannot be grouped: {error}") from None
    return number.astype(np.intp), grouped.size().index


def _place(labels: Any, group: Any) -> int:
    try:
        hash(group)
    except TypeError:
        what = repr(group) if isinstance(group, tuple) else type(group).__name__
        raise TypeError(f"against: the label of one group, of several columns a tuple of them, not {what}") from None
    fits = labels.nlevels == (len(group) if isinstance(group, tuple) and labels.nlevels > 1 else 1)
    at = int(labels.get_indexer([group])[0]) if len(labels) and fits else -1
    if at < 0:
        raise ValueError(f"against: no group {group!r}; there are {listed(labels) or 'none'}")
    return at


def _weights(frame: Any, weights: Any) -> Array:
    labelled = isinstance(weights, load("pandas").Series)
    if isinstance(weights, Hashable) and not labelled:
        weights, labelled = _column(frame, weights, "weights"), True
    if labelled:
        check_index(weights, frame.index)
    given = numbers(weights, "weights") if labelled else np.asarray(weights)
    if given.dtype.kind not in "fiub":
        raise TypeError(f"weights: a column, or a number for each row, not {given.dtype} values")
    found = np.asarray(given, np.float64)
    if found.shape != (len(frame),):
        raise ValueError(f"weights: one a row, {len(frame)}, not shape {found.shape}")
    return in_range(found, lambda row: f"row {only(frame.index, row)!r}")


def _column(frame: Any, label: Any, name: str) -> Any:
    try:
        hash(label)
    except TypeError:
        raise TypeError(f"{name}: the label of one column, not {type_name(label)}") from None
    try:
        found = frame[label]
    except (KeyError, TypeError):
        raise ValueError(f"{name}: no column {label!r}") from None
    if found.ndim != 1:
        raise ValueError(f"{name}: column {label!r} occurs {found.shape[1]} times")
    return found
