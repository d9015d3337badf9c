"""What the numbers were measured on and with."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = (
    "klnumba", "numba", "numba-cuda", "numpy", "scipy", "numexpr", "torch", "torchmetrics", "jax", "jaxlib", "numkong",
    "cupy-cuda13x",
)  # fmt: skip


def describe() -> dict[str, object]:
    """Date, source version, machine and package versions."""
    now = datetime.datetime.now(datetime.UTC)
    return {"date": now.date().isoformat(), "commit": _commit(), "machine": _machine(), "versions": _versions()}


def computer() -> str:
    """The machine, in words."""
    found: Any = describe()["machine"]
    return f"{found['cpu']}, all {found['cores']} cores"


def when(*packages: str) -> str:
    """The date, the commit, and the versions of klnumba, Numba, NumPy and of `packages`, in words."""
    return f"{_commit_of_today()}; {_in_words(packages)}"


def where(*packages: str) -> str:
    """The same and the machine."""
    return f"{_commit_of_today()}, {computer()}; {_in_words(packages)}"


def _commit_of_today() -> str:
    about = describe()
    return f"{about['date']} (commit {about['commit']})"


def _in_words(packages: tuple[str, ...]) -> str:
    versions = _versions()
    return ", ".join(f"{name} {versions[name]}" for name in ("klnumba", "numba", "numpy", *packages))


def cores() -> list[int]:
    """Numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _machine() -> dict[str, object]:
    info = _cpuinfo()
    features = sorted(x for x in info.get("flags", "").split() if x.startswith(("avx", "fma", "amx", "sve")))
    return {
        "cpu": info.get("model name") or platform.processor() or platform.machine(),
        "family_model": f"{info.get('cpu family', '?')}/{info.get('model', '?')}",
        "cores": len(cores()),
        "features": features,
        "last_level_cache": _last_level_cache(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def _cpuinfo() -> dict[str, str]:
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    first = path.read_text().split("\n\n")[0].splitlines()
    return {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in first)}


def _last_level_cache() -> str:
    sizes = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"))
    return sizes[-1].read_text().strip() if sizes else "?"


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"
