"""Rows of numbers that have a quick form: one of their cells, which are added up, and one of the sums.

The cells of many rows lie side by side, so that short rows too are computed in packed instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from klnumba.formulas.elementary import two_sum
from klnumba.kernels.compiler import helper, once, uncontracted
from klnumba.kernels.compiler import loop as compiled
from klnumba.kernels.tiles import INT, VALUES, cells_of

GROUP = 512  # cells that are computed together, unless one row is longer
RUN = 32  # cells that are added up in order; the sums of the runs keep their rounding errors
SUMS = 4  # numbers that are kept of a row

together: Any = uncontracted(two_sum)


def room_for(width: int) -> int:
    """The numbers that `loop` writes to, for rows of so many cells."""
    return (1 + SUMS) * max(GROUP, width)


@helper
def _add(total: Any, low: Any, more: Any) -> Any:
    total, lost = together(total, more)
    return total, low + lost


@helper
def _sums(a: Any, c: Any, values: Any) -> Any:
    """The sums of a row of a, of c, of c - a and of values."""
    s = t = gap = whole = 0.0
    s_low = t_low = gap_low = whole_low = 0.0
    for start in range(0, a.size, RUN):
        u = v = w = x = 0.0
        for k in range(start, min(start + RUN, a.size)):
            u += a[k]
            v += c[k]
            w += c[k] - a[k]
            x += values[k]
        s, s_low = _add(s, s_low, u)
        t, t_low = _add(t, t_low, v)
        gap, gap_low = _add(gap, gap_low, w)
        whole, whole_low = _add(whole, whole_low, x)
    return s + s_low, t + t_low, gap + gap_low, whole + whole_low


def loop(cell: Callable[..., Any], whole: Callable[..., Any]) -> Any:
    """From two columns of rows of one width, side by side, to a result a row, NaN where the forms do not serve.

    ``cell(a, c)`` and ``whole(sum of a, sum of c, sum of c - a, sum of cells)`` give a value and whether it serves.
    """
    cell, whole = uncontracted(cell), uncontracted(whole)

    @helper
    def quick_rows(columns: Any, widths: Any, out: Any, room: Any) -> None:
        width = widths[0]
        group = max(np.int64(GROUP), width)
        per = group // width
        for first in range(0, out.size, per):
            made = out[first : first + per]
            a = columns[0][first * width : (first + made.size) * width]
            c = columns[1][first * width : (first + made.size) * width]
            values, sums = room[: a.size], room[group:]
            for k in range(a.size):
                value, serves = cell(a[k], c[k])
                values[k] = value if serves else np.nan
            for row in range(made.size):
                start, stop = row * width, (row + 1) * width
                found = _sums(a[start:stop], c[start:stop], values[start:stop])
                for i in range(SUMS):
                    sums[i * group + row] = found[i]
            for row in range(made.size):
                value, serves = whole(sums[row], sums[group + row], sums[2 * group + row], sums[3 * group + row])
                made[row] = value if serves else np.nan

    return quick_rows


def of_others(rows: Any, width: Any, out: Any) -> None:
    """For every cell the sum of the other cells of its row: of those before it, and of those after it."""
    for first in range(0, out.size, width):
        before = after = 0.0
        cells, sums = rows[first : first + width], out[first : first + width]
        for k in range(width):
            sums[k] = before
            before += cells[k]
        for k in range(width):
            sums[width - 1 - k] += after
            after += cells[width - 1 - k]


@once
def sums_of_others() -> Any:
    """That as a compiled loop."""
    return compiled("sums-of-others", of_others, types.void(cells_of(np.dtype(np.float64)), INT, VALUES))
