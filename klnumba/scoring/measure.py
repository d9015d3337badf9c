"""The values of a block of rows, and what is wrong with the first row that has none."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from klnumba.divergence import kl_divergence, row_statistics
from klnumba.engine import AGREE
from klnumba.reduction import narrowed, statistics
from klnumba.scoring.errors import InputError
from klnumba.scoring.options import Options
from klnumba.scoring.pairing import Block, Pairing
from klnumba.scoring.reference import Coarsened, OfModel
from klnumba.scoring.source import Array

NO_NUMBER = "p and q: the row is not a number"


def values(block: Block, pairing: Pairing, options: Options, threads: int | None) -> dict[str, Array]:
    """Every statistic of every row of a block, flat; none is rounded to float32 before it is added up."""
    try:
        found = statistics(
            block.p, block.q, options.stats, options.kind, pairing.reduced, options.normalize, options.base,
            options.temperature, block.where, False, None, threads, "nan", unrounded=True,
        )  # fmt: skip
    except (TypeError, ValueError) as error:
        names = " and ".join(side.source.name for side in pairing.sides[:2])
        raise InputError(f"{names}: {error}") from error
    model = pairing.sides[1].source
    if isinstance(model, Coarsened) and AGREE in found:
        found[AGREE] = model.agree
    return {name: np.asarray(column).reshape(-1) for name, column in found.items()}


def kept(columns: dict[str, Array], block: Block, options: Options) -> dict[str, Array]:
    """The statistics of the rows of a block as they are written."""
    kinds = dtypes(options, block.p.dtype, block.q.dtype)
    return {name: narrowed(column, kinds[name]) for name, column in columns.items()}


def dtypes(options: Options, first: Any, second: Any) -> dict[str, np.dtype[Any]]:
    """What the statistics of any row come as, by the dtypes of p and q."""
    p, q = (np.empty((0, 1), dtype) for dtype in (first, second))
    found = row_statistics(p, q, stats=options.stats, kind=cast(Any, options.kind), normalize=options.normalize)
    return {name: column.dtype for name, column in found.items()}


def held(block: Block, pairing: Pairing) -> Array | None:
    """Which rows have a cell that the mask holds; None where all do."""
    if block.where is None:
        return None
    ndim = len(block.kept) + len(pairing.reduced)
    mask = block.where.reshape((1,) * (ndim - block.where.ndim) + block.where.shape)
    rows = np.broadcast_to(mask.any(axis=pairing.reduced), block.kept).reshape(-1)
    return None if rows.all() else rows


def first_nan(columns: dict[str, Array], rows: Array | None) -> int | None:
    """The first row that is no number, among those that count."""
    found = None
    for column in columns.values():
        bad = np.isnan(column)
        if rows is not None:
            bad &= rows
        if bad.any():
            place = int(bad.argmax())
            found = place if found is None else min(found, place)
    return found


def problem(block: Block, pairing: Pairing, options: Options, row: int) -> str:
    """Why a row of a block is no number: the file, the row, the cell and the rule."""
    sides = pairing.sides
    full = np.broadcast_shapes(*(x.shape for x in (block.p, block.q, block.where) if x is not None))
    order = tuple(k for k in range(len(full)) if k not in pairing.reduced) + pairing.reduced
    at = tuple(map(int, np.unravel_index(row, block.kept))) if block.kept else ()
    p, q, where = (
        None if x is None else np.broadcast_to(x, full).transpose(order)[at] for x in (block.p, block.q, block.where)
    )
    text, shape = told(p, q, where, options, options.kind), tuple(full[k] for k in pairing.reduced)
    model = sides[1].source
    if isinstance(model, OfModel):  # its rows are logarithms of those of the file, which are what is wrong
        cells = sides[1].trimmed(model.last)
        own = np.broadcast_to(cells, (*block.kept, *cells.shape[-1:]))[at]
        reason = told(own, own, where if own.shape == shape else None, options, model.kind)
        text, shape = (f"q{reason[reason.index(':') :]}", own.shape) if reason != NO_NUMBER else (text, shape)
    which, _, rule = text.partition(": the row")
    both = f"{sides[0].source.name} and {model.name}"
    name = {"p": sides[0].source.name, "q": model.name}.get(which, both)
    begin = max(side.source.begin for side in sides)
    return f"{name}: row {place(begin + block.first + row, pairing.shape)} of shape {shape}{rule}"


def told(p: Any, q: Any, where: Any, options: Options, kind: Any) -> str:
    """What the rule is that a row of p or q does not keep."""
    try:
        kl_divergence(
            p, q, kind=kind, axis=None, normalize=options.normalize, temperature=options.temperature, where=where,
            invalid="raise",
        )  # fmt: skip
    except ValueError as error:
        return str(error)
    return NO_NUMBER


def place(row: int, shape: tuple[int | None, ...]) -> str:
    """The number of a row, or its place where rows are counted along several axes."""
    inner = [int(n or 1) for n in shape[1:]]
    if not inner:
        return f"{row:,}"
    lead, rest = divmod(row, math.prod(inner))
    return str((lead, *map(int, np.unravel_index(rest, inner))))
