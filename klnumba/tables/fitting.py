"""Cells fitted on a reference that comes in one piece or in many: what is kept of each, and what follows from all.

The same rows give the same cells, however they are cut into pieces: extremes, counts and categories are exact, and
quantiles are those of a sample that depends on the places of the rows alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from klnumba.tables import rules, sampling, whole, words
from klnumba.tables.cells import Array, Bins, Categories, Cells, Label
from klnumba.tables.codes import Counted
from klnumba.tables.columns import BLOCK, KINDS, Column, ColumnError, Labels, Numbers, Unusable, as_float, label_of
from klnumba.tables.counting import all_missing
from klnumba.tables.sampling import Sample
from klnumba.tables.words import Vocabulary

FEW = 32  # whole numbers with no more different values than this are categories
MOST_CATEGORIES = 1000
ENTRY = 104  # bytes of a number and its count, which Python keeps


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
    sample: Sample = field(default_factory=Sample)
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
        """One more piece, looked at a block at a time."""
        raw = column.read()
        start, stop = self.rows, self.rows + raw.size
        self.rows = stop
        if not isinstance(self.rule, (str, int, np.integer)):  # edges that are given
            self.finite = self.finite or _some_finite(raw)
            return
        low, high = self._extremes(raw)
        exact = sampling.exact(raw, low, high)
        self.sample.take(raw, start, stop, exact)
        if self.few is not None:
            self._count(raw, exact)

    def _extremes(self, raw: Array) -> tuple[float, float]:
        """Those of the finite numbers, which are counted in, as are the infinities."""
        low, high = math.inf, -math.inf
        for block in _blocks(raw):
            values = as_float(block)
            ends = float(values.min()), float(values.max())
            if not all(map(math.isfinite, ends)):
                self.infinite = _together(self.infinite, whole.infinities(values))
                values = values[np.isfinite(values)]
                ends = (float(values.min()), float(values.max())) if values.size else (math.inf, -math.inf)
            self.finite += values.size
            low, high = min(low, ends[0]), max(high, ends[1])
        low, high = low + 0.0, high + 0.0  # of equal numbers the first is taken, and -0.0 is one with 0.0
        self.low, self.high = min(self.low, low), max(self.high, high)
        return low, high

    def join(self, other: NumberDraft) -> None:
        """What comes after, drafted elsewhere."""
        self.rows = other.rows
        self.finite += other.finite
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.sample.join(other.sample, other.rows)
        self.infinite = _together(self.infinite, other.infinite)
        self._hold(other.few)

    def _count(self, raw: Array, exact: bool) -> None:
        """Count the different numbers while they are few and whole, or, for the rule "category", all of them."""
        few = _few_exact if exact else _few_whole
        if self.name not in ("auto", "category") or (
            self.name == "auto" and few(_finite(self.sample.latest, exact)) is None
        ):
            self.few = None
        count = whole.distinct if self.name == "category" else few
        for block in _blocks(raw):
            if self.few is not None:
                self._hold(count(_finite(block, exact)))

    def _hold(self, counts: dict[Label, int] | None) -> None:
        """Count in what another piece has counted, or give up."""
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
        parts = self.sample.of(self.rows)  # pieces without values may have come behind
        if sampling.blurred(parts):
            held = KINDS[self.kind] if self.kind != "number" else "whole numbers"
            other = "" if self.kind != "number" else '; bins="category" can'
            raise ColumnError(f"holds {held} that float64 cannot tell apart{other}")
        sample = np.concatenate([as_float(part) for part in parts]) if parts else np.empty(0)
        sample = sample[np.isfinite(sample)] + 0.0  # -0.0 becomes 0.0
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


def _blocks(raw: Array) -> Iterator[Array]:
    return (raw[k : k + BLOCK] for k in range(0, raw.size, BLOCK))


def _finite(raw: Array, exact: bool) -> Array:
    """The finite numbers, as they are or as float64."""
    floats = as_float(raw)
    held = np.isfinite(floats)
    found: Array = (raw if exact else floats)[held]
    return found


def _some_finite(raw: Array) -> int:
    """How many numbers are finite in the first block that has any."""
    counts = (int(np.isfinite(as_float(block)).sum()) for block in _blocks(raw))
    return next(filter(None, counts), 0)


def _few_exact(values: Array) -> dict[Label, int] | None:
    """The different values if they are few and whole, else None, where float64 would round them."""
    ordered = np.sort(values)  # `numpy.unique` takes ten times as long
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
