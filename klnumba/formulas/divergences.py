"""What one cell adds to each divergence, and how the sums of a row are finished.

Everything rests on one decomposition. Take out the power of two between p and
q, rounded towards zero: q2 = q*2**k, with p/q2 in [1, 2) for p >= q and in
(1/2, 1] for p <= q. With s = (p - q2)/(p + q2), |s| < 1/3 has the sign of k, and

    log(p/q)              = k*ln2 + 2*atanh(s)
    p*log(p/q) - p + q    = [p*k*ln2 + q - q2] + s*[(p - q2) + p*s*s*R(s*s)]

where both brackets are >= 0 (p*k*ln2 + q - q2 is p times the same expression
at a ratio of exactly 2**k when p = q2, and only grows from there), so that
nothing cancels: not at p = q, where k = 0 and the first bracket vanishes, and
not far from it. R is the odd series 2*atanh(s) = 2*s + s*z*R(z), z = s*s.

A cell of a divergence is a function of ``(p, q, d)``: two non-negative numbers
on a common scale and their difference p - q, which the caller forms before any
rounding of a scale, so that it is right to its last digit also where p = q to
fifteen digits.
"""

from __future__ import annotations

import math

import numpy as np

from klnumba.formulas.elementary import LN2_HI, LN2_LO, exp, two_sum
from klnumba.formulas.odd_series import powers, series
from klnumba.formulas.primitives import fma
from klnumba.formulas.row_cells import kl_cell, power_below

HALF_MANTISSA = np.int64((1 << 51) - 1)
TINY_BITS, HUGE_BITS = np.int64(123 << 52), np.int64(1923 << 52)  # of 2**-900 and 2**900

TINY = 2.0**-900
HUGE = 2.0**900
VAST = 2.0**1020  # from here on p*log(p/q) may be too large where p*log(p/q) - p + q is not
UP = 2.0**128
LEAST = 2.0**-1074
DOWN = 2.0**-128
ALONE = 2.0**-50  # the share of a row below which all but one cell count little
DUST = 2.0**-98  # a relative difference below this is the rounding of the scale


# --- any two non-negative numbers -----------------------------------------------------------------------------------


def split_ratio(p: float, q: float, d: float) -> tuple[float, float, float, float, float]:
    """(k, s, q*2**k, p - q*2**k, scale) of two positive finite numbers, subnormal or huge ones included.

    The third and fourth are multiplied by `scale`, a power of two.
    """
    up = UP if p < TINY else (DOWN if p > HUGE else 1.0)
    uq = UP if q < TINY else (DOWN if q > HUGE else 1.0)
    x = p * up
    y = q * uq
    # `off` is the exponent that the two scalings put between x/y and p/q. Halved, the bits hold every difference.
    off = (np.int64(128) if uq > 1.0 else (np.int64(-128) if uq < 1.0 else np.int64(0))) - (
        np.int64(128) if up > 1.0 else (np.int64(-128) if up < 1.0 else np.int64(0))
    )
    bits_y = np.float64(y).view(np.int64)
    half = (np.float64(x).view(np.int64) >> np.int64(1)) - (bits_y >> np.int64(1)) + (off << np.int64(51))
    half += (half >> np.int64(63)) & HALF_MANTISSA
    k = half >> np.int64(51)
    q2 = np.int64(bits_y + ((k - off) << np.int64(52))).view(np.float64)
    d2 = d * up if k == 0 else x - q2
    return float(k), d2 / (x + q2), q2, d2, up


def log_ratio(p: float, q: float, d: float) -> float:
    """log(p/q), given d = p - q; the limits at 0 and inf."""
    k, s, _, _, _ = split_ratio(p, q, d)
    return log_of(p, q, k, s)


def sharp_log_ratio(p: float, q: float, d: float, low: float) -> float:
    """log(p/q), given p - q = d + low; s is put right for its own rounding, at the price of a second division."""
    k, s, q2, d2, scale = split_ratio(p, q, d)
    both, lost = two_sum(p * scale, q2)
    rest = low * scale if k == 0.0 else 0.0
    return log_of(p, q, k, s + (fma(-s, both, d2) + (rest - s * lost)) / both)


def log_of(p: float, q: float, k: float, s: float) -> float:
    """k*ln2 + 2*atanh(s), and the limits of log(p/q)."""
    value = k * LN2_HI + (2.0 * s + (s * (s * s * series(s * s)) + k * LN2_LO))
    if p == 0.0 or q == math.inf:
        value = -math.inf
    if q == 0.0 or p == math.inf:
        value = math.inf
    if p == 0.0 and q == 0.0:
        value = 0.0
    return math.nan if p != p or q != q or (p == math.inf and q == math.inf) else value


