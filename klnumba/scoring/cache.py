"""Writing a reference cache: a .safetensors file that says what it is."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from klnumba.files import replacing
from klnumba.labels import outside
from klnumba.reduction import real
from klnumba.scoring import memory as limits
from klnumba.scoring.blocks import BLOCK, SHARE, Watch
from klnumba.scoring.errors import InputError
from klnumba.scoring.logarithms import (
    CELLS,
    cells_within,
    coarsened,
    largest_cells,
    logarithms,
    normalised,
    spread,
    working,
)
from klnumba.scoring.measure import place, told
from klnumba.scoring.opening import open_source
from klnumba.scoring.options import Options
from klnumba.scoring.outputs import check_place
from klnumba.scoring.progress import checked, shown
from klnumba.scoring.reference import FORMAT, LOGS, PLACES, VERSION, Reference
from klnumba.scoring.source import Array, Source, unmasked

CODES = {"float32": "F32", "float16": "F16"}
MANY = 10**15  # rows; the header leaves room for so many


def cache_reference(
    source: Any, path: str | os.PathLike[str], *, kind: Literal["prob", "log_prob", "logit"] = "logit",
    temperature: float = 1.0, top_k: int | None = None, dtype: Literal["float32", "float16"] = "float32",
    valid_width: int | None = None, memory: str | int = "1GiB", threads: int | None = None,
    progress: bool | Watch | None = False, header: bool | None = None,
) -> Path:  # fmt: skip
    """Store the log-probabilities of a reference once, for `score` to compare any number of models with.

    Parameters
    ----------
    source : path, list of paths, array_like, or iterator of arrays
        The rows of the reference, along the last axis; what `score` takes.
    path : path
        The .safetensors file to write.
    kind : {"prob", "log_prob", "logit"}, default "logit"
        What a cell holds.
    temperature : float, default 1.0
        Divides logits first.
    top_k : int, optional
        Keep only so many largest cells of a row, and the mass of all others together. Scores are then those of the
        coarsened distributions, which are never larger than the full ones.
    dtype : {"float32", "float16"}, default "float32"
        Of the log-probabilities. They are computed in float64 and rounded once; what lies beyond the range of the
        dtype, below -65504 with float16, becomes -inf, which is no mass.
    valid_width : int, optional
        Only so many first cells of a row: padded vocabularies.
    memory, threads, progress, header
        As in `score`.

    Returns
    -------
    pathlib.Path
        The file that was written.

    Raises
    ------
    InputError
        A ValueError. If a file is missing or damaged, or an option is out of its range.

    Warns
    -----
    UserWarning
        If a row is no distribution. It is kept as NaN, as is what is scored against it; the text names the file, the
        first such row, the cell and the rule, and how many there are.

    Notes
    -----
    Formula: log p = x/T - log sum exp(x/T). The file is complete or, when the work is interrupted, as it was before.
    Its bytes do not depend on the number of threads.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> import klnumba as kl
    >>> from klnumba.scoring import cache_reference
    >>> rng = np.random.default_rng(0)
    >>> teacher, student = rng.normal(size=(2, 100, 50))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     reference = cache_reference(teacher, f"{folder}/teacher.safetensors", top_k=10)
    ...     coarse = kl.score(reference, student, kind="logit")["kl"].mean
    >>> coarse < kl.score(teacher, student, kind="logit")["kl"].mean
    True
    """
    progress, target = checked(progress), Path(path)
    rows = open_source(source, "source", header=header)
    if isinstance(rows, Reference):
        raise InputError(f"{rows.name}: is a cached reference already")
    top_k, valid_width, threads = _count(top_k, "top_k"), _count(valid_width, "valid_width"), _count(threads, "threads")
    width = _checked(rows, target, kind, temperature, top_k, dtype, valid_width)
    check_place(target, rows.files())
    limit = limits.parse(memory)
    rows.within(limit)
    writer = _Writer(rows, kind, temperature, top_k, np.dtype(dtype), width, threads)
    with shown(progress) as watch, replacing(target.resolve()) as file:
        writer.write(file, target.resolve().parent, limit, watch)
    rows.close()
    if writer.problem is not None:
        many = f"; {writer.missing:,} rows in all" if writer.missing > 1 else ""
        warnings.warn(f"{writer.problem}: the reference holds NaN there{many}", UserWarning, stacklevel=outside())
    return target


def _checked(
    rows: Source, target: Path, kind: str, temperature: float, top_k: int | None, dtype: str, width: int | None
) -> int:  # fmt: skip
    """The number of cells of a row that are cached, if all arguments are in their ranges."""
    if target.suffix.lower() != ".safetensors":
        raise InputError(f"{target}: a reference is a .safetensors file")
    if len(rows.shape) < 2:
        raise InputError(f"{rows.name}: shape {rows.shape}, which has no rows along the last axis")
    cells = int(rows.shape[-1] or 0)
    if not cells:
        raise InputError(f"{rows.name}: shape {rows.shape}, whose rows have no cells")
    if dtype not in CODES:
        raise InputError(f"dtype: one of {', '.join(CODES)}, not {dtype!r}")
    if kind not in ("prob", "log_prob", "logit"):
        raise InputError(f"kind: one of prob, log_prob, logit, not {kind!r}")
    divisor = _number(temperature)
    if not (0.0 < divisor < np.inf and 1.0 / divisor < np.inf) or (kind != "logit" and divisor != 1.0):
        raise InputError(
            "temperature: a positive finite number with a finite inverse, which only logits have, not "
            f"{temperature!r} for {kind}"
        )
    if width is not None and not 1 <= width <= cells:
        raise InputError(f"valid_width: from 1 to {cells:,}, the cells of {rows.name}, not {width:,}")
    width = width or cells
    if top_k is not None and (len(rows.shape) != 2 or not 1 <= top_k <= width):
        raise InputError(f"top_k: from 1 to {width:,}, the cells of a row, of two axes, not {top_k:,}")
    return width


def _count(value: Any, name: str) -> int | None:
    """A positive integer of Python's, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name}: a positive integer, not {value!r}")
    return int(value)


