"""All statistics of some columns at once: a row for each column, its cells side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import klnumba as kl
from klnumba.optional import load
from klnumba.tables import fourfold, interval
from klnumba.tables.cells import CORE, MISSING, NEW, TAIL, Array
from klnumba.tables.pooling import Pair, pooled
from klnumba.tables.smoothing import smooth

SPARSE = 5.0  # the test takes cells together in which either sample lets expect fewer rows
RARE = 2.0  # and the interval those in which it lets expect fewer than this
PARTS = {"kl_missing": MISSING, "kl_tails": TAIL, "kl_new": NEW, "kl_reshaping": CORE}
CORRECTIONS = ("bh", "bonferroni", "holm", "none")


@dataclass(frozen=True)
class Measured:
    """Statistics by name, one number a column, and by cell the probabilities compared and their shares of KL."""

    columns: dict[str, Array]
    p: Array
    q: Array
    shares: Array

    def spread(self, places: Array) -> Measured:
        """The columns at their places among others, which are NaN."""
        columns = {name: spread(values, places) for name, values in self.columns.items()}
        return Measured(columns, *(spread(values, places) for values in (self.p, self.q, self.shares)))


def spread(values: Array, places: Array) -> Array:
    """Rows at their places among others, which are NaN."""
    found = np.full((places.size, *values.shape[1:]), np.nan)
    found[places] = values
    return found


def measure(pair: Pair, smoothing: str | float, confidence: float, unit: float) -> Measured:
    """Every statistic of every column, divergences in units of `unit` nats; NaN where a side has no rows.

    For the bias-corrected value and the interval, cells in which either side lets expect fewer than `RARE` rows are
    taken together: of single rows no formula for large samples knows anything. KL of fewer cells is never larger.
    """
    some = (pair.n > 0) & (pair.m > 0)
    found = _measure(pair.select(some), smoothing, confidence, unit)
    return found if some.all() else found.spread(some)


def _measure(pair: Pair, smoothing: str | float, confidence: float, unit: float) -> Measured:
    used = pair.used
    left, right = (smooth(side, n, used, smoothing) for side, n in ((pair.reference, pair.n), (pair.current, pair.m)))
    found = kl.row_statistics(left, right, stats=("kl", "reverse_kl", "js", "jeffreys"))
    with np.errstate(invalid="ignore"):
        p, q = (side / side.sum(axis=1, keepdims=True) for side in (left, right))
    names = {"kl": "kl", "kl_reverse": "reverse_kl", "js": "js", "psi": "jeffreys"}
    divergences = {name: found[source] for name, source in names.items()}
    divergences |= split(p, q, pair.groups)
    columns = {name: value / unit for name, value in divergences.items()}
    columns |= evidence(pair, confidence, unit)
    return Measured(columns, p, q, kl.rel_entr(p, q) / unit)


def evidence(pair: Pair, confidence: float, unit: float) -> dict[str, Array]:
    """The bias-corrected value, its standard error and interval, in units of `unit` nats, and the test of no change.

    Of two known distributions there is none.
    """
    sampled = np.isfinite(pair.n) | np.isfinite(pair.m)
    if not sampled.all():
        found = evidence(pair.select(sampled), confidence, unit)
        return {name: spread(values, sampled) for name, values in found.items()}
    told = pair if pair.told is None else pair.told
    found = {name: value / unit for name, value in _estimate(told, confidence).items()}
    return found | independence(told)


def _estimate(pair: Pair, confidence: float) -> dict[str, Array]:
    """The bias-corrected value and its interval, which is open where all cells are too rare to say anything."""
    few = pooled(pair, RARE).informed()
    found = interval.estimate(few.reference, few.n, few.current, few.m, confidence)
    lost = (few.used.sum(axis=1) == 1) & (pair.used.sum(axis=1) > 1)
    unknown = {"kl_corrected": np.nan, "standard_error": np.nan, "ci_low": 0.0, "ci_high": np.inf}
    return {name: np.where(lost, unknown[name], values) for name, values in found.items()}


def split(p: Array, q: Array, groups: Array) -> dict[str, Array]:
    """KL cut into parts by the chain rule: missing or not, then in the tails or not, then new or not, then the rest.

    T. M. Cover and J. A. Thomas, Elements of Information Theory, 2nd edition, 2006, theorem 2.5.3. What is missing,
    in the tails or new adds what the decision for or against it tells, and what its own cells tell among themselves.
    Every part is 0 or more, and they add up to KL.
    """
    found = {}
    rest = np.ones_like(groups, bool)
    for name, part in PARTS.items():
        inside = groups == part
        if part == CORE:
            found[name] = _within(p, q, inside)
        else:
            outside = rest & ~inside
            found[name] = _choice(p, q, inside, outside) + _within(p, q, inside)
            rest = outside
    return found


def _mass(x: Array, cells: Array) -> Array:
    found: Array = np.where(cells, x, 0.0).sum(axis=1)
    return found


def _choice(p: Array, q: Array, inside: Array, outside: Array) -> Array:
    """What the choice between two sets of cells tells, times the mass of both."""
    left, right = (np.stack([_mass(x, inside), _mass(x, outside)], axis=1) for x in (p, q))
    mass = left.sum(axis=1)
    divergence = kl.kl_divergence(left, np.where(right.any(axis=1, keepdims=True), right, 1.0))
    lost = ~right.any(axis=1) & (mass > 0)
    with np.errstate(invalid="ignore"):
        found = np.where(mass > 0, mass * divergence, 0.0)
    return np.where(lost, 0.0, found)  # an earlier choice has told all: it is infinite already


def _within(p: Array, q: Array, inside: Array) -> Array:
    """The mass of p in some cells times the divergence among them."""
    left, right = np.where(inside, p, 0.0), np.where(inside, q, 0.0)
    mass = left.sum(axis=1)
    some = (mass > 0) & (right.sum(axis=1) > 0)
    found = np.zeros(len(p))
    if some.any():
        found[some] = mass[some] * kl.kl_divergence(left[some], right[some])
    return found


def independence(pair: Pair) -> dict[str, Array]:
    """The test of no change: G, its degrees of freedom and its p-value, from the counts as they are.

    G = 2 (n KL(p || r) + m KL(q || r)), r both samples together, follows a chi-squared distribution with cells - 1
    degrees of freedom (S. S. Wilks, 1935), for a known distribution r = p. The law holds where the cells are not too
    empty: those in which either sample lets expect fewer than `SPARSE` rows are taken together (W. G. Cochran,
    Biometrics 10, pp. 417-451, 1954), and the p-value divides G by D. A. Williams's factor (Biometrika 63, pp. 33-37,
    1976), which brings its mean to that of the law. Where all are too empty, the fullest cell is held against all
    others together, by the exact test (`klnumba.tables.fourfold`): the fullest of both samples together, since the test
    is exact only if what either of them holds did not choose the cell. The two samples may change places.
    """
    pair = pair.turned(np.isinf(pair.m))
    g, both, n, m = _likelihood(pooled(pair, SPARSE).informed())
    dof = np.maximum((both > 0).sum(axis=1) - 1, 0)
    p_value = load("scipy.special").chdtrc(np.maximum(dof, 1), g / _williams(both, n, m, dof))
    found = {"g": g, "dof": dof.astype(np.float64), "p_value": np.where(dof > 0, p_value, 1.0)}
    told = pair.used if pair.doubtful is None else pair.used & ~pair.doubtful
    small = np.flatnonzero((dof == 0) & (pair.used.sum(axis=1) > 1) & told.any(axis=1))
    return _of_two_cells(pair, small, found) if small.size else found


def _likelihood(pair: Pair) -> tuple[Array, Array, Array, Array]:
    """G, both samples together, and their numbers of rows; a known reference is the law itself, of 0 rows."""
    known = np.isinf(pair.n)
    both = np.where(known[:, None], pair.reference, pair.reference + pair.current)
    n, m = np.where(known, 0.0, pair.n), pair.m
    with np.errstate(invalid="ignore"):
        to_reference = np.where(known, 0.0, kl.kl_divergence(pair.reference, both))
        g = 2.0 * (n * to_reference + m * kl.kl_divergence(pair.current, both))
    return g, both, n, m


def _of_two_cells(pair: Pair, columns: Array, found: dict[str, Array]) -> dict[str, Array]:
    """The same, where these columns are small: the fullest cell against all others together."""
    part = pair.select(columns)
    two = part.cut(np.arange(part.used.shape[1]) == part.fullest()[:, None]).informed()
    found["g"][columns] = _likelihood(two)[0]
    found["dof"][columns] = 1.0
    counts = zip(two.reference[:, 1], two.n, two.current[:, 1], two.m, strict=True)
    found["p_value"][columns] = [fourfold.p_value(*map(float, one)) for one in counts]
    return found


def _williams(both: Array, n: Array, m: Array, dof: Array) -> Array:
    """The mean of G over its degrees of freedom, in large samples; n = 0 where the reference is known."""
    total = np.where(n > 0, n + m, m)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = both / both.sum(axis=1, keepdims=True)
        cells = np.where(both > 0, 1.0 / share, 0.0).sum(axis=1) - 1.0
        sides = np.where(n > 0, total / n + total / m - 1.0, 1.0)
        found = 1.0 + sides * cells / (6.0 * total * np.maximum(dof, 1))
    return np.where(np.isfinite(found), found, 1.0)


def adjusted(p: Array, correction: str) -> Array:
    """p-values adjusted for how many columns were looked at; NaN stays, and counts for none.

    "bh" controls the false discovery rate (Y. Benjamini and Y. Hochberg, Journal of the Royal Statistical Society B
    57, pp. 289-300, 1995), "holm" and "bonferroni" the chance of any false alarm.
    """
    found = p.copy()
    valid = np.flatnonzero(~np.isnan(p))
    count = valid.size
    if correction == "none" or not count:
        return found
    if correction == "bonferroni":
        found[valid] = np.minimum(p[valid] * count, 1.0)
        return found
    order = valid[np.argsort(p[valid], kind="stable")]
    rank = np.arange(1, count + 1)
    if correction == "holm":
        steps: Any = np.maximum.accumulate(p[order] * (count - rank + 1))
    else:
        steps = np.minimum.accumulate((p[order] * count / rank)[::-1])[::-1]
    found[order] = np.clip(steps, p[order], 1.0)  # times and over the count may round to less than p
    return found
