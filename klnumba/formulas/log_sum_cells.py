"""Cells of what takes little more than the sums of the exponentials of rows of logits, in float64.

That is entropy, cross-entropy, JS and the largest log-ratio.

With m the largest cell of a row x and t = m - x, which is never negative, the exponentials are e**-t and their sum is
1 + R, where R leaves one largest cell out and so keeps its digits where that cell is nearly all. With t and R of q,

    cross-entropy = log1p(R_q) + sum(e**-t_p * t_q) / (1 + R_p),

of which the entropy is the case q = p. With p and q normalised by these sums, delta = log(p/q), which keeps the
rounding errors of its differences, and s = (p - q)/(p + q) = tanh(delta/2), a cell of JS is

    (p + q)/2 * ((1 + s) * log1p(s) + (1 - s) * log1p(-s))/2,

where delta is small a polynomial in its square. No term is negative, so nothing cancels. The rounding of a normaliser
moves all deltas alike, which changes JS by no more than in proportion: the masses (p + q) * s add up to nothing.
"""

from __future__ import annotations

import math

from klnumba.formulas.elementary import INF, expm1, log1p, two_sum
from klnumba.formulas.log_cells import LN2
from klnumba.formulas.logit_cells import power

DEEP = 1000.0  # so far below the largest cell an exponential is zero
HIGHEST = 2.0**40  # the largest cell of a row, in size, of which `DEEP` can be taken away
LEAST = 2.0**-900  # a sum beside which the exponentials do not count that `power` takes for zeros, below 2**-1022,
FARTHEST = 2.0**60  # even times a logarithm of up to this
LEAST_JS = 2.0**-50  # JS from which on the square of an error of the ratio of the sums, 2**-51, does not show

# A cell of JS of p + q = 2 is delta**2 times a polynomial in delta**2, for |delta| < 2: degree 18, relative error
# 2**-59.2; and log1p(w)/w for w up to e**-2: degree 10, 2**-56.8 (tests/reference/coefficients.py, js_near and
# log1p_near). With a smaller limit the difference in `js` would lose more digits.
NEAR = 2.0
J0, J1, J2, J3, J4, J5, J6, J7, J8, J9 = (
    0.125,
    -0.015625,
    0.0017361111111111086,
    -0.00018446180555550538,
    1.922123015832207e-05,
    -1.9835528714752636e-06,
    2.0358565532731706e-07,
    -2.082586776161649e-08,
    2.1257186613658967e-09,
    -2.1663386927526194e-10,
)
J10, J11, J12, J13, J14, J15, J16, J17, J18 = (
    2.2044411848339746e-11,
    -2.2365025486326073e-12,
    2.247273816871545e-13,
    -2.1937951032746628e-14,
    1.9968059173967406e-15,
    -1.5824103666840366e-16,
    9.886478055980003e-18,
    -4.191148151530411e-19,
    8.820310373680555e-21,
)
K0, K1, K2, K3, K4, K5, K6, K7, K8, K9, K10 = (
    1.0,
    -0.4999999999999931,
    0.3333333333308478,
    -0.24999999968874073,
    0.19999998065956928,
    -0.16666597406784603,
    0.14284173111460707,
    -0.12477911994144128,
    0.1090563908949574,
    -0.08783581038492572,
    0.04755681854943245,
)


def fall(x: float, top: float, deep: float, inverse: float) -> tuple[float, float]:
    """(t, its low part) of a cell of a row whose largest is `top`; `deep` is `DEEP` times the temperature.

    1/temperature, `inverse`, is a power of two.
    """
    bottom = top - deep
    t, low = two_sum(top, -(bottom if x < bottom else x))
    return t * inverse, low * inverse


def below(x: float, top: float, deep: float, inverse: float) -> tuple[float, float, float]:
    """(t, e**-t, the same for R)."""
    t, low = fall(x, top, deep, inverse)
    e = power(-t)
    e -= e * low
    return t, e, 0.0 if x == top else e


def surprise(x: float, y: float, e: float, top_p: float, top_q: float, deep: float, inverse: float) -> float:
    """What a cell adds to the sum over e**-t_p * t_q; not finite where q has a zero and p none, tiny as it may be."""
    t = (top_q - y) * inverse
    t = INF if t > FARTHEST and x >= top_p - deep else t
    return 0.0 if x == -INF else e * t


def own_surprise(t: float, e: float) -> float:
    """The same of a row and itself."""
    return e * t


def finished(rest_p: float, rest_q: float, sum_of_cells: float) -> tuple[float, bool]:
    """(the value, whether it is right) from R of p and of q and the sum over the cells."""
    value = log1p(rest_q) + sum_of_cells / (1.0 + rest_p)
    return value, LEAST <= value < math.inf and rest_p >= 0.0


