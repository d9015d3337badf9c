"""Every kernel in numba's CUDA simulator, in processes of their own: the switch is read when numba is imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = sorted(path.name for path in (HERE / "on_device").glob("test_*.py"))


def simulated(files, part):
    """Run one in so many of the cases of these files: what is said of those that fail."""
    root = HERE.parents[1]
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH", "")]))
    env = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": path, "KLNUMBA_TESTS_SIMULATED": str(part)}
    env = {name: value for name, value in env.items() if not name.startswith("PYTEST_")}
    program = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    process = subprocess.run(
        [*program, *(str(HERE / "on_device" / file) for file in files)],
        cwd=root, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return "" if process.returncode == 0 else process.stdout[-6000:] + process.stderr[-2000:]


@pytest.mark.parametrize("first", range(2))
def test_a_part_in_the_simulator(first):
    assert not simulated(FILES[first::2], 36)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_all_in_the_simulator(file):
    assert not simulated([file], 1)
