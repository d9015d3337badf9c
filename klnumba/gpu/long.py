"""Rows that are cut into pieces, one kernel a stage; none waits for the host to look."""

from __future__ import annotations

import math
from typing import Any

from klnumba.engine import Task
from klnumba.gpu.place import Place
from klnumba.gpu.rows import Rows


def run(
    task: Task, rows: Rows, sides: tuple[Any, ...], inverse: float, tail: float, unit: float, place: Place, out: Any
) -> None:
    """The divergence of every row, into `out`."""
    from klnumba.kernels.cuda import choice, pieces
    from klnumba.kernels.cuda.stages import stages

    n, d = rows.n, rows.d
    items = n * math.ceil(d / choice.PIECE)
    memory = place.room(n * pieces.MEMORY, "float64")
    states = place.room(items * pieces.SUMS, "float64")
    tickets, todo = place.room(n, "int32"), place.room(n, "int32")
    place.over_cells(pieces.start(), n * pieces.MEMORY, memory, tickets, todo, inverse, tail)
    exact_power = math.frexp(inverse)[0] == 0.5
    kernels = stages(task.name, task.logs, task.normalize, rows.store, exact_power)
    for k, (kernel, weight) in enumerate(kernels):
        final = k == len(kernels) - 1
        place.launch(
            kernel, items, 1, choice.LONG.threads, *sides, n, d,
            task.weight if math.isnan(weight) else weight, unit, final, memory, states, tickets, todo, out,
        )  # fmt: skip
