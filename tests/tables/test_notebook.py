"""The tutorial notebook runs, and prints what stands in it."""

from __future__ import annotations

import copy
import importlib.util
import warnings
from pathlib import Path

import pytest

for name in ("narwhals", "scipy", "pandas", "matplotlib", "ipykernel"):
    pytest.importorskip(name, reason="the notebook needs it")
nbclient = pytest.importorskip("nbclient", reason="runs the notebook")
nbformat = pytest.importorskip("nbformat", reason="reads the notebook")
if importlib.util.find_spec("popmon") is None:
    pytest.skip("the flights of the notebook ship with popmon", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]


def texts(notebook) -> list[list[str]]:
    """What each cell prints and shows, as text."""
    return [
        [output.get("text") or output["data"]["text/plain"] for output in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    stored = nbformat.read(ROOT / "docs" / "notebooks" / "what_changed.ipynb", as_version=4)
    nbformat.validate(stored)
    run = copy.deepcopy(stored)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the machinery that starts a kernel
        nbclient.NotebookClient(run, timeout=300).execute()
    assert texts(run) == texts(stored)
    assert any(texts(run))
