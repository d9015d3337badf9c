"""The dilogarithm in the unit disk of the complex plane, in twice the digits of float64."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np

from klnumba.duals.number import Number, Twofold, exactly, twofold, where
from klnumba.duals.twofold import PI_SQUARED_BY_6, angle, log, stirling_series

TERMS = 24  # of the series in log(1 - z): its terms fall by 30 each at least
POWERS = 60  # of the series in z, up to a third


@cache
def _series() -> tuple[Twofold, ...]:
    """B(2k)/(2k + 1)! for k from 1 on."""
    stirling = stirling_series()  # B(2k)/(2k*(2k - 1))
    return tuple(
        exactly(c * 2 * k * (2 * k - 1) / math.factorial(2 * k + 1)) for k, c in enumerate(stirling[:TERMS], 1)
    )


def _times(z: tuple[Twofold, Twofold], w: tuple[Twofold, Twofold]) -> tuple[Twofold, Twofold]:
    """The product of two complex numbers."""
    return z[0] * w[0] - z[1] * w[1], z[0] * w[1] + z[1] * w[0]


def beyond_first_order(x: Number, y: Number, less_x: Number) -> Twofold:
    """The real part of Li2(z) - z, z = x + i*y in the unit disk; `less_x` is 1 - x, of which no digits may be lost.

    Powers of z where it is small; else Li2(z) as a series in log(1 - z) (D. Zagier, "The dilogarithm function", 2007),
    with z and 1 - z exchanged where the real part is above 1/2.
    """
    x, y, less_x = twofold(x), twofold(y), twofold(less_x)
    size = x.hi * x.hi + y.hi * y.hi
    small, right = size < 1.0 / 9.0, x.hi > 0.5
    near = where(small, x, 0.0), where(small, y, 0.0)
    inside = where(right, less_x, x), where(right, -y, y)
    outside = where(right, x, less_x), where(right, y, -y)  # 1 less the one above
    log_size = 0.5 * log(outside[0] * outside[0] + outside[1] * outside[1])
    u = -log_size, -angle(outside[1], outside[0])
    square = _times(u, u)
    total = _series()[-1], Twofold(0.0)
    for c in _series()[-2::-1]:
        total = _times(total, square)
        total = total[0] + c, total[1]
    far = u[0] - 0.25 * square[0] + _times(_times(total, square), u)[0]
    most = np.maximum(np.abs(inside[0].hi), np.abs(inside[1].hi))  # whose square may leave the range
    parts = [part / most for part in inside]
    log_inside = log(most) + 0.5 * log(parts[0] * parts[0] + parts[1] * parts[1]), angle(parts[1], parts[0])
    exchanged = PI_SQUARED_BY_6 + _times(u, log_inside)[0] - far
    exchanged = where((inside[0].hi == 0.0) & (inside[1].hi == 0.0), PI_SQUARED_BY_6, exchanged)
    return where(small, _powers_of(near), where(right, exchanged, far) - x)


def _powers_of(z: tuple[Twofold, Twofold]) -> Twofold:
    """The real part of the sum of z**n/n**2 from n = 2 on."""
    total = exactly(Fraction(1, POWERS**2)), Twofold(0.0)
    for n in range(POWERS - 1, 1, -1):
        total = _times(total, z)
        total = total[0] + exactly(Fraction(1, n * n)), total[1]
    return _times(_times(total, z), z)[0]
