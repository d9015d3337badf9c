"""Words as Arrow lays them: all bytes one after the other, and where each word begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from klnumba.tables.cells import Array
from klnumba.tables.codes import frozen

BLOCK = 1 << 15  # words that are looked at at a time

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


def laid_out(texts: Sequence[str]) -> Words:
    """Texts as words."""
    together = "".join(texts)
    raw = texts if together.isascii() else [_encoded(text) for text in texts]
    ends = np.zeros(len(raw) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, raw), np.int64, len(raw)), out=ends[1:])
    return Words(frozen(ends), np.frombuffer(_encoded(together), np.uint8), NOTHING)


def first_texts(words: Words, at: Array, count: int) -> Array:
    """Of the words at these places, which all differ, the places of so many that come first in the order of texts."""
    found = at[:0]
    for first in range(0, at.size, BLOCK):
        found = _first(words, np.append(found, at[first : first + BLOCK]), count)
    return found


def _first(words: Words, at: Array, count: int) -> Array:
    """The same of few words.

    The bytes of UTF-8 have the order of the texts. Eight at a time are looked at, as one number.
    """
    first: list[Array] = []
    depth, longest = 0, int(_lengths(words, at).max(initial=0))
    while at.size > count and depth < longest:
        keys = _keys_at(words, at, depth)
        bound = np.partition(keys, count - 1)[count - 1]
        first.append(at[keys < bound])
        count -= first[-1].size
        at = at[keys == bound]
        depth += 8
    order = np.argsort(_lengths(words, at), kind="stable")  # what is left differs in zeros at the end
    return np.concatenate([*first, at[order[:count]]])


def _lengths(words: Words, at: Array) -> Array:
    found: Array = words.offsets[at + 1] - words.offsets[at]
    return found


def _keys_at(words: Words, at: Array, depth: int) -> Array:
    """Eight bytes of each word from a place on, as a number; zeros behind its end."""
    places = (words.offsets[at] + depth)[:, None] + np.arange(8)
    inside = places < words.offsets[at + 1][:, None]
    found = np.zeros(places.shape, np.uint8)
    found[inside] = words.data[places[inside]]
    keys: Array = found.view(">u8")[:, 0].astype(np.uint64)
    return keys


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def text_of(word: bytes) -> str:
    """A word as a text; the opposite of how texts become words, half surrogate pairs among them."""
    return word.decode("utf-8", "surrogatepass")
