"""What the first use costs, in fresh processes: the import, and the first call without and with the cache on disk."""

from __future__ import annotations

import statistics
import tempfile
from typing import Any

from benchmarks.fresh import printed

_IMPORT = "import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
_CALL = """
import time
import numpy as np
import klnumba
p = np.random.default_rng(0).random(({rows}, {d}))
t = time.perf_counter()
klnumba.kl_divergence(p, p[::-1].copy())
print(time.perf_counter() - t)
"""
_USUAL = {"PYTHONDONTWRITEBYTECODE": ""}  # installed modules are there as bytecode
CALLS = {"one row of 10 cells": (1, 10), "2,000 rows of 1,000 cells": (2_000, 1_000)}


def measure(repeats: int) -> dict[str, Any]:
    """Seconds: medians and all samples."""
    imports: dict[str, list[float]] = {"numba": [], "klnumba": []}
    for _ in range(repeats + 1):
        for module, samples in imports.items():
            samples.append(printed(_IMPORT.format(module=module), **_USUAL))
    record: dict[str, Any] = {f"import {name}": _summary(samples[1:]) for name, samples in imports.items()}
    for name, (rows, d) in CALLS.items():
        code = _CALL.format(rows=rows, d=d)
        without = [printed(code, KLNUMBA_CACHE="0", **_USUAL) for _ in range(repeats)]
        with tempfile.TemporaryDirectory() as folder:
            settings = {"KLNUMBA_CACHE": "1", "KLNUMBA_CACHE_DIR": folder} | _USUAL
            cached = [printed(code, **settings) for _ in range(repeats + 1)]
        record[f"first call without cache, {name}"] = _summary(without)
        record[f"first call that fills the cache, {name}"] = _summary(cached[:1])
        record[f"first call with cache, {name}"] = _summary(cached[1:])
    return record


def _summary(samples: list[float]) -> dict[str, Any]:
    return {"median_s": statistics.median(samples), "samples_s": samples}
