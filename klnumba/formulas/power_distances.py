"""Mean distances of powers of gamma variables from a given place.

Of W = (G/y)**c, G a gamma variable of rate 1, this is E abs(1 - W): what W falls short of 1 on average, what it exceeds
1 by, and how far its mean is from 1 hang together, so that one of the first two and the last suffice; nothing cancels.
The first two are the density of G at y times an integral that begins at y, which a trapezoidal rule takes after
v = exp(t - exp(-t)); the integrand then dies doubly exponentially at both ends (Takahasi and Mori 1974). For c = 0 it
is E abs(log(G/y)).
"""

from __future__ import annotations

import math

from klnumba.formulas.divergences import bregman
from klnumba.formulas.elementary import exp, expm1
from klnumba.formulas.special import exp_excess, stirling

INVERSE_SQRT_2PI = 0.3989422804014327
STEP = 1.0 / 32.0
FIRST, LAST = -4.5, 5.5  # where exp(t - exp(-t)) is 1e-41, and 244
FAR = 1e200  # a y from here on is beyond all mass of G but that of a shape of the same size


def density_at(shape: float, y: float, above: float) -> float:
    """y**shape*exp(-y) over the gamma function of the shape: the density of log G, given above = shape - y."""
    return math.sqrt(shape) * INVERSE_SQRT_2PI * exp(-(bregman(shape, y, above, 0.0) + stirling(shape)))


def rise(c: float, v: float) -> float:
    """abs(exp(c*v) - 1); for c = 0, v itself."""
    return v if c == 0.0 else abs(expm1(c * v))


def shortfall_near_zero(shape: float, c: float, y: float) -> float:
    """`power_below` for y up to 2: a sum over y**n/(shape*(shape + 1)...), less the same of shape + c."""
    term = 1.0 / shape
    share = 1.0  # shape*(shape + 1)... over the same of shape + c
    less = 0.0  # 1 - share, or for c = 0 the sum of 1/(shape + n)
    total = 0.0
    n = 0.0
    while n < 3.0 or term * abs(less) > 1e-18 * abs(total):
        less += 1.0 / (shape + n) if c == 0.0 else share * (c / (shape + c + n))
        share *= (shape + n) / (shape + c + n)
        total += term * less
        n += 1.0
        term *= y / (shape + n)
    return density_at(shape, y, shape - y) * abs(total)


def power_below(shape: float, c: float, y: float, above: float) -> float:
    """E abs(1 - W) of the part where G is below y = shape - above, for shape + c > 0 and y up to that."""
    if y <= 2.0:
        return shortfall_near_zero(shape, c, y)
    size = 2.0 / (above + math.hypot(above, math.sqrt(2.0 * y)))
    total = 0.0
    t = FIRST
    while t <= LAST:
        small = exp(-t)
        v = size * exp(t - small)
        total += rise(-c, v) * exp(-(above * v + y * exp_excess(-v))) * (v * (1.0 + small))
        t += STEP
    return density_at(shape, y, above) * (total * STEP)


def power_beyond(shape: float, c: float, y: float, above: float) -> float:
    """E abs(1 - W) of the part where G is above y = shape - above, for y from shape + c on."""
    if y >= FAR and y >= 2.0 * shape:
        return 0.0
    below = -above
    size = 2.0 / (below + math.hypot(below, math.sqrt(2.0 * y)))
    total = 0.0
    t = FIRST
    while t <= LAST:
        small = exp(-t)
        v = size * exp(t - small)
        weight = exp(-(below * v + y * exp_excess(v)))
        if weight > 0.0:
            total += rise(c, v) * weight * (v * (1.0 + small))
        t += STEP
    return density_at(shape, y, above) * (total * STEP)


def power_distance(shape: float, c: float, y: float, place: float, off: float, above: float) -> float:
    """E abs(X - place) of X = place*(G/y)**c, given off = E X - place and above = shape - y, for shape + c > 0.

    For c = 0 it is E abs(log(G/y)), with place = 1 and off = E log(G/y).

    Examples
    --------
    >>> round(float(power_distance(1.0, 1.0, 2.0, 2.0, -1.0, -1.0)), 12)
    1.270670566473
    """
    more = off if c >= 0.0 else -off
    if above + c >= 0.0 or y <= min(shape, 2.0):  # y up to shape + c, which may be rounded away
        return more + place * (2.0 * power_below(shape, c, y, above))
    return place * (2.0 * power_beyond(shape, c, y, above)) - more
