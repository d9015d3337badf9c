"""How large a divergence chance alone makes between samples of a given size."""

from __future__ import annotations

import math
import warnings
import zlib
from typing import Any

import numpy as np

from klnumba.labels import outside
from klnumba.optional import load
from klnumba.reduction import generator, positive_unit, real
from klnumba.tables import abundance, prediction
from klnumba.tables import smoothing as smoothings
from klnumba.tables.abundance import RARE
from klnumba.tables.cells import MISSING, Array, Bins, Categories, Cells
from klnumba.tables.drafting import chosen
from klnumba.tables.gaps import Gaps
from klnumba.tables.prediction import Sample
from klnumba.tables.profile import Profile, check_bins
from klnumba.tables.tally import Tally

METHODS = ("bootstrap", "chi2")
MOST = 1 << 40  # rows of a table to come: with many more, NumPy's binomial numbers are wrong
ENOUGH = 5  # rows of a cell for the law of large samples
FEW = 30  # rare categories, of which no law can be told
HALF, ONE = 0.5, 1.0  # what H. Jeffreys's prior adds to a count; rows to be expected where a sample has none
PASSED = {1.0: 1.0, 2.0: 0.5}  # what categories of one and of two rows leave to those that have not been seen


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
        How many rows the current table will have, with those that are missing, up to ``2**40``; of a weighted table,
        how many effective rows: (Σw)²/Σw².
    alpha : float, default 0.05
        The share of false alarms.
    columns, bins, smoothing, base, missing
        As in `klnumba.tables.compare`.
    method : {"bootstrap", "chi2"}
        "bootstrap" draws tables of `n` rows from the laws that the reference allows for, and compares the reference
        with each as `compare` does; "chi2" takes the law of large samples, without smoothing; see Notes.
    samples : int, default 2000
        How many draws "bootstrap" makes, 1 / `alpha` or more. Where many cells are rare, a hundredth of these for each
        of a hundred references.
    rng : numpy.random.Generator or int, default 0
        Where they come from, or a seed. Each column has its own numbers, whichever others are asked for.

    Returns
    -------
    pandas.Series
        By column, in nats unless `base` is given; NaN where a column has no rows or no cells.

    Raises
    ------
    ValueError
        If `n`, `alpha`, `samples` or an option is out of its range, or a column in `columns` is not there.
    TypeError
        If `columns` is a text.

    Warns
    -----
    UserWarning
        If "chi2" is asked for columns with a cell that has fewer than five rows in the reference, or lets expect fewer
        in a table of `n` rows.

    Notes
    -----
    The law of a column is not known, and "bootstrap" draws it anew for each table: the share of a bin is a gamma number
    with as many degrees of freedom as the bin has rows (D. B. Rubin, Annals of Statistics 9, pp. 130-134, 1981), that
    of a category with half a row more, as H. Jeffreys's prior has it. What the reference lacks counts too. Beyond each
    end of bins that were fitted to a continuous column lies as much as between two of its numbers: one row; so it is
    with other categories than those of the reference. To these goes also the row of every category that has one, and
    half a row of each that has two: names seen once are mostly names that do not come again, such as slips of the pen,
    and as many others come (I. J. Good, Biometrika 40, pp. 237-264, 1953). Of infinite numbers, and of missing values,
    the reference is taken to have none if it shows none.

    Where some bins are empty, what lies between two neighbouring numbers, one row as well, is divided at random among
    the bins from the one to the other. Where thirty categories or more have few rows, no count speaks for itself: how
    frequent they are follows from how many of them have how few rows (`klnumba.tables.abundance`), and so does what
    is to be expected of categories that the reference lacks. How wrong such a prediction is, is found by drawing a
    hundred references, from laws that differ as those of other samples would, with as many such categories as a Poisson
    number says, and tables that follow on each; this takes one to three seconds a column.

    "chi2" is KL = (1/N + 1/n)/2 times a chi-squared number with cells - 1 degrees of freedom, and with as many more as
    give the expected share of what the reference lacks. It is meant for cells with five rows or more.

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
    unit = positive_unit(base)
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 1 <= n <= MOST:
        raise ValueError(f"n: an integer from 1 to 2**40, not {n!r}")
    if not 0.0 < real(alpha, "alpha") < 1.0:
        raise ValueError(f"alpha: a number between 0 and 1, not {alpha!r}")
    if method not in METHODS:
        raise ValueError(f"method: one of {', '.join(map(repr, METHODS))}, not {method!r}")
    if missing not in ("cell", "drop"):
        raise ValueError(f"missing: one of 'cell', 'drop', not {missing!r}")
    if method == "bootstrap":
        _check_samples(samples, alpha)
    check_bins(reference, bins)
    profile = reference if isinstance(reference, Profile) else Profile.fit(reference, columns=columns, bins=bins)
    seed = int(generator(rng).integers(1 << 62))
    found, few = {}, []
    for name in chosen({**profile.cells, **profile.problems}, columns, "reference"):
        found[name] = np.nan
        if name in profile.cells:
            draws = np.random.default_rng([seed, zlib.crc32(name.encode("utf-8", "surrogatepass"))])
            column = _Column(profile.cells[name], profile.tallies[name], missing)
            if column.rows > 0 and method == "chi2":
                found[name] = _law(column, n, alpha)
                few += [name] if column.least(n) < ENOUGH else []
            elif column.rows > 0:
                found[name] = _drawn(column, n, alpha, smoothing, samples, draws)
    _warn_of_few_rows(few)
    return load("pandas").Series({name: value / unit for name, value in found.items()}, dtype=float, name="kl")


