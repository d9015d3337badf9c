"""Tables and plot from the JSON of a run: ``python -m benchmarks.report [JSON] [--output DIR]``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

from benchmarks.fresh import ROOT
from benchmarks.goals import Goal, goals, other_goals
from benchmarks.results import DTYPES, NAMES, OURS, Record, Results, find, losses, ns, own_variant, ratio, spread

LOST = "▼"
WRONG = "≠"
_MARKERS = re.compile(r"(<!-- benchmark: ?(?:start|begin) -->\n).*?(<!-- benchmark: ?end -->)", re.DOTALL)
_README_NAMES = ("JAX jit", "torch.compile", "torch", "numexpr", "NumPy", "SciPy rel_entr", "SciPy entropy")
_NORMALISED = "everybody divides the rows by their sums first"
_SECTIONS = (
    (
        "Probabilities that sum to one: peers take them as they are, klnumba divides by the sums all the same",
        "prob",
        "plain",
    ),
    (f"Probabilities: {_NORMALISED}", "prob", "normalised"),
    ("Log-probabilities that sum to one: peers take them as they are", "log_prob", "plain"),
    (f"Log-probabilities: {_NORMALISED}", "log_prob", "normalised"),
    ("Logits", "logit", "normalised"),
)


def main(arguments: list[str] | None = None) -> None:
    """Write table and plot, and the README's table unless another folder is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("json", nargs="?", type=Path, default=ROOT / "benchmarks" / "results" / "cpu.json")
    parser.add_argument("--output", type=Path, help="folder for table and plot, instead of docs/ and README.md")
    options = parser.parse_args(arguments)
    from benchmarks import plot

    results = Results.read(options.json)
    table = (options.output or ROOT / "docs" / "_data") / "benchmark.md"
    picture = (options.output or ROOT / "docs" / "_static") / "benchmark.png"
    for path in (table, picture):
        path.parent.mkdir(parents=True, exist_ok=True)
    table.write_text(markdown(results), encoding="utf-8")
    plot.draw(results, picture)
    if not options.output:
        readme = ROOT / "README.md"
        readme.write_text(with_table(readme.read_text(encoding="utf-8"), results), encoding="utf-8")


def markdown(results: Results) -> str:
    """The whole report."""
    parts = [provenance(results), "**Aims and what was reached**", _goals(results), *_where_we_lose(results)]
    for threads in results.threads:
        parts += _part(results, threads)
    parts += [*_memory(results), *_first_use(results), *_not_right(results)]
    return "\n\n".join(parts) + "\n"


def provenance(results: Results) -> str:
    """Machine, date, versions, and how to read the tables."""
    c = results.content
    machine, options = c["machine"], c["options"]
    versions = ", ".join(f"{name} {version}" for name, version in c["versions"].items())
    vectors = "AVX-512" if "avx512f" in machine["features"] else "no AVX-512"
    return (
        f"Measured {c['date']} (commit `{c['commit']}`) on {machine['cpu']} (family/model {machine['family_model']}), "
        f"{machine['cores']} cores, {vectors}, {machine['last_level_cache']} last-level cache, {machine['system']}, "
        f"Python {machine['python']}; {versions}. Arrays of about {options['cells']:,} cells each.\n\n"
        f"Nanoseconds a cell, medians of interleaved rounds; in brackets how many times klnumba's time. "
        f"**{LOST} marks a contender that is faster than klnumba**, {WRONG} one whose values are off. ± is half the "
        f"distance of the quartiles. `memory` is a dot of the same inputs cut into one piece a thread (for one value a "
        f"cell: their product into a third array); the percentage is the share of its speed that klnumba reaches. "
        f"Contenders that need more than 0.08 s a call are timed on an eighth of the rows."
    )


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join([_row(head), _row("---" if i == 0 else "---:" for i in range(len(head))), *map(_row, rows)])


