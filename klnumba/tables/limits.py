"""How large a divergence chance alone makes between samples of a given size."""

from __future__ import annotations

from typing import Any

import numpy as np

import klnumba as kl
from klnumba.optional import load
from klnumba.reduction import real, unit_of
from klnumba.tables import smoothing as smoothings
from klnumba.tables.cells import MISSING, Array
from klnumba.tables.profile import Profile

METHODS = ("bootstrap", "chi2")


def thresholds(
    reference: Any, n: int, alpha: float = 0.05, *, columns: Any = None, bins: Any = "auto",
    smoothing: str | float = "jeffreys", base: float | None = None, missing: str = "cell", method: str = "bootstrap",
    samples: int = 2000, rng: Any = 0,
) -> Any:  # fmt: skip
    """The KL that a sample of `n` rows exceeds in a share `alpha` of the cases in which nothing has changed.

    Parameters
    ----------
    reference : DataFrame, Chunks or Profile
        The reference, itself a sample.
    n : int
        How many rows the current table will have.
    alpha : float, default 0.05
        The share of false alarms.
    columns, bins, smoothing, base, missing
        As in `klnumba.tables.compare`.
    method : {"bootstrap", "chi2"}
        "bootstrap" draws the counts of both tables from the reference's shares, `samples` times, and takes KL as
        `compare` does; "chi2" takes the law of large samples, KL = chi-squared (1/N + 1/n) / 2 with cells - 1 degrees
        of freedom, without smoothing.
    samples : int, default 2000
        How many draws.
    rng : numpy.random.Generator or int, default 0
        Where they come from, or a seed.

    Returns
    -------
    pandas.Series
        By column, in nats unless `base` is given; NaN where a column has no rows.

    Raises
    ------
    ValueError
        If `n`, `alpha`, `samples` or an option is out of its range.

    Examples
    --------
    >>> import pandas as pd
    >>> from klnumba.tables import thresholds
    >>> before = pd.DataFrame({"city": ["A", "B", "C", "C"] * 250})
    >>> thresholds(before, 500, method="chi2").round(4)
    city    0.009
    Name: kl, dtype: float64
    """
    smoothings.check(smoothing)
    unit = unit_of(base)
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"n: a positive integer, not {n!r}")
    if not 0.0 < real(alpha, "alpha") < 1.0:
        raise ValueError(f"alpha: a number between 0 and 1, not {alpha!r}")
    if method not in METHODS:
        raise ValueError(f"method: one of {', '.join(map(repr, METHODS))}, not {method!r}")
    if missing not in ("cell", "drop"):
        raise ValueError(f"missing: one of 'cell', 'drop', not {missing!r}")
    if isinstance(samples, bool) or not isinstance(samples, (int, np.integer)) or samples < 1 / alpha:
        raise ValueError(f"samples: an integer from 1 / alpha = {1 / alpha:.3g} on, not {samples!r}")
    profile = reference if isinstance(reference, Profile) else Profile.fit(reference, columns=columns, bins=bins)
    draws = np.random.default_rng(rng)
    found = {}
    for name, cells in profile.cells.items():
        if isinstance(reference, Profile) and columns is not None and name not in map(str, columns):
            continue
        kept = cells.groups() != MISSING if missing == "drop" else np.ones(cells.size, bool)
        counts = profile.tallies[name].counts[kept].astype(np.float64)
        size = np.inf if name in profile.known else profile.tallies[name].effective(kept)
        if not size > 0:
            found[name] = np.nan
        elif method == "chi2":
            found[name] = _law(counts, size, n, alpha)
        else:
            found[name] = _drawn(counts, size, n, alpha, smoothing, samples, draws)
    return load("pandas").Series({name: value / unit for name, value in found.items()}, dtype=float, name="kl")


def _law(counts: Array, size: float, n: int, alpha: float) -> float:
    cells = int((counts > 0).sum())
    if cells < 2:
        return 0.0
    quantile = float(load("scipy.special").chdtri(cells - 1, alpha))
    return quantile * (1.0 / size + 1.0 / n) / 2.0


def _drawn(counts: Array, size: float, n: int, alpha: float, smoothing: str | float, samples: int, rng: Any) -> float:
    share = counts / counts.sum()
    second = rng.multinomial(n, share, samples).astype(np.float64)
    if np.isinf(size):
        first = np.broadcast_to(share, second.shape)
    else:
        first = rng.multinomial(max(round(size), 1), share, samples).astype(np.float64)
    used = (first > 0) | (second > 0)
    sizes = np.full(samples, size if np.isinf(size) else max(round(size), 1), np.float64)
    p = smoothings.smooth(first, sizes, used, smoothing)
    q = smoothings.smooth(second, np.full(samples, float(n)), used, smoothing)
    return float(np.quantile(kl.kl_divergence(p, q), 1.0 - alpha, method="higher"))
