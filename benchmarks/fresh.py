"""Python in a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def environment(**changes: str) -> dict[str, str]:
    """This process's environment with changes, and the repository importable."""
    path = os.pathsep.join(x for x in (str(ROOT), os.environ.get("PYTHONPATH", "")) if x)
    return {**os.environ, "PYTHONPATH": path, **changes}


def printed(code: str, **changes: str) -> Any:
    """What ``code`` prints last, as a Python number; raises RuntimeError with the last line of its error text."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment(**changes), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no output"])[-1])
    return float(done.stdout.split()[-1])
