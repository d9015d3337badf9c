"""Programs that tests run in a process of their own, with a time limit and a chosen environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent.parent / "klnumba"
# A processor of x86-64 that has neither AVX nor fused multiply-add.
WITHOUT_FMA = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "+sse2"}
# One that has both, with vectors of 128 bits, half or a quarter of the usual.
NARROW = {"NUMBA_CPU_NAME": "sandybridge", "NUMBA_CPU_FEATURES": "+sse4.2,+avx,+fma,-avx2,+prefer-128-bit"}
SETTINGS = ("KLNUMBA_CACHE", "KLNUMBA_CACHE_DIR", "KLNUMBA_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER")


def shared() -> dict[str, str]:
    """The setting with which a program finds the loops of this process in the cache, and leaves its own to it."""
    folder = os.environ.get("KLNUMBA_CACHE_DIR")
    return {} if folder is None else {"KLNUMBA_CACHE_DIR": folder}


def environment(path: Path = PACKAGE.parent, **settings: str) -> dict[str, str]:
    """This process's environment without our switches, with `path` first on the module path, and `settings`."""
    env = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(path), env.get("PYTHONPATH", "")]))
    return env | settings


def start(program: str, cwd: Path, path: Path = PACKAGE.parent, **settings: str) -> subprocess.Popen[str]:
    """Start a program, kept in a file so that children that are spawned find it."""
    cwd.mkdir(parents=True, exist_ok=True)
    script = cwd / "program.py"
    script.write_text(program, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, str(script)],
        cwd=cwd,
        env=environment(path, **settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], seconds: float = 60.0) -> str:
    """What a program printed; fails if it hangs, is killed by a signal, or ends in an error."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"still running after {seconds} s\n{out}\n{err}") from None
    assert process.returncode == 0, f"exit status {process.returncode}\n{out}\n{err}"
    return out.strip()


def run(program: str, cwd: Path, path: Path = PACKAGE.parent, seconds: float = 60.0, **settings: str) -> str:
    """What a program prints."""
    return finish(start(program, cwd, path, **settings), seconds)


def copied_package(folder: Path) -> Path:
    """A copy of the package in `folder`, for tests that edit it."""
    shutil.copytree(PACKAGE, folder / "klnumba", ignore=shutil.ignore_patterns("__pycache__"))
    return folder
