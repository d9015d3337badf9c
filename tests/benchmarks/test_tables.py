"""The benchmark of tables, on tables so small that it says nothing about speed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("pyarrow", reason="the words lie in its layout")
pytest.importorskip("pandas", reason="the frames are pandas'")

from benchmarks import tables


def test_every_case_makes_a_line() -> None:
    lines = [
        tables.histograms(2000, 3),
        tables.wide(500, 20, 10),
        tables.categories(500, 12, "words"),
        tables.categories(500, 12, "categoricals"),
    ]
    assert all(line["klnumba (s)"] > 0 for line in lines)


def test_what_cannot_be_measured_again_keeps_its_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "FILE", tmp_path / "tables.json")
    assert tables.evidently(500, 3, None) == {"case": "500 x 3 float64, compare()", "peer": "Evidently: not measured"}
    line = {"case": "500 x 3 float64, compare()", "klnumba (s)": 0.1}
    tables.FILE.write_text(json.dumps({"rows": [line], "measured": "2026-01-02 (commit 1)"}))
    kept = tables.evidently(500, 3, None)
    assert kept == line | {"measured": "2026-01-02"}
    tables.FILE.write_text(json.dumps({"rows": [kept], "measured": "2026-03-04 (commit 2)"}))
    assert tables.evidently(500, 3, None) == kept


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory from /proc")
def test_memory_is_measured_in_a_fresh_process() -> None:
    assert tables.peak(2000, 3, "float64")["peer"].endswith("MiB")
