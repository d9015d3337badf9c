"""The compiled loops of the CPU by name, each built at its first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import from_dtype, types

from klnumba.formulas import divergences, finish, hessians, log_cells, slopes
from klnumba.kernels import (
    accumulate,
    binning,
    exact,
    exact_short,
    groups,
    log_hessians,
    log_means,
    log_slopes,
    log_slopes_short,
    log_sums,
    log_sums_short,
    logits,
    logits_short,
    logs,
    logs_plain,
    logs_short,
    means,
    pointwise,
    rises,
    shares,
    slopes_short,
    weight_sums,
    words,
)
from klnumba.kernels import hessians as hessian_loops
from klnumba.kernels import slopes as slope_loops
from klnumba.kernels.compiler import loop, once, step
from klnumba.kernels.quick_rows import QUICK
from klnumba.kernels.tiles import FLAGS, FLOAT, INDEX, INT, STATES, VALUES, buffer_of, cells_of, room_of

# A divergence: its cell from (p, q, p - q, mass, weight), and its cell from logarithms.
CELLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "kl": (divergences.kl, log_cells.kl),
    "rel_entr": (divergences.rel_entr_cell, log_cells.rel_entr),
    "jeffreys": (divergences.jeffreys, log_cells.jeffreys_log),
    "js": (divergences.js, log_cells.js_log),
    "cross_entropy": (divergences.cross_entropy, log_cells.cross_entropy_log),
    "entropy": (divergences.entropy, log_cells.entropy_log),
}

# The name of a statistic that is the largest cell, not their sum.
LARGEST = log_sums.LARGEST
CELLS[LARGEST] = (divergences.log_ratio_cell, log_cells.log_ratio_log)

POINTWISE: dict[str, Callable[..., Any]] = {
    "rel_entr": divergences.rel_entr,
    "generalized_kl": divergences.generalized_kl,
    "kl_div": divergences.kl_div,
    "kl_div_log_target": divergences.kl_div_log_target,
}

# The quick forms of some.
SHORTCUTS: dict[str, Callable[..., Any]] = {
    "rel_entr": divergences.rel_entr_plain,
    "generalized_kl": divergences.generalized_kl_plain,
    "kl_div": divergences.kl_div_plain,
}

# The loops over derivatives, of rows of logarithms or not, and of short rows or not.
SLOPE_LOOPS: dict[tuple[bool, bool], Any] = {
    (False, False): slope_loops,
    (False, True): slopes_short,
    (True, False): log_slopes,
    (True, True): log_slopes_short,
}

BOOL = types.boolean
NUMBERS = cells_of(np.dtype("float64"))
ROOM = room_of(np.float64)


def finish_of(name: str) -> Callable[..., float]:
    return finish.finish_largest if name == LARGEST else finish.finish_sum


def _name(*parts: str) -> str:
    return "-".join(parts)


@once
def quick_rows(name: str, dtype: str, short: bool, normalize: bool) -> Any:
    """A divergence among `QUICK` in one read: fills (out, flag); a flagged row is for the loops below."""
    kind = np.dtype(dtype)
    title = _name(name if normalize else f"plain-{name}", "short" if short else "long", dtype)
    return _shared(title, QUICK[name].rows(kind, short, normalize), cells_of(kind), *room_of(kind))


def _shared(name: str, rows: Callable[..., Any], cells: Any, *rest: Any) -> Any:
    """A loop whose rows threads share; it returns how many of them the calling thread has flagged."""
    return loop(name, rows, INT(cells, INT, INT, cells, INT, INT, INT, INT, VALUES, FLAGS, shares.TURN, *rest))


@once
def scaled_rows(name: str, dtype: str, short: bool) -> Any:
    """The same of the rows in `index`, one side of each scaled first; a flagged row is for `exact_rows`."""
    kind = np.dtype(dtype)
    cells, room = cells_of(kind), ROOM if short else room_of(kind)
    signature = types.void(cells, INT, INT, cells, INT, INT, INDEX, INT, VALUES, FLAGS, *room)
    title = _name(name, "scaled-short" if short else "scaled-long", dtype)
    return loop(title, QUICK[name].scaled(kind, short), signature)


@once
def quick_pieces(name: str, dtype: str, normalize: bool) -> Any:
    """Pieces of one long row in one read."""
    kind = np.dtype(dtype)
    return _pieces(
        _name(name, "pieces" if normalize else "plain-pieces", dtype), QUICK[name].pieces(kind, normalize), kind
    )


@once
def scaled_pieces(name: str, dtype: str) -> Any:
    """The same in float64, one side scaled first."""
    kind = np.dtype(dtype)
    return _pieces(_name(name, "scaled-pieces", dtype), QUICK[name].scaled_pieces(kind), kind)


def _pieces(title: str, built: Callable[..., None], kind: Any) -> Any:
    cells = cells_of(kind)
    return loop(title, built, types.void(cells, INT, cells, INT, INDEX, INDEX, FLOAT, STATES, *room_of(kind)))


@once
def exact_rows(name: str, dtype: str, difference: bool, short: bool) -> Any:
    """Any divergence of the rows in `index`, in two reads and float64."""
    cells = cells_of(np.dtype(dtype))
    signature = types.void(cells, INT, INT, cells, INT, INT, INDEX, INT, BOOL, FLOAT, VALUES, *ROOM)
    last = finish.finish_difference if difference else finish_of(name)
    title = _name(name, "difference" if difference else "exact", "short" if short else "long", dtype)
    build = exact_short.rows if short else exact.rows
    return loop(title, build(CELLS[name][0], last, largest=name == LARGEST), signature)


@once
def exact_piece_sums(dtype: str) -> Any:
    cells = cells_of(np.dtype(dtype))
    signature = types.void(cells, INT, cells, INT, INDEX, INDEX, FLOAT, FLOAT, STATES, *ROOM)
    return loop(_name("piece-sums", dtype), exact.piece_sums(), signature)


@once
def exact_piece_cells(name: str, dtype: str) -> Any:
    cells = cells_of(np.dtype(dtype))
    signature = types.void(cells, INT, cells, INT, INDEX, INDEX, FLOAT, FLOAT, VALUES, BOOL, FLOAT, STATES, *ROOM)
    return loop(
        _name(name, "piece-cells", dtype), exact.piece_cells(CELLS[name][0], largest=name == LARGEST), signature
    )


@once
def log_rows(name: str, dtype: str, short: bool) -> Any:
    """Any divergence of rows of log-probabilities or logits."""
    cells, build = cells_of(np.dtype(dtype)), logs_short.rows if short else logs.rows
    signature = types.void(cells, INT, INT, cells, INT, INT, INDEX, INT, BOOL, FLOAT, FLOAT, FLOAT, VALUES, *ROOM)
    title = _name(name, "short-logs" if short else "logs", dtype)
    return loop(title, build(CELLS[name][1], plain=name == "kl", largest=name == LARGEST), signature)


@once
def logit_rows(dtype: str) -> Any:
    """KL of long rows of logits; fills (out, flag); a flagged row is for `log_rows`."""
    cells, store = cells_of(np.dtype(dtype)), types.Array(from_dtype(np.dtype(dtype)), 2, "C")
    rest = FLOAT, store, *room_of(np.dtype(dtype))
    return _shared(_name("kl", "logits", dtype), logits.rows(np.dtype(dtype)), cells, *rest)


@once
def short_logit_rows(dtype: str) -> Any:
    """The same for short rows, in float64."""
    kind = np.dtype(dtype)
    return _shared(_name("kl", "short-logits", dtype), logits_short.rows(), cells_of(kind), FLOAT, *room_of(kind))


@once
def log_sum_rows(name: str, dtype: str, short: bool) -> Any:
    """A divergence of rows of logits that is a sum over their exponentials; a flagged row is for `log_rows`."""
    kind = np.dtype(dtype)
    rows = log_sums_short.rows(name) if short else log_sums.rows(name, kind)
    title = _name(name, "short-sums" if short else "sums", dtype)
    return _shared(title, rows, cells_of(kind), FLOAT, *(ROOM if short else room_of(kind)))


@once
def plain_log_rows(name: str, dtype: str, short: bool) -> Any:
    """A divergence of rows of log-probabilities that are taken as they are; a flagged row is for `log_rows`."""
    kind = np.dtype(dtype)
    rows = logs_plain.short_rows(name) if short else logs_plain.long_rows(name)
    return _shared(_name(name, "plain-logs", "short" if short else "long", dtype), rows, cells_of(kind), *room_of(kind))


@once
def plain_log_pieces(name: str, dtype: str) -> Any:
    kind = np.dtype(dtype)
    cells = cells_of(kind)
    signature = types.void(cells, INT, cells, INT, INDEX, INDEX, STATES, *room_of(kind))
    return loop(_name(name, "plain-log-pieces", dtype), logs_plain.pieces(name), signature)


@once
def log_piece_largest(dtype: str) -> Any:
    cells = cells_of(np.dtype(dtype))
    signature = types.void(cells, INT, cells, INT, INDEX, INDEX, STATES, VALUES)
    return loop(_name("piece-largest", dtype), logs.piece_largest(), signature)


@once
def log_piece_rest(dtype: str) -> Any:
    cells = cells_of(np.dtype(dtype))
    signature = types.void(cells, INT, cells, INT, INDEX, INDEX, VALUES, STATES, *ROOM)
    return loop(_name("piece-rest", dtype), logs.piece_rest(), signature)


@once
def log_piece_sweep(name: str, dtype: str) -> Any:
    cells = cells_of(np.dtype(dtype))
    signature = types.void(cells, INT, cells, INT, INDEX, INDEX, VALUES, FLOAT, STATES, *ROOM)
    return loop(_name(name, "log-pieces", dtype), logs.piece_sweep(CELLS[name][1], largest=name == LARGEST), signature)


@once
def cells_pointwise(name: str, dtype: str) -> Any:
    cells = cells_of(np.dtype(dtype))
    signature = types.void(cells, cells, buffer_of(np.dtype(dtype)))
    formula, plain = POINTWISE[name], SHORTCUTS.get(name)
    built = pointwise.loop_with_shortcut(formula, plain) if plain else pointwise.loop(formula)
    return loop(_name(name, "pointwise", dtype), built, signature)


@once
def slope_rows(name: str, dtype: str, logs: bool, short: bool, normalize: bool) -> Any:
    """The derivatives of a divergence of rows by their cells."""
    cells, out = cells_of(np.dtype(dtype)), buffer_of(np.dtype(dtype))
    numbers, more = ((FLOAT, FLOAT, FLOAT) if logs else (FLOAT,)), ((VALUES,) if short else ())
    sides = cells, INT, INT, cells, INT, INT, INDEX, INT
    signature = types.void(*sides, VALUES, *numbers, BOOL, BOOL, out, out, *more, *ROOM)
    build = SLOPE_LOOPS[logs, short].rows(slopes.SLOPES[name], normalize)
    form = "slopes" if normalize else "plain-slopes"
    return loop(_name(name, form, "logs" if logs else "cells", "short" if short else "long", dtype), build, signature)


@once
def rise_rows(dtype: str, logs: bool, short: bool) -> Any:
    """Those of KL and cross-entropy by the cells of q; a flagged row is for `slope_rows`."""
    kind = np.dtype(dtype)
    if logs:
        built = rises.short_log_rows(kind) if short else rises.long_log_rows(kind)
    else:
        built = rises.short_rows(kind) if short else rises.long_rows(kind)
    name = _name("rises", "logs" if logs else "cells", "short" if short else "long", dtype)
    return loop(name, built, _signature_of_quick_slopes(kind, logs, short))


@once
def mean_rows(name: str, dtype: str, short: bool) -> Any:
    """Those by logits of p of what is a mean over p; a flagged row is for `slope_rows`."""
    kind, meant = np.dtype(dtype), slopes.SLOPES[name].meant
    assert meant is not None
    built = log_means.short_rows(meant, kind) if short else log_means.long_rows(meant, kind)
    label = _name(name, "means", "logs", "short" if short else "long", dtype)
    return loop(label, built, _signature_of_quick_slopes(kind, True, short))


@once
def centred_rows(name: str, dtype: str, logs: bool, short: bool) -> Any:
    """The derivatives of a divergence less their means; a flagged row is for `slope_rows`."""
    kind, slope = np.dtype(dtype), slopes.SLOPES[name]
    built = means.short_rows(slope, kind, logs) if short else means.long_rows(slope, kind, logs)
    cells, out, room = cells_of(kind), buffer_of(kind), ROOM if short else room_of(kind)
    sides = cells, INT, INT, cells, INT, INT, INT, INT
    signature = types.void(*sides, VALUES, FLOAT, FLOAT, BOOL, BOOL, out, out, FLAGS, VALUES, *room)
    return loop(
        _name(name, "centred", "logs" if logs else "cells", "short" if short else "long", dtype), built, signature
    )


def _signature_of_quick_slopes(kind: np.dtype[Any], logs: bool, short: bool) -> Any:
    cells, numbers, powers = cells_of(kind), ((FLOAT,) if logs else ()), ((VALUES,) if logs else ())
    sides = cells, INT, INT, cells, INT, INT, INT, INT
    room = ROOM if short else room_of(kind)
    return types.void(*sides, VALUES, *numbers, buffer_of(kind), FLAGS, *powers, *room)


@once
def slope_cells(name: str, dtype: str, by: tuple[bool, bool]) -> Any:
    """The derivatives of a formula of two numbers by the first, the second, or both."""
    cells, out = cells_of(np.dtype(dtype)), buffer_of(np.dtype(dtype))
    signature = types.void(cells, cells, NUMBERS, BOOL, out, out)
    sides = "".join(side for side, wanted in zip("xy", by, strict=True) if wanted)
    return loop(_name(name, "slope-cells", sides, dtype), slope_loops.cells(slopes.CELLS[name], by), signature)


@once
def hessian_rows(name: str, logs: bool, normalize: bool) -> Any:
    """The second derivatives of a divergence of rows by their cells, times a direction, in float64."""
    numbers = (FLOAT, FLOAT, FLOAT) if logs else (FLOAT,)
    sides, moves = (NUMBERS, INT, INT, NUMBERS, INT, INT, INDEX, INT), (NUMBERS, INT, NUMBERS, INT)
    signature = types.void(*sides, VALUES, *numbers, *moves, BOOL, BOOL, VALUES, VALUES, STATES, *ROOM)
    build = (log_hessians if logs else hessian_loops).rows(slopes.SLOPES[name], hessians.BENDS[name], normalize)
    return loop(
        _name(name, "hessians" if normalize else "plain-hessians", "logs" if logs else "cells"), build, signature
    )


@once
def hessian_cells(name: str) -> Any:
    """The same of a formula of two numbers by both."""
    signature = types.void(*(NUMBERS,) * 5, BOOL, VALUES, VALUES)
    return loop(_name(name, "hessian-cells"), hessian_loops.cells(hessians.CELLS[name]), signature)


@once
def widen() -> Any:
    """bfloat16 to float32, as integers."""
    signature = types.void(types.Array(types.uint16, 1, "C", readonly=True), types.Array(types.uint32, 1, "C"))
    return loop("widen", pointwise.widen(), signature)


_COUNTS = types.Array(types.int64, 2, "C")
_LIMBS = types.Array(types.int64, 3, "C")


@once
def accumulated(weighted: bool) -> Any:
    """Row values into the state of an accumulator; returns how many were taken."""
    first = (NUMBERS, NUMBERS) if weighted else (NUMBERS,)
    sums = (_LIMBS, _LIMBS) if weighted else (_LIMBS,)
    signature = INT(*first, INDEX, NUMBERS, _COUNTS, STATES, *sums, _COUNTS, _COUNTS, INDEX, VALUES)
    build = accumulate.weighted if weighted else groups.plain
    return loop(_name("accumulate", "weighted" if weighted else "plain"), build(), signature)


@once
def exact_sum() -> Any:
    """The sum of finite values in fixed point; returns whether they were finite."""
    return loop("exact-sum", accumulate.exact_sum(), BOOL(NUMBERS, _LIMBS, VALUES))


@once
def extent() -> Any:
    return loop("extent", accumulate.extent(), types.void(NUMBERS, VALUES))


PLACES = types.Array(types.int64, 1, "C")


# What Python computes between the reads of a long row.
STEPS: dict[str, tuple[Any, Any]] = {
    "raise-up": (exact.raise_up, types.void(VALUES, VALUES)),
    "value-of-logs": (logs.value_of, FLOAT(FLOAT, FLOAT)),
    "barred": (logs.barred, BOOL(VALUES, BOOL)),
    "judge": (logs.judge, types.Tuple((FLOAT, BOOL))(FLOAT, FLOAT, FLOAT, BOOL, BOOL, BOOL, BOOL, FLOAT, INT)),
    "sharpen": (logs.sharpen, types.void(VALUES, FLOAT, FLOAT)),
    "log-normaliser": (logs.log_normaliser, FLOAT(FLOAT, FLOAT)),
}


@once
def step_of_long_rows(name: str) -> Any:
    return step(name, *STEPS[name])


@once
def count_numbers() -> Any:
    """How many numbers of a column each cell has."""
    return loop("count-numbers", binning.counting(), types.void(NUMBERS, NUMBERS, INT, PLACES, PLACES))


@once
def weigh_numbers() -> Any:
    """The weights of the numbers in each cell, and their squares."""
    signature = types.void(NUMBERS, NUMBERS, NUMBERS, INT, PLACES, INT, PLACES)
    return loop("weigh-numbers", weight_sums.weighing(), signature)


@once
def weigh_places() -> Any:
    """The same where the cell of each row is known."""
    return loop("weigh-places", weight_sums.weighing_places(), types.void(INDEX, NUMBERS, INT, INT, PLACES))


@once
def sort_weights() -> Any:
    """Weights in the order of their cells."""
    return loop("sort-weights", weight_sums.sorting(), types.void(INDEX, NUMBERS, PLACES, VALUES))


@once
def weigh_groups() -> Any:
    """The weights of sorted rows by value and group, and those of all other groups."""
    signature = types.void(NUMBERS, INT, INDEX, INT, INT, _COUNTS, VALUES, STATES, STATES)
    return loop("weigh-groups", weight_sums.grouping(), signature)


@once
def scale_groups() -> Any:
    """These scaled to the effective numbers of rows."""
    return loop("scale-groups", weight_sums.scaling(), types.void(STATES, STATES, INT, VALUES, STATES, STATES))


@once
def count_codes(dtype: str) -> Any:
    """How often each code of a column occurs."""
    codes = types.Array(from_dtype(np.dtype(dtype)), 1, "C", readonly=True)
    return loop(f"count-codes-{dtype}", binning.counting_codes(), types.void(codes, INT, PLACES))


BYTES = types.Array(types.uint8, 1, "C", readonly=True)


@once
def code_words(dtype: str) -> Any:
    """The numbers of the words of a column, whose offsets are of this dtype."""
    offsets = types.Array(from_dtype(np.dtype(dtype)), 1, "C", readonly=True)
    keys, found = types.Array(types.uint64, 1, "C", readonly=True), types.Array(types.int32, 1, "C")
    table = (found, types.Array(types.uint64, 2, "C"), PLACES, types.Array(types.uint8, 1, "C"))
    signature = INT(offsets, BYTES, BYTES, INT, keys, *table, BOOL, found)
    return loop(f"code-words-{dtype}", words.coding(), signature)


@once
def checksums() -> Any:
    """The CRC-32 of some words."""
    numbers = types.Array(types.uint64, 1, "C")
    table = types.Array(types.uint64, 1, "C", readonly=True)
    return loop("checksums", words.checksums(), types.void(PLACES, PLACES, BYTES, table, numbers))
