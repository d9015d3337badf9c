"""How large a divergence chance makes where many categories are rare: found by drawing the reference again as well."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import klnumba as kl
from klnumba.tables import abundance
from klnumba.tables import smoothing as smoothings
from klnumba.tables.abundance import Abundance
from klnumba.tables.arrow import MOST_UNSEEN
from klnumba.tables.cells import Array
from klnumba.tables.fitting import MOST_CATEGORIES

REFERENCES = 100
PREDICTED = 20  # tables from which the divergence that one of these predicts is told
ROUNDING = 1e-12  # where all tables are equal, as names that never come again are, rounding does not decide


@dataclass(frozen=True)
class Sample:
    """Rows of categories as whole numbers: of those with a cell, of those without, and of what is missing."""

    named: Array
    others: Array
    missing: float
    missing_rate: float  # to be expected in samples of this size
    kept: bool  # whether what is missing is a cell

    @property
    def all(self) -> Array:
        """The rows of all categories."""
        return np.concatenate([self.named, self.others])

    def next(self, law: Abundance, n: int, samples: int, rng: np.random.Generator) -> Array:
        """Tables of `n` rows, as the law expects them: (samples, cells)."""
        others = np.full((samples, 1), law.mean(self.others) + law.unseen)
        missing = rng.standard_gamma(self.missing_rate, (samples, 1))
        return self.tables(np.hstack([law.draw(self.named, samples, rng), others, missing]), n, rng)

    def again(self, law: Abundance, rng: np.random.Generator) -> tuple[Sample, Array]:
        """Another sample of such a law, and the rates of its cells: (cells,)."""
        frequent = rng.standard_gamma(self.all[self.all > abundance.RARE])
        rates, rows, unseen = law.again(rng)
        rates, rows = np.append(frequent, rates), np.append(rng.poisson(frequent), rows)
        order = np.argsort(-rows, kind="stable")
        named, others = order[:MOST_CATEGORIES], order[MOST_CATEGORIES:]
        missing = float(rng.standard_gamma(self.missing_rate))
        lost = float(rng.poisson(missing)) if self.missing else 0.0  # what none has shown none shows again
        made = replace(
            self, named=rows[named], others=remembered(rows[others]), missing=lost,
            missing_rate=self.missing_rate - self.missing + lost,
        )  # fmt: skip
        return made, np.concatenate([rates[named], [unseen + rates[others].sum(), missing]])

    def tables(self, rates: Array, n: int, rng: np.random.Generator) -> Array:
        """Tables of `n` rows from the rates of all cells: (samples, cells)."""
        return drawn(rates, n, np.append(np.ones(self.named.size + 1, bool), self.kept), rng)

    @property
    def cells(self) -> Array:
        """The rows of each cell."""
        return np.concatenate([self.named, [self.others.sum(), self.missing * self.kept]])


def remembered(rows: Array) -> Array:
    """What a profile knows of the rows of categories without a cell: of too many, the sum alone."""
    return even(float(rows.sum()), rows.size) if rows.size > MOST_UNSEEN else rows


def even(rows: float, categories: int) -> Array:
    """Rows of so many categories, as even as whole numbers can be."""
    ends = np.rint(np.linspace(0.0, rows, categories + 1))
    return np.diff(ends)


def drawn(rates: Array, n: int, kept: Array, rng: np.random.Generator) -> Array:
    """Tables of `n` rows from the rates of their cells, without the rows of cells that are not kept."""
    found: Array = np.where(kept, rng.multinomial(n, rates / rates.sum(axis=-1, keepdims=True)), 0.0)
    return found


def divergences(first: Array, second: Array, smoothing: str | float, known: bool = False) -> Array:
    """KL of the counts of one reference, or of its shares if they are known, and of some tables: (tables,)."""
    first, total = np.broadcast_to(first, second.shape), second.sum(axis=1)
    used = (first > 0) | (second > 0)
    p = smoothings.smooth(first, np.where(known, np.inf, first.sum(axis=1)), used, smoothing)
    q = smoothings.smooth(second, total, used, smoothing)
    found: Array = np.where(total > 0, kl.kl_divergence(p, q), 0.0)  # of no rows there is none to exceed anything
    return found


def limit(
    reference: Array, sample: Sample, n: int, alpha: float, smoothing: str | float, samples: int,
    rng: np.random.Generator,
) -> float:  # fmt: skip
    """The divergence from a reference that a table of `n` rows exceeds in a share `alpha` of the cases.

    The reference is such a sample. What its law predicts is wrong by as much as other samples predict wrongly what
    follows on them: the limit is the median divergence that it predicts, and a quantile of how far beyond their
    predictions tables go that follow on samples drawn from laws that differ as those of other samples would.
    """
    law = abundance.fit([sample.all])[0]
    rare = sample.all[abundance.rare(sample.all)]
    drawn_from = abundance.fit([rng.choice(rare, rare.size) for _ in range(REFERENCES)])
    again = [sample.again(one, rng) for one in drawn_from]
    laws = abundance.fit([one.all for one, _ in again])
    size = -(-samples // REFERENCES)
    errors = []
    for (one, rates), its in zip(again, laws, strict=True):
        follow = one.tables(np.broadcast_to(rates, (size, rates.size)), n, rng)
        predicted = divergences(one.cells, one.next(its, n, PREDICTED, rng), smoothing)
        errors.append(divergences(one.cells, follow, smoothing) - np.median(predicted))
    middle = np.median(divergences(reference, sample.next(law, n, samples, rng), smoothing))
    return float(middle + np.quantile(np.concatenate(errors), 1.0 - alpha, method="higher")) * (1.0 + ROUNDING)
