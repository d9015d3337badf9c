"""What other tools report for the same two columns: their bins, their direction, their way with zeros.

Read from their sources and compared with recorded runs in the tests; the documentation says how each differs from
`klnumba.tables.compare`. Nothing of this enters the other columns of a comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import klnumba as kl
from klnumba.arrays import one_of
from klnumba.tables.border import frame_columns
from klnumba.tables.cells import Array, Label
from klnumba.tables.columns import KINDS, Column, ColumnError, Labels, Numbers
from klnumba.tables.fitting import named

Counts = dict[Label, int]

TIMES = ("datetime", "timedelta")
MOST_BINS = 1_000_000  # of a partition


def check(like: Any) -> None:
    """Refuse an unknown tool."""
    one_of(like, tuple(TOOLS), "like")


def column(
    like: str, reference: Any, current: Any, names: list[str]
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """The values of one tool by column, under the name of the column that shows them, and why there is none."""
    sides = frame_columns(reference, "reference"), frame_columns(current, "current")
    title = f"like_{like}"
    found: dict[str, float] = {}
    notes: dict[str, str] = {}
    for name in names:
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                found[name] = _value(like, sides[0][name], sides[1][name])
        except Exception as error:  # what NumPy cannot cut into bins is no reason to lose the table
            found[name] = math.nan
            notes[name] = f"{title}: {error}"
    return {title: found}, notes


def _value(like: str, first: Column, second: Column) -> float:
    numeric, categorical = TOOLS[like]
    if isinstance(first, Labels) and isinstance(second, Labels):
        return categorical(_counts(first), _counts(second))
    if not isinstance(first, Numbers) or not isinstance(second, Numbers):
        raise ColumnError("one side has no values")
    if first.kind in TIMES:
        raise ColumnError(f"knows no bins of {KINDS[first.kind]}")
    a, b = first.values(), second.values()
    return categorical(_by_value(a), _by_value(b)) if first.kind == "boolean" else numeric(a, b)


def _counts(labels: Labels) -> Counts:
    return named(labels.count(None))


def _by_value(values: Array) -> Counts:
    found, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return {float(value): int(count) for value, count in zip(found, counts, strict=True)}


def _side_by_side(first: Counts, second: Counts) -> tuple[Array, Array]:
    keys = [*first, *(key for key in second if key not in first)]
    counts = ([float(side.get(key, 0)) for key in keys] for side in (first, second))
    return tuple(map(np.array, counts))  # type: ignore[return-value]


def _finite(values: Array) -> Array:
    kept: Array = values[np.isfinite(values)]
    return kept


def _shares(counts: Array) -> Array:
    total = counts.sum()
    found: Array = counts / total if total else np.full(counts.shape, math.nan)
    return found


def _entropy(p: Array, q: Array) -> float:
    """KL(p || q), NaN where a side is empty."""
    if not p.size:
        return math.nan
    return float(kl.kl_divergence(p, q))


# --- Evidently ------------------------------------------------------------------------------------------------------


def _evidently(reference: Array, current: Array) -> float:
    """Sturges' bins of both sides together; at most 20 different values in the reference are categories."""
    reference, current = _finite(reference), _finite(current)
    if np.unique(reference).size <= 20:
        return _evidently_counts(_by_value(reference), _by_value(current))
    edges = np.histogram_bin_edges(np.concatenate([reference, current]), "sturges")
    return _filled(*(np.histogram(side, edges)[0].astype(float) for side in (reference, current)))


def _evidently_counts(reference: Counts, current: Counts) -> float:
    return _filled(*_side_by_side(reference, current))


def _filled(reference: Array, current: Array) -> float:
    """Zeros become 1e-4, or a millionth of the least share if that is at most 1e-4."""
    shares = [_shares(side) for side in (reference, current)]
    for side in shares:
        if not (side > 0).any():
            return math.nan
        least = side[side > 0].min()
        side[side == 0] = least / 1e6 if least <= 1e-4 else 1e-4
    return _entropy(*shares)


# --- PSI over deciles -----------------------------------------------------------------------------------------------


def _psi10(reference: Array, current: Array) -> float:
    """Deciles of the reference, the outer ones open; zeros become 1e-4, and nothing is normalised after that."""
    reference, current = reference[~np.isnan(reference)], current[~np.isnan(current)]
    if not np.isfinite(reference).any():
        return math.nan
    edges = np.unique(np.quantile(_finite(reference), np.linspace(0, 1, 11)))[1:-1]
    counts = (np.bincount(np.searchsorted(edges, side), minlength=edges.size + 1) for side in (reference, current))
    return _psi(*(one.astype(float) for one in counts))


def _psi10_counts(reference: Counts, current: Counts) -> float:
    return _psi(*_side_by_side(reference, current))


