"""Means over the counts of a binomial distribution, to twice the digits, of what its derivatives ask for.

What is averaged is its distance from its value at a count near the mean, where the sum begins; the probabilities are
products of their ratios from there. So nothing cancels that is not small already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.distributions.binomial import step_of_sum, width_of_sum
from klnumba.distributions.evaluate import evaluate_twofold
from klnumba.duals import twofold as tf
from klnumba.duals.number import Twofold, is_moving, where
from klnumba.formulas.elementary import two_sum
from klnumba.formulas.logarithms import log_of_move
from klnumba.formulas.twofold import over, plus, times

Pair = tuple[float, float]
Sums = tuple[float, float, float, float]


def next_weight(weight: float, low: float, left: float, place: float, odds: float, odds_low: float) -> Pair:
    """Probability of one count more, `left` of the draws being left for it, from that of one less than `place`."""
    ways, ways_low = over(*times(weight, low, left, 0.0), place, 0.0)
    return times(ways, ways_low, odds, odds_low)


def logs_on_one_side(
    start: float, left: float, reach: float, stride: float, odds: float, odds_low: float, n: float, n_way: float,
    x: float, x_low: float, x_way: float,
) -> Sums:  # fmt: skip
    """Sums over j = stride, 2*stride, ... of the probabilities of start + j successes, and of these times the move.

    The probabilities are those over that of `start`; the move is log(1 + n_way*j/n) - log(1 + x_way*j/x).
    """
    weight, low, mass, mass_low, total, total_low = 1.0, 0.0, 0.0, 0.0, 0.0, 0.0
    j, due = 0.0, stride
    while j < min(left, reach) and weight > 0.0:
        weight, low = next_weight(weight, low, left - j, start + j + 1.0, odds, odds_low)
        j += 1.0
        if j == due:
            due += stride
            move, move_low = log_of_move(n, 0.0, n_way * j)
            if x_way != 0.0:
                other, other_low = log_of_move(x, x_low, x_way * j)
                move, move_low = plus(move, move_low, -other, -other_low)
            mass, mass_low = plus(mass, mass_low, weight, low)
            total, total_low = plus(total, total_low, *times(weight, low, move, move_low))
    return mass, mass_low, total, total_low


def climb_on_one_side(
    start: float, left: float, reach: float, odds: float, odds_low: float, x: float, x_low: float, way: float
) -> Sums:
    """The same of every j, where the move is digamma(x + way*j) - digamma(x)."""
    weight, low, mass, mass_low, total, total_low = 1.0, 0.0, 0.0, 0.0, 0.0, 0.0
    move, move_low, j = 0.0, 0.0, 0.0
    while j < min(left, reach) and weight > 0.0:
        weight, low = next_weight(weight, low, left - j, start + j + 1.0, odds, odds_low)
        place = plus(x, x_low, j if way > 0.0 else -j - 1.0, 0.0)
        j += 1.0
        step, step_low = over(way, 0.0, *place)
        move, move_low = plus(move, move_low, step, step_low)
        mass, mass_low = plus(mass, mass_low, weight, low)
        total, total_low = plus(total, total_low, *times(weight, low, move, move_low))
    return mass, mass_low, total, total_low


def mean_of_sides(up: Sums, down: Sums) -> Pair:
    """From the sums on both sides of a count, whose own probability is 1 and whose move is 0."""
    mass, mass_low = plus(*plus(up[0], up[1], down[0], down[1]), 1.0, 0.0)
    return over(*plus(up[2], up[3], down[2], down[3]), mass, mass_low)


def mean_move_of_logs(
    draws: float, start: float, p: float, other: float, odds: float, odds_low: float, back: float, back_low: float,
    n: float, x: float, way: float,
) -> Pair:  # fmt: skip
    """E log((n - K)/(n - start)) - E log((x + way*K)/(x + way*start)) over K successes of so many draws."""
    reach, stride = width_of_sum(draws, p, other) + 1.0, step_of_sum(draws, p, other)
    place, low = two_sum(x, way * start)
    up = logs_on_one_side(start, draws - start, reach, stride, odds, odds_low, n - start, -1.0, place, low, way)
    down = logs_on_one_side(draws - start, start, reach, stride, back, back_low, n - start, 1.0, place, low, -way)
    return mean_of_sides(up, down)


def mean_climb_of_digamma(
    draws: float, start: float, p: float, other: float, odds: float, odds_low: float, back: float, back_low: float,
    x: float,
) -> Pair:  # fmt: skip
    """E digamma(x + K) - digamma(x + start) over K successes of so many draws."""
    reach = width_of_sum(draws, p, other) + 1.0
    place, low = two_sum(x, start)
    up = climb_on_one_side(start, draws - start, reach, odds, odds_low, place, low, 1.0)
    down = climb_on_one_side(draws - start, start, reach, back, back_low, place, low, -1.0)
    return mean_of_sides(up, down)


# --- of arrays --------------------------------------------------------------------------------------------------------


def mean_log(n: Twofold, p: Twofold, other: Twofold) -> Twofold:
    """E log(n - K) over K successes of n - 1 draws; 0 where there are none."""
    return _mean(mean_move_of_logs, lambda k: tf.log(n - k), n - 1.0, p, other, n, Twofold(1.0), Twofold(0.0))


def mean_log_ratio(n: Twofold, p: Twofold, other: Twofold, x: Twofold, way: float) -> Twofold:
    """E log((n - K)/(x + way*K)) over the same; exactly 0 of n - K and 1 + K, which are alike for even odds."""

    def at(k: Any) -> Twofold:
        return tf.log_of_quotient(n - k, x + way * k)

    alike = (x.hi == 1.0) & (p.hi == other.hi) & (p.lo == other.lo) if way > 0.0 else False
    return where(alike, 0.0, _mean(mean_move_of_logs, at, n - 1.0, p, other, n, x, Twofold(way)))


def mean_climb(n: Twofold, p: Twofold, other: Twofold, x: Twofold) -> Twofold:
    """E digamma(x + K) - digamma(x) over K successes of n draws."""
    return _mean(mean_climb_of_digamma, lambda k: tf.digamma(x + k) - tf.digamma(x), n, p, other, x)


def _mean(
    formula: Callable[..., Pair], at: Callable[[Any], Twofold], draws: Twofold, p: Twofold, other: Twofold,
    *more: Twofold,
) -> Twofold:  # fmt: skip
    """The value at the count where the sum begins, and the mean of the moves from there."""
    if is_moving(draws, p, other, *more):
        raise NotImplementedError("the derivatives have a mean over counts, which has no rule for derivatives itself")
    sound = (draws.hi >= 0.0) & (p.hi >= 0.0) & (p.hi <= 1.0) & (sum(x.hi for x in more) < np.inf)
    draws, p, other = (where(sound, x, y) for x, y in ((draws, 0.0), (p, 0.5), (other, 0.5)))
    start = np.clip(np.floor((draws.hi + 1.0) * p.hi), 0.0, draws.hi)
    odds, back = (where(y.hi > 0.0, x / where(y.hi > 0.0, y, 1.0), 0.0) for x, y in ((p, other), (other, p)))
    numbers = (draws.hi, start, p.hi, other.hi, odds.hi, odds.lo, back.hi, back.lo, *(x.hi for x in more))
    moves = Twofold(*evaluate_twofold(formula, numbers))
    return where(sound, at(start) + moves, 0.0)
