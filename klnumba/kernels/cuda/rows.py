"""Kernels over rows: which rows a team takes, and where the values go.

A kernel that has two roads for a row (a quick one and one for the rows that this does not serve) takes the second for
all teams of a warp or none, and keeps its value for those rows alone that asked for it.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from klnumba.formulas.finish import finish_difference, finish_sum
from klnumba.kernels.cpu import CELLS, LARGEST, finish_of
from klnumba.kernels.cuda import exact, logits, logs, quick
from klnumba.kernels.cuda.cells import reader
from klnumba.kernels.cuda.choice import Choice
from klnumba.kernels.cuda.target import WARP, apart, cuda, exchange, kernel, noinline, piece, shared
from klnumba.kernels.cuda.team import Team, team


@functools.cache
def kl_rows(logarithms: bool, store: str, choice: Choice) -> Any:
    """KL of normalised rows in one read; a row that this does not serve is read again, in float64."""
    together = team(choice.width, choice.threads)
    any_of = together.any
    second, _, _ = forms("kl", logarithms, True, store, together, apart)
    width, teams, shared_room = choice.width, choice.threads // choice.width, shared(together.size)
    if logarithms:
        first = logits.value(store, together, choice.grouped)
    else:
        of_cells = quick.value(store, together, choice.grouped)

        @piece
        def first(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, lane: Any, room: Any) -> Any:
            return of_cells(p, o, q, u, d, lane, room)

    def rows(p: Any, ps: Any, q: Any, qs: Any, n: Any, d: Any, inverse: Any, unit: Any, out: Any) -> None:
        room = shared_room()
        me = np.int64(cuda.threadIdx.x)
        lane, step = me % width, np.int64(cuda.gridDim.x) * teams
        for start in range(np.int64(cuda.blockIdx.x) * teams, n, step):
            r = start + me // width
            at = min(r, n - 1)  # a team without a row goes along with the last one
            value = first(p, at * ps, q, at * qs, d, inverse, lane, room)
            missed = not value >= 0.0
            if any_of(missed):
                again = second(p, at * ps, q, at * qs, d, inverse, 0.0, 0.5, lane, room)
                value = again if missed else value
            if lane == 0 and r < n:
                out[r] = value / unit

    kind = "log" if logarithms else "prob"
    return kernel(rows, f"kl-{kind}-{store}-{width}", choice.threads)


@functools.cache
def divergence_rows(name: str, logarithms: bool, normalize: bool, store: str, choice: Choice) -> Any:
    """Any divergence of rows of probabilities or of logarithms, in float64 arithmetic."""
    together = team(choice.width, choice.threads)
    twice = name == "kl" and not normalize
    first, rest, limits = forms(name, logarithms, normalize, store, together, apart if twice else piece)
    any_of = together.any
    width, teams, shared_room = choice.width, choice.threads // choice.width, shared(together.size)

    def rows(
        p: Any, ps: Any, q: Any, qs: Any, n: Any, d: Any, inverse: Any, tail: Any, weight: Any, unit: Any, out: Any
    ) -> None:
        room = shared_room()
        me = np.int64(cuda.threadIdx.x)
        lane, step = me % width, np.int64(cuda.gridDim.x) * teams
        for start in range(np.int64(cuda.blockIdx.x) * teams, n, step):
            r = start + me // width
            at = min(r, n - 1)
            o, u = at * ps, at * qs
            limit = 2.0 if limits else weight
            value = first(p, o, q, u, d, inverse, tail, limit, lane, room)
            for attempt in range(limits):
                if any_of(value != value):
                    again = rest(p, o, q, u, d, inverse, tail, limit, lane, room)
                    value = again if value != value else value
                limit = limit * (4.0 if attempt == 0 else 8.0)
                limit = limit if attempt < 2 else math.inf
                if limits > 1 and any_of(value != value):
                    again = first(p, o, q, u, d, inverse, tail, limit, lane, room)
                    value = again if value != value else value
            if lane == 0 and r < n:
                out[r] = value / unit

    kind = "log" if logarithms else "prob"
    return kernel(rows, f"{name}-{kind}-{'normalized' if normalize else 'plain'}-{store}-{width}", choice.threads)


def forms(name: str, logarithms: bool, normalize: bool, store: str, together: Team, how: Any) -> tuple[Any, Any, int]:
    """(how a row is computed, how where that is NaN, how often in turns): KL of rows as they are has two forms.

    Of logarithms, the two are tried with limits 2, 8 and 64 on what may cancel, and the first with none. `how` is
    `piece`, or `apart` for what few rows need.
    """
    largest = name == LARGEST
    twice = name == "kl" and not normalize
    if logarithms:
        first = log_form(CELLS[name][1], store, together, name == "kl", largest, normalize, how)
        rest = log_form(CELLS["rel_entr"][1], store, together, False, False, False, how) if twice else first
        return first, rest, 3 if twice else 0
    if twice:
        first = prob_form(CELLS["kl"][0], finish_difference, store, together, False, False, how)
        return first, prob_form(CELLS["rel_entr"][0], finish_sum, store, together, False, False, how), 1
    first = prob_form(CELLS[name][0], finish_of(name), store, together, normalize, largest, how)
    return first, first, 0


@functools.cache
def prob_form(cell: Any, finish: Any, store: str, together: Team, normalize: bool, largest: bool, how: Any) -> Any:
    value = exact.value(cell, finish, store, together, largest)

    def form(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, tail: Any, weight: Any, lane: Any, room: Any) -> Any:
        if rare:
            noinline()
        return value(p, o, q, u, d, normalize, weight, lane, room)

    rare = how is apart
    return how(form)


@functools.cache
def log_form(cell: Any, store: str, together: Team, plain: bool, largest: bool, normalize: bool, how: Any) -> Any:
    value = logs.value(cell, store, together, plain, largest, normalize)

    def form(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, tail: Any, weight: Any, lane: Any, room: Any) -> Any:
        if rare:
            noinline()
        return value(p, o, q, u, d, inverse, tail, weight, lane, room)

    rare = how is apart
    return how(form)


@piece
def ahead(x: Any, at: Any, y: Any, other: Any) -> Any:
    """The larger of two cells with its place; of equal ones the first; a NaN comes before all."""
    wins = (y > x) | ((y == x) & (other < at)) | ((y != y) & (x == x))
    return (y, other) if wins else (x, at)


@functools.cache
def agreement(store: str, choice: Choice) -> Any:
    """Whether p and q have their first largest cell in the same place; no where one has a NaN."""
    one, width, threads = reader(store).one, choice.width, choice.threads
    together, inside = team(width, threads), min(width, WARP)
    steps, warps, teams = inside.bit_length() - 1, width // inside, threads // width
    shared_room = shared(max(together.size, 2 * warps))

    @piece
    def place(source: Any, start: Any, d: Any, lane: Any, room: Any) -> Any:
        """The place of the first largest cell, or -1."""
        x, at = -math.inf, np.float64(d)
        for k in range(lane, d, width):
            x, at = ahead(x, at, np.float64(one(source, start + k)), np.float64(k))
        for step in range(steps):
            y, other = exchange(x, 1 << step, room), exchange(at, 1 << step, room)
            x, at = ahead(x, at, y, other)
        if warps > 1:
            if lane % inside == 0:
                room[2 * (lane // inside)], room[2 * (lane // inside) + 1] = x, at
            cuda.syncthreads()
            for k in range(warps):
                x, at = ahead(x, at, room[2 * k], room[2 * k + 1])
            cuda.syncthreads()
        return at if x == x else -1.0

    def rows(p: Any, ps: Any, q: Any, qs: Any, n: Any, d: Any, out: Any) -> None:
        room = shared_room()
        me = np.int64(cuda.threadIdx.x)
        lane, step = me % width, np.int64(cuda.gridDim.x) * teams
        for first in range(np.int64(cuda.blockIdx.x) * teams, n, step):
            r = first + me // width
            at = min(r, n - 1)
            left, right = place(p, at * ps, d, lane, room), place(q, at * qs, d, lane, room)
            if lane == 0 and r < n:
                out[r] = np.uint8(left == right and left >= 0.0)

    return kernel(rows, f"argmax-{store}-{width}", threads)
