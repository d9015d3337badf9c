"""Files that are whole or not there: written beside, made to last, then put in place of the old one."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` once it is whole and on disk; after an error, nothing has changed.

    A link stays, and what it leads to is replaced; a file that was there leaves its permissions.
    """
    target = Path(path).resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(_permissions(target))
        Path(name).replace(target)
        _keep_folder(target.parent)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _keep_folder(folder: Path) -> None:
    """Make the new name last, too, where folders can be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _permissions(target: Path) -> int:
    """Those of the file that is there, or those that a new one gets."""
    with contextlib.suppress(FileNotFoundError):
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
