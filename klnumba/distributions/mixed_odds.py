"""Formulas of log-odds for one side that is given by its probability: its log-odds are then the sum of two numbers.

Each place at which the probability may stand has a text of its own, as the compiler takes no part of a list of
arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from klnumba.formulas.elementary import two_sum
from klnumba.formulas.logarithms import log_twofold

Formula = Callable[..., float]


def log_odds_twofold(p: float) -> tuple[float, float]:
    """log(p/(1 - p)) as the sum of two numbers; infinite at 0 and 1."""
    if p == 0.0 or p == 1.0:
        return (-math.inf if p == 0.0 else math.inf), 0.0
    other, lost = two_sum(1.0, -p)
    high, low = log_twofold(p)
    high_other, low_other = log_twofold(other)
    total, rest = two_sum(high, -high_other)
    return two_sum(total, rest + (low - (low_other + lost / other)))


def from_one_to_one(by_logits: Formula) -> tuple[Formula, Formula]:
    """The formula with the probability of p, and that with the probability of q, where neither has a count."""

    def of_p(p: float, b: float) -> float:
        a, low = log_odds_twofold(p)
        return by_logits(a, b, low, 0.0)

    def of_q(a: float, q: float) -> float:
        b, low = log_odds_twofold(q)
        return by_logits(a, b, 0.0, low)

    return of_p, of_q


def from_one_to_many(by_logits: Formula) -> tuple[Formula, Formula]:
    """The same where q has a count."""

    def of_p(p: float, m: float, b: float) -> float:
        a, low = log_odds_twofold(p)
        return by_logits(a, m, b, low, 0.0)

    def of_q(a: float, m: float, q: float) -> float:
        b, low = log_odds_twofold(q)
        return by_logits(a, m, b, 0.0, low)

    return of_p, of_q


def from_many_to_one(by_logits: Formula) -> tuple[Formula, Formula]:
    """The same where p has a count."""

    def of_p(n: float, p: float, b: float) -> float:
        a, low = log_odds_twofold(p)
        return by_logits(n, a, b, low, 0.0)

    def of_q(n: float, a: float, q: float) -> float:
        b, low = log_odds_twofold(q)
        return by_logits(n, a, b, 0.0, low)

    return of_p, of_q


def from_many_to_many(by_logits: Formula) -> tuple[Formula, Formula]:
    """The same where both have a count."""

    def of_p(n: float, p: float, m: float, b: float) -> float:
        a, low = log_odds_twofold(p)
        return by_logits(n, a, m, b, low, 0.0)

    def of_q(n: float, a: float, m: float, q: float) -> float:
        b, low = log_odds_twofold(q)
        return by_logits(n, a, m, b, 0.0, low)

    return of_p, of_q


# By the number of parameters that p has before its probability, and that q has.
MIXED = {(0, 0): from_one_to_one, (0, 1): from_one_to_many, (1, 0): from_many_to_one, (1, 1): from_many_to_many}
