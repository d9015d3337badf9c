"""The rules by which bins are chosen, and the edges that each makes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from klnumba.tables.cells import Array
from klnumba.tables.columns import ColumnError

Rule = str | int | Sequence[float] | Array

RULES = ("auto", "quantile", "sturges", "doane", "fd", "category")
AUTO_BINS = 20
ROWS_A_BIN = 25
QUANTILE_BINS = 10
MOST_BINS = 256
MOST_EDGES = 1000


def check_rule(bins: Any) -> None:
    """Refuse what is no rule, before any work is done."""
    if isinstance(bins, Mapping):
        for name, rule in bins.items():
            if isinstance(rule, Mapping):
                raise TypeError(f"bins: one rule for column {name!r}, not a mapping")
            check_rule(rule)
    elif isinstance(bins, str):
        if bins not in RULES:
            raise ValueError(f"bins: one of {', '.join(map(repr, RULES))}, an integer or edges, not {bins!r}")
    elif isinstance(bins, (bool, float)) or bins is None:
        raise TypeError(f"bins: a rule's name, an integer or edges, not {bins!r}")
    elif isinstance(bins, (int, np.integer)):
        if not 1 <= bins <= MOST_EDGES:
            raise ValueError(f"bins: from 1 to {MOST_EDGES}, not {bins}")
    else:
        explicit_edges(bins)


def rule_of(bins: Any, column: str) -> Any:
    """The rule of one column; a mapping leaves "auto" to those it does not name."""
    return bins.get(column, "auto") if isinstance(bins, Mapping) else bins


def explicit_edges(edges: Any) -> Array:
    """Edges that a caller gave."""
    array = np.asarray(edges)
    if array.dtype.kind in "mM":
        array = array.astype(f"{array.dtype.kind}8[us]").view(np.int64)
    if array.ndim != 1 or array.size < 2 or array.dtype.kind not in "fiu":
        raise ValueError("bins: edges are a sequence of at least two numbers")
    found = array.astype(np.float64)
    if not np.isfinite(found).all():
        raise ValueError("bins: edges are finite; what lies outside them has cells of its own")
    if (np.diff(found) <= 0).any():
        raise ValueError(f"bins: edges increase, but number {int(np.argmin(np.diff(found) > 0)) + 1} does not")
    return found


def edges(rule: Any, sample: Array, finite: int, low: float, high: float) -> Array:
    """The edges of a column.

    Parameters
    ----------
    rule : str, int or sequence of float
        Any but "category".
    sample : (rows,) array
        Finite numbers of the reference, or some of them.
    finite : int
        How many there are in all.
    low, high : float
        The least and the greatest of all.

    Returns
    -------
    (bins + 1,) array
        None where there are no numbers. The last two may be equal: then the last bin holds the greatest number alone.
        Elsewhere a bin holds one number alone if it ends at the next number that a float64 holds.
    """
    if not isinstance(rule, (str, int, np.integer)):
        return explicit_edges(rule)
    if not finite:
        return np.empty(0)
    if isinstance(rule, str) and rule in ("auto", "quantile"):
        return _quantiles(sample, finite, low, high, rule)
    if low == high:
        return np.array([low, high])
    if not math.isfinite(high - low):
        raise ColumnError(
            "spans more than a float64 holds: bins of equal width cannot be made, those of equal mass can"
        )
    bins = _number_of_bins(sample, finite, high - low, rule) if isinstance(rule, str) else int(rule)
    found = np.unique(np.linspace(low, high, bins + 1))
    found[-1] = high
    return found


def _number_of_bins(sample: Array, finite: int, span: float, rule: str) -> int:
    """How many bins of equal width NumPy's rule takes, at most `MOST_BINS`."""
    if rule == "fd" and sample.size:
        low, high = np.quantile(sample, [0.25, 0.75])
        width = 2.0 * (high - low) / finite ** (1.0 / 3.0)
        if width > 0.0:
            return int(min(MOST_BINS, max(1, math.ceil(min(span / width, 1e9)))))
    bins = math.log2(finite) + 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = float(sample.std()) if sample.size else 0.0
    if rule == "doane" and finite > 2 and 0.0 < deviation < math.inf:
        skewness = float(np.mean(((sample - sample.mean()) / deviation) ** 3))
        spread = math.sqrt(6.0 * (finite - 2) / ((finite + 1.0) * (finite + 3.0)))
        bins += math.log2(1.0 + abs(skewness) / spread)
    return int(min(MOST_BINS, max(1, math.ceil(bins))))


def _quantiles(sample: Array, finite: int, low: float, high: float, rule: str) -> Array:
    """Edges with equal shares of the reference between them; a value with such a share has a bin of its own.

    That bin ends at the next number that a float64 holds.
    """
    if not sample.size:
        return np.array([low, high])
    count = QUANTILE_BINS if rule == "quantile" else min(AUTO_BINS, max(2, finite // ROWS_A_BIN))
    values = np.sort(sample)
    found = np.unique(values[-(-values.size * np.arange(1, count + 1) // count) - 1])
    rows = np.searchsorted(values, found, "right") - np.searchsorted(values, found, "left")
    heavy = found[rows * count >= values.size]
    inner = np.unique(np.concatenate([found[:-1], heavy, np.nextafter(heavy, math.inf)]))
    return np.concatenate([[low], inner[(inner > low) & (inner <= high)], [high]])
