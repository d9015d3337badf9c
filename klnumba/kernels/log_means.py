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
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.fast import sums
from klnumba.kernels.instructions import frozen
from klnumba.kernels.logs import top_of
from klnumba.kernels.rises import KEPT, beside_tops, is_finite, is_seen, largest, largest_of_few, shows
from klnumba.kernels.tiles import BUFFER, SMALL, SPACE, SPARE, STEP, TILE, add, fill, pad, total

# How small the largest derivative may be beside what its errors weigh: float32 results hold more, computed in float64.
LEAST = {np.dtype(np.float64): 2.0**-4, np.dtype(np.float32): 2.0**-22}
GS, SIZES = TILE, TILE + BUFFER  # where the products and the sizes of the cells of a tile lie in `space`
assert SIZES + BUFFER <= SPACE
LOST = -760.0  # a logarithm above may be that of a share whose derivative is a number, though it is none itself
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
        odd = y != y or (v < FAR and x > -math.inf) or (share == 0.0 and t > LOST)
        return share, f, _times(share, f), math.inf if odd else size

    return terms


@part
def bar(largest: Any, total: Any, one: Any, mean: Any, least: Any) -> Any:
    """How large one derivative must be, so as not to be small beside the errors: of one cell, and of the mean.

    The largest share is `one`, by which that of the mean is multiplied. It is NaN where there is no mean.
    """
    return least * one * (largest + one * total) if abs(mean) < math.inf else math.nan


@helper
def deviations(us: Any, fs: Any, mean: Any, one: Any, factor: Any, least: Any, out: Any) -> Any:
    """The shares times what is above the mean, times a factor; whether one is at least so large before that."""
    seen = 0
    for k in range(out.size):
        value = _times(us[k], fs[k] - mean) * one
        out[k] = _times(factor, value)
        seen |= 1 if shows(value, least) else 0
    return seen != 0


