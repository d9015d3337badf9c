"""Kernels that are kept on disk, beside the loops of the CPU.

Numba's own cache looks at the file of a function alone. Here, as in `klnumba.kernels.cache`, the folder is named by
a digest of all that goes into a kernel, and a kernel by its name, its types and the device it is for.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
from pathlib import Path
from typing import Any

from klnumba.kernels import cache

_caching: Any = importlib.import_module("numba.cuda.core.caching")
_dispatcher: Any = importlib.import_module("numba.cuda.dispatcher")


def _folder() -> Path | None:
    """The folder of the CPU's loops has one for kernels; None where nothing is kept."""
    above = cache.cache_folder()
    if above is None:
        return None
    digest = hashlib.sha256(importlib.metadata.version("numba-cuda").encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    folder = above / f"cuda-{digest.hexdigest()[:20]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def kept(dispatcher: Any, name: str) -> Any:
    """The same kernel, which looks for its machine code on disk first and leaves it there."""
    try:
        folder = _folder()
        if folder is not None:
            dispatcher._cache = _cache_of(dispatcher.py_func, name, folder)
    except Exception:  # Numba's own interface has moved, or the folder went away: go on without
        return dispatcher
    return dispatcher


def _cache_of(function: Any, name: str, folder: Path) -> Any:
    parts = _caching._CacheLocator, _dispatcher.CUDACacheImpl, _dispatcher.CUDACache
    return cache.cache_in(folder, folder.name, name, *parts)(function)
