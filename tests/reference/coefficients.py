"""Minimax coefficients for the polynomials in ``klnumba.formulas``.

Each target function is approximated by a polynomial with the least possible largest relative error (the Remez
exchange algorithm, in 50-digit arithmetic). The coefficients are then rounded to the wanted format. On an interval that
starts at 0 this is done one after the other, from the constant term up, and the rest is fitted again after each
rounding, so that the later coefficients make up for the rounding of the earlier ones. (With 0 inside the interval the
powers without the constant all vanish there, the best fit is no longer an alternating one, and they are rounded at
once.)

Run ``python tests/reference/coefficients.py`` to print all sets, or name some of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import mpmath as mp
import numpy as np

mp.mp.dps = 50

Real = mp.mpf
Function = Callable[[Real], Real]


def atanh_remainder(z: Real) -> Real:
    """Return Q(z) with atanh(s) = s + s*z*Q(z), z = s*s."""
    if z < mp.mpf("1e-8"):
        return mp.fsum(z**k / (2 * k + 3) for k in range(8))
    s = mp.sqrt(z)
    return (mp.atanh(s) / s - 1) / z


def log_remainder(z: Real) -> Real:
    """Return 2*Q(z): log((1+s)/(1-s)) = 2*s + s*z*log_remainder(z), z = s*s."""
    return 2 * atanh_remainder(z)


def exp_remainder(r: Real) -> Real:
    """Return E(r) with expm1(r) = r + r*r*E(r)."""
    if abs(r) < mp.mpf("1e-5"):
        return mp.fsum(r**k / mp.factorial(k + 2) for k in range(12))
    return (mp.expm1(r) - r) / (r * r)


def js_of_gap(z: Real) -> Real:
    """Return JS of two cells whose sum is 2 and whose log-ratio squared is z, divided by z."""
    if z < mp.mpf("1e-12"):
        return mp.mpf(1) / 8 - z / 64 + z * z / 576
    with mp.extradps(40):
        s = mp.tanh(mp.sqrt(z) / 2)
        return ((1 + s) * mp.log1p(s) + (1 - s) * mp.log1p(-s)) / (2 * z)


def log1p_ratio(w: Real) -> Real:
    """Return log1p(w)/w."""
    return mp.mpf(1) if w == 0 else mp.log1p(w) / w


def bend_ratio(t: Real) -> Real:
    """Return (t - log1p(t))/t**2."""
    return mp.mpf(1) / 2 - t / 3 if abs(t) < mp.mpf("1e-20") else (t - mp.log1p(t)) / (t * t)


@dataclass(frozen=True)
class Target:
    """One polynomial: what it approximates, where, how well, and in which format."""

    function: Function
    low: Real
    high: Real
    dtype: type[np.floating]
    tolerance: Real


SQRT_HALF_Z = (3 - 2 * mp.sqrt(2)) ** 2  # the largest s*s for a mantissa in [sqrt(1/2), sqrt(2)]
HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.0001")  # rounding to the nearest multiple of ln2 may miss by a little
NINTH = mp.mpf(1) / 9
LN2 = mp.log(2)
NEAR = mp.mpf("1.375")
SHORT = mp.mpf("1.25")

TARGETS = {
    "atanh_ninth_f64": Target(atanh_remainder, mp.mpf(0), NINTH, np.float64, mp.mpf(2) ** -52),
    "atanh_wide_f64": Target(atanh_remainder, NINTH, 4 * NINTH, np.float64, mp.mpf(2) ** -53),
    "atanh_ninth_f32": Target(atanh_remainder, mp.mpf(0), NINTH, np.float32, mp.mpf(2) ** -24),
    "atanh_quarter_f32": Target(log_remainder, mp.mpf(0), mp.mpf("0.04"), np.float32, mp.mpf(2) ** -20),
    "psi_ln2_f64": Target(exp_remainder, -LN2, LN2, np.float64, mp.mpf(2) ** -53),
    "psi_ln2_f32": Target(exp_remainder, -LN2, LN2, np.float32, mp.mpf(2) ** -25),
    "psi_near_f64": Target(exp_remainder, -NEAR, NEAR, np.float64, mp.mpf(2) ** -53),
    "psi_near_f32": Target(exp_remainder, -NEAR, NEAR, np.float32, mp.mpf(2) ** -25),
    "psi_short_f32": Target(exp_remainder, -SHORT, SHORT, np.float32, mp.mpf(2) ** -23),
    "bend_f32": Target(bend_ratio, -mp.mpf(1) / 2, mp.mpf(1) / 2, np.float32, mp.mpf(2) ** -22),
    "js_near_f64": Target(js_of_gap, mp.mpf(0), mp.mpf(4), np.float64, mp.mpf(2) ** -53),
    "log1p_near_f64": Target(log1p_ratio, mp.mpf(0), mp.exp(-2) * mp.mpf("1.001"), np.float64, mp.mpf(2) ** -53),
    "log_f64": Target(log_remainder, mp.mpf(0), SQRT_HALF_Z, np.float64, mp.mpf(2) ** -50),
    "log_f32": Target(log_remainder, mp.mpf(0), SQRT_HALF_Z, np.float32, mp.mpf(2) ** -21),
    "exp_f64": Target(exp_remainder, -HALF_LN2, HALF_LN2, np.float64, mp.mpf(2) ** -52),
    "exp_f32": Target(exp_remainder, -HALF_LN2, HALF_LN2, np.float32, mp.mpf(2) ** -23),
    "exp_quick_f32": Target(exp_remainder, -HALF_LN2, HALF_LN2, np.float32, mp.mpf(2) ** -20),
}


def stirling(count: int) -> list[Real]:
    """Return the coefficients of 1/x, 1/x**3, ... in Stirling's series for log-gamma, exactly."""
    return [mp.bernoulli(2 * k) / (2 * k * (2 * k - 1)) for k in range(1, count + 1)]


