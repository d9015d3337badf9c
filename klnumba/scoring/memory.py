"""How much memory the process holds, and what a limit such as "512MiB" means."""

from __future__ import annotations

import mmap
import re
import sys
from pathlib import Path

from klnumba.scoring.errors import InputError

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse(limit: str | int) -> int:
    """Bytes of a limit: a number, or text such as "512MiB", "2GB", "1.5 GiB"."""
    if isinstance(limit, int) and not isinstance(limit, bool):
        size = float(limit)
    else:
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*(?:([kmgt]i?)?b)?\s*", str(limit).lower())
        if found is None:
            raise InputError(f"memory: bytes, or text such as 512MiB or 2GB, not {limit!r}")
        size = float(found[1]) * UNITS[found[2] or ""]
    if size < 1:
        raise InputError(f"memory: at least 1 byte, not {limit!r}")
    return int(size)


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
