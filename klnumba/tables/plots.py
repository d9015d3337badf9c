"""Drawings with matplotlib: the intervals of all columns, and both distributions of one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from klnumba.optional import load

if TYPE_CHECKING:
    from klnumba.tables.comparison import Comparison

MOST = 40  # columns, or cells, that a drawing shows
REFERENCE, CURRENT = "#4269a5", "#d97742"


def _axes(ax: Any, lines: int) -> Any:
    if ax is not None:
        return ax
    plt = load("matplotlib.pyplot", "plots")
    return plt.subplots(figsize=(7.0, 1.2 + 0.28 * max(lines, 3)), layout="constrained")[1]


def _unit(comparison: Comparison) -> str:
    base = comparison.settings.base
    return "nats" if base is None else "bits" if base == 2 else f"units of log {base:g}"


def overview(comparison: Comparison, ax: Any = None) -> Any:
    """The bias-corrected divergence of each column with its interval, the strongest evidence on top."""
    names = comparison.by_evidence()[:MOST]
    ax = _axes(ax, len(names))
    values = [comparison.results[name].values for name in names]
    middle = np.array([np.maximum(one["kl_corrected"], 0.0) for one in values], float)  # NaN where nothing is known
    low, high = (np.array([one[end] for one in values], float) for end in ("ci_low", "ci_high"))
    open_end = np.isinf(high)
    ends = np.concatenate([middle, low, high, [0.0]])
    reach = float(ends[np.isfinite(ends)].max()) * 1.15 or 1.0
    places = np.arange(len(names))
    ax.hlines(places, low, np.where(open_end, reach, high), color=REFERENCE, linewidth=1.5)
    ax.plot(middle, places, "o", color=REFERENCE, markersize=4)
    ax.margins(y=0.1)
    ax.scatter([reach] * int(open_end.sum()), places[open_end], marker=">", color=REFERENCE, s=20)
    ax.set_yticks(places, [*map(_short, names)])
    ax.invert_yaxis()
    ax.set_xlim(left=0.0, right=reach * 1.02)
    share = comparison.settings.percent
    ax.set_xlabel(f"KL(reference || current) in {_unit(comparison)}, bias-corrected, with {share} interval")
    return ax


def cells(comparison: Comparison, column: str, ax: Any = None) -> Any:
    """Both probabilities of every cell of a column, and what the cell adds."""
    found = comparison.results.get(column)
    if found is None:
        why = comparison.problems.get(column, "is not in the comparison")
        raise ValueError(f"column: {column!r} {why}")
    kept = np.flatnonzero(found.used)
    if kept.size > MOST:
        kept = np.sort(kept[np.argsort(-np.abs(found.shares[kept]), kind="stable")[:MOST]])
    ax = _axes(ax, round(1.2 * kept.size))
    labels = found.cells.labels()
    places = np.arange(kept.size)
    ax.barh(places - 0.2, found.p[kept], 0.38, color=REFERENCE, label="reference")
    ax.barh(places + 0.2, found.q[kept], 0.38, color=CURRENT, label="current")
    for place, k in zip(places, kept, strict=True):
        share = found.shares[k]
        text = f" {share:+.3g}" if math.isfinite(share) else " ∞"
        ax.annotate(text, (max(found.p[k], found.q[k]), place), va="center", fontsize="small")
    ax.set_yticks(places, [_short(labels[k]) for k in kept])
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.set_xlabel(f"probability; beside the bars, what the cell adds ({_unit(comparison)})")
    ax.set_title(_plain(f"{column}: KL = {found.values['kl']:.4g}"))
    ax.legend()
    return ax


def _short(text: str) -> str:
    return _plain(text if len(text) <= 40 else text[:39] + "…")


def _plain(text: str) -> str:
    """A text that matplotlib draws as it is: no mathematics in it, and of half a surrogate pair its code."""
    return text.encode(errors="backslashreplace").decode().replace("$", r"\$")
