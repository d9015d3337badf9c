"""Numbers with their partial derivatives, a batch at a time.

A formula branches on its numbers. Where a batch falls on both sides of a branch, the evaluation stops with `Split`, and
starts again with each side by itself: the text of the formula needs no change, and every number takes its own path.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from klnumba.duals.number import Moving, Twofold, is_moving, move_of, over, sign_of, still, times, twofold, where

CLEARLY = 2.0**-50  # by so much a number is below 0 that is not for rounding


class Split(Exception):
    """A batch falls on both sides of a branch."""

    def __init__(self, mask: np.ndarray) -> None:
        super().__init__("both sides of a branch")
        self.mask = mask


def by_branches(of_some: Callable[[np.ndarray], Any], at: np.ndarray) -> Iterator[tuple[np.ndarray, Any]]:
    """The places that fall on the same sides of all branches, and what is made of them."""
    parts = [at]
    while parts:
        at = parts.pop()
        try:
            result = of_some(at)
        except Split as both:
            mask = np.broadcast_to(both.mask, at.shape)
            parts += [at[mask], at[~mask]]
            continue
        yield at, result


class Choice:
    """The outcome of a comparison: true or false where it is the same for the batch."""

    __slots__ = ("mask",)

    def __init__(self, mask: Any) -> None:
        self.mask = np.asarray(mask)

    def __bool__(self) -> bool:
        if self.mask.all():
            return True
        if not self.mask.any():
            return False
        raise Split(self.mask)


def whole(numbers: Any) -> float:
    """The number that a batch has in common, as after a branch for each of its numbers."""
    found = np.atleast_1d(numbers)
    same = (found == found[0]) | (np.isnan(found) & np.isnan(found[0]))
    if not same.all():
        raise Split(same)
    return float(found[0])


class Dual:
    """A batch of values, and of their derivatives by each of the parameters.

    Attributes
    ----------
    value : Twofold
        Of shape (n,).
    slopes : Twofold
        Of shape (k, n), one row a parameter.
    """

    __slots__ = ("slopes", "value")

    def __init__(self, value: Twofold, slopes: Twofold) -> None:
        self.value = value
        self.slopes = slopes

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.slopes + other.slopes)
        return Dual(self.value + other, self.slopes)

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.slopes)

    def __pos__(self) -> Dual:
        return self

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __mul__(self, other: Any) -> Any:
        x, y = value_of(self), value_of(other)
        return chain(x * y, (self, y), (other, x))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return _quotient(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _quotient(other, self)

    def __pow__(self, n: Any) -> Any:
        if not isinstance(n, int) or n < 0:
            raise NotImplementedError("a power other than a whole number has no rule: write exp and log")
        result: Any = 1.0
        for _ in range(n):
            result = result * self
        return result

    def __abs__(self) -> Dual:
        """The slope at 0 is 0, halfway between those of both sides, unless the number moves to one of them."""
        sign = sign_of(self.value)
        return Dual(self.value * sign, self.slopes * sign)

    def __lt__(self, other: Any) -> Choice:
        return _compare(np.less, self, other)

    def __le__(self, other: Any) -> Choice:
        return _compare(np.less_equal, self, other)

    def __gt__(self, other: Any) -> Choice:
        return _compare(np.greater, self, other)

    def __ge__(self, other: Any) -> Choice:
        return _compare(np.greater_equal, self, other)

    def __eq__(self, other: object) -> Choice:  # type: ignore[override]
        return _compare(np.equal, self, other)

    def __ne__(self, other: object) -> Choice:  # type: ignore[override]
        return _compare(np.not_equal, self, other)

    def __float__(self) -> float:
        raise NotImplementedError("what works on the bits of numbers needs a rule for derivatives")

    __hash__ = None  # type: ignore[assignment]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """The operators, where NumPy's scalars or functions meet such a number."""
        operator = OPERATORS.get(ufunc)
        if operator is None or method != "__call__" or options:
            return NotImplemented
        return operator(*inputs)


