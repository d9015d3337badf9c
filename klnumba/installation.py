"""What is installed and found on this machine, and the kernels made ready."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import llvmlite.binding
import numba
import numpy as np

from klnumba import gpu
from klnumba.kernels import cpu, threads
from klnumba.kernels.cache import cache_folder


def package_version() -> str:
    """The installed version; from a source tree that is not installed, "unknown"."""
    try:
        return version("klnumba")
    except PackageNotFoundError:
        return "unknown"


def info() -> dict[str, Any]:
    """What klnumba runs on: versions, processor, threads, cache folder, CUDA.

    Returns
    -------
    dict
        Plain values, nested one level deep; everything can be written as JSON.

    Examples
    --------
    >>> import klnumba as kl
    >>> sorted(kl.info())
    ['cache_folder', 'cpu', 'cuda', 'threads', 'versions']
    """
    folder = cache_folder()
    features = llvmlite.binding.get_host_cpu_features()
    named = ("sse4.2", "avx", "avx2", "fma", "avx512f", "avx512dq", "neon", "sve")
    return {
        "versions": {
            "klnumba": package_version(),
            "python": sys.version.split()[0],
            "numpy": np.__version__,
            "numba": numba.__version__,
            "llvmlite": llvmlite.__version__,
        },
        "cpu": {
            "machine": platform.machine(),
            "name": llvmlite.binding.get_host_cpu_name(),
            "features": [name for name in named if features.get(name)],
        },
        "threads": {
            "available": threads.available(),
            "layer": "Python threads over loops that release the interpreter's lock",
        },
        "cuda": _cuda(),
        "cache_folder": str(folder) if folder else "none: caching is off, or no folder is writable",
    }


def _cuda() -> str:
    why = gpu.reason()
    return gpu.device() if why is None else f"not used: {why}"


def warmup(dtypes: tuple[Any, ...] = (np.float64, np.float32)) -> None:
    """Compile, or load from the cache, the loops that most calls need.

    Parameters
    ----------
    dtypes : sequence of dtype, optional
        float64 and float32, or one of them.

    Raises
    ------
    ValueError
        If a dtype is neither.

    Examples
    --------
    >>> import klnumba as kl
    >>> kl.warmup()
    """
    names = [np.dtype(dtype).name for dtype in dtypes]
    for name in names:
        if name not in {"float64", "float32"}:
            raise ValueError(f"dtypes: float64 or float32, not {name}")
    for name in names:
        for short in (True, False):
            cpu.quick_rows("kl", name, short, True)
            cpu.scaled_rows("kl", name, short)
            cpu.exact_rows("kl", name, False, short)
            cpu.log_rows("kl", name, short)
        cpu.short_logit_rows(name)
        cpu.logit_rows(name)
