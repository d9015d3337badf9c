"""Where the largest cell of a row is."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from klnumba.kernels.cuda.cells import reader
from klnumba.kernels.cuda.target import WARP, cuda, exchange, piece
from klnumba.kernels.cuda.team import Team

AGREE = "argmax_agree"  # the statistic, as `klnumba.engine` names it


@piece
def ahead(x: Any, at: Any, y: Any, other: Any) -> Any:
    """The larger of two cells with its place; of equal ones the first; a NaN comes before all."""
    wins = (y > x) | ((y == x) & (other < at)) | ((y != y) & (x == x))
    return (y, other) if wins else (x, at)


@functools.cache
def first_largest(store: str, together: Team, logarithms: bool, normalize: bool) -> tuple[Any, Any, Any, int]:
    """(the first largest cell of a row with its place, the first largest of what the team's threads hold, whether that
    of a row is one of a distribution, the room). A negative probability counts as NaN.
    """
    one, width = reader(store).one, together.width
    lowest = -math.inf if logarithms else 0.0
    inside = min(width, WARP)
    steps, warps = inside.bit_length() - 1, width // inside

    @piece
    def of_team(x: Any, at: Any, lane: Any, room: Any) -> Any:
        for step in range(steps):
            y, other = exchange(x, 1 << step, room), exchange(at, 1 << step, room)
            x, at = ahead(x, at, y, other)
        if warps > 1:
            if lane % inside == 0:
                room[2 * (lane // inside)], room[2 * (lane // inside) + 1] = x, at
            cuda.syncthreads()
            for k in range(warps):
                x, at = ahead(x, at, room[2 * k], room[2 * k + 1])
            cuda.syncthreads()
        return x, at

    @piece
    def found(source: Any, start: Any, d: Any, lane: Any, room: Any) -> Any:
        x, at = -math.inf, np.float64(d)
        for k in range(lane, d, width):
            cell = np.float64(one(source, start + k))
            x, at = ahead(x, at, math.nan if cell < lowest else cell, np.float64(k))
        return of_team(x, at, lane, room)

    @piece
    def has_mass(top: Any) -> Any:
        return top < math.inf and (top > lowest or not normalize)

    return found, of_team, has_mass, max(together.size, 2 * warps)
