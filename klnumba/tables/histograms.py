"""Profiles from what others have counted: histograms, and the partitions of Great Expectations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from klnumba.reduction import real
from klnumba.tables.cells import Array, Bins, Categories, Cells
from klnumba.tables.columns import absent, label_of
from klnumba.tables.profile import Profile
from klnumba.tables.rules import explicit_edges, kind_of
from klnumba.tables.tally import Tally
from klnumba.tables.whole import plain

MOST_ROWS = int(np.iinfo(np.int64).max)


def from_histogram(
    edges: Any, counts: Any, *, column: str = "value", below: int = 0, above: int = 0, missing: int = 0
) -> Profile:
    """A profile of one column from a histogram, such as `numpy.histogram` makes.

    Parameters
    ----------
    edges : (bins + 1,) array_like
        Increasing edges, of numbers, times or durations; a bin has its lower edge, the last has both. The outer ones
        may be infinite. Edges of times with a zone are for columns with one.
    counts : (bins,) array_like of int
        How many rows each bin has.
    column : str, default "value"
        The name of the column.
    below, above, missing : int
        How many rows lie outside the edges, or are missing.

    Returns
    -------
    Profile

    Raises
    ------
    ValueError
        If the edges do not increase, or the counts are negative, broken, not one a bin, or 2**63 and more in all.

    Examples
    --------
    >>> import numpy as np
    >>> from klnumba.tables import from_histogram
    >>> counts, edges = np.histogram([1.0, 2.0, 2.5, 4.0], bins=3)
    >>> from_histogram(edges, counts, column="size").cells["size"].labels()[1:4]
    ['[1, 2)', '[2, 3)', '[3, 4]']
    """
    found = explicit_edges(edges, "edges")
    kind, aware = kind_of(edges)
    inner = np.asarray(counts, object)  # a dtype for all might round some
    if inner.shape != (found.size - 1,):
        raise ValueError(f"counts: one a bin, so {found.size - 1}, not an array of shape {inner.shape}")
    outer = {"below": below, "above": above, "missing": missing}
    (first,), (last,), (lost,) = (_whole([value], name) for name, value in outer.items())
    numbers = [first, *_whole(inner.tolist(), "counts"), last, 0, 0, lost]
    if sum(numbers) > MOST_ROWS:
        raise ValueError(f"counts: at most 2**63 - 1 rows in all, not {sum(numbers)}")
    tally = Tally(np.array(numbers, np.int64), None, sum(numbers), {})
    return Profile({str(column): Bins(kind, found, aware)}, {str(column): tally})


def _whole(numbers: Sequence[Any], name: str) -> list[int]:
    """Counts as integers, none of which is rounded."""
    numbers = [one.item() if isinstance(one, np.generic) else one for one in numbers]
    if not all(type(one) in (int, float) and 0 <= one < math.inf for one in numbers):
        raise ValueError(f"{name}: finite numbers from 0 on")
    if any(one != int(one) for one in numbers):
        raise ValueError(f"{name}: whole numbers; for shares see from_great_expectations")
    return [int(one) for one in numbers]


def from_great_expectations(
    partition: Mapping[str, Any], *, column: str = "value", n: float | None = None, tail_weight_holdout: float = 0.0,
    internal_weight_holdout: float = 0.0,
) -> Profile:  # fmt: skip
    """A profile of one column from a partition object of Great Expectations.

    Missing values have no part in such a partition: compare with ``missing="drop"``. Great Expectations reports
    KL(current || reference), which is "kl_reverse" with ``smoothing="none"``.

    Parameters
    ----------
    partition : mapping
        "bins", "weights" and, possibly, "tail_weights"; or "values" and "weights". The ends of "bins" may be infinite.
    column : str, default "value"
        The name of the column.
    n : float, optional
        How many rows the weights come from. Without it, the weights are taken for the true distribution.
    tail_weight_holdout : float, default 0
        Weight for what lies outside the bins, half on either side (all of it on the one side that is not infinite), or
        for other categories.
    internal_weight_holdout : float, default 0
        Weight that the bins without weight share.

    Returns
    -------
    Profile

    Raises
    ------
    ValueError
        If the partition is none, its weights do not add up to 1, or a holdout is not allowed with it.

    Examples
    --------
    >>> import pandas as pd
    >>> from klnumba.tables import from_great_expectations
    >>> profile = from_great_expectations({"values": ["a", "b"], "weights": [0.75, 0.25]}, column="x")
    >>> found = profile.compare(pd.DataFrame({"x": [*"aabb"]}), smoothing="none", missing="drop")
    >>> float(found.to_frame().loc[0, "kl_reverse"].round(4))
    0.1438
    """
    tail, internal = (
        _holdout(value, name)
        for value, name in (
            (tail_weight_holdout, "tail_weight_holdout"),
            (internal_weight_holdout, "internal_weight_holdout"),
        )
    )
    if not tail + internal <= 1.0:
        raise ValueError(f"tail_weight_holdout, internal_weight_holdout: at most 1 together, not {tail + internal:g}")
    if (
        not isinstance(partition, Mapping)
        or "weights" not in partition
        or ("bins" in partition) == ("values" in partition)
    ):
        raise ValueError('partition: a mapping with "weights", and either "bins" or "values"')
    weights = _floats(partition, "weights")
    tails = _floats(partition, "tail_weights") if "tail_weights" in partition else np.zeros(2)
    if weights.ndim != 1 or tails.shape != (2,) or not (weights >= 0).all() or not (tails >= 0).all():
        raise ValueError("partition: weights are numbers from 0 on, tail_weights two of them")
    if not math.isclose(weights.sum() + tails.sum(), 1.0, abs_tol=1e-5):
        raise ValueError(f"partition: weights add up to {weights.sum() + tails.sum():.6g}, not to 1")
    if "values" in partition:
        if internal:
            raise ValueError("internal_weight_holdout: not for categories")
        if tails.any():
            raise ValueError("partition: tail_weights go with bins, and not with values")
        cells, shares = _categories(partition["values"], weights, tail)
    else:
        if tail and "tail_weights" in partition:
            raise ValueError("tail_weight_holdout: the partition has tail_weights already")
        cells, shares = _bins(_floats(partition, "bins"), weights, tails, tail, internal)
    return _profile(str(column), cells, shares, n)


def _floats(partition: Mapping[str, Any], part: str) -> Array:
    try:
        return np.asarray(partition[part], np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"partition: {part!r} are numbers, not {partition[part]!r}") from None


def _holdout(value: float, name: str) -> float:
    if not 0.0 <= real(value, name) <= 1.0:
        raise ValueError(f"{name}: a number from 0 to 1, not {value!r}")
    return float(value)


def _profile(column: str, cells: Cells, shares: Array, n: float | None) -> Profile:
    if n is None:
        return Profile({column: cells}, {column: Tally(shares, None, 0, {})}, known=frozenset([column]))
    if not 0.0 < real(n, "n") < math.inf:
        raise ValueError(f"n: a positive finite number, not {n!r}")
    counts = shares * (n / shares.sum())
    return Profile({column: cells}, {column: Tally(counts, counts.copy(), round(n), {})})


def _categories(values: Sequence[Any], weights: Array, tail: float) -> tuple[Cells, Array]:
    found = np.asarray(values, object).tolist()
    if not isinstance(found, list):
        raise ValueError(f"partition: 'values' are a sequence, not {values!r}")
    for value in found:
        if absent(value) or (isinstance(value, Real) and abs(value) == math.inf):
            raise ValueError(f"partition: values that are there and finite, without {value}")
    flags = [isinstance(value, (bool, np.bool_)) for value in found]
    numeric = all(isinstance(value, Real) for value in found) and not any(flags)
    names = tuple(map(plain if numeric else bool if all(flags) else label_of, found))
    if len(names) != weights.size or len(set(names)) < len(names):
        raise ValueError("partition: values differ, and each has a weight")
    shares = dict(zip(names, (weights * (1.0 - tail)).tolist(), strict=True))
    if found and all(flags):
        names = (False, True)  # as of every column of truth values
    cells = Categories("number" if numeric else "boolean" if all(flags) else "category", names)
    return cells, np.array([*(shares.get(name, 0.0) for name in names), tail, 0.0])


def _bins(bins: Array, weights: Array, tails: Array, tail: float, internal: float) -> tuple[Cells, Array]:
    if bins.ndim != 1 or bins.size != weights.size + 1 or not (np.diff(bins) > 0).all():
        raise ValueError("partition: bins increase, and number one more than the weights")
    shares = weights * (1.0 - tail - internal)
    empty = shares == 0
    if internal and empty.any():
        shares[empty] = internal / empty.sum()
    open_ends = np.isinf(bins[[0, -1]])
    if open_ends.all() and tail:
        raise ValueError("tail_weight_holdout: the outer bins reach to infinity already")
    if open_ends.any() and tails.any():
        raise ValueError("partition: no tail_weights where an outer bin reaches to infinity")
    ends = tails + np.where(open_ends, 0.0, tail / max(2 - int(open_ends.sum()), 1))
    if open_ends[0]:
        ends[0], shares, bins = shares[0], shares[1:], bins[1:]
    if open_ends[1]:
        ends[1], shares, bins = shares[-1], shares[:-1], bins[:-1].copy()
        bins[-1] = np.nextafter(bins[-1], -math.inf)  # the edge itself belongs to the bin that reaches to infinity
    if bins.size < 2:
        raise ValueError("partition: at least one bin with two finite ends")
    return Bins("number", bins), np.array([ends[0], *shares, ends[1], 0.0, 0.0, 0.0])
