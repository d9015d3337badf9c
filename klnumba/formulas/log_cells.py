"""Cells of rows that are given as logarithms: log-probabilities and logits.

With u = log p and delta = log(p/q), a cell of KL is p*(delta + expm1(-delta)),
of second order in delta: no logarithm is taken and nothing cancels. Below ln2
it is a polynomial; above, both p and q come from the larger of the two and
e**-|delta|, so that neither overflows and a q that underflows is no zero.
"""

from __future__ import annotations

import math

import numpy as np

from klnumba.formulas.divergences import bregman, mixture
from klnumba.formulas.elementary import LN2_HI, LN2_LO, exp, two_sum
from klnumba.formulas.primitives import fma

LN2 = 0.6931471805599453
INV_LN2 = 1.4426950408889634
ROUNDER = 1.5 * 2.0**52

# E(r) = (expm1(r) - r)/r**2 = 1/2 + r/6 + ..., minimax for |r| <= ln2, degree 12, relative error 1.4e-17
# (tests/reference/coefficients.py).
E0, E1, E2, E3, E4, E5, E6 = (
    0.5,
    0.16666666666666663,
    0.041666666666666706,
    0.008333333333335054,
    0.001388888888887912,
    0.00019841269838391298,
    2.4801587309438643e-05,
)
E7, E8, E9, E10, E11, E12 = (
    2.75573212857128e-06,
    2.7557316632326173e-07,
    2.5051391303883813e-08,
    2.0877027691038005e-09,
    1.6178616829960107e-10,
    1.1495539920778676e-11,
)


def remainder(r: float) -> float:
    """expm1(r) - r for |r| <= ln2."""
    e = E12
    e = e * r + E11
    e = e * r + E10
    e = e * r + E9
    e = e * r + E8
    e = e * r + E7
    e = e * r + E6
    e = e * r + E5
    e = e * r + E4
    e = e * r + E3
    e = e * r + E2
    e = e * r + E1
    e = e * r + E0
    return r * r * e


def power_over(w: float, e: float, inverse: float, tail: float) -> float:
    """e**((w + e)*(inverse + tail)), where e and tail are rounding errors; 0 where w is -inf."""
    a = w * inverse
    value = exp(a)
    rest = (fma(w, inverse, -a) + w * tail) + e * inverse
    return value + value * (rest if w > -math.inf else 0.0)


def relative(
    x: float, y: float, top_p: float, top_q: float, inverse: float, tail: float, shift: float, shift_low: float
) -> tuple[float, float, float, float, float, float, float]:
    """(u, its low part, t, v, its low part, delta, its low part) of the cells x and y of two rows of logarithms.

    u and t are x and y less the largest cells of their rows, over the temperature, whose inverse is inverse + tail.
    v = t + shift and delta = u - v, shift + shift_low being a guess of the log-ratio of the rows' sums.
    """
    wx, ex = two_sum(x, -top_p)
    wy, ey = two_sum(y, -top_q)
    gap, e = two_sum(wx, -wy)
    s = gap * inverse
    delta, ed = two_sum(s, -shift)
    ed += ((ex - ey + e) * inverse + (fma(gap, inverse, -s) + gap * tail)) - shift_low
    delta, low = two_sum(delta, ed)
    t = wy * inverse
    v, ev = two_sum(t, shift)
    u = wx * inverse
    # A zero: its logarithm is -inf, whose error terms are not numbers.
    no_p = x == -math.inf
    no_q = y == -math.inf
    low_u = 0.0 if no_p else ex * inverse + (fma(wx, inverse, -u) + wx * tail)
    low_v = 0.0 if no_q else (ey * inverse + (fma(wy, inverse, -t) + wy * tail)) + (ev + shift_low)
    delta = (0.0 if no_q else -math.inf) if no_p else (math.inf if no_q else delta)
    delta = x - y if x != x or y != y else delta
    low = 0.0 if no_p or no_q else low
    return u, low_u, t, v, low_v, delta, low


def lift(u: float, low_u: float, v: float, low_v: float, delta: float, low: float) -> tuple[float, float, float, float]:
    """(p, q, p - q, the cell of KL) from u + low_u = log p, v + low_v = log q, delta + low = log(p/q).

    The low parts are rounding errors. A zero has the logarithm -inf.
    """
    a = abs(delta)
    near = a < LN2
    # Up from p by e**-delta, or down from the larger of the two by e**-a.
    up = near or (delta < 0.0 and a < 2.0)
    from_p = up or delta > 0.0
    far = min(a, 1000.0)  # e**-1000 is zero
    t = far * INV_LN2 - 0.5 + ROUNDER
    k = 0.0 if near else t - ROUNDER
    rest_of_a = (far - k * LN2_HI) - k * LN2_LO
    r = -delta if near else (rest_of_a if up else -rest_of_a)
    rest = remainder(r)
    sign = np.int64(k) if up else -np.int64(k)
    power = np.int64((np.int64(1023) + max(sign, np.int64(-1022))) << np.int64(52)).view(np.float64)
    factor: float = power * (1.0 + (r + rest))
    factor -= factor * (low if up or delta > 0.0 else -low)
    factor = 0.0 if far > 707.0 else factor
    base = exp(u if from_p else v)
    base += base * (low_u if from_p else low_v)
    other = base * factor
    p = base if from_p else other
    q = other if from_p else base
    d = -base * ((power - 1.0) + power * (r + rest)) if up else p - q
    rise = (((power - 1.0) - k * LN2_HI) - k * LN2_LO) + ((power - 1.0) * r + power * rest)
    fall = (a - 1.0) + factor if delta > 0.0 else 1.0 - factor * (1.0 + far)
    g = base * (rise if up else fall)
    return p, q, d, math.inf if delta == math.inf else g


# --- what a cell adds: (p, q, p - q, cell of KL, log(p/q), -log p, -log q) on the mass of p, the logs normalised ---


def kl(p: float, q: float, d: float, g: float, delta: float, nu: float, nv: float, weight: float) -> float:
    return g


def no_cell(p: float, q: float, d: float, g: float, delta: float, nu: float, nv: float, weight: float) -> float:
    """For a read that takes the sums of p and q - p alone."""
    return 0.0


def rel_entr(p: float, q: float, d: float, g: float, delta: float, nu: float, nv: float, weight: float) -> float:
    return 0.0 if p == 0.0 else p * delta


def jeffreys_log(p: float, q: float, d: float, g: float, delta: float, nu: float, nv: float, weight: float) -> float:
    return 0.0 if delta == 0.0 else (math.inf if abs(delta) == math.inf else d * delta)


def js_log(p: float, q: float, d: float, g: float, delta: float, nu: float, nv: float, weight: float) -> float:
    return mixture(p, q, d, 0.0, weight)


def cross_entropy_log(
    p: float, q: float, d: float, g: float, delta: float, nu: float, nv: float, weight: float
) -> float:
    return math.inf if delta == math.inf else (0.0 if p == 0.0 else p * nv)


def entropy_log(p: float, q: float, d: float, g: float, delta: float, nu: float, nv: float, weight: float) -> float:
    return 0.0 if p == 0.0 else p * nu


def log_ratio_log(p: float, q: float, d: float, g: float, delta: float, nu: float, nv: float, weight: float) -> float:
    return -math.inf if nu == math.inf else delta


def phi(t: float) -> float:
    """t - log1p(t) without cancellation."""
    return bregman(1.0, 1.0 + t, -t, 0.0)