def _psi(reference: Array, current: Array) -> float:
    """NaN where a side has no values: there the tool takes 1e-4 for every share, and two such sides for the same."""
    if not (reference.any() and current.any()):
        return math.nan
    first, second = (np.where(side > 0, _shares(side), 1e-4) for side in (reference, current))
    return float(((second - first) * np.log(second / first)).sum())


# --- Great Expectations ---------------------------------------------------------------------------------------------


def _great_expectations(reference: Array, current: Array) -> float:
    """KL(current || reference) with the automatic partition of the reference; inf where the tool reports nothing.

    Its partition gives the tails what rounding leaves of 1 after the weights of the bins are added up: 1e-17, nothing
    or less than nothing. A value outside the reference's range, and below 0 any value at all, is judged by that.
    """
    reference, current = _finite(reference), _finite(current)
    if not reference.size or not current.size:
        return math.nan
    low, first, third, high = np.quantile(reference, [0, 0.25, 0.75, 1], method="nearest")
    bins = math.ceil(math.log2(reference.size + 1.0))
    if third - first >= 1e-10:
        wanted = (high - low) / (2.0 * (third - first) / reference.size ** (1.0 / 3.0))
        if not wanted <= MOST_BINS:
            raise ColumnError(f"its partition would have {wanted:.3g} bins, more than {MOST_BINS:,}")
        bins = max(bins, math.ceil(wanted))
    edges = np.linspace(low, high, bins + 1)
    weights = (np.histogram(reference, edges)[0] / reference.size).tolist()
    tail = (1.0 - _in_turn(weights)) / 2.0
    observed = [(current < low).sum(), *np.histogram(current, edges)[0], (current > high).sum()]
    return _entropy(np.array(observed, float), np.array([tail, *weights, tail])) if tail >= 0 else math.inf


def _in_turn(weights: list[float]) -> float:
    """Added up one by one: `sum` has kept the rounding errors since Python 3.12, though not those of NumPy floats."""
    total = 0.0
    for weight in weights:
        total += weight
    return total


def _great_expectations_counts(reference: Counts, current: Counts) -> float:
    return _entropy(*_side_by_side(current, reference))


# --- TensorFlow Data Validation -------------------------------------------------------------------------------------


def _tfdv(reference: Array, current: Array) -> float:
    """Jensen-Shannon divergence in bits of ten equal bins a side, cut at the edges of both."""
    if not reference.size or not current.size:
        return math.nan
    sides = [_finite(reference), _finite(current)]
    cuts = [np.linspace(side.min(), side.max(), 11) if side.size else np.empty(0) for side in sides]
    union = np.unique(np.concatenate(cuts))
    cells = [_spread(side, cut, union) for side, cut in zip(sides, cuts, strict=True)]
    for beyond in (np.isinf, np.isnan):  # each side has a cell of its own for these, so that they never agree
        lost = [float(beyond(side).sum()) for side in (reference, current)]
        cells = [np.append(cells[0], [lost[0], 0.0]), np.append(cells[1], [0.0, lost[1]])]
    return min(float(kl.js_divergence(*cells, base=2)), 1.0)


def _spread(side: Array, cuts: Array, union: Array) -> Array:
    """The counts between the cuts, spread evenly over the finer cells of the union."""
    if not side.size:
        return np.zeros(max(union.size - 1, 0) + 1)
    if cuts[0] == cuts[-1]:
        return np.append(np.zeros(max(union.size - 1, 0)), float(side.size))
    counts = np.histogram(side, cuts)[0]
    below = np.interp(union, cuts, np.concatenate([[0], counts.cumsum()]))
    return np.append(np.diff(below), 0.0)


def _tfdv_counts(reference: Counts, current: Counts) -> float:
    """The largest difference of two shares."""
    first, second = map(_shares, _side_by_side(reference, current))
    return float(np.abs(first - second).max()) if first.size else math.nan


# --- SciPy ----------------------------------------------------------------------------------------------------------


def _scipy(reference: Array, current: Array) -> float:
    """``scipy.stats.entropy`` of ``numpy.histogram(reference)`` and of the current side in the same ten bins."""
    reference, current = _finite(reference), _finite(current)
    if not reference.size:
        return math.nan
    counts, edges = np.histogram(reference)
    return _entropy(counts.astype(float), np.histogram(current, edges)[0].astype(float))


def _scipy_counts(reference: Counts, current: Counts) -> float:
    return _entropy(*_side_by_side(reference, current))


Numeric = Callable[[Array, Array], float]
Categorical = Callable[[Counts, Counts], float]

TOOLS: dict[str, tuple[Numeric, Categorical]] = {
    "evidently": (_evidently, _evidently_counts),
    "psi10": (_psi10, _psi10_counts),
    "great_expectations": (_great_expectations, _great_expectations_counts),
    "tfdv": (_tfdv, _tfdv_counts),
    "scipy": (_scipy, _scipy_counts),
}
