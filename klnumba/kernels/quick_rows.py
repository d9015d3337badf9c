"""What the quick loops of probabilities are built of: for each divergence its cells, and how their sums become a value.

KL adds up one number of each cell (`kernels.fast`), the others two (`kernels.fast_pairs`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from klnumba.formulas import finish, row_cells
from klnumba.kernels import fast, fast_pairs, fast_plain, infinite

ALIKE = {"float64": 2.0**-27, "float32": 2.0**-13}  # how far the masses of two rows may differ in the quick loop of JS


class Quick(Protocol):
    """Loops to be compiled, of rows of a dtype, and what the pieces of one long row need outside of them."""

    @property
    def sums(self) -> int:
        """So many are added up."""

    def rows(self, kind: Any, short: bool, normalize: bool) -> Callable[..., Any]:
        """Rows in one read; a flagged row is for the next two or, taken as it is, for the exact loop."""

    def scaled(self, kind: Any, short: bool) -> Callable[..., None]:
        """Listed rows, one of which is scaled first; a flagged row is for the exact loop."""

    def pieces(self, kind: Any, normalize: bool) -> Callable[..., None]:
        """Pieces of one long row in one read."""

    def scaled_pieces(self, kind: Any) -> Callable[..., None]:
        """The same in float64, one side scaled first."""

    def finish(self, kind: Any, normalize: bool) -> tuple[Callable[..., float], float]:
        """What becomes of the sums of a row, and the `floor` that it takes."""

    @property
    def scale(self) -> Callable[[float, float], float]:
        """What one side is scaled by, from the sums of both."""

    @property
    def scaled_finish(self) -> Callable[..., float]:
        """What becomes of the sums then."""


class Kl:
    """KL. Of rows taken as they are the differences p - q are added up in the place of p and q."""

    sums = fast.SUMS
    scale = staticmethod(finish.to_mass_of_p)
    scaled_finish = staticmethod(finish.kl_finish_scaled)

    @staticmethod
    def _cell(kind: Any) -> Callable[..., Any]:
        return row_cells.kl_cell if kind == np.float64 else row_cells.kl_cell_f32

    @staticmethod
    def _pair(normalize: bool) -> Callable[..., Any]:
        return finish.masses if normalize else finish.differences

    def rows(self, kind: Any, short: bool, normalize: bool) -> Callable[..., Any]:
        if short:
            cell = row_cells.kl_cell
            return fast.short_rows(cell, finish.kl_finish) if normalize else fast_plain.short_rows(cell)
        last, _ = self.finish(kind, normalize)
        return fast.long_rows(self._cell(kind), last, kind, self._pair(normalize))

    def scaled(self, kind: Any, short: bool) -> Callable[..., None]:
        if short:
            return fast.scaled_short(row_cells.kl_cell_scaled, finish.kl_finish_scaled)
        return fast.scaled_long(row_cells.kl_cell_scaled, finish.kl_finish_scaled, kind)

    def pieces(self, kind: Any, normalize: bool) -> Callable[..., None]:
        return fast.pieces(self._cell(kind), kind, kind.type, self._pair(normalize))

    def scaled_pieces(self, kind: Any) -> Callable[..., None]:
        return fast.pieces(row_cells.kl_cell_scaled, kind, np.float64)

    def finish(self, kind: Any, normalize: bool) -> tuple[Callable[..., float], float]:
        if normalize:
            return finish.kl_finish, fast.constants(kind)[2]
        return finish.kl_finish_difference, fast.plain_floor(kind)


@dataclass(frozen=True)
class Pair:
    """A divergence by its cells, of which two numbers are added up, and by what becomes of the sums."""

    cells: Callable[..., Any]
    cells_f32: Callable[..., Any]
    unfit: Callable[..., bool]
    infinite: Callable[..., bool]
    normalized: Callable[[str], Callable[..., float]]
    plain: Callable[..., float]
    scaled_cells: Callable[..., Any]
    scaled_unfit: Callable[..., bool]
    scale: Callable[[float, float], float]
    scaled_finish: Callable[..., float]
    alike: dict[str, float] | None = None
    sharp: bool = False

    sums = fast_pairs.SUMS

    def _cells(self, kind: Any) -> Callable[..., Any]:
        return self.cells if kind == np.float64 else self.cells_f32

    def rows(self, kind: Any, short: bool, normalize: bool) -> Callable[..., Any]:
        last, _ = self.finish(kind, normalize)
        if not short:
            return fast_pairs.long_rows(self._cells(kind), last, self.infinite, kind)
        alike = self.alike[kind.name] if self.alike and normalize else None
        sharp = self.sharp and normalize
        return fast_pairs.short_rows(self.cells, last, self.unfit, self.infinite, alike, sharp=sharp)

    def scaled(self, kind: Any, short: bool) -> Callable[..., None]:
        cells, last, scale = self.scaled_cells, self.scaled_finish, self.scale
        if short:
            return fast_pairs.scaled_short(cells, last, scale, self.scaled_unfit, sharp=self.sharp)
        return fast_pairs.scaled_long(cells, last, scale, kind)

    def pieces(self, kind: Any, normalize: bool) -> Callable[..., None]:
        return fast_pairs.pieces(self._cells(kind), kind, kind.type)

    def scaled_pieces(self, kind: Any) -> Callable[..., None]:
        return fast_pairs.pieces(self.scaled_cells, kind, np.float64)

    def finish(self, kind: Any, normalize: bool) -> tuple[Callable[..., float], float]:
        return self.normalized(kind.name) if normalize else self.plain, fast.constants(kind)[2]


QUICK: dict[str, Quick] = {
    "kl": Kl(),
    "js": Pair(
        row_cells.js_cells, row_cells.js_cells_f32, row_cells.js_unfit, infinite.never,
        lambda dtype: finish.js_finish(ALIKE[dtype]), finish.js_finish_plain,
        row_cells.js_cells_scaled, row_cells.js_unfit_scaled, finish.to_larger_mass, finish.js_finish_scaled,
        alike=ALIKE,
    ),
    "jeffreys": Pair(
        row_cells.jeffreys_cells, row_cells.jeffreys_cells_f32, row_cells.jeffreys_unfit,
        infinite.is_infinite_either_way, lambda dtype: finish.jeffreys_finish, finish.jeffreys_finish_plain,
        row_cells.jeffreys_cells_scaled, row_cells.jeffreys_unfit_scaled, finish.to_larger_mass,
        finish.jeffreys_finish_scaled,
    ),
    "cross_entropy": Pair(
        row_cells.cross_entropy_cells, row_cells.cross_entropy_cells_f32, row_cells.kl_unfit, infinite.is_infinite,
        lambda dtype: finish.cross_entropy_finish, finish.cross_entropy_finish_plain,
        row_cells.cross_entropy_cells_scaled, row_cells.kl_unfit_scaled, finish.to_one,
        finish.cross_entropy_finish_scaled,
        sharp=True,
    ),
}  # fmt: skip
