"""Smoothing: named pseudo-counts, added to counts and to nothing else."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from klnumba.tables.cells import Array

NAMES = ("none", "laplace", "jeffreys", "perks", "james-stein")
LARGEST = 1e15  # beyond, the rows of a table would not show
PSEUDO_COUNTS = {"none": 0.0, "laplace": 1.0, "jeffreys": 0.5}


def check(smoothing: Any) -> None:
    """Refuse what is neither a name nor a pseudo-count."""
    if isinstance(smoothing, str):
        if smoothing not in NAMES:
            raise ValueError(f"smoothing: one of {', '.join(map(repr, NAMES))} or a number, not {smoothing!r}")
    elif isinstance(smoothing, bool) or not isinstance(smoothing, numbers.Real):
        raise TypeError(f"smoothing: a name or a number, not {smoothing!r}")
    elif not 0.0 <= float(smoothing) <= LARGEST:
        raise ValueError(f"smoothing: a number from 0 to {LARGEST:g}, not {smoothing!r}")


def smooth(counts: Array, n: Array, used: Array, smoothing: str | float) -> Array:
    """Rows of smoothed counts.

    Parameters
    ----------
    counts : (columns, cells) array
        Counts that add up to `n`; where `n` is infinite, known probabilities, which stay as they are.
    n : (columns,) array
        Effective numbers of rows.
    used : (columns, cells) array of bool
        The cells that take part; the others are 0 and stay so.
    smoothing : str or float
        "laplace" adds 1 to every cell, "jeffreys" 1/2, "perks" 1 / the number of cells, a number itself. "james-stein"
        shrinks towards equal shares, by as much as the counts themselves advise: J. Hausser and K. Strimmer, Journal
        of Machine Learning Research 10, pp. 1469-1484, 2009, equation 4.

    Returns
    -------
    (columns, cells) array
    """
    known = ~np.isfinite(n)[:, None]
    cells = used.sum(axis=1, keepdims=True)
    if smoothing == "james-stein":
        return np.where(known, counts, _shrunk(counts, n, used, cells))
    if smoothing == "perks":
        added: Any = 1.0 / np.maximum(cells, 1)
    else:
        added = PSEUDO_COUNTS[smoothing] if isinstance(smoothing, str) else float(smoothing)
    return np.where(known | ~used, counts, counts + added)


def _shrunk(counts: Array, n: Array, used: Array, cells: Array) -> Array:
    total = np.where(np.isfinite(n), n, 1.0)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = counts / total
        equal = np.where(used, 1.0 / np.maximum(cells, 1), 0.0)
        spread = ((equal - share) ** 2).sum(axis=1, keepdims=True)
        wanted = (1.0 - (share**2).sum(axis=1, keepdims=True)) / ((total - 1.0) * spread)
    weight = np.where(np.isnan(wanted), 1.0, np.clip(wanted, 0.0, 1.0))
    return np.where(weight == 0.0, counts, total * (weight * equal + (1.0 - weight) * share))
