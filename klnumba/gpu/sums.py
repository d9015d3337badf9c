"""The sum of many numbers on a device, in an order that their count decides."""

from __future__ import annotations

import math
from typing import Any

from klnumba.gpu.place import Place


def pieces(cells: int) -> int:
    """How many partial sums the first read leaves."""
    from klnumba.kernels.cuda import flat

    return max(1, math.ceil(cells / flat.CELLS_OF_A_SUM))


def whole(hi: Any, lo: Any, count: int, over: float, place: Place, out: Any) -> None:
    """out[0] = the sum of `count` double-doubles, over a number."""
    from klnumba.kernels.cuda import flat

    while count > 1:
        count = pieces(count)
        above, below = place.room(count, "float64"), place.room(count, "float64")
        place.launch(flat.partial_sums(False), count, 1, flat.THREADS, hi, lo, above, below)
        hi, lo = above, below
    place.launch(flat.quotient(), 1, 1, flat.THREADS, hi, lo, over, out)
