"""Where compiled loops are kept: a cache on disk that cannot go stale.

The folder is named by a digest of every source file that could have gone into
the machine code and of the versions of Python, NumPy, Numba and llvmlite.
Editing a formula therefore changes the folder: a stale kernel is never found.
Where no folder is writable, nothing is kept and nothing is said.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import caching

PACKAGE = Path(__file__).resolve().parent.parent
FOLDERS = ("formulas", "distributions", "kernels")  # the source that goes into compiled code
SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")  # Numba's, that tell in it


def short_hash(text: str) -> str:
    """What tells this text from others in a name."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@functools.cache
def _digest() -> str:
    """One hash of everything that the machine code depends on, the processor aside (Numba adds that)."""
    digest = hashlib.sha256()
    versions = (sys.version, np.__version__, numba.__version__, llvmlite.__version__, str(PACKAGE))
    settings = (f"{name}={getattr(numba.config, name, None)}" for name in SETTINGS)
    digest.update("\0".join((*versions, *settings)).encode())
    for folder in FOLDERS:
        for path in sorted((PACKAGE / folder).glob("*.py")):
            digest.update(path.name.encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def _roots() -> list[Path]:
    """Where the cache may live, best first: the caller's wish, the user's cache folder, beside the package."""
    wish = os.environ.get("KLNUMBA_CACHE_DIR")
    if wish:
        return [Path(wish)]
    base = os.environ.get("XDG_CACHE_HOME")
    if sys.platform == "win32":
        user = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif base:
        user = Path(base)
    else:
        user = Path("~/.cache").expanduser()
    return [user / "klnumba", PACKAGE / "__pycache__" / "kernels"]


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except (OSError, RuntimeError):
        return False
    return True


@functools.cache
def cache_folder() -> Path | None:
    """The folder that holds this version's compiled loops, or None where caching is off or impossible."""
    if os.environ.get("KLNUMBA_CACHE", "1").strip().lower() in {"0", "off", "false", "no"}:
        return None
    try:
        for root in _roots():
            folder = root / _digest()
            if _writable(folder):
                return folder
    except (OSError, RuntimeError):
        pass
    return None


def loop_cache(function: Callable[..., Any], name: str) -> Any:
    """A Numba cache of one loop; it keeps nothing where there is no folder, or if Numba's own interface has moved."""
    folder = cache_folder()
    if folder is None:
        return caching.NullCache()
    try:
        parts = caching._CacheLocator, caching.CompileResultCacheImpl, caching.Cache
        return cache_in(folder, _digest(), name, *parts)(function)
    except Exception:
        return caching.NullCache()


class _FilesByKey:
    """An index and a file for each key.

    Numba's own keeps one index for all keys of a name: of two processes that wrote it at once, each for another key,
    one would later have been given the machine code of the other.
    """

    def __init__(self, files: Callable[[str], Any]) -> None:
        self._files = files

    def _of(self, key: Any) -> Any:
        return self._files(short_hash(repr(key)))

    def load(self, key: Any) -> Any:
        return self._of(key).load(key)

    def save(self, key: Any, data: Any) -> None:
        self._of(key).save(key, data)


def cache_in(folder: Path, stamp: str, name: str, locator: Any, implementation: Any, cache: Any) -> Any:
    """A class of caches made from Numba's own, whose files lie in `folder` under a name and last as long as a stamp."""

    class Locator(locator):  # type: ignore[misc]
        def get_cache_path(self) -> str:
            return str(folder)

        def get_source_stamp(self) -> str:
            return stamp

        def get_disambiguator(self) -> str:
            return "0"

        @classmethod
        def from_function(cls, py_func: Any, py_file: str) -> Any:
            return cls()

    class Impl(implementation):  # type: ignore[misc]
        _locator_classes = [Locator]  # noqa: RUF012

        @property
        def filename_base(self) -> str:
            return name

    class Kept(cache):  # type: ignore[misc]
        _impl_class = Impl

        _cache_file: Any

        def __init__(self, function: Any) -> None:
            super().__init__(function)
            kind = type(self._cache_file)
            self._cache_file = _FilesByKey(lambda part: kind(str(folder), f"{name}-{part}", stamp))

        def _index_key(self, sig: Any, codegen: Any) -> Any:
            return sig, codegen.magic_tuple(), name

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            # Numba's own would first load all that a compilation may need, SciPy's linear algebra among it. A finished
            # loop needs none of that, and whatever is compiled later loads it then.
            try:
                return self._load_overload(sig, target_context)
            except Exception:  # a damaged or half-written file: compile again
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            try:
                super().save_overload(sig, data)
            except Exception:  # a full disk, a folder that went away: go on without
                return

    return Kept
