"""Cells fitted on a reference that comes in one piece or in many: what is kept of each, and what follows from all.

The same rows give the same cells, however they are cut into pieces: extremes, counts and categories are exact, and
quantiles are those of a sample that depends on the places of the rows alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from klnumba.tables import rules, whole, words
from klnumba.tables.cells import Array, Bins, Categories, Cells, Label
from klnumba.tables.codes import Counted
from klnumba.tables.columns import Column, ColumnError, Labels, Numbers, Unusable, as_float, label_of
from klnumba.tables.counting import all_missing
from klnumba.tables.hashing import mixed
from klnumba.tables.words import Vocabulary

FEW = 32  # whole numbers with no more different values than this are categories
MOST_CATEGORIES = 1000
SAMPLE = 1 << 17  # rows from which quantiles are taken, at most
BLOCK = 1 << 17
ENTRY = 104  # bytes of a number and its count, which Python keeps


def level_of(rows: int) -> int:
    """Of so many rows, one in 2**level is taken."""
    return max(0, math.ceil(math.log2(rows / SAMPLE))) if rows > SAMPLE else 0


def places(start: int, stop: int, level: int) -> Array:
    """The rows of a sample from start to stop: those whose place, well mixed, ends in `level` zero bits."""
    if not level:
        return np.arange(start, stop)
    mask = np.uint64((1 << level) - 1)
    found = []
    for first in range(start, stop, BLOCK):
        here = np.arange(first, min(first + BLOCK, stop), dtype=np.uint64)
        found.append(here[(mixed(here) & mask) == 0].astype(np.int64))
    return np.concatenate(found) if found else np.empty(0, np.int64)


_places = functools.lru_cache(maxsize=64)(places)  # the columns of one table have the same rows


class Part(NamedTuple):
    """The part of a sample that comes from the rows from start to stop: the numbers at their `places`."""

    start: int
    stop: int
    level: int
    values: Array


@dataclass
class NumberDraft:
    """What is kept of the pieces of a column of numbers."""

    kind: str
    aware: bool
    rule: Any
    rows: int = 0
    finite: int = 0
    low: float = math.inf
    high: float = -math.inf
    level: int = 0
    sample: list[Part] = field(default_factory=list)
    few: dict[Label, int] | None = field(default_factory=dict)  # the different numbers, where they may be categories
    infinite: dict[Label, int] = field(default_factory=dict)  # the infinities among them

    @property
    def open(self) -> bool:
        """Whether no value has been seen, which leaves the kind open."""
        return not (self.finite or self.infinite)

    @property
    def name(self) -> str:
        """The rule's name where numbers may become categories."""
        return self.rule if isinstance(self.rule, str) and self.kind == "number" else ""

    @property
    def nbytes(self) -> int:
        """The memory that grows with the number of different values."""
        return ENTRY * len(self.few or ())

    def add(self, column: Numbers) -> None:
        """One more piece."""
        raw = column.read()
        start, stop = self.rows, self.rows + raw.size
        self.rows = stop
        if not isinstance(self.rule, (str, int, np.integer)):  # edges that are given
            self.finite = self.finite or _some_finite(raw)
            return
        values = as_float(raw)
        low, high = (float(values.min()), float(values.max())) if values.size else (math.nan, math.nan)
        if not (math.isfinite(low) and math.isfinite(high)):
            self.infinite = _together(self.infinite, whole.infinities(values))
            values = values[np.isfinite(values)]
            low, high = (float(values.min()), float(values.max())) if values.size else (math.inf, -math.inf)
        self.finite += values.size
        self.low, self.high = min(self.low, low), max(self.high, high)
        exact = whole.exact(raw, low, high)
        self._take(raw, start, stop, exact)
        if self.few is not None:
            self._count(raw if exact else values, exact)

    def join(self, other: NumberDraft) -> None:
        """What comes after, drafted elsewhere."""
        self.rows = other.rows
        self.finite += other.finite
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.sample += other.sample
        self._thin(level_of(other.rows), force=True)
        self.infinite = _together(self.infinite, other.infinite)
        self.few = None if self.few is None or other.few is None else _together(self.few, other.few)
        if self.name != "category" and self.few is not None and len(self.few) > FEW:
            self.few = None

    def _take(self, raw: Array, start: int, stop: int, exact: bool) -> None:
        """Add the piece's part of the sample, and thin what was taken before."""
        level = level_of(stop)
        self._thin(level)
        at = _places(start, stop, level)
        taken = raw if at.size == raw.size else raw[at - start]
        self.sample.append(Part(start, stop, level, taken if exact else as_float(taken)))

    def _thin(self, level: int, *, force: bool = False) -> None:
        """Keep those rows of the sample that are in the one of this level."""
        if level > self.level or force:
            mask = np.uint64((1 << level) - 1)
            for k, one in enumerate(self.sample):
                at = _places(one.start, one.stop, one.level)
                kept = (mixed(at.astype(np.uint64)) & mask) == 0
                self.sample[k] = Part(one.start, one.stop, max(level, one.level), one.values[kept])
            self.level = level

    def _count(self, values: Array, exact: bool) -> None:
        """Count the different numbers while they are few and whole, or, for the rule "category", all of them."""
        if self.name == "category":
            counts: dict[Label, int] | None = whole.distinct(values)
        elif self.name == "auto":
            taken = self.sample[-1].values
            few = _few_exact if exact else _few_whole
            counts = few(values) if few(taken[np.isfinite(as_float(taken))]) is not None else None
        else:
            counts = None
        self.few = None if self.few is None or counts is None else _together(self.few, counts)
        if self.name != "category" and self.few is not None and len(self.few) > FEW:
            self.few = None

    def cells(self) -> Cells:
        """The cells that follow."""
        if isinstance(self.rule, str) and self.rule == "category" and self.kind not in ("number", "boolean"):
            raise ColumnError(f"bins: a column of kind {self.kind} has no categories")
        if self.kind == "boolean":
            return Categories("boolean", () if self.open else (False, True))
        if self.few:
            return categories("number", self.few | self.infinite)
        self._thin(level_of(self.rows))  # pieces without values may have come behind
        parts = [one.values for one in self.sample]
        if whole.blurred(parts):
            raise ColumnError('holds whole numbers that float64 cannot tell apart; bins="category" can')
        sample = np.concatenate([as_float(part) for part in parts]) if parts else np.empty(0)
        sample = sample[np.isfinite(sample)]
        edges = rules.edges(self.rule, sample, self.finite, self.low, self.high)
        return Bins(self.kind, edges, self.aware, isinstance(self.rule, (str, int, np.integer)))


