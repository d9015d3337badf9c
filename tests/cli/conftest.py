"""The command in the process of the tests, which may hold more than its limit before it begins."""

from types import SimpleNamespace

import pytest

from klnumba.cli import scoring
from klnumba.scoring import memory


@pytest.fixture(autouse=True)
def _a_small_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests have imported does not count; `tests/scoring/test_memory.py` measures real processes."""
    small = SimpleNamespace(parse=memory.parse, text=memory.text, resident=lambda: 64 << 20)
    monkeypatch.setattr(scoring, "memory", small)
