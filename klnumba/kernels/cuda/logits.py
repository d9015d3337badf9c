"""KL of rows of logits and log-probabilities in one read (see `formulas.device` for the cells).

A cell needs the log-ratio of the two rows' sums. It is guessed from some first cells of the row, or taken as 0 where
the rows are said to be log-probabilities, and KL comes from the sums G, P and E whatever the guess: KL = G/P -
phi(E/P), as in `kernels.logs`. Where the guess was so far off that this loses digits, the sums have told a better one,
and the row is read once more.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from klnumba.formulas.device import BENDS, HIGHEST, LOGIT_CELLS, LOWEST, held, quotient, rough_log
from klnumba.formulas.device import power as rough_power
from klnumba.formulas.elementary import exp, log1p
from klnumba.formulas.logit_cells import LARGEST
from klnumba.kernels.cuda.cells import COMPUTED, reader
from klnumba.kernels.cuda.sweep import below, sweep
from klnumba.kernels.cuda.target import device, piece
from klnumba.kernels.cuda.team import Team, value_of

# KL below which it shows that squares of log-ratios and powers below the least normal number are zero, in rows of up to
# 2**30 cells with the masses below.
LEAST = {"float64": 2.0**-800, "float32": 2.0**-50}
READS = 2  # of a row at most
QUICK, KNOWN = "quick", "known"  # one read with a guess, or of rows whose sums are said to be 1
HEAD = 16  # cells of a row from which the log-ratio is guessed, and one of each thread: a multiple of every warp
SMALLEST = 2.0**-10  # the least sum of exponentials
FAR = 2.0**64  # masses beyond it, or below its inverse, tell nothing
FARTHEST = 2.0**800  # over such a temperature, of a zero beside e**-704 not nothing would be left in float64
_exp, _log1p, _quotient = device(exp), device(log1p), device(quotient)
_rough_power, _rough_log, _held = device(rough_power), device(rough_log), device(held)
_LOWEST = np.float32(LOWEST)
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


@functools.cache
def parts(store: str, team: Team, grouped: bool, known: bool) -> tuple[Any, Any, Any, Any]:
    """(a guess from the first cells of a row, the sums at a guess, what they tell, a better guess).

    A guess is a logarithm and its exponential: those of 1 where the sums are `known`.
    """
    kind = np.dtype(COMPUTED[store])
    real, least, upper, wide = kind.type, LEAST[kind.name], _UPPER[kind.name], kind == np.float64
    formula, bend_of, at = device(LOGIT_CELLS[store]), device(BENDS[kind.name]), reader(store).at
    width, add_three = team.width, team.add_three_plain
    head, step = max(HEAD, width), np.int32(width)

    @piece
    def cell(x: Any, y: Any, c: Any) -> Any:
        inverse, shift, ratio = c
        g, p, e, delta = formula(x, y, inverse, shift, ratio)
        return g, p, e, upper(delta)

    walk = sweep(cell, store, team, grouped, -np.inf, below(LIMITS[kind.name]))

    @piece
    def guess(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, lane: Any, room: Any) -> Any:
        """log(P/Q) of the first cells, in the row's dtype; 0 where they tell nothing; NaN, which no sum survives, where
        a logit that counts as minus infinity would not over the temperature, or too much so."""
        if inverse < 1.0 / FAR or inverse > FARTHEST:
            return np.nan, np.nan
        mass = other = np.float32(0.0)
        unit = np.float32(inverse)
        k, end = np.int32(lane), np.int32(min(d, head))
        while k < end:
            mass += _rough_power(_held(np.float32(at(p, o, k)), _LOWEST), unit)
            other += _rough_power(_held(np.float32(at(q, u, k)), _LOWEST), unit)
            k = np.int32(k + step)
        a, _, b, _, _, _ = add_three(np.float64(mass), 0.0, np.float64(other), 0.0, 0.0, 0.0, room)
        tells = (a < FAR) & (b < FAR) & (a * FAR > 1.0) & (b * FAR > 1.0)
        shift = np.float64(real(_rough_log(a) - _rough_log(b))) if tells else 0.0
        return shift, _exp(shift)

    @piece
    def no_guess(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, lane: Any, room: Any) -> Any:
        return 0.0, 1.0

    @piece
    def sums(
        p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, shift: Any, ratio: Any, lane: Any, room: Any
    ) -> Any:  # fmt: skip
        c = (real(inverse), real(shift), real(ratio))
        return walk(p, o, q, u, d, c, lane, room)

    @piece
    def concluded(a: Any, ae: Any, b: Any, be: Any, e: Any, ee: Any, ratio: Any) -> Any:
        """(KL or -1, whether a better guess would not help, E/P)."""
        g, mass = value_of(a, ae), value_of(b, be)
        held = mass if usable(mass) else np.nan
        over = _quotient(1.0, held)
        t = value_of(e, ee) * over
        bend = bend_of(t)
        found = (g / held if wide else g * over) - bend
        other = mass + mass * t  # times the ratio, as the bounds of Q are
        fits = usable(mass) and other > SMALLEST * ratio and other < LARGEST * ratio and g < np.inf
        sound = 4.0 * bend <= found and found >= least
        # Nothing left of the cells, g = 0, is no reason for a better guess either.
        return found if fits and sound else -1.0, sound or not fits or g == 0.0, t

    @piece
    def improved(shift: Any, t: Any) -> Any:
        """The guess where e**shift*Q is (1 + t)*P."""
        better = np.float64(real(shift - _log1p(t))) if t > -1.0 else shift
        return better, _exp(better)

    return no_guess if known else guess, sums, concluded, improved


@functools.cache
def value(store: str, team: Team, grouped: bool, known: bool) -> Any:
    """KL of a row, the same in every thread of its team; -1 where it is to be computed otherwise."""
    guess, sums, concluded, improved = parts(store, team, grouped, known)
    any_of = team.any

    @piece
    def row(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, lane: Any, room: Any) -> Any:
        shift, ratio = guess(p, o, q, u, d, inverse, lane, room)
        result, done = -1.0, False
        reads, again = 0, True
        while again:
            a, ae, b, be, e, ee = sums(p, o, q, u, d, inverse, shift, ratio, lane, room)
            found, enough, t = concluded(a, ae, b, be, e, ee, ratio)
            if not done:
                result, done = found, enough
            reads += 1
            again = any_of(not done) and reads < READS
            if again:
                shift, ratio = improved(shift, t)
        return result

    return row
