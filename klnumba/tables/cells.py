"""The cells of a column, fitted once and frozen: bins of numbers, or categories."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from klnumba.kernels.binning import cell_count

Label = str | int | float | bool
Array = np.ndarray

LARGEST = float(np.finfo(np.float64).max)  # as an edge: all finite numbers up to infinity
FARTHEST = 2.0**63 - 1024  # microseconds, as an edge: all times up to it; the next float64 is no integer of 64 bits

# Which part of the divergence a cell belongs to.
CORE, TAIL, NEW, MISSING = range(4)
GROUPS = ("within", "tails", "new", "missing")

INFINITE = {"-inf": -3, "inf": -2}  # as categories, which are texts, and their cells among those of bins

MISSING_LABEL = "missing"
OTHER_LABEL = "other"


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins between edges, with cells for what lies below, above, at either infinity, and for what is missing.

    `kind` says what the numbers stand for: "number", or "datetime" and "timedelta" in microseconds. The outer edges are
    the extremes of a sample if they were `fitted`.
    """

    kind: str
    edges: Array
    aware: bool = False  # of "datetime": whether the times have a zone
    fitted: bool = False

    @property
    def size(self) -> int:
        return cell_count(self.edges.size)

    @property
    def search_edges(self) -> Array:
        """The edges with which numbers are counted."""
        return self.edges

    def fold(self, counted: Array) -> Array:
        """The counts of the cells from those between `search_edges`."""
        return counted

    def labels(self) -> list[str]:
        """A text for each cell."""
        if not self.edges.size:
            return ["a finite value", "above", "-inf", "+inf", MISSING_LABEL]
        alone = self.alone
        behind = np.append(False, alone)  # the edges that are next to a number that has a bin
        after = behind & ~np.append(alone, False)  # those with no such number themselves are named by the one before
        ends = np.where(after, np.append(self.edges[:1], self.edges[:-1]), self.edges)
        text = _texts(self.kind, ends, "Z" if self.aware else "")
        pairs = zip(behind.tolist(), itertools.pairwise(text), strict=False)
        bins = [f"{'(' if opened else '['}{low}, {high})" for opened, (low, high) in pairs]
        if bins:
            bins[-1] = bins[-1][:-1] + "]"
        bins = [low if one else label for one, low, label in zip(alone.tolist(), text, bins, strict=False)]
        return [f"below {text[0]}", *bins, f"above {text[-1]}", "-inf", "+inf", MISSING_LABEL]

    @property
    def alone(self) -> Array:
        """Of each bin, whether it holds one number."""
        low, high = self.edges[:-1], self.edges[1:]
        found: Array = high <= np.nextafter(low, math.inf)
        found[-1:] &= low[-1:] == high[-1:]  # the last has both its edges
        return found

    def groups(self) -> Array:
        """The part (`CORE`, `TAIL`, ...) of each cell."""
        found = np.full(self.size, CORE)
        found[[0, -4, -3, -2]] = TAIL
        found[-1] = MISSING
        return found

    def same_as(self, other: Cells) -> bool:
        """Whether the counts of both may be added."""
        return (
            isinstance(other, Bins)
            and (self.kind, self.aware) == (other.kind, other.aware)
            and np.array_equal(self.edges, other.edges)
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "cells": "bins",
            "kind": self.kind,
            "aware": self.aware,
            "fitted": self.fitted,
            "edges": self.edges.tolist(),
        }


