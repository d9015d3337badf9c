"""Rows that are cut into pieces, one kernel a stage; none waits for the host to look."""

from __future__ import annotations

import math
from typing import Any

from klnumba.engine import Task
from klnumba.gpu.rows import Rows


def run(
    task: Task, rows: Rows, sides: tuple[Any, ...], inverse: float, tail: float, unit: float, stream: int, out: Any
) -> None:
    """The divergence of every row, into `out`."""
    from klnumba.kernels.cuda import choice, flat, machine, pieces
    from klnumba.kernels.cuda.stages import stages

    n, d = rows.n, rows.d
    items = n * math.ceil(d / choice.PIECE)
    memory = machine.room(n * pieces.MEMORY, "float64")
    states = machine.room(items * pieces.SUMS, "float64")
    tickets, todo = machine.room(n, "int32"), machine.room(n, "int32")
    machine.launch(
        pieces.start(), n * pieces.MEMORY, flat.THREADS, flat.THREADS, stream, memory, tickets, todo, inverse, tail
    )
    exact_power = math.frexp(inverse)[0] == 0.5
    kernels = stages(task.name, task.logs, task.normalize, rows.store, exact_power)
    for k, (kernel, weight) in enumerate(kernels):
        final = k == len(kernels) - 1
        machine.launch(
            kernel, items, 1, choice.LONG.threads, stream, *sides, n, d,
            task.weight if math.isnan(weight) else weight, unit, final, memory, states, tickets, todo, out,
        )  # fmt: skip
