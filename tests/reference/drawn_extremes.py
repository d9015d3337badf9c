"""Parameters of any size, in which each parameter of q may be that of p, or next to it.

Where parameters are extreme and nearly equal at once, a formula whose parts leave the range of numbers one by one may
still look right on a grid of either.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.reference.distribution_errors import names
from tests.reference.distributions import AT, INTERVALS
from tests.reference.hard_values import POSITIVE_ONLY, grid

BOUNDED = {"probs", "logits", "total_count", "v"}  # whose sizes are those of the grid
LEAST, MOST = 1e-300, 1e300


def drawn(p: str, q: str, count: int, seed: int = 0) -> Iterator[tuple[float, ...]]:
    """So many draws of the parameters of p and then of q, always the same."""
    rng = random.Random(f"{p}-{q}-{seed}")
    for _ in range(count):
        first, second = of_family(rng, p), of_family(rng, q)
        if p == "Uniform" and q in POSITIVE_ONLY:
            first = [abs(first[0]), 2.0 * abs(first[0]) + abs(first[1])]
        for k, (name, other) in enumerate(zip(names(q), names(p), strict=False)):
            if name == other and name != "total_count":
                second[k] = beside(rng, first[k], second[k], name)
        if q.partition(".")[0] in INTERVALS:
            second.sort()
        if (p, q) == ("Logistic", "Logistic"):
            second[1] = first[1]
        case = first + second
        if (p, q) in AT:
            place, number = AT[p, q]
            case[place] = number
        if q.partition(".")[0] not in INTERVALS or second[0] < second[1]:
            yield tuple(case)


def of_family(rng: random.Random, family: str) -> list[float]:
    """Parameters from the grid, moved by up to eight decades where they may have any size."""
    found = list(rng.choice(grid(family)))
    if family.partition(".")[0] in INTERVALS:
        return found
    return [x if name in BOUNDED else moved(rng, x) for x, name in zip(found, names(family), strict=True)]


def moved(rng: random.Random, x: float) -> float:
    """A number of another size; 0 stays."""
    y = x * 10.0 ** rng.uniform(-8.0, 8.0) * (1.0 + rng.random())
    return y if LEAST < abs(y) < MOST else x


def beside(rng: random.Random, x: float, otherwise: float, name: str) -> float:
    """The number x, one next to it, or another."""
    choice = rng.random()
    if choice < 0.2:
        return x
    near = x * (1.0 + rng.choice((-3.0, 3.0)) * rng.random() * 10.0 ** -rng.randint(1, 16))
    if choice < 0.7 and not (name == "probs" and near >= 1.0):
        return near
    return otherwise
