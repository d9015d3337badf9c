"""How the sums of a row become its value."""

from __future__ import annotations

import math

LARGE = 2.0**900


def kl_finish(g: float, p: float, q: float, floor: float) -> float:
    """The KL of the normalised rows from G = sum(cells), P and Q; -1 where that loses digits.

    KL = G/P - phi(t), t = (Q - P)/P, phi(t) = t - log1p(t). P and Q carry a
    few roundings, so phi is off by about 4u*|t|; the answer stands where that
    is below half a unit in its last place: where r >= 8*|t| + `floor`, with
    `floor` = 32u for the u of the sums. Else the row wants a common scale first.
    """
    t = (q - p) / p
    phi = t * t * (0.5 - t * (1.0 / 3.0 - t * (0.25 - t * 0.2)))
    r = g / p - phi
    small = (abs(t) <= 2.0**-10) & (r >= 8.0 * abs(t) + floor) & (p < LARGE) & (q < LARGE) & (p > 1.0 / LARGE)
    equal = (g == 0.0) & (p == q) & (p > 0.0)
    return 0.0 if equal else (r if small else -1.0)


def finish_sum(
    p: float, pe: float, q: float, qe: float, g: float, ge: float, negative: float, common: float, normalize: bool
) -> float:
    """The sum of the cells over the common mass; NaN where a row is no distribution."""
    value = (g if abs(g) == math.inf else g + ge) / common
    if negative > 0.0 or p != p or q != q:
        return math.nan
    if normalize and not (0.0 < p < math.inf and 0.0 < q < math.inf):
        return math.nan
    return value


def finish_difference(
    p: float, pe: float, q: float, qe: float, g: float, ge: float, negative: float, common: float, normalize: bool
) -> float:
    """KL of rows taken as they are, G - (Q - P); NaN where the two cancel and the terms themselves do better."""
    whole = g + ge
    value = whole + ((p - q) + (pe - qe))
    sound = negative == 0.0 and (abs(value) >= 0.25 * whole or whole == 0.0)
    return value if sound else math.nan


def finish_largest(
    p: float, pe: float, q: float, qe: float, g: float, ge: float, negative: float, common: float, normalize: bool
) -> float:
    """The largest cell; NaN where a row is no distribution."""
    return finish_sum(p, pe, q, qe, g, 0.0, negative, 1.0, normalize)
