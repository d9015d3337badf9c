"""The benchmark of devices runs to its end: in the simulator, at a size that says nothing about speed."""

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks import gpu

ROOT = Path(__file__).resolve().parents[2]


def test_to_its_end_in_the_simulator(tmp_path):
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    env = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": path}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.gpu", "--no-tests", "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    content = json.loads((tmp_path / "gpu.json").read_text())
    assert {case["kind"] for case in content["rows"]} == {"prob", "log_prob", "logit"}
    cases = [*content["rows"], *content["pairs"], *content["training"]]
    assert not any("failed" in case for case in cases)
    assert all(case["seconds"]["klnumba"] > 0 for case in cases)
    table = (tmp_path / "gpu.md").read_text()
    assert "| prob | float32 |" in table
    assert "| logit | 150 | klnumba |" in table


def test_what_takes_too_long_is_interrupted_and_heard(monkeypatch):
    program = """
import signal, sys, time
print("seen so far", flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("last words")
    if len(sys.argv) > 1:
        time.sleep(60)
"""
    assert gpu.run_for([sys.executable, "-c", "print('done')"], 60.0) == ("done\n", True)
    told = "seen so far\nlast words\n"
    assert gpu.run_for([sys.executable, "-uc", program], 3.0) == (told, False)
    monkeypatch.setattr(gpu, "PATIENCE", 1.0)
    assert gpu.run_for([sys.executable, "-uc", program, "stubborn"], 3.0) == (told, False)


def test_the_tests_that_failed_are_named():
    text = """
[gw0] [ 10%] FAILED tests/gpu/on_device/test_a.py::test_one[float64-prob]
[gw1] [ 11%] PASSED tests/gpu/on_device/test_a.py::test_two
tests/gpu/on_device/test_b.py::test_three ERROR
tests/gpu/on_device/test_c.py::test_four FAILED [ 12%]
ERROR tests/gpu/on_device/test_b.py::test_three - RuntimeError: no memory
[gw1] [ 12%] FAILED tests/gpu/on_device/test_a.py::test_rows[a constant between]
FAILED tests/gpu/on_device/test_a.py::test_one[float64-prob] - assert 1 == 2
"""
    assert gpu.failed(text) == [
        "tests/gpu/on_device/test_b.py::test_three: RuntimeError: no memory",
        "tests/gpu/on_device/test_c.py::test_four",
        "tests/gpu/on_device/test_a.py::test_one[float64-prob]: assert 1 == 2",
        "tests/gpu/on_device/test_a.py::test_rows[a constant between]",
    ]