def between(rest_p: float, rest_q: float) -> tuple[float, float, float]:
    """(the logarithm of the ratio of the sums, half their inverses)."""
    mass_p, mass_q = 1.0 + rest_p, 1.0 + rest_q
    gap = rest_p - rest_q
    shift = log1p(abs(gap) / min(mass_p, mass_q))  # of the larger over the smaller: near -1 log1p would lose digits
    return -shift if gap < 0.0 else shift, 0.5 / mass_p, 0.5 / mass_q


def js_near(z: float) -> float:
    """A cell of p + q = 2 over z = delta**2, for delta up to `NEAR`."""
    high = J10 + z * (J11 + z * (J12 + z * (J13 + z * (J14 + z * (J15 + z * (J16 + z * (J17 + z * J18)))))))
    middle = J4 + z * (J5 + z * (J6 + z * (J7 + z * (J8 + z * (J9 + z * high)))))
    return J0 + z * (J1 + z * (J2 + z * (J3 + z * middle)))


def log1p_near(w: float) -> float:
    """log1p(w) for w from 0 up to e**-`NEAR`."""
    high = K5 + w * (K6 + w * (K7 + w * (K8 + w * (K9 + w * K10))))
    return w * (K0 + w * (K1 + w * (K2 + w * (K3 + w * (K4 + w * high)))))


def js_of_gap(large: float, size: float, low: float) -> float:
    """A cell of JS, from half the larger one of p and q and the size of delta with its low part."""
    z = size * size + (size + size) * low
    w = power(-size)
    w -= w * low
    near = (1.0 + w) * (z * js_near(z))
    far = (1.0 + w) * (LN2 - log1p_near(w)) - w * size
    return large * (near if size < NEAR else far)


def js(
    x: float, y: float, top_p: float, top_q: float, deep: float, inverse: float, shift: float, half_p: float,
    half_q: float,
) -> float:  # fmt: skip
    """A cell of JS, given `between`: of the larger one of p and q, and of the smaller as a part of it, w."""
    s, low_s = fall(x, top_p, deep, inverse)
    t, low_t = fall(y, top_q, deep, inverse)
    gap, e = two_sum(t, -s)
    first, f = two_sum(gap, -shift)
    low = (e + f) + (low_t - low_s)
    delta = first + low
    low -= delta - first  # delta + low is right to twice the digits
    more = delta > 0.0
    large = power(-(s if more else t))
    large = (large - large * (low_s if more else low_t)) * (half_p if more else half_q)
    large = LEAST if large < LEAST else large  # so that the sum is zero only where all deltas are
    return js_of_gap(large, abs(delta), low if more else -low)


def js_finished(rest_p: float, rest_q: float, sum_of_cells: float) -> tuple[float, bool]:
    """(the value, whether it is right), as `finished`."""
    equal = sum_of_cells == 0.0 and rest_p == rest_q
    right = equal or LEAST_JS <= sum_of_cells < math.inf
    return (LN2 if sum_of_cells > LN2 else sum_of_cells), right and rest_p >= 0.0 and rest_q >= 0.0


def fall_apart(x: float, y: float, top_p: float, top_q: float, inverse: float) -> float:
    """t_q - t_p, with the rounding errors of its differences; -inf where p is zero, and infinite where only q is."""
    u, low_u = two_sum(x, -top_p)
    v, low_v = two_sum(y, -top_q)
    gap, e = two_sum(u, -v)
    gap += (low_u - low_v) + e
    gap = gap * inverse if gap == gap else INF
    return -INF if x == -INF else gap


def gained(gap: float, p: float, q: float) -> float:
    """q - p, of two exponentials and their `fall_apart`, to the last digits also where they are near."""
    return p * expm1(-gap) if abs(gap) < 1.0 else q - p


def ratio_finished(rest_p: float, gain: float, gap: float) -> tuple[float, bool]:
    """(the largest log-ratio, whether it is right) from the sum of `gained` and the largest `fall_apart`.

    The sizes of the first add up to no more than three times the value, so that their roundings do not count.
    """
    value = gap + log1p(gain / (1.0 + rest_p))
    right = abs(gap) <= 2.0 * value and rest_p >= 0.0  # the sum loses one bit at most
    return value, LEAST <= value < math.inf and right


def is_usable(top: float, inverse: float) -> bool:
    """Whether a row with this largest cell can be computed so; the largest of cells that are no numbers is -inf."""
    return abs(top * inverse) < HIGHEST
