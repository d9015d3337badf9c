"""The rules by which bins are chosen, and the edges that each makes."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from klnumba.tables.cells import FARTHEST, LARGEST, Array
from klnumba.tables.columns import KINDS, ColumnError, absent, as_float

Rule = str | int | Sequence[float] | Array

RULES = ("auto", "quantile", "sturges", "doane", "fd", "category")
AUTO_BINS = 20
ROWS_A_BIN = 25
QUANTILE_BINS = 10
MOST_BINS = 256
MOST_EDGES = 1000


def check_rule(bins: Any, name: str = "bins") -> Any:
    """Refuse what is no rule, before any work is done; of a mapping, the rules by names as texts."""
    if isinstance(bins, Mapping):
        rules: dict[str, Any] = {}
        for column, rule in bins.items():
            if isinstance(rule, Mapping):
                raise TypeError(f"bins: one rule for column {column!r}, not a mapping")
            if str(column) in rules:
                raise ValueError(f"bins: column {str(column)!r} stands there twice")
            rules[str(column)] = check_rule(rule, f"bins: column {column!r}")
        return rules
    if isinstance(bins, str):
        if bins not in RULES:
            raise ValueError(f"{name}: one of {', '.join(map(repr, RULES))}, an integer or edges, not {bins!r}")
    elif isinstance(bins, (bool, float)) or bins is None:
        raise TypeError(f"{name}: a rule's name, an integer or edges, not {bins!r}")
    elif isinstance(bins, (int, np.integer)):
        if not 1 <= bins <= MOST_EDGES:
            raise ValueError(f"{name}: from 1 to {MOST_EDGES}, not {bins}")
    else:
        explicit_edges(bins, name)
    return bins


def rule_of(bins: Any, column: str) -> Any:
    """The rule of one column; a mapping, as `check_rule` returns it, leaves "auto" to those it does not name."""
    return bins.get(column, "auto") if isinstance(bins, Mapping) else bins


def misfit(rule: Any, kind: str, aware: bool) -> str | None:
    """Why a rule makes no bins of a kind of column, if it makes none."""
    if kind in ("category", "boolean"):
        fits = isinstance(rule, str) and rule in ("auto", "category")
        return None if fits else f"holds {KINDS[kind]}, of which no bins are made"
    if kind not in KINDS or isinstance(rule, (str, int, np.integer)):
        return None
    found, zone = kind_of(rule)
    if found != kind:
        return f"holds {KINDS[kind]}, but the edges are {KINDS[found]}"
    if zone == aware:
        return None
    return f"holds times {'with' if aware else 'without'} a zone, but the edges have {'one' if zone else 'none'}"


def kind_of(edges: Any) -> tuple[str, bool]:
    """The kind of column that edges are for, and whether they have a zone."""
    values, _, zone = _typed(edges)
    return {"M": "datetime", "m": "timedelta"}.get(values.dtype.kind, "number"), zone


def explicit_edges(edges: Any, name: str = "bins") -> Array:
    """Edges that a caller gave; the outer ones may be infinite, and then hold all numbers that are finite."""
    try:
        array, found, _ = _typed(edges)
        if array.ndim != 1 or found.size < 2 or array.dtype.kind not in "fiumM":
            raise ValueError("edges are a sequence of at least two numbers or times")
        found[np.isfinite(found)] = as_float(array)
    except OverflowError:
        raise ValueError(f"{name}: edges are numbers that float64 holds") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    farthest = FARTHEST if array.dtype.kind in "mM" else LARGEST
    for end, largest in ((0, -farthest), (-1, farthest)):
        if math.isinf(found[end]) and found[end] * largest > 0:
            found[end] = largest
    if not np.isfinite(found).all():
        raise ValueError(
            f"{name}: edges are finite, but for the outer ones; missing and infinite values have own cells"
        )
    increase = found[1:] > found[:-1]
    if not increase.all():
        k = int(np.argmin(increase))
        if found[k] == found[k + 1] and np.unique(array).size == array.size:
            raise ValueError(f"{name}: edges {k} and {k + 1} are so close that they have one float64")
        raise ValueError(f"{name}: edges increase, but number {k + 1} does not")
    return found


def _typed(edges: Any) -> tuple[Array, Array, bool]:
    """Edges as an array of numbers, times or durations, where they stand, and whether they have a zone.

    Those with a zone are in UTC. Beside times, which NumPy has no infinite ones of, the infinite edges are left out of
    the array; the second has these, and zeros for all others.
    """
    array = np.asarray(_told(edges))
    near = np.zeros(array.size)
    if array.dtype.kind != "O" or array.ndim != 1:
        return array, near, False
    if any(map(absent, array)):
        raise ValueError("edges, none of which is missing")
    far = np.array([isinstance(value, (float, np.floating)) and math.isinf(value) for value in array])
    if far.any() and not far[1:-1].any() and not far.all():
        found, _, zone = _typed(array[~far])
        if found.dtype.kind in "mM":
            return found, np.where(far, array, near).astype(np.float64), zone
    if all(isinstance(value, (dt.date, np.datetime64)) for value in array):
        zones = {getattr(value, "tzinfo", None) is not None for value in array}
        if len(zones) > 1:
            raise ValueError("edges all have a zone, or none has")
        if zones == {True}:
            array = np.array([value.astimezone(dt.UTC).replace(tzinfo=None) for value in array], object)
        return _times(array, "M8"), near, zones == {True}
    if all(isinstance(value, (dt.timedelta, np.timedelta64)) for value in array):
        return _times(array, "m8"), near, False
    if all(isinstance(value, (Real, Decimal)) for value in array):
        return array.astype(np.float64), near, False
    return array, near, False


def _times(edges: Array, kind: str) -> Array:
    """Times or durations as microseconds, or as nanoseconds where one of pandas' or NumPy's has parts of one."""
    held = [getattr(edge, "asm8", edge) for edge in edges]  # NumPy's own, for that of pandas' Python has no such parts
    fine = any(isinstance(edge, np.generic) and edge != edge.astype(f"{kind}[us]") for edge in held)
    return np.array(held, object).astype(f"{kind}[{'ns' if fine else 'us'}]")


def _told(edges: Any) -> Any:
    """The times of polars and Arrow one by one where they have a zone, which NumPy would not say."""
    for holder, name, listed in (("dtype", "time_zone", "to_list"), ("type", "tz", "to_pylist")):
        if getattr(getattr(edges, holder, None), name, None) is not None and hasattr(edges, listed):
            return getattr(edges, listed)()
    return edges


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
