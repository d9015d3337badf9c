"""How large a divergence chance makes where many cells are rare: found by drawing the reference again as well."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import klnumba as kl
from klnumba.tables import abundance
from klnumba.tables import smoothing as smoothings
from klnumba.tables.abundance import Abundance
from klnumba.tables.arrow import MOST_UNSEEN
from klnumba.tables.cells import Array
from klnumba.tables.fitting import MOST_CATEGORIES

REFERENCES = 100
PREDICTED = 40  # tables from which the mean divergence of one of these is told
ROUNDING = 1e-12  # where all tables are equal, as names that never come again are, rounding does not decide


@dataclass(frozen=True)
class Sample:
    """Rows by cell, as whole numbers: of those that may be rare, of such without a cell of their own, of the rest."""

    named: Array
    others: Array
    rest: Array
    fewest: int  # as an `Abundance` has it
    rest_rates: Array

    @property
    def all(self) -> Array:
        """The rows of all that may be rare."""
        return np.concatenate([self.named, self.others])

    @property
    def cells(self) -> Array:
        """The rows of each cell, that of the others between the named ones and the rest."""
        return np.concatenate([self.named, [self.others.sum()], self.rest])

    def next(self, law: Abundance, n: int, samples: int, kept: Array, rng: np.random.Generator) -> Array:
        """Tables of `n` rows, as the law expects them: (samples, cells)."""
        others = np.full((samples, 1), law.mean(self.others) + law.unseen)
        rest = rng.standard_gamma(self.rest_rates, (samples, self.rest.size))
        return tables(np.hstack([law.draw(self.named, samples, rng), others, rest]), n, kept, rng)

    def again(self, law: Abundance, rng: np.random.Generator) -> tuple[Sample, Array]:
        """Another sample of such a law, and the rates of its cells: (cells,)."""
        frequent = rng.standard_gamma(self.all[self.all > abundance.RARE])
        rates, rows, unseen = law.again(rng)
        rates, rows = np.append(frequent, rates), np.append(rng.poisson(frequent), rows)
        order = np.argsort(-rows, kind="stable")
        order = order[rows[order] >= law.fewest]
        most = MOST_CATEGORIES if law.fewest else order.size
        named, others = order[:most], order[most:]
        rest = rng.standard_gamma(self.rest_rates)
        found = np.where(self.rest > 0, rng.poisson(rest), 0.0)
        unseen += float(np.delete(rates, named).sum())
        made = Sample(rows[named], remembered(rows[others]), found, self.fewest, found + self.rest_rates - self.rest)
        return made, np.concatenate([rates[named], [unseen], rest])


def remembered(rows: Array) -> Array:
    """What a profile knows of the rows of categories without a cell: of too many, the sum alone."""
    return even(float(rows.sum()), rows.size) if rows.size > MOST_UNSEEN else rows


def even(rows: float, categories: int) -> Array:
    """Rows of so many categories, as even as whole numbers can be."""
    ends = np.rint(np.linspace(0.0, rows, categories + 1))
    return np.diff(ends)


def tables(rates: Array, n: int, kept: Array, rng: np.random.Generator) -> Array:
    """Tables of `n` rows with so many rows of each cell as rates say, without those of the last that are not kept."""
    drawn = rng.multinomial(n, rates / rates.sum(axis=-1, keepdims=True))
    drawn[:, drawn.shape[1] - kept.size :] *= kept
    return drawn.astype(np.float64)


def divergences(first: Array, rows: float, second: Array, smoothing: str | float) -> Array:
    """KL of the counts of one reference, which has so many rows, and of some tables: (tables,)."""
    first, total = np.broadcast_to(first, second.shape), second.sum(axis=1)
    used = (first > 0) | (second > 0)
    p = smoothings.smooth(first, np.full(len(second), rows), used, smoothing)
    q = smoothings.smooth(second, total, used, smoothing)
    found: Array = np.where(total > 0, kl.kl_divergence(p, q), 0.0)  # of no rows there is none to exceed anything
    return found


def limit(
    sample: Sample, n: int, alpha: float, smoothing: str | float, samples: int, kept: Array, rng: np.random.Generator
) -> float:
    """The divergence that a table of `n` rows exceeds in a share `alpha` of the cases.

    What the law of this sample predicts is wrong by as much as other samples predict wrongly what follows on them: the
    limit is the median divergence that it predicts, and a quantile of how far beyond their predictions tables go that
    follow on samples drawn from this law.
    """
    law = abundance.fit([sample.all], sample.fewest)[0]
    again = [sample.again(law, rng) for _ in range(REFERENCES)]
    laws = abundance.fit([one.all for one, _ in again], sample.fewest)

    def beyond(one: Sample, drawn: Array) -> Array:
        counts = one.cells
        counts[counts.size - kept.size :] *= kept
        return divergences(counts, float(counts.sum()), drawn, smoothing)

    size = -(-samples // REFERENCES)
    errors = []
    for (one, rates), its in zip(again, laws, strict=True):
        follow = tables(np.broadcast_to(rates, (size, rates.size)), n, kept, rng)
        errors.append(beyond(one, follow) - np.median(beyond(one, one.next(its, n, PREDICTED, kept, rng))))
    middle = np.median(beyond(sample, sample.next(law, n, samples, kept, rng)))
    return float(middle + np.quantile(np.concatenate(errors), 1.0 - alpha, method="higher")) * (1.0 + ROUNDING)
