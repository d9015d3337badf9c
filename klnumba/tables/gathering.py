"""Categories of Python's objects counted into a table of words, as if their rows had been words."""

from __future__ import annotations

from typing import Any

import numpy as np

from klnumba.tables import words
from klnumba.tables.cells import Label
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
        table.add([labels[k] for k in at], held.counts[at])
    rest: dict[Label, int] = {}
    for k in np.flatnonzero(~texts & (held.counts > 0)):
        rest[labels[k]] = rest.get(labels[k], 0) + int(held.counts[k])
    return rest
