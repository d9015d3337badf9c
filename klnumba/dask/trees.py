"""Many parts into one, a few at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FEW = 8  # parts that one task joins


def tree(parts: list[Any], join: Callable[[list[Any]], Any]) -> Any:
    """All parts joined, each task joining a few."""
    while len(parts) > 1:
        parts = [join(parts[k : k + FEW]) for k in range(0, len(parts), FEW)]
    return parts[0]
