"""Derivatives of a divergence by the cells of rows of log-probabilities and logits.

As in `kernels.logs`, a first read takes the largest cells and a second the sums, from which the ratio of the
normalisers is right. Then come the means of the derivatives, which normalising subtracts, and what is written.

From all cells alike may be subtracted what one of them has, and it is the cell of the largest share: so its own
derivative, which may be what the others leave, is their mean, formed without cancellation, and no error of another is
large beside its derivative or beside the largest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.log_cells import LN2, no_cell, relative, remainder
from klnumba.formulas.slopes import Slope, times
from klnumba.kernels.compiler import as_written, helper, part, scalar
from klnumba.kernels.logs import SCALES, SIZE, arguments, barred, sharpen, sweep_loop, top_of
from klnumba.kernels.slopes import keep, mean_of, unknown
from klnumba.kernels.tiles import BUFFER, SPARE, TILE, add, fill, pad, total

_times, _relative, _remainder = scalar(times), as_written(relative), scalar(remainder)


@part
def below(share: Any, other: Any, ratio: Any, gap: Any) -> Any:
    """share*ratio - other, where log(share*ratio/other) = gap; that is infinite or NaN where one of them is zero."""
    return other * (gap + _remainder(gap)) if abs(gap) < LN2 else share * ratio - other


def terms_of(slope: Slope, normalize: bool) -> Any:
    formula = scalar(slope.normalised if normalize else slope.plain)

    @part
    def terms(
        x: Any, y: Any, mp: Any, mq: Any, inverse: Any, tail: Any, shift: Any, log_p: Any, log_q: Any, shift_low: Any,
        part: Any, y_p: Any, x_q: Any, ratio_p: Any, ratio_q: Any, weight: Any,
    ) -> Any:  # fmt: skip
        """The shares of two logarithms and the derivatives by these, as `formulas.slopes`; `part` is one over sum(p).

        Beside the largest cell of p, `mp`, lies y_p; their ratio is ratio_p. So are x_q and ratio_q for q.
        """
        pk, qk, dk, _, delta, nu, nv = arguments(x, y, mp, mq, inverse, tail, shift, log_p, log_q, shift_low)
        pk, qk, dk = pk * part, qk * part, dk * part
        delta_p = delta_q = delta
        below_p, below_q = dk, -dk
        if normalize:
            u, low, t, _, _, delta_p, _ = _relative(x, y, mp, y_p, inverse, tail, 0.0, 0.0)
            _, _, _, _, _, delta_q, _ = _relative(x, y, x_q, mq, inverse, tail, 0.0, 0.0)
            nu, nv = -u - low, -t
            below_p, below_q = below(pk, qk, ratio_p, delta_p), below(qk, pk, ratio_q, -delta_q)
        return pk, qk, *formula(
            pk, qk, delta_p, delta_q, nu, nv, dk, -dk, pk, ratio_p, below_p, ratio_q, below_q, weight
        )  # fmt: skip

    return terms


def slope_of(slope: Slope, normalize: bool) -> Any:
    terms = terms_of(slope, normalize)

    @part
    def cell(
        x: Any, y: Any, mp: Any, mq: Any, inverse: Any, tail: Any, shift: Any, log_p: Any, log_q: Any, shift_low: Any,
        part: Any, y_p: Any, x_q: Any, ratio_p: Any, ratio_q: Any, mean_p: Any, mean_q: Any, weight: Any,
    ) -> Any:  # fmt: skip
        """The derivatives by two logarithms, less their means."""
        pk, qk, u, above_p, v, above_q = terms(
            x, y, mp, mq, inverse, tail, shift, log_p, log_q, shift_low, part, y_p, x_q, ratio_p, ratio_q, weight
        )  # fmt: skip
        return _times(pk, u - mean_p) + above_p, _times(qk, v - mean_q) + above_q

    return cell


@helper
def ratio_at(x: Any, y: Any, c: Any) -> Any:
    """q/p of a cell."""
    pk, qk, _, _, _, _, _ = arguments(x, y, c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7])
    return qk / pk


@helper
def beside(a: Any, start: Any, other: Any, at: Any, d: Any, top: Any) -> Any:
    """The cell of the other row beside the first that is the largest of this one."""
    k = 0
    while k < d - 1 and a[start + k] != top:
        k += 1
    return np.float64(other[at + k])


def refer_loop(slope: Slope) -> Any:
    (by_p, by_q), ratios = slope.centred, slope.lowered

    @part
    def refer(p: Any, a: Any, q: Any, b: Any, d: Any, c: Any, refs: Any) -> None:
        """Put into `refs` what `terms_of` wants to know of the largest cells: y_p, x_q, ratio_p, ratio_q."""
        if by_p:
            refs[0] = beside(p, a, q, b, d, c[0])
        if by_q:
            refs[1] = beside(q, b, p, a, d, c[1])
        if ratios:
            refs[2], refs[3] = ratio_at(c[0], refs[0], c), 1.0 / ratio_at(refs[1], c[1], c)

    return refer


@part
def is_apart(mass: Any, gap: Any) -> Any:
    """Whether the sum of q, over the largest cells, has lost digits as a difference: a second look finds all."""
    return abs(gap) > 0.5 * mass


def prepare_loop(normalize: bool) -> Any:
    masses = sweep_loop(no_cell, largest=False)

    @part
    def prepare(
        p: Any, a: Any, q: Any, b: Any, d: Any, inverse: Any, tail: Any, c: Any, weight: Any, work: Any, view: Any,
        spare: Any, state: Any,
    ) -> Any:  # fmt: skip
        """Put the numbers of a row into `c`; whether it is one of distributions, and the sum of p."""
        c[0] = top_of(p, a, d, spare)
        c[1] = top_of(q, b, d, spare)
        c[2], c[3], c[4], c[5], c[6], c[7] = inverse, tail, 0.0, 0.0, 0.0, 0.0
        whole = 1.0
        sound = not barred(c, normalize)
        if sound and normalize:
            masses(p, a, q, b, d, c, weight, work, view, state)
            whole, gap = state[2] + state[3], state[4] + state[5]
            sharpen(c, whole, gap)
            if is_apart(whole, gap):
                masses(p, a, q, b, d, c, weight, work, view, state)
                sharpen(c, state[2] + state[3], state[4] + state[5])
            sound = whole == whole and c[4] == c[4]
        return sound, whole

    return prepare


def rows(slope: Slope, normalize: bool) -> Callable[..., None]:
    """As `kernels.slopes.rows`; the factors of rows do not know the temperature."""
    cell, prepare, refer = slope_of(slope, normalize), prepare_loop(normalize), refer_loop(slope)
    centred_p, centred_q = slope.centred if normalize else (False, False)

    @part
    def sweep(xs: Any, ys: Any, us: Any, vs: Any, c: Any, weight: Any, refs: Any, means: Any, part: Any) -> None:
        """The derivatives of the cells of a tile."""
        mp, mq, inverse, tail, shift, log_p, log_q, shift_low = c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
        y_p, x_q, ratio_p, ratio_q, mean_p, mean_q = refs[0], refs[1], refs[2], refs[3], means[0], means[1]
        for k in range(xs.size):
            us[k], vs[k] = cell(
                xs[k], ys[k], mp, mq, inverse, tail, shift, log_p, log_q, shift_low, part, y_p, x_q, ratio_p, ratio_q,
                mean_p, mean_q, weight,
            )  # fmt: skip

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any, factors: Any, weight: Any,
        inverse: Any, tail: Any, by_p: Any, by_q: Any, out_p: Any, out_q: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        state = space[0:SIZE]
        c = space[8 : 8 + SCALES]
        spare = space[16 : 16 + SPARE]
        refs = space[16 + SPARE : 20 + SPARE]
        means = space[20 + SPARE : 22 + SPARE]
        start = 0 if (by_p and centred_p) or (by_q and centred_q) else 1
        for r in index:
            at_p, at_q = a + r * ps, b + r * qs
            sound, whole = prepare(p, at_p, q, at_q, d, inverse, tail, c, weight, work, view, spare, state)
            if not sound:
                unknown(r * d, d, factors[r], by_p, by_q, out_p, out_q)
                continue
            factor = factors[r] * inverse
            means[0], means[1] = 0.0, 0.0
            fill(refs, 0, 4, 1.0)
            if start == 0:
                refer(p, at_p, q, at_q, d, c, refs)
            for k in range(4):
                state[k] = 0.0
            for last in range(start, 2):
                for first in range(0, d, TILE):
                    size = min(TILE, d - first)
                    pad(q, at_q + first, size, work, np.int64(BUFFER), -np.inf)
                    padded = pad(p, at_p + first, size, work, np.int64(0), -np.inf)
                    sweep(
                        view[0:padded], view[BUFFER : BUFFER + padded], work[2 * BUFFER : 2 * BUFFER + padded],
                        work[3 * BUFFER : 3 * BUFFER + padded], c, weight, refs, means, 1.0 / whole,
                    )  # fmt: skip
                    if last:
                        keep(0, size, r * d + first, factor, 1.0, factor, 1.0, by_p, by_q, out_p, out_q, view)
                    else:
                        add(state, np.int64(0), total(view, np.int64(2 * BUFFER), padded))
                        add(state, np.int64(2), total(view, np.int64(3 * BUFFER), padded))
                if not last:
                    means[0], means[1] = mean_of(state[0], state[1]), mean_of(state[2], state[3])

    return loop
