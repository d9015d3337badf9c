"""Derivatives of the divergences by the cells of rows and by single cells, in float64 arithmetic.

The formulas, and the reads of a row, are those of `kernels.slopes` and `kernels.log_slopes`. A team takes a row, as in
`rows`; one that is longer than a block's has the block.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from klnumba.formulas import slopes as formulas
from klnumba.formulas.divergences import scaled
from klnumba.formulas.log_cells import no_cell
from klnumba.kernels import log_slopes, slopes
from klnumba.kernels.cuda import exact, logs
from klnumba.kernels.cuda.cells import reader
from klnumba.kernels.cuda.choice import Choice
from klnumba.kernels.cuda.flat import THREADS, number_of, place
from klnumba.kernels.cuda.logs import barred, sharpen
from klnumba.kernels.cuda.target import cuda, device, kernel, load, piece, shared, two_sum
from klnumba.kernels.cuda.team import Team, team
from klnumba.kernels.slopes import REFS

By = tuple[bool, bool]  # whether the derivatives by p are wanted, and those by q

_is_sound, _mean_of, _joined = map(device, (slopes.is_sound, slopes.mean_of, slopes.joined))
_scaled, _level, _tell = map(device, (scaled, slopes.level, slopes.tell))
_is_apart, _ratio_at = device(log_slopes.is_apart), device(log_slopes.ratio_at)


@piece
def scaled_to(value: Any, factor: Any) -> Any:
    """A factor of 0 leaves nothing, whatever the derivative is."""
    product = value * factor
    return 0.0 if factor == 0.0 else product


@functools.cache
def of_rows(
    name: str, logarithms: bool, normalize: bool, by: By, store: str, factors_store: str, choice: Choice
) -> Any:  # fmt: skip
    """The kernel of the derivatives of one divergence, each times its row's factor over `unit`."""
    together = team(choice.width, choice.threads)
    build = _of_logarithms if logarithms else _of_probabilities
    row = build(formulas.SLOPES[name], normalize, by, store, together)
    width, teams, shared_room = choice.width, choice.threads // choice.width, shared(together.size)
    number = reader(factors_store).one

    def rows(
        p: Any, ps: Any, q: Any, qs: Any, n: Any, d: Any, inverse: Any, tail: Any, weight: Any, unit: Any, factors: Any,
        fs: Any, out_p: Any, out_q: Any,
    ) -> None:  # fmt: skip
        room = shared_room()
        me = np.int64(cuda.threadIdx.x)
        lane, step = me % width, np.int64(cuda.gridDim.x) * teams
        for start in range(np.int64(cuda.blockIdx.x) * teams, n, step):
            r = start + me // width
            at = min(r, n - 1)  # a team without a row goes along with the last one, and writes nothing
            factor = np.float64(number(factors, at * fs)) / unit
            row(
                p, at * ps, q, at * qs, d, inverse, tail, weight, factor, out_p, out_q, at * d, d if r < n else 0, lane,
                room,
            )  # fmt: skip

    how = f"{'normalized' if normalize else 'plain'}-by-{'p' * by[0]}{'q' * by[1]}"
    label = f"{name}-slopes-{'log' if logarithms else 'prob'}-{how}-{store}-{factors_store}-{width}"
    return kernel(rows, label, choice.threads)


