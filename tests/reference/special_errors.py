"""Measure the largest error of every special function in ``klnumba.formulas``.

Run ``python -m tests.reference.special_errors`` to write ``docs/_data/special_errors.json`` anew.

Functions of one number are measured in units of the last place, those with a root apart from it; the remainders, of two
numbers, in relative error.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp, mpf

from klnumba.formulas import bessel, integrals, special
from klnumba.kernels.compiler import scalar

TABLE = Path(__file__).parents[2] / "docs" / "_data" / "special_errors.json"
DIGITS = 110


def stirling(x: Any) -> Any:
    """What Stirling's formula leaves of log-gamma."""
    return mp.loggamma(x) - ((x - mpf(1) / 2) * mp.log(x) - x + mp.log(2 * mp.pi) / 2)


def stirling_slope(x: Any) -> Any:
    """Its derivative."""
    return mp.digamma(x) - mp.log(x) + 1 / (2 * x)


def trigamma(x: Any) -> Any:
    """The second derivative of log-gamma."""
    return mp.polygamma(1, x)


def bessel_ratio(x: Any) -> Any:
    """I1(x)/I0(x)."""
    return mp.besseli(1, x) / mp.besseli(0, x)


def bessel_ratio_slope(x: Any) -> Any:
    """Its derivative."""
    ratio = bessel_ratio(x)
    return 1 - ratio / x - ratio**2


def scaled_exponential_integral(x: Any) -> Any:
    """exp(x) times the integral of exp(-t)/t from x on."""
    return mp.exp(x) * mp.e1(x)


# name: the truth, and what to leave out around the roots
ONE_NUMBER: dict[str, tuple[Callable[[Any], Any], tuple[float, float] | None]] = {
    "log_gamma": (mp.loggamma, (0.5, 2.5)),
    "digamma": (mp.digamma, (1.2, 1.8)),
    "trigamma": (trigamma, None),
    "stirling": (stirling, None),
    "stirling_slope": (stirling_slope, None),
    "bessel_ratio": (bessel_ratio, None),
    "bessel_ratio_slope": (bessel_ratio_slope, None),
    "scaled_exponential_integral": (scaled_exponential_integral, None),
}
# name: a function and its derivative, and the sign of the remainder
REMAINDERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], int]] = {
    "log_gamma_bregman": (mp.loggamma, mp.digamma, 1),
    "digamma_bregman": (mp.digamma, trigamma, -1),
    "log_bessel_bregman": (lambda x: mp.log(mp.besseli(0, x)), bessel_ratio, 1),
}


def formula(name: str) -> Any:
    """The compiled function of this name."""
    return scalar(next(getattr(module, name) for module in (special, bessel, integrals) if hasattr(module, name)))


def sample(rng: np.random.Generator, count: int) -> np.ndarray:
    """Positive numbers, crowded where the formulas change."""
    wide = np.exp(rng.uniform(np.log(1e-30), np.log(1e30), count // 4))
    middle = np.exp(rng.uniform(np.log(1e-6), np.log(1e6), count // 4))
    return np.concatenate([wide, middle, rng.uniform(0.01, 12.0, count // 2)])


def pairs(rng: np.random.Generator, count: int) -> list[tuple[float, float]]:
    """Pairs of positive numbers, close together and far apart."""
    a = np.exp(rng.uniform(np.log(1e-6), np.log(1e8), count))
    delta = 10.0 ** rng.uniform(-12, 2, count)
    b = np.where(rng.random(count) < 0.5, a * (1 + delta), a / (1 + delta))
    return [(float(x), float(y)) for x, y in zip(a, b, strict=True) if x != y]


def worst(name: str, rng: np.random.Generator, count: int) -> tuple[float, list[float]]:
    """The largest error of a function, and where it is."""
    function = formula(name)
    found = []
    with mp.workdps(DIGITS):
        if name in ONE_NUMBER:
            truth, hole = ONE_NUMBER[name]
            for x in sample(rng, count).tolist():
                if hole is None or not hole[0] < x < hole[1]:
                    exact = truth(mpf(x))
                    error = abs(mpf(float(function(x))) - exact) / mpf(float(np.spacing(abs(float(exact)))))
                    found.append((float(error), [x]))
        else:
            truth, slope, sign = REMAINDERS[name]
            for a, b in pairs(rng, count):
                x, y = mpf(a), mpf(b)
                exact = sign * (truth(y) - truth(x) - slope(x) * (y - x))
                found.append((float(abs(mpf(float(function(a, b, b - a))) - exact) / exact), [a, b]))
    return max(found)


def measure(count: int) -> dict[str, Any]:
    """The table: an entry a function."""
    rows = []
    for name in (*ONE_NUMBER, *REMAINDERS):
        error, at = worst(name, np.random.default_rng(20261121), count)
        hole = ONE_NUMBER[name][1] if name in ONE_NUMBER else None
        text = f"{error:.2f} ulp" if name in ONE_NUMBER else f"{error:.1e} relative"
        rows.append({"function": name, "largest_error": text, "left_out": str(hole or ""), "at": at})
        print(rows[-1], flush=True)
    return {"errors": rows}


if __name__ == "__main__":
    TABLE.write_text(json.dumps(measure(12_000), indent=1) + "\n")
