"""Threads that share a row: how their sums become one.

A team is 4 to 32 adjacent threads, or a whole block. The sums of its threads are added in a tree whose order depends
on the size of the team alone, so that every thread ends with the same bits. Numbers travel as double-doubles.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from klnumba.kernels.cuda.target import ROOM, WARP, cuda, exchange, piece, two_sum, vote


@dataclass(frozen=True)
class Team:
    """`width` threads of a block of `threads`, and what they do together.

    `room` is shared memory of `size` float64 numbers. All threads of a block must take part in every call.
    """

    width: int
    threads: int
    size: int
    add: Any  # (hi, lo, room): the sum of a double-double
    add_three: Any  # the sums of three
    add_three_plain: Any  # the same for float64 numbers whose low parts are zero, and stay that
    add_two_narrow: Any  # (a, b, room): the sums of two float32
    largest: Any  # (x, room): the largest x; NaN is passed over
    any: Any  # (flag): whether one thread that shares the fate of this one has set its flag


@piece
def joined(hi: Any, lo: Any, other: Any, low: Any) -> Any:
    """The sum of two double-doubles."""
    s, e = two_sum(hi, other)
    return s, (lo + low) + e


@piece
def larger(x: Any, y: Any) -> Any:
    return y if y > x else x


@functools.cache
def team(width: int, threads: int) -> Team:
    inside = min(width, WARP)
    steps = inside.bit_length() - 1
    warps = width // inside
    wide = warps > 1

    @piece
    def in_warp(hi: Any, lo: Any, room: Any) -> Any:
        for step in range(steps):
            other, low = exchange(hi, 1 << step, room), exchange(lo, 1 << step, room)
            hi, lo = joined(hi, lo, other, low)
        return hi, lo

    @piece
    def place() -> Any:
        """(the warp's number, whether this thread speaks for it)."""
        me = cuda.threadIdx.x
        return me // WARP, me % WARP == 0

    @piece
    def add(hi: Any, lo: Any, room: Any) -> Any:
        hi, lo = in_warp(hi, lo, room)
        if wide:
            warp, first = place()
            if first:
                room[2 * warp] = hi
                room[2 * warp + 1] = lo
            cuda.syncthreads()
            hi, lo = room[0], room[1]
            for k in range(1, warps):
                hi, lo = joined(hi, lo, room[2 * k], room[2 * k + 1])
            cuda.syncthreads()
        return hi, lo

    @piece
    def add_three(a: Any, ae: Any, b: Any, be: Any, c: Any, ce: Any, room: Any) -> Any:
        a, ae = in_warp(a, ae, room)
        b, be = in_warp(b, be, room)
        c, ce = in_warp(c, ce, room)
        if wide:
            warp, first = place()
            if first:
                at = 6 * warp
                room[at], room[at + 1], room[at + 2] = a, ae, b
                room[at + 3], room[at + 4], room[at + 5] = be, c, ce
            cuda.syncthreads()
            a, ae, b, be, c, ce = room[0], room[1], room[2], room[3], room[4], room[5]
            for k in range(1, warps):
                at = 6 * k
                a, ae = joined(a, ae, room[at], room[at + 1])
                b, be = joined(b, be, room[at + 2], room[at + 3])
                c, ce = joined(c, ce, room[at + 4], room[at + 5])
            cuda.syncthreads()
        return a, ae, b, be, c, ce

    @piece
    def add_three_plain(a: Any, ae: Any, b: Any, be: Any, c: Any, ce: Any, room: Any) -> Any:
        for step in range(steps):
            a += exchange(a, 1 << step, room)
            b += exchange(b, 1 << step, room)
            c += exchange(c, 1 << step, room)
        if wide:
            warp, first = place()
            if first:
                room[3 * warp], room[3 * warp + 1], room[3 * warp + 2] = a, b, c
            cuda.syncthreads()
            a, b, c = room[0], room[1], room[2]
            for k in range(1, warps):
                a += room[3 * k]
                b += room[3 * k + 1]
                c += room[3 * k + 2]
            cuda.syncthreads()
        return a, 0.0, b, 0.0, c, 0.0

    @piece
    def add_two_narrow(a: Any, b: Any, room: Any) -> Any:
        for step in range(steps):
            a += np.float32(exchange(a, 1 << step, room))
            b += np.float32(exchange(b, 1 << step, room))
        if wide:
            warp, first = place()
            if first:
                room[2 * warp], room[2 * warp + 1] = a, b
            cuda.syncthreads()
            a, b = np.float32(room[0]), np.float32(room[1])
            for k in range(1, warps):
                a += np.float32(room[2 * k])
                b += np.float32(room[2 * k + 1])
            cuda.syncthreads()
        return a, b

    @piece
    def largest(x: Any, room: Any) -> Any:
        for step in range(steps):
            x = larger(x, exchange(x, 1 << step, room))
        if wide:
            warp, first = place()
            if first:
                room[warp] = x
            cuda.syncthreads()
            x = room[0]
            for k in range(1, warps):
                x = larger(x, room[k])
            cuda.syncthreads()
        return x

    @piece
    def any_of(flag: Any) -> Any:
        if wide:
            return cuda.syncthreads_or(np.int32(flag)) != 0
        return vote(flag) != 0

    size = max(6 * warps, ROOM * threads)
    return Team(width, threads, size, add, add_three, add_three_plain, add_two_narrow, largest, any_of)


@piece
def value_of(hi: Any, lo: Any) -> Any:
    """The number that a double-double stands for; an infinity or a NaN has no low part."""
    return hi + lo if abs(hi) < math.inf else hi


@piece
def leading(hi: Any, lo: Any) -> Any:
    """The number itself, whose low part is zero."""
    return hi
