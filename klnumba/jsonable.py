"""Plain values for JSON."""

from __future__ import annotations

import math
from typing import Any


def as_json(item: Any) -> Any:
    """Make `item` fit for JSON, which has no infinity and no NaN: "inf", "-inf" and null."""
    if isinstance(item, dict):
        return {str(key): as_json(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [as_json(value) for value in item]
    if isinstance(item, float):
        return None if math.isnan(item) else str(item) if math.isinf(item) else item
    return item if isinstance(item, (str, int, bool)) or item is None else str(item)
