"""Tiles of float32 logits whose sums are kept in float32, in registers, and serve where no large share of a sum is.

Where p and q are near each other one exponential a cell is enough; elsewhere there are two.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.core.registry import cpu_target

from klnumba.formulas.elementary import ONE_F32, two_sum
from klnumba.formulas.logit_cells import (
    NEAR,
    any_gap,
    psi_f32,
    quick_numbers,
    quick_power,
    slight_gap,
)
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.lanes import LANES, add_vector, added, any_bit, largest, largest_unsigned, on_stack
from klnumba.kernels.registers import fuses
from klnumba.kernels.tiles import TILE, ask

# Sums of p and q times a unit, which differs from tile to tile, so that additions of alike cells round differently.
UNITS, STRIDE = 1024, 633
BLOCK = 128  # cells that are added up by themselves: a tile has a multiple of it
NEXT = 1024  # cells on from those at work that are asked for
# The share of a sum that a term may have, and where p and q are far apart, since it has more roundings there;
# and that a tile may have, whose additions round one after another.
LARGE, LARGE_FAR, MOST = 0.1875, 0.125, 0.5
# What is kept of a tile: its sums, the largest p, the largest cell, the share of a sum that one may have, where it
# begins, and what its sums lost while it waited.
P, D, G, TOP, MOST_CELL, SHARE, PLACE, FELL = range(8)
NEAR_BITS = np.float32(NEAR).view(np.int32)
SLIGHT = 2.0  # the square of a guess is at most so many times the cells' mean: it is no larger than deltas are

_two_sum = scalar(two_sum)


@part
def signed_bits(x: Any) -> Any:
    return np.float32(x).view(np.int32)


@part
def unsigned_bits(x: Any) -> Any:
    return np.float32(x).view(np.uint32)


@part
def size_bits(x: Any) -> Any:
    """Of |x|; those of NaN are the largest."""
    return np.int32(np.float32(x).view(np.int32) & np.int32(np.iinfo(np.int32).max))


def near_terms(gap: Any) -> Any:
    """(p, p*delta, the cell) where delta is small; the bits of its size, p again, and the bits of `quick_power`."""
    power, gap, psi = scalar(quick_power), scalar(gap), scalar(psi_f32)

    @part
    def terms(x: Any, y: Any, shift: Any, ratio: Any, numbers: Any) -> Any:
        p, bits = power(x, numbers)
        delta = gap(x, y, shift)
        d = p * delta
        return p, d, d * (delta * psi(-delta)), size_bits(delta), p, bits

    return terms


def any_terms() -> Any:
    """The same for every delta, with q in the place of the second p, and the bits of both."""
    power, gap, psi = scalar(quick_power), scalar(any_gap), scalar(psi_f32)

    @part
    def terms(x: Any, y: Any, shift: Any, ratio: Any, numbers: Any) -> Any:
        p, bits = power(x, numbers)
        q, more = power(y, numbers)
        delta = gap(x, y, shift)
        d, size = p * delta, size_bits(delta)
        small, large = d * (delta * psi(-delta)), p * (delta - ONE_F32) + q * ratio
        return p, d, small if size < NEAR_BITS else large, size, q, np.int32(bits | more)

    return terms


def quick_sums(terms: Any, both: bool) -> Any:
    """The sums over a tile, kept in registers. Of the numbers compared the bits are: they have the same order.

    `BLOCK` cells are added up at a time, and then their sums, so that few roundings follow on each other.
    """
    infinite = np.float32(math.inf).view(np.uint32)
    mass, odd, cells = range(0, 3 * LANES, LANES)  # where each of the vectors begins
    far, large, top, seen, other = range(0, 5 * LANES, LANES)
    three, five, lanes, line = on_stack(3), on_stack(5), LANES, 16

    @helper
    def sums(x: Any, y: Any, shift: Any, ratio: Any, numbers: Any) -> Any:
        """(P, D, G, the largest p, the largest cell, whether all are in range, whether all are near)."""
        totals, some, state = three(), three(), five()
        totals[:] = state[:] = np.float32(0.0)
        signed, unsigned = state.view(np.int32), state.view(np.uint32)  # of negative numbers the bits are larger
        for first in range(0, x.size, BLOCK):
            some[:] = np.float32(0.0)
            for start in range(first, first + BLOCK, 2 * lanes):
                u, v = x[start : start + 2 * lanes], y[start : start + 2 * lanes]
                ask(u, v, NEXT, 2 * lanes, line)
                for k in range(lanes):
                    p0, d0, g0, size0, q0, bits0 = terms(u[k], v[k], shift, ratio, numbers)
                    p1, d1, g1, size1, q1, bits1 = terms(u[lanes + k], v[lanes + k], shift, ratio, numbers)
                    some[mass + k] += p0 + p1
                    some[odd + k] += d0 + d1
                    some[cells + k] += g0 + g1
                    signed[far + k] = max(max(signed[far + k], size0), size1)
                    signed[large + k] = max(max(signed[large + k], signed_bits(g0)), signed_bits(g1))
                    unsigned[top + k] = max(max(unsigned[top + k], unsigned_bits(p0)), unsigned_bits(p1))
                    signed[seen + k] |= np.int32(bits0 | bits1)
                    if both:
                        unsigned[other + k] = max(max(unsigned[other + k], unsigned_bits(q0)), unsigned_bits(q1))
            for k in (mass, odd, cells):
                add_vector(totals, k, some)
        most, most_g = largest_unsigned(unsigned, top), largest(signed, large)
        in_range = max(most, largest_unsigned(unsigned, other)) < infinite and any_bit(signed, seen) >> np.int32(9) == 0
        p, g = np.uint32(most).view(np.float32), np.int32(most_g).view(np.float32)
        near = largest(signed, far) < NEAR_BITS
        return added(totals, mass), added(totals, odd), added(totals, cells), p, g, in_range, near

    return sums


@part
def is_light(record: Any, mass: Any, cells: Any, part_of_share: Any) -> Any:
    """Whether neither a tile nor a cell of it has a large share of P or G, which are `mass` and `cells` without it."""
    p, g, share = record[P], record[G], record[SHARE] * part_of_share
    whole, all_cells = mass + p, max(cells, 0.0) + g
    light = record[TOP] < share * whole and p < MOST * whole
    return light and ((record[MOST_CELL] < share * all_cells and g < MOST * all_cells) or g == 0.0)


@part
def waiting_room(space: Any) -> Any:
    """Where the records of tiles are kept: the part of `space` that no tile is computed in."""
    return space[5 * TILE : 6 * TILE].reshape(TILE // 8, 8)


def quick_tile(dtype: Any) -> Any:
    """Put what is kept of a tile into a record; (whether all is in range, whether a cell is far)."""
    numbers = scalar(quick_numbers)
    slight, other = quick_sums(near_terms(slight_gap), False), quick_sums(near_terms(any_gap), False)
    every = quick_sums(any_terms(), True)

    @part
    def found(x: Any, y: Any, shift: Any, ratio: Any, slightly: Any, far: Any, known: Any) -> Any:
        if far:  # as the tile before was
            return every(x, y, shift, ratio, known)
        sums = slight(x, y, shift, ratio, known) if slightly else other(x, y, shift, ratio, known)
        return sums if sums[6] else every(x, y, shift, ratio, known)

    @part
    def quick(x: Any, y: Any, shift: Any, ratio: Any, slightly: Any, far: Any, turn: Any, record: Any) -> Any:
        unit = 1.0 + (turn * STRIDE % UNITS) / UNITS
        sums = found(x, y, np.float32(shift), np.float32(ratio), slightly, far, numbers(-unit))
        per = 1.0 / unit
        record[P], record[D] = np.float64(sums[0]) * per, np.float64(sums[1]) * per
        record[G], record[TOP] = np.float64(sums[2]) * per, np.float64(sums[3]) * per
        record[MOST_CELL] = np.float64(sums[4]) * per
        record[SHARE] = LARGE if sums[6] else LARGE_FAR
        return sums[5] and record[P] + record[G] < math.inf, not sums[6]

    @part  # for loops that never call it
    def never(x: Any, y: Any, shift: Any, ratio: Any, slightly: Any, far: Any, turn: Any, record: Any) -> Any:
        return False, far

    return quick if has_quick_tile(dtype) else never


def light_tiles(dtype: Any) -> Any:
    """Add up one tile after the other as far as they are light.

    It takes P, its rounding errors, D, G and its rounding errors of the tiles before, and P and G of what else the row
    has so far, and returns how many cells were added, the sums, whether a cell is far, and, of a tile that is left,
    whether all is in range: its sums are in the record then.
    """
    quick = quick_tile(dtype)

    @helper
    def tiles(
        x: Any, y: Any, start: Any, shift: Any, ratio: Any, far: Any, mass: Any, rest: Any, odd: Any, cells: Any,
        low: Any, others: Any, other_cells: Any, record: Any,
    ) -> Any:  # fmt: skip
        added_up, done = 0, True
        while added_up < x.size:
            u, v = x[added_up : added_up + TILE], y[added_up : added_up + TILE]
            whole, all_cells = others + mass, other_cells + cells
            slight = whole > 0.0 and shift * shift * whole <= SLIGHT * all_cells
            done, far = quick(u, v, shift, ratio, slight, far, (start + added_up) // TILE, record)
            if not (done and is_light(record, whole, all_cells, 1.0)):
                break
            mass, e = _two_sum(mass, record[P])
            rest += e
            odd += record[D]
            cells, e = _two_sum(cells, record[G])
            low += e
            added_up += u.size
        return added_up, mass, rest, odd, cells, low, far, done

    return tiles


def has_quick_tile(dtype: Any) -> bool:
    """Float32 has, where a multiplication and an addition are one step."""
    return bool(dtype == np.float32 and fuses(cpu_target.target_context))
