"""The aims of the project for speed, memory and first use, each beside what was measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.results import OURS, Record, Results, find, peers, ratio

_ANY = ("plain", "normalised")


@dataclass(frozen=True)
class Goal:
    """What was aimed at, the least favourable measurement, and whether that is enough; None where not measured."""

    text: str
    wanted: float
    measured: float | None
    at_most: bool = False
    unit: str = "×"

    @property
    def reached(self) -> bool | None:
        """Whether the measurement meets the aim."""
        if self.measured is None:
            return None
        return self.measured <= self.wanted if self.at_most else self.measured >= self.wanted


def goals(results: Results, threads: int) -> list[Goal]:
    """Aims that hold for a number of threads."""
    long = results.select(threads, task="rows", kind="prob", dtype=("float64", "float32"))
    big = [case for case in long if case["d"] >= 1000 and case["rows"] > 1]
    middle = [case for case in long if case["d"] in (10, 32)]
    short = [case for case in long if case["d"] in (2, 3)]
    logits = results.select(threads, task="rows", kind="logit", d=32_000)
    small = results.select(threads, task="small", kind="prob", d=10)
    compiled = ("JAX jit", "torch.compile")
    return [
        Goal("d ≥ 1,000: share of the memory's speed", 0.8, _least(big, ["memory"], ("memory",))),
        Goal("d ≥ 1,000: against the fastest peer", 1.3, _least_of_all(big)),
        Goal("d ≥ 1,000: against SciPy", 30, _least(big, ["SciPy rel_entr", "SciPy entropy"])),
        Goal("d ≥ 1,000: against eager torch", 15, _least(big, ["torch", "torch kl_div"])),
        Goal("d = 10, 32: against JAX jit", 1.3, _least(middle, ["JAX jit"])),
        Goal("d = 2, 3: against JAX jit", 3, _least(short, ["JAX jit"])),
        Goal("d = 2, 3: against NumPy", 5, _least(short, ["NumPy"])),
        Goal("logits, d = 32,000: against compiled peers", 1.5, _least(logits, compiled)),
        Goal("one row of 10 cells: against scipy.stats.entropy", 5, _least(small, ["SciPy entropy"])),
    ]


def other_goals(results: Results) -> list[Goal]:
    """Aims for memory and first use."""
    extra = [r["extra_mib"] for r in results.content.get("memory", []) if r["contender"] == OURS and "extra_mib" in r]
    first = results.content.get("first_use", {})
    medians = {name: record["median_s"] for name, record in first.items()}
    imports = medians["import klnumba"] / medians["import numba"] if medians else None
    return [
        Goal("peak memory beyond inputs and result", 32, max(extra, default=None), True, " MiB"),
        Goal("import klnumba against import numba", 1.3, imports, True),
        Goal("first call without cache", 1.5, _most(medians, "first call without cache"), True, " s"),
        Goal("first call with cache", 0.25, _most(medians, "first call with cache"), True, " s"),
    ]


def _most(medians: dict[str, float], start: str) -> float | None:
    return max((value for name, value in medians.items() if name.startswith(start)), default=None)


def _least(cases: Iterable[Record], names: Iterable[str], variants: tuple[str, ...] = _ANY) -> float | None:
    """The least ratio over cases, contenders and their variants."""
    names = list(names)
    ratios = [ratio(c, n, (v,)) for c in cases for n in names for v in variants if find(c, n, (v,))]
    return min((x for x in ratios if x is not None), default=None)


def _least_of_all(cases: Iterable[Record]) -> float | None:
    return min((x for c in cases if (x := _least([c], {n for n, _ in peers(c, _ANY)})) is not None), default=None)
