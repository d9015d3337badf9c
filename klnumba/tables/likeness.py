"""What other tools report for the same two columns."""

from __future__ import annotations

from typing import Any

TOOLS = ("evidently", "psi10", "great_expectations", "tfdv", "scipy")


def check(like: Any) -> None:
    """Refuse an unknown tool."""
    if like not in TOOLS:
        raise ValueError(f"like: one of {', '.join(map(repr, TOOLS))}, not {like!r}")


def column(like: str, reference: Any, current: Any, profile: Any) -> dict[str, Any]:
    """The values of one tool by column."""
    raise NotImplementedError(like)