def number(x: float) -> str:
    """Three digits, no exponent."""
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def _goals(results: Results) -> str:
    rows = []
    for threads in results.threads:
        rows += [_goal(goal, str(threads)) for goal in goals(results, threads)]
    rows += [_goal(goal, "all") for goal in other_goals(results)]
    return _table(["float64 and float32, least favourable case", "threads", "aim", "measured", "reached"], rows)


def _goal(goal: Goal, threads: str) -> list[str]:
    sign = "≤" if goal.at_most else "≥"
    measured = "not measured" if goal.measured is None else f"{number(goal.measured)}{goal.unit}"
    reached = {None: "", True: "yes", False: f"**no** {LOST}"}[goal.reached]
    return [goal.text, threads, f"{sign} {number(goal.wanted)}{goal.unit}", measured, reached]


def _where_we_lose(results: Results) -> list[str]:
    rows = [
        [f"`{case['name']}`", str(case["threads"]), f"{name}, {variant}", f"{value:.2f}× {LOST}"]
        for value, case, name, variant in losses(results)
    ]
    title = "**Where klnumba loses**"
    return [title, _table(["case", "threads", "faster", "its time"], rows) if rows else "Nowhere in this run."]


def _part(results: Results, threads: int) -> list[str]:
    parts = []
    where = "One thread" if threads == 1 else f"{threads} threads"
    for title, kind, variant in _SECTIONS:
        cases = results.select(threads, task="rows", kind=kind)
        parts += _section(f"**{where}. {title}**", cases, variant)
    cells = results.select(threads, task="pointwise")
    parts += _section(f"**{where}. One value a cell (`rel_entr`), new result array**", cells, "plain")
    parts += _section(f"**{where}. One value a cell (`rel_entr`), into `out`**", cells, "out")
    small = results.select(threads, task="small")
    for variant in ("plain", "normalised"):
        few = [case for case in small if variant == "normalised" or case["kind"] == "prob"]
        title = f"{where}. One small row; microseconds a call; " + (
            "peers only sum" if variant == "plain" else _NORMALISED
        )
        parts += _section(f"**{title}**", few, variant)
    return parts


def _section(title: str, cases: list[Record], variant: str) -> list[str]:
    """A table: one line a case, one column a contender."""
    names = [n for n in NAMES if n == "memory" or any(ns(find(c, n, (variant,))) is not None for c in cases)]
    names = [n for n in names if n not in ("memory", OURS)]
    cases = [c for c in cases if ns(find(c, "memory", ("memory",))) is not None]
    if not cases or not (names or any(find(c, OURS, (variant,)) for c in cases)):
        return []
    both = variant == "plain" and cases[0]["task"] != "pointwise"
    head = ["case", "memory", OURS, *([f"{OURS} `normalize=False`"] if both else []), *names]
    order = sorted(cases, key=lambda c: (DTYPES.index(c["dtype"]), c["rows"] == 1, c["kind"], c["d"]))
    rows = []
    for case in order:
        own = own_variant(case, variant)
        line = [_label(case), _cell(case, "memory", "memory", own), _cell(case, OURS, own, own)]
        line += [_cell(case, OURS, "plain", own)] if both else []
        rows.append(line + [_cell(case, name, variant, own) for name in names])
    return [title, _table(head, rows)]


def _label(case: Record) -> str:
    if case["task"] == "pointwise":
        return str(case["dtype"])
    if case["task"] == "small":
        return f"{case['kind']}, {case['d']:,} cells"
    return f"{case['dtype']}, " + (f"one row of {case['d']:,}" if case["rows"] == 1 else f"d = {case['d']:,}")


