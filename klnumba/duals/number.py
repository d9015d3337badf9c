"""Numbers in twice the digits of float64, and such numbers that move: with their derivative along one direction.

A derivative of a divergence is of first order where its terms are of zeroth, so that what a term loses to rounding
would show in it. With about 31 digits there is room for that. Products below 1e-290 keep the 16 digits of float64.

A formula of numbers that move gives its derivative along the way as well; that of the derivatives of a formula is the
product of its Hessian with the direction.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from klnumba.formulas import pairs
from klnumba.kernels.universal import universal


class Twofold:
    """hi + lo, where hi is the sum rounded."""

    __slots__ = ("hi", "lo")
    __array_ufunc__ = None  # NumPy's scalars leave the operation to this class

    def __init__(self, hi: Any, lo: Any = 0.0) -> None:
        self.hi = np.asarray(hi, np.float64)
        self.lo = np.asarray(lo, np.float64)

    def __add__(self, other: Any) -> Twofold:
        return made(pairs.total, self, twofold(other))

    __radd__ = __add__

    def __neg__(self) -> Twofold:
        return Twofold(-self.hi, -self.lo)

    def __sub__(self, other: Any) -> Twofold:
        return made(pairs.difference, self, twofold(other))

    def __rsub__(self, other: Any) -> Twofold:
        return twofold(other) - self

    def __mul__(self, other: Any) -> Twofold:
        return made(pairs.product, self, twofold(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Twofold:
        return made(pairs.quotient, self, twofold(other))

    def __rtruediv__(self, other: Any) -> Twofold:
        return twofold(other) / self


Number = Twofold | float | np.ndarray


def twofold(x: Number) -> Twofold:
    """The number itself, or a float as one."""
    return x if isinstance(x, Twofold) else Twofold(x)


def exactly(x: Fraction) -> Twofold:
    """A fraction, rounded to twice the digits."""
    high = float(x)
    return Twofold(high, float(x - Fraction(high)))


def where(mask: Any, x: Any, y: Any) -> Twofold:
    """x where the mask is set, else y."""
    x, y = twofold(x), twofold(y)
    found = Twofold(np.where(mask, x.hi, y.hi), np.where(mask, x.lo, y.lo))
    if isinstance(x, Moving) or isinstance(y, Moving):
        return Moving(found, where(mask, move_of(x), move_of(y)))
    return found


def scaled(x: Twofold, power: Any) -> Twofold:
    """x*2**power, of which no digit is lost."""
    found = Twofold(np.ldexp(x.hi, power), np.ldexp(x.lo, power))
    return Moving(found, scaled(x.move, power)) if isinstance(x, Moving) else found


def made(formula: Callable[..., tuple[float, float]], *numbers: Twofold) -> Twofold:
    """What a compiled formula makes of such numbers, that do not move."""
    return Twofold(*universal(formula)(*[part for x in numbers for part in (x.hi, x.lo)]))


def product_plus(x: Twofold, y: Twofold, z: Twofold) -> Twofold:
    """x*y + z."""
    return x * y + z if is_moving(x, y, z) else made(pairs.product_plus, x, y, z)


# --- numbers that move ------------------------------------------------------------------------------------------------


class Moving(Twofold):
    """A number, and its derivative along the way.

    Attributes
    ----------
    move : Twofold
        Of the shape of the number. What does not move, 0, adds nothing to a product, whatever it is multiplied by.
    """

    __slots__ = ("move",)

    def __init__(self, value: Twofold, move: Twofold) -> None:
        super().__init__(value.hi, value.lo)
        self.move = move

    def __add__(self, other: Any) -> Moving:
        other = twofold(other)
        return Moving(still(self) + still(other), self.move + move_of(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Moving:
        other = twofold(other)
        return Moving(still(self) - still(other), self.move - move_of(other))

    def __rsub__(self, other: Any) -> Moving:
        other = twofold(other)
        return Moving(still(other) - still(self), move_of(other) - self.move)

    def __neg__(self) -> Moving:
        return Moving(-still(self), -self.move)

    def __mul__(self, other: Any) -> Moving:
        x, y = still(self), still(twofold(other))
        return Moving(x * y, times(self.move, y) + times(move_of(other), x))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Moving:
        return _quotient(self, twofold(other))

    def __rtruediv__(self, other: Any) -> Moving:
        return _quotient(twofold(other), self)


def _quotient(x: Twofold, y: Twofold) -> Moving:
    below = still(y)
    found = still(x) / below
    return Moving(found, over(move_of(x) - times(move_of(y), found), below))


def times(move: Twofold, partial: Twofold) -> Twofold:
    """A derivative times another: 0 where the first is, whatever the other is."""
    x, y = still(move), still(partial)
    found = made(pairs.product_unless_zero, x, y)
    return Moving(found, times(move_of(move), y) + times(x, move_of(partial))) if is_moving(move, partial) else found


def over(move: Twofold, below: Twofold) -> Twofold:
    """A derivative divided by a number: 0 where it is, whatever the other is."""
    x, y = still(move), still(below)
    found = made(pairs.quotient_unless_zero, x, y)
    return Moving(found, over(move_of(move) - times(found, move_of(below)), y)) if is_moving(move, below) else found


def still(x: Twofold) -> Twofold:
    """The number alone."""
    return Twofold(x.hi, x.lo) if isinstance(x, Moving) else x


def move_of(x: Any) -> Twofold:
    """How it moves: 0 for a number that does not."""
    return x.move if isinstance(x, Moving) else Twofold(0.0)


def sign_of(x: Twofold) -> Any:
    """That of the number, or where it is 0 that of its move."""
    return np.sign(np.where(x.hi == 0.0, move_of(x).hi, x.hi))


def mapped(change: Callable[[Any], Any], x: Twofold) -> Twofold:
    """With another arrangement of its arrays."""
    found = Twofold(change(x.hi), change(np.broadcast_to(x.lo, x.hi.shape)))
    return Moving(found, mapped(change, x.move)) if isinstance(x, Moving) else found


def is_moving(*numbers: Any) -> bool:
    """Whether one of them moves."""
    return any(isinstance(x, Moving) for x in numbers)


def must_rest(name: str, *numbers: Twofold) -> None:
    """Refuse numbers that move, where a derivative is known for these values alone."""
    if any(np.any(x.move.hi) for x in numbers if isinstance(x, Moving)):
        raise NotImplementedError(f"the first derivatives are known at single values of {name}, which moves")


Function = Callable[..., Twofold]


def carried(*partials: Callable[..., Twofold]) -> Callable[[Function], Function]:
    """Decorator for a function of such numbers: its derivatives by each, of these and of its value."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*numbers: Any) -> Twofold:
            if not is_moving(*numbers):
                return function(*numbers)
            plain = [still(twofold(x)) for x in numbers]
            value = function(*plain)
            move = Twofold(np.zeros_like(value.hi))
            for x, partial in zip(numbers, partials, strict=True):
                if isinstance(x, Moving):
                    move = move + times(x.move, twofold(partial(*plain, value)))
            return Moving(value, move)

        return call

    return decorate