def long_rows(meant: Callable[..., Any], kind: Any) -> Callable[..., None]:
    """Rows of logarithms, normalised. What up to `KEPT` cells say is there when the sums are known."""
    least, terms = LEAST[kind], terms_of(meant)

    @helper
    def terms_into(
        xs: Any, ys: Any, mp: Any, mq: Any, inverse: Any, us: Any, fs: Any, gs: Any, sizes: Any
    ) -> None:  # fmt: skip
        for k in range(xs.size):
            us[k], fs[k], gs[k], sizes[k] = terms(np.float64(xs[k]), np.float64(ys[k]), mp, mq, inverse)

    @part
    def tile(
        p: Any, a: Any, q: Any, b: Any, count: Any, mp: Any, mq: Any, inverse: Any, powers: Any, at: Any, space: Any,
        work: Any, view: Any,
    ) -> Any:  # fmt: skip
        """What `count` cells say, from `at` on in both halves of `powers` and from `GS` and `SIZES` on; padded."""
        whole = count // STEP * STEP
        us, fs, gs, sizes = powers[at:], powers[powers.size // 2 + at :], space[GS:], space[SIZES:]
        terms_into(p[a : a + whole], q[b : b + whole], mp, mq, inverse, us, fs, gs, sizes)
        if whole == count:
            return whole
        more = pad(p, a + whole, count - whole, work, np.int64(0), -np.inf)
        pad(q, b + whole, count - whole, work, np.int64(STEP), -np.inf)
        xs, ys = view[0:more], view[STEP : STEP + more]
        terms_into(xs, ys, mp, mq, inverse, us[whole:], fs[whole:], gs[whole:], sizes[whole:])
        return whole + more

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, rows: Any, d: Any, factors: Any, inverse: Any, out: Any,
        flag: Any, powers: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        state, spare, lanes = space[0:6], space[16 : 16 + SPARE], space[16 + SPARE : 16 + SPARE + SMALL]
        kept, half, sums_of = frozen(powers), powers.size // 2, frozen(space)
        for r in range(rows):
            mp, mq = top_of(p, a + r * ps, d, spare), top_of(q, b + r * qs, d, spare)
            flag[r] = True
            if not is_finite(mp, mq):
                continue
            for k in range(6):
                state[k] = 0.0
            one, mean, size, enough, seen = 1.0, 0.0, 0.0, 0.0, False
            for turn in range(2):
                for first in range(0, d, TILE):
                    cells, at = min(TILE, d - first), first if d <= KEPT else 0
                    if turn == 0 or d > KEPT:
                        count = tile(
                            p, a + r * ps + first, q, b + r * qs + first, cells, mp, mq, inverse, powers, at, space,
                            work, view,
                        )  # fmt: skip
                    if turn == 0:
                        add(state, np.int64(0), total(kept, at, count))
                        add(state, np.int64(2), total(sums_of, np.int64(GS), count))
                        add(state, np.int64(4), total(sums_of, np.int64(SIZES), count))
                        size = largest(sums_of[SIZES : SIZES + count], lanes, size)
                    else:
                        us, fs = kept[at : at + cells], kept[half + at : half + at + cells]
                        place = out[r * d + first : r * d + first + cells]
                        seen |= deviations(us, fs, mean, one, factors[r] * inverse, enough, place)
                one = 1.0 / (state[0] + state[1])
                mean = (state[2] + state[3]) * one
                enough = bar(size, state[4] + state[5], one, mean, least)
            flag[r] = not seen

    return loop


def short_rows(meant: Callable[..., Any], kind: Any) -> Callable[..., None]:
    """The same of a few cells, many rows at a time."""
    least, terms = LEAST[kind], terms_of(meant)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, rows: Any, d: Any, factors: Any, inverse: Any, out: Any,
        flag: Any, powers: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        most, half = TILE // d, powers.size // 2
        for begin in range(0, rows, most):
            count = min(most, rows - begin)
            whole = beside_tops(p, a + begin * ps, ps, q, b + begin * qs, qs, count, d, work, view, space)
            tops_p, tops_q = space[0:whole], space[BUFFER : BUFFER + whole]
            parts, means = space[2 * BUFFER : 2 * BUFFER + whole], space[3 * BUFFER : 3 * BUFFER + whole]
            xs, ys = view[0:whole], view[BUFFER : BUFFER + whole]
            us, gs = work[2 * BUFFER : 2 * BUFFER + whole], work[3 * BUFFER : 3 * BUFFER + whole]
            sizes, place = work[4 * BUFFER : 4 * BUFFER + whole], out[begin * d : (begin + count) * d]
            fs, ds = powers[0:whole], powers[half : half + whole]
            for k in range(whole):
                us[k], fs[k], gs[k], sizes[k] = terms(xs[k], ys[k], tops_p[k], tops_q[k], inverse)
            for k in range(3):
                found = space[4 * BUFFER + k * TILE : 4 * BUFFER + (k + 1) * TILE]
                sums(view, (2 + k) * BUFFER, count, d, found)
            for r in range(count):
                one = 1.0 / space[4 * BUFFER + r]
                flag[begin + r] = not is_finite(tops_p[r * d], tops_q[r * d])
                fill(space, r * d, d, factors[begin + r] * inverse)
                fill(space, 2 * BUFFER + r * d, d, one)
                fill(space, 3 * BUFFER + r * d, d, space[4 * BUFFER + TILE + r] * one)
            for k in range(whole):
                ds[k] = _times(us[k], fs[k] - means[k]) * parts[k]
            for k in range(place.size):
                place[k] = _times(tops_p[k], ds[k])
            for r in range(count):
                at = r * d
                size = largest_of_few(view[4 * BUFFER + at : 4 * BUFFER + at + d])
                enough = bar(size, space[4 * BUFFER + 2 * TILE + r], parts[at], means[at], least)
                flag[begin + r] |= not is_seen(ds[at : at + d], enough)

    return loop
