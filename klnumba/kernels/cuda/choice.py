"""How many threads share a row: by its length alone, so that no value depends on how many rows there are.

======================  ================  ==========================================
cells of a row          threads a row     each takes
======================  ================  ==========================================
up to 12                1                 two cells at a time
13 to 63                4                 two cells at a time
64 to 511               8                 16 bytes of each array, or 32, at a time
512 to 4,095            32, one warp      the same
4,096 to 262,144        256, one block    the same
more                    128 for each      the same; the pieces are combined in order
                        piece of 32,768
                        cells, or of more
                        where there were
                        over 8,192
======================  ================  ==========================================

In the simulator, where a thread costs much, warps and blocks are smaller, and rows count as long sooner.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from klnumba.kernels.cuda.target import SIMULATED


class Choice(NamedTuple):
    width: int  # threads of a row
    threads: int  # threads of a block
    grouped: bool  # whether a thread takes several adjacent cells at a time


# (rows shorter than this, what they get)
TABLE = (
    (13, Choice(1, 128, False)),
    (64, Choice(4, 128, False)),
    (512, Choice(8, 128, True)),
    (4096, Choice(32, 128, True)),
    (None, Choice(256, 256, True)),
)
SIMULATED_TABLE = (
    (5, Choice(1, 4, False)),
    (17, Choice(2, 4, False)),
    (40, Choice(2, 4, True)),
    (64, Choice(4, 8, True)),
    (None, Choice(8, 8, True)),
)


LONG = Choice(8, 8, True) if SIMULATED else Choice(128, 128, True)  # the block of a piece
PIECE = 64 if SIMULATED else 32768  # cells of a piece
MOST_PIECES = 4 if SIMULATED else 8192  # of a row: the block that combines them reads them all
SPLIT = 140 if SIMULATED else 262144  # rows longer than this are cut into pieces


def piece_of(d: int) -> int:
    """Cells of a piece of a row of `d` cells."""
    return PIECE * max(1, math.ceil(d / (PIECE * MOST_PIECES)))


def choose(d: int) -> Choice:
    """The team for rows of `d` cells."""
    for bound, choice in SIMULATED_TABLE if SIMULATED else TABLE:
        if bound is None or d < bound:
            return choice
    raise AssertionError("the table ends with None")
