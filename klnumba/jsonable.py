"""Plain values for JSON."""

from __future__ import annotations

import json
import math
import re
from typing import Any

HALVES = re.compile("[\ud800-\udfff]")  # of surrogate pairs: text for which UTF-8 has no bytes


def as_json(item: Any) -> Any:
    """Make `item` fit for JSON, which has no infinity and no NaN: "inf", "-inf" and null."""
    if isinstance(item, dict):
        return {str(key): as_json(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [as_json(value) for value in item]
    if isinstance(item, float):
        return None if math.isnan(item) else str(item) if math.isinf(item) else item
    return item if isinstance(item, (str, int, bool)) or item is None else str(item)


def dumps(item: Any, indent: int | None = None) -> str:
    """JSON that can be written to a file: half a surrogate pair, which UTF-8 has no bytes for, becomes an escape."""
    text = json.dumps(item, indent=indent, ensure_ascii=False, allow_nan=False)
    return HALVES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
