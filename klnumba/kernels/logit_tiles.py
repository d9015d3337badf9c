"""Tiles of rows of logits: their cells at a guess of the log-ratio of the sums, and the sums of these.

Of float32 rows, the few cells that hold most of a sum so far are taken out, to be computed in float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.formulas.elementary import exp
from klnumba.formulas.logit_cells import NEAR, NEAR_CELLS, any_cell
from klnumba.kernels.compiler import helper, part, prefetch, reordering, scalar
from klnumba.kernels.tiles import BUFFER, SMALL, STEP, TILE, fill, pad, sum_of_fours, vector_sum

HEAVY = 1.0 / 16.0  # the share of a sum so far from which on a term counts as large: a tile has 16 at most
NEARLY = 1.0 - 2.0**-20  # the share of a sum that is left at least when it is rounded to float32
ZERO = -1000.0  # a logarithm whose exponential is zero

_exp = scalar(exp)
_any_cell = scalar(any_cell("float64"))


def placing(dtype: Any) -> Any:
    """The cells of a tile as they are computed with, those that follow asked for."""
    real = dtype.type
    line = 64 // dtype.itemsize

    @helper
    def placed(cells: Any, start: Any, count: Any, inverse: Any, work: Any, at: Any, none: Any) -> Any:
        """Copy cells times 1/temperature, filled up with `none`."""
        whole = pad(cells, start, count, work, at, real(none))
        if inverse != 1.0:
            there = work[at : at + count]
            for k in range(count):
                there[k] *= real(inverse)
        return whole

    @helper
    def placed_both(p: Any, o: Any, q: Any, u: Any, count: Any, shift: Any, inverse: Any, work: Any, view: Any) -> Any:
        if count % STEP == 0 and inverse == 1.0:
            return p[o : o + count], q[u : u + count]
        placed(q, u, count, inverse, work, BUFFER, ZERO - shift)  # which is near
        whole = placed(p, o, count, inverse, work, np.int64(0), ZERO)
        return view[0:whole], view[BUFFER : BUFFER + whole]

    @part
    def place(p: Any, o: Any, q: Any, u: Any, count: Any, shift: Any, inverse: Any, work: Any, view: Any) -> Any:
        """The cells from o and u on: in `work`, where they are few or to be scaled."""
        for k in range(TILE, TILE + count, line):  # the next tile, which comes when this one is computed
            prefetch(p, o + k)
            prefetch(q, u + k)
        return placed_both(p, o, q, u, count, shift, inverse, work, view)

    return place


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