def _quotient(x: Any, y: Any) -> Any:
    """The slopes are divided last, as the square of what stands below may be beyond the range."""
    below = value_of(y)
    quotient = value_of(x) / below
    found = chain(quotient, (x, 1.0), (y, -quotient))
    return Dual(quotient, over(found.slopes, below))


def _product(x: Any, y: Any) -> Any:
    return x * y if isinstance(x, Dual) else y * x


OPERATORS: dict[Any, Callable[..., Any]] = {
    np.add: lambda x, y: x + y if isinstance(x, Dual) else y + x,
    np.subtract: lambda x, y: x - y if isinstance(x, Dual) else (-y) + x,
    np.multiply: _product,
    np.true_divide: _quotient,
    np.negative: lambda x: -x,
    np.absolute: abs,
    np.square: lambda x: x * x,
}
for _ufunc, _name in (
    (np.less, "__gt__"),
    (np.less_equal, "__ge__"),
    (np.greater, "__lt__"),
    (np.greater_equal, "__le__"),
    (np.equal, "__eq__"),
    (np.not_equal, "__ne__"),
):
    OPERATORS[_ufunc] = lambda x, y, name=_name: getattr(y, name)(x)  # NumPy's number stands on the left


def _compare(how: Any, x: Any, y: Any) -> Choice:
    """The difference of the values decides: it is exact where they are close. Infinities are compared as they are.

    Of equal numbers that part as they move, one is the greater.
    """
    a, b = value_of(x), value_of(y)
    difference = a - b
    finite = np.isfinite(difference.hi)
    return Choice(np.where(finite, how(sign_of(difference), 0.0), how(a.hi, b.hi)))


def value_of(x: Any) -> Twofold:
    """The value of a dual or of a plain number."""
    return x.value if isinstance(x, Dual) else twofold(x)


def chain(value: Twofold, *terms: tuple[Any, Any]) -> Any:
    """The chain rule: of each argument the partial derivative by it. What does not change has the slope 0 always."""
    slopes: Any = None
    for argument, partial in terms:
        if isinstance(argument, Dual):
            term = times(argument.slopes, twofold(partial))
            slopes = term if slopes is None else slopes + term
    if not is_moving(value):
        for argument, partial in terms:
            if isinstance(argument, Dual) and isinstance(argument.value, Moving):
                move = times(argument.value.move, still(twofold(partial)))
                value = Moving(still(value), move_of(value) + move)
    return Dual(value, slopes)


def least(first: Any, *others: Any) -> Any:
    """`min` of numbers, each of a batch by itself: no branch."""
    return functools.reduce(lambda x, y: _select(y < x, y == x, y, x), others, first)


def largest(first: Any, *others: Any) -> Any:
    """`max` of numbers."""
    return functools.reduce(_larger, others, first)


def _larger(x: Any, y: Any) -> Any:
    """Of 0 and a number that moves the number, unless it is below: formulas take 0 for what rounding made negative."""
    for number, other in ((x, y), (y, x)):
        if isinstance(number, Dual) and is_moving(number.value) and not isinstance(other, Dual) and other == 0.0:
            return _select(Choice(~(number.value.hi <= -CLEARLY)), Choice(False), number, other)
    return _select(y > x, y == x, y, x)


def _select(choice: Any, tie: Any, x: Any, y: Any) -> Any:
    """Of two equal numbers that both move, the slopes halfway: those of a formula of the greater and of the lesser."""
    if not isinstance(choice, Choice):
        return x if choice else y
    a, b = (z.slopes if isinstance(z, Dual) else twofold(0.0) for z in (x, y))
    slopes = where(choice.mask, a, b)
    if isinstance(x, Dual) and isinstance(y, Dual):
        slopes = where(tie.mask, (a + b) * 0.5, slopes)
    return Dual(where(choice.mask, value_of(x), value_of(y)), slopes)