@dataclass
class LabelDraft:
    """What is kept of the pieces of a column of categories."""

    kind: str = "category"
    aware: bool = False
    rows: int = 0
    texts: Vocabulary = field(default_factory=Vocabulary)
    others: dict[Label, int] = field(default_factory=dict)  # categories that are no text

    @property
    def open(self) -> bool:
        """Whether no value has been seen, which leaves the kind open."""
        return not self.texts.size and not self.others

    @property
    def nbytes(self) -> int:
        """The memory that grows with the number of different values."""
        return self.texts.nbytes + ENTRY * len(self.others)

    def add(self, column: Labels) -> None:
        """One more piece."""
        self.rows += column.rows
        self.others = _together(self.others, column.gather(self.texts))

    def join(self, other: LabelDraft) -> None:
        """What comes after, drafted elsewhere."""
        self.rows = other.rows
        self.texts.join(other.texts)
        self.others = _together(self.others, other.others)

    def cells(self) -> Cells:
        """The cells that follow."""
        leading: dict[Label, int] = dict(self.texts.leading(MOST_CATEGORIES).items())
        texts = words.MOST + 1 if self.texts.forgetful else self.texts.size  # there are more, but not how many is known
        return categories(self.kind, leading | self.others, texts - len(leading))


Draft = NumberDraft | LabelDraft


