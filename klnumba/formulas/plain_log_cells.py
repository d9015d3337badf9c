"""Cells of rows of log-probabilities that are taken as they are: with x = log p and y = log q, one sum is the value.

    KL             p*(x - y)
    cross-entropy  -p*y, of which the entropy is the case q = p
    Jeffreys       (p - q)*(x - y)
    JS             log_sum_cells.js_of_gap

An exponential is rounded by itself, so that a term is wrong by a few units in its own last place, and a sum of terms of
both signs by that much of what their sizes add up to. For KL this is as much as can be had: the other form, the sum of
p*(x - y) - p + q less that of q - p, is made of the same exponentials, and its terms are no smaller, since
|p*(x - y)| <= |p*(x - y) - p + q| + |q - p|.

A zero's logarithm is -inf. A cell is infinite where q has a zero and p has none. It is NaN or -inf, which means that
another loop is to look at the row, where a logarithm is +inf or NaN, an exponential is infinite, or a difference of two
huge logarithms.
"""

from __future__ import annotations

import numpy as np

from klnumba.formulas.elementary import INF, NAN, exp, expm1, two_sum
from klnumba.formulas.log_sum_cells import DEEP, js_of_gap

LOWEST = -float(np.finfo(np.float64).max)  # a zero's logarithm, of which others can be taken away


def held(x: float) -> float:
    """A logarithm, no less than `LOWEST`; NaN stays."""
    return LOWEST if x < LOWEST else x


def mass(x: float) -> float:
    """e**x, and NaN where that is infinite: a product with it would have a sign."""
    p = exp(x)
    return NAN if p == INF else p


def lacks(x: float, y: float) -> bool:
    """Whether q has a zero where p has none; a p of +inf is no number."""
    return y == -INF and -INF < x < INF


def kl(x: float, y: float) -> float:
    return INF if lacks(x, y) else mass(x) * (held(x) - held(y))


def cross_entropy(x: float, y: float) -> float:
    return INF if lacks(x, y) else mass(x) * -held(y)


def entropy(x: float, y: float) -> float:
    return mass(x) * -held(x)


def apart(x: float, y: float) -> float:
    """The size of x - y; 0 of two zeros."""
    return 0.0 if x == y else abs(x - y)


def larger(x: float, y: float) -> float:
    return x if x > y else y


def jeffreys(x: float, y: float) -> float:
    size = apart(x, y)
    return mass(larger(x, y)) * (size * -expm1(-size))


def js(x: float, y: float) -> float:
    """With equal weights."""
    gap, low = two_sum(larger(x, y), -(y if x > y else x))
    known = gap < DEEP  # the smaller one counts, and the rounding error is a number
    size = 0.0 if x == y else (gap if known or gap != gap else DEEP)
    return js_of_gap(0.5 * mass(larger(x, y)), size, low if known else 0.0)