def stirling_from(start: float, count: int) -> list[Real]:
    """Return coefficients of 1/x, 1/x**3, ... that serve from x = `start` on, where Stirling's series does not.

    x**3*c''(x) is interpolated as a polynomial of z = 1/x**2 at Chebyshev's nodes, c what Stirling's formula leaves.
    """
    high = 1 / mp.mpf(start) ** 2
    nodes = [high * (1 + mp.cos(mp.pi * (2 * i + 1) / (2 * count))) / 2 for i in range(count)]
    curves = [z ** mp.mpf(-1.5) * (mp.polygamma(1, z**-0.5) - z**0.5 - z / 2) for z in nodes]
    powers = mp.matrix([[z**k for k in range(count)] for z in nodes])
    found = mp.lu_solve(powers, mp.matrix(curves))
    return [found[k] / ((2 * k + 1) * (2 * k + 2)) for k in range(count)]


def hankel(count: int) -> list[Real]:
    """Return the coefficients of 1/x, 1/x**2, ... in log(I0(x)) - x + log(2*pi*x)/2, exactly but for a division."""
    series = [Fraction(1)]
    for k in range(1, count + 1):
        series.append(series[-1] * Fraction((2 * k - 1) ** 2, 8 * k))
    found = [Fraction(0)]
    for n in range(1, count + 1):
        found.append(series[n] - sum(Fraction(k, n) * found[k] * series[n - k] for k in range(1, n)))
    return [mp.mpf(h.numerator) / h.denominator for h in found[1:]]


def debye(count: int) -> list[list[Fraction]]:
    """Return the polynomials of w = (n/s)**2 by which s**-1, s**-2, ... go in log I(n, x), s = sqrt(n**2 + x**2).

    They are those of the logarithm of Debye's series, whose polynomials of p = n/s follow from each other by
    u' = p**2*(1 - p**2)/2 * du/dp + 1/8 * integral of (1 - 5*p**2)*u from 0 to p.
    """
    series = [{0: Fraction(1)}]  # {power of p: factor}
    for _ in range(count):
        following: dict[int, Fraction] = {}
        for i, c in series[-1].items():
            following[i + 1] = following.get(i + 1, Fraction(0)) + c * (Fraction(i, 2) + Fraction(1, 8 * (i + 1)))
            following[i + 3] = following.get(i + 3, Fraction(0)) - c * (Fraction(i, 2) + Fraction(5, 8 * (i + 3)))
        series.append(following)
    found: list[dict[int, Fraction]] = [{}]
    for n in range(1, count + 1):
        term = dict(series[n])
        for k in range(1, n):
            for i, a in found[k].items():
                for j, b in series[n - k].items():
                    term[i + j] = term.get(i + j, Fraction(0)) - Fraction(k, n) * a * b
        found.append(term)
    return [[term.get(n + 2 * j, Fraction(0)) for j in range(n + 1)] for n, term in enumerate(found) if n]


def mean_slope(count: int) -> list[Real]:
    """Return the coefficients of x, x**3, ... in the mean of a density proportional to exp(x*t) on [0, 1]."""
    return [mp.bernoulli(2 * n) / mp.factorial(2 * n) for n in range(1, count + 1)]


def gauss_legendre(count: int) -> list[tuple[Real, Real]]:
    """Return the nodes and weights of Gauss and Legendre's rule on [0, 1]."""
    nodes = sorted(mp.polyroots(mp.taylor(lambda x: mp.legendre(count, x), 0, count)[::-1]))
    pairs = []
    for x in nodes:
        slope = mp.diff(lambda t: mp.legendre(count, t), x)
        pairs.append(((1 + x) / 2, 1 / ((1 - x * x) * slope**2)))
    return pairs


