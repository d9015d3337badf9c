"""One read of a row, each cell in the arithmetic of its dtype: three sums, wide."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from klnumba.formulas.elementary import sum_of_four
from klnumba.kernels.cuda.cells import COMPUTED, GROUP, reader
from klnumba.kernels.cuda.target import device, piece, two_sum
from klnumba.kernels.cuda.team import Team

_four = device(sum_of_four)


Terms = Callable[..., Any]  # (x, y, c): the sums of the terms of a group of cells, and its guard


@functools.cache
def adder(wide: bool) -> Any:
    """What adds a number to a sum: a double-double of float64 numbers, or a float64 of float32 numbers."""

    @piece
    def add(hi: Any, lo: Any, x: Any) -> Any:
        if wide:
            s, e = two_sum(hi, x)
            return s, lo + e
        return hi + np.float64(x), lo

    return add


class Guard(NamedTuple):
    """What tells whether the cells of a row are such as their formula serves: an integer of each, made one."""

    start: Any  # of a row without cells
    both: Any  # (one, other): of the cells of both
    holds: Any  # (one): whether the formula serves them


@piece
def _either(one: Any, other: Any) -> Any:
    return one | other


@piece
def _larger(one: Any, other: Any) -> Any:
    return other if other > one else one


@piece
def _positive(one: Any) -> Any:
    return one >= 0


NO_SIGN = Guard(np.int32(0), _either, _positive)  # no cell has a negative one


def below(limit: int) -> Guard:
    """No cell has one of `limit` or more."""
    bound = np.int32(limit)

    @piece
    def holds(one: Any) -> Any:
        return one < bound

    return Guard(np.int32(0), _larger, holds)


class Pairs(NamedTuple):
    """How cells of 16 bits are looked at two by two, before each becomes a number."""

    two: Any  # (x, y): what is made of two words of two cells each, and a guard
    cell: Any  # of what was made
    one: Any  # (guard): what makes of a guard of two cells that of one


@piece
def as_it_is(guard: Any) -> Any:
    """A guard that is that of one cell already."""
    return guard


@functools.cache
def sweep(
    cell: Any, store: str, team: Team, grouped: bool, nothing: float, told: Guard, pairwise: Pairs | None = None
) -> Any:  # fmt: skip
    """The sums of a row over the team, as three double-doubles.

    `cell(x, y, c)` gives the three terms of a cell and its guard; where this does not hold the first sum is NaN.
    `nothing` is what fills up the last group. `grouped` threads take `GROUP` adjacent cells at a time, whose terms are
    added first; else two.
    """
    wide, holds = COMPUTED[store] == "float64", told.holds
    walk = groups(cell, store, team.width, nothing, told, pairwise) if grouped else pairs(cell, store, team.width, told)
    add_three = team.add_three if wide else team.add_three_plain

    @piece
    def sums(p: Any, o: Any, q: Any, u: Any, d: Any, c: Any, lane: Any, room: Any) -> Any:
        s, guard = walk(p, o, q, u, d, c, lane)
        first = s[0] if holds(guard) else math.nan
        return add_three(first, s[1], s[2], s[3], s[4], s[5], room)

    return sums


def adding(store: str) -> Any:
    """What adds three terms to the sums."""
    add = adder(COMPUTED[store] == "float64")

    @piece
    def added(s: Any, f: Any, x: Any, y: Any) -> Any:
        a, ae = add(s[0], s[1], f)
        b, be = add(s[2], s[3], x)
        e, ee = add(s[4], s[5], y)
        return a, ae, b, be, e, ee

    return added


def pairs(cell: Any, store: str, width: int, told: Guard) -> Any:
    """The sums of the cells of a thread, two at a time."""
    begin, both, _ = told
    two, one, added = reader(store).two(width), reader(store).at, adding(store)
    apart, twice = np.int32(width), np.int32(2 * width)

    @piece
    def walk(p: Any, o: Any, q: Any, u: Any, d: Any, c: Any, lane: Any) -> Any:
        s = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        guard = begin
        k, last = np.int32(lane), np.int32(np.int32(d) - apart)
        while k < last:
            x, v = two(p, o, k)
            y, w = two(q, u, k)
            f, a, b, g = cell(x, y, c)
            f1, a1, b1, g1 = cell(v, w, c)
            s, guard = added(s, f + f1, a + a1, b + b1), both(guard, both(g, g1))
            k = np.int32(k + twice)
        if k < last + apart:
            f, a, b, g = cell(one(p, o, k), one(q, u, k), c)
            s, guard = added(s, f, a, b), both(guard, g)
        return s, guard

    return walk


def in_fours(cell: Any, store: str, told: Guard) -> tuple[Any, Terms]:
    """(the sums of the terms of four cells, and their guard; those of a group)."""
    both, group = told.both, GROUP[store]

    @piece
    def four(x0: Any, x1: Any, x2: Any, x3: Any, y0: Any, y1: Any, y2: Any, y3: Any, c: Any) -> Any:
        f0, a0, b0, g0 = cell(x0, y0, c)
        f1, a1, b1, g1 = cell(x1, y1, c)
        f2, a2, b2, g2 = cell(x2, y2, c)
        f3, a3, b3, g3 = cell(x3, y3, c)
        return _four(f0, f1, f2, f3), _four(a0, a1, a2, a3), _four(b0, b1, b2, b3), both(both(g0, g1), both(g2, g3))

    @piece
    def terms(x: Any, y: Any, c: Any) -> Any:
        f, a, b, g = four(x[0], x[1], x[2], x[3], y[0], y[1], y[2], y[3], c)
        if group == 8:
            f1, a1, b1, g1 = four(x[4], x[5], x[6], x[7], y[4], y[5], y[6], y[7], c)
            return f + f1, a + a1, b + b1, both(g, g1)
        return f, a, b, g

    return four, terms


def of_words(terms: Terms, store: str, told: Guard, pairwise: Pairs | None) -> tuple[Terms, Any]:
    """(the terms of a group of words; what makes of the guard of two cells that of one)."""
    numbers, both = reader(store).numbers, told.both
    if pairwise is None:

        @piece
        def terms_of_words(x: Any, y: Any, c: Any) -> Any:
            return terms(numbers(x), numbers(y), c)

        return terms_of_words, as_it_is
    two = pairwise.two
    _, terms_of_these = in_fours(pairwise.cell, store, told)

    @piece
    def terms_of_pairs(x: Any, y: Any, c: Any) -> Any:
        v0, w0, g0 = two(x[0], y[0])
        v1, w1, g1 = two(x[1], y[1])
        v2, w2, g2 = two(x[2], y[2])
        v3, w3, g3 = two(x[3], y[3])
        f, a, b, g = terms_of_these(numbers((v0, v1, v2, v3)), numbers((w0, w1, w2, w3)), c)
        return f, a, b, both(g, both(both(g0, g1), both(g2, g3)))

    return terms_of_pairs, pairwise.one


def in_turns(terms: Terms, of_one: Any, store: str, width: int, told: Guard) -> Any:
    """What adds the whole groups of a thread; the next ones are on their way while those at hand are computed.

    The additions to the sums, in float64, take time: the terms of two groups are added first.
    """
    fetch, group, step = reader(store).fetch, GROUP[store], np.int32(width * GROUP[store])
    both, added = told.both, adding(store)

    @piece
    def walk(p: Any, o: Any, q: Any, u: Any, whole: Any, c: Any, lane: Any, s: Any, guard: Any) -> Any:
        k = np.int32(np.int32(lane) * group)
        if k >= whole:
            return s, guard
        x, y = fetch(p, o, k), fetch(q, u, k)
        while True:  # in turns, so that no number is moved
            then = np.int32(k + step)
            ahead = then if then < whole else k
            v, w = fetch(p, o, ahead), fetch(q, u, ahead)
            f, a, b, g = terms(x, y, c)
            guard = both(guard, g)
            k = np.int32(then + step)
            if then >= whole:
                s = added(s, f, a, b)
                break
            ahead = k if k < whole else then
            x, y = fetch(p, o, ahead), fetch(q, u, ahead)
            f1, a1, b1, g1 = terms(v, w, c)
            s = added(s, f + f1, a + a1, b + b1)
            guard = both(guard, g1)
            if k >= whole:
                break
        return s, of_one(guard)

    return walk


def groups(cell: Any, store: str, width: int, nothing: float, told: Guard, pairwise: Pairs | None) -> Any:
    """The sums of the cells of a thread, a group at a time."""
    begin, both, _ = told
    read, group, added = reader(store), GROUP[store], adding(store)
    one, narrow, aligned, none = read.one, read.narrow, read.aligned, np.dtype(COMPUTED[store]).type(nothing)
    four, terms = in_fours(cell, store, told)
    whole_groups = in_turns(*of_words(terms, store, told, pairwise), store, width, told)

    @piece
    def at_most(source: Any, at: Any, k: Any, count: Any) -> Any:
        """Cell k of the `count` that are left, or nothing."""
        return one(source, at + k) if k < count else none

    @piece
    def walk(p: Any, o: Any, q: Any, u: Any, d: Any, c: Any, lane: Any) -> Any:
        s = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        guard = begin
        whole = d // group * group
        if aligned(p, o) and aligned(q, u):
            s, guard = whole_groups(p, o, q, u, np.int32(whole), c, lane, s, guard)
        else:
            for k in range(lane * group, whole, width * group):
                f, a, b, g = terms(narrow(p, o + k), narrow(q, u + k), c)
                s, guard = added(s, f, a, b), both(guard, g)
        # The last cells, fewer than a group, fall to the thread whose turn it is.
        if whole < d and whole // group % width == lane:
            for k in range(whole, d, 4):
                i, j, n = o + k, u + k, d - k
                f, a, b, g = four(
                    at_most(p, i, 0, n), at_most(p, i, 1, n), at_most(p, i, 2, n), at_most(p, i, 3, n),
                    at_most(q, j, 0, n), at_most(q, j, 1, n), at_most(q, j, 2, n), at_most(q, j, 3, n), c,
                )  # fmt: skip
                s, guard = added(s, f, a, b), both(guard, g)
        return s, guard

    return walk
