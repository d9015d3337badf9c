"""Derivatives of a divergence by the cells of rows of probabilities, and of single cells.

The rows are brought to a common mass as in `kernels.exact`. Then they are read
twice: for the means of the derivatives, which normalising subtracts, and for
what is written.

From u of all cells is subtracted that of the cell of the largest share, as in
`kernels.log_slopes`, and the two are never formed: log(p/q) less that of p' and
q' is the logarithm of p*(q'/p') over q, whose difference is found to twice the
digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.divergences import DUST, LEAST, common_mass, log_ratio, multipliers, on_common_mass, scaled
from klnumba.formulas.primitives import fma
from klnumba.formulas.row_cells import power_below
from klnumba.formulas.slopes import Slope, times
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.exact import SCALES, SIZE, masses
from klnumba.kernels.logs import top_of
from klnumba.kernels.tiles import BUFFER, SPARE, TILE, add, fill, pad, total

REFS = 8  # numbers of the cells of the largest shares: see `tell`
TINY = float(np.finfo(np.float64).tiny)
FLOOR = TINY * 2.0**53  # what a smaller ratio lacks would be no normal number

_on_common_mass, _multipliers, _common_mass = scalar(on_common_mass), scalar(multipliers), scalar(common_mass)
_log_ratio, _times, _fma, _power_below = map(scalar, (log_ratio, times, fma, power_below))
_scaled = scalar(scaled)


@part
def joined(factor: Any, scale: Any) -> Any:
    """(factor*scale, 1), or the two where their product is no number or has lost digits: not so what they scale."""
    product = factor * scale
    return (product, 1.0) if TINY <= abs(product) < math.inf else (factor, scale)


@helper
def write(cells: Any, start: Any, count: Any, factor: Any, scale: Any, out: Any, at: Any) -> None:
    """Cells times a factor and a scale into the result; a factor of 0 leaves nothing, whatever the cells are."""
    factor, scale = joined(factor, scale)
    part = cells[start : start + count]
    place = out[at : at + count]
    for k in range(count):
        place[k] = 0.0 if factor == 0.0 else part[k] * factor * scale


@part
def keep(
    start: Any, count: Any, at: Any, factor_p: Any, scale_p: Any, factor_q: Any, scale_q: Any, by_p: Any, by_q: Any,
    out_p: Any, out_q: Any, view: Any,
) -> None:  # fmt: skip
    """The derivatives from `start` on in buffers 2 and 3 into the results that are wanted."""
    if by_p:
        write(view, 2 * BUFFER + start, count, factor_p, scale_p, out_p, at)
    if by_q:
        write(view, 3 * BUFFER + start, count, factor_q, scale_q, out_q, at)


@part
def unknown(at: Any, d: Any, factor: Any, by_p: Any, by_q: Any, out_p: Any, out_q: Any) -> None:
    """The derivatives of a row that is no distribution."""
    value = 0.0 if factor == 0.0 else math.nan
    if by_p:
        fill(out_p, at, d, value)
    if by_q:
        fill(out_q, at, d, value)


@part
def is_sound(state: Any, normalize: Any) -> Any:
    """Whether the sums of two rows are those of distributions."""
    if normalize and not (0.0 < state[0] < math.inf and 0.0 < state[2] < math.inf):
        return False
    return state[6] == 0.0


@part
def mean_of(hi: Any, lo: Any) -> Any:
    """A sum, or NaN where it is infinite: then the row's value is, and has no derivative."""
    return hi + lo if abs(hi) < math.inf else math.nan


@part
def ratio_of(y: Any, x: Any) -> Any:
    """y/x to twice the digits, or 0 where it is less than `FLOOR`."""
    ratio = y / x
    return (ratio, _fma(-ratio, x, y) / x) if ratio >= FLOOR else (0.0, 0.0)


@part
def beside(x: Any, y: Any, ratio: Any, rest: Any) -> Any:
    """x*(ratio + rest) and by how much it is more than y."""
    z = x * ratio
    gap = (z - y) + (_fma(x, ratio, -z) + x * rest)
    return z, 0.0 if abs(gap) < DUST * y else gap


@part
def log_beside(x: Any, y: Any, z: Any, gap: Any, log: Any) -> Any:
    """log(z/y), z = y + gap; where z, which is x times the exponential of `log`, has lost digits, from x: it is far."""
    far = z < TINY
    value = _log_ratio(x if far else z, y, x - y if far else gap)
    return value + log if far else value


@helper
def cells_at_top(a: Any, start: Any, b: Any, at: Any, d: Any, top: Any) -> Any:
    """The largest cell of a row, and the one beside the first that is so large."""
    k = 0
    while k < d - 1 and a[start + k] != top:
        k += 1
    return np.float64(a[start + k]), np.float64(b[at + k])


