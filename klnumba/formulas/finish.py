"""What is added up beside the cells of a row, and how the sums become its value."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from klnumba.formulas.elementary import sum_of_four, two_sum

LIMITS = {"js": math.log(2.0)}  # what normalised rows may have at most, and roundings might exceed
GRID = 1.5 * 2.0**9  # its last place, also with less than 256 added, is 2**-43
MAGNITUDE = np.int64((1 << 63) - 1)


def limit(name: str, normalize: bool) -> float:
    """The largest value of a divergence of rows."""
    return LIMITS.get(name, math.inf) if normalize else math.inf


def masses(
    x0: float, x1: float, x2: float, x3: float, y0: float, y1: float, y2: float, y3: float
) -> tuple[float, float]:
    """Of four cells, in float64 or float32, for the sums of p and of q."""
    return sum_of_four(x0, x1, x2, x3), sum_of_four(y0, y1, y2, y3)


def differences(
    x0: float, x1: float, x2: float, x3: float, y0: float, y1: float, y2: float, y3: float
) -> tuple[float, float]:
    """The same for the sum of p - q to twice the digits: the rounded sum, and what the roundings lost.

    The second is NaN where a cell is no number or infinite, as then a sum does not give its own rounding; and where
    a p is so large that p + q might overflow in `kl_cell`, which no difference would show.
    """
    a, lost_a = two_sum(x0, -y0)
    b, lost_b = two_sum(x1, -y1)
    c, lost_c = two_sum(x2, -y2)
    d, lost_d = two_sum(x3, -y3)
    ab, lost_ab = two_sum(a, b)
    cd, lost_cd = two_sum(c, d)
    total, lost = two_sum(ab, cd)
    lost = ((lost_a + lost_b) + (lost_c + lost_d)) + ((lost_ab + lost_cd) + lost)
    kind = type(x0)
    return total, lost + (sum_of_four(x0, x1, x2, x3) * kind(4.0)) * kind(0.0)


def split_difference(p: float, q: float, grid: float) -> tuple[float, float, np.int64]:
    """p - q as a multiple of the last place of `grid` and the rest, to twice the digits, and the bits of its size.

    With `GRID` it may have a size of up to 256, and multiples whose sizes add up to less than 1024 have exact sums, in
    whatever order. With a grid times a power of two these sizes are larger or smaller by as much.
    """
    d, lost = two_sum(p, -q)
    high = (d + grid) - grid
    return high, (d - high) + lost, np.float64(d).view(np.int64) & MAGNITUDE


def bend(t: float) -> float:
    """t - log1p(t) for |t| up to 2**-5."""
    tail = 1.0 / 7.0 - t * (1.0 / 8.0 - t * (1.0 / 9.0 - t * (1.0 / 10.0 - t * (1.0 / 11.0))))
    return t * t * (0.5 - t * (1.0 / 3.0 - t * (0.25 - t * (0.2 - t * (1.0 / 6.0 - t * tail)))))


def kl_finish(g: float, p: float, q: float, floor: float, large: float) -> float:
    """The KL of the normalised rows from G = sum(cells), P and Q; -1 where that loses digits.

    KL = G/P - phi(t), t = (Q - P)/P, phi(t) = t - log1p(t). P and Q carry a
    few roundings, so phi is off by about 4u*|t|; the answer stands where that
    is below half a unit in its last place: where r >= 8*|t| + `floor`, with
    `floor` = 32u for the u of the sums, and where p and q are below `large`
    and above its inverse. Else the row wants a common scale first.
    """
    t = (q - p) / p
    r = g / p - bend(t)
    small = (abs(t) <= 2.0**-5) & (r >= 8.0 * abs(t) + floor) & (p < large) & (q < large) & (p > 1.0 / large)
    equal = (g == 0.0) & (p == q) & (p > 0.0) & (p < large)
    return 0.0 if equal else (r if small else -1.0)


def kl_finish_difference(g: float, d: float, e: float, floor: float, large: float) -> float:
    """KL of rows taken as they are, from G = sum(cells) and sum(p - q) = d + e; NaN where that loses digits.

    It does where the two cancel, as in `finish_difference`, and below `floor`; from `large` on a cell may overflow.
    """
    value = g + (d + e)
    sound = (abs(value) >= 0.5 * g) & (abs(value) >= floor) & (abs(value) < large)
    equal = (g == 0.0) & (value == 0.0)
    return 0.0 if equal else (value if sound else math.nan)


def kl_finish_scaled(g: float, p: float, q: float, c: float) -> float:
    """The KL of rows that c = P/Q has brought to a common mass; -1 where the rounding of c would show.

    What is left of the difference in mass is t = (c*Q - P)/P, a few u, and KL = G/P - t*t/2.
    """
    r = g / p
    return r if (r >= 2.0**-44) & middling(p, q) else -1.0


def to_mass_of_p(p: float, q: float) -> float:
    """What takes q to the sum of p."""
    return p / q


def to_larger_mass(p: float, q: float) -> float:
    """What takes q to the sum of p or, where that is the smaller one, p to that of q; then it is negative.

    So are p and q, exchanged, the same rows in every bit.
    """
    return p / q if p >= q else -q / p


def to_one(p: float, q: float) -> float:
    """What takes q to the sum 1."""
    return 1.0 / q


def middling(p: float, q: float) -> bool:
    """Whether both sums are far from where products overflow or underflow."""
    return bool((p < 2.0**500) & (q < 2.0**500) & (p > 2.0**-500) & (q > 2.0**-500))


def jeffreys_finish(a: float, b: float, p: float, q: float, floor: float, large: float) -> float:
    """Jeffreys of the normalised rows, KL there and back, from the sums A and B of `jeffreys_cells`; -1 as there."""
    there, back = kl_finish(a, p, q, floor, large), kl_finish(b, q, p, floor, large)
    return there + back if (there >= 0.0) & (back >= 0.0) else -1.0


def jeffreys_finish_plain(a: float, b: float, p: float, q: float, floor: float, large: float) -> float:
    """The same of rows taken as they are: what p and q are off each other is in A and, with the other sign, in B."""
    mass, value = 0.5 * p + 0.5 * q, a + b
    sound = (value >= floor * floor * mass) & (value < large) & (mass < large) & (mass > 1.0 / large)
    equal = (value == 0.0) & (p == q) & (p < large)
    return 0.0 if equal else (value if sound else -1.0)


def jeffreys_finish_scaled(a: float, b: float, p: float, q: float, c: float) -> float:
    """The same of rows that c has brought to the larger mass, as `kl_finish_scaled`."""
    return 2.0 * js_finish_scaled(a, b, p, q, c)


def js_finish(alike: float) -> Callable[[float, float, float, float, float, float], float]:
    """JS of the normalised rows from the sums A and B of `js_cells`, P and Q; -1 where that loses digits.

    With M for the mean of P and Q, t = (P - Q)/2M and z = t*t, A/P + B/Q - psi, psi = 2z/(1 - z) + log1p(-z), is twice
    what the normalised rows have to (p + q)/2M. Their own mean is another: JS is less by a share of up to z, which does
    not count up to |t| = `alike`. P and Q carry a few roundings, so psi is off by about 8u*|t|; the answer stands under
    the terms of `kl_finish`. Below `floor` it may also show that the means of cells were rounded.
    """

    def finish(a: float, b: float, p: float, q: float, floor: float, large: float) -> float:
        mass = 0.5 * p + 0.5 * q
        t = 0.5 * (p - q) / mass
        z = t * t
        r = 0.5 * (a / p + b / q - z * (1.0 + 1.5 * z))
        small = (abs(t) <= alike) & (r >= 8.0 * abs(t) + floor) & (mass < large) & (mass > 1.0 / large)
        equal = (a == 0.0) & (b == 0.0) & (p == q) & (p > 0.0) & (p < large)
        return 0.0 if equal else (r if small else -1.0)

    return finish


def js_finish_scaled(a: float, b: float, p: float, q: float, c: float) -> float:
    """The JS of rows that c has brought to the larger mass, as `kl_finish_scaled`.

    What is left of the difference in mass, t, changes A + B by a share of up to t.
    """
    r = 0.5 * (a + b) / (p if c > 0.0 else q)
    return r if (r >= 2.0**-44) & middling(p, q) else -1.0


def js_finish_plain(a: float, b: float, p: float, q: float, floor: float, large: float) -> float:
    """The same of rows taken as they are: what p and q lack of their means is the same."""
    mass, value = 0.5 * p + 0.5 * q, 0.5 * (a + b)
    sound = (value >= floor * mass) & (mass < large) & (mass > 1.0 / large)
    equal = (value == 0.0) & (p == q) & (p < large)
    return 0.0 if equal else (value if sound else -1.0)


def cross_entropy_finish(a: float, b: float, p: float, q: float, floor: float, large: float) -> float:
    """The cross-entropy of the normalised rows from the sums A and B of `cross_entropy_cells`, P and Q; or -1.

    It is A/P + log(Q). Q - 1 = e is what B is off an integer, right to a few roundings of the cells below 1/2, the sum
    of which is no larger than the cross-entropy. The answer stands where |e| is so much smaller that nothing cancels.
    """
    value = cross_entropy_of(a, b, p, q)
    inside = (p < large) & (p > 1.0 / large) & ((a * large >= 2.0**24) | (value == 0.0))  # no cell underflows
    return value if inside else -1.0


def cross_entropy_finish_scaled(a: float, b: float, p: float, q: float, c: float) -> float:
    """The same of p and c*q, where c = 1/Q up to roundings."""
    value = cross_entropy_of(a, b, p, c * q)
    return value if middling(p, q) else -1.0


def whole_of(p: float, rest: float) -> float:
    """A sum of cells, of which `rest` is right where p is not: it lacks a number of ones."""
    ones: float = np.floor((p - rest) + 0.5)
    return ones + rest


def cross_entropy_of(a: float, b: float, p: float, q: float) -> float:
    """The value of `cross_entropy_finish`, or -1, for a P in range."""
    many = np.floor((q - b) + 0.5)
    e = b + (many - 1.0)
    value = a / p + (e - bend(e))
    sound = (abs(e) <= 2.0**-5) & (value >= 8.0 * abs(e))
    equal = (a == 0.0) & (e == 0.0)
    return 0.0 if equal else (value if sound else -1.0)


def cross_entropy_finish_plain(a: float, b: float, p: float, q: float, floor: float, large: float) -> float:
    """The same of rows taken as they are, A itself, where what of it is negative is little.

    A term is where q is above 1, and then by no more than the sum of q is.
    """
    inside = (p < large) & (p > 1.0 / large)
    sound = inside & (a >= 64.0 * p * (max(q - 1.0, 0.0) + floor)) & (a * large >= 2.0**24)
    nothing = (a == 0.0) & (q <= 1.0) & (inside | (p == 0.0))
    return 0.0 if nothing else (a if sound else -1.0)


def finish_sum(
    p: float, pe: float, q: float, qe: float, g: float, ge: float, negative: float, common: float, normalize: bool
) -> float:
    """The sum of the cells over the common mass; NaN where a row is no distribution."""
    if negative > 0.0 or (normalize and not (0.0 < p < math.inf and 0.0 < q < math.inf)):
        return math.nan
    value = (g if abs(g) == math.inf else g + ge) / common
    return 0.0 if normalize and value < 0.0 else value


def finish_difference(
    p: float, pe: float, q: float, qe: float, g: float, ge: float, negative: float, common: float, normalize: bool
) -> float:
    """KL of rows taken as they are, G - (Q - P); NaN where the two cancel and the terms themselves do better."""
    whole = g + ge
    value = whole + ((p - q) + (pe - qe))
    sound = negative == 0.0 and (abs(value) >= 0.5 * whole or whole == 0.0)
    return value if sound else math.nan


def finish_largest(
    p: float, pe: float, q: float, qe: float, g: float, ge: float, negative: float, common: float, normalize: bool
) -> float:
    """The largest cell; NaN where a row is no distribution."""
    invalid = negative > 0.0 or (normalize and not (0.0 < p < math.inf and 0.0 < q < math.inf))
    return math.nan if invalid else g
