"""The benchmark of tables, on tables so small that it says nothing about speed."""

from __future__ import annotations

import sys

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
        tables.evidently(500, 3, None),
    ]
    assert all(line["klnumba (s)"] > 0 for line in lines)
    assert lines[-1]["peer (s)"] == "not measured"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory from /proc")
def test_memory_is_measured_in_a_fresh_process() -> None:
    assert tables.peak(2000, 3)["peer"].endswith("MiB")
