"""KL of rows of logits and log-probabilities in one read (see `formulas.device` for the cells).

A cell needs the log-ratio of the two rows' sums. It is guessed from some first cells of the row, or taken as 0 where
the rows are said to be log-probabilities, and KL comes from the sums G, P and H whatever the guess: KL = G/P -
phi(E/P) with E = G - H, as in `kernels.logs`. The first read takes as few instructions as can be. Where the guess was
so far off that this loses digits, or so large that the cells do, the sums have told a better one, and the row is read
once more, with cells that keep what the first ones round.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from klnumba.formulas.device import (
    BENDS,
    HIGHEST,
    LOGIT_CELLS,
    LOWEST,
    gap,
    held,
    no_bound,
    plain_gap,
    quick_gap,
    quotient,
    rough_log,
    rough_power,
)
from klnumba.formulas.elementary import exp, exp_f32, log1p
from klnumba.formulas.logit_cells import LARGEST
from klnumba.kernels.cuda.cells import COMPUTED, GROUP, reader
from klnumba.kernels.cuda.sweep import Pairs, as_it_is, below, sweep
from klnumba.kernels.cuda.target import apart, device, kept, larger_bfloat16s, noinline, piece
from klnumba.kernels.cuda.team import Team, leading, value_of

# KL below which it shows that squares of log-ratios and powers below the least normal number are zero, in rows of up to
# 2**30 cells with the masses below.
LEAST = {"float64": 2.0**-800, "float32": 2.0**-50}
QUICK, KNOWN, CAREFUL = "quick", "known", "careful"  # a guess; rows whose sums are said to be 1; a better guess
FAILED = -1.0  # in the place of KL: other arithmetic is to be tried
BETTER = -3.0  # and less t, above -1: a better guess, of which E/P was t
HEAD = 16  # cells of a short row from which the log-ratio is guessed
SMALLEST = 2.0**-10  # the least sum of exponentials
FAR = 2.0**64  # masses beyond it, or below its inverse, tell nothing
FARTHEST = 2.0**800  # over such a temperature, of a zero beside e**-704 not nothing would be left in float64
_exp, _exp_f32, _log1p, _quotient = device(exp), device(exp_f32), device(log1p), device(quotient)
_rough_power, _rough_log = device(rough_power), device(rough_log)


class Kind(NamedTuple):
    """A kind of read: its cells, and when KL that follows from their sums stands."""

    gap: Any
    left: dict[str, float]  # what KL is at least over what was taken from G/P to have it
    # s**2/KL up to which the shift s may be taken from a rounded x - y: where log-ratios are small that costs KL up to
    # |s|*sqrt(2/KL) times half an ulp, if all cells round one way.
    steady: dict[str, float]


_ALL, _SURE = {"float64": math.inf, "float32": math.inf}, {"float64": 4.0, "float32": 4.0}
KINDS = {
    QUICK: Kind(quick_gap, {"float64": 4.0, "float32": 2.0}, {"float64": 4.0, "float32": 16.0}),
    KNOWN: Kind(plain_gap, _SURE, _ALL),
    CAREFUL: Kind(gap, _SURE, _ALL),
}
LOWEST_BFLOAT16S = (int(np.float32(LOWEST).view(np.uint32)) >> 16) * 0x10001  # the leading bits of it, twice
# The leading 32 bits of a log-ratio above which the cell says nothing.
LIMITS = {
    "float64": int(np.float64(HIGHEST).view(np.int64)) >> 32,
    "float32": int(np.float32(HIGHEST).view(np.int32)),
}


@piece
def _all_bits(x: Any) -> Any:
    return np.float32(x).view(np.int32)


@piece
def _upper_half(x: Any) -> Any:
    return np.int32(np.float64(x).view(np.int64) >> np.int64(32))


_UPPER = {"float64": _upper_half, "float32": _all_bits}


@piece
def usable(mass: Any) -> Any:
    """Whether no exponential is near overflow, and those that are zero would add nothing."""
    return (mass > SMALLEST) & (mass < LARGEST)


@piece
def _two_held(x: Any, y: Any) -> Any:
    """Two words of two cells each, none of them below `LOWEST`; their guard is left to the cells."""
    lowest = np.uint32(LOWEST_BFLOAT16S)
    return larger_bfloat16s(x, lowest), larger_bfloat16s(y, lowest), np.int32(0)


@functools.cache
def first_cells(store: str, team: Team, grouped: bool) -> Any:
    """The sums of the exponentials of the first cells of a row: of a group for each thread, or of `HEAD` in all."""
    read, group, width = reader(store), GROUP[store], team.width
    one, aligned, fetch, numbers, narrow = read.at, read.aligned, read.fetch, read.numbers, read.narrow
    zero, step = np.float32(0.0), np.int32(width)

    @piece
    def four(a: Any, b: Any, c: Any, e: Any, unit: Any) -> Any:
        return (_rough_power(np.float32(a), unit) + _rough_power(np.float32(b), unit)) + (
            _rough_power(np.float32(c), unit) + _rough_power(np.float32(e), unit)
        )

    @piece
    def of_group(x: Any, unit: Any) -> Any:
        mass = four(x[0], x[1], x[2], x[3], unit)
        if group == 8:
            mass += four(x[4], x[5], x[6], x[7], unit)
        return mass

    @piece
    def of_groups(p: Any, o: Any, q: Any, u: Any, d: Any, unit: Any, lane: Any) -> Any:
        k = np.int32(lane * group)
        if k + group > d:
            return zero, zero
        if aligned(p, o) and aligned(q, u):
            return of_group(numbers(fetch(p, o, k)), unit), of_group(numbers(fetch(q, u, k)), unit)
        return of_group(narrow(p, o + k), unit), of_group(narrow(q, u + k), unit)

    @piece
    def of_cells(p: Any, o: Any, q: Any, u: Any, d: Any, unit: Any, lane: Any) -> Any:
        mass, other = zero, zero
        k, end = np.int32(lane), np.int32(min(d, HEAD))
        while k < end:
            mass += _rough_power(np.float32(one(p, o, k)), unit)
            other += _rough_power(np.float32(one(q, u, k)), unit)
            k = np.int32(k + step)
        return mass, other

    return of_groups if grouped else of_cells


@functools.cache
def guess(store: str, team: Team, grouped: bool) -> Any:
    """log(P/Q) of the first cells of a row, in its dtype, and the exponential of that; 0 where they tell nothing."""
    kind, sums, add_two = np.dtype(COMPUTED[store]), first_cells(store, team, grouped), team.add_two_narrow
    real, power = kind.type, _exp if kind == np.float64 else _exp_f32
    most, few = np.float32(FAR), np.float32(1.0 / FAR)

    @piece
    def guessed(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, lane: Any, room: Any) -> Any:
        """NaN, which no sum survives, where a logit that counts as minus infinity would not over the temperature, or
        too much so."""
        if inverse < 1.0 / FAR or inverse > FARTHEST:
            return np.nan, np.nan
        mass, other = sums(p, o, q, u, d, np.float32(inverse), lane)
        a, b = add_two(mass, other, room)
        tells = (a < most) & (b < most) & (a > few) & (b > few)
        shift = real(_rough_log(a) - _rough_log(b)) if tells else real(0.0)
        return np.float64(shift), np.float64(power(shift))

    return guessed


@piece
def no_guess(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, lane: Any, room: Any) -> Any:
    """The logarithm of 1, and 1."""
    return 0.0, 1.0


@functools.cache
def improved(store: str) -> Any:
    """The guess where e**shift*Q is (1 + t)*P."""
    real = np.dtype(COMPUTED[store]).type

    @piece
    def better(shift: Any, t: Any) -> Any:
        found = np.float64(real(shift - _log1p(t)))
        return found, _exp(found)

    return better


@functools.cache
def read(store: str, team: Team, grouped: bool, how: str) -> tuple[Any, Any]:
    """(the sums of a row at a guess, KL from them: `FAILED` or `BETTER` - t where it loses digits)."""
    kind, last, known = np.dtype(COMPUTED[store]), how == CAREFUL, how == KNOWN
    gap, left, steady = KINDS[how].gap, KINDS[how].left[kind.name], KINDS[how].steady[kind.name]
    real, least, upper, wide = kind.type, LEAST[kind.name], _UPPER[kind.name], kind == np.float64
    bend_of, whole, rounds = device(BENDS[kind.name]), value_of if wide else leading, steady < math.inf

    def cell_of(bound: Any) -> Any:
        formula = device(LOGIT_CELLS[store](gap, bound))

        @piece
        def cell(x: Any, y: Any, c: Any) -> Any:
            inverse, shift, ratio = c
            g, p, h, delta = formula(x, y, inverse, shift, ratio)
            return g, p, h, upper(delta)

        return cell

    pairwise = Pairs(_two_held, cell_of(no_bound), as_it_is) if store == "bfloat16" else None
    walk = sweep(cell_of(held), store, team, grouped, -np.inf, below(LIMITS[kind.name]), pairwise)

    @piece
    def sums(
        p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, shift: Any, ratio: Any, lane: Any, room: Any
    ) -> Any:  # fmt: skip
        if known:
            return walk(p, o, q, u, d, (real(1.0), real(0.0), real(1.0)), lane, room)
        c = (kept(real(inverse)), kept(real(shift)), kept(real(ratio)))  # else rounded anew for each cell
        return walk(p, o, q, u, d, c, lane, room)

    @piece
    def concluded(a: Any, ae: Any, b: Any, be: Any, h: Any, he: Any, shift: Any, ratio: Any) -> Any:
        g, mass = whole(a, ae), whole(b, be)
        whole_mass = mass if usable(mass) else np.nan
        over = _quotient(1.0, whole_mass)
        t = ((a - h) + (ae - he)) * over
        bend = bend_of(t)
        found = (g / whole_mass if wide else g * over) - bend
        other = mass + mass * t  # times the ratio, as the bounds of Q are
        fits = usable(mass) and other > SMALLEST * ratio and other < LARGEST * ratio and g < np.inf
        sound = left * bend <= found and found >= least
        if rounds:
            sound = sound and shift * shift <= steady * found
        # Nothing left of the cells, g = 0, is no reason for a better guess either.
        # What is told is kept in a result, which may be of float32.
        without = FAILED if last or not fits or g == 0.0 else np.float64(np.float32(BETTER - t))
        return found if fits and sound else without

    return sums, concluded


@functools.cache
def value(store: str, team: Team, grouped: bool, known: bool) -> tuple[Any, Any]:
    """(KL of a row, the same in every thread of its team, or a negative number; what to try where it is one)."""
    before, better = no_guess if known else guess(store, team, grouped), improved(store)
    sums, concluded = read(store, team, grouped, KNOWN if known else QUICK)
    careful_sums, careful = read(store, team, grouped, CAREFUL)

    @piece
    def row(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, lane: Any, room: Any) -> Any:
        shift, ratio = before(p, o, q, u, d, inverse, lane, room)
        a, ae, b, be, h, he = sums(p, o, q, u, d, inverse, shift, ratio, lane, room)
        return concluded(a, ae, b, be, h, he, shift, ratio)

    @apart
    def again(
        p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, told: Any, lane: Any, room: Any
    ) -> Any:  # fmt: skip
        """KL, or a negative number, of a row of which the first read `told` so."""
        noinline()
        shift, _ = before(p, o, q, u, d, inverse, lane, room)
        shift, ratio = better(shift, BETTER - told)
        a, ae, b, be, h, he = careful_sums(p, o, q, u, d, inverse, shift, ratio, lane, room)
        return careful(a, ae, b, be, h, he, shift, ratio)

    return row, again