def bregman(p: float, q: float, d: float, low: float) -> float:
    """p*log(p/q) - p + q >= 0, given p - q = d + low, `low` the rounding error of d.

    Where p is close to q, s = d/(p + q) is corrected for its own rounding: s*d + s*r is d*d/(p + q) to one rounding.
    """
    k, s, q2, d2, scale = split_ratio(p, q, d)
    x = p * scale
    both, lost = two_sum(x, q2)
    rest = low * scale if k == 0.0 else 0.0  # far from p it would not count, and may overflow
    r = fma(-s, both, d2) + (rest - s * lost) + rest
    near = s * (d2 + (x * (s * s * series(s * s)) + r)) / scale
    far = p * (k * LN2_LO) + (p * (k * LN2_HI) + (q - q2 / scale))
    value = near if k == 0.0 else near + far
    if q == 0.0 or p == math.inf:
        value = math.inf
    if p == 0.0 or q == math.inf:
        value = q
    if p != p or q != q or (p == math.inf and q == math.inf):
        value = math.nan
    return value


# --- cells on a common scale ----------------------------------------------------------------------------------------
# Both rows sum to `mass`; d + low = p - q to twice the digits, above_p = mass - p, above_q = mass - q, however small.
# The divergence of normalised rows is sum(cells)/mass; rows that are taken as they are have the mass 1.


def scaled(x: float, factor: float) -> float:
    """A cell times its scale, which must not make a zero."""
    product = x * factor
    return LEAST if product == 0.0 and x > 0.0 else product


def multipliers(h: float, he: float, p_mass: float, q_mass: float) -> tuple[float, float, float, float]:
    """(u, ue, v, ve): what takes p and q to the larger one of their sums, whose ratio h + he is at least 1."""
    p_stays = p_mass >= q_mass
    u, ue = (1.0, 0.0) if p_stays else (h, he)
    v, ve = (h, he) if p_stays else (1.0, 0.0)
    return u, ue, v, ve


def common_mass(p_mass: float, q_mass: float) -> float:
    """The larger one, to which both rows are taken."""
    return p_mass if p_mass >= q_mass else q_mass


def on_common_mass(
    x: float, y: float, u: float, ue: float, v: float, ve: float, p_mass: float, p_rest: float, q_mass: float,
    q_rest: float,
) -> tuple[float, float, float, float, float, float]:  # fmt: skip
    """(p, q, d, low, above_p, above_q) of u*x and v*y, with the `multipliers` of rows that sum to mass + rest each.

    Each product is kept with its rounding. What a cell lacks of the sum is found before it is multiplied: beside a
    cell that is nearly all of its row the roundings of the multiplier would be more than that.
    """
    p, q = u * x, v * y
    gap, lost = two_sum(p, -q)
    tails = (fma(u, x, -p) + ue * x) - (fma(v, y, -q) + ve * y)
    d, low = two_sum(gap, lost + tails)
    dust = abs(d) < DUST * p
    above_p, above_q = u * ((p_mass - x) + p_rest), v * ((q_mass - y) + q_rest)
    return p, q, 0.0 if dust else d, 0.0 if dust else low, above_p, above_q


def kl(p: float, q: float, d: float, low: float, mass: float, above_p: float, above_q: float, weight: float) -> float:
    return bregman(p, q, d, low)


def jeffreys(
    p: float, q: float, d: float, low: float, mass: float, above_p: float, above_q: float, weight: float
) -> float:
    return 0.0 if d == 0.0 else (d + low) * sharp_log_ratio(p, q, d, low)


def mixture(p: float, q: float, d: float, low: float, weight: float) -> float:
    """w*KL(p||m) + (1 - w)*KL(q||m), m = w*p + (1 - w)*q: the linear parts of the two cells cancel exactly."""
    other = 1.0 - weight
    m = weight * p + other * q
    m = LEAST if m == 0.0 and p + q > 0.0 and 0.0 < weight < 1.0 else m  # half of the least number rounds to zero
    first = weight * bregman(p, m, other * d, other * low)
    second = other * bregman(q, m, -weight * d, -weight * low)
    return (0.0 if weight == 0.0 else first) + (0.0 if other == 0.0 else second)


def js(p: float, q: float, d: float, low: float, mass: float, above_p: float, above_q: float, weight: float) -> float:
    return mixture(p, q, d, low, weight)


def cross_entropy(
    p: float, q: float, d: float, low: float, mass: float, above_p: float, above_q: float, weight: float
) -> float:
    """-p*log(q/mass)."""
    return 0.0 if p == 0.0 and q == q else p * log_ratio(mass, q, above_q)


def entropy(
    p: float, q: float, d: float, low: float, mass: float, above_p: float, above_q: float, weight: float
) -> float:
    """-p*log(p/mass)."""
    return 0.0 if p == 0.0 else p * log_ratio(mass, p, above_p)


