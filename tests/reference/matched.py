"""Search for errors where q is fitted to p: an optimiser finds parameters that no grid has.

p is drawn, q is moved until the divergence is least, and from there by a little: what is left of the terms is small
against them. Within a family q is p but for a small fraction. Run

    python -m tests.reference.matched [P-Q ...] [--seconds S] [--seed N]

to search for so long, over these pairs or all; every error beyond the bound is a line, and at the end there is one for
the largest of each pair.
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp, mpf
from scipy.optimize import minimize

from tests.reference.distribution_errors import BOUND, build, error, evaluate
from tests.reference.distributions import CLOSED, DIGITS, DIGITS_OF_ODDS, INTERVALS, ODDS, PARTIAL, truth
from tests.reference.identities import FREE, SIZES, kind

SECONDS = 600.0
LIMIT = 12.0  # seconds for a true value
STARTS = 4
DECADES = (2.0, 5.0, 10.0)  # of the parameters of p
AGREE = 1e-16  # two true values that are further apart are none
TINY = 1e-290  # least positive number that is drawn; what is fitted may be no less

# What the parameters of a family are; `FREE` has most of them.
ROLES: dict[str, tuple[str, ...]] = {
    **{family: tuple(roles.split()) for family, roles in FREE.items()},
    **dict.fromkeys(INTERVALS, ("low", "high")),
    "VonMises": ("odds", "shape"),
    "ContinuousBernoulli": ("probability",),
    "Binomial": ("count", "probability"),
    "Binomial.logits": ("count", "odds"),
    "NegativeBinomial": ("kept", "probability"),
    "NegativeBinomial.logits": ("kept", "odds"),
}
ENDLESS, ENDING = ("Poisson", "Geometric", "NegativeBinomial"), ("Bernoulli", "Binomial")
HELD = ("count", "kept")  # they are not fitted
Case = tuple[float, ...]
Rng = np.random.Generator


class Found(NamedTuple):
    """A case with its error: NaN where both are no normal number, and what kept it from being counted."""

    p: str
    q: str
    case: Case
    ours: float
    exact: Any
    error: float
    left_out: str = ""

    def __str__(self) -> str:
        exact = mp.nstr(self.exact, 20) if self.exact is not None else self.left_out
        return f"{self.p}-{self.q}, {self.case}, {self.ours!r}, {exact}, {self.error:.2g}"


def pairs() -> list[tuple[str, str]]:
    """Those that have a finite divergence for all parameters around those that are drawn."""
    served = (pair for pair in CLOSED if pair not in PARTIAL and set(pair) <= ROLES.keys() and kind(*pair) == "formula")
    return [(p, q) for p, q in served if not (p in ENDLESS and q in ENDING)]


# --- p ----------------------------------------------------------------------------------------------------------------


def number(role: str, rng: Rng, decades: float) -> float:
    """A parameter of p."""
    size = float(10.0 ** rng.uniform(-decades, decades))
    if role in SIZES:
        return size
    if role == "place":
        return size if rng.random() < 0.5 else -size
    if role == "probability":
        return float(rng.uniform()) if rng.random() < 0.5 else min(size, 1.0 / size)
    if role == "odds":
        return float(rng.normal()) * min(size, 300.0)
    return float(math.ceil(min(size, 1000.0))) if role == "count" else size


def numbers(family: str, rng: Rng) -> Case:
    """Parameters of p."""
    decades = float(rng.choice(DECADES))
    if family in INTERVALS:
        low = number("place" if family == "Uniform" and rng.random() < 0.3 else "scale", rng, decades)
        return low, low + abs(low) * float(10.0 ** rng.uniform(-12.0, 1.0))
    return tuple(number(role, rng, decades) for role in ROLES[family])


# --- q ----------------------------------------------------------------------------------------------------------------


class Around(NamedTuple):
    """Where p is: its mean and deviation, or what stands for them, and its parameters."""

    middle: float
    spread: float
    numbers: Case

    def guess(self, role: str, rng: Rng) -> float:
        """Where the search begins for a coded parameter."""
        if role in ("place", "low", "high"):
            return float(rng.normal()) * (1.0 if role == "place" else 3.0)
        sizes = [abs(x) for x in (self.middle, self.spread, *self.numbers) if x != 0.0]
        first, second = (math.log(rng.choice(sizes)) for _ in range(2))
        if role not in SIZES:
            return first if rng.random() < 0.5 else float(rng.choice(self.numbers))
        return (first, -first, 2.0 * (first - second), first - 2.0 * second)[rng.integers(4)]

    def decoded(self, role: str, x: float) -> float:
        """The parameter that a number stands for: any number for any role."""
        if role in SIZES:
            return math.exp(min(max(x, -660.0), 660.0))
        if role == "probability":
            return 1.0 / (1.0 + math.exp(-min(max(x, -660.0), 36.0)))
        if role == "place":
            return self.middle + self.spread * x
        if role in ("low", "high"):
            return self.middle + (-1.0 if role == "low" else 1.0) * self.spread * math.exp(min(x, 300.0))
        return x


def around(p: str, first: Case) -> Around:
    """Its mean and deviation; where there are none, the first and the last parameter."""
    with np.errstate(all="ignore"):
        one = build(p, first)
        middle, spread = float(one.mean), math.sqrt(one.variance)
    middle = middle if math.isfinite(middle) else first[0]
    return Around(middle, spread if TINY < spread < math.inf else abs(first[-1]), first)


def held(role: str, p: str, first: Case, rng: Rng) -> float:
    """A count of q: that of p, or of some more draws."""
    own = dict(zip(ROLES[p], first, strict=True)).get(role)
    if own is None:
        return number(role, rng, 2.0)
    return own + (float(rng.integers(3)) if role == "count" else 0.0)


def divergence(p: str, q: str, case: Case) -> float:
    """Ours, infinite where it has no value."""
    try:
        value = float(evaluate(p, q, [case])[0])
    except ValueError:  # what is searched may leave the range of a parameter
        return math.inf
    return value if math.isfinite(value) else math.inf


def fitted(p: str, q: str, first: Case, rng: Rng) -> Case | None:
    """Parameters of q that are closest to p, but for a small distance; none where all are at an infinite one."""
    place = around(p, first)
    counts = {role: held(role, p, first, rng) for role in ROLES[q] if role in HELD}
    free = [role for role in ROLES[q] if role not in HELD]

    def parameters(coded: Any) -> Case:
        own = iter(coded)
        return tuple(counts[role] if role in counts else place.decoded(role, float(next(own))) for role in ROLES[q])

    def distance(coded: Any) -> float:
        return divergence(p, q, (*first, *parameters(coded)))

    found = [least(distance, [place.guess(role, rng) for role in free]) for _ in range(STARTS)]
    best = min(found, key=lambda one: one[0])
    jitter = 10.0 ** rng.uniform(-9.0, -3.0) * rng.normal(size=len(free))
    return None if math.isinf(best[0]) else parameters(best[1] + jitter)


def least(distance: Callable[[Any], float], start: list[float]) -> tuple[float, Any]:
    """The least distance that a search from there finds, and where it is."""
    k = len(start)
    simplex = np.array(start) + np.vstack([np.zeros(k), 0.5 * np.eye(k)])
    options = {"initial_simplex": simplex, "maxfev": 150 * k + 60, "xatol": 1e-12, "fatol": 0.0}
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        if math.isinf(min(map(distance, simplex))):
            return math.inf, simplex[0]
        found = minimize(distance, start, method="Nelder-Mead", options=options)
    return float(found.fun), found.x


def beside(family: str, first: Case, rng: Rng) -> Case:
    """Parameters a small fraction off; an interval around the other."""
    sizes = 10.0 ** rng.uniform(-12.0, -1.0, len(first))
    steps = (sizes * rng.choice([-1.0, 0.0, 1.0], len(first))).tolist()
    if family in INTERVALS:
        low, high = first
        return low - abs(steps[0]) * (high - low), high + abs(steps[1]) * (high - low)
    moved = zip(ROLES[family], first, steps, strict=True)
    return tuple(x if role in HELD else _moved(role, x, step) for role, x, step in moved)


def _moved(role: str, x: float, step: float) -> float:
    """A parameter a fraction off; a probability stays one."""
    return x * (1.0 - abs(step)) if role == "probability" and not x * (1.0 + step) < 1.0 else x * (1.0 + step)


def case(p: str, q: str, rng: Rng) -> Case | None:
    """Parameters of p and of q."""
    first = numbers(p, rng)
    second = beside(p, first, rng) if p == q and rng.random() < 0.7 else fitted(p, q, first, rng)
    return None if second is None else (*first, *second)


# --- the truth --------------------------------------------------------------------------------------------------------


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """A TimeoutError where it takes longer."""

    def stop(*_: Any) -> None:
        raise TimeoutError("no true value in time")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def again(p: str, q: str, case: Case) -> Any:
    """The true value to twice the digits."""
    digits = DIGITS_OF_ODDS if ODDS & {p.partition(".")[0], q.partition(".")[0]} else DIGITS
    with mp.workdps(2 * digits):
        return CLOSED[p, q](*map(mpf, case))


def exact(p: str, q: str, case: Case, sure: Callable[[Any], bool]) -> Any:
    """The true value; of what is not sure enough, a second one has to agree."""
    with within(LIMIT):
        value = truth(p, q, *case)
        if not isinstance(value, mpf) or not value >= 0:
            raise ValueError("the true value is no number")
        if sure(value):
            return value
        other = again(p, q, case)
    if value != other and not abs(value - other) <= AGREE * abs(other):
        raise ValueError("two true values differ")
    return other


def looked_at(p: str, q: str, case: Case) -> Found:
    """The error of a case."""
    with warnings.catch_warnings(record=True, action="always") as told_of:
        ours = float(evaluate(p, q, [case])[0])
    if math.isnan(ours) and told_of:
        return Found(p, q, case, ours, None, math.nan, "NaN with a warning")
    try:
        value = exact(p, q, case, lambda value: not error(ours, value) > BOUND)
    except (ArithmeticError, ValueError, TimeoutError, RuntimeError, mp.NoConvergence) as reason:
        text = str(reason).partition("\n")[0] or type(reason).__name__
        return Found(p, q, case, ours, None, math.nan, text)
    return Found(p, q, case, ours, value, error(ours, value))


# --- the search -------------------------------------------------------------------------------------------------------


def searched(p: str, q: str, rng: Rng, seconds: float, most: int = sys.maxsize) -> Iterator[Found]:
    """Cases of a pair, for so long and no more than so many."""
    end = time.monotonic() + seconds
    for _ in range(most):
        found = case(p, q, rng)
        if found is not None:
            yield looked_at(p, q, found)
        if time.monotonic() > end:
            return


def generator(seed: int, p: str, q: str) -> Rng:
    """A pair's own, so that what it finds does not hang on which others are searched."""
    return np.random.default_rng([seed, *f"{p}-{q}".encode()])


def told(p: str, q: str, found: Iterator[Found]) -> Found | None:
    """Print what is beyond the bound, and what is not counted; the largest."""
    largest, reasons, counted = None, Counter[str](), 0
    for one in found:
        if one.left_out:
            reasons[one.left_out] += 1
        elif one.error > BOUND:
            print(one, flush=True)
        if not math.isnan(one.error):
            counted += 1
            largest = one if largest is None or one.error > largest.error else largest
    print(f"{p}-{q}: {counted} counted, {dict(reasons)}", flush=True)
    return largest


def search(chosen: Collection[str], seconds: float, seed: int) -> None:
    """All these pairs one after the other, of the time each the same part."""
    taken = [pair for pair in pairs() if not chosen or "-".join(pair) in chosen]
    each = seconds / max(1, len(taken))
    largest = [told(p, q, searched(p, q, generator(seed, p, q), each)) for p, q in taken]
    for one in largest:
        if one is not None:
            print(f"{one.p}-{one.q}: {one.error:.2g} at {one.case}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", metavar="P-Q")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    search(given.pairs, given.seconds, given.seed)
