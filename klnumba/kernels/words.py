"""Words in Arrow's layout as numbers: each word gets the number of its first appearance, by an open-addressing table.

A word is known by two 64-bit numbers and its length: its first 8 bytes and its last 8 (0 where it has no more than 8),
which hold all of a word of up to 16 bytes. Of longer ones the bytes themselves are compared as well, so that no two
words are ever taken for one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from klnumba.kernels.compiler import helper
from klnumba.kernels.instructions import eight_bytes, prefetch

KEYS = 3  # odd 64-bit numbers, by which words are scattered over the table
AHEAD = 2048  # bytes of words that are asked for: rows that follow hard on each other leave the hardware no time
NO_WORD = np.uint64(0xFFFFFFFFFFFFFFFF)  # the length of what row 0 of the words holds: no word is so long

_1, _3, _7, _8, _16, _32, _64 = (np.uint64(k) for k in (1, 3, 7, 8, 16, 32, 64))


@helper
def _short(data: Any, start: Any, length: Any) -> Any:
    """The bytes of a word of fewer than 8, as a number; what lies behind the data is not read."""
    if start + _8 <= np.uint64(data.size):
        return eight_bytes(data, start) & ((_1 << (length * _8)) - _1)
    found = np.uint64(0)
    for k in range(length):
        found |= np.uint64(data[start + np.uint64(k)]) << np.uint64(8 * k)
    return found


@helper
def _inner(data: Any, start: Any, length: Any, mixed: Any, keys: Any) -> Any:
    """What the bytes between the first and the last 8 make of a number."""
    for k in range(_1, length >> _3):
        mixed *= keys[1]
        mixed = mixed ^ (mixed >> _32) ^ eight_bytes(data, start + _8 * np.uint64(k))
    return mixed * keys[0]


@helper
def _same(data: Any, start: Any, pool: Any, place: Any, length: Any) -> Any:
    """Whether two words of the same length, first and last bytes are the same in between."""
    for k in range(_1, length >> _3):
        at = _8 * np.uint64(k)
        if eight_bytes(data, start + at) != eight_bytes(pool, place + at):
            return False
    return True


@helper
def _kept(data: Any, start: Any, length: Any, first: Any, last: Any, words: Any, starts: Any, pool: Any) -> Any:
    """Take a new word in, for which there must be room; returns its number, which begins with 1."""
    number = starts[0] + 1
    words[number, 0], words[number, 1], words[number, 2] = first, last, length
    place = starts[number]
    for k in range(length):
        pool[np.uint64(place) + np.uint64(k)] = data[start + np.uint64(k)]
    starts[0] = number
    starts[number + 1] = place + np.int64(length)
    return number


def coding() -> Callable[..., int]:
    """The numbers of the words of a column; returns how many rows are done, or -1 - row where a row has no word.

    `offsets` and `data` are Arrow's, `valid` its bits from bit number `bit` on, or empty where nothing is missing.
    `slots` holds numbers of words, 0 where it is free; its size is a power of 2 and more than the rows of `words`, of
    which row 0 stays empty. `starts` begins with how many words there are, then says where each begins in `pool`. What
    is missing has the number 0. Where the room for words is full, the loop ends; if the table is `closed`, new words
    share the number behind the last one instead. The slot is the high part of sums of products with odd keys (M.
    Dietzfelbinger et al., Journal of Algorithms 25, pp. 19-51, 1997): whoever does not know them cannot choose words
    that meet.
    """

    def code(
        offsets: Any, data: Any, valid: Any, bit: Any, keys: Any, slots: Any, words: Any, starts: Any, pool: Any,
        closed: Any, codes: Any,
    ) -> Any:  # fmt: skip
        mask, shift = np.uint64(slots.size - 1), _64
        while slots.size >> np.int64(_64 - shift) > 1:
            shift -= _1
        size, stop = np.uint64(data.size), np.uint64(offsets[0])
        if stop > size:
            return -1
        for row in range(codes.size):
            k = np.uint64(row)
            start, stop = stop, np.uint64(offsets[k + _1])
            if stop < start or stop > size:
                return -1 - row
            if valid.size:
                at = np.uint64(bit) + k
                if not (np.uint64(valid[at >> _3]) >> (at & _7)) & _1:
                    codes[k] = 0
                    continue
            prefetch(data, np.int64(start) + AHEAD)
            prefetch(offsets, row + AHEAD // 4)
            length = stop - start
            if length >= _8:
                first = eight_bytes(data, start)
                # Of a word of 8 bytes these are the same once more, and the sum of two odd keys is no key: it is even.
                last = eight_bytes(data, stop - _8) * np.uint64(length > _8)
            else:
                first, last = _short(data, start, length), np.uint64(0)
            mixed = first * keys[0] + last * keys[1] + length * keys[2]
            if length > _16:
                mixed = _inner(data, start, length, mixed, keys)
            slot = mixed >> shift
            while True:
                number = np.int64(slots[slot])
                w = np.uint64(number)
                if ((words[w, 0] ^ first) | (words[w, 1] ^ last) | (words[w, 2] ^ length)) == 0:
                    if length <= _16 or _same(data, start, pool, np.uint64(starts[number]), length):
                        break
                elif number == 0:
                    if starts[0] + 1 == words.shape[0]:
                        if not closed:
                            return row
                        number = np.int64(words.shape[0])
                        break
                    if starts[starts[0] + 1] + np.int64(length) > pool.size:
                        return row
                    number = _kept(data, start, length, first, last, words, starts, pool)
                    slots[slot] = number
                    break
                slot = (slot + _1) & mask
            codes[k] = number
        return codes.size

    return code


def checksums() -> Callable[..., None]:
    """The CRC-32 of some words, as `zlib.crc32` has it: the bytes of word k are data[starts[k] : stops[k]].

    `table` has the checksum of each byte, by which one byte at a time is taken in (D. V. Sarwate, Communications of
    the ACM 31, pp. 1008-1013, 1988).
    """

    def check(starts: Any, stops: Any, data: Any, table: Any, sums: Any) -> None:
        for row in range(sums.size):
            found = np.uint64(0xFFFFFFFF)
            for k in range(np.uint64(starts[row]), np.uint64(stops[row])):
                found = np.uint64(table[(found ^ np.uint64(data[k])) & np.uint64(0xFF)]) ^ (found >> _8)
            sums[row] = found ^ np.uint64(0xFFFFFFFF)

    return check
