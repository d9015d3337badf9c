"""Derivatives of a divergence by the cells of rows of probabilities, and of single cells.

The rows are brought to a common mass as in `kernels.exact`. Then they are read
twice: for the means of the derivatives, which normalising subtracts, and for
what is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.divergences import LEAST, common_mass, log_ratio, multipliers, on_common_mass
from klnumba.formulas.slopes import Slope, times
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.exact import SCALES, SIZE, masses
from klnumba.kernels.tiles import BUFFER, SPARE, TILE, add, fill, pad, total

_on_common_mass, _multipliers, _common_mass = scalar(on_common_mass), scalar(multipliers), scalar(common_mass)
_log_ratio, _times = scalar(log_ratio), scalar(times)


@part
def joined(factor: Any, scale: Any) -> Any:
    """(factor*scale, 1), or the two where their product is no number: what they are to scale may be small."""
    product = factor * scale
    return (product, 1.0) if abs(product) < math.inf else (factor, scale)


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


def slope_of(slope: Slope, normalize: bool) -> Any:
    formula = scalar(slope.normalised if normalize else slope.plain)

    @part
    def cell(
        x: Any, y: Any, h: Any, he: Any, p_mass: Any, p_rest: Any, q_mass: Any, q_rest: Any, weight: Any, mean_p: Any,
        mean_q: Any, by_share: Any,
    ) -> Any:  # fmt: skip
        """The derivatives by two cells, less their means, or by their shares, which add up to the means."""
        u, ue, v, ve = _multipliers(h, he, p_mass, q_mass)
        whole = _common_mass(p_mass, q_mass)
        pk, qk, gap, _, above_p, above_q = _on_common_mass(x, y, u, ue, v, ve, p_mass, p_rest, q_mass, q_rest)
        delta = _log_ratio(pk, qk, gap)
        wp, wq = (pk if by_share else 1.0), (qk if by_share else 1.0)
        rise_p, rise_q = (gap if by_share else gap / pk), (-gap if by_share else -gap / qk)
        share_q = pk if by_share else pk / qk
        du, above_u, dv, above_v = formula(
            pk, qk, delta, delta, _log_ratio(whole, pk, above_p), _log_ratio(whole, qk, above_q), rise_p, rise_q,
            share_q, 1.0, gap, 1.0, -gap, weight,
        )  # fmt: skip
        none = pk == 0.0 and qk == 0.0
        return (
            0.0 if none else _times(wp, du - mean_p) + above_u,
            0.0 if none else _times(wq, dv - mean_q) + above_v,
        )

    return cell


def rows(slope: Slope, normalize: bool) -> Callable[..., None]:
    """The derivatives of whole rows, each times its factor, into those of out_p and out_q that are wanted."""
    cell = slope_of(slope, normalize)
    centred_p, centred_q = slope.centred if normalize else (False, False)

    @part
    def sweep(
        xs: Any, ys: Any, us: Any, vs: Any, c: Any, weight: Any, means: Any, by_share: Any, by_p: Any, by_q: Any
    ) -> None:
        """The derivatives of the cells of a tile."""
        fp, fq, h, he, p_mass, p_rest, q_mass, q_rest = c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
        mean_p, mean_q = means[0], means[1]
        for k in range(xs.size):
            x = xs[k] * fp
            y = ys[k] * fq
            x = LEAST if x == 0.0 and xs[k] > 0.0 else x  # the scale must not make a zero
            y = LEAST if y == 0.0 and ys[k] > 0.0 else y
            du, dv = cell(x, y, h, he, p_mass, p_rest, q_mass, q_rest, weight, mean_p, mean_q, by_share)
            if by_p:
                us[k] = du
            if by_q:
                vs[k] = dv

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, index: Any, d: Any, factors: Any, weight: Any,
        by_p: Any, by_q: Any, out_p: Any, out_q: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        state = space[0:SIZE]
        c = space[8 : 8 + SCALES]
        spare = space[16 : 16 + SPARE]
        means = space[16 + SPARE : 18 + SPARE]
        start = 0 if (by_p and centred_p) or (by_q and centred_q) else 1
        for r in index:
            masses(p, a + r * ps, q, b + r * qs, d, normalize, state, c, work, view, spare)
            if not is_sound(state, normalize):
                unknown(r * d, d, factors[r], by_p, by_q, out_p, out_q)
                continue
            whole = _common_mass(c[4], c[6])
            means[0], means[1] = 0.0, 0.0
            for k in range(4):
                state[k] = 0.0
            for last in range(start, 2):
                for first in range(0, d, TILE):
                    size = min(TILE, d - first)
                    pad(q, b + r * qs + first, size, work, np.int64(BUFFER), 0.0)
                    padded = pad(p, a + r * ps + first, size, work, np.int64(0), 0.0)
                    sweep(
                        view[0:padded], view[BUFFER : BUFFER + padded], work[2 * BUFFER : 2 * BUFFER + padded],
                        work[3 * BUFFER : 3 * BUFFER + padded], c, weight, means, last == 0, by_p, by_q,
                    )  # fmt: skip
                    if last:
                        keep(
                            0, size, r * d + first, factors[r] / c[4], c[0], factors[r] / c[6], c[1], by_p, by_q, out_p,
                            out_q, view,
                        )  # fmt: skip
                    else:
                        add(state, np.int64(0), total(view, np.int64(2 * BUFFER), padded))
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
