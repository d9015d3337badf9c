"""What becomes, at the end of a row of float32 logits, of the tiles that had too large a share of the sums so far.

Of most of them the sums are as good as those of any other tile by then. Of the others the large cells are computed in
float64 and the rest once more as it was, or all of a tile in float64, where the rest has too large a share too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from klnumba.formulas.elementary import exp, log
from klnumba.formulas.special import exp_excess
from klnumba.kernels.compiler import helper, scalar
from klnumba.kernels.logit_quick import FELL, PLACE, SHARE, D, G, P, is_light, quick_tile, size_bits
from klnumba.kernels.logit_tiles import exact, gathered, placing
from klnumba.kernels.tiles import BUFFER, TILE

LATE = 0.25  # of the share that a cell may have, the part that one may have whose tile has waited
NONE = np.float32(-80.0)  # a logarithm whose exponential is next to nothing
ANY = np.float32(-np.inf)  # all cells are at least that
OTHERS = 2 * BUFFER  # where in the scratch the cells that are left are put, behind those that a tile may be copied to

_exp = scalar(exp)
_log = scalar(log)
_exp_excess = scalar(exp_excess)


@helper
def farthest(x: Any, y: Any, shift: Any) -> Any:
    """The largest |x - y - shift| of a tile."""
    top = np.int32(0)
    for k in range(x.size):
        top = max(top, size_bits((x[k] - y[k]) - shift))
    return np.int32(top).view(np.float32)


@helper
def parted(x: Any, y: Any, least: Any, shift: Any, work: Any, space: Any) -> Any:
    """Put the cells with x >= least into `space`, and the others into `work`, with `NONE` in their places; how many."""
    none = (NONE - shift) - np.float32(0.5)  # where p*delta and the cell are no denormal numbers, which take long
    a, b = work[OTHERS : OTHERS + x.size], work[OTHERS + BUFFER : OTHERS + BUFFER + x.size]
    marks = work[OTHERS + 2 * BUFFER :].view(np.int8)[: x.size]
    for k in range(x.size):
        a[k], b[k], marks[k] = x[k], y[k], np.int8(x[k] >= least)
    return gathered(marks, x, y, space, np.int64(0), a, b, b, NONE, none, none)


def settling(dtype: Any) -> Any:
    """(P, D, G) of the tiles that wait, at the end of a row of which the others have `mass` and `cells`, and a loss.

    What is read again has lost nothing.
    """
    place, quick = placing(dtype), quick_tile(dtype)

    @helper
    def settled(
        late: Any, mass: Any, cells: Any, p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, shift: Any,
        work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        for sums in late:
            mass, cells = mass + sums[P], cells + sums[G]
        all_mass = all_odd = all_cells = lost = 0.0
        ratio = _exp(shift)
        for sums in late:
            others, other_cells = mass - sums[P], cells - sums[G]
            if is_light(sums, others, other_cells, LATE):
                lost += sums[FELL]
            else:
                at = np.int64(sums[PLACE])
                count = min(TILE, d - at)
                x, y = place(p, o + at, q, u + at, count, shift, inverse, work, view)
                most = _exp_excess(np.float64(farthest(x, y, np.float32(shift))))  # no cell is more than p times that
                least = LATE * sums[SHARE] * min(mass, max(cells, 0.0) / most)
                n = parted(x, y, np.float32(_log(least)), np.float32(shift), work, space)
                more, c, g = exact(space, n, shift)
                x, y = view[OTHERS : OTHERS + count], view[OTHERS + BUFFER : OTHERS + BUFFER + count]
                done, _ = quick(x, y, shift, ratio, False, False, at // TILE, sums)
                if done and is_light(sums, others + more, other_cells + g, LATE):
                    sums[P], sums[D], sums[G] = sums[P] + more, sums[D] + c, sums[G] + g
                else:
                    x, y = place(p, o + at, q, u + at, count, shift, inverse, work, view)
                    parted(x, y, ANY, np.float32(shift), work, space)
                    sums[P], sums[D], sums[G] = exact(space, count, shift)
                mass, cells = others + sums[P], other_cells + sums[G]
            all_mass, all_odd, all_cells = all_mass + sums[P], all_odd + sums[D], all_cells + sums[G]
        return all_mass, all_odd, all_cells, lost

    return settled
