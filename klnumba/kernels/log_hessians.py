"""Second derivatives of a divergence by the cells of rows of log-probabilities and logits, times a direction.

The sums and the first derivatives are those of `kernels.log_slopes`; what is kept of a row is as in `kernels.hessians`.
Of a row of which one cell is nearly all, means are found to twice the digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.hessians import Bend
from klnumba.formulas.log_cells import LN2
from klnumba.formulas.slopes import Slope, times
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.hessians import centre
from klnumba.kernels.instructions import frozen
from klnumba.kernels.log_slopes import prepare_loop, refer_loop, terms_of
from klnumba.kernels.logs import SCALES, SIZE
from klnumba.kernels.slopes import unknown, write
from klnumba.kernels.tiles import BUFFER, SPARE, TILE, fill, pad

_times = scalar(times)


@part
def is_lopsided(c: Any) -> Any:
    """Whether one cell of p or of q is more than half of its row, from the logarithms of their sums over it."""
    return c[5] < LN2 or c[6] < LN2


def slopes_of(slope: Slope, normalize: bool) -> Any:
    terms = terms_of(slope, normalize)

    @part
    def slopes(xs: Any, ys: Any, c: Any, refs: Any, weight: Any, part: Any, ps: Any, qs: Any, us: Any, vs: Any) -> None:
        """The shares of a tile, and the first derivatives by them, without their means; `part` is 1/sum(p)."""
        mp, mq, inverse, tail, shift, log_p, log_q, shift_low = c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
        y_p, x_q, ratio_p, ratio_q = refs[0], refs[1], refs[2], refs[3]
        for k in range(xs.size):
            ps[k], qs[k], us[k], _, vs[k], _ = terms(
                xs[k], ys[k], mp, mq, inverse, tail, shift, log_p, log_q, shift_low, part, y_p, x_q, ratio_p, ratio_q,
                weight,
            )  # fmt: skip

    return slopes


@helper
def moves_of(moves: Any, inverse: Any, out: Any) -> None:
    """By which part of itself a share moves, before the mean is taken from it."""
    for k in range(moves.size):
        out[k] = moves[k] * inverse


def bends_of(bend: Bend, normalize: bool) -> Any:
    formula = scalar(bend.normalised if normalize else bend.plain)

    @part
    def bends(ps: Any, qs: Any, us: Any, vs: Any, parts_p: Any, parts_q: Any, weight: Any) -> None:
        """Put into the places of u and v their tangents over the shares, into those of the moves the rest."""
        for k in range(ps.size):
            p, q, part_p, part_q = ps[k], qs[k], parts_p[k], parts_q[k]
            move_p, move_q, apart = _times(p, part_p), _times(q, part_q), part_p - part_q
            du, a, dv, b = formula(
                p, q, apart, _times(p, apart), _times(q, apart), part_p, part_q, move_p - move_q, move_q - move_p,
                move_p, weight,
            )  # fmt: skip
            us[k] = part_p * us[k] + du
            vs[k] = part_q * vs[k] + dv
            parts_p[k], parts_q[k] = a, b

    return bends


@helper
def by_logarithms(shares: Any, cells: Any, rest: Any) -> None:
    """The derivatives from those over the shares."""
    for k in range(cells.size):
        cells[k] = _times(shares[k], cells[k]) + rest[k]


def rows(slope: Slope, bend: Bend, normalize: bool) -> Callable[..., None]:
    """As `kernels.hessians.rows`; the factors of rows do not know the temperature."""
    slopes, bends = slopes_of(slope, normalize), bends_of(bend, normalize)
    prepare, refer = prepare_loop(normalize), refer_loop(slope)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any, factors: Any, weight: Any,
        inverse: Any, tail: Any, dp: Any, dps: Any, dq: Any, dqs: Any, by_p: Any, by_q: Any, out_p: Any, out_q: Any,
        room: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        state = space[0:SIZE]
        c = space[8 : 8 + SCALES]
        spare = space[16 : 16 + SPARE]
        refs = space[16 + SPARE : 20 + SPARE]
        for r in index:
            sound, mass = prepare(p, a + r * ps, q, b + r * qs, d, inverse, tail, c, weight, work, view, spare, state)
            if not sound:
                unknown(r * d, d, factors[r], by_p, by_q, out_p, out_q)
                continue
            fill(refs, 0, 4, 1.0)
            if normalize:
                refer(p, a + r * ps, q, b + r * qs, d, c, refs)
            whole = 0
            for first in range(0, d, TILE):
                size = min(TILE, d - first)
                pad(q, b + r * qs + first, size, work, np.int64(BUFFER), -np.inf)
                padded = pad(p, a + r * ps + first, size, work, np.int64(0), -np.inf)
                whole = first + padded
                slopes(
                    view[0:padded], view[BUFFER : BUFFER + padded], c, refs, weight, 1.0 / mass, room[0, first:whole],
                    room[1, first:whole], room[2, first:whole], room[3, first:whole],
                )  # fmt: skip
                pad(dp, r * dps + first, size, work, np.int64(0), 0.0)
                pad(dq, r * dqs + first, size, work, np.int64(BUFFER), 0.0)
                moves_of(view[0:padded], inverse, room[4, first:whole])
                moves_of(view[BUFFER : BUFFER + padded], inverse, room[5, first:whole])
            cells_p, cells_q, us, vs = room[0, 0:whole], room[1, 0:whole], room[2, 0:whole], room[3, 0:whole]
            parts_p, parts_q = room[4, 0:whole], room[5, 0:whole]
            turns = (2 if is_lopsided(c) else 1) if normalize else 0
            for _ in range(turns):
                centre(parts_p, cells_p, 1.0, work, view, state)
                centre(parts_q, cells_q, 1.0, work, view, state)
                centre(us, cells_p, 1.0, work, view, state)
                centre(vs, cells_q, 1.0, work, view, state)
            bends(cells_p, cells_q, us, vs, parts_p, parts_q, weight)
            for _ in range(turns):
                centre(us, cells_p, 1.0, work, view, state)
                centre(vs, cells_q, 1.0, work, view, state)
            by_logarithms(cells_p, us, parts_p)
            by_logarithms(cells_q, vs, parts_q)
            factor = factors[r] * inverse
            if by_p:
                write(frozen(us), 0, d, factor, 1.0, out_p, r * d)
            if by_q:
                write(frozen(vs), 0, d, factor, 1.0, out_q, r * d)

    return loop
