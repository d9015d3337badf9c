"""The truth for derivatives of divergences that are integrals or sums, where no closed form holds beside the point.

`gradients` asks for them. Those of the logistic and the negative binomial distribution by what must be equal on both
sides for the closed form are the integral, or the sum, differentiated under its sign; those of the Kumaraswamy
distribution are central differences of integrals in 60 digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpmath import mp, mpf

from tests.reference.further_distributions import FURTHER_CLOSED

DIGITS = 60
STEP = mpf(10) ** -20
SUSPICIOUS = mpf(10) ** -30  # a difference, times the parameter, that may be that of 0
FAR = 200  # so far apart, in scales, the densities do not meet
MOST = mpf("0.95")  # a sum over counts of a probability above takes too long
Derivative = Callable[[int, tuple[Any, ...]], Any]


def logistic(i: int, at: tuple[Any, ...]) -> Any:
    """By a scale, of the divergence of any two scales: E w*tanh(w/2) and E Z*tanh(w/2) of w = x + Z, against x = 0."""
    m, s, n, _ = at
    x = abs(m - n) / s
    if x == 0:
        return mpf(0)
    if x > FAR:
        return (1 - x if i == 3 else -1) / s

    def density(z: Any) -> Any:
        return mp.sech(z / 2) ** 2 / 4

    def rise(z: Any) -> Any:
        """tanh((x + z)/2) - tanh(z/2)."""
        return mp.sinh(x / 2) * mp.sech((x + z) / 2) * mp.sech(z / 2)

    places = [-mp.inf, -x - 20, -x, 0, 20, mp.inf]
    of_z = mp.quad(lambda z: z * density(z) * rise(z), places)
    if i == 1:
        return of_z / s
    return -(of_z + x * mp.quad(lambda z: density(z) * mp.tanh((x + z) / 2), places)) / s


def negative_binomial(i: int, at: tuple[Any, ...]) -> Any:
    """By a count, of the divergence of any two: a sum until the tail is nothing. None if that is far."""
    r, p, _, q = at
    if p > MOST:
        return None
    mass, climb, k, total = (1 - p) ** r, mpf(0), 0, mpf(0)
    while mass * (1 + k) > mpf(10) ** -DIGITS or k < 10:
        if i == 2:
            total -= mass * climb
        else:
            total += mass * (climb + mp.log1p(-p)) * (k * mp.log(p / q) + r * (mp.log1p(-p) - mp.log1p(-q)))
        climb += 1 / (r + k)  # digamma(k + 1 + r) - digamma(r)
        mass *= (r + k) / (k + 1) * p
        k += 1
    return total - mp.log1p(-q) if i == 2 else total


def negative_binomial_of_logits(i: int, at: tuple[Any, ...]) -> Any:
    r, a, s, b = at
    return negative_binomial(i, (r, 1 / (1 + mp.exp(-a)), s, 1 / (1 + mp.exp(-b))))


def _difference(formula: Callable[..., Any]) -> Derivative:
    def run(i: int, at: tuple[Any, ...]) -> Any:
        step = at[i] * STEP

        def slope(times: int) -> Any:
            moves = (times * step, -times * step)
            up, down = (formula(*(x + move if j == i else x for j, x in enumerate(at))) for move in moves)
            return (up - down) / (2 * times * step)

        return unless_of_the_step(slope(1), lambda: slope(2), at[i])

    return run


def unless_of_the_step(slope: Any, with_twice_the_step: Callable[[], Any], unit: Any) -> Any:
    """0 for a central difference that is nothing but its error, which depends on the step."""
    if abs(slope * unit) < SUSPICIOUS and abs(with_twice_the_step() - slope) > abs(slope) / 8:
        return mpf(0)
    return slope


BY_COUNTS_OR_SCALES: dict[tuple[str, str], tuple[Derivative, set[int]]] = {
    ("Logistic", "Logistic"): (logistic, {1, 3}),
    ("NegativeBinomial", "NegativeBinomial"): (negative_binomial, {0, 2}),
    ("NegativeBinomial.logits", "NegativeBinomial.logits"): (negative_binomial_of_logits, {0, 2}),
    **{
        pair: (_difference(FURTHER_CLOSED[pair]), {0, 1, 2, 3})
        for pair in (("Kumaraswamy", "Kumaraswamy"), ("Kumaraswamy", "Beta"))
    },
}


def derivative(p: str, q: str, numbers: tuple[float, ...], i: int) -> Any:
    """By the i-th parameter; None where it is not known."""
    formula, _ = BY_COUNTS_OR_SCALES[p, q]
    with mp.workdps(DIGITS + (450 if "logits" in p else 0)):  # 1 - p of log-odds up to 1,000
        return formula(i, tuple(mpf(float(x)) for x in numbers))


def serves(p: str, q: str, i: int) -> bool:
    """Whether the derivative by this parameter is one of these."""
    return i in BY_COUNTS_OR_SCALES.get((p, q), (None, set()))[1]