def _of_probabilities(slope: formulas.Slope, normalize: bool, by: By, store: str, together: Team) -> Any:
    begin, one, width = exact.begun(store, together), reader(store).one, together.width
    tops, beside = logs.tops(store, together), logs.beside(store, together)
    by_cell_p, by_cell_q = (device(slopes.slope_of(slope, normalize, side)) for side in (0, 1))
    add_three = together.add_three
    (by_p, by_q), centred, lowered = by, _centred(slope, normalize, by), slope.lowered
    mean_of_p, mean_of_q = by_p and slope.centred[0], by_q and slope.centred[1]

    @piece
    def derivatives(
        p: Any, i: Any, q: Any, j: Any, c: Any, refs: Any, weight: Any, mean_p: Any, mean_q: Any, by_share: Any
    ) -> Any:  # fmt: skip
        x, y = _scaled(np.float64(one(p, i)), c[0]), _scaled(np.float64(one(q, j)), c[1])
        up, vp, h, he, p_mass, p_rest, q_mass, q_rest = _level(c)
        du = by_cell_p(
            x * up, y * vp, h, he, p_mass, p_rest, q_mass, q_rest, refs[0], refs[1], refs[2], refs[3], refs[4], refs[5],
            refs[6], refs[7], weight, mean_p, by_share,
        )  # fmt: skip
        dv = by_cell_q(
            x * up, y * vp, h, he, p_mass, p_rest, q_mass, q_rest, refs[0], refs[1], refs[2], refs[3], refs[4], refs[5],
            refs[6], refs[7], weight, mean_q, by_share,
        )  # fmt: skip
        return du, dv

    @piece
    def sums(p: Any, o: Any, q: Any, u: Any, d: Any, c: Any, refs: Any, weight: Any, lane: Any, room: Any) -> Any:
        a = ae = b = be = 0.0
        for k in range(lane, d, width):
            du, dv = derivatives(p, o + k, q, u + k, c, refs, weight, 0.0, 0.0, True)
            if mean_of_p:
                a, e = two_sum(a, du)
                ae += e
            if mean_of_q:
                b, e = two_sum(b, dv)
                be += e
        a, ae, b, be, _, _ = add_three(a, ae, b, be, 0.0, 0.0, room)
        return a, ae, b, be

    @piece
    def row(
        p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, tail: Any, weight: Any, factor: Any, out_p: Any,
        out_q: Any, at: Any, count: Any, lane: Any, room: Any,
    ) -> None:  # fmt: skip
        state, c = cuda.local.array(8, np.float64), cuda.local.array(8, np.float64)
        begin(p, o, q, u, d, normalize, state, c, lane, room)
        sound = _is_sound(state, normalize)
        mean_p = mean_q = 0.0
        refs, top = cuda.local.array(REFS, np.float64), cuda.local.array(2, np.float64)
        for k in range(REFS):
            refs[k] = 1.0
        if centred:
            top[0], top[1] = tops(p, o, q, u, d, lane, room)
            y_p, x_q = beside(p, o, q, u, d, top, lane, room)
            _tell(top[0], y_p, x_q, top[1], c[0], c[1], _level(c), lowered, refs)
            a, ae, b, be = sums(p, o, q, u, d, c, refs, weight, lane, room)
            whole = exact.whole_mass(c[4], c[6]) if sound else 1.0
            mean_p, mean_q = _mean_of(a, ae) / whole, _mean_of(b, be) / whole
        factor_p, scale_p = _joined(factor / c[4], c[0]) if sound else (factor, 1.0)
        factor_q, scale_q = _joined(factor / c[6], c[1]) if sound else (factor, 1.0)
        for k in range(lane, count, width):
            du, dv = derivatives(p, o + k, q, u + k, c, refs, weight, mean_p, mean_q, False)
            if by_p:
                out_p[at + k] = scaled_to(du if sound else math.nan, factor_p) * scale_p
            if by_q:
                out_q[at + k] = scaled_to(dv if sound else math.nan, factor_q) * scale_q

    return row


