"""The rows of one loop shared out among threads: each has its part, and helps with the parts of others at the end.

A thread goes through its part in order, since what follows in memory has been asked for by then, by the loop and by
the processor. Threads that take turns at one queue of rows read that for each other, and need 14 % more time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from klnumba.kernels.compiler import part

CELLS = 1 << 14  # cells of a share, 10 to 25 microseconds
ALONE = 1 << 13  # cells at the end that the caller does alone: when it is done with them, the others have finished too,
# and it need not sleep until one wakes it, which takes longer
MOST = 126  # threads: each has a flag of its own, and 1 is left to later loops
APART = 16  # numbers from one counter to the next: processors fetch cache lines in pairs

TURN = types.Tuple((types.Array(types.int64, 1, "C"), types.int64, types.int64, types.int64))


def parts(threads: int) -> np.ndarray:
    """Counters of parts of which nothing is taken."""
    return np.zeros((threads + 1) * APART, np.int64)


def turn(taken: np.ndarray, me: int, d: int) -> tuple[np.ndarray, int, int, int]:
    """What a loop over rows of `d` cells is told: the counters, the thread, the rows of a share, the thread's flag."""
    return taken, me, max(1, CELLS // d), 2 + me


@intrinsic
def _added(typingctx: Any, taken: Any, place: Any, rows: Any) -> Any:
    """Add to a counter, in one step for all threads; what it was before."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.atomic_rmw("add", builder.gep(array.data, [args[1]]), args[2], "monotonic")

    return types.int64(taken, types.int64, types.int64), codegen


_claim: Any = _added


@part
def take(turn: Any, n: Any, d: Any) -> Any:
    """The next rows of a thread, from the first to before the last; none where all are taken. 0 is the caller's."""
    taken, me, share, _ = turn
    threads = taken.size // APART - 1
    common = n - (min(ALONE // d, n // (4 * threads)) if threads > 1 else 0)
    for k in range(threads + (me == 0)):
        place = (me + k) % threads if k < threads else threads
        start, stop = common * place // threads, common * (place + 1) // threads if k < threads else n
        if taken[place * APART] < stop - start:
            first = start + _claim(taken, place * APART, share)
            if first < stop:
                return first, min(first + share, stop)
    return n, n


@part
def flagged(turn: Any, flag: Any) -> Any:
    """How many rows this thread has flagged."""
    count, mine = 0, turn[3]
    for r in range(flag.size):
        count += flag[r] == mine
    return count
