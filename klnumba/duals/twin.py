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
from klnumba.duals.dual import Dual, Split, largest, least
from klnumba.duals.twofold import Twofold

BLOCK = 1 << 12  # numbers that are evaluated together


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


def _number(x: Any = 0.0) -> Any:
    """`float` for duals."""
    return x if isinstance(x, Dual) else float(x)


def _replaced(value: Any) -> Any:
    """What stands for a global in a formula of duals."""
    if value is math:
        return MATHEMATICS
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

    The formula takes duals. Where its value is no finite number, or a derivative is none, that is NaN.
    """
    columns = np.array(parameters, np.float64)
    out = np.full(columns.shape, np.nan)
    size = columns.shape[1]
    parts = [np.arange(start, min(start + BLOCK, size)) for start in range(0, size, BLOCK)]
    with np.errstate(all="ignore"):
        while parts:
            at = parts.pop()
            try:
                result = formula(*_seeds(columns[:, at]))
            except Split as both:
                mask = np.broadcast_to(both.mask, at.shape)
                parts += [at[mask], at[~mask]]
                continue
            if isinstance(result, Dual):
                found = np.where(np.isfinite(result.value.hi), result.slopes.hi, np.nan)
                out[:, at] = np.where(np.isfinite(found), found + 0.0, np.nan)  # without the sign of zero
            elif math.isfinite(result):
                out[:, at] = 0.0
    return out


def _seeds(columns: np.ndarray) -> list[Dual]:
    unit = np.eye(len(columns))
    return [Dual(Twofold(x), Twofold(np.outer(unit[i], np.ones(x.size)))) for i, x in enumerate(columns)]