def _cell(case: Record, name: str, variant: str, own: str) -> str:
    """Time a cell (a call for small cases) with spread for ours, with the ratio for the others."""
    record = find(case, name, (variant,))
    value = ns(record)
    if record is None or value is None:
        return "failed" if record and record["status"] == "failed" else "–"
    text = number(value * case["d"] / 1000 if case["task"] == "small" else value)
    if name == OURS:
        memory = ratio(case, "memory", ("memory",), variant)
        return f"{text} ± {spread(record):.0%}" + (f" ({memory:.0%})" if memory and case["task"] != "small" else "")
    if name == "memory":
        return text
    mine = ns(find(case, OURS, (own,)))
    if mine is None:
        return text
    lost = value < mine
    text += f" ({number(value / mine)}×)" + (f" {WRONG}" if record["status"] == "wrong" else "")
    return f"**{text} {LOST}**" if lost else text


def _memory(results: Results) -> list[str]:
    records = results.content.get("memory", [])
    rows = [
        [
            r["contender"],
            f"`{r['case']}`",
            f"{r['cells']:,}",
            f"{r['extra_mib']:,.1f}" if "extra_mib" in r else r["reason"],
        ]
        for r in records
    ]
    title = "**Peak memory of a call beyond inputs and result, MiB**"
    return [title, _table(["contender", "case", "cells", "MiB"], rows)] if rows else []


def _first_use(results: Results) -> list[str]:
    records = results.content.get("first_use", {})
    rows = [[name, number(r["median_s"] * 1000), str(len(r["samples_s"]))] for name, r in records.items()]
    return ["**First use, in fresh processes**", _table(["", "ms", "processes"], rows)] if rows else []


def _not_right(results: Results) -> list[str]:
    found: dict[str, list[tuple[float, str]]] = {}
    for case in results.cases:
        for r in case["contenders"]:
            who = f"{r['contender']} ({r['variant']})"
            if r["status"] == "not installed":
                found[f"{r['contender']} was not installed"] = []
            elif r["status"] == "failed":
                found.setdefault(f"{who} failed: {r['reason']}", []).append((0.0, case["name"]))
            elif r["status"] == "wrong":
                found.setdefault(f"{who} gave other values", []).append((r["error"], case["name"]))
    lines = [f"- {what}{_in_cases(cases)}" for what, cases in found.items()]
    return ["**Contenders that failed or gave other values**", "\n".join(lines)] if lines else []


def _in_cases(cases: list[tuple[float, str]]) -> str:
    if not cases:
        return ""
    error, name = max(cases)
    worst = f", off by up to {error:.1e} (`{name}`)" if error else f" (first `{cases[0][1]}`)"
    return f" in {len(cases)} cases{worst}"


def with_table(readme: str, results: Results) -> str:
    """The README with its table between the markers."""
    if not _MARKERS.search(readme):
        raise ValueError("README.md has no markers for the benchmark table")
    return _MARKERS.sub(lambda m: m[1] + readme_table(results) + "\n" + m[2], readme)


def readme_table(results: Results) -> str:
    """A short table: float64 rows on all threads."""
    threads = results.threads[-1]
    cases = results.select(threads, task="rows", kind="prob", dtype="float64")
    cases.sort(key=lambda c: (c["rows"] == 1, c["d"]))
    rows = []
    for case in cases:
        own = find(case, OURS, ("normalised",))
        share = ratio(case, "memory", ("memory",))
        line = [_label(case).removeprefix("float64, "), number(ns(own) or 0.0) if own and ns(own) else "–"]
        rows.append([*line, f"{share:.0%}" if share else "–", *(_times(case, name) for name in _README_NAMES)])
    c = results.content
    head = ["cells a row", "klnumba, ns a cell", "of the memory's speed", *_README_NAMES]
    note = (
        f"How many times klnumba's time other libraries take: float64, {threads} threads, {c['machine']['cpu']}, "
        f"{c['date']}. klnumba divides rows by their sums, as `SciPy entropy` does; the others take them as they are. "
        f"{LOST}: faster than klnumba."
    )
    return f"{note}\n\n{_table(head, rows)}"


def _times(case: Record, name: str) -> str:
    value = ratio(case, name, ("plain", "normalised"))
    if value is None:
        return "–"
    return f"**{value:.2g}×** {LOST}" if value < 1 else f"{number(value)}×"


if __name__ == "__main__":
    main()
