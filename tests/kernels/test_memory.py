"""What a call needs beside its inputs and its result: at most 32 MiB, whatever the layout.

The inputs have 61 MiB each, so that one temporary array of their size would
show. All cases run one after the other in a process of their own. Before each
the process is filled up with ballast to the most it ever held, so that all
that a call takes on top raises that most.
"""

from __future__ import annotations

import json
import sys

import pytest

from tests.kernels import sub

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory in use from /proc")

LIMIT = 32 * 2**20

PROGRAM = """
import gc, json, resource
from pathlib import Path
import numpy as np
import klnumba as kl

try:
    from ml_dtypes import bfloat16
except ImportError:
    bfloat16 = None

CELLS = 8_000_000
PAGE = resource.getpagesize()
rng = np.random.default_rng(1)
SOME = rng.gamma(1.0, size=100_003) + 0.01

def held():
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE

def most():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def fill(shape, dtype, seed, some=SOME):
    "An array of that shape, every page touched, made without a temporary of its size."
    x = np.empty(shape, dtype)
    flat = x.reshape(-1)
    values = np.roll(some, 17 * seed).astype(dtype)
    for start in range(0, flat.size, values.size):
        flat[start : start + values.size] = values[: flat.size - start]
    return x

def excess(call, *inputs):
    "How much more than its result a call took."
    gc.collect()
    ballast = np.ones(max(0, most() - held()) // 8 + 1)
    before = most()
    result = call(*inputs)
    after = most()
    size = sum(x.nbytes for x in result.values()) if isinstance(result, dict) else np.asarray(result).nbytes
    del ballast
    return after - before - size

def pair(shape=(2000, 4000), dtype="f8", other=None):
    some = SOME * 40 if np.dtype(dtype).kind in "iu" else SOME
    return fill(shape, dtype, 0, some), fill(other or shape, dtype, 1, some)

def few(x):
    "The same layout with few rows, for the compiler."
    return x[:3] if len(x) > 3 else x

def kl_of(**settings):
    return lambda p, q: kl.kl_divergence(p, q, threads=2, **settings)

def wide(shape=(2000, 4000), dtype="f8"):
    return tuple(fill((shape[0], 2 * shape[1]), dtype, k)[:, ::2] for k in (0, 1))

def masks(p, q):
    keep = np.ones(p.shape, bool)
    keep[:, ::7] = False
    return p, q, keep

def masked(*arrays):
    return tuple(np.ma.MaskedArray(x, mask=np.zeros(x.shape, bool)) for x in arrays)

CASES = {
    "float64": (kl_of(), pair),
    "float32": (kl_of(), lambda: pair((2000, 8000), "f4")),
    "float16": (kl_of(), lambda: pair((4000, 4000), "f2")),
    "int64": (kl_of(), lambda: pair(dtype="i8")),
    "uint8": (kl_of(), lambda: pair((4000, 4000), "u1")),
    "big-endian": (kl_of(), lambda: pair(dtype=">f8")),
    "mixed": (kl_of(), lambda: (fill((2000, 4000), "f8", 0), fill((2000, 4000), "f4", 1))),
    "rows of 10": (kl_of(), lambda: pair((800_000, 10))),
    "one row": (kl_of(), lambda: pair((1, 8_000_000))),
    "one row of float16": (kl_of(), lambda: pair((1, 16_000_000), "f2")),
    "one strided row": (kl_of(), lambda: wide((1, 8_000_000))),
    "strided": (kl_of(), wide),
    "axis 0": (kl_of(axis=0), pair),
    "axis None": (kl_of(axis=None), pair),
    "axes 0 and 2": (kl_of(axis=(0, 2)), lambda: pair((20, 400, 1000))),
    "broadcast q": (kl_of(), lambda: pair(other=(1, 4000))),
    "broadcast both": (kl_of(), lambda: (fill((2000, 1, 400), "f8", 0), fill((1, 20, 400), "f8", 1))),
    "broadcast along the row": (kl_of(), lambda: (fill((4000, 4000), "f8", 0), fill((4000, 1), "f8", 1))),
    "where": (lambda p, q, keep: kl.kl_divergence(p, q, where=keep, threads=2), lambda: masks(*pair())),
    "masked": (kl_of(), lambda: masked(*pair((4000, 6000), "u1"))),
    "logit": (kl_of(kind="logit"), pair),
    "log_prob": (kl_of(kind="log_prob"), pair),
    "one row of logits": (kl_of(kind="logit"), lambda: pair((1, 8_000_000))),
    "not normalised": (kl_of(normalize=False), pair),
    "mean": (kl_of(reduction="mean"), pair),
    "raise": (kl_of(invalid="raise"), pair),
    "entropy": (lambda p: kl.entropy(p, threads=2), lambda: pair()[:1]),
    "statistics": (lambda p, q: kl.row_statistics(p, q, stats=("kl", "reverse_kl", "argmax_agree"), threads=2), pair),
    "rel_entr": (kl.rel_entr, pair),
    "rel_entr of float32": (kl.rel_entr, lambda: pair((2000, 8000), "f4")),
    "rel_entr of int64": (kl.rel_entr, lambda: pair(dtype="i8")),
    "rel_entr, strided": (kl.rel_entr, wide),
    "rel_entr, broadcast": (kl.rel_entr, lambda: pair(other=(1, 4000))),
    "rel_entr, where": (lambda p, q, keep: kl.rel_entr(p, q, where=keep), lambda: masks(*pair())),
    "generalized_kl": (kl.generalized_kl, pair),
}
if bfloat16 is not None:
    CASES["bfloat16"] = kl_of(), lambda: pair((4000, 4000), bfloat16)
    CASES["rel_entr of bfloat16"] = kl.rel_entr, lambda: pair((4000, 4000), bfloat16)
    CASES["bfloat16, axis 0"] = kl_of(axis=0), lambda: pair((4000, 4000), bfloat16)

def main():
    for name, (call, make) in list(CASES.items())[PART::2]:
        inputs = make()
        call(*(few(x) for x in inputs))
        print(json.dumps([name, excess(call, *inputs)]), flush=True)
        del inputs

main()
"""

# Blocks that were freed go back to the system at once and are counted anew (GNU's allocator; others pass it over).
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_memory_of_a_call(tmp_path, part):
    """Every other case, and the rest with the slow tests."""
    out = sub.run(f"PART = {part}\n{PROGRAM}", tmp_path, seconds=180, **ALLOCATOR)
    excess = dict(map(json.loads, out.splitlines()))
    assert len(excess) > 15
    beyond = {name: f"{size / 2**20:.1f} MiB" for name, size in excess.items() if size > LIMIT}
    assert not beyond, f"beside inputs and result: {beyond}"


def test_a_temporary_would_show(tmp_path):
    """The same measure of a function that copies its inputs."""
    program = PROGRAM.replace(
        "\nmain()\n",
        """
print(excess(lambda p, q: (p * np.log(p / q)).sum(-1), *pair()))
""",
    )
    assert int(sub.run(program, tmp_path, **ALLOCATOR)) > LIMIT
