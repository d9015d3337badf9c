"""Parameters at which an exponential moment of p, or a power's, is held by the place of q.

KL to Gumbel, Moyal and Weibull distributions, and from log-normal ones, holds exp(v), v the sum of parts that may be
thousands of millions. Drawn at random, exp(v) is next to nothing or infinite; here q is moved to where v is from 1 to
300, with parameters decades apart.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
from mpmath import mp, mpf

Number = Any

# log E exp(-X/t) of p, for the loc of a Gumbel or Moyal distribution of scale t.
MOMENTS: dict[str, Callable[..., Number]] = {
    "Normal": lambda t, m, s: (s / t) ** 2 / 2 - m / t,
    "Gumbel": lambda t, m, s: mp.loggamma(1 + s / t) - m / t,
    "Moyal": lambda t, m, s: mp.loggamma(mpf(1) / 2 + s / t) - mp.log(mp.pi) / 2 + s / t * mp.log(2) - m / t,
    "Exponential": lambda t, r: -mp.log1p(1 / (r * t)),
    "Gamma": lambda t, a, b: -a * mp.log1p(1 / (b * t)),
}
# log E X**k of p, for the scale of a Weibull distribution of shape k.
POWERS: dict[str, Callable[..., Number]] = {
    "Weibull": lambda k, s, c: k * mp.log(s) + mp.loggamma(1 + k / c),
    "Exponential": lambda k, r: mp.loggamma(1 + k) - k * mp.log(r),
    "Gamma": lambda k, a, b: mp.loggamma(a + k) - mp.loggamma(a) - k * mp.log(b),
    "HalfNormal": lambda k, s: k * mp.log(s) + k / 2 * mp.log(2) + mp.loggamma((1 + k) / 2) - mp.log(mp.pi) / 2,
    "Chi": lambda k, n: k / 2 * mp.log(2) + mp.loggamma((n + k) / 2) - mp.loggamma(n / 2),
    "LogNormal": lambda k, m, s: k * m + (k * s) ** 2 / 2,
    "Lindley": lambda k, r: mp.loggamma(1 + k) - k * mp.log(r) + mp.log1p(k / (1 + r)),
    "Uniform": lambda k, low, high: mp.log((high ** (k + 1) - low ** (k + 1)) / (high - low)) - mp.log(k + 1),
}
# The power of a log-normal variable whose mean q has, by the family of q.
OF_LOG_NORMAL = {"Exponential": 1, "Gamma": 1, "InverseGamma": -1, "HalfNormal": 2, "Chi": 2, "Laplace": 1, "Normal": 2}

FREE = {"Normal": "ms", "Gumbel": "ms", "Moyal": "ms", "LogNormal": "ms", "Uniform": "lw"}
WIDTHS = {"Gamma": 2, "Weibull": 2}
PAIRS = [
    *[(p, q) for p in MOMENTS for q in ("Gumbel", "Moyal")],
    *[(p, "Weibull") for p in POWERS],
    *[("LogNormal", q) for q in OF_LOG_NORMAL],
]


def positive(rng: np.random.Generator, low: float = -9.0, high: float = 9.0) -> float:
    """A number of any decade."""
    return float(10.0 ** rng.uniform(low, high))


def numbers_of(p: str, rng: np.random.Generator) -> tuple[float, ...]:
    """Parameters of p."""
    kind = FREE.get(p, "")
    if kind == "ms":
        return float(rng.choice([-1.0, 1.0])) * positive(rng), positive(rng)
    if kind == "lw":
        low = positive(rng)
        return low, low * (1.0 + positive(rng, -9.0, 3.0))
    return tuple(positive(rng) for _ in range(WIDTHS.get(p, 1)))


def case(p: str, q: str, rng: np.random.Generator) -> tuple[float, ...]:
    """Parameters of p and of q."""
    first = numbers_of(p, rng)
    u = float(rng.uniform(1.0, 300.0))
    with mp.workdps(60):
        exact = tuple(map(mpf, first))
        if p == "LogNormal" and q in OF_LOG_NORMAL:
            return from_log_normal(q, first[1], u, rng)
        if q == "Weibull":
            k = positive(rng, 0.0)
            return (*first, float(mp.exp((POWERS[p](mpf(k), *exact) - u) / mpf(k))), k)
        t = positive(rng)
        return (*first, float(mpf(t) * (u - MOMENTS[p](mpf(t), *exact))), t)


def from_log_normal(q: str, scale: float, u: float, rng: np.random.Generator) -> tuple[float, ...]:
    """The same, where p is moved."""
    power = OF_LOG_NORMAL[q]
    second = {"Gamma": 2, "InverseGamma": 2, "Laplace": 2, "Normal": 2}.get(q, 1)
    others = tuple(positive(rng, -3.0, 3.0) for _ in range(second))
    s = mpf(scale)
    return float((u - (power * s) ** 2 / 2) / power), scale, *others


def cases(p: str, q: str, n: int) -> list[tuple[float, ...]]:
    """So many of a pair whose numbers are in the range."""
    rng = np.random.default_rng(len(p) * 31 + len(q))
    found = (case(p, q, rng) for _ in range(40 * n))
    return list(islice((one for one in found if all(1e-290 < abs(x) < 1e290 for x in one)), n))
