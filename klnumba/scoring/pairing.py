"""P, Q and the mask side by side: which rows belong together, read a block at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba import arrays
from klnumba.scoring.errors import InputError
from klnumba.scoring.memory import text
from klnumba.scoring.source import Array, Source, unmasked
from klnumba.scoring.turned import turned


@dataclass
class Block:
    """Some rows of P and Q, their mask, and the number of the first."""

    p: Array
    q: Array
    where: Array | None
    first: int
    kept: tuple[int, ...]  # the shape of the rows' values


class Side:
    """One of the sources: read along with the rows, or as a whole because it serves for all of them."""

    def __init__(self, source: Source, width: int | None) -> None:
        self.source, self.width = source, width
        self.fixed = False
        self._whole: Array | None = None

    @property
    def shape(self) -> tuple[int | None, ...]:
        shape = self.source.shape or (1,)
        return shape if self.width is None or shape[-1] == 1 else (*shape[:-1], self.width)

    def trimmed(self, rows: Array) -> Array:
        return rows if self.width is None or rows.shape[-1] == 1 else rows[..., : self.width]

    def whole(self, limit: float) -> Array:
        """All rows at once, if they take no more than `limit` bytes."""
        if self._whole is None:
            source = self.source
            least = math.ceil(limit / max(source.row_bytes, 1))
            rows = least + 1 if source.rows is None else source.rows
            if source.rows is not None and rows * source.row_bytes * source.copies > limit:
                raise _too_large(source, rows)
            found = source.read(0, rows) if source.shape else source.read(0, 1).reshape(1)
            if source.rows is None and len(found) > least:
                raise _too_large(source, len(found))
            self._whole = self.trimmed(found)
        return self._whole

    def to_come(self) -> float:
        """Bytes that reading it as a whole will take."""
        source = self.source
        return (source.rows or 1) * source.row_bytes * source.copies if self.fixed and self._whole is None else 0.0

    def read(self, start: int, stop: int) -> Array:
        return self.trimmed(self.source.read(start, stop))


def _too_large(source: Source, rows: int) -> InputError:
    size = rows * source.row_bytes * max(source.copies, 1.0)
    return InputError(
        f"{source.name}: has to be held as a whole, since it serves for all rows, or rows lie along its first axis and "
        f"it can be read only once, and takes {text(size)} or more, which the limit on memory does not allow"
    )


class Pairing:
    """How P, Q and the mask fit together.

    Attributes
    ----------
    rows : int or None
        How many steps along the leading axis there are; None where the end will tell.
    kept : tuple
        The shape of the values; the first length is None like `rows`.
    """

    def __init__(self, p: Source, q: Source, mask: Source | None, axis: Any, width: int | None) -> None:
        sources = [p, q] if mask is None else [p, q, mask]
        if width is not None:
            _check_width(sources, width)
        _check_columns(p, q, "Q", width)
        if mask is not None and len(mask.columns or ()) > 1:  # one column is of whole rows
            _check_columns(p if p.columns else q, mask, "the mask", width, "P" if p.columns else "Q")
        sides = [Side(source, width) for source in sources]
        ndim = max(len(side.shape) for side in sides)
        try:
            self.reduced = arrays.axes(axis, ndim)
        except (TypeError, ValueError) as error:
            raise InputError(f"axis: {error}" if "axis: " not in str(error) else str(error)) from error
        if width is not None and self.reduced != (ndim - 1,):
            raise InputError(f"valid_width: rows must lie along the last axis, not {axis}")
        arrange = _turned if 0 in self.reduced else _flattened
        sides, self.reduced, self.outer = arrange(sides, self.reduced, ndim)
        self.sides = sides
        self._fit()

    def _fit(self) -> None:
        """Which sides are read whole, how many rows there are, and whether the shapes go together at all."""
        shapes = [side.shape for side in self.sides]
        ndim = max(map(len, shapes))
        leading = [shape[0] for shape in shapes if len(shape) == ndim]
        lengths = list(dict.fromkeys(n for n in leading if n not in (None, 1)))
        titles = " and ".join(f"{side.source.name} {_shown(side.shape)}" for side in self.sides)
        if len(lengths) > 1:
            raise InputError(f"p and q: {titles}: {' and '.join(f'{n:,}' for n in lengths)} rows")
        try:
            rest = np.broadcast_shapes(*(_inner(shape, ndim) for shape in shapes))
        except ValueError:
            raise InputError(f"p and q: shapes {titles} do not go together") from None
        unknown = None in leading
        for side in self.sides:
            if len(side.shape) < ndim and None in side.shape:
                raise InputError(f"{side.source.name}: {_shown(side.shape)} is too few axes for {titles}")
        self.rows = lengths[0] if lengths else None if unknown else 1
        many = unknown or self.rows != 1
        for side in self.sides:
            side.fixed = len(side.shape) < ndim or (side.shape[0] == 1 and many)
        self.at_once = 0 in self.reduced
        self.kept = tuple(n for k, n in enumerate((self.rows, *rest)) if k not in self.reduced)
        self.per_step = math.prod(int(n or 0) for n in (self.kept if self.at_once else self.kept[1:]))

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape of all values together."""
        return self.kept if self.outer is None else self.outer

    @property
    def resident(self) -> float:
        """Bytes that are held beside the rows of a block; of what is read whole, those that are not held yet."""
        return sum(side.source.resident + side.to_come() for side in self.sides)

    @property
    def holding(self) -> int:
        """Those of them that sources hold already."""
        return sum(min(side.source.holding, side.source.resident) for side in self.sides)

    def step_bytes(self) -> float:
        """Bytes that the process holds for each step along the leading axis while a block is read."""
        return sum(side.source.row_bytes * side.source.copies for side in self.sides if not side.fixed)

    def input_bytes(self) -> int:
        """Bytes of P and Q that are read at each step."""
        return sum(side.source.row_bytes for side in self.sides[:2] if not side.fixed)

    @property
    def grain(self) -> int:
        return max(side.source.grain for side in self.sides)

    def read(self, start: int, stop: int, limit: float) -> Block | None:
        """Rows start:stop, or fewer at the end; None past it. What is held whole takes no more than `limit` bytes."""
        if self.at_once:
            if start:
                return None
            return self._block([side.whole(limit) for side in self.sides], 0)
        found = [side.whole(limit) if side.fixed else side.read(start, stop) for side in self.sides]
        counts = {len(part) for side, part in zip(self.sides, found, strict=True) if not side.fixed}
        if len(counts) > 1 or (self.rows is not None and counts != {stop - start}):
            raise InputError(self._uneven(start, found))
        return self._block(found, start) if counts != {0} else None

    def _uneven(self, start: int, found: list[Array]) -> str:
        sources = [(side.source, len(part)) for side, part in zip(self.sides, found, strict=True) if not side.fixed]
        longest = max(count for _, count in sources)
        ends = [
            f"{source.name} has {start + count:,}{' or more' if count == longest else ''}" for source, count in sources
        ]
        return f"p and q: differing numbers of rows: {', '.join(ends)} of shape {self.sides[0].source.row_shape}"

    def _block(self, found: list[Array], start: int) -> Block:
        where = _truth(found[2], self.sides[2].source.name) if len(found) > 2 else None
        try:
            shape = np.broadcast_shapes(*(part.shape for part in found))
        except ValueError:
            titles = " and ".join(f"{side.source.name} {x.shape}" for side, x in zip(self.sides, found, strict=True))
            raise InputError(f"p and q: shapes {titles} do not go together") from None
        kept = tuple(n for k, n in enumerate(shape) if k not in self.reduced)
        return Block(found[0], found[1], where, start * self.per_step, kept)

    def check_end(self, rows: int) -> None:
        """Refuse a stream that has more rows than the others."""
        for side in self.sides:
            source = side.source
            if not self.at_once and not side.fixed and source.rows is None and len(source.read(rows, rows + 1)):
                raise InputError(
                    f"p and q: differing numbers of rows: {source.name} has more than {rows:,} of shape "
                    f"{source.row_shape}, the others have {rows:,}"
                )

    def expect(self, start: int, stop: int) -> None:
        """Rows start:stop will be read next."""
        if not self.at_once:
            for side in self.sides:
                if not side.fixed:
                    side.source.expect(start, stop)

    def forget(self) -> None:
        """The rows of a block are done with."""
        for side in self.sides:
            if not side.fixed:
                side.source.forget()

    def close(self) -> None:
        for side in self.sides:
            side.source.close()