# --- pointwise ------------------------------------------------------------------------------------------------------


def rel_entr(p: float, q: float) -> float:
    """p*log(p/q) with the edge values of scipy.special.rel_entr."""
    finite = p > 0.0 and q > 0.0 and p < math.inf and q < math.inf
    x = p if finite else 1.0
    y = q if finite else 1.0
    value = x * log_ratio(x, y, x - y)
    if not finite:
        if p != p or q != q or (p == math.inf and q == math.inf):
            value = math.nan
        elif p == 0.0 and q >= 0.0:
            value = 0.0
        elif q == math.inf and p > 0.0:
            value = -math.inf
        else:
            value = math.inf
    return value


def plain(p: float, q: float) -> bool:
    """Whether p and q lie between 2**-900 and 2**900, or p is zero."""
    bits_p = np.float64(p).view(np.int64)
    bits_q = np.float64(q).view(np.int64)
    lowest = bits_q if p == 0.0 else min(bits_p, bits_q)
    return bool((lowest >= TINY_BITS) & (max(bits_p, bits_q) < HUGE_BITS))


def rel_entr_plain(p: float, q: float) -> tuple[float, bool]:
    """`rel_entr` of `plain` numbers, and whether these are such."""
    x = q if p == 0.0 else p
    bits_p = np.float64(x).view(np.int64)
    bits_q = np.float64(q).view(np.int64)
    power = powers(bits_p - bits_q)
    q2 = np.int64(bits_q + power).view(np.float64)
    s = (x - q2) / (x + q2)
    z = s * s
    pk = x * float(power >> np.int64(52))
    value = pk * LN2_HI + (x * (2.0 * s + s * (z * series(z))) + pk * LN2_LO)
    return 0.0 if p == 0.0 else value, plain(p, q)


def generalized_kl_plain(p: float, q: float) -> tuple[float, bool]:
    """`generalized_kl` of the same numbers."""
    return kl_cell(p, q, 1.0)[0], plain(p, q)


def generalized_kl(p: float, q: float) -> float:
    """p*log(p/q) - p + q with the edge values of scipy.special.kl_div, (1, inf) and (inf, 1) being inf."""
    finite = p > 0.0 and q > 0.0 and p < math.inf and q < math.inf
    vast = min(p, q) > 1.0 and max(p, q) > VAST
    part = 0.0625 if vast else 1.0
    x = part * p if finite else 1.0
    y = part * q if finite else 1.0
    d, low = two_sum(x, -y)
    value = bregman(x, y, d, low) * (16.0 if vast else 1.0)
    if not finite:
        if p != p or q != q or (p == math.inf and q == math.inf):
            value = math.nan
        elif p == 0.0 and q >= 0.0:
            value = q
        else:
            value = math.inf
    return value


def kl_div(log_q: float, p: float) -> float:
    """p*(log p - log_q): PyTorch's loss from a log-probability and a target."""
    finite = p > 0.0 and p < math.inf
    x = p if finite else 1.0
    value = x * (log_ratio(x, 1.0, x - 1.0) - log_q)
    if not finite:
        if p == 0.0 and log_q == log_q:
            value = 0.0
        elif p == math.inf and log_q < math.inf:
            value = math.inf
        else:
            value = math.nan
    return value


def kl_div_plain(log_q: float, p: float) -> tuple[float, bool]:
    """`kl_div` of a `plain` target."""
    x = 1.0 if p == 0.0 else p
    shift, power = power_below(x)
    s = (x - power) / (x + power)
    z = s * s
    k = float(shift >> np.int64(52))
    value = x * ((k * LN2_HI - log_q) + (2.0 * s + (s * (z * series(z)) + k * LN2_LO)))
    return 0.0 if p == 0.0 else value, bool(plain(p, 1.0) & (log_q == log_q))


def kl_div_log_target(log_q: float, log_p: float) -> float:
    """exp(log_p)*(log_p - log_q)."""
    value = exp(log_p) * (log_p - log_q)
    return 0.0 if log_p == -math.inf and log_q == log_q else value


def rel_entr_cell(
    p: float, q: float, d: float, low: float, mass: float, above_p: float, above_q: float, weight: float
) -> float:
    """p*log(p/q), with every edge value: the cell of rows that are taken as they are."""
    return rel_entr(p, q)


def log_ratio_cell(
    p: float, q: float, d: float, low: float, mass: float, above_p: float, above_q: float, weight: float
) -> float:
    """log(p/q), and -inf where p = 0: its largest value is the order-infinity Renyi divergence."""
    alone = abs(above_p) + abs(above_q) < ALONE * mass  # then d may be less than its roundings
    return -math.inf if p == 0.0 else log_ratio(p, q, above_q - above_p if alone else d)