@part
def level(c: Any) -> Any:
    """The powers of two that bring the sums of a row with the scales `c` within one, and c[2:8] after that."""
    p_stays = c[4] >= c[6]
    _, up = _power_below(c[2])
    one, other = (1.0, up) if p_stays else (up, 1.0)
    return one, other, c[2] / up, c[3] / up, c[4] * one, c[5] * one, c[6] * other, c[7] * other


@part
def tell(x_p: Any, y_p: Any, x_q: Any, y_q: Any, fp: Any, fq: Any, numbers: Any, lowered: Any, refs: Any) -> None:
    """Put into `refs` what is known of the cells beside each other at the largest of p and at that of q.

    These are both at the first, their ratio q/p to twice the digits, and p/q at the second; then the ratios of shares,
    for formulas that are `lowered`, or the logarithms of those of the cells. The cells are times fp and fq and what
    `level`, which said `numbers`, multiplies them by.
    """
    up, vp, _, _, p_mass, _, q_mass, _ = numbers
    x_p, x_q, y_p, y_q = up * _scaled(x_p, fp), up * _scaled(x_q, fp), vp * _scaled(y_p, fq), vp * _scaled(y_q, fq)
    refs[0], refs[1] = x_p, max(y_p, LEAST)  # beside a zero -log(q) is to be infinite there alone
    refs[2], refs[3] = ratio_of(y_p, x_p)
    refs[4], refs[5] = ratio_of(x_q, y_q)
    if lowered:
        refs[6], refs[7] = refs[2] * (p_mass / q_mass), refs[4] / (p_mass / q_mass)
    else:
        refs[6], refs[7] = _log_ratio(y_p, x_p, y_p - x_p), _log_ratio(x_q, y_q, x_q - y_q)


def refer_loop(slope: Slope) -> Any:
    (by_p, by_q), lowered = slope.centred, slope.lowered

    @part
    def refer(
        p: Any, a: Any, q: Any, b: Any, d: Any, fp: Any, fq: Any, numbers: Any, spare: Any, refs: Any
    ) -> None:  # fmt: skip
        """Put into `refs` what `tell` says of a row."""
        x_p = y_p = x_q = y_q = 1.0
        if by_p:
            x_p, y_p = cells_at_top(p, a, q, b, d, top_of(p, a, d, spare))
        if by_q:
            y_q, x_q = cells_at_top(q, b, p, a, d, top_of(q, b, d, spare))
        tell(x_p, y_p, x_q, y_q, fp, fq, numbers, lowered, refs)

    return refer


@part
def lowered(
    x: Any, y: Any, x_p: Any, y_p: Any, ratio_p: Any, rest_p: Any, ratio_q: Any, rest_q: Any, log_p: Any, log_q: Any
) -> Any:  # fmt: skip
    """What the formulas of normalised rows want to know of two cells, each number less that of the largest."""
    z, below_p = beside(x, y, ratio_p, rest_p)
    delta_p = log_beside(x, y, z, below_p, log_p)
    z, below_q = beside(y, x, ratio_q, rest_q)
    delta_q = -log_beside(y, x, z, below_q, log_q)
    return delta_p, delta_q, _log_ratio(x_p, x, x_p - x), _log_ratio(y_p, y, y_p - y), below_p, below_q


def slope_of(slope: Slope, normalize: bool, side: int) -> Any:
    """The derivative by a cell of p or of q: apart, so that the machine code of one has nothing of the other."""
    formula = scalar(slope.normalised if normalize else slope.plain)

    @part
    def cell(
        x: Any, y: Any, h: Any, he: Any, p_mass: Any, p_rest: Any, q_mass: Any, q_rest: Any, x_p: Any, y_p: Any,
        ratio_p: Any, rest_p: Any, ratio_q: Any, rest_q: Any, told_p: Any, told_q: Any, weight: Any, mean: Any,
        by_share: Any,
    ) -> Any:  # fmt: skip
        """The derivative less its mean or, by the share, what it adds to that.

        `told_p` and `told_q` are the ratios of shares if the formula is `lowered`, else the logarithms of the ratios.
        """
        u, ue, v, ve = _multipliers(h, he, p_mass, q_mass)
        whole = _common_mass(p_mass, q_mass)
        pk, qk, gap, _, above_p, above_q = _on_common_mass(x, y, u, ue, v, ve, p_mass, p_rest, q_mass, q_rest)
        if normalize:
            delta_p, delta_q, sp, sq, below_p, below_q = lowered(
                x, y, x_p, y_p, ratio_p, rest_p, ratio_q, rest_q, told_p, told_q
            )
            below_p, below_q = v * below_p, u * below_q
        else:
            delta_p = delta_q = _log_ratio(pk, qk, gap)
            sp, sq = _log_ratio(whole, pk, above_p), _log_ratio(whole, qk, above_q)
            below_p, below_q = gap, -gap
        wp, wq = (pk if by_share else 1.0), (qk if by_share else 1.0)
        rise_p, rise_q = (gap if by_share else gap / pk), (-gap if by_share else -gap / qk)
        share_q = pk if by_share else pk / qk
        du, above_u, dv, above_v = formula(
            pk, qk, delta_p, delta_q, sp, sq, rise_p, rise_q, share_q, told_p, below_p, told_q, below_q, weight
        )  # fmt: skip
        none = pk == 0.0 and qk == 0.0
        weight, value, above = (wp, du, above_u) if side == 0 else (wq, dv, above_v)
        return 0.0 if none else _times(weight, value - mean) + above

    return cell


