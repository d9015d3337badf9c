"""The benchmark of pairs keeps the runs of other machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import pairs


def test_a_run_takes_the_place_of_the_one_of_its_machine_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "FILE", tmp_path / "pairs.json")
    for machine, date in (("one", "1"), ("other", "2"), ("one", "3")):
        pairs.store({"machine": machine, "rows": [{"family": "Normal"}], "measured": date})
    runs = json.loads(pairs.FILE.read_text())["runs"]
    assert [(run["machine"], run["measured"]) for run in runs] == [("one", "3"), ("other", "2")]
