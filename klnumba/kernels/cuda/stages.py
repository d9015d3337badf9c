"""The stages of a divergence of long rows: what a piece adds, and what a row concludes from the sums of its pieces.

A row's memory holds, of probabilities, the sums and the number of negative cells in 0 to 6 and the scales in 8 to 15;
of logarithms, the numbers that a sweep takes in 8 to 15 and the number of the attempt in 0.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from klnumba.formulas.divergences import common_mass
from klnumba.formulas.finish import finish_difference, limit
from klnumba.formulas.log_cells import rel_entr
from klnumba.kernels import cpu
from klnumba.kernels import exact as cpu_exact
from klnumba.kernels import logs as cpu_logs
from klnumba.kernels.cuda import exact, logits, logs, quick
from klnumba.kernels.cuda.choice import LONG
from klnumba.kernels.cuda.pieces import SUMS, WHATEVER, Stage, Step, kernel_of, stage
from klnumba.kernels.cuda.places import AGREE, ahead, first_largest
from klnumba.kernels.cuda.rows import Plan, named
from klnumba.kernels.cuda.target import device, piece, resident_of
from klnumba.kernels.cuda.team import team, value_of

THREADS = LONG.threads
_raise_up, _scales, _common_mass = device(cpu_exact.raise_up), device(cpu_exact.scales), device(common_mass)
_barred, _judge, _sharpen = device(cpu_logs.barred), device(cpu_logs.judge), device(cpu_logs.sharpen)
_log_normaliser = device(cpu_logs.log_normaliser)
SHRINK = cpu_exact.SHRINK


@functools.cache
def program(plan: Plan, logarithms: bool, normalize: bool, store: str, fast: str) -> Any:
    """The kernel of several statistics of long rows."""
    steps: list[Step] = []
    for k, (name, order) in enumerate(plan):
        found = stages(name, logarithms, normalize, store, fast if name == "kl" else "")
        last = len(found) - 1
        steps += [Step(one, weight, k, turn, turn == last, order) for turn, (one, weight) in enumerate(found)]
    how = f"{'log' if logarithms else 'prob'}-{fast or ('normalized' if normalize else 'plain')}"
    units = tuple(name != AGREE for name, _ in plan)
    resident = resident_of(store) if fast and len(plan) == 1 else 0
    return kernel_of(f"{named(plan)}-{how}-{store}", tuple(steps), units, THREADS, resident)


def stages(name: str, logarithms: bool, normalize: bool, store: str, fast: str) -> list[tuple[Stage, float]]:
    """The stages that a divergence takes one after the other, each with its weight or limit (NaN: the call's)."""
    call = math.nan
    if name == AGREE:
        return [(agreement_stage(store, logarithms, normalize), call)]
    if not logarithms:
        first = [(quick_stage(store), call)] if fast else []
        last = [(cell_stage(name, store, normalize, False), call)]
        if name == "kl" and not normalize:
            last = [(cell_stage(cell, store, False, cell == "kl"), call) for cell in ("kl", "rel_entr")]
        return [*first, (mass_stage(store, normalize, 0), call), (mass_stage(store, normalize, 1), call), *last]
    first = [(logit_stage(store, how), call) for how in (fast, logits.CAREFUL)] if fast else []
    begin = [(top_stage(store, normalize), call)]
    if not normalize:
        if name != "kl":
            return [*begin, (sweep_stage(name, store, False), call)]
        tries = [(cell, limit) for limit in (2.0, 8.0, 64.0) for cell in ("kl", "rel_entr")]
        return begin + [(sweep_stage(cell, store, False), limit) for cell, limit in [*tries, ("kl", math.inf)]]
    sweep = (sweep_stage(name, store, True), call)
    if cpu.CELLS[name][1] in cpu_logs.SURPRISES:
        return [*begin, sweep, sweep, (normaliser_stage(store), call), sweep]
    return [*first, *begin, *[sweep] * cpu_logs.ROUNDS]


def _whole_block() -> Any:
    return team(THREADS, THREADS)


@functools.cache
def quick_stage(store: str) -> Stage:
    """KL of normalised rows of probabilities in one read."""
    sums, finished = quick.parts(store, _whole_block(), True)

    @piece
    def work(p: Any, o: Any, q: Any, u: Any, cells: Any, row_p: Any, row_q: Any, d: Any, m: Any, weight: Any,
             lane: Any, room: Any) -> Any:  # fmt: skip
        return sums(p, o, q, u, cells, lane, room)

    @piece
    def step(m: Any, a: Any, ae: Any, b: Any, be: Any, e: Any, ee: Any, weight: Any) -> Any:
        value = finished(a, ae, b, be, e, ee)
        return value, value >= 0.0

    return stage(f"quick-prob-{store}", work, step, THREADS)


@functools.cache
def logit_stage(store: str, how: str) -> Stage:
    """KL of normalised rows of logarithms in one read; m[2] and m[3] hold a guess, m[10] the inverse temperature."""
    together, last = _whole_block(), how == logits.CAREFUL
    guess = logits.guess(store, together, True) if how == logits.QUICK else logits.no_guess
    sums, concluded = logits.read(store, together, True, how)
    improved, failed, better = logits.improved(store), logits.FAILED, logits.BETTER

    @piece
    def work(p: Any, o: Any, q: Any, u: Any, cells: Any, row_p: Any, row_q: Any, d: Any, m: Any, weight: Any,
             lane: Any, room: Any) -> Any:  # fmt: skip
        if not last:
            m[2], m[3] = guess(p, row_p, q, row_q, d, m[10], lane, room)  # the same in all pieces of the row
        elif m[2] != m[2]:
            return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        return sums(p, o, q, u, cells, m[10], m[2], m[3], lane, room)

    @piece
    def step(m: Any, a: Any, ae: Any, b: Any, be: Any, e: Any, ee: Any, weight: Any) -> Any:
        value = concluded(a, ae, b, be, e, ee, m[2], m[3])
        if not last:
            m[2], m[3] = improved(m[2], better - value if value < failed else math.nan)
        return value, value >= 0.0

    return stage(f"{how}-log-{store}", work, step, THREADS)


@functools.cache
def mass_stage(store: str, normalize: bool, attempt: int) -> Any:
    """The sums of both rows, and the scales. The second attempt is for rows whose sums overflowed in the first."""
    sums = exact.masses(store, _whole_block())
    second = attempt == 1

    @piece
    def work(p: Any, o: Any, q: Any, u: Any, cells: Any, row_p: Any, row_q: Any, d: Any, m: Any, weight: Any,
             lane: Any, room: Any) -> Any:  # fmt: skip
        if second:
            if m[7] == 0.0:
                return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            return sums(p, o, q, u, cells, m[8], m[9], lane, room)
        return sums(p, o, q, u, cells, 1.0, 1.0, lane, room)

    @piece
    def step(m: Any, a: Any, ae: Any, b: Any, be: Any, e: Any, ee: Any, weight: Any) -> Any:
        if not second or m[7] != 0.0:
            finite = a < math.inf and b < math.inf
            if not second:
                m[8] = 1.0 if a < math.inf or not normalize else SHRINK
                m[9] = 1.0 if b < math.inf or not normalize else SHRINK
            m[7] = 1.0 if normalize and not finite else 0.0
            m[0], m[2], m[6] = a, b, e
            m[1] = ae if abs(a) < math.inf else 0.0
            m[3] = be if abs(b) < math.inf else 0.0
            if second or m[7] == 0.0:
                c = m[8:16]
                if normalize:
                    _raise_up(m, c)
                _scales(m, normalize, c)
        return 0.0, False

    return stage(f"masses-{store}-{int(normalize)}-{attempt}", work, step, THREADS)


@functools.cache
def cell_stage(name: str, store: str, normalize: bool, difference: bool) -> Any:
    """The cells on a common mass, and the value."""
    largest = name == cpu.LARGEST
    total = exact.cells(cpu.CELLS[name][0], store, _whole_block(), largest)
    finish, most = device(finish_difference if difference else cpu.finish_of(name)), limit(name, normalize)

    @piece
    def work(p: Any, o: Any, q: Any, u: Any, cells: Any, row_p: Any, row_q: Any, d: Any, m: Any, weight: Any,
             lane: Any, room: Any) -> Any:  # fmt: skip
        g, ge = total(p, o, q, u, cells, m[8:16], weight, lane, room)
        return g, ge, 0.0, 0.0, 0.0, 0.0

    @piece
    def step(m: Any, a: Any, ae: Any, b: Any, be: Any, e: Any, ee: Any, weight: Any) -> Any:
        ge = ae if abs(a) < math.inf else 0.0
        value = finish(m[0], m[1], m[2], m[3], a, ge, m[6], _common_mass(m[12], m[14]), normalize)
        return most if value > most else value, True

    return stage(f"{name}-cells-{store}-{int(normalize)}", work, step, THREADS, int(largest))


@functools.cache
def top_stage(store: str, normalize: bool) -> Any:
    """The largest cells. The temperature's inverse and its tail stay where they are, in m[10] and m[11]."""
    found = logs.tops(store, _whole_block())

    @piece
    def work(p: Any, o: Any, q: Any, u: Any, cells: Any, row_p: Any, row_q: Any, d: Any, m: Any, weight: Any,
             lane: Any, room: Any) -> Any:  # fmt: skip
        a, b = found(p, o, q, u, cells, lane, room)
        return a, 0.0, b, 0.0, 0.0, 0.0

    @piece
    def step(m: Any, a: Any, ae: Any, b: Any, be: Any, e: Any, ee: Any, weight: Any) -> Any:
        m[0], m[8], m[9] = 0.0, a, b
        return math.nan, WHATEVER if _barred(m[8:16], normalize) else 0

    return stage(f"tops-{store}-{int(normalize)}", work, step, THREADS, 2)


@functools.cache
def sweep_stage(name: str, store: str, normalize: bool) -> Any:
    """One read with the guess in m[12], and the value if that was good enough."""
    cell, largest, plain = cpu.CELLS[name][1], name == cpu.LARGEST, name == "kl"
    sizes = cell is rel_entr
    sums, most = logs.sweep(cell, store, _whole_block(), largest, sizes), limit(name, normalize)

    @piece
    def work(p: Any, o: Any, q: Any, u: Any, cells: Any, row_p: Any, row_q: Any, d: Any, m: Any, weight: Any,
             lane: Any, room: Any) -> Any:  # fmt: skip
        return sums(p, o, q, u, cells, m[8:16], weight, lane, room)

    @piece
    def step(m: Any, a: Any, ae: Any, b: Any, be: Any, e: Any, ee: Any, weight: Any) -> Any:
        mass, gap = b + be, e + ee
        value, done = _judge(value_of(a, ae), mass, gap, normalize, plain, largest, sizes, weight, int(m[0]))
        m[0] += 1.0
        if not done:
            _sharpen(m[8:16], mass, gap)
        return most if value > most else value, done

    return stage(f"{name}-sweep-{store}-{int(normalize)}", work, step, THREADS, int(largest))


@functools.cache
def normaliser_stage(store: str) -> Any:
    """The logarithms of the rows' sums to the last digit, for cells that hold -log p or -log q."""
    rests = logs.rests(store, _whole_block())

    @piece
    def work(p: Any, o: Any, q: Any, u: Any, cells: Any, row_p: Any, row_q: Any, d: Any, m: Any, weight: Any,
             lane: Any, room: Any) -> Any:  # fmt: skip
        a, ae, ties, _, _, _ = rests(p, o, cells, m[8], m[10], m[11], lane, room)
        b, be, others, _, _, _ = rests(q, u, cells, m[9], m[10], m[11], lane, room)
        return a, ae, b, be, ties, others

    @piece
    def step(m: Any, a: Any, ae: Any, b: Any, be: Any, e: Any, ee: Any, weight: Any) -> Any:
        m[13], m[14] = _log_normaliser(a + ae, e), _log_normaliser(b + be, ee)
        return math.nan, False

    return stage(f"normaliser-{store}", work, step, THREADS)


@functools.cache
def agreement_stage(store: str, logarithms: bool, normalize: bool) -> Stage:
    """Whether p and q have their first largest cell in the same place."""
    found, of_team, has_mass, size = first_largest(store, _whole_block(), logarithms, normalize)

    @piece
    def work(p: Any, o: Any, q: Any, u: Any, cells: Any, row_p: Any, row_q: Any, d: Any, m: Any, weight: Any,
             lane: Any, room: Any) -> Any:  # fmt: skip
        x, at = found(p, o, cells, lane, room)
        y, other = found(q, u, cells, lane, room)
        return x, at + np.float64(o - row_p), y, other + np.float64(u - row_q), 0.0, 0.0

    @piece
    def concluded(states: Any, first: Any, count: Any, m: Any, weight: Any, lane: Any, room: Any) -> Any:
        x = y = -math.inf
        at = other = math.inf
        for k in range(first + lane, first + count, THREADS):
            place = SUMS * k
            x, at = ahead(x, at, states[place], states[place + 1])
            y, other = ahead(y, other, states[place + 2], states[place + 3])
        x, at = of_team(x, at, lane, room)
        y, other = of_team(y, other, lane, room)
        return 1.0 if at == other and has_mass(x) and has_mass(y) else 0.0, True

    return Stage(f"agreement-{store}-{int(logarithms)}{int(normalize)}", work, concluded, size)
