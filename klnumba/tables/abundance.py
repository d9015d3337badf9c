"""How frequent categories truly are of which a sample has few rows, and those of which it has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.optional import load
from klnumba.tables.cells import Array

RARE = 50  # rows from which on a count speaks for itself
RATES = 80
STEPS = 300
LAWS = 16  # as many as show how well the sample tells the law


@dataclass(frozen=True)
class Abundance:
    """A law of the rows that samples of this size have of a category, fitted to how many categories have how many rows.

    H. Robbins, "An empirical Bayes approach to statistics", Third Berkeley Symposium, pp. 157-163, 1956: the rows of a
    category are a Poisson number, its rate is drawn from a law on `rates`, and the most likely `weights` of these are
    found from all categories together (N. Laird, Journal of the American Statistical Association 73, pp. 805-811,
    1978). It knows what no single count says: that of 200 categories with 0 to 5 rows all may be equally frequent.
    """

    rates: Array
    weights: Array  # (laws, rates): of the categories with 1 to `RARE` rows
    seen: Array  # how likely a category of each rate is to have so many rows
    categories: Array  # (laws,)

    @property
    def unseen(self) -> Array:
        """By law, the rows that a sample of this size is expected to have of categories that this one lacks."""
        lost = self.rates * np.exp(-self.rates) / self.seen
        found: Array = self.categories * (self.weights * lost).sum(axis=1)
        return found

    def draw(self, rows: Array, samples: int, rng: np.random.Generator) -> Array:
        """Rates of categories that have so many rows: (samples, categories). The laws take turns."""
        found = rng.standard_gamma(rows, (samples, rows.size))
        for count in np.unique(rows[(rows > 0) & (rows <= RARE)]):
            here, given = np.flatnonzero(rows == count), self._given(float(count))
            for k, share in enumerate(given):
                part = found[k :: len(given)]
                part[:, here] = rng.choice(self.rates, (len(part), here.size), p=share)
        return found

    def mean(self, rows: Array) -> Array:
        """By law, the expected rates of such categories together: (laws,)."""
        found = np.full(len(self.weights), float(rows[rows > RARE].sum()))
        for count, number in zip(*np.unique(rows[(rows > 0) & (rows <= RARE)], return_counts=True), strict=True):
            found += number * (self._given(float(count)) @ self.rates)
        return found

    def _given(self, count: float) -> Array:
        found = self.weights * _poisson(np.array([count]), self.rates) / self.seen
        share: Array = found / found.sum(axis=1, keepdims=True)
        return share


def fit(rows: Array, rng: np.random.Generator | None = None) -> Abundance:
    """The law behind the rows of categories, which are whole numbers.

    With a generator, `LAWS` of them, which differ as those of other samples would.
    """
    counts = np.bincount(rows[(rows > 0) & (rows <= RARE)].astype(np.int64), minlength=RARE + 1)[None, 1:]
    drawn = counts.astype(np.float64) if rng is None else rng.standard_gamma(counts, (LAWS, RARE))
    rates = np.geomspace(1e-2, RARE + 10.0 * RARE**0.5, RATES)
    likely = _poisson(np.arange(1.0, RARE + 1), rates)
    seen = likely.sum(axis=0)
    held = np.flatnonzero(counts[0])
    likely, share = (likely / seen)[held], drawn[:, held] / np.maximum(drawn.sum(axis=1, keepdims=True), 1e-300)
    weights = np.full((len(drawn), RATES), 1.0 / RATES)
    for _ in range(STEPS if held.size else 0):
        weights = weights * ((share / (weights @ likely.T)) @ likely)
    return Abundance(rates, weights, seen, drawn.sum(axis=1))


def _poisson(counts: Array, rates: Array) -> Array:
    special: Any = load("scipy.special")
    logs = counts[:, None] * np.log(rates) - rates - special.gammaln(counts + 1.0)[:, None]
    found: Array = np.exp(logs)
    return found
