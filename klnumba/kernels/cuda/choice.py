"""How many threads share a row: by its length and dtype alone, so that no value depends on how many rows there are.

=================  ================  =================  ================  ==========================================
float32            float64           float16, bfloat16  threads a row     each takes
=================  ================  =================  ================  ==========================================
up to 12 cells     12                12                 1                 two cells at a time
63                 63                63                 4                 two cells at a time
none               255               255                4                 16 bytes of each array, or 32, at a time
511                1,023             1,023              8                 the same
4,095              4,095             8,191              32, one warp      the same
262,144            262,144           262,144            256, one block    the same
more               more              more               128 for each      the same; the pieces are combined in order
                                                        piece of 32,768
                                                        cells, or of more
                                                        where there were
                                                        over 8,192
=================  ================  =================  ================  ==========================================

The more cells a thread takes, the less the sums of a team weigh. Float32 waits for the memory, which is faster where
adjacent threads read one row; the others take more instructions for each byte. In the simulator, where a thread costs
much, warps and blocks are smaller, and rows count as long sooner.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from klnumba.kernels.cuda.cells import STORED
from klnumba.kernels.cuda.target import SIMULATED


class Choice(NamedTuple):
    width: int  # threads of a row
    threads: int  # threads of a block
    grouped: bool  # whether a thread takes several adjacent cells at a time


ONE, FOUR = Choice(1, 128, False), Choice(4, 128, False)
FOURS, EIGHT, WARP, BLOCK = Choice(4, 128, True), Choice(8, 128, True), Choice(32, 128, True), Choice(256, 256, True)
Table = tuple[tuple[float, Choice], ...]  # (rows shorter than this, what they get)
# By the bytes of a cell.
TABLES: dict[int, Table] = {
    8: ((13, ONE), (64, FOUR), (256, FOURS), (1024, EIGHT), (4096, WARP), (math.inf, BLOCK)),
    4: ((13, ONE), (64, FOUR), (512, EIGHT), (4096, WARP), (math.inf, BLOCK)),
    2: ((13, ONE), (64, FOUR), (256, FOURS), (1024, EIGHT), (8192, WARP), (math.inf, BLOCK)),
}
SIMULATED_TABLE: Table = (
    (5, Choice(1, 4, False)),
    (17, Choice(2, 4, False)),
    (40, Choice(2, 4, True)),
    (64, Choice(4, 8, True)),
    (math.inf, Choice(8, 8, True)),
)


LONG = Choice(8, 8, True) if SIMULATED else Choice(128, 128, True)  # the block of a piece
PIECE = 64 if SIMULATED else 32768  # cells of a piece
MOST_PIECES = 4 if SIMULATED else 8192  # of a row: the block that combines them reads them all
SPLIT = 140 if SIMULATED else 262144  # rows longer than this are cut into pieces


def piece_of(d: int) -> int:
    """Cells of a piece of a row of `d` cells."""
    return PIECE * max(1, math.ceil(d / (PIECE * MOST_PIECES)))


def table(store: str) -> Table:
    """The teams for rows of a dtype."""
    return SIMULATED_TABLE if SIMULATED else TABLES[np.dtype(STORED[store]).itemsize]


def choose(d: int, store: str) -> Choice:
    """The team for rows of `d` cells of a dtype."""
    return next(choice for bound, choice in table(store) if d < bound)
