"""Bins of which some are empty: how much may lie in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klnumba.tables.cells import Array

PART = 0.5  # of a bin that holds one of two neighbouring numbers, as against one that lies between them


@dataclass(frozen=True)
class Gaps:
    """What lies between the numbers of a sample of which bins know only how many they hold.

    Between two neighbouring numbers of a continuous law lies as much as a gamma number with one degree of freedom says,
    in samples of this size. Those of one bin have it there. That between the last number of a bin and the first of the
    next one that has any is divided among all bins from the one to the other, by a Dirichlet law with a parameter of 1
    for each, and of `PART` for the two. Bins that do not end at a number hold as large a part of what lies beyond.
    """

    within: Array  # (bins,): how much each bin holds for certain
    bins: Array  # of each part of a gap
    gap: Array  # of each part
    parts: Array

    @classmethod
    def of(cls, counts: Array, fitted: bool) -> Gaps:
        """The gaps between bins that hold so many rows; `fitted` ones begin and end at a number."""
        held = np.flatnonzero(counts > 0)
        sizes = np.diff(held) + 1
        gap = np.repeat(np.arange(sizes.size), sizes)
        bins = np.arange(gap.size) - gap + (held[0] if held.size else 0)  # a gap begins where the one before it ended
        parts = np.where(counts[bins] > 0, PART, 1.0)
        within = np.maximum(counts - 1.0, 0.0)
        for end in () if fitted else (*held[:1], *held[-1:]):
            within[end] += PART
        return cls(within, bins, gap, parts)

    def draw(self, samples: int, rng: np.random.Generator) -> Array:
        """What the gaps add to each bin: (samples, bins)."""
        found = np.zeros((self.within.size, samples))
        if self.gap.size:
            parts = rng.standard_gamma(self.parts[:, None], (self.parts.size, samples))
            total = np.add.reduceat(parts, np.flatnonzero(np.diff(self.gap, prepend=-1)))
            rows = rng.standard_gamma(1.0, total.shape)
            np.add.at(found, self.bins, parts * (rows / total)[self.gap])
        return found.T
