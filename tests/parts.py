"""A part of the cases of a test, always the same; the whole would take too long, and runs with the slow tests.

``@pytest.mark.part(3)`` leaves a third of the cases of a test, drawn by their names and at least one, and marks the
others slow.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any


def left_out(items: Iterable[Any], count: int) -> list[Any]:
    """The cases of which only one in so many is wanted, less those."""
    found, seen = [], set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        if test not in seen or zlib.crc32(item.nodeid.encode()) % count == 0:
            seen.add(test)
        else:
            found.append(item)
    return found
