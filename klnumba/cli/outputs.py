"""Files to be written, looked at before any work is done."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path

from klnumba.cli.errors import InputError
from klnumba.files import same, special


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[str]) -> None:
    """Refuse outputs, by the names of their options, that cannot be written or would write over an input or another."""
    wanted = {option: path for option, path in outputs.items() if path is not None}
    read = [Path(one) for one in inputs]
    for option, path in wanted.items():
        if not path.parent.is_dir():
            raise InputError(f"{option}: {path}: no such folder: {path.parent}")
        if path.is_dir():
            raise InputError(f"{option}: {path} is a folder")
        if special(path):
            raise InputError(f"{option}: {path} is a device or a pipe, and no file")
        if any(same(path, one) for one in read):
            raise InputError(f"{option}: {path} is read here; it would be written over")
    for first, second in itertools.combinations(wanted, 2):
        if same(wanted[first], wanted[second]):
            raise InputError(f"{first} and {second}: both are {wanted[first]}")
