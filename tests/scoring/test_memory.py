"""The process stays below the limit on memory, whatever the size of the files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.scoring import samples

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory in use from /proc")

ROWS, CELLS = 9_000, 32_000  # two files of 1.1 GiB, of which the disk holds next to nothing
SCORE = """
import sys
from klnumba.cli import main
try:
    main()
except SystemExit as left:
    most = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
    print(left, int(most.split()[1]) * 1024, file=sys.stderr)
"""


def sparse(path: Path, rows: int, *, fortran: bool = False, dtype: str = "<f4") -> None:
    with path.open("wb") as file:
        about = {"descr": dtype, "fortran_order": fortran, "shape": (rows, CELLS)}
        np.lib.format.write_array_header_1_0(file, about)
        file.truncate(file.tell() + rows * CELLS * np.dtype(dtype).itemsize)


def score(*arguments: str) -> tuple[dict, int]:
    """The report and the peak of a run of the command."""
    done = subprocess.run(
        [sys.executable, "-c", SCORE, "score", *arguments, "--json"],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    code, most = done.stderr.split()[-2:]
    assert code == "0", done.stderr
    return json.loads(done.stdout), int(most)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("typer", reason="the command needs typer")
    pytest.importorskip("rich", reason="the command needs rich")
    folder = tmp_path_factory.mktemp("large")
    sparse(folder / "p.npy", ROWS)
    sparse(folder / "q.npy", ROWS)
    sparse(folder / "half.npy", ROWS // 10, dtype="<f2")
    sparse(folder / "few.npy", ROWS // 10)
    sparse(folder / "columns.npy", ROWS // 10, fortran=True)
    # Compiling takes more memory than the limits of these tests leave.
    for axis in ("0", "-1"):
        score(f"{folder}/few.npy", f"{folder}/few.npy", "--kind", "logit", "--axis", axis)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1024, 400])
def test_files_larger_than_the_limit(large: Path, limit: int) -> None:
    report, most = score(
        f"{large}/p.npy", f"{large}/q.npy", "--kind", "logit", "--memory", f"{limit}MiB", "-o", f"{large}/out.npy"
    )
    assert report["rows"] == report["statistics"]["kl"]["zero"] == ROWS
    assert most <= limit * 2**20


def test_rows_along_the_first_axis(large: Path) -> None:
    report, most = score(f"{large}/few.npy", f"{large}/columns.npy", "--kind", "logit", "--axis", "0", "--memory",
                         "300MiB")  # fmt: skip
    assert report["rows"] == report["statistics"]["kl"]["zero"] == CELLS
    assert most <= 300 * 2**20


@pytest.mark.slow
def test_rows_along_the_first_axis_of_files_larger_than_the_limit(large: Path) -> None:
    report, most = score(f"{large}/p.npy", f"{large}/q.npy", "--kind", "logit", "--axis", "0", "--memory", "500MiB")
    assert report["rows"] == report["statistics"]["kl"]["zero"] == CELLS
    assert most <= 500 * 2**20


@pytest.mark.parametrize("sides", [("few", "columns"), ("half", "few")], ids=str)
def test_layouts_that_are_copied(large: Path, sides: tuple[str, str]) -> None:
    report, most = score(*(f"{large}/{side}.npy" for side in sides), "--kind", "logit", "--memory", "400MiB")
    assert report["rows"] == ROWS // 10
    assert most <= 400 * 2**20


@pytest.mark.slow
@pytest.mark.parametrize(
    "made", [samples.deflated_npz, samples.parquet_lists, samples.zarr], ids=lambda made: made.__name__
)
def test_formats_that_are_decoded(made, large: Path) -> None:
    pytest.importorskip(samples.NEEDS.get(made, "numpy"), reason="the library of this format")
    sparse(large / "middle.npy", 3000)
    rows = np.load(large / "middle.npy", mmap_mode="r")  # 366 MiB
    report, most = score(made(large, rows), f"{large}/middle.npy", "--kind", "logit", "--memory", "400MiB")
    assert report["rows"] == 3000
    assert most <= 400 * 2**20


def test_a_limit_that_is_too_low_is_refused(large: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "klnumba", "score", f"{large}/p.npy", f"{large}/q.npy", "--memory", "20MiB"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("klnumba: memory: 20MiB is too little: the process holds ")
