"""Tables of values that the demo writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from klnumba.files import replacing
from klnumba.scoring.outputs import write_columns


def write_values(path: Path, values: npt.NDArray[Any], names: Sequence[str]) -> None:
    """Write a table with named columns; .npy takes it as an array of two axes."""
    if path.suffix.lower() != ".npy":
        write_columns(path, dict(zip(names, values.T, strict=True)))
        return
    with replacing(path.resolve()) as file:
        np.save(file, values, allow_pickle=False)
