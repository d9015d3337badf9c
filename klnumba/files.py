"""Files that are whole or not there: written beside, made to last, then put in place of the old one."""

from __future__ import annotations

import contextlib
import errno
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

    A link stays, and what it leads to is replaced; a file that was there leaves its permissions. A device or a pipe is
    no file, and is refused: whoever may write beside it would replace it for everybody.
    """
    target = Path(path).resolve()
    if special(target):
        raise OSError(errno.EINVAL, "No regular file", str(target))
    with _naming(target):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(_permissions(target))
        with _naming(target):
            Path(name).replace(target)
        _keep_folder(target.parent)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def same(first: Path, second: Path) -> bool:
    """Whether two paths lead to one file, also by links."""
    return first.resolve() == second.resolve() or (first.exists() and second.exists() and first.samefile(second))


def lacking(path: Path) -> str:
    """What is wrong with a path that leads to no file."""
    return f"{path}: {'not a file' if path.exists() else 'no such file'}"


def special(path: Path) -> bool:
    """Whether a path leads to a device, a pipe or a socket."""
    return path.exists() and not (path.is_file() or path.is_dir())


@contextmanager
def _naming(target: Path) -> Iterator[None]:
    """Errors name the file that was asked for, not the one beside it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from None


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