def _check_samples(samples: Any, alpha: float) -> None:
    if isinstance(samples, bool) or not isinstance(samples, (int, np.integer)) or samples < 1 / alpha:
        raise ValueError(f"samples: an integer from 1 / alpha = {1 / alpha:.3g} on, not {samples!r}")


class _Column:
    """The counts of a column, scaled to its effective number of rows, and what they say of rows to come."""

    def __init__(self, cells: Cells, tally: Tally, missing: str) -> None:
        self.kept = cells.groups() != MISSING if missing == "drop" else np.ones(cells.size, bool)
        self.rows, total = tally.effective(self.kept), float(tally.counts[self.kept].sum())
        scale = self.rows / total if total > 0.0 and not tally.known else 1.0
        self.counts: Array = tally.counts * scale
        self.rates = self.counts.copy()  # of each cell, in samples of this size
        self.known, self.lacking = tally.known, 0.0  # rows to be expected where there are none
        self.awaited: Array = self.counts > 0  # the cells that hold what may come
        self.sample: Sample | None = None  # where many categories are rare
        self.gaps: Gaps | None = None  # where bins are empty
        if self.known:
            return
        self.rates[-1] += HALF * (self.counts[-1] > 0)
        if isinstance(cells, Categories):
            self._categories(cells, tally, scale)
        elif cells.edges.size:
            self._bins(cells)

    @property
    def reference(self) -> Array:
        """The counts that are compared."""
        found: Array = self.counts * self.kept
        return found

    def least(self, n: int) -> float:
        """The fewest rows that a cell has in the reference, or lets expect in a table of `n` rows."""
        held = self.counts[self.kept & self.awaited]
        each = n / float(self.counts.sum())
        return float(held.min()) * (each if self.known else min(each, 1.0)) if held.size else math.inf

    def _categories(self, cells: Categories, tally: Tally, scale: float) -> None:
        others = np.array([*(tally.unseen or {}).values()], np.float64) * scale
        if tally.unseen is None and cells.folded:
            others = prediction.even(float(self.counts[-2]), cells.folded)
        named, others = _whole(self.counts[:-2]), _whole(others)
        seen = np.concatenate([named[named > 0], others])
        if (seen <= RARE).sum() >= FEW:
            self.sample = Sample(named, others, float(self.counts[-1]), float(self.rates[-1]), bool(self.kept[-1]))
            return
        self.awaited[:-2] = True
        self.rates[:-2] += np.where(named > 0, HALF, ONE)
        if cells.kind != "boolean":  # of which no third can come
            for rows, passed in PASSED.items():
                self.rates[:-2][named == rows] = rows - passed
                self.lacking += passed * float((seen == rows).sum())
            self.rates[-2] += self.lacking + ONE

    def _bins(self, cells: Bins) -> None:
        if cells.fitted and cells.edges[0] < cells.edges[-1]:
            beyond = ~cells.alone[[0, -1]] & (self.counts[[0, -4]] == 0)
            self.rates[[0, -4]] += ONE * beyond
            self.lacking = float(beyond.sum())
        gaps = (self.counts[1:-4] == 0) & ~np.append(False, cells.alone[:-1])  # behind one number may be nothing ever
        if gaps.any():
            self.awaited[1:-4] |= gaps
            self.gaps = Gaps.of(self.counts[1:-4], cells.fitted)
            self.rates[1:-4] = self.gaps.within

    def laws(self, samples: int, rng: np.random.Generator) -> Array:
        """Rates of the cells as the counts allow for: (samples, cells)."""
        rates = np.broadcast_to(self.rates, (samples, self.rates.size))
        if self.known:
            return rates
        found: Array = rng.standard_gamma(rates)
        if self.gaps is not None:
            found[:, 1:-4] += self.gaps.draw(samples, rng)
        return found


def _whole(rows: Array) -> Array:
    """Whole numbers of rows; what has been seen stays seen."""
    found: Array = np.where(rows > 0, np.maximum(np.rint(rows), 1.0), 0.0)
    return found


def _law(column: _Column, n: int, alpha: float) -> float:
    if column.sample is not None:
        column.lacking = abundance.fit([column.sample.all])[0].unseen
    over = 1.0 / (n * float(column.reference.sum() / column.counts.sum()))
    over_n = 0.0 if column.known else 1.0 / column.rows
    freedom = (column.reference > 0).sum() - 1 + 2.0 * column.lacking * over_n / (over_n + over)
    if freedom <= 0.0:
        return 0.0
    return float(load("scipy.special").chdtri(freedom, alpha)) * (over_n + over) / 2.0


def _warn_of_few_rows(few: list[str]) -> None:
    """Warn of columns of which the law of large samples says little."""
    if few:
        text = f"columns with cells of fewer than {ENOUGH} rows, where the law of large samples does not hold: {few}"
        warnings.warn(f"method: 'chi2' has {text}", UserWarning, stacklevel=outside())


def _drawn(
    column: _Column, n: int, alpha: float, smoothing: str | float, samples: int, rng: np.random.Generator
) -> float:
    if column.sample is not None:
        return prediction.limit(column.reference, column.sample, n, alpha, smoothing, samples, rng)
    tables = prediction.drawn(column.laws(samples, rng), n, column.kept, rng)
    found = prediction.divergences(column.reference, tables, smoothing, column.known)
    return float(np.quantile(found, 1.0 - alpha, method="higher"))
