"""How frequent rare cells truly are: of how many a sample has how few rows says more than the rows of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.optional import load
from klnumba.tables.cells import Array
from klnumba.tables.mixtures import most_likely

RARE = 50  # rows from which on a count speaks for itself
# The lowest stands for names that never come again: so low that none does in any number of draws.
RATES = np.concatenate([[1e-9, 1e-6, 1e-4, 1e-3], np.geomspace(1e-2, RARE, 80)])


@dataclass(frozen=True)
class Abundance:
    """A law of the rows that samples of this size have of a cell, fitted to how many cells have how few rows.

    H. Robbins, "An empirical Bayes approach to statistics", Third Berkeley Symposium, pp. 157-163, 1956: the rows of a
    cell are a Poisson number, its rate is drawn from a law on `RATES`, and the most likely `weights` of these are found
    from all cells together (N. Laird, Journal of the American Statistical Association 73, pp. 805-811, 1978). It knows
    what no single count says: that of 200 categories with 0 to 5 rows all may be equally frequent.
    """

    weights: Array  # (rates,): of the cells with `fewest` to `RARE` rows
    cells: int  # how many these are
    fewest: int  # 0 where empty cells were counted, 1 where a sample has no trace of them

    @property
    def traceless(self) -> Array:
        """By rate, how many cells have fewer rows than `fewest`, expected."""
        found: Array = self.cells * self.weights * (1.0 / _seen(self.fewest) - 1.0)
        return found

    @property
    def unseen(self) -> float:
        """The rows that a sample of this size is expected to have of cells of which this one has no trace."""
        return float(self.traceless @ RATES)

    def draw(self, rows: Array, samples: int, rng: np.random.Generator) -> Array:
        """Rates of cells that have so many rows: (samples, cells)."""
        found = rng.standard_gamma(rows, (samples, rows.size))
        for count in np.unique(rows[self._rare(rows)]):
            here = np.flatnonzero(rows == count)
            found[:, here] = rng.choice(RATES, (samples, here.size), p=self._given(count))
        return found

    def mean(self, rows: Array) -> float:
        """The expected rates of such cells together."""
        rare = self._rare(rows)
        found = float(rows[~rare].sum())
        for count, number in zip(*np.unique(rows[rare], return_counts=True), strict=True):
            found += number * float(self._given(count) @ RATES)
        return found

    def again(self, rng: np.random.Generator) -> tuple[Array, Array, float]:
        """Another sample: the rates of its rare cells, their rows, and the rate of all without a trace."""
        rates = rng.choice(RATES, self.cells, p=self.weights)
        later = rates
        if self.fewest:  # after the first row, which came at a time between 0 and 1
            later = np.maximum(rates + np.log1p(rng.random(self.cells) * np.expm1(-rates)), 0.0)
        rows = self.fewest + rng.poisson(later)
        return rates, rows.astype(np.float64), float(rng.poisson(self.traceless) @ RATES)

    def _rare(self, rows: Array) -> Array:
        found: Array = (rows >= self.fewest) & (rows <= RARE)
        return found

    def _given(self, count: float) -> Array:
        found = self.weights * _likely(np.array([count]), self.fewest)[0]
        share: Array = found / found.sum()
        return share


def fit(samples: list[Array], fewest: int) -> list[Abundance]:
    """The law behind the rows of the cells of each sample, which are whole numbers; some are rare."""
    counts = np.stack([np.bincount(rows[rows <= RARE].astype(np.int64), minlength=RARE + 1) for rows in samples])
    counts[:, :fewest] = 0
    held = np.flatnonzero(counts.any(axis=0))
    number = counts.sum(axis=1)
    weights = most_likely(_likely(held.astype(np.float64), fewest), counts[:, held] / number[:, None])
    return [Abundance(one, int(cells), fewest) for one, cells in zip(weights, number, strict=True)]


def _seen(fewest: int) -> Array:
    """How likely a cell of each rate is to have so many rows or more."""
    found: Array = -np.expm1(-RATES) if fewest else np.ones(RATES.size)
    return found


def _likely(counts: Array, fewest: int) -> Array:
    """How likely cells of each rate are to have so many rows, if they have `fewest` or more: (counts, rates)."""
    special: Any = load("scipy.special")
    logs = counts[:, None] * np.log(RATES) - RATES - special.gammaln(counts + 1.0)[:, None]
    found: Array = np.exp(logs) / _seen(fewest)
    return found
