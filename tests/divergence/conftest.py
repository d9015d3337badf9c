"""What the tests of quick loops share."""

from __future__ import annotations

import pytest

from klnumba import engine


@pytest.fixture
def quick_alone(monkeypatch):
    """No row may be left to the exact loop of probabilities, nor to the careful one of logarithms."""

    def refused(*args, **settings):
        raise AssertionError("a row was flagged")

    monkeypatch.setattr(engine, "_exact", refused)
    monkeypatch.setattr(engine.cpu, "log_rows", refused)
