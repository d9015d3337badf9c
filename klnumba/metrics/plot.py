"""The distribution of row values as a picture."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.metrics.running import RunningStatistics

_BARS_A_DECADE = 8


def distribution(statistics: RunningStatistics, ax: Any, label: str) -> Any:
    """Draw the share of positive finite values in equal steps of their logarithm."""
    if statistics.quantile_error is None:
        raise ValueError("quantile_error: None, so that there is no distribution to draw")
    values, weights = statistics.distribution()
    drawn = (values > 0.0) & np.isfinite(values)
    if not drawn.any():
        raise ValueError("no row so far is positive and finite")
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: python -m pip install matplotlib") from error
    if ax is None:
        ax = plt.figure(figsize=(6.4, 3.6), layout="constrained").add_subplot()
    logs = np.log10(values[drawn])
    edges = np.arange(math.floor(logs.min() * _BARS_A_DECADE), math.floor(logs.max() * _BARS_A_DECADE) + 2)
    ax.hist(values[drawn], 10.0 ** (edges / _BARS_A_DECADE), weights=weights[drawn] / weights.sum(), color="#9fb8d8")
    summary = statistics.summary()
    for name, value, line in (("mean", summary.finite_mean, "-"), ("median", summary.quantiles[0.5], "--")):
        if value > 0.0:
            ax.axvline(value, color="#1f3b63", linestyle=line, label=f"{name} {value:.3g}")
    ax.set(xscale="log", xlabel=label, ylabel="share of rows")
    rest = _not_drawn(summary)
    ax.set_title(f"{summary.rows:,} rows{rest}")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False)
    return ax


def _not_drawn(summary: Any) -> str:
    parts = [f"{getattr(summary, name):,} {name}" for name in ("zero", "inf", "nan") if getattr(summary, name)]
    return f" ({', '.join(parts)} not drawn)" if parts else ""