def _shown(shape: tuple[int | None, ...]) -> str:
    return str(shape).replace("None", "any number")


def _inner(shape: tuple[int | None, ...], ndim: int) -> tuple[int, ...]:
    """The shape behind the leading axis of the whole."""
    return tuple(int(n or 0) for n in (shape[1:] if len(shape) == ndim else shape))


def _check_columns(first: Source, other: Source, name: str, width: int | None, side: str = "P") -> None:
    """Refuse two files of which named columns that are read do not match, place by place."""
    if first.columns is None or other.columns is None:
        return
    pair = first.columns[:width], other.columns[:width]
    if len(pair[0]) != len(pair[1]):
        return
    for place, (left, right) in enumerate(zip(*pair, strict=True)):
        if left != right:
            raise InputError(f"the columns differ: column {place} is {left!r} in {side} and {right!r} in {name}")


def _check_width(sources: list[Source], width: int) -> None:
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        raise InputError(f"valid_width: a positive integer, not {width!r}")
    for source in sources:
        cells = source.shape[-1] if source.shape else 1
        if cells is not None and cells < width and not (source is sources[-1] and cells == 1):
            raise InputError(f"valid_width: {width:,}, but {source.name} has rows of {cells:,} cells")


Arranged = tuple[list[Side], tuple[int, ...], tuple[int, ...] | None]