def chebyshev_points(low: Real, high: Real, count: int) -> list[Real]:
    """Return the extrema of the Chebyshev polynomial of degree ``count - 1`` on [low, high], in rising order."""
    middle, radius = (low + high) / 2, (high - low) / 2
    return [middle - radius * mp.cos(mp.pi * i / (count - 1)) for i in range(count)]


def horner(coefficients: list[Real], x: Real) -> Real:
    """Evaluate a polynomial given by rising powers."""
    result = mp.mpf(0)
    for c in reversed(coefficients):
        result = result * x + c
    return result


def remez(
    target: Target, values: dict[Real, Real], fixed: list[Real], degree: int, iterations: int = 6
) -> tuple[list[Real], Real]:
    """Fit the coefficients after ``fixed`` so that the largest relative error is as small as possible.

    Returns all coefficients, the fixed ones first, and the error levelled at the reference points.
    """
    free = range(len(fixed), degree + 1)
    grid = sorted(values)
    reference = chebyshev_points(target.low, target.high, len(free) + 1)
    nearest = np.linspace(0, len(grid) - 1, len(reference))
    if fixed:
        reference = [grid[round(i)] for i in nearest]
        if reference[0] == 0:
            reference[0] = grid[1]
    coefficients, level = list(fixed), mp.mpf(0)
    for _ in range(iterations):
        rows = []
        right = []
        for i, x in enumerate(reference):
            value = values.get(x) or target.function(x)
            rows.append([x**k / value for k in free] + [mp.mpf(-1) ** i])
            right.append(1 - horner(fixed, x) / value)
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix(right))
        coefficients = [*fixed, *list(solution)[: len(free)]]
        level = abs(solution[len(free)])
        errors = [1 - horner(coefficients, x) / values[x] for x in grid]
        extrema = alternating_extrema(grid, errors)
        if len(extrema) < len(reference):
            break
        while len(extrema) > len(reference):
            drop_front = abs(extrema[0][1]) < abs(extrema[-1][1])
            extrema = extrema[1:] if drop_front else extrema[:-1]
        reference = [x for x, _ in extrema]
        if max(abs(e) for _, e in extrema) <= level * mp.mpf("1.001"):
            break
    return coefficients, level


def alternating_extrema(grid: list[Real], errors: list[Real]) -> list[tuple[Real, Real]]:
    """Return, for each run of errors of one sign, the point where the error is largest."""
    extrema: list[tuple[Real, Real]] = []
    for x, e in zip(grid, errors, strict=True):
        if extrema and (extrema[-1][1] > 0) == (e > 0):
            if abs(e) > abs(extrema[-1][1]):
                extrema[-1] = (x, e)
        else:
            extrema.append((x, e))
    return extrema


def largest_error(target: Target, coefficients: list[Real], values: dict[Real, Real]) -> Real:
    """Return the largest relative error over the grid."""
    return max(abs(1 - horner(coefficients, x) / value) for x, value in values.items())


def rounded(target: Target, degree: int, points: int = 400) -> tuple[list[Real], Real]:
    """Return coefficients in the target's format and their largest relative error."""
    values = {x: target.function(x) for x in chebyshev_points(target.low, target.high, points)}
    fixed: list[Real] = []
    while len(fixed) <= degree:
        coefficients, _ = remez(target, values, fixed, degree)
        count = 1 if target.low == 0 else degree + 1
        fixed += [mp.mpf(float(target.dtype(mp.nstr(c, 30)))) for c in coefficients[len(fixed) :][:count]]
    return fixed, largest_error(target, fixed, values)


def smallest(target: Target, start: int = 2, stop: int = 20) -> tuple[list[Real], Real]:
    """Return the set of least degree that reaches the target's tolerance."""
    for degree in range(start, stop):
        values = {x: target.function(x) for x in chebyshev_points(target.low, target.high, 100)}
        if remez(target, values, [], degree)[1] > target.tolerance:
            continue
        coefficients, error = rounded(target, degree)
        if error <= target.tolerance:
            return coefficients, error
    raise ArithmeticError(f"no degree below {stop} reaches {mp.nstr(target.tolerance, 3)}")


def main(names: list[str]) -> None:
    """Print the named sets, or all of them."""
    for name in names or list(TARGETS):
        target = TARGETS[name]
        coefficients, error = smallest(target)
        interval = f"[{mp.nstr(target.low, 6)}, {mp.nstr(target.high, 6)}]"
        print(f"# {name}: degree {len(coefficients) - 1}, interval {interval}, ", end="")
        print(f"relative error {mp.nstr(error, 3)} = 2^{mp.nstr(mp.log(error, 2), 4)}")
        for k, c in enumerate(coefficients):
            print(f"    {float(c)!r},  # c{k} = {float(c).hex()}")


if __name__ == "__main__":
    main(sys.argv[1:])
