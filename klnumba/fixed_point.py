"""Fixed-point numbers, written by `kernels.accumulate`, as Python's integers: sums that depend on no order."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from klnumba.formulas.exact_integers import BIAS, LIMB_BITS, LIMB_MASK, LIMBS
from klnumba.kernels import cpu, threads

Limbs = np.ndarray[Any, np.dtype[np.int64]]


def zeros(groups: int, count: int) -> Limbs:
    """`count` zeros for each group."""
    return np.zeros((groups, count, LIMBS), np.int64)


def carry(numbers: Limbs) -> None:
    """Bring every limb but the last, which keeps the sign, into 0 to 2**32 - 1: each number then has one form only."""
    for k in range(LIMBS - 1):
        over = numbers[..., k] >> LIMB_BITS
        if over.any():
            numbers[..., k] &= LIMB_MASK
            numbers[..., k + 1] += over


def as_integer(number: Limbs) -> int:
    """A number times 2**BIAS, carried or not."""
    places = number.nonzero()[0]
    return sum([limb << (LIMB_BITS * k) for k, limb in zip(places.tolist(), number[places].tolist(), strict=True)])


def from_integer(value: int) -> Limbs:
    """The carried number whose integer this is."""
    number = np.zeros(LIMBS, np.int64)
    last = value >> (LIMB_BITS * (LIMBS - 1))
    low = value - (last << (LIMB_BITS * (LIMBS - 1)))
    number[:-1] = np.frombuffer(low.to_bytes(4 * (LIMBS - 1), "little"), "<u4")
    number[-1] = last
    return number


def ratio(above: int, below: int) -> float:
    """above/below rounded once: infinite beyond the largest float64, NaN where `below` is 0."""
    if not below:
        return math.nan
    try:
        return above / below
    except OverflowError:
        return math.inf if (above > 0) == (below > 0) else -math.inf


def rounded(whole: int, rest: float, count: int) -> float:
    """What `sum_of` gave, or the sum of such, over a count, rounded once."""
    return rest if rest != 0.0 else ratio(whole, count << BIAS)


def sum_of(pieces: Iterable[np.ndarray[Any, Any]]) -> tuple[int, float]:
    """The exact sum of arrays of float64, times 2**BIAS; where a value is infinite or NaN, 0 and the sum of those."""
    loop, room = cpu.exact_sum(), threads.scratch(np.dtype(np.float64))[2]
    limbs, rest = zeros(1, 1), 0.0
    for values in pieces:
        values.flags.writeable = False
        if not loop(values, limbs, room):
            with np.errstate(invalid="ignore"):
                rest += float(values[~np.isfinite(values)].sum())
    return (0, rest) if rest != 0.0 else (as_integer(limbs[0, 0]), 0.0)
