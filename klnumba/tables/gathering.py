"""Categories of Python's objects counted into a table of words, as if their rows had been words."""

from __future__ import annotations

from typing import Any

import numpy as np

from klnumba.tables import words
from klnumba.tables.cells import Array, Label
from klnumba.tables.codes import Coded, counted
from klnumba.tables.columns import label_of
from klnumba.tables.words import Vocabulary


def gathered(found: Coded, table: Vocabulary) -> dict[Label, int]:
    """Count texts into a table; returns how often each other label occurs."""
    codes, values = found
    held = counted(codes, values)
    labels: list[Any] = [label_of(value) for value in values]
    texts = np.array([isinstance(label, str) for label in labels], bool)
    at = np.flatnonzero(texts & (held.counts > 0))
    if table.size + at.size > words.MOST:  # what is forgotten follows from the order of the rows
        rows = codes[codes >= 0]
        for first in range(0, rows.size, words.BLOCK):
            block = rows[first : first + words.BLOCK]
            block = block[texts[block]]
            table.add([labels[k] for k in block], np.ones(block.size, np.int64))
    else:
        at = at[np.argsort(_first_rows(codes, len(labels), int(np.count_nonzero(held.counts)))[at])]
        table.add([labels[k] for k in at], held.counts[at])
    rest: dict[Label, int] = {}
    for k in np.flatnonzero(~texts & (held.counts > 0)):
        rest[labels[k]] = rest.get(labels[k], 0) + int(held.counts[k])
    return rest


def _first_rows(codes: Array, size: int, held: int) -> Array:
    """The row in which each of so many codes stands first, of which so many are held: tables have words in this order.

    Rows are looked at as long as there are codes to come.
    """
    found = np.full(size, codes.size)
    for start in range(0, codes.size, words.BLOCK):
        block = codes[start : start + words.BLOCK].astype(np.intp)
        rows = np.flatnonzero(block >= 0)[::-1]  # of rows with one code, the first is written last
        rows = rows[found[block[rows]] == codes.size]
        found[block[rows]] = start + rows
        held -= np.unique(block[rows]).size
        if not held:
            break
    return found
