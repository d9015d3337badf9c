"""Derivatives of a divergence by the cells of rows of log-probabilities and logits.

As in `kernels.logs`, a first read takes the largest cells and a second the sums, from which the ratio of the
normalisers is right. Then come the means of the derivatives, which normalising subtracts, and what is written.
Means that are near to a bound are taken once more, less the bound.
Where one cell is nearly all of its row, its derivative is what the others leave: so a further read finds what the
means lack to twice the digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.log_cells import no_cell
from klnumba.formulas.slopes import Slope, times
from klnumba.kernels.compiler import part, scalar
from klnumba.kernels.logs import SCALES, SIZE, arguments, barred, sharpen, sweep_loop, top_of
from klnumba.kernels.slopes import keep, mean_of, unknown
from klnumba.kernels.tiles import BUFFER, SPARE, TILE, add, pad, total

# The reads of a row: for the means, for those that are to be less their bounds, for what the means lack, and the one
# that writes.
MEANS, BOUNDED, LACK, LAST = 0, 1, 2, 3
_times = scalar(times)


def slope_of(slope: Slope, normalize: bool) -> Any:
    formula = scalar(slope.normalised if normalize else slope.plain)

    @part
    def cell(
        x: Any, y: Any, mp: Any, mq: Any, inverse: Any, tail: Any, shift: Any, log_p: Any, log_q: Any, shift_low: Any,
        part: Any, mean_p: Any, mean_q: Any, rest_p: Any, rest_q: Any, weight: Any, near_p: Any, near_q: Any,
    ) -> Any:  # fmt: skip
        """The derivatives by two logarithms, less their means; `part` is one over the sum of p."""
        pk, qk, dk, _, delta, nu, nv = arguments(x, y, mp, mq, inverse, tail, shift, log_p, log_q, shift_low)
        pk, qk, dk = pk * part, qk * part, dk * part
        u, above_p, v, above_q = formula(pk, qk, dk, delta, nu, nv, dk, -dk, pk, weight, near_p, near_q)
        return _times(pk, (u - mean_p) - rest_p) + above_p, _times(qk, (v - mean_q) - rest_q) + above_q

    return cell


@part
def is_apart(mass: Any, gap: Any) -> Any:
    """Whether the sum of q, over the largest cells, has lost digits as a difference: a second look finds all."""
    return abs(gap) > 0.5 * mass


@part
def is_lopsided(mass: Any, gap: Any) -> Any:
    """Whether one cell of p or of q is more than half of its row, from the sums over the largest cells."""
    return mass < 2.0 or mass + gap < 2.0


@part
def is_near(mean: Any, bound: Any) -> Any:
    """Whether a mean is so near to its bound that less of it says more."""
    return mean > 0.5 * bound


@part
def after(read: Any, near: Any, lopsided: Any) -> Any:
    """The read that comes next; `near` tells whether a mean is near its bound."""
    if read == MEANS and near:
        return BOUNDED
    return LACK if read < LACK and lopsided else LAST


@part
def take(read: Any, state: Any, limits: Any, means: Any) -> None:
    """Put what a read found into the means of p and q, into what these lack, or that they are near their bounds."""
    for k in range(2):
        found = mean_of(state[2 * k], state[2 * k + 1])
        if read == LACK:
            means[2 + k] = found
        elif read == MEANS and is_near(found, limits[k]):
            means[4 + k] = 1.0
        elif read == MEANS or means[4 + k] != 0.0:
            means[k] = found


def prepare_loop(normalize: bool) -> Any:
    masses = sweep_loop(no_cell, largest=False)

    @part
    def prepare(
        p: Any, a: Any, q: Any, b: Any, d: Any, inverse: Any, tail: Any, c: Any, weight: Any, work: Any, view: Any,
        spare: Any, state: Any,
    ) -> Any:  # fmt: skip
        """Put the numbers of a row into `c`; whether it is one of distributions, the sum of p, and `is_lopsided`."""
        c[0] = top_of(p, a, d, spare)
        c[1] = top_of(q, b, d, spare)
        c[2], c[3], c[4], c[5], c[6], c[7] = inverse, tail, 0.0, 0.0, 0.0, 0.0
        whole, lopsided = 1.0, False
        sound = not barred(c, normalize)
        if sound and normalize:
            masses(p, a, q, b, d, c, weight, work, view, state)
            whole, gap = state[2] + state[3], state[4] + state[5]
            sharpen(c, whole, gap)
            lopsided = is_lopsided(whole, gap)
            if is_apart(whole, gap):
                masses(p, a, q, b, d, c, weight, work, view, state)
                sharpen(c, state[2] + state[3], state[4] + state[5])
            sound = whole == whole and c[4] == c[4]
        return sound, whole, lopsided

    return prepare


def rows(slope: Slope, normalize: bool) -> Callable[..., None]:
    """As `kernels.slopes.rows`; the factors of rows do not know the temperature."""
    cell, prepare, bounds = slope_of(slope, normalize), prepare_loop(normalize), scalar(slope.bounds)
    centred_p, centred_q = slope.centred if normalize else (False, False)

    @part
    def sweep(xs: Any, ys: Any, us: Any, vs: Any, c: Any, weight: Any, means: Any, part: Any) -> None:
        """The derivatives of the cells of a tile."""
        mp, mq, inverse, tail, shift, log_p, log_q, shift_low = c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
        mean_p, mean_q, rest_p, rest_q = means[0], means[1], means[2], means[3]
        near_p, near_q = means[4] != 0.0, means[5] != 0.0
        for k in range(xs.size):
            us[k], vs[k] = cell(
                xs[k], ys[k], mp, mq, inverse, tail, shift, log_p, log_q, shift_low, part, mean_p, mean_q, rest_p,
                rest_q, weight, near_p, near_q,
            )  # fmt: skip

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any, factors: Any, weight: Any,
        inverse: Any, tail: Any, by_p: Any, by_q: Any, out_p: Any, out_q: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        state = space[0:SIZE]
        c = space[8 : 8 + SCALES]
        spare = space[16 : 16 + SPARE]
        means = space[16 + SPARE : 22 + SPARE]  # of both sides, what these lack, and whether they are less their bounds
        limits = bounds(weight)
        centred = (by_p and centred_p) or (by_q and centred_q)
        for r in index:
            for k in range(6):
                means[k] = 0.0
            sound, whole, lopsided = prepare(
                p, a + r * ps, q, b + r * qs, d, inverse, tail, c, weight, work, view, spare, state
            )
            if not sound:
                unknown(r * d, d, factors[r], by_p, by_q, out_p, out_q)
                continue
            factor = factors[r] * inverse
            read = MEANS if centred else LAST
            while True:
                for k in range(4):
                    state[k] = 0.0
                for first in range(0, d, TILE):
                    size = min(TILE, d - first)
                    pad(q, b + r * qs + first, size, work, np.int64(BUFFER), -np.inf)
                    padded = pad(p, a + r * ps + first, size, work, np.int64(0), -np.inf)
                    sweep(
                        view[0:padded], view[BUFFER : BUFFER + padded], work[2 * BUFFER : 2 * BUFFER + padded],
                        work[3 * BUFFER : 3 * BUFFER + padded], c, weight, means, 1.0 / whole,
                    )  # fmt: skip
                    if read == LAST:
                        keep(0, size, r * d + first, factor, 1.0, factor, 1.0, by_p, by_q, out_p, out_q, view)
                    else:
                        add(state, np.int64(0), total(view, np.int64(2 * BUFFER), padded))
                        add(state, np.int64(2), total(view, np.int64(3 * BUFFER), padded))
                if read == LAST:
                    break
                take(read, state, limits, means)
                read = after(read, means[4] + means[5] > 0.0, lopsided)

    return loop
