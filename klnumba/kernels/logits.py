"""KL of rows of logits: the log-ratio of the sums is guessed from the first cells, and then one read gives the rest.

The read adds up P, of the exponentials p, D, of p*delta, and G, of the cells (`formulas.logit_cells`). With them the
sum of the exponentials of q is e**-guess * (P - D + G), so that where the two rows are near each other one exponential
a cell is enough; a tile that holds a cell where they are not is computed anew with both. And

    KL = G/P - phi(t),   t = (G - D)/P,   phi(t) = t - log1p(t),

whatever the guess was. A few times along the row, and at its end, the sums are moved to the better guess that they
tell. Where the guess was so far off that digits are lost, the row is read again from the better one.

Float32 rows are computed in float32 arithmetic and added up in float64. The few cells that hold most of a sum are
taken out and computed in float64, so that only errors of many small cells are left, which level out unless the cells
are alike. In long rows the sums of most tiles are kept in registers (`logit_quick`). A tile that has too large a share
of the sums so far waits until the row is read: few have that share then, and these are read once more (`logit_late`).

A row that is too close for that, whose logits are far from zero, or that holds a zero of q where p has none, is
flagged and left to `kernels.logs`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.formulas.elementary import exp, expm1, log, two_sum
from klnumba.formulas.log_cells import phi
from klnumba.formulas.logit_cells import LARGEST, SMALLEST
from klnumba.formulas.special import exp_excess
from klnumba.kernels.compiler import helper, part, scalar
from klnumba.kernels.logit_guess import guessing
from klnumba.kernels.logit_late import settling
from klnumba.kernels.logit_quick import BLOCK, FELL, PLACE, D, G, P, has_quick_tile, light_tiles, waiting_room
from klnumba.kernels.logit_tiles import exact, placing, summing
from klnumba.kernels.shares import flagged, take
from klnumba.kernels.tiles import TILE

LEAST = {"float64": 2.0**-100, "float32": 2.0**-50}  # KL from which on no cell that counts is too small for the dtype

HEAD = 2 * TILE  # the cells from which the first guess is made
MOVES = 2  # the sums are moved after so many times as many cells as told the guess, and so on, and at the end
FAR = 0.5  # a guess so far off is of no use: the row is begun again
RIGHT = 64.0  # a guess of which the square of the error is so many times below KL, and below 1, is left as it is
LONG = 16 * TILE  # cells of a row whose tiles are so many that the roundings of their quick sums level out
PAUSE = 4  # tiles until quick sums are tried again
LOST = 1.0  # KL is at least so many times what its sums lost when they were moved
WIDER = 2.0**-27  # a share of what the sums in float64 lost that float32 does not lose with it
READS = 6
FULL = TILE // 2  # large cells that may wait

_two_sum = scalar(two_sum)
_exp = scalar(exp)
_expm1 = scalar(expm1)
_log = scalar(log)
_phi = scalar(phi)
_exp_excess = scalar(exp_excess)


def moving(dtype: Any) -> Any:
    """(a better guess from the sums, the sums at another guess, those of tiles that wait at another guess)."""
    real = dtype.type

    @part
    def better(mass: Any, odd: Any, cells: Any, shift: Any) -> Any:
        """The guess that the sums tell; the same one where they are of no use."""
        gap = (cells - odd) / mass
        usable = SMALLEST < mass < LARGEST and SMALLEST < 1.0 + gap < LARGEST
        usable = usable and RIGHT * gap * gap > min(cells / mass, 1.0)
        return np.float64(real(shift - _log(1.0 + gap))) if usable else shift

    @part
    def moved(mass: Any, odd: Any, cells: Any, step: Any, excess: Any, rise: Any) -> Any:
        """(D, G, its change) at a guess that is larger by `step`; e**step is 1 + rise and 1 + step + excess."""
        change = excess * mass + rise * (cells - odd)
        return odd - step * mass, cells + change, abs(change) + excess * mass

    @helper
    def all_moved(late: Any, step: Any, excess: Any, rise: Any) -> Any:
        """Move the sums of tiles that wait; their D and G together."""
        odd = cells = 0.0
        for sums in late:
            sums[D], sums[G], fell = moved(sums[P], sums[D], sums[G], step, excess, rise)
            sums[FELL] += fell
            odd, cells = odd + sums[D], cells + sums[G]
        return odd, cells

    return better, moved, all_moved


def reading(dtype: Any) -> Any:
    """A read of a row: (P, D, G, the last guess, what G lost on the way to it, where it was broken off)."""
    place, summed, tiles, quickly = placing(dtype), summing(dtype), light_tiles(dtype), has_quick_tile(dtype)
    (better, moved, all_moved), settled = moving(dtype), settling(dtype)

    @part
    def read(
        p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, shift: Any, far: Any, then: Any,
        store: Any, work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        mass = rest = odd = cells = low = lost = 0.0
        heavy = heavy_odd = heavy_cells = 0.0
        late, late_mass, late_odd, late_cells, stale = waiting_room(space), 0.0, 0.0, 0.0, 0.0
        start, n, waiting, ratio = 0, 0, 0, _exp(shift)
        again = 0 if quickly and d >= LONG else d
        while start < d:
            count, more, c, g, done = min(TILE, d - start), 0.0, 0.0, 0.0, False
            quick_ones = quickly and start >= again
            if quick_ones and inverse == 1.0:  # where nothing is copied, all that are added up at one guess
                count = max(count, (min(d, then) - start) // TILE * TILE)
            x, y = place(p, o + start, q, u + start, count, shift, inverse, work, view)
            if quick_ones and x.size == count and count % BLOCK == 0:
                sums, others, other_cells = late[waiting], heavy + late_mass, heavy_cells + late_cells - stale
                passed, mass, rest, odd, cells, low, far, done = tiles(
                    x, y, start, shift, ratio, far, mass, rest, odd, cells, low, others, other_cells, sums
                )
                # what is left begins with a tile that was not added; of nothing, the sums below are zero
                x, y, start, count = x[passed:], y[passed:], start + passed, count - passed
                if not done:
                    again = start + PAUSE * TILE
                elif count > 0 and waiting + 1 < late.shape[0]:
                    waiting, sums[PLACE], sums[FELL] = waiting + 1, start, 0.0
                    late_mass, late_odd, late_cells = late_mass + sums[P], late_odd + sums[D], late_cells + sums[G]
                    stale += sums[G]
                else:
                    done = count == 0
            if not done:
                whole, all_cells = heavy + mass + late_mass, heavy_cells + cells + late_cells - stale
                more, c, g, far, n = summed(x[:TILE], y[:TILE], shift, far, store, whole, all_cells, space, n)
            odd += c
            mass, e = _two_sum(mass, more)
            rest += e
            cells, e = _two_sum(cells, g)
            low += e
            start += min(TILE, count)
            move = start >= min(then, d)
            if n > 0 and (move or n > FULL):
                more, c, g = exact(space, n, shift)
                heavy, heavy_odd, heavy_cells, n = heavy + more, heavy_odd + c, heavy_cells + g, 0
            if move:
                then, stale = start * MOVES, 0.0
                step = -shift
                all_mass, all_odd = heavy + (mass + rest) + late_mass, heavy_odd + odd + late_odd
                shift = better(all_mass, all_odd, heavy_cells + (cells + low) + late_cells, shift)
                step += shift
                ratio = _exp(shift)
                if abs(step) > FAR:
                    lost = math.inf
                    break
                if step != 0.0:
                    excess, rise = _exp_excess(step), _expm1(step)
                    odd, cells, fell = moved(mass + rest, odd, cells + low, step, excess, rise)
                    heavy_odd, heavy_cells, sank = moved(heavy, heavy_odd, heavy_cells, step, excess, rise)
                    lost, low = lost + (fell + WIDER * sank), 0.0
                    if quickly:
                        late_odd, late_cells = all_moved(late[:waiting], step, excess, rise)
        if quickly and waiting > 0 and lost < math.inf:
            late_mass, late_odd, late_cells, fell = settled(
                late[:waiting], heavy + mass, heavy_cells + cells, p, o, q, u, d, inverse, shift, work, view, space
            )
            heavy, heavy_odd, heavy_cells = heavy + late_mass, heavy_odd + late_odd, heavy_cells + late_cells
            lost += fell
            guess = better(heavy + (mass + rest), heavy_odd + odd, heavy_cells + (cells + low), shift)
            if abs(guess - shift) > FAR:  # these sums tell more than those that they were judged by
                shift, lost = guess, math.inf
        return heavy + (mass + rest), heavy_odd + odd, heavy_cells + (cells + low), shift, lost, start

    return read


def room() -> tuple[int, int]:
    """The shape of what a tile is computed in."""
    return 4, TILE


def rows(dtype: Any) -> Callable[..., Any]:
    """Rows of at least `fast.SHORT` cells of `dtype`."""
    least = LEAST[dtype.name]
    guess, read = guessing(dtype), reading(dtype)

    def loop(
        p: Any, a: Any, ps: Any, q: Any, b: Any, qs: Any, n: Any, d: Any, out: Any, flag: Any, turn: Any,
        inverse: Any, store: Any, work: Any, view: Any, space: Any,
    ) -> Any:  # fmt: skip
        while True:
            first, stop = take(turn, n, d)
            if first == stop:
                break
            for r in range(first, stop):
                o, u, flag[r] = a + r * ps, b + r * qs, turn[3]
                read_to = min(d, HEAD) if d < LONG else HEAD // 4
                shift, far = guess(p, o, q, u, read_to, inverse, work, view)
                for _ in range(READS):
                    mass, odd, cells, shift, lost, read_to = read(
                        p, o, q, u, d, inverse, shift, far, read_to * MOVES, store, work, view, space
                    )
                    if lost == math.inf:
                        continue
                    gap = (cells - odd) / mass
                    other = mass * (1.0 + gap) * _exp(-shift)
                    usable = SMALLEST < mass < LARGEST and SMALLEST < other < LARGEST and cells < math.inf
                    if not (usable and SMALLEST < 1.0 + gap < LARGEST):  # beyond, 1 + gap is what rounding left of it
                        break
                    bend = _phi(gap)
                    value = cells / mass - bend
                    if LOST * (lost / mass + bend) <= value or (cells == 0.0 and odd == 0.0 and lost == 0.0):
                        out[r] = value
                        flag[r] = turn[3] if 0.0 < value < least else 0
                        break
        return flagged(turn, flag)

    return loop
