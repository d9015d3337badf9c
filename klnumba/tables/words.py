"""Words in Arrow's layout, counted from its buffers in one compiled pass: no row becomes a Python object.

Counts are exact: words are compared by all their bytes. How the rows are cut into chunks does not matter.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from klnumba.kernels import cpu
from klnumba.kernels.binning import LANES
from klnumba.kernels.words import KEYS, NO_WORD
from klnumba.tables.cells import Array
from klnumba.tables.codes import frozen

MOST = 1 << 21  # words that are counted at a time; beyond, the rarest are forgotten
ROOM = 256  # words for which there is room at first
MANY = 1 << 16  # words from which on the tables of counts would be larger than a cache
BLOCK = 1 << 15  # rows whose numbers are held at a time


NOTHING = frozen(np.empty(0, np.uint8))


@dataclass(frozen=True)
class Words:
    """Words as Arrow lays them, in `frozen` arrays: word k is data[offsets[k] : offsets[k + 1]].

    `valid` has a bit for each, from number `bit` on, that is 0 where the word is missing; it is empty where none is.
    """

    offsets: Array
    data: Array
    valid: Array
    bit: int = 0

    @property
    def rows(self) -> int:
        return self.offsets.size - 1


class DamagedWords(ValueError):
    """Offsets that do not lie within the data."""


@functools.cache
def _keys() -> Array:
    """Drawn anew in each process, so that nobody can prepare words that share one place of the table."""
    return frozen(np.frombuffer(os.urandom(8 * KEYS), np.uint64) | np.uint64(1))


class Vocabulary:
    """Numbers for words from 1 on, in the order of their first appearance, and how often each was counted.

    Parameters
    ----------
    known : sequence of str
        Words that have the first numbers.
    new : int, optional
        How many others get a number of their own; the rest share the one behind the last. Without it, the rarer half
        of `MOST` words is forgotten where there are more.
    """

    def __init__(self, known: Sequence[str] = (), new: int | None = None) -> None:
        self.most = MOST if new is None else len(known) + new
        self.closed = new is not None
        self._make(min(self.most, ROOM + len(known)), 0)
        if known:
            raw = [word.encode("utf-8", "surrogatepass") for word in known]
            ends = frozen(np.cumsum([0, *map(len, raw)]))
            self._take(Words(ends, np.frombuffer(b"".join(raw), np.uint8), NOTHING))

    def _make(self, room: int, space: int) -> None:
        """An empty table."""
        self.room = room
        self.slots = np.zeros(1 << (2 * room + 1).bit_length(), np.int32)
        self.words = np.empty((room + 1, 4), np.uint64)  # the fourth keeps a word in one cache line
        self.words[0] = NO_WORD
        self.starts = np.zeros(room + 2, np.int64)  # how many words there are, and where each begins in the pool
        self.pool = np.empty(max(space, 16 * room), np.uint8)
        self.counts = np.zeros((LANES if room < MANY else 1, 1 + room + 2), np.int64)

    @property
    def size(self) -> int:
        """How many words there are."""
        return int(self.starts[0])

    def count(self, words: Words) -> None:
        """Count words in."""
        codes = np.empty(min(BLOCK, words.rows), np.int32)
        held, add, done = frozen(codes), cpu.count_codes("int32"), 0
        while done < words.rows:
            more = self._number(words, done, codes[: words.rows - done])
            lanes, step = self.counts.shape
            add(held[:more], step if lanes > 1 else 0, self.counts.reshape(-1))
            done += more
            if more < codes.size and done < words.rows:
                self._widen(words, done)

    def codes(self, words: Words) -> Array:
        """The number of each word; 0 where it is missing."""
        found = np.empty(words.rows, np.int32)
        done = 0
        while done < words.rows:
            done += self._number(words, done, found[done:])
            if done < words.rows:
                self._widen(words, done)
        return found

    def _number(self, words: Words, start: int, codes: Array) -> int:
        """Fill in the numbers of the words from `start` on; returns how many were done before the room was full."""
        offsets = words.offsets[start:]
        loop = cpu.code_words("int32" if offsets.itemsize == 4 else "int64")
        table = (_keys(), self.slots, self.words, self.starts, self.pool, self.closed and self.room == self.most)
        done = int(loop(offsets, words.data, words.valid, words.bit + start, *table, codes))
        if done < 0:
            raise DamagedWords("holds words whose offsets lie outside of their bytes")
        return done

    def _widen(self, words: Words, row: int) -> None:
        """Make room for a word that has none."""
        size = self.size
        held = Words(frozen(self.starts[1 : size + 2]), frozen(self.pool), NOTHING)
        if size < self.room:
            end, needed = int(held.offsets[-1]), int(words.offsets[row + 1] - words.offsets[row])
            self.pool = np.concatenate([self.pool[:end], np.empty(end + needed, np.uint8)])
            return
        counts = self.totals()
        kept = np.ones(size, bool)
        if size == self.most:
            kept[np.argsort(-counts[1:-1], kind="stable")[size // 2 :]] = False
        bits = frozen(np.packbits(kept, bitorder="little"))
        self._make(min(4 * self.room, self.most), self.pool.size)
        self._take(Words(held.offsets, held.data, bits))
        self.counts[0, 1 : self.size + 2] = counts[np.r_[True, kept, False]]

    def _take(self, words: Words) -> None:
        """Words for which there is room, or for which only the bytes are missing, without counting them."""
        self.codes(words)

    def totals(self) -> Array:
        """How often what is missing was counted, then each word, then all others together."""
        total = self.counts.sum(axis=0)[1:]  # the loop that counts begins with -1
        found: Array = np.append(total[: self.size + 1], total[-1])
        return found

    def texts(self) -> list[str]:
        """The words."""
        data = self.pool[: self.starts[self.size + 1]].tobytes()
        ends = self.starts[1 : self.size + 2].tolist()
        return [data[start:stop].decode() for start, stop in itertools.pairwise(ends)]