def _number(temperature: Any) -> float:
    try:
        return real(temperature, "temperature")
    except TypeError as error:
        raise InputError(str(error)) from error


class _Writer:
    """Rows of a source, in blocks, into the tensors of a file."""

    def __init__(
        self, rows: Source, kind: str, temperature: float, top_k: int | None, dtype: np.dtype[Any], width: int,
        threads: int | None,
    ) -> None:  # fmt: skip
        self.rows, self.kind, self.temperature, self.top_k = rows, kind, temperature, top_k
        self.dtype, self.width, self.threads, self.cells = dtype, width, threads, CELLS
        self.missing, self._rows = 0, 0  # rows that are no distribution, and those that are written
        self.problem: str | None = None  # with the first of them

    def write(self, file: IO[bytes], folder: Path, limit: int, watch: Watch | None) -> None:
        """The log-probabilities as they come, then the places, which wait in a file of their own; the header last."""
        room = len(self._header(MANY))
        file.write(bytes(8 + room))
        step = self._step(limit)
        done, total = 0, self.rows.rows
        with tempfile.TemporaryFile(dir=folder) as waiting:
            while total is None or done < total:
                part = self.rows.read(done, done + step if total is None else min(done + step, total))
                if not len(part):
                    break
                self._block(part, file, waiting)
                done += len(part)
                if watch is not None:
                    watch(done, total, done * self.rows.row_bytes)
            waiting.seek(0)
            shutil.copyfileobj(waiting, file)
        file.seek(0)
        file.write(room.to_bytes(8, "little") + self._header(done).ljust(room))

    def _step(self, limit: int) -> int:
        self.cells = cells_within(limit)
        each = self.rows.row_bytes * self.rows.copies
        beside = self.rows.resident + working(self.cells, self.rows.shape)
        if each + beside > SHARE * limit:
            raise InputError(
                f"memory: {limits.text(limit)} is too little: one row of {self.rows.name} takes {limits.text(each)}, "
                f"reading {limits.text(beside)}"
            )
        return max(1, int(min(SHARE * limit - beside, BLOCK) // max(each, 1)))

    def _block(self, part: Array, file: IO[bytes], waiting: IO[bytes]) -> None:
        rows = unmasked(part, self.rows.name)[..., : self.width]
        at = 0
        for logs, places, bad in spread(rows, lambda few: self._stored(rows[few]), self.threads, self.cells):
            file.write(logs)
            waiting.write(places)
            if self.problem is None and bad.any():
                self._tell(rows, at + int(bad.argmax()))
            self.missing += int(bad.sum())
            at += bad.size
        self._rows += at

    def _tell(self, rows: Array, k: int) -> None:
        """Note what is wrong with a row of a block."""
        row = rows[np.unravel_index(k, rows.shape[:-1])]
        rule = told(row, row, None, Options(), self.kind).partition(": the row")[2]
        self.problem = f"{self.rows.name}: row {place(self._rows + k, self.rows.shape[:-1])} of shape {row.shape}{rule}"

    def _stored(self, rows: Array) -> tuple[bytes, bytes, Array]:
        """The log-probabilities of rows as stored, the places of the cells that are kept, and which rows are NaN."""
        logs, places = normalised(logarithms(rows, self.kind, self.temperature)), b""
        bad = np.isnan(logs).any(axis=-1).reshape(-1)
        if self.top_k is not None:
            largest = largest_cells(logs, self.top_k)
            logs, places = coarsened(logs, largest), largest.astype("<i4").tobytes()
        with np.errstate(over="ignore"):  # beyond the range of the dtype lies -inf: no mass
            stored = logs.astype(self.dtype.newbyteorder("<"))
        return stored.tobytes(), places, bad

    def _header(self, rows: int) -> bytes:
        inner = self.rows.row_shape[:-1]
        shape = [rows, *inner, self.width if self.top_k is None else self.top_k + 1]
        size = int(np.prod(shape, dtype=object)) * self.dtype.itemsize
        about = {"format": FORMAT, "version": VERSION, "kind": "log_prob", "temperature": repr(float(self.temperature))}
        about |= {"width": str(self.width), "top_k": str(self.top_k or ""), "source": self.rows.name}
        header: dict[str, Any] = {"__metadata__": about}
        header[LOGS] = {"dtype": CODES[self.dtype.name], "shape": shape, "data_offsets": [0, size]}
        if self.top_k is not None:
            end = size + rows * self.top_k * 4
            header[PLACES] = {"dtype": "I32", "shape": [rows, self.top_k], "data_offsets": [size, end]}
        text = json.dumps(header).encode()
        return text.ljust(-(-len(text) // 8) * 8)  # the tensors begin at a multiple of eight bytes
