"""KL of rows of logits: the log-ratio of the sums is guessed from the first cells, and then one read gives the rest.

The read adds up P, of the exponentials p, D, of p*delta, and G, of the cells (`formulas.logit_cells`). With them the
sum of the exponentials of q is e**-guess * (P - D + G), so that where the two rows are near each other one exponential
a cell is enough; a tile that holds a cell where they are not is computed anew with both. And

    KL = G/P - phi(t),   t = (G - D)/P,   phi(t) = t - log1p(t),

whatever the guess was. A few times along the row, and at its end, the sums are moved to the better guess that they
tell. Where the guess was so far off that digits are lost, the row is read again from the better one.

Float32 rows are computed in float32 arithmetic and added up in float64. The few cells that hold most of a sum are
taken out and computed in float64, so that only errors of many small cells are left, which level out unless the cells
are alike.

A row that is too close for that, whose logits are far from zero, or that holds a zero of q where p has none, is
flagged and left to `kernels.logs`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.elementary import exp, expm1, log, two_sum
from klnumba.formulas.logit_cells import LOGIT_CELLS, NEAR, NEAR_CELLS, any_cell
from klnumba.formulas.special import exp_excess
from klnumba.kernels.compiler import helper, part, prefetch, reordering, scalar
from klnumba.kernels.fast import AHEAD
from klnumba.kernels.logs import _phi
from klnumba.kernels.tiles import BUFFER, SMALL, STEP, TILE, fill, pad, sum_of_fours, vector_sum

LEAST = {"float64": 2.0**-100, "float32": 2.0**-50}  # KL from which on no cell that counts is too small for the dtype
# The sums that a row may have: no exponential is near overflow, and those that are zero would add nothing.
SMALLEST, LARGEST = 2.0**-40, 2.0**80

HEAD = 2 * TILE  # the cells from which the first guess is made
MOVES = 4  # the sums are moved after so many times as many cells as told the guess, and so on, and at the end
FAR = 0.5  # a guess so far off is of no use: the row is begun again
RIGHT = 64.0  # a guess of which the square of the error is so many times below KL is left as it is
LOST = 2.0  # KL is at least so many times what its sums lost when they were moved
READS = 6
HEAVY = 1.0 / 16.0  # the share of a sum so far from which on a term counts as large: a tile has 16 at most
NEARLY = 1.0 - 2.0**-20  # the share of a sum that is left at least when it is rounded to float32
FULL = TILE // 2  # large cells that may wait
ZERO = -1000.0  # a logarithm whose exponential is zero

_two_sum = scalar(two_sum)
_exp = scalar(exp)
_expm1 = scalar(expm1)
_log = scalar(log)
_exp_excess = scalar(exp_excess)
_any_cell = scalar(any_cell("float64"))


def tile_loop(dtype: Any) -> Any:
    """Fill store[0:3] with p, delta and the cells of a tile; returns D, and whether a cell is far."""
    real = dtype.type
    near, cell = scalar(NEAR_CELLS[dtype.name]), scalar(any_cell(dtype.name))
    bits = np.dtype(f"i{dtype.itemsize}").type
    mask, limit = bits(np.iinfo(bits).max), real(NEAR).view(bits)

    @part
    def near_cells(x: Any, y: Any, shift: Any, ps: Any, ds: Any, gs: Any) -> None:
        for k in range(x.size):
            ps[k], ds[k], gs[k] = near(x[k], y[k], shift)

    @part
    def any_cells(x: Any, y: Any, shift: Any, ratio: Any, ps: Any, ds: Any, gs: Any) -> None:
        for k in range(x.size):
            ps[k], ds[k], gs[k] = cell(x[k], y[k], shift, ratio)

    @reordering
    def products(ps: Any, ds: Any) -> Any:
        """D, and whether a |delta| is not below `NEAR`: by their bits, of which those of NaN are the largest."""
        s, top = real(0.0), bits(0)
        for k in range(ps.size):
            s += ps[k] * ds[k]
            size = bits(real(ds[k]).view(bits) & mask)
            top = size if size > top else top
        return np.float64(s), top >= limit

    @part
    def tile(x: Any, y: Any, shift: Any, far: Any, store: Any) -> Any:
        ps, ds, gs = store[0, : x.size], store[1, : x.size], store[2, : x.size]
        odd = 0.0
        if not far:  # as the tile before was
            near_cells(x, y, real(shift), ps, ds, gs)
            odd, far = products(ps, ds)
        if far:
            any_cells(x, y, real(shift), real(_exp(shift)), ps, ds, gs)
            odd, far = products(ps, ds)
        return odd, far

    return tile, products


@helper
def largest(sizes: Any) -> Any:
    """The largest of some integers, which the bits of numbers that are not negative are."""
    top = sizes[0]
    for k in range(sizes.size):
        top = sizes[k] if sizes[k] > top else top
    return top


@helper
def taken(x: Any, y: Any, store: Any, least_p: Any, least_g: Any, space: Any, n: Any) -> Any:
    """Move the cells of which p or g is large to `space`, behind n others; how many there are then."""
    ps, gs = store[0, : x.size].view(np.int32), store[2, : x.size].view(np.int32)
    p, g = np.float32(least_p).view(np.int32), np.float32(least_g).view(np.int32)
    if largest(ps) >= p or largest(gs) >= g:
        for first in range(0, x.size, STEP):
            stop = min(first + STEP, x.size)
            if largest(ps[first:stop]) >= p or largest(gs[first:stop]) >= g:
                for k in range(first, stop):
                    if (ps[k] >= p or gs[k] >= g) and n < TILE:
                        space[n], space[TILE + n] = x[k], y[k]
                        ps[k] = gs[k] = 0
                        n += 1
    return n


@helper
def exact(space: Any, n: Any, shift: Any) -> Any:
    """(P, D, G) of n cells in `space`, in float64."""
    whole = (n + SMALL - 1) // SMALL * SMALL
    fill(space, n, whole - n, ZERO)
    fill(space, TILE + n, whole - n, ZERO)
    x, y, ps = space[0:whole], space[TILE : TILE + whole], space[2 * TILE : 2 * TILE + whole]
    ds, gs = space[3 * TILE : 3 * TILE + whole], space[4 * TILE : 4 * TILE + whole]
    ratio = _exp(shift)
    for k in range(whole):
        ps[k], delta, gs[k] = _any_cell(x[k], y[k], shift, ratio)
        ds[k] = ps[k] * delta
    return vector_sum(ps), vector_sum(ds), vector_sum(gs)


def summing(dtype: Any) -> Any:
    """(P, D, G) of a tile, given P and G of the tiles before, and n cells that wait in `space`."""
    (tile, products), wide = tile_loop(dtype), dtype == np.float64

    @part
    def summed(x: Any, y: Any, shift: Any, far: Any, store: Any, mass: Any, cells: Any, space: Any, n: Any) -> Any:
        odd, far = tile(x, y, shift, far, store)
        ps, gs = store[0, : x.size], store[2, : x.size]
        p, g = sum_of_fours(ps), sum_of_fours(gs)
        if not wide:
            cut, least = HEAVY * (mass + p), HEAVY * (max(cells, 0.0) + g)
            if (p >= cut * NEARLY or g >= least * NEARLY) and 0.0 < p + g < math.inf:
                waiting, n = n, taken(x, y, store, cut, least if g > 0.0 else math.inf, space, n)
                if n > waiting:
                    p, g = sum_of_fours(ps), sum_of_fours(gs)
                    odd, _ = products(ps, store[1, : x.size])
        return p, odd, g, far, n

    return summed


def reading(dtype: Any) -> Any:
    """A read of a row: (P, D, G, the last guess, what G lost on the way to it)."""
    real = dtype.type
    line, ahead = 64 // dtype.itemsize, AHEAD // dtype.itemsize
    summed, powers = summing(dtype), scalar(LOGIT_CELLS[dtype.name][0])

    @helper
    def placed(cells: Any, start: Any, count: Any, inverse: Any, work: Any, at: Any, none: Any) -> Any:
        """Copy cells times 1/temperature, filled up with `none`."""
        whole = pad(cells, start, count, work, at, real(none))
        if inverse != 1.0:
            place = work[at : at + count]
            for k in range(count):
                place[k] *= real(inverse)
        return whole

    @helper
    def place(p: Any, o: Any, q: Any, u: Any, count: Any, shift: Any, inverse: Any, work: Any, view: Any) -> Any:
        """The cells from o and u on as they are computed with: in `work`, where they are few or to be scaled."""
        if count % STEP == 0 and inverse == 1.0:
            return p[o : o + count], q[u : u + count]
        placed(q, u, count, inverse, work, BUFFER, ZERO - shift)  # which is near
        whole = placed(p, o, count, inverse, work, np.int64(0), ZERO)
        return view[0:whole], view[BUFFER : BUFFER + whole]

    @part
    def ahead_of(p: Any, o: Any, q: Any, u: Any, count: Any) -> None:
        for k in range(0, count, line):
            prefetch(p, o + k + ahead)
            prefetch(q, u + k + ahead)

    @part
    def exponentials(x: Any, y: Any, ps: Any, qs: Any) -> None:
        for k in range(x.size):
            ps[k], qs[k] = powers(x[k], y[k], real(1.0))

    @part
    def better(mass: Any, odd: Any, cells: Any, shift: Any) -> Any:
        """The guess that the sums tell; the same one where they are of no use."""
        gap = (cells - odd) / mass
        usable = SMALLEST < mass < LARGEST and SMALLEST < 1.0 + gap < LARGEST and RIGHT * gap * gap > cells / mass
        return np.float64(real(shift - _log(1.0 + gap))) if usable else shift

    @part
    def moved(mass: Any, odd: Any, cells: Any, step: Any, excess: Any, rise: Any) -> Any:
        """(D, G, its change) at a guess that is larger by `step`; e**step is 1 + rise and 1 + step + excess."""
        change = excess * mass + rise * (cells - odd)
        return odd - step * mass, cells + change, abs(change) + excess * mass

    @part
    def guess(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, store: Any, work: Any, view: Any) -> Any:
        """What the first `HEAD` cells tell."""
        mass = other = 0.0
        for start in range(0, min(d, HEAD), TILE):
            count = min(TILE, d - start)
            ahead_of(p, o + start, q, u + start, count)
            x, y = place(p, o + start, q, u + start, count, 0.0, inverse, work, view)
            ps, qs = store[0, : x.size], store[1, : x.size]
            exponentials(x, y, ps, qs)
            mass += sum_of_fours(ps)
            other += sum_of_fours(qs)
        usable = SMALLEST < mass < LARGEST and SMALLEST < other < LARGEST
        return np.float64(real(_log(mass / other))) if usable else 0.0

    @part
    def read(
        p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, shift: Any, then: Any,
        store: Any, work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        mass = rest = odd = cells = low = lost = 0.0
        heavy = heavy_odd = heavy_cells = 0.0
        far, start, n = False, 0, 0
        while start < d:
            count = min(TILE, d - start)
            ahead_of(p, o + start, q, u + start, count)
            x, y = place(p, o + start, q, u + start, count, shift, inverse, work, view)
            more, c, g, far, n = summed(x, y, shift, far, store, heavy + mass, heavy_cells + cells, space, n)
            odd += c
            mass, e = _two_sum(mass, more)
            rest += e
            cells, e = _two_sum(cells, g)
            low += e
            start += count
            move = start >= min(then, d)
            if n > 0 and (move or n > FULL):
                more, c, g = exact(space, n, shift)
                heavy, heavy_odd, heavy_cells, n = heavy + more, heavy_odd + c, heavy_cells + g, 0
            if move:
                then = start * MOVES
                step = -shift
                shift = better(heavy + (mass + rest), heavy_odd + odd, heavy_cells + (cells + low), shift)
                step += shift
                if abs(step) > FAR:
                    lost = math.inf
                    break
                if step != 0.0:
                    excess, rise = _exp_excess(step), _expm1(step)
                    odd, cells, fell = moved(mass + rest, odd, cells + low, step, excess, rise)
                    heavy_odd, heavy_cells, _ = moved(heavy, heavy_odd, heavy_cells, step, excess, rise)
                    lost, low = lost + fell, 0.0
        return heavy + (mass + rest), heavy_odd + odd, heavy_cells + (cells + low), shift, lost, start

    return guess, read


def room() -> tuple[int, int]:
    """The shape of what a tile is computed in."""
    return 3, TILE


def rows(dtype: Any) -> Callable[..., None]:
    """Rows of at least `fast.SHORT` cells of `dtype`."""
    least = LEAST[dtype.name]
    guess, read = reading(dtype)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any, inverse: Any, store: Any,
        out: Any, flag: Any, work: Any, view: Any, space: Any,
    ) -> None:  # fmt: skip
        for r in range(n):
            o, u, flag[r] = a + r * ps, b + r * qs, 1
            shift = guess(p, o, q, u, d, inverse, store, work, view)
            stop = HEAD
            for _ in range(READS):
                mass, odd, cells, shift, lost, stop = read(
                    p, o, q, u, d, inverse, shift, stop * MOVES, store, work, view, space
                )
                if lost == math.inf:
                    continue
                gap = (cells - odd) / mass
                other = mass * (1.0 + gap) * _exp(-shift)
                if not (SMALLEST < mass < LARGEST and SMALLEST < other < LARGEST and cells < math.inf):
                    break
                bend = _phi(gap)
                value = cells / mass - bend
                if LOST * (lost / mass + bend) <= value or (cells == 0.0 and odd == 0.0 and lost == 0.0):
                    out[r] = value
                    flag[r] = 0.0 < value < least
                    break

    return loop