def sweep_loop(slope: Slope, normalize: bool, side: int) -> Any:
    cell = slope_of(slope, normalize, side)

    @part
    def sweep(
        xs: Any, ys: Any, out: Any, c: Any, refs: Any, weight: Any, mean: Any, by_share: Any
    ) -> None:  # fmt: skip
        """The derivatives of the cells of a tile."""
        fp, fq, (up, vp, h, he, p_mass, p_rest, q_mass, q_rest) = c[0], c[1], level(c)
        x_p, y_p, ratio_p, rest_p, ratio_q, rest_q = refs[0], refs[1], refs[2], refs[3], refs[4], refs[5]
        told_p, told_q = refs[6], refs[7]
        for k in range(xs.size):
            out[k] = cell(
                up * _scaled(xs[k], fp), vp * _scaled(ys[k], fq), h, he, p_mass, p_rest, q_mass, q_rest, x_p, y_p,
                ratio_p, rest_p, ratio_q, rest_q, told_p, told_q, weight, mean, by_share,
            )  # fmt: skip

    return sweep


def rows(slope: Slope, normalize: bool) -> Callable[..., None]:
    """The derivatives of whole rows, each times its factor, into those of out_p and out_q that are wanted."""
    refer = refer_loop(slope)
    sweep_p, sweep_q = sweep_loop(slope, normalize, 0), sweep_loop(slope, normalize, 1)
    centred_p, centred_q = slope.centred if normalize else (False, False)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any, factors: Any, weight: Any,
        by_p: Any, by_q: Any, out_p: Any, out_q: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        state = space[0:SIZE]
        c = space[8 : 8 + SCALES]
        spare = space[16 : 16 + SPARE]
        means = space[16 + SPARE : 18 + SPARE]
        refs = space[18 + SPARE : 18 + SPARE + REFS]
        start = 0 if (by_p and centred_p) or (by_q and centred_q) else 1
        for r in index:
            masses(p, a + r * ps, q, b + r * qs, d, normalize, state, c, work, view, spare)
            if not is_sound(state, normalize):
                unknown(r * d, d, factors[r], by_p, by_q, out_p, out_q)
                continue
            whole = _common_mass(c[4], c[6])
            means[0], means[1] = 0.0, 0.0
            fill(refs, 0, REFS, 1.0)
            if start == 0:
                refer(p, a + r * ps, q, b + r * qs, d, c[0], c[1], level(c), spare, refs)
            for k in range(4):
                state[k] = 0.0
            for last in range(start, 2):
                for first in range(0, d, TILE):
                    size = min(TILE, d - first)
                    pad(q, b + r * qs + first, size, work, np.int64(BUFFER), 0.0)
                    padded = pad(p, a + r * ps + first, size, work, np.int64(0), 0.0)
                    xs, ys, by_share = view[0:padded], view[BUFFER : BUFFER + padded], last == 0
                    if by_p and (last or centred_p):
                        us = work[2 * BUFFER : 2 * BUFFER + padded]
                        sweep_p(xs, ys, us, c, refs, weight, means[0], by_share)
                    if by_q and (last or centred_q):
                        vs = work[3 * BUFFER : 3 * BUFFER + padded]
                        sweep_q(xs, ys, vs, c, refs, weight, means[1], by_share)
                    if last:
                        keep(
                            0, size, r * d + first, factors[r] / c[4], c[0], factors[r] / c[6], c[1], by_p, by_q, out_p,
                            out_q, view,
                        )  # fmt: skip
                        continue
                    if by_p and centred_p:
                        add(state, np.int64(0), total(view, np.int64(2 * BUFFER), padded))
                    if by_q and centred_q:
                        add(state, np.int64(2), total(view, np.int64(3 * BUFFER), padded))
                if not last:
                    means[0] = mean_of(state[0], state[1]) / whole
                    means[1] = mean_of(state[2], state[3]) / whole

    return loop


def cells(formula: Callable[..., Any], by: tuple[bool, bool]) -> Callable[..., None]:
    """The derivatives of a formula of two numbers by those that are wanted, each times its factor or the one of all."""
    formula = scalar(formula)
    by_x, by_y = by

    def loop(x: Any, y: Any, factors: Any, one_of_all: bool, out_x: Any, out_y: Any) -> None:
        for k in range(x.size):
            u, v = formula(np.float64(x[k]), np.float64(y[k]))
            g = factors[0 if one_of_all else k]
            if by_x:
                out_x[k] = 0.0 if g == 0.0 else u * g
            if by_y:
                out_y[k] = 0.0 if g == 0.0 else v * g

    return loop