def drafted(draft: Draft | None, column: Column, rule: Any, start: int = 0) -> Draft:
    """A draft with one more piece of its column; the first piece begins with row `start`."""
    if isinstance(column, Unusable):
        raise ColumnError(column.reason)
    if draft is None or (draft.open and (draft.kind, draft.aware) != (column.kind, column.aware)):
        rows = start if draft is None else draft.rows
        fresh: Draft = LabelDraft(rows=rows)
        if isinstance(column, Numbers):
            fresh = NumberDraft(column.kind, column.aware, rule, rows)
        draft = fresh
    kind = LabelDraft if isinstance(column, Labels) else NumberDraft
    if isinstance(draft, kind) and draft.kind == column.kind:
        add: Any = draft.add
        add(column)
    elif all_missing(column):
        draft.rows += column.rows
    else:
        raise ColumnError(f"holds {column.kind} values after {draft.kind} values")
    return draft


def joined(first: Draft, second: Draft) -> Draft:
    """Two drafts of one column as one; the second began where the first ended."""
    if first.open or second.open:
        kept = second if first.open else first
        kept.rows = second.rows
        return kept
    if first.kind != second.kind or first.aware != second.aware:
        raise ColumnError(f"holds {second.kind} values after {first.kind} values")
    join: Any = first.join
    join(second)
    return first


def named(found: Counted) -> dict[Label, int]:
    """Counts by label; what has none is left out."""
    held: dict[Label, int] = {}
    for k in map(int, np.flatnonzero(found.counts)):
        label = label_of(found.labels[k])
        held[label] = held.get(label, 0) + int(found.counts[k])
    return held


def categories(kind: str, counts: Mapping[Label, int], rarer: int = 0) -> Categories:
    """The most frequent categories by name, ties in the order of their texts; numbers then stand in their order.

    There are some that are `rarer` than the 1,000 most frequent of these.
    """
    order = sorted(counts, key=lambda label: (-counts[label], str(label)))
    kept = order[:MOST_CATEGORIES]
    if kind == "number":
        kept.sort(key=lambda label: float(label) if isinstance(label, str) else label)
    return Categories(kind, tuple(kept), len(order) - len(kept) + rarer)


def _together(first: dict[Label, int], second: dict[Label, int]) -> dict[Label, int]:
    if not first:
        return second
    for label, count in second.items():
        first[label] = first.get(label, 0) + count
    return first


def _some_finite(raw: Array) -> int:
    """How many numbers are finite in the first block that has any."""
    counts = (int(np.isfinite(as_float(raw[k : k + BLOCK])).sum()) for k in range(0, raw.size, BLOCK))
    return next(filter(None, counts), 0)


def _few_exact(values: Array) -> dict[Label, int] | None:
    """The different values if they are few and whole, else None, where float64 would round them."""
    ordered = np.sort(values[np.isfinite(as_float(values))])  # `numpy.unique` takes ten times as long
    if np.count_nonzero(ordered[1:] != ordered[:-1]) >= FEW:
        return None
    found = whole.distinct(values)
    return found if len(found) <= FEW and all(isinstance(value, int) for value in found) else None


def _few_whole(values: Array) -> dict[Label, int] | None:
    """The different values if they are few and whole, else None."""
    if not values.size:
        return {}
    low, high = values.min(), values.max()
    if max(abs(low), abs(high)) >= 2.0**53 or (values != np.rint(values)).any():
        return None
    if high - low >= 1 << 16:
        found = whole.distinct(values)
        return found if len(found) <= FEW else None
    counts = np.bincount((values - low).astype(np.int64))
    held = np.flatnonzero(counts)
    return {int(low) + int(k): int(counts[k]) for k in held} if held.size <= FEW else None
