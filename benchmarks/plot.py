"""The picture: nanoseconds a cell against the length of a row, one line a library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.results import OURS, Results, find, ns

# Okabe and Ito's colours, which people with colour blindness can tell apart; markers tell them apart in grey
_STYLES: dict[str, dict[str, Any]] = {
    "memory": {"color": "black", "linestyle": "--", "label": "memory (a dot)"},
    OURS: {"color": "#D55E00", "marker": "o", "linewidth": 2.8, "zorder": 5},
    "JAX jit": {"color": "#0072B2", "marker": "s"},
    "torch.compile": {"color": "#56B4E9", "marker": "^"},
    "torch": {"color": "#009E73", "marker": "v"},
    "numexpr": {"color": "#F0E442", "marker": "D", "markeredgecolor": "#777777"},
    "NumPy": {"color": "#CC79A7", "marker": "P"},
    "SciPy rel_entr": {"color": "#999999", "marker": "X"},
    "SciPy entropy": {"color": "#444444", "marker": "*", "markersize": 8},
}
_VARIANTS = {"memory": ("memory",), OURS: ("normalised",)}


def draw(results: Results, path: Path) -> None:
    """Write the picture as PNG: columns are dtypes, rows numbers of threads."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FuncFormatter

    threads, dtypes = results.threads, ("float64", "float32")
    size = (10.5, 1.2 + 3.3 * len(threads))
    figure, axes = plt.subplots(
        len(threads), 2, figsize=size, sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    handles: dict[str, Any] = {}
    for line, count in zip(axes, threads, strict=True):
        for axis, dtype in zip(line, dtypes, strict=True):
            handles |= _panel(axis, results, count, dtype)
    plain = FuncFormatter(lambda x, _: f"{x:,g}")
    for axis in axes[-1]:
        axis.set_xlabel("cells a row")
        axis.xaxis.set_major_formatter(plain)
    for axis in axes[:, 0]:
        axis.set_ylabel("ns a cell")
        axis.yaxis.set_major_formatter(plain)
    figure.legend(handles.values(), handles.keys(), loc="outside right center", frameon=False)
    figure.suptitle(
        f"KL divergence of rows; lower is faster ({results.content['machine']['cpu']}, {results.content['date']})",
        fontsize=11,
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _panel(axis: Any, results: Results, threads: int, dtype: str) -> dict[str, Any]:
    cases = sorted(results.select(threads, task="rows", kind="prob", dtype=dtype), key=lambda c: c["d"])
    cases = [case for case in cases if case["rows"] > 1]
    handles = {}
    for name, style in _STYLES.items():
        variants = _VARIANTS.get(name, ("plain", "normalised"))
        points = [(case["d"], ns(find(case, name, variants))) for case in cases]
        points = [(d, y) for d, y in points if y is not None]
        if points:
            look = {"label": name, "linewidth": 1.4, "markersize": 5} | style
            (handle,) = axis.plot(*zip(*points, strict=True), **look)
            handles[str(look["label"])] = handle
    axis.set(xscale="log", yscale="log", title=f"{dtype}, {threads} thread" + "s" * (threads > 1))
    axis.grid(True, which="major", alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    return handles
