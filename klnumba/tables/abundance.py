"""How frequent categories truly are of which a sample has few rows, and those of which it has none."""

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
SEEN = -np.expm1(-RATES)  # how likely a sample is to have a category of such a rate


@dataclass(frozen=True)
class Abundance:
    """A law of the rows that samples of this size have of a category, fitted to how many have how few rows.

    H. Robbins, "An empirical Bayes approach to statistics", Third Berkeley Symposium, pp. 157-163, 1956: the rows of a
    category are a Poisson number, its rate is drawn from a law on `RATES`, and the most likely `weights` of these are
    found from all categories together (N. Laird, Journal of the American Statistical Association 73, pp. 805-811,
    1978). It knows what no single count says: that of 200 categories with 0 to 5 rows all may be equally frequent.
    """

    weights: Array  # (rates,): of the categories with 1 to `RARE` rows
    categories: int  # how many these are

    @property
    def traceless(self) -> Array:
        """By rate, how many categories are expected to have no row."""
        found: Array = self.categories * self.weights * (1.0 / SEEN - 1.0)
        return found

    @property
    def unseen(self) -> float:
        """The rows that a sample of this size is expected to have of categories that this one lacks."""
        return float(self.traceless @ RATES)

    def draw(self, rows: Array, samples: int, rng: np.random.Generator) -> Array:
        """Rates of categories that have so many rows: (samples, categories)."""
        found = rng.standard_gamma(rows, (samples, rows.size))
        for count in np.unique(rows[rare(rows)]):
            here = np.flatnonzero(rows == count)
            found[:, here] = rng.choice(RATES, (samples, here.size), p=self._given(count))
        return found

    def mean(self, rows: Array) -> float:
        """The expected rates of such categories together."""
        few = rare(rows)
        found = float(rows[~few].sum())
        for count, number in zip(*np.unique(rows[few], return_counts=True), strict=True):
            found += number * float(self._given(count) @ RATES)
        return found

    def again(self, rng: np.random.Generator) -> tuple[Array, Array, float]:
        """Another sample: the rates of its rare categories, their rows, and the rate of all that it lacks.

        How many it has is a Poisson number as well, and with it how much it lacks.
        """
        number = rng.poisson(self.categories)
        place = rng.choice(RATES.size, number, p=self.weights)
        # The first row comes at a time between 0 and 1, and the others after it.
        later = RATES[place] + np.log1p(-SEEN[place] * rng.random(number))
        rows = 1.0 + rng.poisson(np.maximum(later, 0.0))
        return RATES[place], rows, float(rng.poisson(self.traceless) @ RATES)

    def _given(self, count: float) -> Array:
        found = self.weights * _likely(np.array([count]))[0]
        share: Array = found / found.sum()
        return share


def fit(samples: list[Array]) -> list[Abundance]:
    """The law behind the rows of the categories of each sample, which are whole numbers, some of them few."""
    counts = np.stack([np.bincount(rows[rare(rows)].astype(np.int64), minlength=RARE + 1) for rows in samples])
    held = np.flatnonzero(counts.any(axis=0))
    number = counts.sum(axis=1)
    weights = most_likely(_likely(held.astype(np.float64)), counts[:, held] / number[:, None])
    return [Abundance(one, int(size)) for one, size in zip(weights, number, strict=True)]


def rare(rows: Array) -> Array:
    """Which categories a sample has, but with few rows."""
    found: Array = (rows > 0) & (rows <= RARE)
    return found


def _likely(counts: Array) -> Array:
    """How likely categories of each rate are to have so many rows, if they have any: (counts, rates)."""
    special: Any = load("scipy.special")
    logs = counts[:, None] * np.log(RATES) - RATES - special.gammaln(counts + 1.0)[:, None]
    found: Array = np.exp(logs) / SEEN
    return found
