"""Kernels over rows: which rows a team takes, and where the values go.

A row that has two roads (a quick one and one for the rows that this does not serve) takes the second for all teams of
a warp or none, and keeps its value for those rows alone that asked for it. Where the quick road is one loop, the others
wait until it has been taken for all rows: meanwhile their values are negative numbers. So no thread keeps anything for
what few rows need.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from klnumba.formulas.finish import finish_difference, finish_sum
from klnumba.formulas.finish import limit as largest_value
from klnumba.kernels.cpu import CELLS, LARGEST, finish_of
from klnumba.kernels.cuda import exact, logits, logs
from klnumba.kernels.cuda import quick as quick_cells
from klnumba.kernels.cuda.choice import Choice
from klnumba.kernels.cuda.places import AGREE, first_largest
from klnumba.kernels.cuda.target import apart, cuda, kernel, noinline, piece, resident_of, shared
from klnumba.kernels.cuda.team import Team, team


@functools.cache
def one(name: str, logarithms: bool, normalize: bool, fast: str, store: str, choice: Choice) -> Any:
    """The kernel of one divergence; `fast` says how one read serves KL of most rows, or is empty."""
    if fast:
        return quick(logarithms, fast, store, choice)
    row, room = row_of(name, logarithms, normalize, "", store, choice)
    width, teams, shared_room = choice.width, choice.threads // choice.width, shared(room)

    def rows(
        p: Any, ps: Any, q: Any, qs: Any, n: Any, d: Any, inverse: Any, tail: Any, weight: Any, unit: Any, out: Any
    ) -> None:
        room = shared_room()
        me = np.int64(cuda.threadIdx.x)
        lane, step = me % width, np.int64(cuda.gridDim.x) * teams
        for start in range(np.int64(cuda.blockIdx.x) * teams, n, step):
            r = start + me // width
            at = min(r, n - 1)  # a team without a row goes along with the last one
            value = row(p, at * ps, q, at * qs, d, inverse, tail, weight, lane, room)
            if lane == 0 and r < n:
                out[r] = value if unit == 1.0 else value / unit

    return kernel(rows, label(name, logarithms, normalize, "", store, choice), choice.threads)


def quick(logarithms: bool, fast: str, store: str, choice: Choice) -> Any:
    """The kernel of KL of normalised rows: all of them on the quick road, then those that this does not serve."""
    together = team(choice.width, choice.threads)
    first, again = quick_row(logarithms, store, together, choice.grouped, fast)
    width, teams, shared_room = choice.width, choice.threads // choice.width, shared(together.size)
    bits, mask, any_of = np.int32(width.bit_length() - 1), np.int32(width - 1), together.any

    @apart
    def others(
        p: Any, ps: Any, q: Any, qs: Any, n: Any, d: Any, inverse: Any, unit: Any, out: Any, mine: Any, lane: Any,
        room: Any,
    ) -> None:  # fmt: skip
        noinline()
        start, step = np.int64(cuda.blockIdx.x) * teams, np.int64(cuda.gridDim.x) * teams
        while start < n:
            r = start + mine
            at = min(r, n - 1)
            told = np.float64(out[at])
            missed = told < 0.0 and r < n
            if any_of(missed):  # by then all threads of a team have read what the first one may change
                value = again(p, at * ps, q, at * qs, d, inverse, told, lane, room)
                if lane == 0 and missed:
                    out[r] = value / unit
            if unit < 0.0 and lane == 0 and r < n and not missed:
                out[r] = -told
            start += step

    def rows(
        p: Any, ps: Any, q: Any, qs: Any, n: Any, d: Any, inverse: Any, tail: Any, weight: Any, unit: Any, out: Any
    ) -> None:
        room = shared_room()
        me = np.int32(cuda.threadIdx.x)
        mine, lane = np.int32(me >> bits), np.int32(me & mask)
        missed, size = False, abs(unit)
        start, step = np.int64(cuda.blockIdx.x) * teams, np.int64(cuda.gridDim.x) * teams
        while start < n:
            r = start + mine
            at = min(r, n - 1)  # a team without a row goes along with the last one
            value = first(p, at * ps, q, at * qs, d, inverse, lane, room)
            missed |= value < 0.0
            if lane == 0 and r < n:
                out[r] = value if value < 0.0 or unit == 1.0 else value / size
            start += step
        cuda.syncthreads()  # before threads of a team read what the first one has written
        if any_of(missed) or unit < 0.0:  # a base below 1, of which values get their sign last
            others(p, ps, q, qs, n, d, inverse, unit, out, mine, lane, room)

    return kernel(rows, label("kl", logarithms, True, fast, store, choice), choice.threads, resident_of(store))


def label(name: str, logarithms: bool, normalize: bool, fast: str, store: str, choice: Choice) -> str:
    """What tells a kernel from others."""
    how = fast or ("normalized" if normalize else "plain")
    by = "" if choice.grouped else "-by-two"
    return f"{name}-{'log' if logarithms else 'prob'}-{how}-{store}-{choice.width}{by}"


# Of statistics, (name, order): a divergence and whether of p and q, of q and p, or of one of them and itself.
Plan = tuple[tuple[str, str], ...]


def named(plan: Plan) -> str:
    """What tells several statistics from others."""
    return "-".join(f"{name}-{order}" for name, order in plan)


@functools.cache
def several(plan: Plan, logarithms: bool, normalize: bool, fast: str, store: str, choice: Choice) -> Any:
    """The kernel of several statistics: a team takes them one after the other while its row is in the cache.

    Each is computed as it is alone, and so has the same bits.
    """
    all_of, room = chained(plan, logarithms, normalize, fast, store, choice)
    width, teams, shared_room = choice.width, choice.threads // choice.width, shared(room)

    def rows(
        p: Any, ps: Any, q: Any, qs: Any, n: Any, d: Any, inverse: Any, tail: Any, weight: Any, unit: Any, outs: Any
    ) -> None:
        room = shared_room()
        me = np.int64(cuda.threadIdx.x)
        lane, step = me % width, np.int64(cuda.gridDim.x) * teams
        for start in range(np.int64(cuda.blockIdx.x) * teams, n, step):
            r = start + me // width
            at = min(r, n - 1)
            writes = lane == 0 and r < n
            all_of(p, at * ps, q, at * qs, d, inverse, tail, weight, unit, outs, r, writes, lane, room)

    return kernel(rows, label(named(plan), logarithms, normalize, fast, store, choice), choice.threads)


@functools.cache
def chained(plan: Plan, logarithms: bool, normalize: bool, fast: str, store: str, choice: Choice) -> tuple[Any, int]:
    """(what computes and writes the statistics of a row: those before the last, and the last; the room it takes)."""
    if not plan:

        @piece
        def none(
            p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, tail: Any, weight: Any, unit: Any, outs: Any, r: Any,
            writes: Any, lane: Any, room: Any,
        ) -> None:  # fmt: skip
            pass

        return none, 0
    before, size = chained(plan[:-1], logarithms, normalize, fast, store, choice)
    name, order = plan[-1]
    row, more = row_of(name, logarithms, normalize, fast if name == "kl" else "", store, choice, called=True)
    last, is_number = len(plan) - 1, name != AGREE
    first_is_p, second_is_p = order[0] == "p", order[1] == "p"

    @piece
    def all_of(
        p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, tail: Any, weight: Any, unit: Any, outs: Any, r: Any,
        writes: Any, lane: Any, room: Any,
    ) -> None:  # fmt: skip
        before(p, o, q, u, d, inverse, tail, weight, unit, outs, r, writes, lane, room)
        x, i = (p, o) if first_is_p else (q, u)
        y, j = (p, o) if second_is_p else (q, u)
        value = row(x, i, y, j, d, inverse, tail, weight, lane, room)
        if writes:
            outs[last][r] = value / unit if is_number else value

    return all_of, max(size, more)


def row_of(
    name: str, logarithms: bool, normalize: bool, fast: str, store: str, choice: Choice, called: bool = False
) -> tuple[Any, int]:
    """(the value of a row, the same in every thread of its team; the room it takes).

    `called` rows are functions of their own.
    """
    together = team(choice.width, choice.threads)
    if name == AGREE:
        built, size = agreement(store, together, logarithms, normalize)
    elif fast:
        built, size = both(*quick_row(logarithms, store, together, choice.grouped, fast), together), together.size
    else:
        built, size = tried_row(name, logarithms, normalize, store, together), together.size
    if not called:
        return built, size

    @apart
    def row(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, tail: Any, weight: Any, lane: Any, room: Any) -> Any:
        noinline()
        return built(p, o, q, u, d, inverse, tail, weight, lane, room)

    return row, size


def quick_row(logarithms: bool, store: str, together: Team, grouped: bool, fast: str) -> tuple[Any, Any]:
    """(KL of normalised rows in one read, a negative number where this does not serve; what is done with that)."""
    any_of, failed = together.any, logits.FAILED
    last, _, _ = forms("kl", logarithms, True, store, together, apart)

    @piece
    def in_float64(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, told: Any, lane: Any, room: Any) -> Any:
        missed = told < 0.0
        if any_of(missed):
            found = last(p, o, q, u, d, inverse, 0.0, 0.5, lane, room)
            told = found if missed else told
        return told

    if logarithms:
        of_logs, second = logits.value(store, together, grouped, fast == logits.KNOWN)

        @piece
        def again(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, told: Any, lane: Any, room: Any) -> Any:
            better = told < failed
            if any_of(better):
                found = second(p, o, q, u, d, inverse, told, lane, room)
                told = found if better else told
            return in_float64(p, o, q, u, d, inverse, told, lane, room)

        return of_logs, again

    of_cells = quick_cells.value(store, together, grouped)

    @piece
    def first(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, lane: Any, room: Any) -> Any:
        return of_cells(p, o, q, u, d, lane, room)

    return first, in_float64


def both(first: Any, again: Any, together: Team) -> Any:
    """The two, one after the other."""
    any_of = together.any

    @piece
    def row(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, tail: Any, weight: Any, lane: Any, room: Any) -> Any:
        value = first(p, o, q, u, d, inverse, lane, room)
        if any_of(value < 0.0):
            value = again(p, o, q, u, d, inverse, value, lane, room)
        return value

    return row


def tried_row(name: str, logarithms: bool, normalize: bool, store: str, together: Team) -> Any:
    """Any divergence of rows of probabilities or of logarithms, in float64 arithmetic."""
    twice = name == "kl" and not normalize
    first, rest, limits = forms(name, logarithms, normalize, store, together, apart if twice else piece)
    any_of, most = together.any, largest_value(name, normalize)

    @piece
    def row(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, tail: Any, weight: Any, lane: Any, room: Any) -> Any:
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
        return most if value > most else value

    return row


def agreement(store: str, together: Team, logarithms: bool, normalize: bool) -> tuple[Any, int]:
    """Whether p and q have their first largest cell in the same place, as 1 or 0; 0 where one is no distribution."""
    found, _, has_mass, size = first_largest(store, together, logarithms, normalize)

    @piece
    def row(p: Any, o: Any, q: Any, u: Any, d: Any, inverse: Any, tail: Any, weight: Any, lane: Any, room: Any) -> Any:
        x, at = found(p, o, d, lane, room)
        y, other = found(q, u, d, lane, room)
        return 1.0 if at == other and has_mass(x) and has_mass(y) else 0.0

    return row, size


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
