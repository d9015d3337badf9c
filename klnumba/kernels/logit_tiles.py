"""Tiles of rows of logits: their cells at a guess of the log-ratio of the sums, and the sums of these.

Of float32 rows, the few cells that hold most of a sum so far are taken out, to be computed in float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.formulas.elementary import ZERO_F32, exp
from klnumba.formulas.logit_cells import (
    NEAR,
    NEAR_CELLS,
    any_cell,
)
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.tiles import (
    BUFFER,
    SMALL,
    STEP,
    TILE,
    ask,
    copy,
    fill,
    vector_sum,
)

HEAVY = 1.0 / 16.0  # the share of a sum so far from which on a term counts as large: a tile has 16 of a sum at most
MUCH = 1.0 / 2.0  # the share of a sum so far from which on a float64 cell is much of it
NEARLY = 1.0 - 2.0**-20  # the share of a sum that is left at least when it is rounded to float32
ZERO = -1000.0  # a logarithm whose exponential is zero

_exp = scalar(exp)
_any_cell = scalar(any_cell("float64"))


def placing(dtype: Any) -> Any:
    """The cells of a tile as they are computed with; where they are copied, those that follow are asked for."""
    real = dtype.type
    line = 64 // dtype.itemsize

    @helper
    def placed(cells: Any, start: Any, count: Any, inverse: Any, work: Any, at: Any, none: Any) -> Any:
        """Copy cells times 1/temperature, filled up with `none`."""
        whole = (count + STEP - 1) // STEP * STEP
        copy(cells, start, count, work, at)
        fill(work, at + count, whole - count, real(none))
        if inverse != 1.0:
            there = work[at : at + count]
            for k in range(count):
                there[k] *= real(inverse)
        return whole

    @helper
    def place(p: Any, o: Any, q: Any, u: Any, count: Any, shift: Any, inverse: Any, work: Any, view: Any) -> Any:
        """The cells from o and u on: in `work`, where they are few or to be scaled."""
        if count % STEP == 0 and inverse == 1.0:
            return p[o : o + count], q[u : u + count]
        ask(p[o:], q[u:], count, count, line)  # the next tile; elsewhere the loops ask for it
        placed(q, u, count, inverse, work, BUFFER, ZERO - shift)  # which is near
        whole = placed(p, o, count, inverse, work, np.int64(0), ZERO)
        return view[0:whole], view[BUFFER : BUFFER + whole]

    return place


def tile_loop(dtype: Any) -> Any:
    """Fill store[0:3] with p, p*delta and the cells of a tile; returns whether a cell is far."""
    real = dtype.type
    bits = np.dtype(f"i{dtype.itemsize}").type
    mask, limit = bits(np.iinfo(bits).max), real(NEAR).view(bits)
    line = 64 // dtype.itemsize

    def over(cell: Any) -> Any:
        @helper
        def cells(x: Any, y: Any, shift: Any, ratio: Any, ps: Any, ds: Any, gs: Any) -> Any:
            top = bits(0)
            for s in range(0, x.size, STEP):
                u, v, a, b, c = x[s : s + STEP], y[s : s + STEP], ps[s : s + STEP], ds[s : s + STEP], gs[s : s + STEP]
                ask(u, v, TILE, STEP, line)
                for k in range(u.size):
                    p, delta, g = cell(u[k], v[k], shift, ratio)
                    a[k], b[k], c[k] = p, p * delta, g
                    size = bits(real(delta).view(bits) & mask)  # of its bits: those of NaN are the largest
                    top = size if size > top else top
            return top >= limit

        return cells

    near_cells, any_cells = over(scalar(NEAR_CELLS[dtype.name])), over(scalar(any_cell(dtype.name)))

    @part
    def tile(x: Any, y: Any, shift: Any, far: Any, store: Any) -> Any:
        ps, ds, gs = store[0, : x.size], store[1, : x.size], store[2, : x.size]
        if not far:  # as the tile before was
            far = near_cells(x, y, real(shift), real(0.0), ps, ds, gs)
        if far:
            far = any_cells(x, y, real(shift), real(_exp(shift)), ps, ds, gs)
        return far

    return tile


@helper
def marked(ps: Any, gs: Any, p: Any, g: Any, marks: Any) -> None:
    """Mark the cells of which p or g is large: as integers, which the bits of numbers that are not negative are."""
    for k in range(ps.size):
        marks[k] = np.int8((ps[k] >= p) | (gs[k] >= g))


@helper
def gathered(
    marks: Any, x: Any, y: Any, space: Any, n: Any, a: Any, b: Any, c: Any, in_a: Any, in_b: Any, in_c: Any
) -> Any:
    """Copy the marked cells to `space`, behind n others, as far as there is room; how many there are then.

    In a, b and c other numbers are put in their places.
    """
    eights = marks.view(np.int64)
    for i in range(eights.size):
        if eights[i] != 0:
            for k in range(8 * i, 8 * i + 8):
                if marks[k] != 0 and n < TILE:
                    space[n], space[TILE + n] = x[k], y[k]
                    a[k], b[k], c[k] = in_a, in_b, in_c
                    n += 1
    return n


@helper
def taken(x: Any, y: Any, store: Any, least_p: Any, least_g: Any, space: Any, n: Any) -> Any:
    """Move the cells of which p or g is large to `space`, behind n others; how many there are then."""
    ps, ds, gs, marks = store[0, : x.size], store[1], store[2, : x.size], store[3].view(np.int8)[: x.size]
    p, g = np.float32(least_p).view(np.int32), np.float32(least_g).view(np.int32)
    marked(ps.view(np.int32), gs.view(np.int32), p, g, marks)
    return gathered(marks, x, y, space, n, ps, ds, gs, ZERO_F32, ZERO_F32, ZERO_F32)


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


@helper
def _largest(cells: Any) -> Any:
    """The largest of float64 cells that are not negative."""
    bits = cells.view(np.int64)
    top = np.int64(0)
    for k in range(bits.size):
        top = bits[k] if bits[k] > top else top
    return np.int64(top).view(np.float64)


@helper
def _sum(cells: Any, before: Any, spare: Any) -> Any:
    """The sum of float64 cells that are not negative, which may be used up; `before` is that of those before.

    Where one of them is much of all that, the additions to that one might all round the same way. There each cell is
    cut at one place: sums of the upper parts are exact, and beside those the roundings of the lower ones are nothing.
    """
    total = vector_sum(cells)
    much = MUCH * (before + total)
    if not (total > much and _largest(cells) > much):
        return total
    cut = np.int64((np.float64(total).view(np.int64) >> 52) + 3 << 52).view(np.float64) * 1.5
    for k in range(cells.size):
        spare[k] = (cells[k] + cut) - cut
        cells[k] -= spare[k]
    return vector_sum(spare) + vector_sum(cells)


def summing(dtype: Any) -> Any:
    """(P, D, G) of a tile, given P and G of the tiles before, and n cells that wait in `space`."""
    tile, wide = tile_loop(dtype), dtype == np.float64

    @helper
    def sums(store: Any, n: Any, mass: Any, cells: Any) -> Any:
        ps, ds, gs, spare = store[0, :n], store[1, :n], store[2, :n], store[3, :n]
        if wide:
            return _sum(ps, mass, spare), vector_sum(ds), _sum(gs, max(cells, 0.0), spare)
        return vector_sum(ps), vector_sum(ds), vector_sum(gs)

    @part
    def summed(x: Any, y: Any, shift: Any, far: Any, store: Any, mass: Any, cells: Any, space: Any, n: Any) -> Any:
        far = tile(x, y, shift, far, store)
        p, odd, g = sums(store, x.size, mass, cells)
        if not wide:
            cut, least = HEAVY * (mass + p), HEAVY * (max(cells, 0.0) + g)
            if (p >= cut * NEARLY or g >= least * NEARLY) and 0.0 < p + g < math.inf:
                waiting, n = n, taken(x, y, store, cut, least if g > 0.0 else math.inf, space, n)
                if n > waiting:
                    p, odd, g = sums(store, x.size, mass, cells)
        return p, odd, g, far, n

    return summed
