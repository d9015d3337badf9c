"""Row values into the state of an accumulator on a device: integers alone, so that the order of rows does not show.

What `klnumba.kernels.accumulate` does row by row, here many threads do at once. A group has a `core` of int64 numbers:
the limbs of its sums, its counts, and the weights of values that have no interval of their own. Its intervals are all
that there are, so that nothing has to be known of the values before. Without groups, a block collects the core in
shared memory and adds it to that of all in the end.

Weights are kept as whole numbers and, in two halves that have room for 2**32 additions, what is left in units of
2**-62.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from klnumba.formulas.exact_integers import HALF_BITS, LIMBS
from klnumba.kernels.accumulate import (
    ABOVE,
    AT_ZERO,
    BELOW,
    FINITE,
    KINDS,
    MINUS_INF,
    NOT_A_NUMBER,
    PART,
    PART_BITS,
    PLUS_INF,
    SPECIALS,
    ZERO,
)
from klnumba.kernels.cuda.flat import THREADS
from klnumba.kernels.cuda.limbs import add, bucket, carry, magnitude, product, put, put_product
from klnumba.kernels.cuda.target import cuda, kernel, load, piece, shared

# Of an accumulator on a device: with the 66 numbers of its arrays and sizes they are a launch, for which every driver
# has room, and the core of weighted rows fits into the shared memory of a block.
MOST_THRESHOLDS = 400
HALF = PART_BITS // 2
HALF_MASK = (1 << HALF) - 1
SIGN_LESS = 0x7FFFFFFFFFFFFFFF
LARGEST_KEY = 0x7FF0000000000000  # that of infinity, and
LEAST_KEY = -LARGEST_KEY - 1  # of -infinity


def numbers(weighted: bool) -> int:
    """Fixed-point numbers of a group: the sums of w*x and w*x**2, and with weights those of w and w**2."""
    return 4 if weighted else 2


def core_size(weighted: bool, thresholds: int) -> int:
    """Integers of the core of a group: sums, counts, and once or, with weights, three times, the places of values."""
    return numbers(weighted) * LIMBS + KINDS + (3 if weighted else 1) * (SPECIALS + thresholds)


def intervals(shift: int) -> int:
    """How many intervals the values of one sign have, `shift` being that of `klnumba.metrics.sketch`."""
    return 0 if shift < 0 else 0x7FF << (52 - shift)


@piece
def ordered(x: Any) -> Any:
    """An integer that is larger where x is."""
    bits = np.float64(x).view(np.int64)
    return bits if bits >= 0 else bits ^ SIGN_LESS


@functools.cache
def rows(weighted: bool, grouped: bool, chosen: bool, thresholds: int) -> Any:
    """Rows into states. `chosen` rows are those that `index` names."""
    many = numbers(weighted)
    counts = many * LIMBS
    places = counts + KINDS
    columns, size = SPECIALS + thresholds, core_size(weighted, thresholds)
    shared_core = shared(size, integers=True)

    @piece
    def tally(array: Any, low: Any, high: Any, at: Any, low_at: Any, high_at: Any, units: Any, rest: Any) -> None:
        add(array, at, units)
        if weighted:
            add(low, low_at, rest & HALF_MASK)
            add(high, high_at, rest >> HALF)

    @piece
    def special(core: Any, at: Any, column: Any, units: Any, rest: Any) -> None:
        place = at + places + column
        tally(core, core, core, place, place + columns, place + 2 * columns, units, rest)

    @piece
    def moments(core: Any, at: Any, x: Any, w: Any) -> None:
        """A finite value into the sums."""
        m, e = magnitude(x)
        sign = np.int64(1) if x > 0.0 else np.int64(-1)
        if not weighted:
            if x != 0.0:
                put(core, at, m, e, sign)
                put_product(core, at + LIMBS, m, m, 2 * e, np.int64(1))
            return
        n, f = magnitude(w)
        put(core, at + 2 * LIMBS, n, f, np.int64(1))
        put_product(core, at + 3 * LIMBS, n, n, 2 * f, np.int64(1))
        if x != 0.0:
            put_product(core, at, m, n, e + f, sign)
            low, high = product(m, m)
            put_product(core, at + LIMBS, low, n, f + 2 * e, np.int64(1))
            put_product(core, at + LIMBS, high, n, f + 2 * e + 2 * HALF_BITS, np.int64(1))

    @piece
    def kind_of(x: Any) -> Any:
        if x != x:
            return NOT_A_NUMBER
        if abs(x) == math.inf:
            return PLUS_INF if x > 0.0 else MINUS_INF
        return FINITE

    @piece
    def reach(extremes: Any, g: Any, x: Any) -> None:
        key = ordered(x)
        if key < extremes[2 * g]:  # seldom; an old value that another thread has lowered since does no harm
            cuda.atomic.min(extremes, 2 * g, key)
        if key > extremes[2 * g + 1]:
            cuda.atomic.max(extremes, 2 * g + 1, key)

    @piece
    def take(
        x: Any, w: Any, g: Any, core: Any, at: Any, limits: Any, extremes: Any, whole: Any, low: Any, high: Any,
        shift: Any, count: Any,
    ) -> None:  # fmt: skip
        kind = kind_of(x)
        add(core, at + counts + kind, 1)
        if kind == NOT_A_NUMBER:
            return
        units = np.int64(w)
        rest = np.int64((w - units) * PART)
        reach(extremes, g, x)
        for t in range(thresholds):
            if x > limits[t]:
                special(core, at, SPECIALS + t, units, rest)
        if kind != FINITE:
            special(core, at, ABOVE if x > 0.0 else BELOW, units, rest)
            return
        moments(core, at, x, w)
        if x == 0.0:
            add(core, at + counts + ZERO, 1)
        if x == 0.0 or count == 0:
            special(core, at, AT_ZERO, units, rest)
        else:
            place = 2 * count * g + (count if x > 0.0 else 0) + bucket(x, shift)
            tally(whole, low, high, place, place, place, units, rest)

    def accumulate(
        values: Any, index: Any, weights: Any, labels: Any, n: Any, limits: Any, core: Any, extremes: Any, whole: Any,
        low: Any, high: Any, shift: Any, count: Any,
    ) -> None:  # fmt: skip
        me = np.int64(cuda.threadIdx.x)
        mine = core
        if not grouped:
            mine = shared_core()
            for k in range(me, size, THREADS):
                mine[k] = 0
            cuda.syncthreads()
        for i in range(np.int64(cuda.grid(1)), n, np.int64(cuda.gridsize(1))):
            x = np.float64(load(values, np.int64(index[i]) if chosen else i)) + 0.0  # -0.0 becomes 0.0
            w = weights[i] if weighted else 1.0
            g = np.int64(labels[i]) if grouped else np.int64(0)
            take(x, w, g, mine, g * size, limits, extremes, whole, low, high, shift, count)
        if not grouped:
            cuda.syncthreads()
            if me < many:
                carry(mine, me * LIMBS)
            cuda.syncthreads()
            for k in range(me, size, THREADS):
                add(core, k, mine[k])

    name = f"accumulate-{'weighted' if weighted else 'plain'}-{int(grouped)}{int(chosen)}{thresholds}"
    return kernel(accumulate, name, THREADS)


@functools.cache
def carried(weighted: bool, thresholds: int) -> Any:
    """Every sum of `groups` cores in its one form: there is room for more again."""
    many, size = numbers(weighted), core_size(weighted, thresholds)

    def carries(groups: Any, core: Any) -> None:
        for i in range(np.int64(cuda.grid(1)), groups * many, np.int64(cuda.gridsize(1))):
            carry(core, i // many * size + i % many * LIMBS)

    return kernel(carries, f"carried-{'weighted' if weighted else 'plain'}-{thresholds}", THREADS)


@functools.cache
def no_extremes() -> Any:
    """The least and the largest value of no rows."""

    def empty(extremes: Any) -> None:
        for i in range(np.int64(cuda.grid(1)), extremes.size, np.int64(cuda.gridsize(1))):
            extremes[i] = LARGEST_KEY if i % 2 == 0 else LEAST_KEY

    return kernel(empty, "no-extremes", THREADS)
