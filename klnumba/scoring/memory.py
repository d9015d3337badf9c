"""How much memory the process holds, and what a limit such as "512MiB" means."""

from __future__ import annotations

import mmap
import re
import sys
from contextlib import suppress
from operator import index
from pathlib import Path
from typing import Any

from klnumba.reduction import short
from klnumba.scoring.errors import InputError

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse(limit: str | int) -> int:
    """Bytes of a limit: a number, or text such as "512MiB", "2GB", "1.5 GiB"."""
    size = _of_text(limit) if isinstance(limit, str) else _whole(limit)
    if size is None:
        raise InputError(f"memory: a whole number of bytes, or text such as 512MiB or 2GB, not {short(limit)}")
    if size < 1:
        raise InputError(f"memory: at least 1 byte, not {short(limit)}")
    return int(min(size, sys.maxsize))


def _whole(limit: Any) -> int | None:
    with suppress(TypeError):
        return None if isinstance(limit, bool) else index(limit)
    return None


def _of_text(limit: str) -> float | None:
    found = re.fullmatch(r"\s*(\d+)(\.\d*)?\s*(?:([kmgt]i?)?b)?\s*", limit.lower())
    if found is None or (found[2] and not found[3]):  # a part of a byte
        return None
    return float(found[1] + (found[2] or "")) * UNITS[found[3] or ""]


def text(size: float) -> str:
    """A size for people."""
    for name, unit in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= unit:
            return f"{size / unit:,.0f} {name}" if size >= 100 * unit else f"{size / unit:.3g} {name}"
    return f"{size:.0f} bytes"


def resident() -> int:
    """Bytes of memory that the process holds now; where the system does not tell, the most it ever held."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return _from_resource()
    return int(pages) * mmap.PAGESIZE


def _from_resource() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
