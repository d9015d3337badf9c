"""A formula of any count of numbers, or of rows of numbers, over as many arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.cpython.unsafe import tuple as numba_tuple

from klnumba.formulas.quick import LEAST, MOST, quick_form
from klnumba.kernels import row_sums
from klnumba.kernels.compiler import FIRST_CLASS, helper, is_ours, name_of, once, uncontracted
from klnumba.kernels.compiler import loop as compiled
from klnumba.kernels.tiles import FLAGS, FLOAT, INT, VALUES, cells_of

set_item: Any = numba_tuple.tuple_setitem


MINUS_ZERO = np.int64(-(1 << 63))


@helper
def _without_sign_of_zero(x: Any) -> Any:
    """x, and 0.0 for -0.0: told by the bits, as formulas are compiled without regard to the sign of zero."""
    bits = np.float64(x).view(np.int64)
    kept = np.int64(0) if bits == MINUS_ZERO else bits
    return np.int64(kept).view(np.float64)


def cell_of(count: int) -> Any:
    """What takes the k-th number out of each of so many columns."""
    numbers = (0.0,) * count

    @helper
    def cell_at(columns: Any, k: Any) -> Any:
        cell = numbers
        for i in range(count):
            cell = set_item(cell, i, columns[i][k])
        return cell

    return cell_at


def loop(formula: Callable[..., Any], count: int) -> Callable[..., None]:
    formula, cell_at = uncontracted(formula), cell_of(count)

    def elementwise(columns: Any, out: Any) -> None:
        for k in range(out.size):
            out[k] = _without_sign_of_zero(formula(*cell_at(columns, k)))

    return elementwise


def loop_with_shortcut(formula: Callable[..., Any], count: int, quick: Callable[..., Any]) -> Callable[..., None]:
    """The same for a formula that has a quick form."""
    formula, quick, cell_at = uncontracted(formula), uncontracted(quick), cell_of(count)

    def elementwise(columns: Any, out: Any) -> None:
        served = 0
        for k in range(out.size):
            value, serves = quick(*cell_at(columns, k))
            out[k] = _without_sign_of_zero(value) if serves else np.nan
            served += serves
        if served < out.size:
            for k in range(out.size):
                if out[k] != out[k]:
                    out[k] = _without_sign_of_zero(formula(*cell_at(columns, k)))

    return elementwise


@once
def over_columns(formula: Callable[..., Any], count: int) -> Any:
    """The compiled loop: from a tuple of read-only float64 columns to an array of results.

    A formula from outside the package is compiled anew in every process: the cache does not watch its source.
    """
    signature = types.void(types.UniTuple(cells_of(np.dtype(np.float64)), count), VALUES)
    quick = quick_form(formula)
    text = loop_with_shortcut(formula, count, *quick) if quick else loop(formula, count)
    return compiled(f"{name_of(formula)}-elementwise", text, signature, cached=is_ours(formula))


# What takes so many numbers and hands them on as a tuple: Numba converts numbers to those of a signature, not tuples.
TAKING: dict[int, Callable[[Any], Callable[..., Any]]] = {
    1: lambda of: lambda a: of((a,)),
    2: lambda of: lambda a, b: of((a, b)),
    3: lambda of: lambda a, b, c: of((a, b, c)),
    4: lambda of: lambda a, b, c, d: of((a, b, c, d)),
    5: lambda of: lambda a, b, c, d, e: of((a, b, c, d, e)),
    6: lambda of: lambda a, b, c, d, e, f: of((a, b, c, d, e, f)),
    7: lambda of: lambda a, b, c, d, e, f, g: of((a, b, c, d, e, f, g)),
    8: lambda of: lambda a, b, c, d, e, f, g, h: of((a, b, c, d, e, f, g, h)),
}


@once
def of_numbers(formula: Callable[..., Any], count: int) -> Any:
    """The formula of so many numbers as a compiled function, with the bits of a batch: its quick form comes first."""
    exact, quick = uncontracted(formula), [uncontracted(form) for form in quick_form(formula)]

    if quick:
        (first,) = quick

        @helper
        def value_of(numbers: Any) -> Any:
            value, serves = first(*numbers)
            return _without_sign_of_zero(value if serves else exact(*numbers))

    else:

        @helper
        def value_of(numbers: Any) -> Any:
            return _without_sign_of_zero(exact(*numbers))

    signature = types.float64(*(types.float64,) * count)
    return compiled(f"{name_of(formula)}-numbers", TAKING[count](value_of), signature, is_ours(formula), FIRST_CLASS)


def loop_of_two(formula: Callable[..., Any], count: int) -> Callable[..., None]:
    """The same for a formula that gives two numbers."""
    formula, cell_at = uncontracted(formula), cell_of(count)

    def elementwise(columns: Any, first: Any, second: Any) -> None:
        for k in range(first.size):
            first[k], second[k] = formula(*cell_at(columns, k))

    return elementwise


@once
def twofold_over_columns(formula: Callable[..., Any], count: int) -> Any:
    """The compiled loop of a formula that gives a number and what its rounding lost, to an array for each."""
    signature = types.void(types.UniTuple(cells_of(np.dtype(np.float64)), count), VALUES, VALUES)
    return compiled(f"{name_of(formula)}-twofold", loop_of_two(formula, count), signature, cached=is_ours(formula))


def loop_of_slopes(slopes: Callable[..., Any], count: int) -> Callable[..., None]:
    """The derivatives of a formula by its `count` numbers, times a factor, and which cells are left for more digits.

    Left are those with a number that is not ordinary, and with a derivative below `least` of the size of its terms.
    What is larger than `most` becomes NaN.
    """
    slopes, cell_at = uncontracted(slopes), cell_of(count)

    def elementwise(columns: Any, factors: Any, least: Any, most: Any, out: Any, left: Any) -> None:
        for k in range(left.size):
            numbers = cell_at(columns, k)
            found = slopes(*numbers)
            serves = True
            for i in range(count):
                size = abs(numbers[i])
                slope, terms = found[i]
                serves &= (size == 0.0) | ((size >= LEAST) & (size <= MOST))
                serves &= (abs(slope) >= least * terms) & (abs(slope) < np.inf)
                scaled = slope * factors[k]
                out[i][k] = _without_sign_of_zero(scaled if abs(scaled) <= most else np.nan)
            left[k] = not serves

    return elementwise


@once
def slopes_over_columns(slopes: Callable[..., Any], count: int) -> Any:
    """The compiled loop of the quick slopes of a formula, to an array for each of its numbers."""
    cells = cells_of(np.dtype(np.float64))
    signature = types.void(types.UniTuple(cells, count), cells, FLOAT, FLOAT, types.UniTuple(VALUES, count), FLAGS)
    text = loop_of_slopes(slopes, count)
    return compiled(f"{name_of(slopes)}-slopes", text, signature, cached=is_ours(slopes))


def rows_of(count: int) -> Any:
    """What cuts the k-th row out of each of the first `count` columns: that of one fewer, and one more place."""
    if count == 0:

        @helper
        def none(columns: Any, steps: Any, widths: Any, k: Any) -> Any:
            return ()

        return none
    before, last = rows_of(count - 1), count - 1

    @helper
    def rows(columns: Any, steps: Any, widths: Any, k: Any) -> Any:
        start = k * steps[last]
        return (*before(columns, steps, widths, k), columns[last][start : start + widths[last]])

    return rows


def loop_of_rows(formula: Callable[..., Any], count: int) -> Callable[..., None]:
    formula, rows_at = uncontracted(formula), rows_of(count)

    def rows(columns: Any, steps: Any, widths: Any, out: Any, room: Any) -> None:
        for k in range(out.size):
            out[k] = _without_sign_of_zero(formula(room, *rows_at(columns, steps, widths, k)))

    return rows


def loop_of_rows_with_shortcut(
    formula: Callable[..., Any], cell: Callable[..., Any], whole: Callable[..., Any]
) -> Callable[..., None]:
    """The same for a formula of two rows that has a quick form; no row is repeated, `room` is `row_sums.room_for`."""
    formula, rows_at, quick_rows = uncontracted(formula), rows_of(2), row_sums.loop(cell, whole)

    def rows(columns: Any, steps: Any, widths: Any, out: Any, room: Any) -> None:
        quick_rows(columns, widths, out, room)
        for k in range(out.size):
            if out[k] != out[k]:
                out[k] = _without_sign_of_zero(formula(room, *rows_at(columns, steps, widths, k)))

    return rows


@once
def over_rows(formula: Callable[..., Any], count: int) -> Any:
    """The compiled loop: from a tuple of read-only float64 columns, cut into rows of `widths`, to an array of results.

    The rows of a column begin `steps` apart. The formula takes an array that it may write to, and a row a column.
    """
    sizes = types.Array(INT, 1, "C")
    columns = types.UniTuple(cells_of(np.dtype(np.float64)), count)
    signature = types.void(columns, sizes, sizes, VALUES, VALUES)
    quick = quick_form(formula)
    text = loop_of_rows_with_shortcut(formula, *quick) if quick else loop_of_rows(formula, count)
    return compiled(f"{name_of(formula)}-rows", text, signature, cached=is_ours(formula))
