"""The benchmark's machinery, on inputs so small that it says nothing about speed."""

from __future__ import annotations

import importlib
import importlib.util
import json
import pkgutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ml_dtypes")
pytest.importorskip("scipy")

import benchmarks
from benchmarks import __main__ as command
from benchmarks import cases, first_use, goals, gradients, memory, ours, report, results, timing, worker
from benchmarks.contender import REGISTRY

CELLS = 1_000
TINY = worker.Effort(1e-9, 1, 1)
NEEDS_A_COMPILER = "torch.compile"
KNOWN_TO_BE_OFF = "numkong"  # it adds an epsilon to every probability


def named(name: str) -> cases.Case:
    """The case of a tiny grid with this name."""
    return next(case for case in cases.grid(CELLS) if case.name == name)


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(benchmarks.__path__)])
def test_every_module_is_found_whole(name: str) -> None:
    """A benchmark that is seldom run does not wait for that to say that a name it takes from another is gone."""
    assert importlib.import_module(f"benchmarks.{name}").__doc__


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run of the command leaves for one case with every contender, on one thread."""
    pytest.importorskip("matplotlib")
    path = tmp_path_factory.mktemp("benchmark")
    command.main(["--cells", str(CELLS), "--threads=1", "--only=rows-prob-float64-10", "--output", str(path)])
    return path


@pytest.mark.slow
def test_a_run_writes_json_table_and_plot(folder: Path) -> None:
    content = json.loads((folder / "cpu.json").read_text())
    assert {"date", "commit", "machine", "versions", "options", "cases"} <= set(content)
    assert {case["threads"] for case in content["cases"]} == {1}
    assert "float64, d = 10 " in (folder / "benchmark.md").read_text()
    assert (folder / "benchmark.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_every_installed_contender_is_timed_and_right(folder: Path) -> None:
    record = next(c for c in json.loads((folder / "cpu.json").read_text())["cases"] if c["d"] == 10)
    assert {r["contender"] for r in record["contenders"]} >= {"klnumba", "memory", "NumPy", "SciPy entropy"}
    for r in record["contenders"]:
        if r["status"] == "not installed" or r["contender"] in (NEEDS_A_COMPILER, KNOWN_TO_BE_OFF):
            continue
        assert r["status"] == "ok", r
        assert 0 < r["min_ns"] <= r["q1_ns"] <= r["median_ns"] <= r["q3_ns"]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("rows-logit-bfloat16-1000", marks=pytest.mark.slow),
        "rows-log_prob-float32-10",
        f"pointwise-prob-float64-{CELLS}",
    ],
)
def test_our_own_contenders_are_right_in_every_kind(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "REGISTRY", [who for who in REGISTRY if who.name in ("klnumba", "memory", "NumPy")])
    record = worker.measure_case(named(name), 1, TINY)
    assert {r["contender"] for r in record["contenders"]} == {"klnumba", "memory", "NumPy"}
    assert [r for r in record["contenders"] if r["status"] != "ok"] == []


def test_a_contender_with_wrong_values_is_reported_and_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = next(who for who in REGISTRY if (who.name, who.variant) == ("NumPy", "plain"))

    def build(problem: cases.Problem) -> Any:
        call = honest.build(problem)
        return lambda: call() * 1.1

    cheat = type(honest)("cheat", "plain", build, compiled=False)
    monkeypatch.setattr(worker, "REGISTRY", [cheat])
    (record,) = worker.measure_case(named("rows-prob-float64-32"), 1, TINY)["contenders"]
    assert record["status"] == "wrong"
    assert record["error"] == pytest.approx(0.1)
    assert record["samples"] == 1


def test_a_contender_that_raises_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(problem: cases.Problem) -> Any:
        raise ValueError(f"cannot do {problem.case.dtype}")

    broken = type(REGISTRY[0])("broken", "plain", build, compiled=True)
    monkeypatch.setattr(worker, "REGISTRY", [broken])
    (record,) = worker.measure_case(named("rows-prob-float64-32"), 1, TINY)["contenders"]
    assert (record["status"], record["reason"]) == ("failed", "ValueError: cannot do float64")


def test_the_reference_agrees_with_scipy() -> None:
    from scipy import stats

    problem = cases.problem(named("rows-prob-float64-32"), 1)
    expected = stats.entropy(problem.p, problem.q, axis=-1)
    np.testing.assert_allclose(ours.reference(problem, normalise=True), expected, rtol=1e-12)


def test_the_grid_holds_the_sizes_kinds_and_dtypes_that_are_promised() -> None:
    grid = cases.grid(cases.CELLS)
    assert len({case.name for case in grid}) == len(grid)
    rows = {(case.dtype, case.d) for case in grid if case.task == "rows" and case.kind == "prob"}
    assert {(dtype, d) for dtype in cases.DTYPES for d in cases.SIZES} <= rows
    assert {case.kind for case in grid} == {"prob", "log_prob", "logit"}
    assert any(case.rows == 1 and case.d == cases.LONG_ROW for case in grid)


def test_cases_are_chosen_by_part_and_by_pattern() -> None:
    grid = cases.grid(CELLS)
    assert [c.name for c in cases.chosen(grid, ["rows-prob-float64-32000"])] == ["rows-prob-float64-32000"]
    assert [c.d for c in cases.chosen(grid, ["rows-prob-float64-10"])] == [10]
    assert len(cases.chosen(grid, ["prob-float64-10"])) > 1
    assert {c.kind for c in cases.chosen(grid, ["*-logit-*"])} == {"logit"}
    assert cases.chosen(grid, []) == grid


def test_rounds_are_spread_evenly_and_every_contender_gets_its_share() -> None:
    calls: list[str] = []
    samples = timing.interleaved([lambda: calls.append("a"), lambda: calls.append("b")], [1.0, 1.0], [6, 2])
    assert [len(x) for x in samples] == [6, 2]
    assert calls.count("a") == 2 * 6  # one call before each sample is not timed
    assert "b" in calls[:8]
    assert "b" in calls[8:]


def test_summary_gives_median_and_quartiles_in_nanoseconds() -> None:
    assert timing.summary([3e-9, 1e-9, 2e-9]) == pytest.approx(
        {"samples": 3, "median_ns": 2.0, "q1_ns": 1.5, "q3_ns": 2.5, "min_ns": 1.0}
    )


def example(times: dict[tuple[str, str], float]) -> results.Results:
    """A run of one case with made-up times a call."""
    contenders = [
        {"contender": n, "variant": v, "status": "ok", "cells": 1, "samples": 3, "median_ns": t, "q1_ns": t, "q3_ns": t}
        for (n, v), t in times.items()
    ]
    case = {"task": "rows", "kind": "prob", "dtype": "float64", "rows": 16, "d": 1000, "name": "example", "threads": 2}
    machine = {"cpu": "A", "family_model": "1/2", "cores": 2, "features": [], "last_level_cache": "1K", "system": "S"}
    facts = {"date": "a day", "commit": "c", "machine": machine | {"python": "3"}, "versions": {}}
    return results.Results(facts | {"options": {"cells": 1}, "cases": [case | {"contenders": contenders}]})


OURS, MEMORY = ("klnumba", "normalised"), ("memory", "memory")


def test_a_faster_peer_is_shown_as_a_loss_everywhere() -> None:
    run = example({OURS: 2.0, MEMORY: 1.0, ("JAX jit", "plain"): 1.0, ("torch", "plain"): 8.0})
    assert [(value, name) for value, _, name, _ in results.losses(run)] == [(0.5, "JAX jit")]
    text = report.markdown(run)
    assert "**1 (0.5×) ▼**" in text
    assert "8 (4×)" in text
    assert f"**0.5×** {report.LOST}" in report.readme_table(run)


def test_goals_take_the_least_favourable_case() -> None:
    run = example({OURS: 2.0, MEMORY: 1.0, ("JAX jit", "plain"): 3.0, ("SciPy entropy", "normalised"): 100.0})
    found = {goal.text: goal for goal in goals.goals(run, 2)}
    assert found["d ≥ 1,000: share of the memory's speed"].reached is False
    assert found["d ≥ 1,000: against the fastest peer"].measured == 1.5
    assert found["d ≥ 1,000: against SciPy"].reached is True
    assert found["d = 2, 3: against NumPy"].reached is None


@pytest.mark.parametrize("start", ["start", "begin"])
def test_only_the_table_of_the_readme_is_replaced(start: str) -> None:
    run = example({OURS: 2.0, MEMORY: 1.0})
    before = f"# Title\n<!-- benchmark: {start} -->\nold\n<!-- benchmark: end -->\nrest\n"
    after = report.with_table(before, run)
    assert after.startswith("# Title\n")
    assert after.endswith("\nrest\n")
    assert "old" not in after
    assert report.with_table(after, run) == after


def test_a_readme_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="no markers"):
        report.with_table("# Title\n", example({OURS: 2.0}))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from Linux's /proc")
def test_peak_memory_counts_the_temporaries_of_numpy() -> None:
    case = cases.Case("rows", "prob", "float64", 4_000, 1_000)
    record = memory.record(case, "NumPy", "plain")
    assert record["status"] == "ok", record
    one_temporary = case.cells * 8 / 2**20
    assert 0.9 * one_temporary < record["extra_mib"] < 4 * one_temporary


@pytest.mark.slow
def test_first_use_is_measured_in_fresh_processes() -> None:
    found = first_use.measure(1)
    assert set(found) >= {"import numba", "import klnumba", "first call with cache, one row of 10 cells"}
    assert all(record["median_s"] > 0 for record in found.values())


@pytest.mark.parametrize("kind", ["logit", "prob"])
def test_gradients_are_of_one_loss(kind):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    calls = gradients.contenders(kind, "float64", 10, CELLS)
    ours, theirs = calls["klnumba"]().clone(), calls["PyTorch"]().clone()
    if kind == "prob":  # PyTorch does not divide by the sums, whose part of the gradient is one number for a row
        ours, theirs = (x - x.mean(-1, keepdim=True) for x in (ours, theirs))
    assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("log_target", [False, True])
def test_gradients_of_the_loss_are_of_one_loss(log_target):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    calls = gradients.contenders_of_loss(log_target, "float64", CELLS)
    torch.testing.assert_close(calls["klnumba"](), calls["PyTorch"](), rtol=1e-15, atol=0.0)


@pytest.mark.part(6)
@pytest.mark.parametrize("name", gradients.losses_of_pairs() if importlib.util.find_spec("torch") else [])
def test_gradients_of_distributions_are_of_one_loss(name):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    for second in (False, True):
        leaves, calls = gradients.contenders_of_pair(name, "float64", 20, second=second)
        ours, theirs = calls["klnumba"](), calls["PyTorch"]()
        assert len(ours) == len(theirs) == len(leaves)
        for x, y in zip(ours, theirs, strict=True):
            torch.testing.assert_close(x, y, rtol=1e-6 if second else 1e-7, atol=1e-9)


def test_products_with_the_hessian_are_of_one_loss():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    calls = gradients.contenders_of_product("logit", "float64", 10, CELLS)
    assert torch.allclose(calls["klnumba"](), calls["PyTorch"](), rtol=1e-9, atol=1e-12)
