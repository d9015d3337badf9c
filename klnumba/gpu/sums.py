"""The sum of many numbers on a device, exact and rounded once, as on the CPU."""

from __future__ import annotations

from typing import Any

from klnumba.gpu.place import Place


def whole(kernel: Any, x: Any, xs: int, y: Any, ys: int, count: int, over: int, place: Place, out: Any) -> None:
    """out[0] = the sum of what a kernel of `kernels.cuda.sums` adds up, over an integer."""
    from klnumba.kernels.cuda import flat, sums

    state = place.room(sums.STATE, "int64")
    place.over_cells(flat.filled(), sums.STATE, 0, state)
    place.launch(kernel, count, sums.CELLS, flat.THREADS, x, xs, y, ys, count, over, state, out)
