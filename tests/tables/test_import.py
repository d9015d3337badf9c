"""What is imported, beyond what Numba itself loads (SciPy), and what is said where an optional library is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from klnumba.optional import load

HEAVY = ("pandas", "narwhals", "jinja2", "matplotlib", "pyarrow", "dask")


@pytest.mark.parametrize("module", ["klnumba", "klnumba.cli.compare"])
def test_nothing_heavy_is_imported(module: str) -> None:
    if "cli" in module:
        pytest.importorskip("typer", reason="the command needs typer")
    program = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_library_is_named_with_the_line_to_type() -> None:
    with pytest.raises(
        ModuleNotFoundError, match=r'nowhere_to_be is not installed: python -m pip install "klnumba\[x\]"'
    ):
        load("nowhere_to_be.found", "x")


def test_the_rooms_load_when_they_are_asked_for() -> None:
    """`klnumba.tables` and `klnumba.dask` need no import of their own, and cost nothing before."""
    code = (
        "import sys, klnumba as kl\n"
        "print('pandas' in sys.modules, 'dask' in sys.modules)\n"
        "print(callable(kl.tables.compare), 'pandas' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True", "True"]
