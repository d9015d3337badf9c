"""The threads of a block in numba's CUDA simulator as greenlets, which take turns where they wait for each other.

The simulator starts a thread of Python for each, and asks all of them in a loop whether they wait: most of its time
goes there. Here each runs up to its next barrier and hands over, in an order that is drawn anew after each barrier, so
that what lacks a barrier is found (`test_barriers`).
"""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
from greenlet import getcurrent, greenlet


class Thread(greenlet):
    """One simulated thread: what the simulator's own class offers to a kernel."""

    def __init__(self, run: Any, manager: Block, block: Any, place: Any) -> None:
        from numba.cuda.simulator.kernelapi import Dim3

        super().__init__(run)
        self.blockIdx, self.threadIdx = Dim3(*block), Dim3(*place)
        self.manager, self.place = manager, place
        x, y, _ = manager.shape
        self.thread_id = place[0] + x * (place[1] + y * place[2])

    def syncthreads(self) -> None:
        """Wait until every thread that still runs has come to a barrier."""
        self.parent.switch()

    def _gathered(self, value: Any, reduce: Any) -> Any:
        self.manager.votes[self.place] = value
        self.syncthreads()
        found = reduce([*self.manager.votes.values()])
        self.syncthreads()
        del self.manager.votes[self.place]
        return found

    def syncthreads_count(self, value: Any) -> Any:
        return self._gathered(value, np.count_nonzero)

    def syncthreads_and(self, value: Any) -> Any:
        return int(self._gathered(value, np.all))

    def syncthreads_or(self, value: Any) -> Any:
        return int(self._gathered(value, np.any))


class Block:
    """Runs the threads of one block after the other; an exception in one ends them all."""

    def __init__(self, kernel: Any, grid: Any, shape: Any, debug: bool) -> None:
        self.kernel, self.shape = kernel, shape
        self.votes: dict[Any, Any] = {}

    def run(self, point: Any, *args: Any) -> None:
        threads = [Thread(self.kernel, self, point, place) for place in np.ndindex(*self.shape)]
        order = random.Random(0)
        first = True
        while threads:
            order.shuffle(threads)
            for thread in threads:
                thread.switch(*(args if first else ()))
            first = False
            threads = [thread for thread in threads if not thread.dead]


def install() -> None:
    """Put these threads in the place of the simulator's own."""
    from numba.cuda.simulator import kernel, kernelapi

    kernel.BlockManager = Block
    kernelapi.threading = SimpleNamespace(current_thread=getcurrent)
