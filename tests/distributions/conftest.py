"""What several tests of distributions ask for."""

from __future__ import annotations

import pytest

from klnumba.distributions import registry


@pytest.fixture
def own(monkeypatch):
    """A registry of our own that is gone after the test."""
    monkeypatch.setattr(registry, "_pairs", dict(registry._pairs))
    monkeypatch.setattr(registry, "_found", {})
    monkeypatch.setattr(registry, "_served", {})
