"""Derivatives by logits of p of what is a mean over p of most rows, in as few operations as they take.

With f the numbers whose mean it is, the derivative by a logit is p*(f - sum(p*f))/T: a constant in f goes away, and
with it the normalisers. So rows are flagged, for the loops of `kernels.log_slopes`, whose derivatives are small beside
the numbers that they are differences of.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.logit_cells import power
from klnumba.formulas.slopes import times
from klnumba.kernels.compiler import frozen, part, scalar
from klnumba.kernels.fast import sums
from klnumba.kernels.logs import top_of
from klnumba.kernels.rises import KEPT, PLACE, beside_tops, is_finite, largest, largest_of_few
from klnumba.kernels.slopes import write
from klnumba.kernels.tiles import BUFFER, SMALL, TILE, TREE, add, fill, pad, padded, total

# How small the largest derivative may be beside what its errors weigh: float32 results hold more, computed in float64.
LEAST = {np.dtype(np.float64): 2.0**-4, np.dtype(np.float32): 2.0**-22}
FAR = -1e280  # a logarithm below may outweigh a share that is no float any more

_power, _times = scalar(power), scalar(times)


def terms_of(meant: Callable[..., Any]) -> Any:
    formula = scalar(meant)

    @part
    def terms(x: Any, y: Any, mp: Any, mq: Any, inverse: Any) -> Any:
        """Of a cell: its share of p and f, up to their constants, their product, and how much of its errors weighs.

        That of f is as large as the difference of two logarithms, and the rounding of a power's argument weighs as much
        as that is large. It is infinite where the row's value may be, or is none.
        """
        t, v, gap = (x - mp) * inverse, (y - mq) * inverse, x - y
        share, f = _power(t), formula(t, v, (gap - (mp - mq)) * inverse)
        size = _times(share, (abs(gap) * inverse + abs(f)) * max(1.0, 0.5 * abs(t)))
        odd = y != y or (v < FAR and x > -math.inf)
        return share, f, _times(share, f), math.inf if odd else size

    return terms


@part
def is_sound(top: Any, largest: Any, total: Any, one: Any, mean: Any, least: Any) -> Any:
    """Whether the largest derivative is not small beside the errors: of one cell, and of the mean.

    The largest share is `one`, by which that of the mean is multiplied.
    """
    return top >= least * one * (largest + one * total) and abs(mean) < math.inf


def long_rows(meant: Callable[..., Any], kind: Any) -> Callable[..., None]:
    """Rows of logarithms, normalised. What up to `KEPT` cells say is in the cache when the sums are known."""
    least, terms = LEAST[kind], terms_of(meant)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, rows: Any, d: Any, factors: Any, inverse: Any, out: Any,
        flag: Any, powers: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        state, tree, lanes = space[0:6], space[16 : 16 + TREE], space[16 + TREE : 16 + TREE + SMALL]
        kept = frozen(powers)
        for r in range(rows):
            mp, mq = top_of(p, a + r * ps, d, tree), top_of(q, b + r * qs, d, tree)
            flag[r] = True
            if not is_finite(mp, mq):
                continue
            for k in range(6):
                state[k] = 0.0
            one, mean, top, size = 1.0, 0.0, 0.0, 0.0
            for turn in range(2):
                for first in range(0, d, TILE):
                    cells, at = min(TILE, d - first), first if d <= KEPT else 0
                    count = padded(cells)
                    us, fs = powers[at : at + count], powers[PLACE + at : PLACE + at + count]
                    if turn == 0 or d > KEPT:
                        pad(q, b + r * qs + first, cells, work, np.int64(BUFFER), -np.inf)
                        pad(p, a + r * ps + first, cells, work, np.int64(0), -np.inf)
                        xs, ys = view[0:count], view[BUFFER : BUFFER + count]
                        gs, sizes = work[2 * BUFFER : 2 * BUFFER + count], work[3 * BUFFER : 3 * BUFFER + count]
                        for k in range(count):
                            us[k], fs[k], gs[k], sizes[k] = terms(xs[k], ys[k], mp, mq, inverse)
                    if turn == 0:
                        add(state, np.int64(0), total(kept, at, count, tree))
                        add(state, np.int64(2), total(view, np.int64(2 * BUFFER), count, tree))
                        add(state, np.int64(4), total(view, np.int64(3 * BUFFER), count, tree))
                        size = largest(view[3 * BUFFER : 3 * BUFFER + count], lanes, size)
                    else:
                        ds = work[4 * BUFFER : 4 * BUFFER + count]
                        for k in range(count):
                            ds[k] = _times(us[k], fs[k] - mean) * one
                        top = largest(view[4 * BUFFER : 4 * BUFFER + count], lanes, top)
                        write(view, np.int64(4 * BUFFER), cells, factors[r] * inverse, out, r * d + first)
                one = 1.0 / (state[0] + state[1])
                mean = (state[2] + state[3]) * one
            flag[r] = not is_sound(top, size, state[4] + state[5], one, mean, least)

    return loop


def short_rows(meant: Callable[..., Any], kind: Any) -> Callable[..., None]:
    """The same of a few cells, many rows at a time."""
    least, terms = LEAST[kind], terms_of(meant)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, rows: Any, d: Any, factors: Any, inverse: Any, out: Any,
        flag: Any, powers: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        kept, most = frozen(powers), TILE // d
        for begin in range(0, rows, most):
            count = min(most, rows - begin)
            whole = beside_tops(p, a + begin * ps, ps, q, b + begin * qs, qs, count, d, work, view, space)
            tops_p, tops_q = space[0:whole], space[BUFFER : BUFFER + whole]
            parts, means = space[2 * BUFFER : 2 * BUFFER + whole], space[3 * BUFFER : 3 * BUFFER + whole]
            xs, ys = view[0:whole], view[BUFFER : BUFFER + whole]
            us, gs = work[2 * BUFFER : 2 * BUFFER + whole], work[3 * BUFFER : 3 * BUFFER + whole]
            sizes = work[4 * BUFFER : 4 * BUFFER + whole]
            fs, ds = powers[0:whole], powers[PLACE : PLACE + whole]
            for k in range(whole):
                us[k], fs[k], gs[k], sizes[k] = terms(xs[k], ys[k], tops_p[k], tops_q[k], inverse)
            for k in range(3):
                found = space[4 * BUFFER + k * TILE : 4 * BUFFER + (k + 1) * TILE]
                sums(view, (2 + k) * BUFFER, count, d, found)
            for r in range(count):
                one = 1.0 / space[4 * BUFFER + r]
                fill(space, 2 * BUFFER + r * d, d, one)
                fill(space, 3 * BUFFER + r * d, d, space[4 * BUFFER + TILE + r] * one)
            for k in range(whole):
                ds[k] = _times(us[k], fs[k] - means[k]) * parts[k]
            for r in range(count):
                i, at = begin + r, r * d
                top = largest_of_few(kept[PLACE + at : PLACE + at + d])
                size = largest_of_few(view[4 * BUFFER + at : 4 * BUFFER + at + d])
                sound = is_finite(tops_p[at], tops_q[at])
                total_size = space[4 * BUFFER + 2 * TILE + r]
                flag[i] = not (sound and is_sound(top, size, total_size, parts[at], means[at], least))
                write(kept, PLACE + at, d, factors[i] * inverse, out, i * d)

    return loop
