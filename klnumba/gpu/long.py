"""Rows that are cut into pieces: a launch that gets ready and one that does all; none waits for the host to look."""

from __future__ import annotations

import math
from typing import Any

from klnumba.engine import Task
from klnumba.gpu.place import Place
from klnumba.gpu.rows import Rows


def run(
    plan: tuple[tuple[str, str], ...], task: Task, rows: Rows, fast: str, unit: float, place: Place,
    outs: tuple[Any, ...],
) -> None:  # fmt: skip
    """The statistics of every row that `plan` names, into `outs`."""
    from klnumba.kernels.cuda import choice, pieces
    from klnumba.kernels.cuda.stages import program

    n, d, many = rows.n, rows.d, len(plan) * rows.n
    size = choice.piece_of(d)
    items = n * math.ceil(d / size)
    memory = place.room(many * pieces.MEMORY, "float64")
    states = place.room(len(plan) * items * pieces.SUMS, "float64")
    queue, tickets, reached = place.room(1 + len(plan), "int32"), place.room(many, "int32"), place.room(many, "int32")
    place.over_cells(
        pieces.start(), many * pieces.MEMORY, n, memory, queue, tickets, reached, *task.inverse_temperature()
    )  # fmt: skip
    kernel = program(plan, task.logs, task.normalize, rows.store, fast)
    place.launch(
        kernel, items, 1, choice.LONG.threads, *rows.p, *rows.q, n, d, size, task.weight, unit,
        memory, states, queue, tickets, reached, outs,
    )  # fmt: skip
