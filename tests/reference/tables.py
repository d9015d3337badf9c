"""The slow truth of the tables: one value, one cell, one formula at a time, with mpmath where digits matter."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

from mpmath import mp, mpf

from tests.reference.mp import DIGITS


def cell_of(value: float, edges: Sequence[float]) -> int:
    """Below, the bins (each with its lower edge, the last with both), above, -inf, +inf, missing."""
    bins = max(len(edges) - 1, 0)
    if math.isnan(value):
        return bins + 4
    if math.isinf(value):
        return bins + (3 if value > 0 else 2)
    if not edges or value < edges[0]:
        return 0
    if value > edges[-1]:
        return bins + 1
    if value == edges[-1]:
        return bins
    return bisect.bisect_right(edges, value)


def counted(values: Sequence[float], edges: Sequence[float]) -> list[int]:
    """How many values each cell has."""
    found = [0] * (max(len(edges) - 1, 0) + 5)
    for value in values:
        found[cell_of(value, edges)] += 1
    return found


def smoothed(counts: Sequence[float], used: Sequence[bool], added: float) -> list[mpf]:
    """Probabilities after a pseudo-count in every cell that takes part."""
    kept = [mpf(count) + mpf(added) if here else mpf(0) for count, here in zip(counts, used, strict=True)]
    return [one / sum(kept) for one in kept]


def kl(p: Sequence[mpf], q: Sequence[mpf]) -> mpf:
    """The sum of p log(p/q)."""
    with mp.workdps(DIGITS):
        total = mpf(0)
        for a, b in zip(p, q, strict=True):
            if a > 0:
                total += a * mp.log(a / b) if b > 0 else mp.inf
        return total


def parts(p: Sequence[mpf], q: Sequence[mpf], groups: Sequence[str]) -> dict[str, mpf]:
    """KL by the chain rule: one question after the other, each asked where the answers before were no."""
    found = {}
    rest = list(range(len(p)))
    for part in ("missing", "tails", "new"):
        inside = [k for k in rest if groups[k] == part]
        outside = [k for k in rest if groups[k] != part]
        found[part] = _choice(p, q, inside, outside) + _within(p, q, inside)
        rest = outside
    found["within"] = _within(p, q, rest)
    return found


def _mass(x: Sequence[mpf], cells: Sequence[int]) -> mpf:
    return sum((x[k] for k in cells), mpf(0))


def _choice(p: Sequence[mpf], q: Sequence[mpf], inside: Sequence[int], outside: Sequence[int]) -> mpf:
    left, right = ([_mass(x, inside), _mass(x, outside)] for x in (p, q))
    if sum(left) == 0:
        return mpf(0)
    return sum(left) * kl([one / sum(left) for one in left], [one / sum(right) for one in right])


def _within(p: Sequence[mpf], q: Sequence[mpf], cells: Sequence[int]) -> mpf:
    a, b = _mass(p, cells), _mass(q, cells)
    if a == 0 or b == 0:
        return mpf(0)
    return a * kl([p[k] / a for k in cells], [q[k] / b for k in cells])


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """The least level at which each would be rejected."""
    count = len(p)
    ranked = sorted(p)
    return [min(1.0, min(ranked[j] * count / (j + 1) for j in range(count) if ranked[j] >= value)) for value in p]
