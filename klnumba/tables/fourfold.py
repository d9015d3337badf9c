"""The exact test of two cells, for samples too small for any law of large ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.optional import load
from klnumba.tables.cells import Array

ROUNDING = 1e-7  # of probabilities that are equal
FAR = 1000  # counts, where few are expected


def p_value(rare: float, n: float, others: float, m: float) -> float:
    """How likely counts are that are no likelier than these, if both samples have one law.

    Parameters
    ----------
    rare : float
        The rows of the reference in one of the cells; its probability, if `n` is infinite.
    n : float
        The rows of the reference.
    others, m : float
        The same of the current sample.

    Returns
    -------
    float

    Notes
    -----
    Counts that are not whole, such as effective ones, are rounded. R. A. Fisher, The Design of Experiments, 1935,
    section 21; with a known reference, the binomial law.
    """
    size, found = round(m), round(others)
    if math.isinf(n):
        places = np.arange(min(size, max(FAR, found)) + 1)
        logs = _binomial(places, size, rare)
        return _as_unlikely(logs, found)
    first, total = round(n), round(rare) + found
    places = np.arange(max(0, total - first), min(total, size) + 1)
    logs = _choices(size, places) + _choices(first, total - places) - _choices(first + size, np.array(total))
    return _as_unlikely(logs, found - int(places[0]))


def _as_unlikely(logs: Array, place: int) -> float:
    odds = np.exp(logs)
    return float(min(odds[odds <= odds[place] * (1.0 + ROUNDING)].sum(), 1.0))


def _choices(size: int, places: Array) -> Array:
    special: Any = load("scipy.special")
    found: Array = special.gammaln(size + 1.0) - special.gammaln(places + 1.0) - special.gammaln(size - places + 1.0)
    return found


def _binomial(places: Array, size: int, share: float) -> Array:
    special: Any = load("scipy.special")
    found: Array = (
        _choices(size, places) + special.xlogy(places, share) + special.xlog1py(np.subtract(size, places), -share)
    )
    return found
