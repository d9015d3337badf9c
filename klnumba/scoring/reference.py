"""A reference that is cached: log-probabilities of every cell, or of the largest and of all others together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from klnumba.scoring.archives import open_safetensors, safetensors_header
from klnumba.scoring.errors import InputError
from klnumba.scoring.logarithms import CELLS, cells_within, coarsened, logarithms, spread, working
from klnumba.scoring.options import Options
from klnumba.scoring.source import Array, Source, unmasked

FORMAT, VERSION = "klnumba.reference", "1"
LOGS, PLACES = "log_probs", "indices"


class Reference(Source):
    """The log-probabilities of a cache. With `top_k`, the last cell of a row holds all cells that are not kept."""

    def __init__(self, path: Path, about: dict[str, str]) -> None:
        if about.get("version") != VERSION:
            raise InputError(f"{path}: version {about.get('version')!r} of a reference; this is {VERSION!r}")
        self.path, self.logs = path, open_safetensors(path, LOGS)
        try:
            self.temperature, self.width = float(about["temperature"]), int(about["width"])
            self.top_k = int(about["top_k"]) if about.get("top_k") else None
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: damaged reference: {error!r}") from error
        self.places = open_safetensors(path, PLACES) if self.top_k else None
        cells = self.width if self.top_k is None else self.top_k + 1
        shape = self.logs.shape
        if shape[-1:] != (cells,) or (self.places and self.places.shape != (*shape[:-1], self.top_k)):
            raise InputError(f"{path}: damaged reference: {LOGS} of shape {shape}, and rows of {cells} cells")
        super().__init__(str(path), self.logs.dtype, shape)

    def read(self, start: int, stop: int) -> Array:
        return self.logs.read(start, stop)

    def expect(self, start: int, stop: int) -> None:
        self.logs.expect(start, stop)

    def identity(self) -> Any:
        return self.logs.identity()

    def files(self) -> list[Path]:
        return [self.path]

    def flatten(self, axes: int) -> Source | None:
        return self.logs.flatten(axes)

    def close(self) -> None:
        for source in (self.logs, self.places):
            if source is not None:
                source.close()


def open_tensors(path: Path, member: str | None = None) -> Source:
    """Open a .safetensors file: a reference, if that is what it says it is, or one of its tensors."""
    about = safetensors_header(path)[0].get("__metadata__") or {}
    if member is None and about.get("format") == FORMAT:
        return Reference(path, about)
    return open_safetensors(path, member)


class OfModel(Source):
    """Rows that are made of those of a model, as logarithms in float64."""

    def __init__(self, model: Source, kind: str, temperature: float, threads: int | None, width: int | None) -> None:
        super().__init__(model.name, np.dtype(np.float64), (*model.shape[:-1], width))
        self.model, self.kind, self.temperature, self.threads = model, kind, temperature, threads
        self.grain, self.cells = model.grain, CELLS
        self.last: Array = np.empty(0)  # the model's rows that were read last, until they are forgotten

    @property
    def resident(self) -> int:
        return self.model.resident + working(self.cells, self.model.shape)

    @property
    def holding(self) -> int:
        return self.model.holding

    def within(self, limit: int) -> None:
        self.model.within(limit)
        self.cells = cells_within(limit)

    def forget(self) -> None:
        self.last = np.empty(0)

    def identity(self) -> Any:
        return self.model.identity()

    def close(self) -> None:
        self.model.close()


class Logarithms(OfModel):
    """Rows of a model as logarithms."""

    def __init__(self, model: Source, kind: str, temperature: float, threads: int | None) -> None:
        super().__init__(model, kind, temperature, threads, model.shape[-1])
        self.copies, self.columns = 1.0 + model.copies * model.dtype.itemsize / 8, model.columns

    def read(self, start: int, stop: int) -> Array:
        self.last = rows = unmasked(self.model.read(start, stop), self.name)
        found = np.empty(rows.shape)

        def fill(few: slice) -> None:
            found[few] = logarithms(rows[few], self.kind, self.temperature)

        list(spread(rows, fill, self.threads, self.cells))
        return found


class Coarsened(OfModel):
    """Rows of a model with the cells that the reference keeps, and one for all others."""

    def __init__(self, model: Source, reference: Reference, kind: str, temperature: float, threads: int | None) -> None:
        assert reference.places is not None
        super().__init__(model, kind, temperature, threads, reference.row_shape[-1])
        self.places, self.width = reference.places, reference.width
        of_model = model.row_bytes * model.copies + self.places.row_bytes
        self.copies = 1.0 + of_model / max(self.row_bytes, 1)
        self.agree: Array = np.empty(0, bool)  # of the rows read last: whether the largest cell is the reference's

    def read(self, start: int, stop: int) -> Array:
        self.last = rows = unmasked(self.model.read(start, stop), self.name)[..., : self.width]
        places = self.places.read(start, start + len(rows))
        if len(places) < len(rows):
            raise InputError(
                f"p and q: {self.places.name} has {start + len(places):,} rows, {self.name} has more of shape "
                f"{self.model.row_shape}"
            )
        found = np.empty((len(rows), *self.row_shape))
        self.agree = np.empty(len(rows), bool)

        def fill(few: slice) -> None:
            cells = logarithms(rows[few], self.kind, self.temperature)
            found[few] = coarsened(cells, places[few].astype(np.int64))
            top = cells.argmax(axis=-1)
            self.agree[few] = (top == places[few][:, 0]) & ~np.isnan(found[few]).any(axis=-1)

        list(spread(rows, fill, self.threads, self.cells))
        return found


@dataclass
class Match:
    """P and Q as they are compared, with what the report says about it."""

    p: Source
    q: Source
    options: Options
    width: int | None
    about: dict[str, Any] = field(default_factory=dict)


def matched(p: Source, q: Source, options: Options, masked: bool, threads: int | None) -> Match:
    """The sources as they are, or brought to what a reference holds."""
    if isinstance(q, Reference):
        raise InputError(f"{q.name}: a cached reference stands in the place of P, not of Q")
    if not isinstance(p, Reference):
        return Match(p, q, options, options.valid_width)
    _check(p, q, options, masked)
    cached = {"dtype": str(p.dtype), "temperature": p.temperature, "width": p.width, "top_k": p.top_k}
    about = {"reference": cached, "coarsened": p.top_k is not None}
    if p.top_k is not None:
        model: Source = Coarsened(q, p, options.kind, options.temperature, threads)
        return Match(p, model, replace(options, kind="log_prob", temperature=1.0, valid_width=None), None, about)
    if options.kind == "prob" or options.temperature != 1.0:
        model = Logarithms(q, options.kind, options.temperature, threads)
        return Match(p, model, replace(options, kind="log_prob", temperature=1.0), options.valid_width, about)
    return Match(p, q, options, options.valid_width, about)


def _check(reference: Reference, model: Source, options: Options, masked: bool) -> None:
    if options.kind == "logit" and options.temperature != reference.temperature:
        raise InputError(
            f"temperature: {options.temperature!r}, but {reference.name} was cached at {reference.temperature!r}"
        )
    if not options.normalize:
        raise InputError(f"normalize: {reference.name} holds normalised rows, so that the model's have to be too")
    if len(model.shape) < 2:
        raise InputError(f"{model.name}: shape {model.shape}, which has no rows along the last axis")
    if options.axis not in (-1, len(model.shape) - 1):
        raise InputError(f"axis: with a reference rows lie along the last axis, not {options.axis}")
    if reference.top_k is not None and (masked or len(model.shape) != 2):
        raise InputError(f"{reference.name}: the cells kept differ from row to row: two axes, and no mask")
    if reference.top_k is not None and (model.rows == 1) != (reference.rows == 1):
        raise InputError(
            f"{model.name}: of {model.rows or 'unknown'} rows, but {reference.name} has {reference.rows}, each with "
            "its own cells"
        )
    cells = model.shape[-1]
    width = options.valid_width or cells
    if width != reference.width or (cells or 0) < width:
        raise InputError(
            f"{model.name}: rows of {cells:,} cells{'' if width == cells else f' (valid_width {width:,})'}, but "
            f"{reference.name} has {reference.width:,}: padded cells are cut off with --valid-width (valid_width)"
        )