@dataclass(frozen=True, eq=False)
class Categories:
    """Named categories, with a cell for every other one and a cell for what is missing.

    `folded` counts the categories of the reference that were too rare to be named.
    """

    kind: str
    names: tuple[Label, ...]
    folded: int = 0
    place: Mapping[Label, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "place", {name: k for k, name in enumerate(self.names)})

    @property
    def size(self) -> int:
        return len(self.names) + 2

    @cached_property
    def texts(self) -> list[str]:
        """The names that are texts."""
        return [name for name in self.names if isinstance(name, str)]

    @cached_property
    def text_places(self) -> Array:
        """The cells of these."""
        return np.array([self.place[name] for name in self.texts], np.int64)

    @property
    def search_edges(self) -> Array:
        """Edges around each name, which is a number: a bin holds the number alone, the next the gap after it."""
        values = np.sort(np.array(self.names, np.float64))
        values = values[np.isfinite(values)]
        return np.stack([values, np.nextafter(values, math.inf)], axis=1).reshape(-1)

    def fold(self, counted: Array) -> Array:
        """The counts of the cells from those between `search_edges`."""
        values = np.array(self.names, np.float64)
        order = np.argsort(values, kind="stable")
        finite = order[np.isfinite(values[order])]
        named = dict(zip(finite.tolist(), range(1, 2 * finite.size, 2), strict=True))
        named |= {self.place[name]: k for name, k in INFINITE.items() if name in self.place}
        found, rest = np.zeros(self.size, counted.dtype), counted.copy()
        bins = [*named.values()]
        found[[*named]] = counted[bins]
        rest[[*bins, -1]] = 0
        found[-2:] = rest.sum(), counted[-1]
        return found

    def labels(self) -> list[str]:
        """A text for each cell; the last two get brackets where a category has their name, and numbers their type."""
        numbers = self.kind == "number"
        found = ["+inf" if numbers and name == "inf" else str(name) for name in self.names]
        held = {name for name in self.names if isinstance(name, str)}
        for k, name in enumerate(self.names if held else ()):
            while not isinstance(name, str) and found[k] in held:
                found[k] += f" ({type(name).__name__})"
        held.update(found)
        for label in (OTHER_LABEL, MISSING_LABEL):
            while label in held:
                label = f"({label})"
            found.append(label)
        return found

    def groups(self) -> Array:
        """The part (`CORE`, `NEW`, ...) of each cell."""
        found = np.full(self.size, CORE)
        if self.kind == "number":
            found[[self.place[name] for name in INFINITE if name in self.place]] = TAIL
        found[-2:] = NEW, MISSING
        return found

    def same_as(self, other: Cells) -> bool:
        """Whether the counts of both may be added."""
        return isinstance(other, Categories) and (self.kind, self.names) == (other.kind, other.names)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"cells": "categories", "kind": self.kind, "names": list(self.names), "folded": self.folded}


Cells = Bins | Categories


def from_dict(found: Mapping[str, Any]) -> Cells:
    """What `to_dict` wrote."""
    if found["cells"] == "bins":
        return Bins(found["kind"], np.array(found["edges"], np.float64), found["aware"], found.get("fitted", False))
    return Categories(found["kind"], tuple(found["names"]), found["folded"])


def _texts(kind: str, edges: Array, zone: str) -> list[str]:
    if kind == "number":
        return _numbers(edges)
    within = np.clip(edges, -FARTHEST, FARTHEST)
    floor = np.floor(within)
    nanoseconds = np.rint((within - floor) * 1000.0).astype(np.int64)
    values = floor.astype(np.int64) + nanoseconds // 1000
    parts = (nanoseconds % 1000).tolist()
    if kind == "datetime":
        texts = np.datetime_as_string(values.view("M8[us]")).tolist()
        found = [_trimmed(text, part) + zone for text, part in zip(texts, parts, strict=True)]
    else:
        found = [*map(_duration, values.tolist(), parts)]
    far = np.abs(edges) >= FARTHEST
    return [str(edge * math.inf) if one else text for edge, one, text in zip(edges, far, found, strict=True)]


def _trimmed(text: str, nanoseconds: int) -> str:
    """A time, of so many nanoseconds more, without the zeros that say nothing."""
    text = f"{text}{nanoseconds:03}" if nanoseconds else text.removesuffix(".000000")
    return text.removesuffix("T00:00:00") if text.endswith("T00:00:00") else text


def _duration(microseconds: int, nanoseconds: int) -> str:
    days, rest = divmod(1000 * microseconds + nanoseconds, 86_400_000_000_000)
    hours, rest = divmod(rest, 3_600_000_000_000)
    minutes, rest = divmod(rest, 60_000_000_000)
    clock = f"{hours:02}:{minutes:02}:{rest / 1e9:012.9f}".rstrip("0").rstrip(".")
    return f"{days} d {clock}" if days else clock


def _numbers(edges: Sequence[float] | Array) -> list[str]:
    """As few digits as tell the edges apart."""
    for digits in (4, 6, 9, 12):
        text = [f"{value:.{digits}g}" if abs(value) < LARGEST else str(value * math.inf) for value in edges]
        if len(set(text)) == len({float(value) for value in edges}):
            return text
    return [repr(float(value)) for value in edges]
