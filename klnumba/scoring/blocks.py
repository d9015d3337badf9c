"""The work itself: block after block, into statistics and parts, with a journal now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from klnumba.scoring import measure, memory
from klnumba.scoring.errors import InputError, Interrupted
from klnumba.scoring.journal import Journal, State
from klnumba.scoring.options import Options
from klnumba.scoring.pairing import Block, Pairing
from klnumba.scoring.source import Array

BLOCK = 256 << 20  # bytes of rows in a block, where the limit on memory allows: smaller ones keep threads less busy
KEPT = 16 << 20  # bytes of values that wait for the journal
SHARE = 0.6  # of the memory that is left, what blocks may take
EVERY = 30.0  # seconds from one entry in the journal to the next

Watch = Callable[[int, int | None, int], None]


@dataclass
class Work:
    """What a run needs to know beside its rows."""

    options: Options
    limit: int
    threads: int | None = None
    watch: Watch | None = None
    stopped: Callable[[], bool] | None = None
    every: float = EVERY


class Run:
    """One pass over all rows, from where the state says."""

    def __init__(self, pairing: Pairing, work: Work, state: State, journal: Journal | None) -> None:
        self.pairing, self.work, self.state, self.journal = pairing, work, state, journal
        self.at_start = memory.resident()
        self.waiting: list[dict[str, Array]] = []
        self.saved = time.monotonic()
        self.last = 1 if pairing.at_once else pairing.rows

    def all(self) -> None:
        """Take every block; an interrupted run keeps what it has done."""
        self._room()
        step = 1  # compiling comes with the first block, and what it leaves in memory is known after it
        while self.last is None or self.state.steps < self.last:
            if not self._take(self._end(step)):
                break
            step = self._room()
            stop = self.work.stopped is not None and self.work.stopped()
            if stop or self._due():
                self._save()
            if stop:
                raise Interrupted(self._where())
        self.pairing.check_end(self.state.steps)
        if self.waiting:
            self._save()

    def _end(self, step: int) -> int:
        """Where the block ends: at a border of what lies together, if one is near."""
        end, grain = self.state.steps + step, self.pairing.grain
        if end // grain * grain > self.state.steps:
            end = end // grain * grain
        return end if self.last is None else min(end, self.last)

    def _take(self, end: int) -> bool:
        start = self.state.steps
        block = self.pairing.read(start, end, self._left())
        if block is None:
            return False
        count = 1 if self.pairing.at_once else block.kept[0] if self.pairing.rows is None else end - start
        if self.last is None or end < self.last:
            self.pairing.expect(end, end + count if self.last is None else min(end + count, self.last))
        columns = measure.values(block, self.pairing, self.work.options, self.work.threads)
        self._add(block, columns)
        self.pairing.forget()
        self.state.steps += count
        if self.work.watch is not None:
            total = None if self.last is None else self.last * self.pairing.per_step
            self.work.watch(self.state.rows, total, self.state.steps * self.pairing.input_bytes())
        return True

    def _add(self, block: Block, columns: dict[str, Array]) -> None:
        rows = measure.held(block, self.pairing)
        if self.state.problem is None and (bad := measure.first_nan(columns, rows)) is not None:
            self.state.problem = measure.problem(block, self.pairing, self.work.options, bad)
            if self.work.options.invalid == "raise":
                raise InputError(self.state.problem)
        for name, column in columns.items():
            counted = column if rows is None else column[rows]
            self.state.statistics[name].update(counted)
        size = next(iter(columns.values())).size
        self.state.rows += size
        self.state.masked += 0 if rows is None else size - int(rows.sum())
        if self.journal is not None and self.journal.suffix:
            self.waiting.append(measure.kept(columns, block, self.work.options))

    def _left(self) -> float:
        """Bytes of the limit that are not taken yet."""
        return self.work.limit - max(0, memory.resident() - self.at_start)

    def _room(self) -> int:
        """How many steps a block may have."""
        pairing = self.pairing
        values = 64 * len(self.work.options.stats) * max(pairing.per_step, 1)
        need = pairing.step_bytes() + (0 if pairing.at_once else values)
        left = SHARE * max(self._left() + pairing.holding - pairing.resident, 0)
        if need > left:
            raise InputError(
                f"memory: {memory.text(self.work.limit)} more than the process holds is too little: one row of P and Q "
                f"takes {memory.text(need)}, reading {memory.text(pairing.resident)}, and {memory.text(left)} are left"
            )
        most = int(left // max(need, 1))
        usual = int(BLOCK // max(pairing.step_bytes(), pairing.input_bytes(), 1))
        return max(1, min(most, max(usual, pairing.grain if pairing.grain <= most else 1)))

    def _due(self) -> bool:
        size = sum(column.nbytes for columns in self.waiting for column in columns.values())
        return size > KEPT or time.monotonic() - self.saved >= self.work.every

    def _save(self) -> None:
        if self.journal is None:
            return
        columns = None
        if self.waiting:
            names = self.work.options.stats
            columns = {name: np.concatenate([part[name] for part in self.waiting]) for name in names}
        self.journal.save(self.state, columns)
        self.waiting.clear()
        self.saved = time.monotonic()

    def _where(self) -> str:
        done = f"interrupted after {self.state.rows:,} rows"
        if self.journal is None:
            return f"{done}; without an output or a report nothing is kept"
        return f"{done}, which {self.journal.folder} holds: go on with --resume (resume=True)"