def _turned(sides: list[Side], reduced: tuple[int, ...], ndim: int) -> Arranged:
    """Rows along the first axes turned to lie along the last, where all lies so and can be read more than once."""
    lead = len(reduced)
    shapes = [side.source.shape for side in sides]
    if reduced != tuple(range(lead)) or lead == ndim or any(len(shape) < ndim or None in shape for shape in shapes):
        return sides, reduced, None
    parts = [(shape[:lead], shape[lead:]) for shape in shapes]
    if any(len({part for part in column if set(part) != {1}}) > 1 for column in zip(*parts, strict=True)):
        return sides, reduced, None
    found = [turned(side.source, lead) for side in sides]
    rest = np.broadcast_shapes(*(tuple(int(n or 0) for n in part[1]) for part in parts))
    if any(source is None for source in found):
        return sides, reduced, None
    return [Side(source, None) for source in found if source is not None], (1,), rest if len(rest) > 1 else None


def _flattened(sides: list[Side], reduced: tuple[int, ...], ndim: int) -> Arranged:
    """Leading axes taken as one, where all lies so, so that a block may hold any number of rows."""
    kept = ndim - len(reduced)
    if kept < 2 or reduced != tuple(range(kept, ndim)):
        return sides, reduced, None
    full = [side for side in sides if len(side.shape) == ndim]
    others = [side for side in sides if len(side.shape) <= len(reduced)]
    if len(full) + len(others) < len(sides) or len({side.shape[:kept] for side in full}) > 1:
        return sides, reduced, None
    flat = [side if side in others else _flat(side, kept) for side in sides]
    if any(side is None for side in flat):
        return sides, reduced, None
    outer = tuple(int(n or 0) for n in full[0].shape[:kept])
    return [side for side in flat if side is not None], tuple(range(1, 1 + len(reduced))), outer


def _flat(side: Side, axes: int) -> Side | None:
    source = side.source.flatten(axes)
    return None if source is None else Side(source, side.width)


def _truth(mask: Array, name: str) -> Array:
    """The mask as truth values; files that have none hold 0 and 1."""
    if unmasked(mask, name).dtype == bool:
        return mask
    truth: Array = mask != 0
    if not np.array_equal(truth, mask):
        raise InputError(f"{name}: a mask holds truth values, or 0 and 1")
    return truth