def _of_logarithms(slope: formulas.Slope, normalize: bool, by: By, store: str, together: Team) -> Any:
    tops, masses = logs.tops(store, together), logs.sweep(no_cell, store, together, False, False)
    beside, cell = logs.beside(store, together), device(log_slopes.slope_of(slope, normalize))
    one, width, any_of, add_three = reader(store).one, together.width, together.any, together.add_three
    (by_p, by_q), centred, ratios = by, _centred(slope, normalize, by), slope.lowered

    @piece
    def derivatives(
        p: Any, i: Any, q: Any, j: Any, c: Any, share: Any, refs: Any, mean_p: Any, mean_q: Any, weight: Any
    ) -> Any:  # fmt: skip
        x, y = np.float64(one(p, i)), np.float64(one(q, j))
        return cell(
            x, y, c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], share, refs[0], refs[1], refs[2], refs[3], mean_p,
            mean_q, weight,
        )  # fmt: skip

    @piece
    def means(
        p: Any, o: Any, q: Any, u: Any, d: Any, c: Any, share: Any, refs: Any, weight: Any, lane: Any, room: Any
    ) -> Any:  # fmt: skip
        a = ae = b = be = 0.0
        for k in range(lane, d, width):
            du, dv = derivatives(p, o + k, q, u + k, c, share, refs, 0.0, 0.0, weight)
            a, e = two_sum(a, du)
            ae += e
            b, e = two_sum(b, dv)
            be += e
        a, ae, b, be, _, _ = add_three(a, ae, b, be, 0.0, 0.0, room)
        return _mean_of(a, ae), _mean_of(b, be)

    @piece
    def row(
        p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, tail: Any, weight: Any, factor: Any, out_p: Any,
        out_q: Any, at: Any, count: Any, lane: Any, room: Any,
    ) -> None:  # fmt: skip
        c, refs = cuda.local.array(8, np.float64), cuda.local.array(4, np.float64)
        c[0], c[1] = tops(p, o, q, u, d, lane, room)
        c[2], c[3], c[4], c[5], c[6], c[7] = inverse, tail, 0.0, 0.0, 0.0, 0.0
        refs[0] = refs[1] = refs[2] = refs[3] = 1.0
        sound = not barred(c, normalize)
        whole = 1.0
        if normalize:
            wanted = sound
            for _ in range(2):
                if any_of(wanted):
                    _, _, mass, low, gap, rest = masses(p, o, q, u, d, c, weight, lane, room)
                    if wanted:
                        whole, gap = mass + low, gap + rest
                        sharpen(c, whole, gap)
                        wanted = _is_apart(whole, gap)
            sound = sound and whole == whole and c[4] == c[4]
        share = 1.0 / whole
        mean_p = mean_q = 0.0
        if centred:
            refs[0], refs[1] = beside(p, o, q, u, d, c, lane, room)
            if ratios:
                refs[2], refs[3] = _ratio_at(c[0], refs[0], c), 1.0 / _ratio_at(refs[1], c[1], c)
            mean_p, mean_q = means(p, o, q, u, d, c, share, refs, weight, lane, room)
        factor = factor * inverse if sound else factor
        for k in range(lane, count, width):
            du, dv = derivatives(p, o + k, q, u + k, c, share, refs, mean_p, mean_q, weight)
            if by_p:
                out_p[at + k] = scaled_to(du if sound else math.nan, factor)
            if by_q:
                out_q[at + k] = scaled_to(dv if sound else math.nan, factor)

    return row


def _centred(slope: formulas.Slope, normalize: bool, by: By) -> bool:
    """Whether a derivative that is wanted has a mean which normalising subtracts."""
    return normalize and any(wanted and centred for wanted, centred in zip(by, slope.centred, strict=True))


@functools.cache
def of_cells(name: str, first: str, second: str, factors_store: str, masked: bool, by: By) -> Any:
    """The derivatives of a formula of two numbers, each times its factor over `over`; 0 where the mask says no."""
    x_of, y_of, number = number_of(first), number_of(second), number_of(factors_store)
    formula, (by_x, by_y) = device(formulas.CELLS[name]), by

    def cells(x: Any, xs: Any, y: Any, ys: Any, factors: Any, fs: Any, over: Any, mask: Any, start: Any, shape: Any,
              steps: Any, count: Any, out_x: Any, out_y: Any) -> None:  # fmt: skip
        for i in range(np.int64(cuda.grid(1)), count, np.int64(cuda.gridsize(1))):
            factor = np.float64(number(factors, i * fs)) / over
            if masked and load(mask, start + place(i, shape, steps)) == 0:
                factor = 0.0
            u, v = formula(np.float64(x_of(x, i * xs)), np.float64(y_of(y, i * ys)))
            if by_x:
                out_x[i] = scaled_to(u, factor)
            if by_y:
                out_y[i] = scaled_to(v, factor)

    label = f"{name}-slope-cells-{first}-{second}-{factors_store}-{int(masked)}-{'x' * by_x}{'y' * by_y}"
    return kernel(cells, label, THREADS)


@functools.cache
def folded(masked: bool) -> Any:
    """Derivatives by an array that was broadcast: those of its copies added up, where the mask does not say no.

    The copies of a cell lie in the places of a shape, `more`, from that of the first on.
    """

    def fold(source: Any, shape: Any, steps: Any, more: Any, count: Any, more_steps: Any, mask: Any, start: Any,
             mask_steps: Any, mask_more: Any, out: Any) -> None:  # fmt: skip
        for i in range(np.int64(cuda.grid(1)), out.size, np.int64(cuda.gridsize(1))):
            total = 0.0
            at, marks = place(i, shape, steps), start
            if masked:
                marks += place(i, shape, mask_steps)
            for j in range(count):
                if not masked or load(mask, marks + place(j, more, mask_more)) != 0:
                    total += np.float64(source[at + place(j, more, more_steps)])
            out[i] = total

    return kernel(fold, f"folded-{int(masked)}", THREADS)
