"""Words in Arrow's layout, counted from its buffers in one compiled pass: no row becomes a Python object.

Counts are exact: words are compared by all their bytes. How the rows are cut into chunks does not matter, for what is
forgotten where there are too many words follows from the order of the rows alone.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from klnumba.kernels import cpu
from klnumba.kernels.binning import LANES
from klnumba.kernels.words import KEYS, NO_WORD
from klnumba.tables import turns
from klnumba.tables.cells import Array
from klnumba.tables.codes import frozen
from klnumba.tables.hashing import BUCKETS, byte_checksums, of_checksums
from klnumba.tables.layout import NOTHING, Words, first_texts, laid_out, text_of
from klnumba.tables.pages import zeros

MOST = 1 << 20  # words that are counted at a time; beyond, the rarer half is forgotten
ROOM = 256  # words for which there is room at first
LARGE = 1 << 18  # words from which on a table takes more than 20 MiB
MANY = 1 << 16  # words from which on no table fits a core's second cache, and a free slot costs as much as a full one
SLOTS = (8, 1 << 13), (2, MANY)  # how many slots a word has, up to so many words: fewer meet, but more lie in a cache
COUNTED = 1 << 12  # words from which on several tables of counts would not fit a core's first cache
BLOCK = 1 << 15  # rows whose numbers are held at a time
REMEMBERED = 1 << 14  # words without a name of their own of which a table knows the bucket; of others, row by row


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
        How many others may have a number of their own. Where there are more, all of them share `BUCKETS` numbers behind
        the last, by their checksum. Without it, the rarer half of `MOST` words is forgotten where there are more.

    Attributes
    ----------
    named : int
        How many words can have a number of their own.
    forgetful : bool
        Whether words were forgotten, so that there are more than `MOST`.
    """

    forgetful = False
    dealt: Array = frozen(np.empty(0, np.int64))  # what `_buckets` has found so far

    def __init__(self, known: Sequence[str] = (), new: int | None = None) -> None:
        self.known = known
        self.named = MOST if new is None else len(known) + new
        self.most = MOST if new is None else self.named + REMEMBERED
        self.closed = new is not None
        self._make(min(self.most, ROOM + len(known)), 0)
        if known:
            self.codes(laid_out(known))

    def _make(self, room: int, space: int) -> None:
        """An empty table."""
        self.room = room
        spread = next((spread for spread, words in SLOTS if room < words), 1)
        self.slots = zeros(1 << (spread * room + 1).bit_length(), np.int32)  # more than half are free
        self.words = zeros((room + 1, 4), np.uint64)  # the fourth keeps a word in one cache line
        self.words[0] = NO_WORD
        self.starts = zeros(room + 2, np.int64)  # how many words there are, and where each begins in the pool
        self.pool = zeros(max(space, 16 * room), np.uint8)
        others = BUCKETS if self.closed else 0
        self.counts = zeros((LANES if room < COUNTED else 1, 1 + room + 1 + others), np.int64)

    def __getstate__(self) -> dict[str, Any]:
        """Another process has other keys, so that the table has to be made anew there."""
        assert not self.closed
        held, end = self._held(), self.starts[self.size + 1]
        words = Words(held.offsets.copy(), held.data[:end].copy(), NOTHING)
        return {"words": words, "totals": self.totals(), "room": self.room, "forgetful": self.forgetful}

    def __setstate__(self, state: dict[str, Any]) -> None:
        words, self.known = state["words"], ()
        self.named = self.most = MOST
        self.closed, self.forgetful = False, state["forgetful"]
        self._make(state["room"], words.data.size)
        self.codes(Words(frozen(words.offsets), frozen(words.data), NOTHING))
        self.counts[0, 1 : self.size + 2] = state["totals"]

    @property
    def size(self) -> int:
        """How many words have a number of their own."""
        return self._size if self._size <= self.named else len(self.known)

    @property
    def _size(self) -> int:
        """How many words there are, with those of which the bucket is remembered."""
        return int(self.starts[0])

    @property
    def nbytes(self) -> int:
        """The memory that has been written to."""
        used = self._size + 1
        each = sum(one[..., :1].nbytes for one in (self.starts, self.counts)) + self.words[0].nbytes
        return int(self.slots.nbytes + used * each + self.starts[used])

    def _held(self) -> Words:
        """The words that there are."""
        return Words(frozen(self.starts[1 : self._size + 2]), frozen(self.pool), NOTHING)

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

    def add(self, texts: Sequence[str], counts: Array) -> None:
        """Count texts in, each so often, as if they were rows in this order; for a table without `known` words."""
        for first in range(0, len(texts), BLOCK):
            self.absorb(laid_out(texts[first : first + BLOCK]), counts[first : first + BLOCK])

    def absorb(self, words: Words, counts: Array) -> None:
        """Count words in, each so often."""
        codes = np.empty(words.rows, np.int32)
        done = 0
        while done < words.rows:
            more = self._number(words, done, codes[done:])
            np.add.at(self.counts[0], codes[done : done + more] + 1, counts[done : done + more])
            done += more
            if done < words.rows:
                self._widen(words, done)

    def join(self, other: Vocabulary) -> None:
        """Count in what another table has counted; what is missing stays out of both."""
        self.forgetful = self.forgetful or other.forgetful
        self.absorb(other._held(), other.totals()[1:])

    def codes(self, words: Words) -> Array:
        """The number that each word has so far, or of its bucket: these begin behind `most`; 0 where it is missing."""
        found = np.empty(words.rows, np.int32)
        done = 0
        while done < words.rows:
            done += self._number(words, done, found[done:])
            if done < words.rows:
                self._widen(words, done)
        return found

    def told_apart(self, numbers: Array) -> Array:
        """What the numbers of `codes` have become: those of buckets begin behind `size`."""
        held = np.arange(self.most + 1 + BUCKETS, dtype=np.int32)
        held[self.size + 1 : self._size + 1] = self.size + 1 + self._buckets()
        held[self.most + 1 :] -= self.most - self.size
        found: Array = held[numbers]
        return found

    def _buckets(self) -> Array:
        """Those of the words without a number of their own."""
        held, done = self._held(), self.size + self.dealt.size
        if done < self._size:
            self.dealt = np.append(self.dealt, _buckets_at(held.offsets, held.data, np.arange(done, self._size)))
        return self.dealt

    def _number(self, words: Words, start: int, codes: Array) -> int:
        """Fill in the numbers of the words from `start` on; returns how many were done before the room was full."""
        offsets = words.offsets[start:]
        loop = cpu.code_words("int32" if offsets.itemsize == 4 else "int64")
        table = (_keys(), self.slots, self.words, self.starts, self.pool, self.closed and self.room == self.most)
        done = int(loop(offsets, words.data, words.valid, words.bit + start, *table, codes))
        if done < 0:
            raise DamagedWords("holds words whose offsets lie outside of their bytes")
        if table[-1]:
            at = np.flatnonzero(codes[:done] > self.most)
            if at.size:
                codes[at] += _buckets_at(offsets, words.data, at).astype(np.int32)
        return done

    def _widen(self, words: Words, row: int) -> None:
        """Make room for a word that has none."""
        size = self._size
        held = self._held()
        if size < self.room:
            end, needed = int(held.offsets[-1]), int(words.offsets[row + 1] - words.offsets[row])
            self.pool = zeros(2 * end + needed, np.uint8)
            self.pool[:end] = held.data[:end]  # what lies behind takes no memory until it is written to
            return
        counts = self._sums()[: size + 1]
        kept = np.ones(size, bool)
        if size == self.most:
            kept[np.argsort(-counts[1:], kind="stable")[size // 2 :]] = False
            self.forgetful = True
        room = min((4 if self.room < MANY else 2) * self.room, self.most)
        if room >= LARGE:
            turns.wait()
        self._make(room, self.pool.size)
        self.codes(Words(held.offsets, held.data, frozen(np.packbits(kept, bitorder="little"))))
        self.counts[0, 1 : self._size + 2] = counts[np.r_[True, kept]]

    def _sums(self) -> Array:
        """The counts of all threads: of what is missing, of each word, then of each bucket."""
        lanes = self.counts if len(self.counts) == 1 else self.counts.sum(axis=0, keepdims=True)
        found: Array = lanes[0, 1:]  # the loop that counts begins with -1
        return found

    def totals(self) -> Array:
        """How often what is missing was counted, then each word, then, if the rest has numbers, each bucket."""
        total = self._sums()
        buckets = total[self.room + 1 :].copy()
        if self._size > self.named:
            np.add.at(buckets, self._buckets(), total[self.size + 1 : self._size + 1])
        found: Array = np.append(total[: self.size + 1], buckets)
        return found

    def leading(self, count: int) -> dict[str, int]:
        """The words that were counted most often, at most so many; ties in the order of their texts."""
        counts = self._sums()[1 : self.size + 1]
        if self.size > count:
            least = np.partition(counts, -count)[-count]
            above = np.flatnonzero(counts > least)
            at = np.append(above, first_texts(self._held(), np.flatnonzero(counts == least), count - above.size))
        else:
            at = np.arange(self.size)
        data, starts = self.pool, self.starts[1:]
        return {text_of(data[starts[k] : starts[k + 1]].tobytes()): int(counts[k]) for k in at}

    def texts(self) -> list[str]:
        """The words."""
        data = self.pool[: self.starts[self.size + 1]].tobytes()
        ends = self.starts[len(self.known) + 1 : self.size + 2].tolist()
        return [*self.known, *(text_of(data[start:stop]) for start, stop in itertools.pairwise(ends))]


def _buckets_at(offsets: Array, data: Array, at: Array) -> Array:
    """The buckets of the words at these places."""
    sums = np.empty(at.size, np.uint64)
    starts, stops = (np.ascontiguousarray(offsets[k], np.int64) for k in (at, at + 1))
    cpu.checksums()(starts, stops, data, byte_checksums(), sums)
    return of_checksums(sums)
