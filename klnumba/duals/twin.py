"""From a plain scalar formula to the same formula of duals.

As the compiler does it, the formula and all that it calls are built anew with their globals replaced; functions that
have a rule are replaced by it, and the rest of the text is run as it stands.
"""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from klnumba.duals import rules
from klnumba.duals.dual import Dual, by_branches, largest, least
from klnumba.duals.number import Moving, Twofold, move_of
from klnumba.duals.twofold import EULER, HALF_LOG_2PI, LN2

BLOCK = 1 << 12  # numbers that are evaluated together
EXTREME = 200  # a parameter of 2**200 or 2**-200 may have a square beyond the range


class _Mathematics:
    """The module `math` for duals: its constants, and those of its functions that have a rule."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(math, name)
        if not callable(found):
            return found
        if found not in rules.RULES:
            raise NotImplementedError(f"math.{name} has no rule for derivatives")
        return rules.RULES[found]


MATHEMATICS = _Mathematics()
# Constants that are rounded in the text: where they cancel, a derivative would be that of their rounding errors.
CONSTANTS = {float(exact.hi): Dual(exact, Twofold(0.0)) for exact in (LN2, HALF_LOG_2PI, EULER)}


def _number(x: Any = 0.0) -> Any:
    """`float` for duals."""
    return x if isinstance(x, Dual) else float(x)


def _replaced(value: Any) -> Any:
    """What stands for a global in a formula of duals."""
    if value is math:
        return MATHEMATICS
    if isinstance(value, float):
        return CONSTANTS.get(value, value)
    try:
        of_duals = rules.RULES.get(value)
    except TypeError:  # not hashable, so no function
        return value
    if of_duals is not None:
        return of_duals
    return twin(value) if isinstance(value, types.FunctionType) else value


@functools.cache
def twin(formula: Callable[..., Any]) -> Callable[..., Any]:
    """The formula of duals: its rule, or its text."""
    if formula in rules.RULES:
        return rules.RULES[formula]
    if not isinstance(formula, types.FunctionType):
        raise NotImplementedError(f"{formula!r} is no plain function, and has no rule for derivatives")
    return rebuilt(formula)


@functools.cache
def rebuilt(formula: types.FunctionType) -> Callable[..., Any]:
    """The text of a formula, with duals in place of all that it calls."""
    names = dict(formula.__globals__)
    names |= {"float": _number, "min": least, "max": largest}
    for name in formula.__code__.co_names:
        if name in formula.__globals__:
            names[name] = _replaced(names[name])
    held = tuple(types.CellType(_replaced(cell.cell_contents)) for cell in formula.__closure__ or ())
    return types.FunctionType(formula.__code__, names, formula.__name__, formula.__defaults__, held)


def slopes(formula: Callable[..., Any], parameters: Sequence[np.ndarray]) -> np.ndarray:
    """The partial derivatives of a formula by its parameters, float64 columns of one length: an array (k, n).

    The formula takes duals. Where its value is no finite number, or a derivative is none, that is NaN. What left the
    range of numbers on the way is worked out again by changes of the parameters' own sizes.
    """
    columns = np.array(parameters, np.float64)
    out = np.full(columns.shape, np.nan)
    with np.errstate(all="ignore"):
        _fill(out, formula, columns, np.zeros(columns.shape, int), np.arange(columns.shape[1]))
        lost = np.flatnonzero(np.isnan(out).any(0))
        sizes = np.where(np.isfinite(columns), np.frexp(columns)[1], 0)
        again = np.full(columns.shape, np.nan)
        _fill(again, formula, columns, sizes, lost[np.any(np.abs(sizes[:, lost]) > EXTREME, 0)])
    return np.where(np.isnan(out), again, out)


def _fill(out: np.ndarray, formula: Callable[..., Any], columns: np.ndarray, sizes: np.ndarray, at: np.ndarray) -> None:
    """The derivatives of some cells by changes of 2**sizes, divided by these."""

    def of_some(some: np.ndarray) -> Any:
        return formula(*_seeds(columns[:, some], sizes[:, some]))

    for start in range(0, at.size, BLOCK):
        for some, result in by_branches(of_some, at[start : start + BLOCK]):
            if isinstance(result, Dual):
                found = np.where(np.isfinite(result.value.hi), np.ldexp(result.slopes.hi, -sizes[:, some]), np.nan)
                out[:, some] = np.where(np.isfinite(found), found + 0.0, np.nan)  # without the sign of zero
            elif math.isfinite(result):
                out[:, some] = 0.0


def _seeds(columns: np.ndarray, sizes: np.ndarray) -> list[Dual]:
    changes = np.ldexp(1.0, sizes)
    unit = np.eye(len(columns))
    return [Dual(Twofold(x), Twofold(np.outer(unit[i], changes[i]))) for i, x in enumerate(columns)]


def slopes_along(
    formula: Callable[..., Any], parameters: Sequence[np.ndarray], moves: Sequence[np.ndarray]
) -> np.ndarray:
    """What the partial derivatives of a formula change by as its parameters move: an array (k, n).

    That is its Hessian times the direction, worked out as the derivatives are, with numbers that move; NaN where one on
    the way leaves the range, and where a derivative that it is made of is none.

    Raises
    ------
    NotImplementedError
        If a derivative on the way holds at single values of a parameter.
    """
    columns, steps = np.array(parameters, np.float64), np.array(moves, np.float64)
    out, unit = np.full(columns.shape, np.nan), np.eye(len(columns))

    def of_some(some: np.ndarray) -> Any:
        return formula(
            *(
                Dual(Moving(Twofold(x), Twofold(move)), Twofold(np.repeat(unit[i][:, None], some.size, 1)))
                for i, (x, move) in enumerate(zip(columns[:, some], steps[:, some], strict=True))
            )
        )

    with np.errstate(all="ignore"):
        for start in range(0, columns.shape[1], BLOCK):
            stop = min(start + BLOCK, columns.shape[1])
            for some, result in by_branches(of_some, np.arange(start, stop)):
                if isinstance(result, Dual):
                    found = np.where(np.isfinite(result.value.hi), move_of(result.slopes).hi, np.nan)
                    known = np.broadcast_to(np.isfinite(result.slopes.hi), found.shape)
                    known = known & ~np.any(~known & (steps[:, some] != 0.0), 0)
                    out[:, some] = np.where(known & np.isfinite(found), found + 0.0, np.nan)
                elif math.isfinite(result):
                    out[:, some] = 0.0
    return out
