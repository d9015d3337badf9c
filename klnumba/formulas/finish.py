"""How the sums of a row become its value."""

from __future__ import annotations

import math


def kl_finish(g: float, p: float, q: float, floor: float, large: float) -> float:
    """The KL of the normalised rows from G = sum(cells), P and Q; -1 where that loses digits.

    KL = G/P - phi(t), t = (Q - P)/P, phi(t) = t - log1p(t). P and Q carry a
    few roundings, so phi is off by about 4u*|t|; the answer stands where that
    is below half a unit in its last place: where r >= 8*|t| + `floor`, with
    `floor` = 32u for the u of the sums, and where p and q are below `large`
    and above its inverse. Else the row wants a common scale first.
    """
    t = (q - p) / p
    tail = 1.0 / 7.0 - t * (1.0 / 8.0 - t * (1.0 / 9.0 - t * (1.0 / 10.0 - t * (1.0 / 11.0))))
    phi = t * t * (0.5 - t * (1.0 / 3.0 - t * (0.25 - t * (0.2 - t * (1.0 / 6.0 - t * tail)))))
    r = g / p - phi
    small = (abs(t) <= 2.0**-5) & (r >= 8.0 * abs(t) + floor) & (p < large) & (q < large) & (p > 1.0 / large)
    equal = (g == 0.0) & (p == q) & (p > 0.0) & (p < large)
    return 0.0 if equal else (r if small else -1.0)


def kl_finish_scaled(g: float, p: float, q: float, c: float) -> float:
    """The KL of rows that c = P/Q has brought to a common mass; -1 where the rounding of c would show.

    What is left of the difference in mass is t = (c*Q - P)/P, a few u, and KL = G/P - t*t/2.
    """
    r = g / p
    near_one = (p < 2.0**500) & (q < 2.0**500) & (p > 2.0**-500) & (q > 2.0**-500)
    return r if (r >= 2.0**-44) & near_one else -1.0


def finish_sum(
    p: float, pe: float, q: float, qe: float, g: float, ge: float, negative: float, common: float, normalize: bool
) -> float:
    """The sum of the cells over the common mass; NaN where a row is no distribution."""
    value = (g if abs(g) == math.inf else g + ge) / common
    if negative > 0.0 or (normalize and not (0.0 < p < math.inf and 0.0 < q < math.inf)):
        return math.nan
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
