"""Quick forms of closed forms: without loops or branches, so that a loop over many of them is packed instructions.

A quick form returns a value and whether it serves: whether its arguments are ordinary, that is from 2**-100 to 2**100,
and no difference in it loses more than a few bits. Where it does not serve, the formula that it stands in for does.
`with_quick_form` puts the two together. They are compiled without contraction, so the fused operations are written out.

The remainder of log-gamma, B(a, b) = log-gamma(b) - log-gamma(a) - digamma(a)*(b - a), is the sum of those of the parts
of log-gamma(x) = log-gamma(x + 3) - log(x*(x + 1)*(x + 2)), and of those of Stirling's formula from x = 3 on. All of
them are >= 0 but that of Stirling's series, which is small beside the others.

The quick slopes of a closed form are its derivatives by all its arguments, each with the size of the terms that it is
the sum of: where they cancel, the derivatives are worked out in more digits (`klnumba.duals`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from klnumba.formulas.elementary import LN2_HI, LN2_LO
from klnumba.formulas.odd_series import MANTISSA, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9
from klnumba.formulas.primitives import fma
from klnumba.formulas.special import difference_of_products

F = TypeVar("F", bound=Callable[..., Any])
Slopes = tuple[tuple[float, float], ...]  # derivatives, each with the size of its terms

LEAST = 2.0**-100
MOST = 2.0**100
FROM = 3.0  # where the series below starts, and the number of factors of `first_three`
FEW_BITS = 16.0  # a difference may be smaller than its terms by this factor

# c(x) = SERIES[0]/x + SERIES[1]/x**3 + ... for x from 3 on, c''(x) to 4.2e-17/x**2 (tests/reference/coefficients.py).
SERIES = (
    0.0833333333333332,
    -0.0027777777777134366,
    0.0007936507804400003,
    -0.0005952366452812756,
    0.0008416529757933002,
    -0.001913111107651827,
    0.00626934016578562,
    -0.026226926397272147,
    0.11914258142657541,
    -0.49415366386113524,
    1.5955525906205543,
    -3.3746791019219886,
    3.4086181953551535,
)

_quick_forms: dict[Callable[..., Any], tuple[Callable[..., Any], ...]] = {}
_quick_slopes: dict[Callable[..., Any], Callable[..., Slopes]] = {}
_quick_bends: dict[Callable[..., Any], Callable[..., Slopes]] = {}


def _noted(registry: dict[Callable[..., Any], Any], value: Any) -> Callable[[F], F]:
    """Decorator: what a registry has for this formula."""

    def note(formula: F) -> F:
        registry[formula] = value
        return formula

    return note


def with_quick_form(*forms: Callable[..., tuple[float, bool]]) -> Callable[[F], F]:
    """Decorator: batches of this formula are computed by its quick form wherever that serves.

    A formula of two rows has two: that of a cell and that of the sums (`klnumba.kernels.row_sums`).
    """
    return _noted(_quick_forms, forms)


def quick_form(formula: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """The quick form of a formula; nothing where it has none."""
    return _quick_forms.get(formula, ())


def with_quick_slopes(slopes: Callable[..., Slopes]) -> Callable[[F], F]:
    """Decorator: the derivatives of this formula by its arguments are these, wherever they serve.

    Each is right to a few roundings of the size that comes with it, where all arguments are ordinary or zero.
    """
    return _noted(_quick_slopes, slopes)


def quick_slopes(formula: Callable[..., Any]) -> Callable[..., Slopes] | None:
    """The quick slopes of a formula; None where it has none."""
    return _quick_slopes.get(formula)


def with_quick_bends(bends: Callable[..., Slopes]) -> Callable[[F], F]:
    """Decorator: what the derivatives of this formula change by as its arguments move, of these and of their moves.

    Like quick slopes, one for each number that is given: those for the moves are (0, 0).
    """
    return _noted(_quick_bends, bends)


def quick_bends(formula: Callable[..., Any]) -> Callable[..., Slopes] | None:
    """The quick bends of a formula; None where it has none."""
    return _quick_bends.get(formula)


def is_ordinary(x: float) -> bool:
    """Whether x is from 2**-100 to 2**100."""
    return bool((x >= LEAST) & (x <= MOST))


def split(x: float, y: float, gap: float) -> tuple[float, float]:
    """(k, s) with log(x/y) = k*ln2 + 2*atanh(s), |s| < 1/3, of two positive normal numbers, gap = x - y."""
    bits_x = np.float64(x).view(np.int64)
    bits_y = np.float64(y).view(np.int64)
    shift = bits_x - bits_y
    shift += (shift >> np.int64(63)) & MANTISSA
    y2 = np.int64(bits_y + (shift & ~MANTISSA)).view(np.float64)
    k = float(shift >> np.int64(52))
    return k, (gap if k == 0.0 else x - y2) / (x + y2)


def atanh_series(z: float) -> float:
    """R(z) with 2*atanh(s) = 2*s + s*z*R(z), z = s*s: `series`, with fused operations."""
    r = fma(R9, z, R8)
    r = fma(r, z, R7)
    r = fma(r, z, R6)
    r = fma(r, z, R5)
    r = fma(r, z, R4)
    r = fma(r, z, R3)
    r = fma(r, z, R2)
    r = fma(r, z, R1)
    return fma(r, z, R0)


def log_of_split(k: float, s: float, more: float) -> float:
    """k*ln2 + 2*atanh(s), more = 2*atanh(s)/s - 2."""
    return fma(k, LN2_HI, fma(2.0, s, fma(s, more, k * LN2_LO)))


def excess_of_ordinary_products(a: float, b: float, c: float, d: float) -> float:
    """a*b/(c*d) - 1 - log(a*b/(c*d)) of ordinary numbers, the products unrounded."""
    x = c * d
    gap = difference_of_products(c, d, a, b)
    k, s = split(x, a * b, gap)
    z = s * s
    more = z * atanh_series(z)
    part = gap / x
    return s * (part + more) if k == 0.0 else log_of_split(k, s, more) - part


def moved(a: float, b: float, d: float, u: float) -> tuple[float, float]:
    """(b*excess(b, a), excess(a, b)) of ordinary numbers, given d = b - a and u = 1/a."""
    k, s = split(a, b, -d)
    z = s * s
    r = atanh_series(z)
    log = log_of_split(k, s, z * r)
    both = a + b
    odd = s * r
    near = k == 0.0
    first = z * fma(-b, odd, both) if near else fma(-b, log, -d)
    return first, z * fma(both, u, odd) if near else fma(d, u, log)


def three(x: float) -> tuple[float, float]:
    """x*(x + 1)*(x + 2), and what its rounding leaves out."""
    line = fma(3.0, x, 2.0)
    square = fma(x, x, line)
    low = fma(x, x, line - square) + fma(3.0, x, 2.0 - line)
    whole = x * square
    return whole, fma(x, low, fma(x, square, -whole))


def first_three(a: float, b: float, d: float) -> float:
    """The sum of excess(a + n, b + n) for n from 0 to 2, given d = b - a.

    With t = d/(a + n), it is the sum of t less the logarithm of the product of 1 + t. Close to 0 it is half the sum of
    t**2, to which are added terms of third order; `one`, `more`, `cube` and `squares` are the sum of t, the rest of
    the product, its part of third order, and the sum of t**2, with the powers of the denominator left out. Elsewhere
    the two may be eight times as large as their difference, so `low` puts them right for the roundings of the products
    and, as d leads, for those of a and b.
    """
    below, below_low = three(a)
    above, above_low = three(b)
    both = 1.0 / (below * above)
    inverse = above * both
    square = d * d
    cube = square * d
    one = d * fma(fma(3.0, a, 6.0), a, 2.0)
    more = fma(square, fma(3.0, a, 3.0), cube)
    squares = fma(fma(fma(fma(3.0, a, 12.0), a, 18.0), a, 12.0), a, 4.0)
    k, s = split(below, above, -(one + more))
    z = s * s
    r = atanh_series(z)
    over = d * inverse
    whole = (below + above) * inverse
    third = z * s * fma(0.5 * whole, whole, r) + ((more * inverse) * (fma(0.5, more, one) * inverse) - cube * inverse)
    near = fma(0.5 * (over * over), squares, third)
    part = one * inverse
    off = d - (b - a) if abs(k) == 1.0 else 0.0  # of a and b that are rounded, and not so far apart that d is too
    above_low = fma(off, fma(fma(3.0, b, 6.0), b, 2.0), above_low)
    low = inverse * (fma(-part, below, one) + fma(-part, below_low, below_low)) - above_low * (below * both)
    return near if k == 0.0 else fma(k, LN2_HI, part) + fma(2.0, s, fma(s, z * r, fma(k, LN2_LO, low)))


def two_powers_more(u: float, v: float, power: float, inner: float, outer: float) -> tuple[float, float, float]:
    """A step of `stirling_bregman_from_three` from m to m + 2; `power` is v**m."""
    inner = u * (inner + power)
    outer = fma(u, outer, inner)
    power *= v
    inner = u * (inner + power)
    return power * v, inner, fma(u, outer, inner)


def stirling_bregman_from_three(u: float, v: float, d: float) -> float:
    """c(b) - c(a) - c'(a)*(b - a) for a and b from 3 on, given u = 1/a, v = 1/b and d = b - a.

    For x**-m it is (d*u)*(d*v)*outer, where `outer` is the sum of (m - i)*u**(m - i)*v**i for i from 0 to m - 1, and
    `inner` that of u**(m - i)*v**i.
    """
    power = v
    inner = u
    outer = u
    total = SERIES[0] * outer
    for k in (1, 2, 3, 4, 5, 6):
        power, inner, outer = two_powers_more(u, v, power, inner, outer)
        total = fma(SERIES[k], outer, total)
    for k in (7, 8, 9, 10, 11, 12):  # a loop of twelve would not be unrolled
        power, inner, outer = two_powers_more(u, v, power, inner, outer)
        total = fma(SERIES[k], outer, total)
    return (d * u) * (d * v) * total


def remainder_parts(a: float, b: float, d: float) -> tuple[float, float]:
    """Two parts of the remainder of log-gamma, given d = b - a.

    The second is what Stirling's formula leaves of it beyond b*excess(b, a), where both numbers are from 3 on.
    """
    small = (a < FROM) | (b < FROM)
    start = first_three(a if small else 1.0, b if small else 1.0, d if small else 0.0)
    up = FROM if small else 0.0
    a += up
    b += up
    inverse = 1.0 / (a * b)
    u = b * inverse
    first, second = moved(a, b, d, u)
    return start + first, fma(0.5, second, stirling_bregman_from_three(u, a * inverse, d))


def quick_log_gamma_bregman(a: float, b: float, d: float) -> tuple[float, bool]:
    """log-gamma(b) - log-gamma(a) - digamma(a)*(b - a), given d = b - a."""
    first, second = remainder_parts(a, b, d)
    return first + second, is_ordinary(a) & is_ordinary(b)


def quick_beyond_means(a: float, b: float, d: float) -> tuple[float, bool]:
    """`quick_log_gamma_bregman` less b*excess(b, a), given d = b - a."""
    first, second = remainder_parts(a, b, d)
    less, _ = moved(a, b, d, 0.0)
    large = (a >= FROM) & (b >= FROM)
    value = second if large else first + second - less
    return value, is_ordinary(a) & is_ordinary(b) & (large | (less <= FEW_BITS * value))


def quick_difference(more: float, less: float) -> tuple[float, bool]:
    """more - less >= 0, if that is not small beside them."""
    value = more - less
    return value, more <= FEW_BITS * value
