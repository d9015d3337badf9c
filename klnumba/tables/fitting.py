"""Cells fitted on a reference: the rules by which bins and categories are chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from klnumba.tables.cells import Array, Bins, Categories, Cells, Label
from klnumba.tables.columns import Column, ColumnError, Labels, Numbers, Unusable, label_of

Rule = str | int | Sequence[float] | Array

RULES = ("auto", "quantile", "sturges", "doane", "fd", "category")
AUTO_BINS = 20
ROWS_A_BIN = 25
QUANTILE_BINS = 10
MOST_BINS = 256
FEW = 32  # whole numbers with no more different values than this are categories
MOST_CATEGORIES = 1000
SAMPLE = 1 << 17  # rows from which quantiles are taken


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
        if not 1 <= bins <= MOST_CATEGORIES:
            raise ValueError(f"bins: from 1 to {MOST_CATEGORIES}, not {bins}")
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


def fit(column: Column, rule: Any) -> Cells:
    """The cells of a column of the reference."""
    if isinstance(column, Unusable):
        raise ColumnError(column.reason)
    if isinstance(column, Labels):
        codes, found = column.read()
        counts = np.bincount(codes.astype(np.int64) + 1, minlength=len(found) + 1)[1:]
        return categories("category", merged(found, counts))
    if column.kind == "boolean":
        return Categories("boolean", (False, True))
    return fit_numbers(column, rule)


def merged(found: Sequence[Any], counts: Array) -> dict[Label, int]:
    """Counts by label; what has none is left out."""
    held: dict[Label, int] = {}
    for k in map(int, np.flatnonzero(counts)):
        label = label_of(found[k])
        held[label] = held.get(label, 0) + int(counts[k])
    return held


def categories(kind: str, counts: Mapping[Label, int]) -> Categories:
    """The most frequent categories by name, ties in the order of their texts."""
    order = sorted(counts, key=lambda label: (-counts[label], str(label)))
    return Categories(kind, tuple(order[:MOST_CATEGORIES]), max(len(order) - MOST_CATEGORIES, 0))


def fit_numbers(column: Numbers, rule: Any) -> Cells:
    """Bins, or categories where there are a few whole numbers."""
    raw = column.read()
    if column.kind == "number" and isinstance(rule, str) and rule in ("auto", "category"):
        few = _few_whole(raw) if rule == "auto" else _distinct(raw)
        if few is not None:
            return categories("number", few)
    elif isinstance(rule, str) and rule == "category":
        raise ColumnError(f"bins: a column of kind {column.kind} has no categories")
    return Bins(column.kind, _edges(raw, rule), column.aware)


def _finite(raw: Array) -> Array:
    from klnumba.tables.columns import as_float

    values = as_float(raw)
    kept = np.isfinite(values)
    return values if kept.all() else values[kept]


def _distinct(raw: Array) -> dict[Label, int]:
    values, counts = np.unique(_finite(raw), return_counts=True)
    return {_plain(value): int(count) for value, count in zip(values, counts, strict=True)}


def _few_whole(raw: Array) -> dict[Label, int] | None:
    """The different values if they are few and whole, else None."""
    values = _finite(_sampled(raw))
    if not values.size or (values != np.rint(values)).any() or np.unique(values).size > FEW:
        return None
    values = _finite(raw)
    low, high = values.min(), values.max()
    if (values != np.rint(values)).any() or max(abs(low), abs(high)) >= 2.0**53:
        return None
    if high - low < 1 << 16:
        counts = np.bincount((values - low).astype(np.int64))
        places = np.flatnonzero(counts)
        if places.size > FEW:
            return None
        return {int(low) + int(k): int(counts[k]) for k in places}
    found = _distinct(values)
    return found if len(found) <= FEW else None


def _plain(value: float) -> Label:
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < 2.0**53 else number


def _sampled(raw: Array) -> Array:
    """`SAMPLE` rows, drawn with a fixed seed; all where there are no more."""
    if raw.size <= SAMPLE:
        return raw
    return raw[np.sort(np.random.default_rng(0).integers(raw.size, size=SAMPLE))]


def _edges(raw: Array, rule: Any) -> Array:
    if not isinstance(rule, (str, int, np.integer)):
        return explicit_edges(rule)
    if isinstance(rule, str) and rule in ("auto", "quantile"):
        return _quantiles(raw, rule)
    values = _finite(raw)
    if not values.size:
        return np.empty(0)
    low, high = values.min(), values.max()
    if low == high:
        return np.array([low, high])
    bins = int(rule) if not isinstance(rule, str) else _number_of_bins(values, rule)
    edges = np.unique(np.linspace(low, high, bins + 1))
    edges[-1] = high
    return edges


def _number_of_bins(values: Array, rule: str) -> int:
    """How many bins of equal width NumPy's rule takes, at most `MOST_BINS`."""
    n, span = values.size, float(np.ptp(values))
    if rule == "fd":
        low, high = np.quantile(values, [0.25, 0.75])
        width = 2.0 * (high - low) / n ** (1.0 / 3.0)
        if not width > 0.0:
            rule = "sturges"
        else:
            return int(min(MOST_BINS, max(1, math.ceil(min(span / width, 1e9)))))
    bins = math.log2(n) + 1.0
    deviation = float(values.std())
    if rule == "doane" and n > 2 and deviation > 0.0:
        skewness = float(np.mean(((values - values.mean()) / deviation) ** 3))
        bins += math.log2(1.0 + abs(skewness) / math.sqrt(6.0 * (n - 2) / ((n + 1.0) * (n + 3.0))))
    return int(min(MOST_BINS, max(1, math.ceil(bins))))


def _quantiles(raw: Array, rule: str) -> Array:
    """Edges with equal shares of the reference between them; a value that fills a bin alone stands alone."""
    sample = _finite(_sampled(raw))
    whole = _finite(raw) if raw.size > SAMPLE or not sample.size else sample
    if not whole.size:
        return np.empty(0)
    low, high = whole.min(), whole.max()
    count = QUANTILE_BINS if rule == "quantile" else min(AUTO_BINS, max(2, whole.size // ROWS_A_BIN))
    inner = np.quantile(sample, np.arange(1, count) / count, method="inverted_cdf") if sample.size else np.empty(0)
    inner = np.unique(inner[inner > low])
    return np.concatenate([[low], inner, [high]])
