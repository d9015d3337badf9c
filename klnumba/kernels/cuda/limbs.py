"""Fixed-point numbers (`klnumba.formulas.exact_integers`) that many threads add to.

Additions of integers make the same sum in any order, so that it does not matter which thread comes first. A limb has
room for 2**29 additions between carries.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from klnumba.formulas import exact_integers as integers
from klnumba.kernels.cuda.target import cuda, device, piece

LIMBS, BIAS = integers.LIMBS, integers.BIAS
BITS, MASK, HALF_BITS = integers.LIMB_BITS, integers.LIMB_MASK, integers.HALF_BITS
magnitude, product, bucket = device(integers.magnitude), device(integers.product), device(integers.bucket)

DIGITS = 1 << 55  # quotients have one more bit at least, two beyond those of a float64
_LEAST = -1076  # the exponent below which a quotient's bits do not show but for rounding


@piece
def add(array: Any, at: Any, value: Any) -> None:
    """Add to an integer that other threads add to."""
    if value != 0:
        cuda.atomic.add(array, at, value)


@piece
def put(array: Any, at: Any, m: Any, e: Any, sign: Any) -> None:
    """Add sign*m*2**e, m below 2**63, to the number whose limbs begin at `at`."""
    place = e + BIAS
    k, shift = at + (place >> 5), place & 31
    low, high = (m & MASK) << shift, (m >> BITS) << shift
    add(array, k, sign * (low & MASK))
    add(array, k + 1, sign * ((low >> BITS) + (high & MASK)))
    add(array, k + 2, sign * (high >> BITS))


@piece
def put_product(array: Any, at: Any, m: Any, n: Any, e: Any, sign: Any) -> None:
    """Add sign*m*n*2**e, m below 2**55 and n below 2**53."""
    low, high = product(m, n)
    put(array, at, low, e, sign)
    put(array, at, high, e + 2 * HALF_BITS, sign)


@piece
def carry(array: Any, at: Any) -> None:
    """Bring the limbs of a number, all but the last, into 0 to 2**32 - 1."""
    over = np.int64(0)
    for k in range(LIMBS - 1):
        limb = array[at + k] + over
        over = limb >> BITS
        array[at + k] = limb & MASK
    array[at + LIMBS - 1] += over


@piece
def _bit(limbs: Any, k: Any) -> Any:
    return (limbs[k >> 5] >> (k & 31)) & 1 if k >= 0 else np.int64(0)


@piece
def _quotient(limbs: Any, over: Any) -> Any:
    """(q, k) such that a positive number over an integer is about q*2**k: what is left shows in the last bit of q."""
    last = LIMBS - 1
    while limbs[last] == 0:
        last -= 1
    top = last * BITS + BITS - 1
    while _bit(limbs, top) == 0:
        top -= 1
    rest, q = np.int64(0), np.int64(0)
    k = top + 1
    while q < DIGITS:
        k -= 1
        rest = 2 * rest + _bit(limbs, k)
        q = 2 * q
        if rest >= over:
            rest -= over
            q += 1
    below = rest
    for i in range(max(k >> 5, 0)):
        below |= limbs[i]
    if k > 0:
        below |= limbs[k >> 5] & ((np.int64(1) << (k & 31)) - 1)
    return (q | 1 if below != 0 else q), k


@piece
def _power(e: Any) -> Any:
    return np.int64((np.int64(e) + np.int64(1023)) << np.int64(52)).view(np.float64)


@piece
def rounded(limbs: Any, over: Any) -> Any:
    """A number over an integer below 2**53, rounded once; NaN over 0. The limbs are used up."""
    if over == 0:
        return math.nan
    carry(limbs, 0)
    negative = limbs[LIMBS - 1] < 0
    if negative:
        for i in range(LIMBS):
            limbs[i] = -limbs[i]
        carry(limbs, 0)
    some = np.int64(0)
    for i in range(LIMBS):
        some |= limbs[i]
    if some == 0:
        return 0.0
    q, k = _quotient(limbs, over)
    e = k - BIAS
    if e < _LEAST:
        lost = min(_LEAST - e, 62)
        q = (q >> lost) | (1 if q & ((np.int64(1) << lost) - 1) else 0)
        e = _LEAST
    if e == _LEAST and q < DIGITS >> 1:  # a subnormal number: its bits are the integer
        last = q & 3
        q = q >> 2
        q += 1 if last + (q & 1) > 2 else 0
        value: Any = np.int64(q).view(np.float64)
    else:
        half = e // 2
        value = math.inf if e > 1100 else np.float64(q) * _power(half) * _power(e - half)
    return -value if negative else value
