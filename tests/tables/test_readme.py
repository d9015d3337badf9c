"""The README's examples that need more than klnumba alone: so they are no part of `tests/run_readme.py`."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

pytest.importorskip("narwhals", reason="tables need narwhals")
pytest.importorskip("scipy", reason="the law of the test is SciPy's")
pytest.importorskip("pandas", reason="the frames are pandas'")
pytest.importorskip("torch", reason="one example has tensors")

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(README.read_text(encoding="utf-8"))
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, README.name, str(README), 0)
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example)
    assert results.attempted > 5
    assert not results.failed
    assert (tmp_path / "what_changed.html").is_file()
