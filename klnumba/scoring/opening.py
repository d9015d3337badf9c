"""From what the caller names or hands over to a source of rows."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from klnumba.files import lacking
from klnumba.labelled import is_labelled
from klnumba.scoring.archives import open_npz
from klnumba.scoring.errors import InputError
from klnumba.scoring.held import Batches, Held, Sliced, open_zarr
from klnumba.scoring.mapped import open_npy, remapped
from klnumba.scoring.reference import Reference, open_tensors
from klnumba.scoring.shards import Shards, natural
from klnumba.scoring.source import Source
from klnumba.scoring.tables import Csv, Parquet

Opener = Callable[[Path, str | None, bool | None], Source]
READERS: dict[str, Opener] = {
    ".npy": lambda path, member, header: open_npy(path),
    ".npz": lambda path, member, header: open_npz(path, member),
    ".safetensors": lambda path, member, header: open_tensors(path, member),
    ".csv": lambda path, member, header: Csv(path, header),
    ".parquet": lambda path, member, header: Parquet(path),
    ".zarr": lambda path, member, header: open_zarr(path, member),
}
MEMBER = re.compile(r"(.+?\.(?:npz|safetensors|zarr)):(.*)", re.IGNORECASE | re.DOTALL)  # these hold arrays by name
ZARR = ("zarr.json", ".zarray", ".zgroup")  # what the folder of a Zarr store has


def open_source(item: Any, name: str, *, header: bool | None = None) -> Source:
    """Open files by path, pattern or folder, arrays, memory maps, and iterators of batches.

    Parameters
    ----------
    item : path, list of paths, array_like, or iterator of arrays
        What holds the rows.
    name : str
        What error texts call it where it has no path.
    header : bool, optional
        Whether .csv files begin with names; by default the first line tells.

    Returns
    -------
    Source

    Raises
    ------
    InputError
        If there is no such file, or it is not what its suffix says.
    """
    if isinstance(item, Source):
        return item
    if isinstance(item, (str, os.PathLike)):
        return _from_text(os.fspath(item), header)
    if isinstance(item, (list, tuple)) and item and all(isinstance(one, (str, os.PathLike)) for one in item):
        return _joined([_from_text(os.fspath(one), header) for one in item], name)
    if isinstance(item, np.memmap):
        return remapped(item, name) or Held(item, name)
    if isinstance(item, (np.ndarray, np.generic)) or hasattr(item, "__dlpack__") or is_labelled(item):
        return Held(item, name)
    if all(hasattr(item, one) for one in ("shape", "dtype", "__getitem__")):
        return Sliced(item, name)
    if hasattr(item, "__array__") or isinstance(item, (list, tuple, int, float)):
        return Held(item, name)
    if hasattr(item, "__iter__") and not isinstance(item, (bytes, bytearray, Mapping)):
        return Batches(item, name)
    raise InputError(f"{name}: a path, an array or an iterator of arrays, not {type(item).__name__}")


def _from_text(text: str, header: bool | None) -> Source:
    if not text:
        raise InputError("an empty path")
    path, member = split_member(text)
    if path.is_dir() and path.suffix.lower() != ".zarr" and not any((path / one).exists() for one in ZARR):
        return _joined([_open(one, member, header) for one in _shards(path)], text)
    if not path.exists() and glob.has_magic(str(path)):
        found = sorted(map(Path, glob.iglob(str(path), recursive=True)), key=natural)  # noqa: PTH207 - any pattern
        if not found:
            raise InputError(f"{path}: no file matches")
        return _joined([_open(one, member, header) for one in found], text)
    return _open(path, member, header)


def split_member(text: str) -> tuple[Path, str | None]:
    """The path and the name in "archive.npz:name"."""
    found = None if Path(text).exists() else MEMBER.fullmatch(text)
    return (Path(found[1]), found[2]) if found else (Path(text), None)


def _open(path: Path, member: str | None, header: bool | None) -> Source:
    suffix = ".zarr" if path.is_dir() else path.suffix.lower()
    reader = READERS.get(suffix)
    if reader is None:
        raise InputError(f"{path}: unknown suffix {path.suffix!r}; known are {', '.join(READERS)}")
    if not path.exists() or not (path.is_file() or suffix == ".zarr"):
        raise InputError(lacking(path))
    return reader(path, member, header)


def _shards(folder: Path) -> list[Path]:
    """The files of a folder that hold rows, in natural order; they have one suffix."""
    found = [path for path in folder.iterdir() if path.suffix.lower() in READERS and path.name[0] not in "._"]
    suffixes = sorted({path.suffix.lower() for path in found})
    if len(suffixes) != 1:
        what = f"files with the suffixes {', '.join(suffixes)}" if suffixes else "no file of rows"
        raise InputError(f"{folder}: a folder with {what}; shards have one of {', '.join(READERS)}")
    return sorted(found, key=natural)


def _joined(parts: list[Source], name: str) -> Source:
    if len(parts) == 1:
        return parts[0]
    for part in parts:
        if isinstance(part, Reference):
            raise InputError(f"{part.name}: a cached reference, which is one file and no part of several")
    return Shards(parts, name)
