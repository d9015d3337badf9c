"""Reading the JSON of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]
OURS = "klnumba"
DTYPES = ("float64", "float32", "bfloat16")
#: order of columns
NAMES = (
    *("memory", OURS, "JAX jit", "torch.compile", "torch", "torch kl_div", "torchmetrics"),
    *("numexpr", "NumPy", "numkong", "SciPy rel_entr", "SciPy entropy"),
)


class Results:
    """A run: its cases, by name and number of threads."""

    def __init__(self, content: Record) -> None:
        self.content = content
        self.cases: list[Record] = content["cases"]

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read a file that ``python -m benchmarks`` wrote."""
        return cls(json.loads(path.read_text()))

    @property
    def threads(self) -> list[int]:
        """Numbers of threads measured, ascending."""
        return sorted({case["threads"] for case in self.cases})

    def select(self, threads: int, **fields: Any) -> list[Record]:
        """Cases on so many threads whose fields have the given values (or one of them, where a tuple is given)."""
        wanted = {k: v if isinstance(v, tuple) else (v,) for k, v in fields.items()}
        return [c for c in self.cases if c["threads"] == threads and all(c[k] in v for k, v in wanted.items())]


def find(case: Record, name: str, variants: Iterable[str]) -> Record | None:
    """A contender's record in a case, timed or not; the first of the variants that it has."""
    for variant in variants:
        for record in case["contenders"]:
            if record["contender"] == name and record["variant"] == variant:
                return record  # type: ignore[no-any-return]
    return None


def ns(record: Record | None) -> float | None:
    """Nanoseconds a cell; None where it was not timed."""
    return record["median_ns"] / record["cells"] if record and "samples" in record else None


def spread(record: Record) -> float:
    """Half the distance of the quartiles, relative to the median."""
    return (record["q3_ns"] - record["q1_ns"]) / 2 / record["median_ns"]  # type: ignore[no-any-return]


def ratio(case: Record, name: str, variants: Iterable[str], ours: str = "normalised") -> float | None:
    """How many times klnumba's time a contender takes; None where one of them was not timed or gave wrong values."""
    own, other = find(case, OURS, (ours,)), find(case, name, variants)
    mine, theirs = ns(own), ns(other)
    if mine is None or theirs is None or own is None or other is None or other["status"] != "ok":
        return None
    return theirs / mine


def peers(case: Record, variants: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Names and variants of the timed contenders that are neither klnumba nor the memory."""
    for record in case["contenders"]:
        if record["contender"] not in (OURS, "memory") and record["variant"] in variants and "samples" in record:
            yield record["contender"], record["variant"]


def own_variant(case: Record, peer_variant: str) -> str:
    """The variant of ours that stands against a peer's: the default, but on cells the same variant."""
    return peer_variant if case["task"] == "pointwise" else "normalised"


def losses(results: Results) -> list[tuple[float, Record, str, str]]:
    """Where a peer with right values beats our default: ratio, case, name, variant; the worst first."""
    found = []
    for case in results.cases:
        for name, variant in peers(case, ("plain", "normalised", "out")):
            value = ratio(case, name, (variant,), own_variant(case, variant))
            if value is not None and value < 1:
                found.append((value, case, name, variant))
    return sorted(found, key=lambda x: x[0])
