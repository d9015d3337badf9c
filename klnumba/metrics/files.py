"""The states of accumulators in files: nested dicts of arrays and plain values, with a version."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from klnumba.files import replacing

FORMAT = "klnumba-accumulator"
VERSION = 1
_HEADER = "header"


def write(path: str | os.PathLike[str], kept: Mapping[str, Any]) -> None:
    """An .npz file of nested dicts of arrays and of what JSON can hold."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    text = json.dumps({"format": FORMAT, "version": VERSION, **_without_arrays(kept, "", arrays)})
    with replacing(path) as file:
        np.savez_compressed(file, **{_HEADER: np.array(text)}, **arrays)  # type: ignore[arg-type]


def _without_arrays(kept: Mapping[str, Any], place: str, arrays: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    """The same dicts without their arrays, which go into `arrays` under the names of their places."""
    rest: dict[str, Any] = {}
    for name, value in kept.items():
        if isinstance(value, np.ndarray):
            arrays[place + name] = value
        else:
            rest[name] = _without_arrays(value, f"{place}{name}/", arrays) if isinstance(value, Mapping) else value
    return rest


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What `write` wrote; raises ValueError naming the file for anything else."""
    with Path(path).open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            kept = json.loads(str(arrays.pop(_HEADER)[()]))
        except Exception as error:  # whatever a damaged archive makes its reader say
            raise ValueError(f"{path}: not a whole file of an accumulator ({type(error).__name__})") from error
    if not isinstance(kept, dict) or kept.get("format") != FORMAT:
        raise ValueError(f"{path}: not a file of an accumulator")
    if kept.get("version") != VERSION:
        raise ValueError(f"{path}: version {kept.get('version')!r} of the format; this release reads {VERSION}")
    for name, array in arrays.items():
        *folders, last = name.split("/")
        place = kept
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = array
    return kept
