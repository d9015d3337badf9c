"""No function's answer depends on which other functions ran before it, compiled now or loaded from the cache."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

import klnumba as kl

PROGRAM = """
import sys
import numpy as np
import klnumba as kl
for name in sys.argv[2:]:
    p, q = np.array([2.0, 1.0], sys.argv[1]), np.array([1.0, 3.0], sys.argv[1])
    print(name, float(getattr(kl, name)(p, q, normalize=False)).hex())
"""
NAMES = ("kl_divergence", "jeffreys_divergence", "js_divergence", "cross_entropy")


def run(dtype, names):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, dtype, *names], capture_output=True, text=True, timeout=120, check=True
    )
    return dict(line.split() for line in done.stdout.splitlines())


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
def test_order_of_calls_in_fresh_processes(dtype):
    first = run(dtype, NAMES)  # fills the cache
    assert first == run(dtype, NAMES)
    assert first == run(dtype, NAMES[::-1])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_order_of_calls_in_this_process(dtype):
    p, q = np.array([2.0, 1.0], dtype), np.array([1.0, 3.0], dtype)
    alone = {name: float(getattr(kl, name)(p, q, normalize=False)) for name in NAMES}
    logs = np.log([2.0, 0.5, 2.0 / 3, 3.0, 1.0 / 3])
    assert alone["kl_divergence"] == pytest.approx(2 * logs[0] - logs[3], rel=1e-6)
    assert alone["jeffreys_divergence"] == pytest.approx(logs[0] + 2 * logs[3], rel=1e-6)
    assert alone["cross_entropy"] == pytest.approx(-logs[3], rel=1e-6)
    for order in itertools.permutations(NAMES):
        assert {name: float(getattr(kl, name)(p, q, normalize=False)) for name in order} == alone
